//! Search for the smallest candidate.

use super::Candidate;
use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;

/// Larger arrays are judged by a sample first.
pub(super) const SAMPLE_FROM: usize = 4 << 20;
/// Number of pieces of a sample, spread evenly over the array, and bytes of each.
const SAMPLE_PIECES: usize = 16;
const SAMPLE_PIECE: usize = 128 << 10;
/// Candidates are not tried if their samples are larger than the smallest by this factor; at most this number is tried.
const SAMPLE_SLACK: f64 = 1.03;
const MAX_TRIED: usize = 4;

/// Arrays up to this size are encoded with all higher levels.
const TINY: usize = 256 << 10;
/// Larger arrays are encoded with higher levels for this number of candidates, if they are not larger than the smallest by
/// this factor.
const MAX_SLOWER: usize = 3;
const SLOWER_SLACK: f64 = 1.5;

/// A candidate that was tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// The encoded length; `None` if the pipeline failed.
    pub(super) len: Option<u64>,
    /// Whether it is the smallest within the bound so far.
    pub(super) holds: bool,
}

/// A candidate with its size: exact, or that of a sample. Infinite if the pipeline failed.
type Sized = (f64, Candidate);

/// Tries the candidates that can be the smallest. Returns those that were only judged by a sample, smallest first, with their
/// estimated lengths; `None` if the pipeline failed on the sample.
pub(super) fn search<E>(
    descriptor: &DataObjectDescriptor,
    values: &[u8],
    bound: Option<f64>,
    options: &EncodeOptions,
    mut attempt: impl FnMut(&Candidate) -> Result<Attempt, E>,
) -> Result<Vec<(Candidate, Option<u64>)>, E> {
    let candidates = Candidate::all(descriptor, values, bound);
    let Some(sample) = Sample::new(descriptor, values) else {
        let mut sizes: Vec<Sized> = Vec::new();
        for candidate in candidates {
            #[expect(clippy::cast_precision_loss, reason = "arrays are small here")]
            let size = attempt(&candidate)?.len.map_or(f64::INFINITY, |len| len as f64);
            sizes.push((size, candidate));
        }
        for candidate in slower(&sizes, values.len()) {
            attempt(&candidate)?;
        }
        return Ok(Vec::new());
    };
    let mut order = sample.sizes(candidates, options);
    order.extend(sample.sizes(slower(&order, values.len()), options));
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let smallest = order.first().map_or(0.0, |(size, _)| *size);
    let mut estimated = Vec::new();
    let (mut tried, mut found) = (0, false);
    for (size, candidate) in order {
        // The first candidates may not hold the bound; then others are tried.
        if found && (size > smallest * SAMPLE_SLACK || tried >= MAX_TRIED) {
            estimated.push((candidate, sample.scaled(size, values.len())));
            continue;
        }
        tried += 1;
        found |= attempt(&candidate)?.holds;
    }
    Ok(estimated)
}

/// Candidates with higher levels. They decode to the same values, so only the smallest of each kind is considered.
fn slower(sizes: &[Sized], len: usize) -> Vec<Candidate> {
    let mut kinds: Vec<&Sized> = Vec::new();
    for sized in sizes.iter().filter(|(size, candidate)| size.is_finite() && candidate.has_levels()) {
        match kinds.iter_mut().find(|(_, known)| known.is_same_kind(&sized.1)) {
            Some(known) if sized.0 < known.0 => *known = sized,
            Some(_) => {}
            None => kinds.push(sized),
        }
    }
    let is_tiny = len <= TINY;
    if !is_tiny {
        let smallest = sizes.iter().fold(f64::INFINITY, |least, (size, _)| least.min(*size));
        kinds.retain(|(size, _)| *size <= smallest * SLOWER_SLACK);
        kinds.sort_by(|a, b| a.0.total_cmp(&b.0));
        kinds.truncate(MAX_SLOWER);
    }
    kinds.into_iter().flat_map(|(_, candidate)| candidate.slower(len, is_tiny)).collect()
}

/// Pieces of a large array.
struct Sample {
    values: Vec<u8>,
    elements: u64,
}

impl Sample {
    /// `None` for a small array.
    fn new(descriptor: &DataObjectDescriptor, values: &[u8]) -> Option<Self> {
        let width = (descriptor.dtype.bits() / 8) as usize;
        if values.len() <= SAMPLE_FROM || width == 0 {
            return None;
        }
        let stride = values.len() / SAMPLE_PIECES / width * width;
        let pieces =
            (0..SAMPLE_PIECES).filter_map(|piece| values.get(piece * stride..piece * stride + SAMPLE_PIECE));
        let values: Vec<u8> = pieces.flatten().copied().collect();
        Some(Self { elements: (values.len() / width) as u64, values })
    }

    fn sizes(&self, candidates: Vec<Candidate>, options: &EncodeOptions) -> Vec<Sized> {
        let size = |candidate: &Candidate| {
            let mut candidate = candidate.clone();
            candidate.descriptor.shape = vec![self.elements];
            candidate.descriptor.ndim = 1;
            candidate.descriptor.strides = vec![1];
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let size = candidate.encode(&self.values, options).map(|trial| trial.stored.len() as f64);
            size.unwrap_or(f64::INFINITY)
        };
        candidates.into_iter().map(|candidate| (size(&candidate), candidate)).collect()
    }

    /// The estimated length of an array of `len` bytes.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    fn scaled(&self, size: f64, len: usize) -> Option<u64> {
        size.is_finite().then(|| (size * len as f64 / self.values.len().max(1) as f64) as u64)
    }
}
