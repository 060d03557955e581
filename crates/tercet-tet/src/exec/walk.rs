//! The cells of one piece of a chunk, handed to a fold in the longest runs there are.

use super::fold::{Fold, Rows};
use super::number::Number;
use super::predicate::Predicate;

/// One axis of the selected part of a piece: `count` positions, outermost axis first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<'a> {
    pub(crate) count: usize,
    /// Values from one position to the next.
    pub(crate) stride: usize,
    pub(crate) cells: CellStep<'a>,
    /// From one position to the next among the reduced positions.
    pub(crate) index: u64,
    /// Which of the positions count; all without it.
    pub(crate) keep: Option<&'a [bool]>,
}

/// How the output cell changes from one position to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellStep<'a> {
    /// All positions go into the same cell.
    Same,
    /// Each goes into a cell of its own, so many apart.
    Each(usize),
    /// Each goes into the cell of its group: `(groups[i] − first) · stride`.
    Group { groups: &'a [u32], first: u32, stride: usize },
}

/// The selected part of a piece.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) lanes: Vec<Lane<'a>>,
    /// The first value.
    pub(crate) offset: usize,
    /// Its cell.
    pub(crate) cell: usize,
    /// Its index among the reduced positions.
    pub(crate) index: u64,
}

impl Piece<'_> {
    /// Joins axes that are one run of values, of cells and (where it matters) of indices.
    pub(crate) fn join(&mut self, indexed: bool) {
        let mut joined: Vec<Lane<'_>> = Vec::with_capacity(self.lanes.len());
        for &lane in &self.lanes {
            if lane.count == 1 && lane.keep.is_none_or(|keep| keep[0]) {
                if let CellStep::Group { groups, first, stride } = lane.cells {
                    self.cell += (groups[0] - first) as usize * stride;
                }
                continue;
            }
            let Some(outer) = joined.last_mut() else {
                joined.push(lane);
                continue;
            };
            let cells = match (outer.cells, lane.cells) {
                (CellStep::Same, CellStep::Same) => {
                    (!indexed || outer.index == lane.index * lane.count as u64).then_some(CellStep::Same)
                }
                // Windows keep positions apart and count them as well.
                (CellStep::Each(far), CellStep::Each(near)) => {
                    let counted = indexed && (outer.index, lane.index) != (0, 0);
                    (far == near * lane.count && !counted).then_some(CellStep::Each(near))
                }
                _ => None,
            };
            let one_run =
                outer.stride == lane.stride * lane.count && outer.keep.is_none() && lane.keep.is_none();
            match cells.filter(|_| one_run) {
                Some(cells) => *outer = Lane { count: outer.count * lane.count, cells, ..lane },
                None => joined.push(lane),
            }
        }
        self.lanes = joined;
    }
}

/// Folds a piece into the cells and tells how many values entered.
pub(crate) fn walk<T: Number, F: Fold>(
    fold: &F,
    cells: &mut F::Cells<T>,
    values: &[T],
    piece: &Piece<'_>,
    predicate: Option<&Predicate<T>>,
    scratch: &mut Vec<T>,
) -> u64 {
    let mut walker = Walker { fold, cells, values, predicate, scratch, entered: 0 };
    walker.descend(&piece.lanes, piece.offset, piece.cell, piece.index);
    walker.entered
}

struct Walker<'w, T: Number, F: Fold> {
    fold: &'w F,
    cells: &'w mut F::Cells<T>,
    values: &'w [T],
    predicate: Option<&'w Predicate<T>>,
    scratch: &'w mut Vec<T>,
    entered: u64,
}

impl<T: Number, F: Fold> Walker<'_, T, F> {
    fn descend(&mut self, lanes: &[Lane<'_>], offset: usize, cell: usize, index: u64) {
        match lanes {
            [] => self.row(&SINGLE, offset, cell, index),
            [inner] => self.row(inner, offset, cell, index),
            [outer, inner] if self.is_rows(outer, inner) => {
                let CellStep::Each(1) = inner.cells else { return };
                let rows = Rows {
                    values: &self.values[offset..],
                    width: inner.count,
                    stride: outer.stride,
                    count: outer.count,
                    index,
                    index_step: outer.index,
                };
                self.fold.rows(self.cells, cell, &rows);
                self.entered += (outer.count * inner.count) as u64;
            }
            [outer, rest @ ..] => {
                for i in 0..outer.count {
                    if outer.keep.is_some_and(|keep| !keep[i]) {
                        continue;
                    }
                    let step = outer.cells.of(i);
                    self.descend(
                        rest,
                        offset + i * outer.stride,
                        cell + step,
                        index + i as u64 * outer.index,
                    );
                }
            }
        }
    }

    /// Whether two axes are rows of values for neighbouring cells.
    fn is_rows(&self, outer: &Lane<'_>, inner: &Lane<'_>) -> bool {
        matches!((outer.cells, inner.cells), (CellStep::Same, CellStep::Each(1)))
            && inner.stride == 1
            && (!F::INDEXED || inner.index == 0)
            && outer.keep.is_none()
            && inner.keep.is_none()
            && self.predicate.is_none()
    }

    fn row(&mut self, lane: &Lane<'_>, offset: usize, cell: usize, index: u64) {
        if self.predicate.is_some() || lane.keep.is_some() {
            return self.chosen(lane, offset, cell, index);
        }
        self.entered += lane.count as u64;
        let mut gathered = std::mem::take(self.scratch);
        let values = if lane.stride == 1 {
            &self.values[offset..offset + lane.count]
        } else {
            gathered.clear();
            let strided = self.values[offset..].iter().step_by(lane.stride).take(lane.count);
            gathered.extend(strided.copied());
            &gathered[..]
        };
        match lane.cells {
            CellStep::Same if !F::INDEXED || lane.index == 1 => {
                self.fold.run(self.cells, cell, values, index);
            }
            CellStep::Each(1) if !F::INDEXED || lane.index == 0 => {
                let width = values.len();
                let rows = Rows { values, width, stride: width, count: 1, index, index_step: 0 };
                self.fold.rows(self.cells, cell, &rows);
            }
            CellStep::Group { groups, first, stride } if !F::INDEXED || lane.index == 1 => {
                let mut at = 0;
                for run in groups[..values.len()].chunk_by(|a, b| a == b) {
                    let cell = cell + (run[0] - first) as usize * stride;
                    self.fold.run(self.cells, cell, &values[at..at + run.len()], index + at as u64);
                    at += run.len();
                }
            }
            _ => {
                for (i, &value) in values.iter().enumerate() {
                    let index = index + i as u64 * lane.index;
                    self.fold.one(self.cells, cell + lane.cells.of(i), value, index);
                }
            }
        }
        *self.scratch = gathered;
    }

    /// A row of which not every value enters.
    fn chosen(&mut self, lane: &Lane<'_>, offset: usize, cell: usize, index: u64) {
        let one_cell = matches!(lane.cells, CellStep::Same) && !F::INDEXED;
        if let (Some(predicate), None, 1, true) = (self.predicate, lane.keep, lane.stride, one_cell) {
            self.scratch.clear();
            predicate.compact(&self.values[offset..offset + lane.count], self.scratch);
            if !self.scratch.is_empty() {
                self.fold.run(self.cells, cell, self.scratch, index);
            }
            self.entered += self.scratch.len() as u64;
            return;
        }
        let row = (0..lane.count).filter(|&i| lane.keep.is_none_or(|keep| keep[i]));
        let row = row.map(|i| (i, self.values[offset + i * lane.stride]));
        let row = row.filter(|(_, value)| self.predicate.is_none_or(|predicate| predicate.passes(*value)));
        if one_cell {
            self.scratch.clear();
            self.scratch.extend(row.map(|(_, value)| value));
            if !self.scratch.is_empty() {
                self.fold.run(self.cells, cell, self.scratch, index);
            }
            self.entered += self.scratch.len() as u64;
            return;
        }
        for (i, value) in row {
            self.fold.one(self.cells, cell + lane.cells.of(i), value, index + i as u64 * lane.index);
            self.entered += 1;
        }
    }
}

/// The row of a piece that is a single value.
const SINGLE: Lane<'static> = Lane { count: 1, stride: 1, cells: CellStep::Same, index: 1, keep: None };

impl CellStep<'_> {
    /// From the cell of the first position to that of position `i`.
    fn of(&self, i: usize) -> usize {
        match *self {
            Self::Same => 0,
            Self::Each(stride) => i * stride,
            Self::Group { groups, first, stride } => (groups[i] - first) as usize * stride,
        }
    }
}
