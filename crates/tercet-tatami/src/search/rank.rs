//! Ranking functions and their upper bounds.

use serde::Serialize;

use super::columns;
use super::score::{self, K1};
use crate::column::Values;
use crate::error::{Error, ErrorKind};
use crate::file::File;

/// Ranking function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranking {
    /// The ranking of the format: BM25 with `b = 0`, without length normalization.
    #[default]
    Native,
    /// BM25 with `k1 = 1.2` and `b = 0.75`; the length of a document is the sum of its four norms.
    Bm25,
    /// BM25 with `k1 = 0.9` and `b = 0.4`, and with the idf of a term multiplied by its mean frequency in the documents that
    /// contain it: terms that recur in a document describe it.
    Relevance,
}

/// Rankings with length normalization, which have norms of their own.
pub(super) const WITH_NORMS: usize = 2;

impl Ranking {
    /// Saturation, length normalization and the position of its norms; `None` for the native ranking.
    pub(super) const fn parameters(self) -> Option<(f32, f32, usize)> {
        match self {
            Self::Native => None,
            Self::Bm25 => Some((K1, 0.75, 0)),
            Self::Relevance => Some((0.9, 0.4, 1)),
        }
    }

    /// Whether collection frequencies are needed.
    pub(super) const fn is_weighted_by_frequency(self) -> bool {
        matches!(self, Self::Relevance)
    }
}

/// The weight of a term: its idf, times its mean frequency if the ranking uses it.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "scores are rounded")]
pub(super) fn weight(idf: f32, documents: u64, occurrences: u64) -> f32 {
    idf * (occurrences as f64 / documents.max(1) as f64) as f32
}

/// The lengths of the documents of a segment: the sums of their four norms.
#[derive(Debug)]
pub(crate) struct Lengths {
    each: Vec<u32>,
    pub(super) total: u64,
}

impl Lengths {
    pub(super) fn read(file: &File) -> Result<Self, Error> {
        let mut each = vec![0u32; usize::try_from(file.rows()).unwrap_or(0)];
        for column in file.read_columns(&columns::NORMS)? {
            let Values::UInt16(norms) = &column.values else {
                let name = "norm_body".into();
                return Err(
                    file.error(ErrorKind::NoSuchColumn { name, available: file.schema().some_names() })
                );
            };
            each.iter_mut().zip(norms).for_each(|(length, norm)| *length += u32::from(*norm));
        }
        let total = each.iter().map(|length| u64::from(*length)).sum();
        Ok(Self { each, total })
    }

    /// The number of documents.
    pub(super) fn len(&self) -> u64 {
        self.each.len() as u64
    }
}

/// The mean of lengths with the sum `total`.
#[expect(clippy::cast_precision_loss, reason = "scores are rounded")]
pub(super) fn mean(total: u64, count: u64) -> f64 {
    if total == 0 { 1.0 } else { total as f64 / count as f64 }
}

/// Length normalization of each document.
#[derive(Debug)]
pub(crate) struct Norms {
    /// `k1 (1 - b + b · length / average)` of each document.
    factors: Vec<f32>,
    /// The minimum factor of each [`CHUNK`] documents.
    min_factor: Vec<f32>,
    global_min: f32,
    k1: f32,
    /// The position of cached block bounds.
    slot: usize,
    /// Whether the average is that of the segment, so that block bounds may be cached.
    is_own: bool,
}

/// Documents per minimum factor.
const CHUNK: usize = 256;

/// Beyond this many chunks the global minimum is used.
const MAX_CHUNKS: usize = 16;

impl Norms {
    /// With the mean length of the segment.
    pub(super) fn own(lengths: &Lengths, parameters: (f32, f32, usize)) -> Self {
        Self::with_average(lengths, mean(lengths.total, lengths.len()), parameters, true)
    }

    /// With the mean length of a cluster.
    pub(super) fn in_cluster(lengths: &Lengths, average: f64, parameters: (f32, f32, usize)) -> Self {
        Self::with_average(lengths, average, parameters, false)
    }

    #[expect(clippy::cast_possible_truncation, reason = "scores are rounded")]
    fn with_average(lengths: &Lengths, average: f64, parameters: (f32, f32, usize), is_own: bool) -> Self {
        let (k1, b, slot) = parameters;
        let factor = |length: &u32| k1 * (1.0 - b + b * (f64::from(*length) / average) as f32);
        let factors: Vec<f32> = lengths.each.iter().map(factor).collect();
        let min_factor = |some: &[f32]| some.iter().copied().fold(f32::INFINITY, f32::min);
        let chunks: Vec<f32> = factors.chunks(CHUNK).map(min_factor).collect();
        Self { global_min: min_factor(&chunks), min_factor: chunks, factors, k1, slot, is_own }
    }

    /// A lower bound of the factors of documents from `first` to `last`.
    fn min_factor(&self, first: u32, last: u32) -> f32 {
        let (from, to) = (first as usize / CHUNK, last as usize / CHUNK);
        if to - from > MAX_CHUNKS {
            return self.global_min;
        }
        let some = self.min_factor.get(from..=to).unwrap_or(&self.min_factor);
        some.iter().copied().fold(f32::INFINITY, f32::min)
    }
}

/// The scorer of terms.
#[derive(Clone, Copy, Debug)]
pub(super) enum TermScorer<'a> {
    Native,
    Bm25(&'a Norms),
}

/// The BM25 score of a frequency without idf.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "scores are rounded")]
fn part(frequency: u32, factor: f32, k1: f32) -> f32 {
    let f = frequency as f32;
    f * (k1 + 1.0) / (f + factor)
}

impl TermScorer<'_> {
    /// The score of one document.
    #[inline]
    pub(super) fn score(self, idf: f32, document: u32, frequency: u32) -> f32 {
        match self {
            Self::Native => score::term(idf, frequency),
            Self::Bm25(norms) => {
                let factor = norms.factors.get(document as usize).copied().unwrap_or(norms.global_min);
                idf * part(frequency, factor, norms.k1)
            }
        }
    }

    /// The position of cached block bounds, if they are valid for this search.
    pub(super) fn cached_max_scores(self) -> Option<usize> {
        match self {
            Self::Bm25(norms) if norms.is_own => Some(norms.slot),
            _ => None,
        }
    }

    /// The scores of a block, and the maximum without idf if it may be cached.
    pub(super) fn scores(
        self,
        idf: f32,
        documents: &[u32],
        frequencies: &[u32],
        out: &mut [f32],
    ) -> Option<f32> {
        match self {
            Self::Native => {
                for (score, frequency) in out.iter_mut().zip(frequencies) {
                    *score = score::term(idf, *frequency);
                }
                None
            }
            Self::Bm25(norms) => {
                let mut best = 0.0f32;
                for ((score, frequency), document) in out.iter_mut().zip(frequencies).zip(documents) {
                    let factor = norms.factors.get(*document as usize).copied().unwrap_or(norms.global_min);
                    let part = part(*frequency, factor, norms.k1);
                    best = best.max(part);
                    *score = idf * part;
                }
                norms.is_own.then_some(best)
            }
        }
    }

    /// An upper bound, before rounding, of the scores from `first` to `last` with at most this frequency.
    #[inline]
    pub(super) fn bound(self, idf: f32, frequency: u32, first: u32, last: u32) -> f32 {
        match self {
            Self::Native => score::term(idf, frequency),
            Self::Bm25(norms) => idf * part(frequency, norms.min_factor(first, last), norms.k1),
        }
    }
}

/// A sum of bounds, widened by more than the rounding error of scores: scores are rounded several times, are therefore not
/// strictly monotone in the frequency, and are added in another order.
#[inline]
pub(super) fn widened(sum: f64, terms: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "few terms")]
    let slack = 1.0 + (terms as f64 + 8.0) * f64::from(f32::EPSILON);
    sum * slack
}
