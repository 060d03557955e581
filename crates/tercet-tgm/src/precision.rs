//! Selection of the smallest pipeline within an error bound.
//!
//! The smallest candidates are encoded, decoded and compared with the original, so the error is measured, not estimated. Those
//! with Zstandard are encoded with higher levels, too. Large arrays are judged by a sample first. NaN and infinities get the
//! shortest mask, unless the options select one.
//!
//! ```
//! use tercet_tgm::precision::{Candidate, deviation};
//! use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions};
//!
//! let values: Vec<u8> = (0..1000).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect();
//! let plain = DataObjectDescriptor::new(DType::F64, [1000]);
//! for candidate in Candidate::all(&plain, &values, Some(0.01)) {
//!     let trial = candidate.encode(&values, &EncodeOptions::new())?;
//!     let error = deviation(DType::F64, &values, &trial.decode()?).max;
//!     assert!(error <= 0.01 || !candidate.is_lossless(), "{candidate}: {error}");
//! }
//! # Ok::<(), tercet_tgm::PipelineError>(())
//! ```

#[cfg(any(unix, windows))]
mod advise;
mod candidates;
mod deviation;
mod search;

use std::borrow::Cow;

use tercet_core::threads::install;
use tercet_core::{DType, Span};

#[cfg(any(unix, windows))]
pub use advise::{Advice, Advised, Measured, advise, candidate_count};
pub use candidates::Candidate;
pub use deviation::{Deviation, deviation};
use search::{Attempt, search};

use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::error::ErrorKind;
use crate::metadata::Entry;
use crate::object::Values;
use crate::options::ReadOptions;
use crate::pipeline::{self, PipelineError};
use crate::region::{Part, Region};
use crate::value::Value;

/// The key of the error bound in the metadata of an object, with the measured error and the method.
pub const PRECISION: &str = "precision";

/// An encoded array.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The descriptor with all parameters.
    pub descriptor: DataObjectDescriptor,
    /// Payload and masks.
    pub stored: Vec<u8>,
}

impl Trial {
    fn run(
        descriptor: &DataObjectDescriptor,
        values: &[u8],
        options: &EncodeOptions,
    ) -> Result<Self, PipelineError> {
        let (descriptor, stored) = pipeline::encode(descriptor, values, options)?;
        Ok(Self { descriptor: descriptor.into_owned(), stored: stored.into_owned() })
    }

    /// The length of payload, masks and descriptor in bytes.
    pub fn len(&self) -> u64 {
        self.stored.len() as u64 + self.descriptor.to_cbor().len() as u64
    }

    /// Always false: there is a descriptor.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The maximum difference between the decoded values and the original, little-endian ones.
    fn deviation(&self, dtype: DType, original: &[u8]) -> Result<Deviation, PipelineError> {
        Ok(deviation(dtype, original, &self.decode()?))
    }

    /// The decoded values, little-endian.
    pub fn decode(&self) -> Result<Vec<u8>, PipelineError> {
        let region = Region { message: 0, part: Part::Object { object: 0 } };
        let len = self.descriptor.payload_len_in(self.stored.len() as u64)?;
        let options = ReadOptions::new();
        let read = || {
            let values = Values::new(region, &self.descriptor, Span::first(len), &options)?;
            let mut out = vec![0; usize::try_from(values.len()).unwrap_or(usize::MAX)];
            values.decode(&self.stored, &mut out)?;
            Ok(out)
        };
        read().map_err(|fault: ErrorKind| match fault {
            ErrorKind::Pipeline { error, .. } => *error,
            other => PipelineError::Codec(tercet_codec::CodecError::Decode {
                codec: "the pipeline",
                detail: other.to_string(),
            }),
        })
    }
}

/// The smallest candidate within a bound.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The candidate.
    pub candidate: Candidate,
    /// The encoded array.
    pub trial: Trial,
    /// The maximum error.
    pub error: f64,
}

/// Finds the smallest candidate with a maximum error of at most `bound`. Storing the values unchanged is always one.
///
/// `descriptor` has no pipeline.
pub fn choose(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    bound: f64,
    options: &EncodeOptions,
) -> Result<Chosen, PipelineError> {
    install(options.threads, || try_candidates(descriptor, values, bound, options))
}

fn try_candidates(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    bound: f64,
    options: &EncodeOptions,
) -> Result<Chosen, PipelineError> {
    let little = little_endian(descriptor, values);
    let options = &options.clone().with_max_error(Some(bound));
    let mut best: Option<Chosen> = None;
    let mut refused = None;
    search(descriptor, values, Some(bound), options, |candidate| {
        let trial = match candidate.encode(values, options) {
            Ok(trial) => trial,
            Err(error) => {
                // Another candidate may succeed; non-finite values fail with all of them.
                refused.get_or_insert(error);
                return Ok(Attempt { len: None, holds: false });
            }
        };
        let len = trial.len();
        if best.as_ref().is_some_and(|best| best.trial.len() <= len) {
            return Ok(Attempt { len: Some(len), holds: false });
        }
        let found = trial.deviation(descriptor.dtype, &little)?;
        let holds = found.holds(bound);
        if holds {
            best = Some(Chosen { candidate: candidate.clone(), trial, error: found.max });
        }
        Ok::<_, PipelineError>(Attempt { len: Some(len), holds })
    })?;
    best.ok_or_else(|| {
        // Only a complex number with one non-finite part differs when it is stored unchanged.
        let what = "no pipeline is within the error bound: a complex value".into();
        let reason = "with one non-finite part loses the other part in the mask";
        refused.unwrap_or(PipelineError::Combination { what, reason })
    })
}

/// Encodes values with the pipeline of their descriptor, and measures the error.
pub fn measure(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<Chosen, PipelineError> {
    let candidate = Candidate::given(descriptor);
    install(options.threads, || {
        let trial = candidate.encode(values, options)?;
        let error = trial.deviation(descriptor.dtype, &little_endian(descriptor, values))?.max;
        Ok(Chosen { candidate, trial, error })
    })
}

fn little_endian<'a>(descriptor: &DataObjectDescriptor, values: &'a [u8]) -> Cow<'a, [u8]> {
    if descriptor.stored_order() == crate::ByteOrder::Little {
        return Cow::Borrowed(values);
    }
    let mut little = values.to_vec();
    crate::dtype::swap_in_place(&mut little, descriptor.dtype.swap_unit());
    Cow::Owned(little)
}

impl Chosen {
    /// The entry `precision` of the metadata of the object.
    pub fn record(&self, bound: f64) -> Value {
        let entry: Entry = [
            ("max_error".to_owned(), Value::Float(bound)),
            ("measured".to_owned(), Value::Float(self.error)),
            ("method".to_owned(), self.candidate.to_string().into()),
        ]
        .into();
        entry.into()
    }
}
