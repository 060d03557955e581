//! Walks the values of a chunk that belong to a region, in the longest runs possible.
//!
//! The order of values does not matter, because they are sorted afterwards. The axis of rows is therefore chosen for
//! speed, not by the plan.

use tercet_core::tensor::AxisSlice;

use super::region::{Lane, Piece, Region, counts_of};
use crate::error::ErrorKind;
use crate::exec::drive::as_values;
use crate::exec::job::Job;
use crate::exec::number::Number;
use crate::exec::predicate::Predicate;
use crate::query::resolved::Positions;
use crate::read::dense_strides;

/// Rows of values that are `stride` values apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a, T> {
    /// Values, starting with the first row; long enough for all rows.
    pub(super) values: &'a [T],
    /// Values per row.
    pub(super) width: usize,
    /// Stride from one row to the next.
    pub(super) stride: usize,
    /// Number of rows.
    pub(super) count: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Row number `row`.
    pub(super) fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.stride..row * self.stride + self.width]
    }
}

/// Sink for the values of a region.
pub(super) trait Sink<T> {
    /// Takes values of one cell.
    fn run(&mut self, cell: usize, values: &[T]);
    /// Takes rows of values: value `c` of each row belongs to cell `cell + c · step`.
    fn rows(&mut self, cell: usize, step: usize, rows: &Rows<'_, T>);
}

/// State shared by all chunks.
pub(super) struct Walk<'a, T: Number> {
    pub(super) job: &'a Job<'a>,
    pub(super) positions: Option<&'a Positions>,
    predicate: Option<Predicate<T>>,
}

impl<'a, T: Number> Walk<'a, T> {
    pub(super) fn new(job: &'a Job<'a>) -> Self {
        let resolved = job.resolved;
        let predicate = resolved.filter.as_ref().map(|filter| Predicate::new(filter, resolved.fill));
        Self { job, positions: resolved.positions.as_ref(), predicate }
    }

    /// Passes the values of chunk `number` that belong to the region to the sink.
    pub(super) fn chunk<S: Sink<T>>(
        &self,
        region: &Region<'_>,
        number: usize,
        sink: &mut S,
        scratch: &mut Scratch<T>,
    ) -> Result<(), ErrorKind> {
        let plan = self.job.plan;
        let tile = &plan.chunks[number].tile[..plan.grid.rank()];
        let strides = dense_strides(&plan.grid.tile_shape(tile), 1);
        let axes = region.parts.iter().zip(plan.selection.axes()).zip(strides).enumerate();
        let lanes: Vec<Lane> = axes
            .map(|(axis, ((part, &slice), stride)): (usize, ((_, &AxisSlice), usize))| {
                let window = plan.grid.window(axis, tile[axis]);
                Lane::new(part, slice, window, stride, counts_of(self.positions, axis))
            })
            .collect();
        if lanes.iter().any(|lane| lane.pieces.is_empty()) {
            return Ok(());
        }
        let bytes = self.job.tile(number)?;
        let Scratch { aligned, row } = scratch;
        let values = as_values(&bytes, aligned);
        // A row runs along the last axis with several positions; the rows follow an axis above it whose positions all
        // belong to one cell.
        let inner = lanes.iter().rposition(|lane| lane.len() > 1).unwrap_or(lanes.len() - 1);
        let rows = lanes[..inner].iter().rposition(|lane| lane.is_one && lane.len() > 1);
        let outer = lanes.iter().enumerate().filter(|(axis, _)| *axis != inner && Some(*axis) != rows);
        let outer: Vec<&Lane> = outer.map(|(_, lane)| lane).collect();
        let rows = rows.map_or(&ONE_ROW, |axis| &lanes[axis]);
        let predicate = self.predicate.as_ref();
        let mut walker = Walker { values, inner: &lanes[inner], rows, predicate, row, sink };
        walker.descend(&outer, 0, 0);
        Ok(())
    }
}

/// Scratch memory that is reused from chunk to chunk.
pub(super) struct Scratch<T> {
    aligned: Vec<T>,
    row: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { aligned: Vec::new(), row: Vec::new() }
    }
}

static ONE_ROW: Lane = Lane { stride: 0, pieces: Vec::new(), is_one: true };

struct Walker<'w, T: Number, S> {
    values: &'w [T],
    inner: &'w Lane,
    rows: &'w Lane,
    predicate: Option<&'w Predicate<T>>,
    row: &'w mut Vec<T>,
    sink: &'w mut S,
}

impl<T: Number, S: Sink<T>> Walker<'_, T, S> {
    fn descend(&mut self, outer: &[&Lane], offset: usize, cell: usize) {
        let [lane, rest @ ..] = outer else { return self.block(offset, cell) };
        for piece in &lane.pieces {
            for i in 0..piece.count {
                let offset = offset + piece.offset + i * lane.stride;
                self.descend(rest, offset, cell + piece.cell + i * piece.step);
            }
        }
    }

    fn block(&mut self, offset: usize, cell: usize) {
        let single = [Piece { offset: 0, count: 1, cell: 0, step: 0 }];
        let rows = if self.rows.pieces.is_empty() { &single } else { &self.rows.pieces[..] };
        for rows in rows {
            for piece in &self.inner.pieces {
                let (offset, cell) = (offset + rows.offset + piece.offset, cell + piece.cell);
                if piece.step == 0 {
                    self.runs(offset, cell, rows.count, piece.count);
                } else {
                    self.rows(offset, cell, rows.count, *piece);
                }
            }
        }
    }

    /// Passes rows of values that all belong to one cell.
    fn runs(&mut self, offset: usize, cell: usize, rows: usize, width: usize) {
        let stride = self.inner.stride;
        if rows > 1 && self.rows.stride == stride * width {
            return self.run(offset, cell, rows * width, stride);
        }
        for row in 0..rows {
            self.run(offset + row * self.rows.stride, cell, width, stride);
        }
    }

    fn run(&mut self, offset: usize, cell: usize, count: usize, stride: usize) {
        match self.predicate {
            None if stride == 1 => self.sink.run(cell, &self.values[offset..offset + count]),
            predicate => {
                self.row.clear();
                let strided = self.values[offset..].iter().step_by(stride.max(1)).take(count).copied();
                match predicate {
                    None => self.row.extend(strided),
                    Some(predicate) => self.row.extend(strided.filter(|&value| predicate.passes(value))),
                }
                if !self.row.is_empty() {
                    self.sink.run(cell, self.row);
                }
            }
        }
    }

    /// Passes rows of values whose columns belong to separate cells.
    fn rows(&mut self, offset: usize, cell: usize, count: usize, piece: Piece) {
        let (width, step, stride) = (piece.count, piece.step, self.inner.stride);
        if width == 1 {
            return self.run(offset, cell, count, self.rows.stride);
        }
        if let Some(predicate) = self.predicate {
            for row in 0..count {
                for column in 0..width {
                    let value = self.values[offset + row * self.rows.stride + column * stride];
                    if predicate.passes(value) {
                        self.sink.run(cell + column * step, &[value]);
                    }
                }
            }
            return;
        }
        let mut rows = Rows { values: self.values, width, stride: self.rows.stride, count };
        if stride == 1 {
            rows.values = &self.values[offset..];
        } else {
            self.row.clear();
            for row in 0..count {
                let row = &self.values[offset + row * self.rows.stride..];
                self.row.extend(row.iter().step_by(stride).take(width));
            }
            (rows.values, rows.stride) = (&self.row[..], width);
        }
        self.sink.rows(cell, step, &rows);
    }
}
