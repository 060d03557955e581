//! The trial of one pipeline.

use std::time::{Duration, Instant};

use serde::Serialize;
use tercet::tgm::precision::{Candidate, deviation};
use tercet::tgm::{EncodeOptions, PipelineError};

/// The result of a trial.
#[derive(Debug, Serialize)]
pub(super) struct Trial {
    pub(super) name: String,
    /// Whether the pipeline is lossless by construction.
    lossless: bool,
    /// The measurements; `None` if the pipeline failed.
    #[serde(flatten)]
    pub(super) measured: Option<Measured>,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
    /// Whether a writer would choose this pipeline.
    pub(super) chosen: bool,
    #[serde(skip)]
    pub(super) has_masks: bool,
}

/// Sizes, errors and speeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Measured {
    /// Size of payload, masks and descriptor.
    pub(super) bytes: u64,
    pub(super) ratio: f64,
    /// Infinite, so null in JSON, if a NaN or infinity was lost.
    pub(super) largest_error: f64,
    pub(super) encode_mb_s: f64,
    pub(super) decode_mb_s: f64,
}

impl Trial {
    /// Encodes values, decodes them and compares.
    pub(super) fn run(candidate: &Candidate, values: &[u8], options: &EncodeOptions) -> Self {
        let (measured, failed, has_masks) = match measure(candidate, values, options) {
            Ok((measured, has_masks)) => (Some(measured), None, has_masks),
            Err(error) => (None, Some(error.to_string()), false),
        };
        let (name, lossless) = (candidate.to_string(), candidate.is_lossless());
        Self { name, lossless, measured, failed, chosen: false, has_masks }
    }
}

#[cfg(test)]
impl Trial {
    pub(super) fn new(name: &str, measured: Option<Measured>) -> Self {
        let name = name.to_owned();
        Self { name, lossless: false, measured, failed: None, chosen: false, has_masks: false }
    }
}

fn measure(
    candidate: &Candidate,
    values: &[u8],
    options: &EncodeOptions,
) -> Result<(Measured, bool), PipelineError> {
    let started = Instant::now();
    let trial = candidate.encode(values, options)?;
    let encoding = started.elapsed();
    let started = Instant::now();
    let decoded = trial.decode()?;
    let decoding = started.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = values.len() as f64 / trial.len() as f64;
    let measured = Measured {
        bytes: trial.len(),
        ratio,
        largest_error: deviation(candidate.descriptor.dtype, values, &decoded).largest,
        encode_mb_s: speed(values.len(), encoding),
        decode_mb_s: speed(values.len(), decoding),
    };
    Ok((measured, trial.descriptor.masks.is_some()))
}

/// Megabytes per second. A zero duration counts as one nanosecond.
#[expect(clippy::cast_precision_loss, reason = "a speed for people")]
fn speed(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.max(Duration::from_nanos(1)).as_secs_f64() / 1e6
}
