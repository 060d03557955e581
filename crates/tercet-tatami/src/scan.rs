//! Scans: rows that match a filter.
//!
//! Row groups and pages are pruned by statistics, bloom filters and dictionaries. In the others, the filter columns are
//! decoded first, and the other columns only in pages with matching rows.
//!
//! ```
//! # use std::{io::Cursor, sync::Arc};
//! # use tercet_tatami::{Column, Field, ReadOptions, Schema, Type, Values, Writer, WriterOptions};
//! use tercet_tatami::File;
//! use tercet_tatami::predicate::Expr;
//!
//! # let schema = Schema::new(vec![Field::new("city", Type::String), Field::new("people", Type::UInt32)])?;
//! # let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::new())?;
//! # writer.append(&[Column::new(Values::Bytes(["Bonn", "Ulm"].iter().collect())), Column::new(Values::UInt32(vec![331, 126]))])?;
//! # let source = tercet_core::source::Memory::new("cities", writer.finish()?.output);
//! # let file = File::from_source(Arc::new(source), ReadOptions::new())?;
//! let scan = file.scan().columns(&["city"])?.filter(&Expr::parse("people > 200")?)?;
//! assert_eq!(scan.count()?, 1);
//! for batch in scan.batches() {
//!     assert_eq!(batch?.rows, [0]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batches;
mod explain;
mod filter;
mod pages;
mod partition;
mod prune;
mod row_selection;

pub use batches::{Batch, Batches};
pub use explain::{Explain, GroupExplain, PageExplain, Pruned, RowsPruned};
pub use partition::Partition;
pub use prune::PrunedBy;
pub use row_selection::RowSelection;

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};
use crate::predicate::{Expr, Predicate};
use crate::scalar::Scalar;
use filter::Selected;
use prune::{GroupPlan, Verdict};

/// A scan of the rows of a file.
///
/// Row groups and row numbers restrict the rows, then the filter, then offset and limit, whatever the order of the calls.
#[derive(Clone, Debug)]
pub struct Scan {
    file: File,
    columns: Vec<usize>,
    filter: Option<Filter>,
    groups: Vec<usize>,
    rows: Option<RowSelection>,
    offset: u64,
    limit: Option<u64>,
    batch_rows: u64,
    /// Whether batches are read ahead, in parallel.
    reads_ahead: bool,
}

/// A filter as it was given, and bound to the columns of the file.
#[derive(Clone, Debug)]
struct Filter {
    expr: Expr,
    predicate: Predicate,
}

/// Default rows per batch: those of a page.
const BATCH_ROWS: u64 = 65_536;

/// Default bytes per batch, unless one row has more.
const BATCH_BYTES: u64 = 64 << 20;

/// Default rows per batch with blob columns.
const BLOB_BATCH_ROWS: u64 = 2048;

/// The statistics of a row group.
pub(crate) struct GroupBounds {
    pub(crate) rows: u64,
    /// Minimum and maximum of each column; `None` if all values are null.
    pub(crate) bounds: Vec<Option<(Scalar, Scalar)>>,
}

/// The minimum and maximum of a column in a group, `Some(None)` if all values are null; `None` if the footer does not have them.
#[expect(clippy::option_option, reason = "unknown, or known to be missing")]
fn exact_bounds(
    inner: &Inner,
    group: usize,
    column: usize,
) -> Result<Option<Option<(Scalar, Scalar)>>, ErrorKind> {
    let summary = prune::chunk_summary(inner, group, column)?;
    Ok(match summary.bounds {
        Some(bounds) => Some(Some(bounds)),
        None if summary.nulls == Some(summary.rows) => Some(None),
        None => None,
    })
}

impl File {
    /// Starts a scan of all columns and all rows.
    pub fn scan(&self) -> Scan {
        let columns = (0..self.schema().len()).collect();
        let groups = (0..self.group_count()).collect();
        Scan {
            file: self.clone(),
            columns,
            filter: None,
            groups,
            rows: None,
            offset: 0,
            limit: None,
            batch_rows: 0,
            reads_ahead: true,
        }
    }
}

impl File {
    /// Estimates, from the footer, how many rows of some columns take about this many bytes in memory; at least one.
    pub fn estimate_batch_rows(&self, columns: &[usize], bytes: u64) -> u64 {
        let rows = self.rows().max(1);
        let per_row = total(columns.iter().map(|column| {
            let Some(field) = self.schema().fields().get(*column) else { return 0 };
            let groups = self.footer().groups.iter();
            let chunks = groups.filter_map(|group| group.chunks.get(*column));
            let in_pages = total(chunks.map(|chunk| chunk.raw_bytes)) / rows;
            let blobs = self.footer().blobs.iter().filter(|blob| *column as u64 == blob.column);
            let in_runs = total(blobs.flat_map(|blob| &blob.runs).map(|run| run.raw_bytes)) / rows;
            // Numbers are shorter in pages than in memory; strings and lists have a slot and bytes.
            let width = field.kind.memory_width();
            if field.kind.width().is_some() { width } else { width + in_pages + in_runs }
        }));
        (bytes / per_row.max(1)).max(1)
    }
}

/// A saturating sum of untrusted numbers.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

impl Scan {
    /// Selects columns by name, in this order.
    pub fn columns<N: AsRef<str>>(mut self, names: &[N]) -> Result<Self, Error> {
        self.columns =
            names.iter().map(|name| self.file.column_index(name.as_ref())).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Selects columns by position, in this order.
    pub fn column_positions(mut self, columns: &[usize]) -> Result<Self, Error> {
        self.file.check_columns(columns)?;
        self.columns = columns.to_vec();
        Ok(self)
    }

    /// Keeps only rows that match the filter.
    pub fn filter(mut self, filter: &Expr) -> Result<Self, Error> {
        let predicate = filter
            .bind_with_types(self.file.schema(), &self.file.logical_types())
            .map_err(|error| self.file.error(ErrorKind::Bind(Box::new(error))))?;
        self.filter = Some(Filter { expr: filter.clone(), predicate });
        Ok(self)
    }

    /// Keeps only rows of some row groups, in file order.
    pub fn groups(mut self, groups: &[usize]) -> Result<Self, Error> {
        for group in groups {
            self.file.inner().group(*group).map_err(|fault| self.file.error(fault))?;
        }
        self.groups = groups.to_vec();
        self.groups.sort_unstable();
        self.groups.dedup();
        Ok(self)
    }

    /// Keeps only rows with these numbers, in file order. [`File::take`] returns rows in any order.
    pub fn rows(mut self, rows: impl Into<RowSelection>) -> Result<Self, Error> {
        let (rows, count) = (rows.into(), self.file.rows());
        if let Some(row) = rows.last().filter(|row| *row >= count) {
            return Err(self.file.error(ErrorKind::NoSuchRow { row, rows: count }));
        }
        self.rows = Some(rows);
        Ok(self)
    }

    /// Skips this many matching rows.
    pub fn offset(mut self, rows: u64) -> Self {
        self.offset = rows;
        self
    }

    /// Returns at most this many matching rows, after those that are skipped.
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Sets the maximum number of rows in a batch.
    pub fn with_batch_rows(mut self, rows: u64) -> Self {
        self.batch_rows = rows;
        self
    }

    /// Reads one batch at a time, with about one page per column in memory: for merges, which scan many files at once.
    pub(crate) fn without_read_ahead(mut self) -> Self {
        self.reads_ahead = false;
        self
    }

    /// The positions of the selected columns.
    pub fn positions(&self) -> &[usize] {
        &self.columns
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn unit_rows(&self) -> u64 {
        let inner = self.file.inner();
        let blobs = self.columns.iter().any(|column| inner.is_blob(*column));
        let fitting = || self.file.estimate_batch_rows(&self.columns, BATCH_BYTES);
        match self.batch_rows {
            0 if blobs => fitting().min(BLOB_BATCH_ROWS),
            0 => fitting().min(BATCH_ROWS),
            rows => rows,
        }
    }

    /// The number of rows of the scan. Row groups and pages decided by statistics are not read.
    pub fn count(&self) -> Result<u64, Error> {
        let inner = self.file.inner();
        self.file.check_columns(&[])?;
        let count = || {
            self.groups
                .par_iter()
                .map(|group| match (self.plan(*group)?, &self.filter) {
                    (plan, Some(filter)) => filter::count(inner, &filter.predicate, &plan),
                    (plan, None) => Ok(plan.rows()),
                })
                .try_reduce(|| 0, |a, b| Ok::<u64, ErrorKind>(a.saturating_add(b)))
        };
        let matching = inner.on_threads(count).map_err(|fault| self.file.error(fault))?;
        Ok(matching.saturating_sub(self.offset).min(self.limit.unwrap_or(u64::MAX)))
    }

    /// The matching rows, in order.
    pub fn batches(&self) -> Batches {
        Batches::new(self.clone())
    }

    /// The plan of the scan: what it reads and what it prunes.
    pub fn explain(&self) -> Result<Explain, Error> {
        let inner = self.file.inner();
        self.file.check_columns(&[])?;
        let plans = inner.on_threads(|| self.plans()).map_err(|fault| self.file.error(fault))?;
        Ok(explain::explain(&self.file, self.filter.as_ref().map(|filter| &filter.predicate), &plans))
    }

    fn plans(&self) -> Result<Vec<GroupPlan>, ErrorKind> {
        self.groups.par_iter().map(|group| self.plan(*group)).collect()
    }

    /// The plan of one group, restricted to the selected rows. Statistics of a group without such rows are not read.
    fn plan(&self, group: usize) -> Result<GroupPlan, ErrorKind> {
        let inner = self.file.inner();
        let rows = self.rows_of(group)?;
        let mut plan = match &self.filter {
            Some(filter) if rows.as_ref().is_none_or(|rows| !rows.is_empty()) => {
                GroupPlan::make(inner, &filter.predicate, group)?
            }
            _ => GroupPlan::everything(inner, group),
        };
        if let Some(rows) = rows {
            plan.restrict(&rows);
        }
        Ok(plan)
    }

    /// The row groups whose rows all match and whose footers have the exact minima and maxima of some columns, and the scan of the other
    /// row groups.
    pub(crate) fn divide_by_statistics(&self, columns: &[usize]) -> Result<(Vec<GroupBounds>, Self), Error> {
        // Floats: a zone map does not distinguish zeros.
        let is_float = |column: &usize| self.file.inner().field(*column).kind.is_float();
        if self.offset > 0 || self.limit.is_some() || columns.iter().any(is_float) {
            return Ok((Vec::new(), self.clone()));
        }
        self.file.check_columns(columns)?;
        let inner = self.file.inner();
        let divide = || {
            let (mut known, mut rest) = (Vec::new(), Vec::new());
            for plan in self.plans()? {
                let all = inner.group(plan.group)?.rows;
                let bounds = if plan.verdict == Verdict::Always && plan.rows() == all {
                    columns.iter().map(|column| exact_bounds(inner, plan.group, *column)).collect()
                } else {
                    Ok(None)
                };
                match bounds? {
                    Some(bounds) => known.push(GroupBounds { rows: all, bounds }),
                    None => rest.push(plan.group),
                }
            }
            Ok::<_, ErrorKind>((known, rest))
        };
        let (known, groups) = inner.on_threads(divide).map_err(|fault| self.file.error(fault))?;
        Ok((known, Self { groups, ..self.clone() }))
    }

    /// The selected rows of a group, relative to it; `None` for all rows.
    fn rows_of(&self, group: usize) -> Result<Option<Vec<Range<u64>>>, ErrorKind> {
        let group = self.file.inner().group(group)?;
        let all = group.first_row..group.first_row.saturating_add(group.rows);
        Ok(match (&self.rows, self.file.live()) {
            (Some(rows), Some(live)) => {
                let of_group = |rows: &RowSelection| RowSelection::from(rows.relative_to(all.clone()));
                Some(of_group(rows).intersection(&of_group(live)).into())
            }
            (rows, live) => rows.as_ref().or(live).map(|rows| rows.relative_to(all)),
        })
    }

    /// The selected rows without deleted ones; `None` for all rows.
    fn selected_rows(&self) -> Option<RowSelection> {
        match (&self.rows, self.file.live()) {
            (Some(rows), Some(live)) => Some(rows.intersection(live)),
            (rows, live) => rows.as_ref().or(live).cloned(),
        }
    }

    /// The matching rows of one group.
    fn selected(&self, group: usize) -> Result<Selected, ErrorKind> {
        let plan = self.plan(group)?;
        match &self.filter {
            Some(filter) => filter::select(self.file.inner(), &filter.predicate, &plan),
            None => Ok(Selected::all(&plan)),
        }
    }
}
