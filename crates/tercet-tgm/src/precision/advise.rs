//! Comparison of all candidate pipelines of an array.

use std::time::{Duration, Instant};

use serde::Serialize;
use tercet_core::Progress;
use tercet_core::progress::Cancelled;

use super::{Attempt, Candidate, deviation, little_endian, search};
use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::pipeline::PipelineError;

/// The candidate pipelines of an array, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// Whether the array has NaN or infinities.
    pub has_masks: bool,
    /// The candidates, in the order in which they were tried; those of a large array that were only estimated follow.
    pub candidates: Vec<Advised>,
}

/// A candidate pipeline, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advised {
    /// The pipeline, for people.
    pub name: String,
    /// Whether the pipeline is lossless by construction.
    pub lossless: bool,
    /// The measurements; `None` if the pipeline failed, or was only estimated.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// The size in bytes, estimated from a sample of a large array: it cannot be the smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_bytes: Option<u64>,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Whether it is the smallest within the error bound, the first of equal ones.
    pub chosen: bool,
    /// The descriptor with the pipeline.
    #[serde(skip)]
    pub descriptor: DataObjectDescriptor,
    /// Whether it is within the error bound.
    #[serde(skip)]
    holds: bool,
}

/// Sizes, errors and speeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The size of payload, masks and descriptor in bytes.
    pub bytes: u64,
    /// The size of the values, divided by `bytes`.
    pub ratio: f64,
    /// The maximum error. Infinite, so null in JSON, if a NaN or infinity was lost.
    pub max_abs_error: f64,
    /// Megabytes of values encoded per second, in one run.
    pub encode_mb_s: f64,
    /// Megabytes of values decoded per second, in one run.
    pub decode_mb_s: f64,
}

/// Encodes and decodes an array with every candidate pipeline: sizes and errors are exact, speeds are those of one run. The
/// pipelines of an array of more than 4 MiB are tried on a sample first, and only the smallest are measured.
/// Memory is needed for one encoded and one decoded array. `descriptor` has no pipeline.
///
/// ```
/// use tercet_core::progress::NoProgress;
/// use tercet_tgm::precision::advise;
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions};
///
/// let values: Vec<u8> = (0..1000).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect();
/// let plain = DataObjectDescriptor::new(DType::F64, [1000]);
/// let advice = advise(&plain, &values, Some(0.01), &EncodeOptions::new(), &NoProgress)?;
/// let chosen = advice.chosen().and_then(|chosen| chosen.measured).expect("storing the values unchanged is possible");
/// assert!(chosen.max_abs_error <= 0.01 && chosen.ratio > 4.0);
/// # Ok::<(), tercet_core::progress::Cancelled>(())
/// ```
pub fn advise(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    bound: Option<f64>,
    options: &EncodeOptions,
    progress: &dyn Progress,
) -> Result<Advice, Cancelled> {
    let bound_or_zero = bound.unwrap_or(0.0);
    let options = &options.clone().with_max_error(Some(bound_or_zero));
    let mut advice = Advice { has_masks: false, candidates: Vec::new() };
    let estimated = search(descriptor, values, bound, options, |candidate| {
        progress.check()?;
        let mut advised = Advised::new(candidate.clone());
        let mut attempt = Attempt { len: None, holds: false };
        match measure(candidate, values, options, bound_or_zero) {
            Ok((measured, holds, has_masks)) => {
                advice.has_masks |= has_masks;
                attempt = Attempt { len: Some(measured.bytes), holds };
                (advised.measured, advised.holds) = (Some(measured), holds);
            }
            Err(error) => advised.failed = Some(error.to_string()),
        }
        advice.candidates.push(advised);
        progress.advance(values.len() as u64);
        Ok::<_, Cancelled>(attempt)
    })?;
    for (candidate, estimated_bytes) in estimated {
        advice.candidates.push(Advised { estimated_bytes, ..Advised::new(candidate) });
        progress.advance(values.len() as u64);
    }
    advice.choose();
    Ok(advice)
}

impl Advised {
    fn new(candidate: Candidate) -> Self {
        Self {
            name: candidate.to_string(),
            lossless: candidate.is_lossless(),
            measured: None,
            estimated_bytes: None,
            failed: None,
            chosen: false,
            descriptor: candidate.descriptor,
            holds: false,
        }
    }
}

/// The number of candidates of [`advise`], without those of higher levels.
pub fn candidate_count(descriptor: &DataObjectDescriptor, values: &[u8], bound: Option<f64>) -> usize {
    Candidate::all(descriptor, values, bound).len()
}

impl Advice {
    /// The smallest candidate within the error bound.
    pub fn chosen(&self) -> Option<&Advised> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }

    fn choose(&mut self) {
        let holds = |candidate: &&mut Advised| candidate.holds;
        let size = |candidate: &&mut Advised| candidate.measured.map_or(u64::MAX, |found| found.bytes);
        if let Some(best) = self.candidates.iter_mut().filter(holds).min_by_key(size) {
            best.chosen = true;
        }
    }
}

fn measure(
    candidate: &Candidate,
    values: &[u8],
    options: &EncodeOptions,
    bound: f64,
) -> Result<(Measured, bool, bool), PipelineError> {
    let started = Instant::now();
    let trial = candidate.encode(values, options)?;
    let encoding = started.elapsed();
    let started = Instant::now();
    let decoded = trial.decode()?;
    let decoding = started.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = values.len() as f64 / trial.len() as f64;
    let little = little_endian(&candidate.descriptor, values);
    let found = deviation(candidate.descriptor.dtype, &little, &decoded);
    let measured = Measured {
        bytes: trial.len(),
        ratio,
        max_abs_error: found.max,
        encode_mb_s: speed(values.len(), encoding),
        decode_mb_s: speed(values.len(), decoding),
    };
    Ok((measured, found.holds(bound), trial.descriptor.masks.is_some()))
}

/// Megabytes per second. A zero duration counts as one nanosecond.
#[expect(clippy::cast_precision_loss, reason = "a speed for people")]
fn speed(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.max(Duration::from_nanos(1)).as_secs_f64() / 1e6
}

#[cfg(test)]
mod tests {
    use tercet_core::DType;

    use super::*;

    #[test]
    fn the_first_smallest_pipeline_within_the_bound_is_chosen() {
        let advised = |name: &str, found: Option<(u64, f64)>| Advised {
            name: name.to_owned(),
            lossless: false,
            measured: found.map(|(bytes, max_abs_error)| Measured {
                bytes,
                ratio: 1.0,
                max_abs_error,
                encode_mb_s: 1.0,
                decode_mb_s: 1.0,
            }),
            failed: None,
            chosen: false,
            estimated_bytes: None,
            descriptor: DataObjectDescriptor::new(DType::F64, [1]),
            holds: found.is_some_and(|(_, error)| error <= 0.5),
        };
        let candidates = vec![
            advised("too wrong", Some((1, 0.6))),
            advised("impossible", None),
            advised("large", Some((9, 0.0))),
            advised("small", Some((5, 0.5))),
            advised("small too", Some((5, 0.0))),
        ];
        let mut advice = Advice { has_masks: false, candidates };
        advice.choose();
        assert_eq!(advice.chosen().map(|chosen| &*chosen.name), Some("small"));
        let chosen = advice.candidates.iter().filter(|candidate| candidate.chosen);
        assert_eq!(chosen.count(), 1);
    }
}
