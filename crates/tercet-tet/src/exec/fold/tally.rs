//! Numbers of cells.

use super::{Block, Fold, Rows};
use crate::exec::number::Number;
use crate::exec::predicate::fill_value;
use crate::exec::simd::vectorized;
use crate::query::operation::Scalar;
use crate::stats::{Range, Stats};

/// Which cells are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tally {
    /// All.
    Count,
    /// Those that are NaN.
    Nan,
    /// Those that are infinite.
    Infinite,
    /// Those that are infinite; only whether there is one can be told by statistics, so the number says no more.
    AnyInfinite,
    /// Those that are not finite; the number says whether there is one, no more.
    AnyNotFinite,
    /// Those that equal a fill value; NaN equals NaN.
    Null(Scalar),
}

/// Rows that are counted in small lanes before the cells are touched.
const ROWS: usize = 255;

impl Tally {
    /// Counts the values that pass.
    #[inline(always)]
    fn matching<T: Number>(values: &[T], passes: impl Fn(T) -> bool) -> u64 {
        values
            .chunks(1 << 16)
            .map(|chunk| chunk.iter().map(|&value| u32::from(passes(value))).sum::<u32>())
            .map(u64::from)
            .sum()
    }

    #[inline(always)]
    fn columns<T: Number>(cells: &mut [u64], rows: &Rows<'_, T>, passes: impl Fn(T) -> bool) {
        let mut counts = [0u8; 256];
        for (chunk, cells) in cells.chunks_mut(counts.len()).enumerate() {
            for first in (0..rows.count).step_by(ROWS) {
                let counts = &mut counts[..cells.len()];
                counts.fill(0);
                for row in first..(first + ROWS).min(rows.count) {
                    let values = &rows.row(row)[chunk * 256..];
                    for (count, &value) in counts.iter_mut().zip(values) {
                        *count += u8::from(passes(value));
                    }
                }
                cells.iter_mut().zip(counts).for_each(|(cell, count)| *cell += u64::from(*count));
            }
        }
    }
}

/// Runs code with the test of a tally.
macro_rules! with_test {
    ($tally:expr, $T:ty, |$test:ident| $body:expr, none: $none:expr) => {
        match $tally {
            Tally::Count => {
                let $test = |_: $T| true;
                $body
            }
            _ if !<$T>::FLOAT && !matches!($tally, Tally::Null(_)) => $none,
            Tally::Nan => {
                let $test = |value: $T| value.is_nan();
                $body
            }
            Tally::Infinite | Tally::AnyInfinite => {
                let $test = |value: $T| value.is_infinite();
                $body
            }
            Tally::AnyNotFinite => {
                let $test = |value: $T| value.is_infinite() | value.is_nan();
                $body
            }
            Tally::Null(fill) => match fill_value::<$T>(*fill) {
                None => $none,
                Some(fill) if fill.is_nan() => {
                    let $test = |value: $T| value.is_nan();
                    $body
                }
                Some(fill) => {
                    let $test = |value: $T| value == fill;
                    $body
                }
            },
        }
    };
}

impl Fold for Tally {
    type Cells<T: Number> = Vec<u64>;

    fn cell_bytes<T: Number>(&self) -> usize {
        8
    }

    fn start<T: Number>(&self, block: &Block) -> Vec<u64> {
        vec![0; block.len()]
    }

    fn run<T: Number>(&self, cells: &mut Vec<u64>, at: usize, values: &[T], _: u64) {
        if *self == Self::Count {
            cells[at] += values.len() as u64;
            return;
        }
        cells[at] += with_test!(self, T, |test| vectorized(|| Self::matching(values, test)), none: 0);
    }

    fn rows<T: Number>(&self, cells: &mut Vec<u64>, at: usize, rows: &Rows<'_, T>) {
        let cells = &mut cells[at..at + rows.width];
        if *self == Self::Count {
            for cell in cells {
                *cell += rows.count as u64;
            }
            return;
        }
        with_test!(self, T, |test| vectorized(|| Self::columns(cells, rows, test)), none: ());
    }

    fn one<T: Number>(&self, cells: &mut Vec<u64>, at: usize, value: T, _: u64) {
        cells[at] += with_test!(self, T, |test| u64::from(test(value)), none: 0);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut Vec<u64>, usize),
        (later, from): (&Vec<u64>, usize),
        count: usize,
    ) {
        for (into, later) in into[at..at + count].iter_mut().zip(&later[from..from + count]) {
            *into += later;
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut Vec<u64>, at: usize, from: usize, count: usize) {
        for i in 0..count {
            cells[at + i] += cells[from + i];
        }
    }

    fn takes_stats(&self) -> bool {
        !matches!(self, Self::Infinite | Self::Null(_))
    }

    fn absorb<T: Number>(&self, cells: &mut Vec<u64>, at: usize, stats: &Stats) {
        let infinite = match stats.range {
            Range::Float { min, max, .. } => u64::from(min.is_infinite() || max.is_infinite()),
            Range::Signed { .. } | Range::Unsigned { .. } => 0,
        };
        cells[at] += match self {
            Self::Count => stats.count,
            Self::Nan => stats.nan_count,
            Self::AnyInfinite => infinite,
            Self::AnyNotFinite => infinite + stats.nan_count,
            Self::Infinite | Self::Null(_) => 0,
        };
    }

    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
    fn finish<T: Number>(&self, cells: Vec<u64>) -> Vec<f64> {
        cells.into_iter().map(|count| count as f64).collect()
    }
}
