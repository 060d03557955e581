//! Sums and what is made of them: means and norms.

mod cells;
mod terms;

use self::cells::MergeFloats;
pub(crate) use self::cells::SumCells;
pub(super) use self::cells::{across, add};
use self::terms::{Magnitude, Plain, Square};
use super::lanes::disjoint;
use super::{Block, Fold, Rows};
use crate::exec::number::{Addend, Number};
use crate::stats::{Range, Stats};

/// A sum: exact for integers, compensated for floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// Σx; 0 for no values.
    Total,
    /// Σx/n; NaN for no values.
    Mean,
    /// Σx/n of the values that are not NaN.
    NanMean,
    /// Σ|x|
    NormL1,
    /// √Σx²
    NormL2,
}

impl Sum {
    /// Whether sums of this type are exact.
    fn is_exact<T: Number>(self) -> bool {
        match self {
            Self::Total | Self::Mean | Self::NanMean => T::Plain::EXACT,
            Self::NormL1 => T::Magnitude::EXACT,
            Self::NormL2 => T::Square::EXACT,
        }
    }

    fn result(self, whole: Option<i128>, sum: f64, count: u64) -> f64 {
        match (self, whole) {
            (Self::Mean | Self::NanMean, _) if count == 0 => f64::NAN,
            (Self::Mean | Self::NanMean, Some(whole)) => quotient(whole, count),
            (Self::Mean | Self::NanMean, None) => sum / to_f64(count) + 0.0,
            (Self::NormL2, Some(whole)) => nearest(whole).sqrt(),
            (Self::NormL2, None) => sum.sqrt(),
            (Self::Total | Self::NormL1, Some(whole)) => nearest(whole),
            // Adding +0.0 turns a negative zero into a positive one.
            (Self::Total | Self::NormL1, None) => sum + 0.0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest")]
fn nearest(whole: i128) -> f64 {
    whole as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
pub(super) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// The f64 nearest to the quotient.
#[expect(clippy::cast_precision_loss, reason = "the one rounding")]
fn quotient(sum: i128, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    // At least 64 bits of quotient, the last of which also tells whether anything follows: the conversion then
    // rounds as if it knew all digits.
    let shift = magnitude.leading_zeros();
    let (high, rest) = ((magnitude << shift) / u128::from(count), (magnitude << shift) % u128::from(count));
    let digits = high | u128::from(rest != 0);
    let scale = f64::from_bits(u64::from(1023 - shift) << 52);
    let quotient = digits as f64 * scale;
    if sum < 0 { -quotient } else { quotient }
}

/// Calls a method for the term of a sum.
macro_rules! with_term {
    ($sum:expr, |$term:ident| $body:expr) => {
        match $sum {
            Sum::Total | Sum::Mean | Sum::NanMean => {
                let $term = Plain;
                $body
            }
            Sum::NormL1 => {
                let $term = Magnitude;
                $body
            }
            Sum::NormL2 => {
                let $term = Square;
                $body
            }
        }
    };
}

impl Fold for Sum {
    type Cells<T: Number> = SumCells;

    fn cell_bytes<T: Number>(&self) -> usize {
        24
    }

    fn start<T: Number>(&self, block: &Block) -> SumCells {
        SumCells::new(block.len(), self.is_exact::<T>())
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut SumCells, at: usize, values: &[T], _: u64) {
        let skip_nan = T::FLOAT && *self == Self::NanMean;
        with_term!(self, |term| cells.run(term, at, values, skip_nan));
    }

    fn rows<T: Number>(&self, cells: &mut SumCells, at: usize, rows: &Rows<'_, T>) {
        let skip_nan = T::FLOAT && *self == Self::NanMean;
        with_term!(self, |term| cells.rows(term, at, rows, skip_nan));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut SumCells, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut SumCells, usize),
        (later, from): (&SumCells, usize),
        count: usize,
    ) {
        let (to, from) = (at..at + count, from..from + count);
        add(&mut into.count[to.clone()], &later.count[from.clone()]);
        if self.is_exact::<T>() {
            add(&mut into.whole[to], &later.whole[from]);
        } else {
            let (sum, lost) = (&mut into.sum[to.clone()], &mut into.lost[to]);
            MergeFloats { into: (sum, lost), later: (&later.sum[from.clone()], &later.lost[from]) }.merge();
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut SumCells, at: usize, from: usize, count: usize) {
        let (into, later) = disjoint(&mut cells.count, at, from, count);
        add(into, later);
        if self.is_exact::<T>() {
            let (into, later) = disjoint(&mut cells.whole, at, from, count);
            add(into, later);
        } else {
            let (sum, later_sum) = disjoint(&mut cells.sum, at, from, count);
            let (lost, later_lost) = disjoint(&mut cells.lost, at, from, count);
            MergeFloats { into: (sum, lost), later: (later_sum, later_lost) }.merge();
        }
    }

    fn takes_stats(&self) -> bool {
        matches!(self, Self::Total | Self::Mean | Self::NanMean)
    }

    fn absorb<T: Number>(&self, cells: &mut SumCells, at: usize, stats: &Stats) {
        let skipped = if *self == Self::NanMean { stats.nan_count } else { 0 };
        cells.count[at] += stats.count.saturating_sub(skipped);
        match stats.range {
            Range::Signed { sum, .. } | Range::Unsigned { sum, .. } => cells.whole[at] += sum,
            Range::Float { .. } if stats.nan_count > skipped => cells.add(at, f64::NAN),
            Range::Float { sum, .. } => cells.add(at, sum),
        }
    }

    fn finish<T: Number>(&self, cells: SumCells) -> Vec<f64> {
        let counts = cells.count.iter().enumerate();
        if self.is_exact::<T>() {
            return counts.map(|(cell, &count)| self.result(Some(cells.whole[cell]), 0.0, count)).collect();
        }
        let total = |sum: f64, lost: f64| if sum.is_finite() { sum + lost } else { sum };
        counts
            .map(|(cell, &count)| self.result(None, total(cells.sum[cell], cells.lost[cell]), count))
            .collect()
    }
}
