//! What is intact in a damaged file, in a new one.
//!
//! A row is kept when it can be read in every column; nothing is guessed. A file whose footer is lost is read with one that
//! is made again from its records; for that the caller tells the columns.

mod plan;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::{ByteSource, Class, Diagnose as _, Progress, Sink};

use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};
use crate::schema::Schema;
use crate::writer::{Writer, WriterOptions};

/// Rows that are read and written at a time, or fewer where they are large.
const BATCH_ROWS: u64 = 4096;

/// At most so many reasons are told.
const TOLD: usize = 100;

/// How to repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// The columns, for a file whose footer is lost.
    pub schema: Option<Schema>,
    /// How the new file is written.
    pub writer: WriterOptions,
    /// How the damaged file is read.
    pub open: ReadOptions,
}

impl RepairOptions {
    /// Tells the columns of a file whose footer is lost.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets how the new file is written.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets how the damaged file is read.
    pub fn with_open(mut self, open: ReadOptions) -> Self {
        self.open = open;
        self
    }
}

/// What was kept and what was lost.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Repaired {
    /// Whether the footer was made again from the records.
    pub footer_rebuilt: bool,
    /// Reason the footer could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer_fault: Option<String>,
    /// Rows of the damaged file, as far as it tells.
    pub rows: u64,
    /// Rows of the new file.
    pub rows_kept: u64,
    /// Rows that are lost, by their numbers in the damaged file.
    pub lost: Vec<Range<u64>>,
    /// Reason, the first hundred reasons.
    pub reasons: Vec<String>,
    /// Reasons that are not told.
    pub more_reasons: u64,
}

impl Repaired {
    /// Whether nothing is lost.
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.footer_fault.is_none() && self.reasons.is_empty()
    }
}

/// Writes the intact rows of `source` to `sink`.
pub fn repair<S: Sink>(
    source: Arc<dyn ByteSource>,
    sink: S,
    options: RepairOptions,
    progress: &dyn Progress,
) -> Result<(Repaired, S::Done), Error> {
    let name = Arc::clone(source.name());
    let in_file = |fault| Error::new(Arc::clone(&name), fault);
    let mut footer_fault = None;
    let file = match File::from_source(Arc::clone(&source), options.open) {
        Ok(file) => file,
        Err(error) if error.class() == Class::Io => return Err(error),
        Err(error) => {
            let Some(schema) = options.schema else { return Err(error) };
            footer_fault = Some(error.into_kind().to_string());
            let rebuilt = walk::rebuild(&*source, Arc::new(schema)).map_err(in_file)?;
            File::with_footer(source, options.open, rebuilt.footer, rebuilt.end).map_err(in_file)?
        }
    };
    let inner = file.inner();
    let schema = (**file.schema()).clone();
    let mut writer_options = options.writer;
    writer_options.metadata.extend(inner.user_pairs());
    // Rows that were lost may leave a gap, but never an order that was not there. An order that the caller tells is checked.
    writer_options.require_sorted = footer_fault.is_some();
    let mut writer = Writer::create(sink, schema, writer_options).map_err(in_file)?;
    let mut out = Repaired {
        footer_rebuilt: footer_fault.is_some(),
        footer_fault,
        rows: file.rows(),
        rows_kept: 0,
        lost: Vec::new(),
        reasons: Vec::new(),
        more_reasons: 0,
    };
    for group in 0..file.group_count() {
        let plan = plan::plan(inner, group, progress).map_err(in_file)?;
        let first_row = inner.group(group).map_err(in_file)?.first_row;
        out.tell(plan.faults);
        let mut at = 0;
        for range in &plan.good {
            out.lose(first_row + at..first_row + range.start);
            copy(inner, group, range.clone(), &mut writer, progress).map_err(in_file)?;
            out.rows_kept += range.end - range.start;
            at = range.end;
        }
        out.lose(first_row + at..first_row + plan.rows);
    }
    let done = writer.finish().map_err(in_file)?;
    Ok((out, done.output))
}

fn copy<S: Sink>(
    inner: &crate::file::Inner,
    group: usize,
    rows: Range<u64>,
    writer: &mut Writer<S>,
    progress: &dyn Progress,
) -> Result<(), ErrorKind> {
    let (mut at, mut batch_rows) = (rows.start, BATCH_ROWS);
    while at < rows.end {
        progress.check()?;
        let end = rows.end.min(at + batch_rows);
        let columns = (0..inner.footer.schema.len()).map(|column| inner.read_rows(group, column, at..end));
        match columns.collect::<Result<Vec<crate::Column>, ErrorKind>>() {
            Ok(batch) => writer.append(&batch)?,
            // Each page is within the limits, but not all rows of the batch together.
            Err(fault) if fault.class() == Class::Limit && batch_rows > 1 => {
                batch_rows /= 2;
                continue;
            }
            Err(fault) => return Err(fault),
        }
        at = end;
    }
    Ok(())
}

impl Repaired {
    fn tell(&mut self, faults: Vec<ErrorKind>) {
        for fault in faults {
            if self.reasons.len() < TOLD {
                self.reasons.push(fault.to_string());
            } else {
                self.more_reasons += 1;
            }
        }
    }

    fn lose(&mut self, rows: Range<u64>) {
        match self.lost.last_mut() {
            _ if rows.is_empty() => {}
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => self.lost.push(rows),
        }
    }
}
