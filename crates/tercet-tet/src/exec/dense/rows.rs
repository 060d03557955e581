//! Writes one chunk to one piece of the result, row by row.

use super::axes::{At, AxisRun};
use super::{DenseWriter, Plane, RowTransform};
use crate::exec::number::Number;

/// Number of values gathered at a time.
const GATHERED: usize = 16 << 10;

/// Writer of one chunk to one piece of the result.
pub(super) struct ChunkRows<'p, T: Number> {
    pub(super) dense: &'p DenseWriter<'p>,
    pub(super) transform: &'p RowTransform<'p, T>,
    /// Values; `None` if no element is included.
    pub(super) values: Option<&'p [T]>,
    pub(super) out: &'p mut [T],
    pub(super) row: &'p mut Vec<T>,
}

impl<T: Number> ChunkRows<'_, T> {
    pub(super) fn descend(&mut self, lanes: &[AxisRun<'_>], at: At) {
        match lanes {
            [] => {}
            [row] => self.rows(&AxisRun::SINGLE, row, at),
            [rows, row] if rows.keep.is_none() => self.rows(rows, row, at),
            [outer, rest @ ..] => {
                for i in 0..outer.count {
                    let mut at = at.step(outer, i);
                    at.dead |= outer.keep.is_some_and(|keep| !keep[i]);
                    self.descend(rest, at);
                }
            }
        }
    }

    /// Writes rows whose elements are contiguous in the result.
    fn rows(&mut self, rows: &AxisRun<'_>, row: &AxisRun<'_>, at: At) {
        let Some(values) = self.values.filter(|_| !at.dead) else {
            for i in 0..rows.count {
                let to = at.step(rows, i).to;
                self.out[to..to + row.count].fill(self.transform.blank);
            }
            return;
        };
        let numbers = self.dense.cell_numbers();
        let plane = Plane {
            rows: rows.count,
            width: row.count,
            from_row: rows.from,
            to_row: rows.to,
            cell_row: rows.cell,
            cell_column: row.cell,
        };
        if row.from == 1 && row.keep.is_none() && self.transform.predicate.is_none() {
            let from = &values[at.from..];
            (self.transform.kernel)(
                self.transform.arch,
                (from, &mut self.out[at.to..]),
                plane,
                numbers,
                at.cell,
            );
            if self.dense.has_zero_divisors {
                for i in 0..rows.count {
                    let at = at.step(rows, i);
                    self.dense.count_zero_divisors(&values[at.from..at.from + row.count], row, at);
                }
            }
            return;
        }
        for i in 0..rows.count {
            for start in (0..row.count).step_by(GATHERED) {
                let at = at.step(rows, i).step(row, start);
                let end = row.count.min(start + GATHERED);
                let row =
                    AxisRun { count: end - start, keep: row.keep.map(|keep| &keep[start..end]), ..*row };
                self.gather(&values[at.from..], &row);
                let plane = Plane { rows: 1, width: row.count, ..plane };
                let to = &mut self.out[at.to..];
                (self.transform.kernel)(self.transform.arch, (self.row, to), plane, numbers, at.cell);
                if self.dense.has_zero_divisors {
                    self.dense.count_zero_divisors(self.row, &row, at);
                }
            }
        }
    }

    /// Gathers the values of a row. Excluded values are blanked.
    fn gather(&mut self, values: &[T], row: &AxisRun<'_>) {
        self.row.clear();
        self.row.extend(values.iter().step_by(row.from.max(1)).take(row.count));
        if let Some(predicate) = self.transform.predicate {
            for value in &mut *self.row {
                *value = if predicate.passes(*value) { *value } else { self.transform.blank };
            }
        }
        if let Some(keep) = row.keep {
            for (value, &keep) in self.row.iter_mut().zip(keep) {
                *value = if keep { *value } else { self.transform.blank };
            }
        }
    }
}
