//! Reading tables of any format.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tercet::arrow::{self, Options, Table, TableReader, Timestamps};
use tercet::convert::tables::TextTable;
use tercet::core::progress::NoProgress;
use tercet::core::{ByteSource, Class, Progress, SourceError, Span, escape};
use tercet::tatami::predicate::Predicate;
use tercet::tatami::scan::Batches;
use tercet::tatami::{Column, LogicalType, Schema, Values};

use super::format::Format;
use crate::cmd::tatami::columns::{Columns, listed, no_column, positions};
use crate::cmd::tatami::create::roles::Roles;
use crate::cmd::tatami::create::schema::Declared;
use crate::cmd::tatami::filter::{FilterText, Where};
use crate::cmd::tatami::open::open as open_file;
use crate::failure::Failure;
use crate::ui::{Bar, Ui, WARN, paint};

/// Batch size of the reference implementation, which ends row groups at batch boundaries only.
const INTEROP_BATCH_ROWS: usize = 4096;
/// Target bytes per batch.
const BATCH_BYTES: u64 = 16 << 20;

/// The options of the input.
pub(super) struct InputOptions<'a> {
    pub(super) filter: &'a Where,
    pub(super) columns: &'a Columns,
    pub(super) declared: Option<&'a Declared>,
    pub(super) roles: &'a Roles,
    pub(super) timestamps: Timestamps,
    /// Roles apply to .tatami output only.
    pub(super) into_tatami: bool,
    pub(super) interop: bool,
    pub(super) batch: Option<usize>,
}

/// An open table.
pub(super) struct Open {
    table: Table,
    rows: Kind,
    /// The selected rows and columns.
    selection: RowSelection,
    read: Arc<AtomicU64>,
    /// The footer metadata to copy.
    pairs: Vec<(String, String)>,
}

enum Kind {
    Arrow(Box<TableReader>),
    Tatami(Box<Batches>),
    Text(Box<TextTable>, Schema),
}

pub(super) fn open(
    source: Arc<dyn ByteSource>,
    format: Format,
    requested: &InputOptions<'_>,
    out: &mut Ui,
) -> Result<Open, Failure> {
    let is_text = matches!(format, Format::Csv | Format::Tsv | Format::Jsonl);
    if requested.declared.is_some() && !is_text {
        return Err(Failure::request("`--schema` applies to CSV and JSONL input only"));
    }
    let read = Arc::new(AtomicU64::new(0));
    let source: Arc<dyn ByteSource> = Arc::new(CountingSource { source, read: Arc::clone(&read) });
    let roles =
        if requested.into_tatami { requested.roles.for_table()? } else { arrow::ColumnOptions::none() };
    let only = read_names(requested)?;
    if let Some(format) = format.in_arrow() {
        let options = Options::new()
            .with_column_options(roles)
            .with_timestamps(requested.timestamps)
            .with_interop(requested.interop)
            .with_columns(only);
        let batch = requested.batch.or(requested.interop.then_some(INTEROP_BATCH_ROWS));
        let rows = TableReader::open(source, format, &options, batch)
            .map_err(|error| explained(error, requested))?;
        for warning in rows.warnings() {
            let name = escape::name(rows.table().name());
            out.note(format_args!("{} {name}: {warning}", paint(WARN, "warning:")))?;
        }
        let all = rows.table().clone();
        let names = || rows.names().to_vec();
        let (table, selection) = RowSelection::new(&all, &all.annotations(), requested, &names)?;
        let pairs = table.annotations();
        return Ok(Open { table, rows: Kind::Arrow(Box::new(rows)), selection, read, pairs });
    }
    if let Some(text_format) = format.in_text(only) {
        let name = Arc::clone(source.name());
        let declared = requested.declared.map(Declared::columns);
        let bar = declared.is_none().then(|| out.bar("inferring", source.len()));
        let progress: &dyn Progress = bar.as_ref().map_or(&NoProgress, |bar| bar);
        let text = TextTable::open(source, text_format, declared, progress)?;
        drop(bar);
        // For an error message only.
        let names = || text.names(&out.bar("inferring", 0)).unwrap_or_default();
        let mut fields = text.fields().to_vec();
        if fields.is_empty() {
            let selected = requested.columns.names()?.unwrap_or_default();
            let missing = selected.first().map_or("", String::as_str);
            return Err(no_column(&name, missing, &names()));
        }
        roles.apply_explicit(&name, &mut fields)?;
        let schema = Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?;
        let all = Table::from_annotated(&name, &schema, text.annotations())?;
        let (table, selection) = RowSelection::new(&all, text.annotations(), requested, &names)?;
        let pairs = table.annotations();
        return Ok(Open { table, rows: Kind::Text(Box::new(text), schema), selection, read, pairs });
    }
    let file = open_file(source)?;
    let columns = requested.columns.positions_in(&file)?;
    let table = Table::from_file(&file, &columns)?;
    let mut fields = table.schema().fields().to_vec();
    roles.apply_explicit(file.name(), &mut fields)?;
    let schema = Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?;
    let table = table.with_schema(schema);
    let fitting = file.estimate_batch_rows(&columns, BATCH_BYTES).min(65_536);
    let rows = requested.batch.map_or(fitting, |rows| rows as u64);
    let mut scan = file.scan().column_positions(&columns)?.with_batch_rows(rows);
    if let Some(predicate) = requested.filter.bind_to(&file)? {
        scan = scan.filter(&predicate)?;
    }
    let is_kept = |(key, _): &&(String, String)| {
        let of_format = key.starts_with("tatami.");
        !of_format
            && tercet::arrow::annotation::annotated_column(key)
                .is_none_or(|name| table.schema().index_of(name).is_some())
    };
    let pairs = file.footer().pairs.iter().filter(is_kept).cloned().collect();
    let selection = RowSelection::default();
    Ok(Open { table, rows: Kind::Tatami(Box::new(scan.batches())), selection, read, pairs })
}

/// The columns to read: selected columns and those of the filter; `None` for all.
fn read_names(requested: &InputOptions<'_>) -> Result<Option<Vec<String>>, Failure> {
    let Some(mut names) = requested.columns.names()? else { return Ok(None) };
    if let Some(filter) = requested.filter.text() {
        names.extend(filter.parsed()?.expr().columns().into_iter().map(str::to_owned));
    }
    Ok(Some(names))
}

/// Adds a hint to errors about unsupported types.
fn explained(error: arrow::Error, requested: &InputOptions<'_>) -> Failure {
    if let arrow::ErrorKind::NoSuchColumns { columns } = error.kind()
        && let Ok(Some(names)) = requested.columns.names()
        && let Some(missing) = names.first()
    {
        return no_column(error.location(), missing, columns);
    }
    let arrow::ErrorKind::UnsupportedTypes { columns } = error.kind() else { return error.into() };
    let is_list = |kind: &str| kind.starts_with("list of ");
    if requested.interop && columns.iter().all(|column| is_list(&column.type_name)) {
        let names: Vec<String> =
            columns.iter().map(|column| format!("`{}`", escape::name(&column.column))).collect();
        let message = format!(
            "{}: `--profile interop` does not support list columns: {}",
            escape::name(error.location()),
            names.join(", ")
        );
        return Failure::new(Class::Unsupported, message)
            .with_hint("omit `--profile interop`, or select other columns with `--columns`");
    }
    Failure::from(error).with_hint("select other columns with `--columns`")
}

impl Open {
    /// The columns.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// The footer metadata of a `.tatami` output.
    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Passes all rows on; returns a warning, if any.
    pub(super) fn read(
        self,
        bar: &Bar,
        mut hand_over: impl FnMut(Vec<Column>) -> Result<(), Failure>,
    ) -> Result<Option<String>, Failure> {
        let selection = self.selection;
        let mut each = |columns| selection.apply(columns).map_or(Ok(()), &mut hand_over);
        let mut reported = 0;
        let mut go_on = || {
            let read = self.read.load(Ordering::Relaxed);
            bar.advance(read.saturating_sub(reported));
            reported = reported.max(read);
            if bar.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
        };
        match self.rows {
            Kind::Arrow(mut rows) => {
                for columns in rows.by_ref() {
                    go_on()?;
                    each(columns?)?;
                }
                if rows.is_truncated() {
                    let (name, warning) = (escape::name(rows.table().name()), paint(WARN, "warning:"));
                    let reason = "the stream has no end marker; it may be truncated";
                    return Ok(Some(format!("{warning} {name}: {reason}")));
                }
            }
            Kind::Tatami(batches) => {
                for batch in *batches {
                    go_on()?;
                    each(batch?.columns)?;
                }
            }
            Kind::Text(text, schema) => text.read(&schema, bar, |batch| each(batch.columns))?,
        }
        Ok(None)
    }
}

/// The filter and projection of batches.
#[derive(Default)]
struct RowSelection {
    predicate: Option<Predicate>,
    /// Positions among the columns read; `None` for all.
    columns: Option<Vec<usize>>,
}

impl RowSelection {
    /// The projected table and its selection.
    fn new(
        all: &Table,
        annotations: &[(String, String)],
        requested: &InputOptions<'_>,
        in_file: &dyn Fn() -> Vec<String>,
    ) -> Result<(Table, Self), Failure> {
        let logical_types = LogicalType::for_fields(all.schema().fields(), annotations);
        let bind = |filter: &FilterText| {
            let parsed = filter.parsed()?;
            filter.bound(&parsed, all.name(), all.schema(), &logical_types).map_err(|failure| {
                let is_there = |name: &&str| all.schema().index_of(name).is_some();
                if parsed.expr().columns().iter().all(is_there) {
                    return failure;
                }
                // Only some columns of the file are read.
                failure.with_hint(listed(&in_file()))
            })
        };
        let predicate = requested.filter.text().map(bind).transpose()?;
        let Some(names) = requested.columns.names()? else {
            return Ok((all.clone(), Self { predicate, columns: None }));
        };
        let columns = positions(all.name(), all.schema(), &names, in_file)?;
        Ok((all.project(&columns)?, Self { predicate, columns: Some(columns) }))
    }

    /// Filters and projects a batch; `None` if no row matches.
    fn apply(&self, mut batch: Vec<Column>) -> Option<Vec<Column>> {
        let rows = batch.first().map_or(0, Column::len);
        let mask = self.predicate.as_ref().map(|predicate| predicate.mask(&batch));
        if let Some(columns) = &self.columns {
            // Positions are unique.
            let empty = || Column::new(Values::Bool(Vec::new()));
            let mut take = |column: &usize| Some(std::mem::replace(batch.get_mut(*column)?, empty()));
            batch = columns.iter().filter_map(&mut take).collect();
        }
        match mask {
            Some(mask) if mask.count() == 0 => None,
            Some(mask) if mask.count() < rows => {
                let rows: Vec<usize> = mask.positions().collect();
                Some(batch.iter().map(|column| column.take(&rows)).collect())
            }
            _ => Some(batch),
        }
    }
}

/// A byte source that counts the bytes read.
#[derive(Debug)]
struct CountingSource {
    source: Arc<dyn ByteSource>,
    read: Arc<AtomicU64>,
}

impl ByteSource for CountingSource {
    fn name(&self) -> &Arc<str> {
        self.source.name()
    }
    fn len(&self) -> u64 {
        self.source.len()
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.read.fetch_add(span.len(), Ordering::Relaxed);
        self.source.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.source.read_into(start, out)
    }
    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        self.read.fetch_add(spans.iter().map(|span| span.len()).sum(), Ordering::Relaxed);
        self.source.read_many(spans)
    }
    fn is_zero_copy(&self) -> bool {
        self.source.is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }
}
