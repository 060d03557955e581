//! Top-k documents for any of some terms, without scoring all of them.
//!
//! Every list has a best score, and so has every block of it. The documents are cut into windows in which no block ends. Where
//! the best scores of the blocks in a window add up to no more than the k-th best found so far, nothing of it is decoded.
//! Elsewhere, terms that together cannot reach the threshold are set aside: the others select the documents to
//! score. Bounds are widened by more than rounding can add to sums in another order, so that the result equals that of an
//! exhaustive scorer, to the bit.

use super::cursor::{Cursor, END};
use super::rank::widened;
use super::top::Top;
use crate::error::ErrorKind;
use crate::predicate::Mask;

/// The maximum number of documents in a window of several terms.
const WINDOW: u32 = 4096;

/// A term whose block is this much longer than the window is decoded to see whether it occurs at all.
const LONGER: u32 = 4;

/// A search that goes on.
struct Search<'c, 'a> {
    /// In query order; a repeated term is repeated.
    cursors: &'c mut [Cursor<'a>],
    allowed: Option<&'c Mask>,
    top: Top,
    /// All scores must exceed this, or reach it before there are k.
    min_score: f32,
    scored: u64,
    /// The factor of bounds: see [`widened`].
    slack: f64,
    /// What each term adds to the current document.
    parts: Vec<f32>,
    /// Scores of the documents of a window, and which of them there are.
    sums: Vec<f32>,
    bits: Vec<u64>,
}

/// Finds the best documents.
pub(super) fn best(
    cursors: &mut [Cursor<'_>],
    allowed: Option<&Mask>,
    k: usize,
    min_score: f32,
) -> Result<(Vec<(u32, f32)>, u64), ErrorKind> {
    let parts = vec![0.0; cursors.len()];
    let (sums, bits) = (Vec::new(), Vec::new());
    // A score that k documents reach by one term they reach by all; but only if none of them is excluded.
    let reached = cursors.iter().map(|cursor| if allowed.is_none() { cursor.reached_by(k) } else { 0.0 });
    let min_score = reached.fold(min_score, f32::max);
    let slack = widened(1.0, cursors.len());
    let mut search =
        Search { cursors, allowed, top: Top::new(k), min_score, scored: 0, slack, parts, sums, bits };
    if search.cursors.len() == 1 {
        search.alone()?;
    } else {
        search.run()?;
    }
    Ok((search.top.into_sorted(), search.scored))
}

impl Search<'_, '_> {
    /// Whether no document with a bound like this can be among the best.
    #[inline]
    fn hopeless(&self, bound: f64) -> bool {
        let bound = bound * self.slack;
        bound < f64::from(self.min_score) || self.top.is_full() && bound <= f64::from(self.top.threshold())
    }

    /// The documents of one term: block by block.
    fn alone(&mut self) -> Result<(), ErrorKind> {
        let mut next = 0;
        loop {
            let (min_score, full, threshold) = (self.min_score, self.top.is_full(), self.top.threshold());
            let least = if full { threshold.max(min_score) } else { min_score };
            // As in `hopeless`, for one term.
            let is_hopeless = |bound: f32| {
                let bound = widened(f64::from(bound), 1);
                bound < f64::from(min_score) || full && bound <= f64::from(threshold)
            };
            let Some(block) = self.cursors[0].next_block(next, is_hopeless) else { return Ok(()) };
            let mut found = [(0, 0.0); super::postings::BLOCK_DOCS];
            let mut count = 0;
            let (documents, scores) = self.cursors[0].scored(0, END)?;
            for (document, score) in documents.iter().zip(scores) {
                found[count] = (*document, *score);
                count += usize::from(*score >= least);
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
        // The terms before `first` cannot reach the threshold together.
        let (mut first, mut before) = (0, 0.0);
        let mut bounds: Vec<(f32, usize)> = Vec::with_capacity(order.len());
        let mut from = 0;
        loop {
            while let Some(index) = order.get(first)
                && self.hopeless(before + f64::from(self.cursors[*index].bound))
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
                // A block after the window need not end it.
                let (begins, ends) = self.cursors[*index].extent();
                end = end.min(if begins > start && begins != END { begins.max(start + 1) - 1 } else { ends });
            }
            let (total, aside) = self.bounds(&order, first, start, end, &mut bounds)?;
            if !self.hopeless(total) {
                self.window(start, end, &mut bounds, aside)?;
            }
            from = end + 1;
        }
    }

    /// The bounds of all terms in a window, those above zero, their sum, and how many of them are of terms before `first`.
    fn bounds(
        &mut self,
        order: &[usize],
        first: usize,
        start: u32,
        end: u32,
        out: &mut Vec<(f32, usize)>,
    ) -> Result<(f64, usize), ErrorKind> {
        out.clear();
        let (mut total, mut aside) = (0.0, 0);
        for (place, index) in order.iter().enumerate() {
            let cursor = &mut self.cursors[*index];
            let bound = if place < first {
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
                aside += usize::from(place < first);
            }
        }
        Ok((total, aside))
    }

    /// Scores the documents of a window. The first `aside` terms select none: their blocks may end within it.
    fn window(
        &mut self,
        start: u32,
        end: u32,
        bounds: &mut [(f32, usize)],
        mut aside: usize,
    ) -> Result<(), ErrorKind> {
        bounds[aside..].sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rest: f64 = bounds[..aside].iter().map(|(bound, _)| f64::from(*bound)).sum();
        while aside + 1 < bounds.len() && self.hopeless(rest + f64::from(bounds[aside].0)) {
            rest += f64::from(bounds[aside].0);
            aside += 1;
        }
        let (aside, telling) = bounds.split_at_mut(aside);
        // Added in the order of the query, scores are those of the format, to the bit.
        telling.sort_unstable_by_key(|(_, index)| *index);
        match telling {
            [] => Ok(()),
            [(_, only)] => self.one(start, end, *only, aside, rest),
            _ => self.many(start, end, telling, aside, rest),
        }
    }

    /// Documents with one term, and perhaps others.
    fn one(
        &mut self,
        start: u32,
        end: u32,
        only: usize,
        aside: &[(f32, usize)],
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
            if self.is_hopeless_now(*score, rest)
                || self.allowed.is_some_and(|mask| !mask.get(*document as usize))
            {
                continue;
            }
            self.look(*document, *score, &[(0.0, only)], aside, rest)?;
        }
        Ok(())
    }

    /// Documents with any of several terms.
    fn many(
        &mut self,
        start: u32,
        end: u32,
        telling: &[(f32, usize)],
        aside: &[(f32, usize)],
        rest: f64,
    ) -> Result<(), ErrorKind> {
        let len = (end - start) as usize + 1;
        let mut sums = std::mem::take(&mut self.sums);
        let mut bits = std::mem::take(&mut self.bits);
        sums.resize(WINDOW as usize, 0.0);
        bits.resize(WINDOW as usize / 64, 0);
        for (_, index) in telling {
            let (documents, scores) = self.cursors[*index].scored(start, end)?;
            for (document, score) in documents.iter().zip(scores) {
                let at = (document - start) as usize;
                sums[at] += score;
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        let mut cut = self.cut(rest);
        for (term, bits) in bits[..len.div_ceil(64)].iter_mut().enumerate() {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let at = term * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let sum = std::mem::take(&mut sums[at]);
                if sum <= cut || self.is_hopeless_now(sum, rest) {
                    continue;
                }
                let document = start + u32::try_from(at).unwrap_or(0);
                if self.allowed.is_none_or(|mask| mask.get(document as usize)) {
                    if aside.is_empty() {
                        self.offer(document, sum);
                    } else {
                        self.look(document, sum, telling, aside, rest)?;
                    }
                    cut = self.cut(rest);
                }
            }
        }
        (self.sums, self.bits) = (sums, bits);
        Ok(())
    }

    #[inline]
    fn is_hopeless_now(&self, sum: f32, rest: f64) -> bool {
        self.hopeless(f64::from(sum) + rest)
    }

    /// A score that a document must exceed if other terms add at most `rest`; rounded down, so it is a first test only.
    fn cut(&self, rest: f64) -> f32 {
        let least =
            if self.top.is_full() { self.top.threshold().max(self.min_score) } else { self.min_score };
        let narrowed = f64::from(least) * (2.0 - self.slack);
        #[expect(clippy::cast_possible_truncation, reason = "made smaller by more than the rounding")]
        let cut = (narrowed - rest) as f32;
        if cut > 0.0 { cut * (1.0 - 2.0 * f32::EPSILON) } else { -1.0 }
    }

    /// Computes the score of a document as the format defines it, unless it cannot matter. The terms that select
    /// it add `sum`.
    fn look(
        &mut self,
        document: u32,
        sum: f32,
        telling: &[(f32, usize)],
        aside: &[(f32, usize)],
        mut rest: f64,
    ) -> Result<(), ErrorKind> {
        self.parts.fill(0.0);
        let mut all = f64::from(sum);
        for (bound, index) in aside.iter().rev() {
            if self.hopeless(all + rest) {
                return Ok(());
            }
            rest -= f64::from(*bound);
            if self.cursors[*index].find(document)? {
                let score = self.cursors[*index].score()?;
                self.parts[*index] = score;
                all += f64::from(score);
            }
        }
        if self.hopeless(all) {
            return Ok(());
        }
        if let [(_, only)] = telling {
            self.parts[*only] = sum;
        } else {
            for (_, index) in telling {
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
