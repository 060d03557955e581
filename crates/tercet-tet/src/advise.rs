//! [`advise`]: sizes and speeds of a dataset with other compressions and roundings.

use std::time::{Duration, Instant};

use tercet_codec::bytes::zstd;
use tercet_core::{CommonError, ElementType, Progress, Shape};
use tercet_kernel::max_abs_error;

use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use crate::layout::Compression;
use crate::rounding::{Rounder, Rounding};
use crate::writer::sample;

/// The levels of zstd that are tried.
const LEVELS: [i32; 4] = [1, 3, 9, 19];

/// Values that are decoded at a time.
const BLOCK: usize = 1 << 10;

/// The trials of a dataset.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The name of the dataset.
    pub dataset: String,
    /// The element type.
    pub dtype: ElementType,
    /// The shape.
    pub shape: Shape,
    /// The length of all values in bytes.
    pub raw_bytes: u64,
    /// The length of the stored chunks in bytes.
    pub stored_bytes: u64,
    /// The length of the sample that was measured, in bytes.
    pub sample_bytes: u64,
    /// The compression that [`Compression::Auto`] chooses.
    pub automatic: Compression,
    /// Raw chunks first, then zstd from fast to small, then roundings from exact to coarse.
    pub trials: Vec<Trial>,
}

/// A way to store the dataset, and its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The compression.
    pub compression: Compression,
    /// The rounding of the values.
    pub rounding: Option<Rounding>,
    /// The measurements.
    pub measured: Measured,
}

/// The measurements of a sample, on one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// The length of the stored sample as a fraction of its length.
    pub ratio: f64,
    /// The length of all stored chunks in bytes, estimated from the sample.
    pub bytes: u64,
    /// The largest absolute error in the sample.
    pub max_abs_error: f64,
    /// Encoding, in million bytes per second.
    pub encode_mb_s: f64,
    /// Decoding, in million bytes per second.
    pub decode_mb_s: f64,
}

/// Measures how small and how fast a dataset is with other compressions, and with values rounded to a maximum error.
///
/// A sample of at most 8 MiB is measured. `errors` are the maximum errors to try; if there are none, powers of ten that are small
/// compared to the range of the values. Integers and packed values are not rounded.
pub fn advise(dataset: &Dataset<'_>, errors: &[f64], progress: &dyn Progress) -> Result<Advice, Error> {
    let failed = |fault: ErrorKind| dataset.file.error(fault);
    let grid = dataset.grid()?;
    let mut pieces = Vec::new();
    for linear in sample::positions(grid, grid.chunk_count()) {
        progress.check().map_err(|cancelled| failed(cancelled.into()))?;
        let coords = grid.coords(linear);
        let mut raw = dataset.chunk(&coords[..grid.rank()])?.bytes().to_vec();
        pieces.push(sample::piece(&mut raw, grid.element().size()).to_vec());
    }
    let sample_bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
    let mut roundings = Vec::new();
    let encoding = dataset.cf_encoding()?;
    if grid.element().is_float() && !encoding.is_packed() {
        let decode = encoding.decode(grid.element());
        let default = trial_errors(value_range(grid.element(), &decode, &pieces));
        let errors = if errors.is_empty() { &default } else { errors };
        for &error in errors {
            let rounding = Rounding::MaxError(error);
            let rounder = Rounder::new(rounding, grid.element(), &encoding)
                .map_err(|reason| failed(invalid(dataset, &reason.to_string())))?;
            roundings.push((rounding, rounder));
        }
    }
    let mut plans: Vec<(Compression, Option<&(Rounding, Rounder)>)> = vec![(Compression::None, None)];
    if zstd::is_built_in() {
        plans.extend(LEVELS.map(|level| (Compression::Zstd { level }, None)));
        let level = zstd::DEFAULT_LEVEL;
        plans.extend(roundings.iter().map(|rounding| (Compression::Zstd { level }, Some(rounding))));
    }
    let mut trials = Vec::with_capacity(plans.len());
    for (compression, rounding) in plans {
        let mut total = Total::default();
        for piece in &pieces {
            progress.check().map_err(|cancelled| failed(cancelled.into()))?;
            let rounder = rounding.map(|(_, rounder)| rounder);
            total.add(grid.element(), piece, compression, rounder).map_err(failed)?;
            progress.advance(piece.len() as u64);
        }
        let measured = total.finish(sample_bytes, grid.bytes());
        trials.push(Trial { compression, rounding: rounding.map(|(rounding, _)| *rounding), measured });
    }
    let mut stored_bytes = 0u64;
    for linear in 0..grid.chunk_count() {
        let coords = grid.coords(linear);
        stored_bytes = stored_bytes.saturating_add(dataset.chunk_ref(&coords[..grid.rank()])?.span.len());
    }
    let at = |level| trials.iter().find(|trial| trial.compression == Compression::Zstd { level });
    let compressed = at(zstd::DEFAULT_LEVEL).map_or(1.0, |trial| trial.measured.ratio);
    Ok(Advice {
        dataset: dataset.name().to_owned(),
        dtype: grid.element(),
        shape: Shape::from(grid.shape()),
        raw_bytes: grid.bytes(),
        stored_bytes,
        sample_bytes,
        automatic: sample::choose(sample_bytes, scaled(compressed, sample_bytes), false),
        trials,
    })
}

fn invalid(dataset: &Dataset<'_>, detail: &str) -> ErrorKind {
    ErrorKind::Compute { dataset: dataset.name().into(), detail: detail.into() }
}

#[derive(Default)]
struct Total {
    stored: u64,
    error: f64,
    encoding: Duration,
    decoding: Duration,
}

impl Total {
    /// Encodes a piece, decodes it and compares.
    fn add(
        &mut self,
        dtype: ElementType,
        piece: &[u8],
        compression: Compression,
        rounder: Option<&Rounder>,
    ) -> Result<(), ErrorKind> {
        let failed = |error| ErrorKind::Common(CommonError::Write(std::io::Error::other(error)));
        let started = Instant::now();
        let mut raw = piece.to_vec();
        if let Some(rounder) = rounder {
            rounder.apply(&mut raw)?;
        }
        let stored = match compression {
            Compression::Zstd { level } => {
                let mut out = Vec::new();
                zstd::encode(&raw, level, &mut out).map_err(failed)?;
                out
            }
            _ => raw,
        };
        self.encoding += started.elapsed();
        let mut decoded = vec![0; piece.len()];
        let started = Instant::now();
        match compression {
            Compression::Zstd { .. } => zstd::decode(&stored, &mut decoded).map_err(failed)?,
            _ => decoded.copy_from_slice(&stored),
        }
        self.decoding += started.elapsed();
        self.stored += stored.len() as u64;
        self.error = self.error.max(max_abs_error(dtype, piece, &decoded));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "ratios and speeds for people")]
    fn finish(&self, sample: u64, total: u64) -> Measured {
        let speed = |time: Duration| sample as f64 / time.max(Duration::from_nanos(1)).as_secs_f64() / 1e6;
        let ratio = self.stored as f64 / sample.max(1) as f64;
        Measured {
            ratio,
            bytes: scaled(ratio, total),
            max_abs_error: self.error,
            encode_mb_s: speed(self.encoding),
            decode_mb_s: speed(self.decoding),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of a length"
)]
fn scaled(ratio: f64, bytes: u64) -> u64 {
    (ratio * bytes as f64).round() as u64
}

/// The difference of the largest and the smallest finite value of a sample.
fn value_range(dtype: ElementType, decode: &tercet_kernel::Decode, pieces: &[Vec<u8>]) -> f64 {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut numbers = [0.0; BLOCK];
    for block in pieces.iter().flat_map(|piece| piece.chunks(BLOCK * dtype.size())) {
        let numbers = &mut numbers[..block.len() / dtype.size()];
        decode.gather(dtype, block, 1, numbers);
        for number in numbers.iter().filter(|number| number.is_finite()) {
            (low, high) = (low.min(*number), high.max(*number));
        }
    }
    high - low
}

/// Powers of ten from a hundred-thousandth to a hundredth of the range.
fn trial_errors(range: f64) -> Vec<f64> {
    if !(range.is_finite() && range > 0.0) {
        return Vec::new();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
    let exponent = range.log10().floor() as i32;
    // Parsed: a power of ten that is computed may differ in the last digit.
    let power = |exponent: i32| format!("1e{exponent}").parse::<f64>().ok();
    (exponent - 5..exponent - 1).filter_map(power).filter(|error| *error > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_errors_are_small_powers_of_ten() {
        assert_eq!(trial_errors(115.0), [1e-3, 1e-2, 1e-1, 1.0]);
        assert_eq!(trial_errors(0.02), [1e-7, 1e-6, 1e-5, 1e-4]);
        for nothing in [0.0, f64::NAN, f64::NEG_INFINITY, f64::INFINITY] {
            assert!(trial_errors(nothing).is_empty());
        }
    }
}
