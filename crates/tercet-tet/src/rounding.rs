//! [`Rounding`]: fewer significant bits, so that float datasets compress better.
//!
//! The rounded values are ordinary floats: every reader reads them. The attributes of the dataset record how it was rounded.

use std::fmt;

use rayon::prelude::*;
use tercet_core::{CommonError, DType, ElementType, Progress};
use tercet_kernel::{BitRounding, Decode, max_abs_error};

use crate::cf::CfEncoding;
use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use crate::metadata::DatasetInfo;
use crate::writer::room;

/// The attribute with the algorithm, as the CF conventions (section 8.4) name it.
pub(crate) const ALGORITHM: &str = "quantization_algorithm";
/// The algorithm that this crate has.
pub(crate) const BITROUND: &str = "bitround";
/// The attribute with the number of mantissa bits, from the CF conventions.
pub(crate) const KEPT_BITS: &str = "quantization_nsb";
/// The attribute with the largest absolute error.
pub(crate) const MAX_ERROR: &str = "quantization_max_error";

/// How the values of a float dataset are rounded when they are written.
///
/// Missing values, NaN and infinities are not changed, and no value becomes missing. Rounding again changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// The number of mantissa bits that are kept.
    KeepBits(u32),
    /// The largest absolute error: every value gets the fewest mantissa bits within it. 0 changes nothing.
    MaxError(f64),
}

/// The error of a [`Rounding`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum RoundingError {
    Integers { dtype: DType },
    InvalidError { found: String },
    TooManyBits { bits: u32, most: u32, dtype: DType },
    Packed,
    Attribute { detail: String },
}

impl fmt::Display for RoundingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers { dtype } => {
                write!(f, "{} values cannot be rounded: only floats have mantissa bits", dtype.short_name())
            }
            Self::InvalidError { found } => {
                write!(f, "invalid maximum error {found}: a finite number, not negative, is required")
            }
            Self::TooManyBits { bits, most, dtype } => {
                write!(f, "cannot keep {bits} mantissa bits: {} has {most}", dtype.short_name())
            }
            Self::Packed => f.write_str("packed values (`scale_factor`, `add_offset`) cannot be rounded"),
            Self::Attribute { detail } => f.write_str(detail),
        }
    }
}

impl Rounding {
    /// The rounding of the values of an element type.
    pub(crate) fn bits(self, dtype: ElementType) -> Result<BitRounding, RoundingError> {
        let Some(most) = BitRounding::mantissa_bits(dtype) else {
            return Err(RoundingError::Integers { dtype: dtype.into() });
        };
        match self {
            Self::KeepBits(bits) => BitRounding::keep_bits(dtype, bits).ok_or(RoundingError::TooManyBits {
                bits,
                most,
                dtype: dtype.into(),
            }),
            Self::MaxError(error) => BitRounding::max_error(dtype, error)
                .ok_or_else(|| RoundingError::InvalidError { found: error.to_string() }),
        }
    }

    /// The rounding that the attributes of a dataset record.
    pub fn recorded(info: &DatasetInfo) -> Option<Self> {
        if info.attrs.get(ALGORITHM)? != BITROUND {
            return None;
        }
        let number = |key: &str| info.attrs.get(key)?.parse::<f64>().ok();
        if let Some(error) = number(MAX_ERROR) {
            return Some(Self::MaxError(error)).filter(|_| error.is_finite() && error >= 0.0);
        }
        info.attrs.get(KEPT_BITS)?.parse().ok().map(Self::KeepBits)
    }
}

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepBits(bits) => write!(f, "{bits} mantissa bits"),
            Self::MaxError(error) => write!(f, "max error {error}"),
        }
    }
}

/// Rounds the chunks of a dataset and checks every value.
#[derive(Clone, Debug)]
pub(crate) struct Rounder {
    dtype: ElementType,
    bits: BitRounding,
    bound: Option<f64>,
    /// Finds missing values; `None` if only NaN is missing.
    missing: Option<Decode>,
}

/// Values that are compared at a time.
const BLOCK: usize = 1 << 10;

impl Rounder {
    pub(crate) fn new(
        rounding: Rounding,
        dtype: ElementType,
        encoding: &CfEncoding,
    ) -> Result<Self, RoundingError> {
        let bits = rounding.bits(dtype)?;
        if encoding.is_packed() {
            return Err(RoundingError::Packed);
        }
        let bound = match rounding {
            Rounding::MaxError(error) => Some(error),
            Rounding::KeepBits(_) => None,
        };
        let missing = (!encoding.is_empty()).then(|| encoding.decode(dtype));
        Ok(Self { dtype, bits, bound, missing })
    }

    /// Rounds the values of a chunk. An error that is larger than the bound is a failure.
    pub(crate) fn apply(&self, raw: &mut [u8]) -> Result<(), ErrorKind> {
        if self.bits.is_exact() {
            return Ok(());
        }
        let size = self.dtype.size();
        let mut before = [0; BLOCK * 8];
        for block in raw.chunks_mut(BLOCK * size) {
            let before = &mut before[..block.len()];
            before.copy_from_slice(block);
            self.bits.apply(block);
            if let Some(missing) = &self.missing {
                self.keep_missing(missing, before, block);
            }
            let error = max_abs_error(self.dtype, before, block);
            if let Some(bound) = self.bound.filter(|bound| error > *bound) {
                let message = format!("bit rounding changed a value by {error}, but {bound} is the maximum");
                return Err(ErrorKind::Common(CommonError::Write(std::io::Error::other(message))));
            }
        }
        Ok(())
    }

    /// Restores missing values, and those that became missing.
    fn keep_missing(&self, missing: &Decode, before: &[u8], after: &mut [u8]) {
        let size = self.dtype.size();
        let count = after.len() / size;
        let (mut old, mut new) = ([0.0; BLOCK], [0.0; BLOCK]);
        missing.gather(self.dtype, before, 1, &mut old[..count]);
        missing.gather(self.dtype, after, 1, &mut new[..count]);
        for (position, (old, new)) in old[..count].iter().zip(&new[..count]).enumerate() {
            if old.is_nan() || new.is_nan() {
                let at = position * size..(position + 1) * size;
                after[at.clone()].copy_from_slice(&before[at]);
            }
        }
    }
}

impl Dataset<'_> {
    /// The largest absolute difference between the values of this dataset and those of another one of the same type and
    /// shape; the chunks may differ.
    pub fn max_abs_error_to(&self, other: &Dataset<'_>, progress: &dyn Progress) -> Result<f64, Error> {
        let grid = other.grid()?;
        let values = |coords: &[u64], out: &mut [u8]| self.read_chunk_of(grid, coords, out);
        other.max_abs_error(values, progress)
    }

    /// The largest absolute difference between the stored values and those that `values` returns for each chunk
    /// (row-major, little-endian). It is infinite if a NaN or an infinity differs. `values` is called from several threads.
    pub fn max_abs_error<E: From<Error> + Send>(
        &self,
        values: impl Fn(&[u64], &mut [u8]) -> Result<(), E> + Sync,
        progress: &dyn Progress,
    ) -> Result<f64, E> {
        let grid = self.grid()?;
        let compare = |linear: u64| {
            progress.check().map_err(|cancelled| self.file.error(cancelled.into()))?;
            let coords = grid.coords(linear);
            let coords = &coords[..grid.rank()];
            let stored = self.chunk(coords)?;
            let mut expected = room(grid.chunk_bytes_at(coords)).map_err(|fault| self.file.error(fault))?;
            values(coords, &mut expected)?;
            progress.advance(expected.len() as u64);
            Ok(max_abs_error(grid.element(), &expected, stored.bytes()))
        };
        self.file.on_threads(|| {
            (0..grid.chunk_count())
                .into_par_iter()
                .map(compare)
                .try_reduce(|| 0.0, |first: f64, second: f64| Ok(first.max(second)))
        })
    }
}
