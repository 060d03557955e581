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
mod prune;

pub use batches::{Batch, Batches};
pub use explain::{Explain, GroupExplain, PageExplain, Pruned, RowsPruned};
pub use prune::PrunedBy;

use rayon::prelude::*;

use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::predicate::{Expr, Predicate};
use filter::Selected;
use prune::GroupPlan;

/// A scan of the rows of a file.
#[derive(Clone, Debug)]
pub struct Scan {
    file: File,
    columns: Vec<usize>,
    predicate: Option<Predicate>,
    batch_rows: u64,
}

/// Default rows per batch: those of a page.
const BATCH_ROWS: u64 = 65_536;

/// Default bytes per batch, unless one row has more.
const BATCH_BYTES: u64 = 64 << 20;

/// Default rows per batch with blob columns.
const BLOB_BATCH_ROWS: u64 = 2048;

impl File {
    /// Starts a scan of all columns and all rows.
    pub fn scan(&self) -> Scan {
        let columns = (0..self.schema().len()).collect();
        Scan { file: self.clone(), columns, predicate: None, batch_rows: 0 }
    }
}

impl File {
    /// Estimates, from the footer, how many rows of some columns take about this many bytes in memory; at least one.
    pub fn estimate_batch_rows(&self, columns: &[usize], bytes: u64) -> u64 {
        let groups = self.footer().groups.iter();
        let chunks = groups.flat_map(|group| columns.iter().filter_map(|column| group.chunks.get(*column)));
        let in_pages = total(chunks.map(|chunk| chunk.raw_bytes));
        let blobs = self.footer().blobs.iter();
        let blobs = blobs.filter(|blob| columns.iter().any(|column| *column as u64 == blob.column));
        let in_runs = total(blobs.flat_map(|blob| &blob.runs).map(|run| run.raw_bytes));
        let per_row = in_pages.saturating_add(in_runs) / self.rows().max(1);
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
        self.predicate = Some(predicate);
        Ok(self)
    }

    /// Sets the maximum number of rows in a batch.
    pub fn with_batch_rows(mut self, rows: u64) -> Self {
        self.batch_rows = rows;
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

    /// The number of matching rows. Row groups and pages decided by statistics are not read.
    pub fn count(&self) -> Result<u64, Error> {
        let inner = self.file.inner();
        self.file.check_columns(&[])?;
        let Some(predicate) = &self.predicate else { return Ok(self.file.rows()) };
        let groups = 0..self.file.group_count();
        let count = || {
            groups
                .into_par_iter()
                .map(|group| {
                    let plan = GroupPlan::make(inner, predicate, group)?;
                    filter::count(inner, predicate, &plan)
                })
                .try_reduce(|| 0, |a, b| Ok::<u64, ErrorKind>(a + b))
        };
        inner.on_threads(count).map_err(|fault| self.file.error(fault))
    }

    /// The matching rows, in order.
    pub fn batches(&self) -> Batches {
        Batches::new(self.clone())
    }

    /// The plan of the scan: what it reads and what it prunes.
    pub fn explain(&self) -> Result<Explain, Error> {
        let inner = self.file.inner();
        self.file.check_columns(&[])?;
        let plan = || {
            (0..self.file.group_count())
                .into_par_iter()
                .map(|group| match &self.predicate {
                    Some(predicate) => GroupPlan::make(inner, predicate, group),
                    None => Ok(GroupPlan::everything(inner, group)),
                })
                .collect::<Result<Vec<GroupPlan>, ErrorKind>>()
        };
        let plans = inner.on_threads(plan).map_err(|fault| self.file.error(fault))?;
        Ok(explain::explain(&self.file, self.predicate.as_ref(), &plans))
    }

    /// The matching rows of one group.
    fn selected(&self, group: usize) -> Result<Selected, ErrorKind> {
        let inner = self.file.inner();
        match &self.predicate {
            Some(predicate) => filter::select(inner, predicate, &GroupPlan::make(inner, predicate, group)?),
            None => Ok(Selected::all(inner, group)),
        }
    }
}
