//! The smallest form of an array whose error stays within a bound.
//!
//! Every candidate is encoded, decoded and compared with the original, so that a bound is measured, not believed.
//!
//! ```
//! use tercet_tgm::precision::{Candidate, deviation};
//! use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions};
//!
//! let values: Vec<u8> = (0..1000).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect();
//! let plain = DataObjectDescriptor::new(DType::F64, [1000]);
//! for candidate in Candidate::all(&plain, &values, Some(0.01)) {
//!     let trial = candidate.encode(&values, &EncodeOptions::new())?;
//!     let error = deviation(DType::F64, &values, &trial.decode()?).largest;
//!     assert!(error <= 0.01 || !candidate.is_lossless(), "{candidate}: {error}");
//! }
//! # Ok::<(), tercet_tgm::PipelineError>(())
//! ```

mod candidates;
mod deviation;

use std::borrow::Cow;

use tercet_core::Span;

pub use candidates::Candidate;
pub use deviation::{Deviation, deviation};

use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::error::ErrorKind;
use crate::metadata::Entry;
use crate::object::Values;
use crate::options::ReadOptions;
use crate::pipeline::{self, PipelineError};
use crate::region::{Part, Region};
use crate::value::Value;

/// The key under which the metadata of an object states which bound was asked for, and what was done to hold it.
pub const PRECISION: &str = "precision";

/// An array as it would be stored.
#[derive(Clone, Debug)]
pub struct Trial {
    /// With all parameters.
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

    /// Bytes of payload, masks and descriptor.
    pub fn len(&self) -> u64 {
        self.stored.len() as u64 + self.descriptor.to_cbor().len() as u64
    }

    /// Whether nothing is stored. Never: there is a descriptor.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The values that a reader gets, little-endian.
    pub fn decode(&self) -> Result<Vec<u8>, PipelineError> {
        let region = Region { message: 0, part: Part::Object { object: 0 } };
        let len = self.descriptor.payload_len_in(self.stored.len() as u64)?;
        let options = ReadOptions::new().with_sz3_in_process(true);
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

/// The smallest candidate that holds a bound.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// How it is stored.
    pub candidate: Candidate,
    /// As it is stored.
    pub trial: Trial,
    /// The largest error there is.
    pub error: f64,
}

/// Finds the smallest candidate whose largest error is at most `bound`. Storing values as they are always holds it.
///
/// `descriptor` says what the values are; its pipeline does nothing yet.
pub fn choose(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    bound: f64,
    options: &EncodeOptions,
) -> Result<Chosen, PipelineError> {
    let little = little_endian(descriptor, values);
    let mut best: Option<Chosen> = None;
    let mut refused = None;
    for candidate in Candidate::all(descriptor, values, Some(bound)) {
        let trial = match candidate.encode(values, options) {
            Ok(trial) => trial,
            Err(error) => {
                // What is wrong with one candidate need not be wrong with the others; values that are not finite are.
                refused.get_or_insert(error);
                continue;
            }
        };
        if best.as_ref().is_some_and(|best| best.trial.len() <= trial.len()) {
            continue;
        }
        let found = deviation(descriptor.dtype, &little, &trial.decode()?);
        // A caller that allows no error wants every bit.
        if found.largest <= bound && (bound > 0.0 || found.is_exact) {
            best = Some(Chosen { candidate, trial, error: found.largest });
        }
    }
    best.ok_or_else(|| {
        // Only a complex number of which one part is not finite does not come back from being stored as it is.
        let what = "no way of storing the values holds the bound: one of them is a complex number".into();
        let reason = "of which only one part is finite, and loses that part to a mask";
        refused.unwrap_or(PipelineError::Combination { what, reason })
    })
}

/// Stores values as their descriptor asks, and measures the error.
pub fn measure(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<Chosen, PipelineError> {
    let candidate = Candidate::given(descriptor);
    let trial = candidate.encode(values, options)?;
    let error = deviation(descriptor.dtype, &little_endian(descriptor, values), &trial.decode()?).largest;
    Ok(Chosen { candidate, trial, error })
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
    /// What the metadata of the object says about it.
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
