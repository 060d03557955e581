//! What a softmax is divided by.

use super::lanes;
use super::{Block, Fold, Rows};
use crate::exec::number::Number;

/// Two numbers for each cell: the greatest value that is not NaN (NaN if there is none), and the sum of exp(x − it) over
/// the finite values. The sum is 0 if the greatest value is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoftmaxTotal;

/// States of cells.
#[derive(Clone, Debug)]
pub(crate) struct SoftmaxCells {
    /// The greatest value; NaN if there is none.
    greatest: Vec<f64>,
    /// The greatest finite value, −∞ if there is none; and the sum of exp(x − it).
    top: Vec<f64>,
    total: Vec<f64>,
}

/// Values whose exponentials are added up without looking for a greater one.
const PIECE: usize = 1024;

/// The sum of exponentials relative to `top`, counted from another, not lower one.
#[inline(always)]
fn rescaled(total: f64, top: f64, to: f64) -> f64 {
    if top == to || total == 0.0 { total } else { total * (top - to).exp() }
}

#[inline(always)]
fn join(into: (&mut f64, &mut f64, &mut f64), later: (f64, f64, f64)) {
    // `max` leaves NaN out.
    *into.0 = into.0.max(later.0);
    let top = into.1.max(later.1);
    *into.2 = rescaled(*into.2, *into.1, top) + rescaled(later.2, later.1, top);
    *into.1 = top;
}

impl SoftmaxCells {
    #[inline(always)]
    fn put(&mut self, at: usize, later: (f64, f64, f64)) {
        join((&mut self.greatest[at], &mut self.top[at], &mut self.total[at]), later);
    }

    fn run<T: Number>(&mut self, at: usize, values: &[T]) {
        for piece in values.chunks(PIECE) {
            let (mut greatest, mut top) = (f64::NAN, f64::NEG_INFINITY);
            for value in piece {
                let x = value.to_f64();
                greatest = greatest.max(x);
                top = if x > top && x.is_finite() { x } else { top };
            }
            let finite = piece.iter().map(|value| value.to_f64()).filter(|x| x.is_finite());
            self.put(at, (greatest, top, finite.map(|x| (x - top).exp()).sum()));
        }
    }
}

impl Fold for SoftmaxTotal {
    type Cells<T: Number> = SoftmaxCells;

    fn cell_bytes<T: Number>(&self) -> usize {
        24
    }

    fn start<T: Number>(&self, block: &Block) -> SoftmaxCells {
        let cells = block.len();
        SoftmaxCells {
            greatest: vec![f64::NAN; cells],
            top: vec![f64::NEG_INFINITY; cells],
            total: vec![0.0; cells],
        }
    }

    fn run<T: Number>(&self, cells: &mut SoftmaxCells, at: usize, values: &[T], _: u64) {
        cells.run(at, values);
    }

    fn rows<T: Number>(&self, cells: &mut SoftmaxCells, at: usize, rows: &Rows<'_, T>) {
        lanes::columns(rows, 0, |column, _, values| cells.run(at + column, values));
    }

    fn one<T: Number>(&self, cells: &mut SoftmaxCells, at: usize, value: T, _: u64) {
        cells.run(at, &[value]);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut SoftmaxCells, usize),
        (later, from): (&SoftmaxCells, usize),
        count: usize,
    ) {
        for (at, from) in (at..at + count).zip(from..) {
            into.put(at, (later.greatest[from], later.top[from], later.total[from]));
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut SoftmaxCells, at: usize, from: usize, count: usize) {
        for (at, from) in (at..at + count).zip(from..) {
            cells.put(at, (cells.greatest[from], cells.top[from], cells.total[from]));
        }
    }

    fn width(&self) -> usize {
        2
    }

    fn finish<T: Number>(&self, cells: SoftmaxCells) -> Vec<f64> {
        let totals = cells.greatest.into_iter().zip(cells.total);
        totals
            .flat_map(|(greatest, total)| [greatest + 0.0, if greatest.is_infinite() { 0.0 } else { total }])
            .collect()
    }
}
