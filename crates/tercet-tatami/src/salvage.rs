//! Salvage: copies the intact rows of a damaged file to a new one.
//!
//! A row is kept if it is readable in every column. A lost footer is rebuilt from the records; the caller must provide the
//! schema.

mod plan;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::{ByteSource, Class, Diagnostic as _, Progress, Sink};

use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};
use crate::read::LastPage;
use crate::schema::Schema;
use crate::writer::{Writer, WriterOptions};

/// Maximum rows per batch; fewer if they are large.
const BATCH_ROWS: u64 = 4096;

/// The maximum number of reasons in a report.
const MAX_REASONS: usize = 100;

/// Options of a salvage.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// The schema of a file without footer.
    pub schema: Option<Schema>,
    /// Options of the new file.
    pub writer: WriterOptions,
    /// Options for reading the damaged file.
    pub read: ReadOptions,
}

impl SalvageOptions {
    /// No schema, default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the schema of a file without footer.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets the options of the new file.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets the options for reading the damaged file.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

/// The result of a salvage: rows kept, rows lost and why.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SalvageReport<D = ()> {
    /// The output of the sink: the path of the new file, or its bytes.
    #[serde(skip)]
    pub output: D,
    /// Whether the footer was rebuilt from the records.
    pub footer_rebuilt: bool,
    /// The error of the footer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer_fault: Option<String>,
    /// Rows of the damaged file, if known.
    pub rows: u64,
    /// Rows of the new file.
    pub rows_kept: u64,
    /// Lost rows, numbered as in the damaged file.
    pub lost: Vec<Range<u64>>,
    /// The first hundred reasons.
    pub reasons: Vec<String>,
    /// Number of further reasons.
    pub more_reasons: u64,
}

impl<D> SalvageReport<D> {
    /// Whether everything in the file is in the new file.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.footer_fault.is_none() && self.reasons.is_empty()
    }

    /// The report and the output of the sink, separately.
    pub fn into_parts(self) -> (SalvageReport, D) {
        let Self { output, footer_rebuilt, footer_fault, rows, rows_kept, lost, reasons, more_reasons } =
            self;
        let report = SalvageReport {
            output: (),
            footer_rebuilt,
            footer_fault,
            rows,
            rows_kept,
            lost,
            reasons,
            more_reasons,
        };
        (report, output)
    }
}

/// Writes the intact rows of `source` to `sink`.
pub fn salvage<S: Sink>(
    source: Arc<dyn ByteSource>,
    sink: S,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport<S::Output>, Error> {
    let name = Arc::clone(source.name());
    let in_file = |fault| Error::new(Arc::clone(&name), fault);
    let mut footer_fault = None;
    let file = match File::from_source(Arc::clone(&source), options.read) {
        Ok(file) => file,
        Err(error) if error.class() == Class::Io => return Err(error),
        Err(error) => {
            let Some(schema) = options.schema else { return Err(error) };
            footer_fault = Some(error.into_kind().to_string());
            let rebuilt = walk::rebuild(&*source, Arc::new(schema)).map_err(in_file)?;
            File::with_footer(source, options.read, rebuilt.footer, rebuilt.end).map_err(in_file)?
        }
    };
    let inner = file.inner();
    let schema = (**file.schema()).clone();
    let mut writer_options = options.writer;
    writer_options.metadata.extend(inner.user_pairs());
    // Lost rows do not change the order. A sort key declared by the caller is checked.
    writer_options.require_sorted = footer_fault.is_some();
    let mut writer = Writer::new(sink, schema, writer_options)?;
    let mut out = SalvageReport {
        output: (),
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
        out.add_reasons(plan.faults);
        let mut at = 0;
        for range in &plan.good {
            out.lose(first_row + at..first_row + range.start);
            copy(&file, group, range.clone(), &mut writer, progress)?;
            out.rows_kept += range.end - range.start;
            at = range.end;
        }
        out.lose(first_row + at..first_row + plan.rows);
    }
    let output = writer.finish()?.output;
    let SalvageReport { footer_rebuilt, footer_fault, rows, rows_kept, lost, reasons, more_reasons, .. } =
        out;
    Ok(SalvageReport { output, footer_rebuilt, footer_fault, rows, rows_kept, lost, reasons, more_reasons })
}

fn copy<S: Sink>(
    file: &File,
    group: usize,
    rows: Range<u64>,
    writer: &mut Writer<S>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let inner = file.inner();
    let mut last: Vec<LastPage> = inner.footer.schema.fields().iter().map(|_| LastPage::default()).collect();
    let (mut at, mut batch_rows) = (rows.start, BATCH_ROWS);
    while at < rows.end {
        progress.check().map_err(|cancelled| file.error(cancelled.into()))?;
        let end = rows.end.min(at + batch_rows);
        let columns = last.iter_mut().enumerate();
        let columns =
            columns.map(|(column, last)| inner.chunk_reader(group, column).read_next_rows(at..end, last));
        match columns.collect::<Result<Vec<crate::Column>, ErrorKind>>() {
            Ok(batch) => writer.append(&batch)?,
            // Each page is within the limits, but the batch is not.
            Err(kind) if kind.class() == Class::Limit && batch_rows > 1 => {
                batch_rows /= 2;
                continue;
            }
            Err(kind) => return Err(file.error(kind)),
        }
        at = end;
    }
    Ok(())
}

impl SalvageReport {
    fn add_reasons(&mut self, faults: Vec<ErrorKind>) {
        for fault in faults {
            if self.reasons.len() < MAX_REASONS {
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
