//! Lookup of chunk index rows.
//!
//! Rows are nearly always in canonical order: by dataset, then by chunk with the last axis fastest. Then
//! the number of a row is arithmetic, and only that row is read and compared with the requested chunk. A file in
//! another order gets a sorted table, built at the first mismatch.

use std::sync::{Mutex, OnceLock};

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Limits, Malformed, Reason, Site, Span};

use crate::Region;
use crate::catalog::Catalog;
use crate::error::ErrorKind;
use crate::grid::Grid;
use crate::integrity::{IntegrityChecker, run_rows};
use crate::wire::block::runs;
use crate::wire::ids::{INDEX_HEADER_LEN, ROW_LEN, RUN_ROWS};
use crate::wire::index::Row;

/// Runs cached for sources that copy on every read.
const KEPT_RUNS: usize = 8;

/// The rows of the chunk index.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The bytes of all rows.
    span: Span,
    count: u64,
    /// The first row of each dataset in canonical order; `None` after the first dataset without a grid, or if
    /// chunks are missing.
    bases: Vec<Option<u64>>,
    table: OnceLock<Vec<Entry>>,
    kept: Mutex<Vec<(u64, Bytes)>>,
}

/// A row of a file that is not in canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    dataset: u32,
    linear: u64,
    /// Of duplicate rows the one at its canonical number sorts first, so that the result is the same before
    /// and after the table is built.
    displaced: bool,
    row: u64,
}

impl Rows {
    pub(crate) fn new<E>(catalog: &Catalog, grids: &[Result<Grid, E>]) -> Self {
        let count = catalog.index.entry_count;
        let index = catalog.superblock.index_span();
        let span = Span::between(index.start().saturating_add(INDEX_HEADER_LEN), index.end())
            .unwrap_or(Span::empty(index.end()));
        let mut next = Some(0u64);
        let mut bases: Vec<Option<u64>> = Vec::with_capacity(grids.len());
        for grid in grids {
            bases.push(next);
            let chunks = grid.as_ref().ok().map(Grid::chunk_count);
            next = next.zip(chunks).and_then(|(base, chunks)| base.checked_add(chunks));
        }
        if next != Some(count) {
            bases.fill(None);
        }
        Self { span, count, bases, table: OnceLock::new(), kept: Mutex::default() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the file has one row per chunk.
    pub(crate) fn is_complete(&self) -> bool {
        self.bases.iter().all(Option::is_some)
    }

    /// The offset of row `row` in the file.
    pub(crate) fn row_start(&self, row: u64) -> u64 {
        self.span.start().saturating_add(row.saturating_mul(ROW_LEN))
    }

    /// Finds the row of a chunk: its number and contents.
    pub(crate) fn find(
        &self,
        ctx: &RowContext<'_>,
        dataset: u32,
        grid: &Grid,
        coords: &[u64],
    ) -> Result<Option<(u64, Row)>, ErrorKind> {
        let Some(linear) = grid.linear(coords) else { return Ok(None) };
        let base = self.bases.get(dataset as usize).copied().flatten();
        if let (Some(base), None) = (base, self.table.get()) {
            let number = base + linear;
            let row = self.get(ctx, number)?;
            if row.dataset_id == u64::from(dataset) && row.chunk_index[..coords.len()] == *coords {
                return Ok(Some((number, row)));
            }
        }
        let table = self.table(ctx)?;
        let at = table.partition_point(|entry| (entry.dataset, entry.linear) < (dataset, linear));
        match table.get(at) {
            Some(entry) if (entry.dataset, entry.linear) == (dataset, linear) => {
                Ok(Some((entry.row, self.get(ctx, entry.row)?)))
            }
            _ => Ok(None),
        }
    }

    /// Whether a row has the canonical number of a chunk.
    pub(crate) fn is_canonical(&self, dataset: u32, grid: &Grid, coords: &[u64], row: u64) -> bool {
        let base = self.bases.get(dataset as usize).copied().flatten();
        base.zip(grid.linear(coords)).is_some_and(|(base, linear)| base + linear == row)
    }

    /// Row `row`; its run is checked.
    pub(crate) fn get(&self, ctx: &RowContext<'_>, row: u64) -> Result<Row, ErrorKind> {
        if row >= self.count {
            let site = Site { region: Region::IndexRow { row }, field: "row", span: self.span };
            let reason = Reason::OutOfRange { found: row, allowed: "less than entry_count" };
            return Err(Malformed { site, reason }.into());
        }
        let bytes = self.run(ctx, row / RUN_ROWS)?;
        // A run has at most 1024 rows, so this fits.
        let at = usize::try_from((row % RUN_ROWS) * ROW_LEN).unwrap_or(usize::MAX);
        let bytes = bytes.get(at..).and_then(|rest| rest.get(..104)).unwrap_or_default();
        Ok(Row::parse(bytes, row, self.row_start(row))?)
    }

    /// Visits every row in index order.
    pub(crate) fn for_each(
        &self,
        ctx: &RowContext<'_>,
        mut visit: impl FnMut(u64, Row) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        for run in 0..runs(self.count) {
            let bytes = self.run(ctx, run)?;
            let (first, _) = run_rows(run, self.count);
            for (number, bytes) in (first..).zip(bytes.chunks_exact(104)) {
                visit(number, Row::parse(bytes, number, self.row_start(number))?)?;
            }
        }
        Ok(())
    }

    /// The span of a run of rows.
    pub(crate) fn run_span(&self, run: u64) -> Span {
        let (first, end) = run_rows(run, self.count);
        self.span.slice(first * ROW_LEN, (end - first) * ROW_LEN).unwrap_or(Span::empty(self.span.end()))
    }

    fn run(&self, ctx: &RowContext<'_>, run: u64) -> Result<Bytes, ErrorKind> {
        let span = self.run_span(run);
        if ctx.source.is_zero_copy() {
            let bytes = ctx.source.read_at(span)?;
            if let Some(checker) = ctx.checker {
                checker.check_index_run(ctx.source, run, &bytes, span)?;
            }
            return Ok(bytes);
        }
        // Use the bytes that were checked: a second read might return others.
        let kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, bytes)) = kept.iter().find(|(number, _)| *number == run) {
            return Ok(bytes.clone());
        }
        drop(kept);
        let bytes = ctx.source.read_at(span)?;
        if let Some(checker) = ctx.checker {
            checker.check_index_run_again(ctx.source, run, &bytes, span)?;
        }
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.len() == KEPT_RUNS {
            kept.remove(0);
        }
        kept.push((run, bytes.clone()));
        Ok(bytes)
    }

    fn table(&self, ctx: &RowContext<'_>) -> Result<&[Entry], ErrorKind> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let bytes = self.count.saturating_mul(size_of::<Entry>() as u64);
        check_limit("the table of chunks", bytes, ctx.limits.table_bytes)?;
        let mut table = Vec::new();
        self.for_each(ctx, |number, row| {
            let dataset = u32::try_from(row.dataset_id).ok().filter(|&id| (id as usize) < ctx.grids.len());
            let grid = dataset.and_then(|id| ctx.grids[id as usize].as_ref().ok());
            // Rows outside the grid are reported by `verify`; no read needs them.
            if let (Some(dataset), Some(grid)) = (dataset, grid)
                && let Some(linear) = grid.linear(&row.chunk_index[..grid.rank()])
            {
                let base = self.bases.get(dataset as usize).copied().flatten();
                let displaced = base.is_none_or(|base| base + linear != number);
                table.push(Entry { dataset, linear, displaced, row: number });
            }
            Ok(())
        })?;
        table.sort_unstable();
        Ok(self.table.get_or_init(|| table))
    }
}

/// The parts of a file that a row lookup needs.
pub(crate) struct RowContext<'a> {
    pub(crate) source: &'a dyn ByteSource,
    pub(crate) checker: Option<&'a IntegrityChecker>,
    pub(crate) limits: &'a Limits,
    pub(crate) grids: &'a [Result<Grid, crate::error::DatasetError>],
}
