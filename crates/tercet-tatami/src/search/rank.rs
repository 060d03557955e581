//! Ranking functions and their upper bounds.

use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::access::{AccessIndex, LENGTHS};
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

/// The lengths of the documents of a segment: the sums of their four norms. Those of an access index are read when they are needed.
#[derive(Debug)]
pub(crate) struct Lengths {
    count: u64,
    pub(super) total: u64,
    blocks: Box<[OnceLock<Box<[u32]>>]>,
    /// The minimum of each block.
    mins: Box<[u32]>,
    access: Option<Arc<AccessIndex>>,
}

impl Lengths {
    /// Reads the norms of all documents.
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
        let mins = each.chunks(LENGTHS).map(|block| block.iter().copied().min().unwrap_or(0)).collect();
        let blocks = each.chunks(LENGTHS).map(|block| OnceLock::from(Box::from(block))).collect();
        Ok(Self { count: each.len() as u64, total, blocks, mins, access: None })
    }

    /// The lengths of an access index.
    pub(super) fn with_access(access: &Arc<AccessIndex>) -> Self {
        Self {
            count: access.documents,
            total: access.total_length,
            blocks: access.lengths.iter().map(|_| OnceLock::new()).collect(),
            mins: access.lengths.iter().map(|block| block.min).collect(),
            access: Some(Arc::clone(access)),
        }
    }

    /// The number of documents.
    pub(super) const fn len(&self) -> u64 {
        self.count
    }

    /// The lengths of all documents, in order.
    pub(super) fn all(&self) -> Result<Vec<u32>, ErrorKind> {
        let mut out = Vec::new();
        for block in 0..self.blocks.len() {
            out.extend_from_slice(self.block(block)?);
        }
        Ok(out)
    }

    fn block(&self, block: usize) -> Result<&[u32], ErrorKind> {
        let Some(slot) = self.blocks.get(block) else { return Ok(&[]) };
        if let (None, Some(access)) = (slot.get(), &self.access) {
            let some = access.blocks_with(block);
            for (slot, lengths) in self.blocks[some.clone()].iter().zip(access.lengths_of(some)?) {
                let _ = slot.set(lengths.into());
            }
        }
        Ok(slot.get().map_or(&[], |lengths| lengths))
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
    lengths: Arc<Lengths>,
    average: f64,
    blocks: Box<[OnceLock<NormBlock>]>,
    /// The minimum factor of each block.
    mins: Box<[f32]>,
    global_min: f32,
    k1: f32,
    b: f32,
    /// The position of cached block bounds.
    slot: usize,
    /// Whether the average is that of the segment, so that block bounds may be cached.
    is_own: bool,
}

/// The factors of a block of documents.
#[derive(Debug)]
struct NormBlock {
    /// `k1 (1 - b + b · length / average)` of each document.
    factors: Vec<f32>,
    /// The minimum factor of each [`CHUNK`] documents.
    mins: Vec<f32>,
}

/// Documents per minimum factor.
const CHUNK: usize = 256;

/// Beyond this many chunks the global minimum is used.
const MAX_CHUNKS: usize = 16;

impl Norms {
    /// With the mean length of the segment.
    pub(super) fn own(lengths: &Arc<Lengths>, parameters: (f32, f32, usize)) -> Self {
        Self::with_average(lengths, mean(lengths.total, lengths.len()), parameters, true)
    }

    /// With the mean length of a cluster.
    pub(super) fn in_cluster(lengths: &Arc<Lengths>, average: f64, parameters: (f32, f32, usize)) -> Self {
        Self::with_average(lengths, average, parameters, false)
    }

    fn with_average(
        lengths: &Arc<Lengths>,
        average: f64,
        (k1, b, slot): (f32, f32, usize),
        is_own: bool,
    ) -> Self {
        let mins: Box<[f32]> = lengths.mins.iter().map(|length| factor(k1, b, average, *length)).collect();
        let blocks = mins.iter().map(|_| OnceLock::new()).collect();
        let global_min = minimum(&mins);
        Self { lengths: Arc::clone(lengths), average, blocks, mins, global_min, k1, b, slot, is_own }
    }

    /// The factors of a block of [`LENGTHS`] documents.
    #[inline]
    fn block(&self, block: usize) -> Result<&NormBlock, ErrorKind> {
        match self.blocks.get(block).and_then(OnceLock::get) {
            Some(known) => Ok(known),
            None => self.load(block),
        }
    }

    #[cold]
    fn load(&self, block: usize) -> Result<&NormBlock, ErrorKind> {
        static EMPTY: NormBlock = NormBlock { factors: Vec::new(), mins: Vec::new() };
        let lengths = self.lengths.block(block)?;
        let factors: Vec<f32> =
            lengths.iter().map(|length| factor(self.k1, self.b, self.average, *length)).collect();
        let mins = factors.chunks(CHUNK).map(minimum).collect();
        let Some(slot) = self.blocks.get(block) else { return Ok(&EMPTY) };
        Ok(slot.get_or_init(|| NormBlock { factors, mins }))
    }

    /// The factor of a document.
    fn factor(&self, document: u32) -> Result<f32, ErrorKind> {
        let document = document as usize;
        let factors = &self.block(document / LENGTHS)?.factors;
        Ok(factors.get(document % LENGTHS).copied().unwrap_or(self.global_min))
    }

    /// A lower bound of the factors of documents from `first` to `last`.
    fn min_factor(&self, first: u32, last: u32) -> f32 {
        let (from, to) = (first as usize / CHUNK, last as usize / CHUNK);
        if to - from > MAX_CHUNKS {
            return self.global_min;
        }
        let per_block = LENGTHS / CHUNK;
        let of_chunk = |chunk: usize| {
            let block = chunk / per_block;
            let known = self.blocks.get(block).and_then(OnceLock::get);
            let min = known.and_then(|known| known.mins.get(chunk % per_block)).or(self.mins.get(block));
            min.copied().unwrap_or(self.global_min)
        };
        (from..=to).map(of_chunk).fold(f32::INFINITY, f32::min)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "scores are rounded")]
fn factor(k1: f32, b: f32, average: f64, length: u32) -> f32 {
    k1 * (1.0 - b + b * (f64::from(length) / average) as f32)
}

fn minimum(some: &[f32]) -> f32 {
    some.iter().copied().fold(f32::INFINITY, f32::min)
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
    pub(super) fn score(self, idf: f32, document: u32, frequency: u32) -> Result<f32, ErrorKind> {
        Ok(match self {
            Self::Native => score::term(idf, frequency),
            Self::Bm25(norms) => idf * part(frequency, norms.factor(document)?, norms.k1),
        })
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
    ) -> Result<Option<f32>, ErrorKind> {
        Ok(match self {
            Self::Native => {
                for (score, frequency) in out.iter_mut().zip(frequencies) {
                    *score = score::term(idf, *frequency);
                }
                None
            }
            Self::Bm25(norms) => {
                let mut best = 0.0f32;
                let mut factors: (usize, &[f32]) = (usize::MAX, &[]);
                for ((score, frequency), document) in out.iter_mut().zip(frequencies).zip(documents) {
                    let document = *document as usize;
                    if document / LENGTHS != factors.0 {
                        factors = (document / LENGTHS, &norms.block(document / LENGTHS)?.factors);
                    }
                    let factor = factors.1.get(document % LENGTHS).copied().unwrap_or(norms.global_min);
                    let part = part(*frequency, factor, norms.k1);
                    best = best.max(part);
                    *score = idf * part;
                }
                norms.is_own.then_some(best)
            }
        })
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
