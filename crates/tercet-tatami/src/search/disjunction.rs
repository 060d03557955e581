//! Top-k disjunction of terms by block-max pruning.
//!
//! Every posting list and every block of it has a maximum score. The document space is split into windows at block ends. A
//! window is skipped if the maximum scores of its blocks add up to no more than the k-th best score so far (the threshold). In
//! other windows, terms that cannot reach the threshold together are non-essential, as in `MaxScore`: the others select the
//! documents to score. Bounds are widened by more than the rounding of sums in another order, so that the result is bit-identical
//! to exhaustive scoring.

use super::cursor::{Cursor, END};
use super::options::Cancel;
use super::rank::widened;
use super::top::Top;
use crate::error::ErrorKind;
use crate::predicate::Mask;

/// The maximum number of documents in a window of several terms.
const WINDOW: u32 = 4096;

/// A term whose block is this much longer than the window is decoded to test whether it occurs in it.
const LONGER: u32 = 4;

/// State of a search.
struct Search<'c, 'a> {
    /// In query order, with repeated terms.
    cursors: &'c mut [Cursor<'a>],
    allowed: Option<&'c Mask>,
    top: Top,
    /// The minimum score.
    min_score: f32,
    scored: u64,
    /// The factor of bounds: see [`widened`].
    slack: f64,
    /// The contribution of each term to the score of the current document.
    parts: Vec<f32>,
    /// Scores and bitmap of the documents of a window.
    sums: Vec<f32>,
    bits: Vec<u64>,
    cancel: Cancel<'c>,
}

/// Returns the top documents and the number of scored documents.
pub(super) fn best(
    cursors: &mut [Cursor<'_>],
    allowed: Option<&Mask>,
    k: usize,
    min_score: f32,
    cancel: Cancel<'_>,
) -> Result<(Vec<(u32, f32)>, u64), ErrorKind> {
    let parts = vec![0.0; cursors.len()];
    let (sums, bits) = (Vec::new(), Vec::new());
    // A score that k documents reach by one term is a lower bound of the threshold, unless documents are filtered.
    let reached = cursors.iter().map(|cursor| if allowed.is_none() { cursor.reached_by(k) } else { 0.0 });
    let min_score = reached.fold(min_score, f32::max);
    let slack = widened(1.0, cursors.len());
    let top = Top::new(k);
    let mut search = Search { cursors, allowed, top, min_score, scored: 0, slack, parts, sums, bits, cancel };
    if search.cursors.len() == 1 {
        search.alone()?;
    } else {
        search.run()?;
    }
    Ok((search.top.into_sorted(), search.scored))
}

impl Search<'_, '_> {
    /// Whether a document with this bound cannot be in the top k.
    #[inline]
    fn is_bound_not_competitive(&self, bound: f64) -> bool {
        let bound = bound * self.slack;
        bound < f64::from(self.min_score) || self.top.is_full() && bound <= f64::from(self.top.threshold())
    }

    /// A single term, block by block.
    fn alone(&mut self) -> Result<(), ErrorKind> {
        let mut next = 0;
        loop {
            self.cancel.check()?;
            let (min_score, full, threshold) = (self.min_score, self.top.is_full(), self.top.threshold());
            let lowest = if full { threshold.max(min_score) } else { min_score };
            // As in `is_bound_not_competitive`, for one term.
            let is_not_competitive = |bound: f32| {
                let bound = widened(f64::from(bound), 1);
                bound < f64::from(min_score) || full && bound <= f64::from(threshold)
            };
            let Some(block) = self.cursors[0].next_block(next, is_not_competitive) else { return Ok(()) };
            let mut found = [(0, 0.0); super::postings::BLOCK_DOCS];
            let mut count = 0;
            let (documents, scores) = self.cursors[0].scored(0, END)?;
            for (document, score) in documents.iter().zip(scores) {
                found[count] = (*document, *score);
                count += usize::from(*score >= lowest);
            }
            for (document, score) in &found[..count] {
                if self.allowed.is_none_or(|mask| mask.get(*document as usize)) {
                    self.offer(*document, *score);
                }
            }
            next = block + 1;
        }
    }

    fn run(&mut self) -> Result<(), ErrorKind> {
        let mut order: Vec<usize> = (0..self.cursors.len()).collect();
        order.sort_by(|a, b| self.cursors[*a].bound.total_cmp(&self.cursors[*b].bound));
        // The terms before `first` are non-essential.
        let (mut first, mut before) = (0, 0.0);
        let mut bounds: Vec<(f32, usize)> = Vec::with_capacity(order.len());
        let mut from = 0;
        loop {
            self.cancel.check()?;
            while let Some(index) = order.get(first)
                && self.is_bound_not_competitive(before + f64::from(self.cursors[*index].bound))
            {
                before += f64::from(self.cursors[*index].bound);
                first += 1;
            }
            let mut start = END;
            for index in &order[first..] {
                start = start.min(self.cursors[*index].lower(from));
            }
            if start == END {
                return Ok(());
            }
            // A single list needs no sums.
            let most = if order.len() - first == 1 { END } else { WINDOW };
            let mut end = start.saturating_add(most - 1).min(END - 1);
            for index in &order[first..] {
                // A block after the window does not limit it.
                let (begins, ends) = self.cursors[*index].extent();
                end = end.min(if begins > start && begins != END { begins.max(start + 1) - 1 } else { ends });
            }
            let (total, non_essential) = self.bounds(&order, first, start, end, &mut bounds)?;
            if !self.is_bound_not_competitive(total) {
                self.window(start, end, &mut bounds, non_essential)?;
            }
            from = end + 1;
        }
    }

    /// The positive bounds of the terms in a window, their sum, and the number of those before `first`.
    fn bounds(
        &mut self,
        order: &[usize],
        first: usize,
        start: u32,
        end: u32,
        out: &mut Vec<(f32, usize)>,
    ) -> Result<(f64, usize), ErrorKind> {
        out.clear();
        let (mut total, mut non_essential) = (0.0, 0);
        for (rank, index) in order.iter().enumerate() {
            let cursor = &mut self.cursors[*index];
            let bound = if rank < first {
                cursor.bound_between(start, end)
            } else if cursor.lower(start) > end {
                0.0
            } else {
                let (begins, ends) = cursor.extent();
                if (ends - begins) / LONGER > end - start {
                    cursor.decode()?;
                }
                if cursor.lower(start) > end { 0.0 } else { cursor.block_bound() }
            };
            if bound > 0.0 {
                out.push((bound, *index));
                total += f64::from(bound);
                non_essential += usize::from(rank < first);
            }
        }
        Ok((total, non_essential))
    }

    /// Scores the documents of a window. The first `non_essential` terms are non-essential; their blocks may end within it.
    fn window(
        &mut self,
        start: u32,
        end: u32,
        bounds: &mut [(f32, usize)],
        mut non_essential: usize,
    ) -> Result<(), ErrorKind> {
        bounds[non_essential..].sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rest: f64 = bounds[..non_essential].iter().map(|(bound, _)| f64::from(*bound)).sum();
        while non_essential + 1 < bounds.len()
            && self.is_bound_not_competitive(rest + f64::from(bounds[non_essential].0))
        {
            rest += f64::from(bounds[non_essential].0);
            non_essential += 1;
        }
        let (non_essential, essential) = bounds.split_at_mut(non_essential);
        // Scores are added in query order, as the format defines.
        essential.sort_unstable_by_key(|(_, index)| *index);
        match essential {
            [] => Ok(()),
            [(_, only)] => self.one(start, end, *only, non_essential, rest),
            _ => self.many(start, end, essential, non_essential, rest),
        }
    }

    /// Documents of one essential term.
    fn one(
        &mut self,
        start: u32,
        end: u32,
        only: usize,
        non_essential: &[(f32, usize)],
        rest: f64,
    ) -> Result<(), ErrorKind> {
        let mut found = [(0, 0.0); super::postings::BLOCK_DOCS];
        let mut count = 0;
        let cut = self.cut(rest);
        let (documents, scores) = self.cursors[only].scored(start, end)?;
        for (document, score) in documents.iter().zip(scores) {
            found[count] = (*document, *score);
            count += usize::from(*score > cut);
        }
        for (document, score) in &found[..count] {
            if self.is_not_competitive(*score, rest)
                || self.allowed.is_some_and(|mask| !mask.get(*document as usize))
            {
                continue;
            }
            self.score_document(*document, *score, &[(0.0, only)], non_essential, rest)?;
        }
        Ok(())
    }

    /// Documents of several essential terms.
    fn many(
        &mut self,
        start: u32,
        end: u32,
        essential: &[(f32, usize)],
        non_essential: &[(f32, usize)],
        rest: f64,
    ) -> Result<(), ErrorKind> {
        let len = (end - start) as usize + 1;
        let mut sums = std::mem::take(&mut self.sums);
        let mut bits = std::mem::take(&mut self.bits);
        sums.resize(WINDOW as usize, 0.0);
        bits.resize(WINDOW as usize / 64, 0);
        for (_, index) in essential {
            let (documents, scores) = self.cursors[*index].scored(start, end)?;
            for (document, score) in documents.iter().zip(scores) {
                let at = (document - start) as usize;
                sums[at] += score;
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        let mut cut = self.cut(rest);
        for (word, bits) in bits[..len.div_ceil(64)].iter_mut().enumerate() {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let sum = std::mem::take(&mut sums[at]);
                if sum <= cut || self.is_not_competitive(sum, rest) {
                    continue;
                }
                let document = start + u32::try_from(at).unwrap_or(0);
                if self.allowed.is_none_or(|mask| mask.get(document as usize)) {
                    if non_essential.is_empty() {
                        self.offer(document, sum);
                    } else {
                        self.score_document(document, sum, essential, non_essential, rest)?;
                    }
                    cut = self.cut(rest);
                }
            }
        }
        (self.sums, self.bits) = (sums, bits);
        Ok(())
    }

    #[inline]
    fn is_not_competitive(&self, sum: f32, rest: f64) -> bool {
        self.is_bound_not_competitive(f64::from(sum) + rest)
    }

    /// A score that a document must exceed if other terms add at most `rest`; rounded down, so only a first test.
    fn cut(&self, rest: f64) -> f32 {
        let lowest =
            if self.top.is_full() { self.top.threshold().max(self.min_score) } else { self.min_score };
        let narrowed = f64::from(lowest) * (2.0 - self.slack);
        #[expect(clippy::cast_possible_truncation, reason = "reduced by more than the rounding")]
        let cut = (narrowed - rest) as f32;
        if cut > 0.0 { cut * (1.0 - 2.0 * f32::EPSILON) } else { -1.0 }
    }

    /// Scores a document as the format defines, unless it cannot reach the threshold. The essential terms add `sum`.
    fn score_document(
        &mut self,
        document: u32,
        sum: f32,
        essential: &[(f32, usize)],
        non_essential: &[(f32, usize)],
        mut rest: f64,
    ) -> Result<(), ErrorKind> {
        self.parts.fill(0.0);
        let mut all = f64::from(sum);
        for (bound, index) in non_essential.iter().rev() {
            if self.is_bound_not_competitive(all + rest) {
                return Ok(());
            }
            rest -= f64::from(*bound);
            if self.cursors[*index].find(document)? {
                let score = self.cursors[*index].score()?;
                self.parts[*index] = score;
                all += f64::from(score);
            }
        }
        if self.is_bound_not_competitive(all) {
            return Ok(());
        }
        if let [(_, only)] = essential {
            self.parts[*only] = sum;
        } else {
            for (_, index) in essential {
                if self.cursors[*index].find(document)? {
                    self.parts[*index] = self.cursors[*index].score()?;
                }
            }
        }
        let score = self.parts.iter().fold(0.0f32, |sum, part| sum + part);
        self.offer(document, score);
        Ok(())
    }

    fn offer(&mut self, document: u32, score: f32) {
        self.scored += 1;
        if score >= self.min_score {
            self.top.push(document, score);
        }
    }
}
