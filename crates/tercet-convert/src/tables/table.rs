//! Tables of any format, of one or several files.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "arrow")]
use tercet_arrow::TableReader;
use tercet_core::num::counted;
use tercet_core::progress::Cancelled;
use tercet_core::source;
use tercet_core::{ByteSource, Class, Diagnostic, Hint, Progress, SourceError, Span, escape};
use tercet_tatami::predicate::{BindError, ParsedFilter, Predicate};
use tercet_tatami::{Column, Expr, Field, File, LogicalType, Schema, Values};

use super::chunks::decompressed;
use super::error::{Error, ErrorKind};
use super::format::{Compression, TableFormat, detect};
#[cfg(feature = "arrow")]
use super::json::Nested;
use super::reject::Reject;
use super::text_table::{DeclaredColumns, Sample, TextFormat, TextOptions, TextTable};

/// Target bytes per batch.
const BATCH_BYTES: u64 = 16 << 20;
/// Bytes decompressed at a time.
const UNPACK_LEN: usize = 1 << 18;

/// Options of tables of any format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableOptions {
    /// Options of CSV and JSONL; how nested values are read, of Parquet and Arrow too.
    pub text: TextOptions,
    /// The columns of CSV and JSONL; `None` infers them.
    pub declared: Option<DeclaredColumns>,
    /// Options of Parquet and Arrow.
    #[cfg(feature = "arrow")]
    pub arrow: tercet_arrow::Options,
    /// Rows per batch; `None` by their size.
    pub batch_rows: Option<usize>,
    /// How .tatami files are read.
    pub read: tercet_core::ReadOptions,
    /// Maximum decompressed size of a Parquet, Arrow or `.tatami` file that is compressed as a whole. It is decompressed into a
    /// temporary file.
    pub max_unpacked: u64,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            text: TextOptions::default(),
            declared: None,
            #[cfg(feature = "arrow")]
            arrow: tercet_arrow::Options::default(),
            batch_rows: None,
            read: tercet_core::ReadOptions::new(),
            max_unpacked: 64 << 30,
        }
    }
}

impl TableOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum decompressed size of a compressed Parquet, Arrow or `.tatami` file.
    pub fn with_max_unpacked(mut self, bytes: u64) -> Self {
        self.max_unpacked = bytes;
        self
    }

    /// Sets the options of CSV and JSONL.
    pub fn with_text(mut self, text: TextOptions) -> Self {
        self.text = text;
        self
    }

    /// Sets the columns of CSV and JSONL.
    pub fn with_declared(mut self, declared: Option<DeclaredColumns>) -> Self {
        self.declared = declared;
        self
    }

    /// Sets the options of Parquet and Arrow.
    #[cfg(feature = "arrow")]
    pub fn with_arrow(mut self, arrow: tercet_arrow::Options) -> Self {
        self.arrow = arrow;
        self
    }

    /// Sets the rows per batch.
    pub fn with_batch_rows(mut self, rows: Option<usize>) -> Self {
        self.batch_rows = rows;
        self
    }
}

/// Error of a table of any format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Of CSV, JSONL, or several files.
    #[error(transparent)]
    Text(#[from] Error),
    /// Of Parquet or Arrow.
    #[cfg(feature = "arrow")]
    #[error(transparent)]
    Arrow(#[from] tercet_arrow::Error),
    /// Of a `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::Error),
}

impl TableError {
    fn inner(&self) -> &dyn Diagnostic {
        match self {
            Self::Text(error) => error,
            #[cfg(feature = "arrow")]
            Self::Arrow(error) => error,
            Self::Tatami(error) => error,
        }
    }

    /// Whether a value does not fit the types inferred from a sample; see [`Table::infer_all`].
    pub fn is_outside_sample(&self) -> bool {
        matches!(self, Self::Text(error) if matches!(error.kind(), ErrorKind::OutsideSample { .. }))
    }
}

impl Diagnostic for TableError {
    fn class(&self) -> Class {
        self.inner().class()
    }
    fn span(&self) -> Option<Span> {
        self.inner().span()
    }
    fn hint(&self) -> Option<Hint> {
        self.inner().hint()
    }
    fn is_cancelled(&self) -> bool {
        self.inner().is_cancelled()
    }
}

/// Rows of a table, with their place in the input.
#[derive(Debug)]
pub struct Rows {
    /// The name of the input.
    pub input: Arc<str>,
    /// One column for each field of the schema.
    pub columns: Vec<Column>,
    /// The line of each row in text input.
    pub lines: Option<Vec<u64>>,
}

/// A table of any format, of one or several files.
#[derive(Debug)]
pub struct Table {
    format: TableFormat,
    rows: Kind,
    /// The number of deleted documents of search segments, which are skipped.
    deleted: Vec<(Arc<str>, u64)>,
    /// All columns that are read.
    fields: Vec<Field>,
    /// The projected columns with their roles.
    schema: Schema,
    /// The footer metadata to copy, including annotations of logical types.
    pairs: Vec<(String, String)>,
    predicate: Option<Predicate>,
    expr: Option<Expr>,
    /// Positions among the columns read; `None` for all.
    columns: Option<Vec<usize>>,
    read: Arc<AtomicU64>,
    batch_rows: Option<usize>,
    input_bytes: u64,
}

/// For each column of the table its position in a file.
type ColumnOrder = Vec<usize>;

#[derive(Debug)]
enum Kind {
    #[cfg(feature = "arrow")]
    Arrow(Vec<(TableReader, ColumnOrder)>),
    Tatami(Vec<(File, ColumnOrder)>),
    Text(Box<TextTable>),
}

fn refused(name: &Arc<str>, reason: &str) -> TableError {
    Error::new(Arc::clone(name), ErrorKind::Inputs(reason.into())).into()
}

impl Table {
    /// Opens files of one format as one table. At least one file is needed.
    pub fn open(
        sources: &[Arc<dyn ByteSource>],
        format: TableFormat,
        options: &TableOptions,
        progress: &dyn Progress,
    ) -> Result<Self, TableError> {
        let unpacked = unpacked(sources, format, options.max_unpacked, progress)?;
        let sources = unpacked.as_deref().unwrap_or(sources);
        let Some(first) = sources.first() else { return Err(refused(&"input".into(), "no input files")) };
        let input_bytes = sources.iter().map(ByteSource::len).sum();
        let read = Arc::new(AtomicU64::new(0));
        let with_count = |source: &Arc<dyn ByteSource>| -> Arc<dyn ByteSource> {
            Arc::new(CountingSource { source: Arc::clone(source), read: Arc::clone(&read) })
        };
        let (rows, fields, pairs) = match format {
            TableFormat::Csv | TableFormat::Tsv | TableFormat::Jsonl => {
                let text_format =
                    if format == TableFormat::Jsonl { TextFormat::Jsonl } else { TextFormat::Csv };
                let mut text = options.text.clone();
                if format == TableFormat::Tsv {
                    text.csv.delimiter = text.csv.delimiter.or(Some(b'\t'));
                }
                let table = TextTable::open(sources, text_format, text, options.declared.clone(), progress)?;
                if table.fields().is_empty() {
                    let names = table.names(progress)?.into();
                    return Err(Error::new(Arc::clone(first.name()), ErrorKind::NoSuchColumns(names)).into());
                }
                let (fields, pairs) = (table.fields().to_vec(), table.annotations().to_vec());
                (Kind::Text(Box::new(table)), fields, pairs)
            }
            TableFormat::Tatami => {
                let mut files = Vec::new();
                for source in sources {
                    files.push(File::from_source(with_count(source), options.read.into())?);
                }
                return Self::with_files(files, options, read, input_bytes);
            }
            #[cfg(feature = "arrow")]
            _ => {
                let in_arrow = match format {
                    TableFormat::Parquet => tercet_arrow::Format::Parquet,
                    TableFormat::Arrow => tercet_arrow::Format::ArrowFile,
                    _ => tercet_arrow::Format::ArrowStream,
                };
                let nested = match options.text.nested {
                    Nested::Flatten => tercet_arrow::Nested::Flatten,
                    Nested::Json => tercet_arrow::Nested::Json,
                };
                let arrow = options.arrow.clone().with_nested(Some(nested));
                let mut readers = Vec::new();
                for source in sources {
                    let source = with_count(source);
                    readers.push(TableReader::open(source, in_arrow, &arrow, options.batch_rows)?);
                }
                let (fields, orders) = {
                    let tables = readers.iter().map(TableReader::table);
                    same_columns(tables.map(|table| (table.name(), table.schema().fields())))?
                };
                let annotations = |reader: &TableReader| {
                    let mut pairs = reader.table().annotations();
                    pairs.sort();
                    pairs
                };
                let expected = annotations(&readers[0]);
                if let Some(other) = readers.iter().find(|reader| annotations(reader) != expected) {
                    return Err(other_logical_types(other.table().name(), first.name()));
                }
                let pairs = readers[0].table().annotations();
                (Kind::Arrow(readers.into_iter().zip(orders).collect()), fields, pairs)
            }
            #[cfg(not(feature = "arrow"))]
            _ => return Err(refused(first.name(), "this build does not read Parquet and Arrow")),
        };
        let schema =
            Schema::new(fields.clone()).map_err(|error| refused(first.name(), &error.to_string()))?;
        Ok(Self {
            format,
            rows,
            deleted: Vec::new(),
            fields,
            schema,
            pairs,
            predicate: None,
            expr: None,
            columns: None,
            read,
            batch_rows: options.batch_rows,
            input_bytes,
        })
    }

    /// Makes one table of open `.tatami` files, like the members of a collection. At least one file is needed.
    pub fn from_files(files: Vec<File>, options: &TableOptions) -> Result<Self, TableError> {
        let bytes = files.iter().map(File::len).sum();
        Self::with_files(files, options, Arc::default(), bytes)
    }

    fn with_files(
        files: Vec<File>,
        options: &TableOptions,
        read: Arc<AtomicU64>,
        input_bytes: u64,
    ) -> Result<Self, TableError> {
        // Deleted documents of search segments are not rows.
        let mut deleted = Vec::new();
        let mut live = Vec::with_capacity(files.len());
        for file in files {
            let left = file.without_deleted_documents()?;
            let count = file.live_rows() - left.live_rows();
            if count > 0 {
                deleted.push((Arc::clone(file.name()), count));
            }
            live.push(left);
        }
        let files = live;
        let Some(first) = files.first() else { return Err(refused(&"input".into(), "no input files")) };
        let (fields, orders) = same_columns(files.iter().map(|file| (file.name(), file.schema().fields())))?;
        for (file, order) in files.iter().zip(&orders) {
            let logical_types = file.logical_types();
            if !order.iter().zip(first.logical_types()).all(|(at, expected)| logical_types[*at] == expected) {
                return Err(other_logical_types(file.name(), first.name()));
            }
        }
        let is_kept = |(key, _): &&(String, String)| !key.starts_with("tatami.");
        let pairs = first.footer().pairs.iter().filter(is_kept).cloned().collect();
        let schema =
            Schema::new(fields.clone()).map_err(|error| refused(first.name(), &error.to_string()))?;
        Ok(Self {
            format: TableFormat::Tatami,
            rows: Kind::Tatami(files.into_iter().zip(orders).collect()),
            deleted,
            fields,
            schema,
            pairs,
            predicate: None,
            expr: None,
            columns: None,
            read,
            batch_rows: options.batch_rows,
            input_bytes,
        })
    }

    /// The format of the files.
    pub fn format(&self) -> TableFormat {
        self.format
    }

    /// The name of the first file.
    pub fn name(&self) -> Arc<str> {
        match &self.rows {
            #[cfg(feature = "arrow")]
            Kind::Arrow(readers) => {
                readers.first().map_or_else(|| "".into(), |(one, _)| Arc::clone(one.table().name()))
            }
            Kind::Tatami(files) => {
                files.first().map_or_else(|| "".into(), |(file, _)| Arc::clone(file.name()))
            }
            Kind::Text(table) => table.input_names().next().map_or_else(|| "".into(), Arc::clone),
        }
    }

    /// The columns, with roles after [`set_schema`](Self::set_schema).
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Sets the columns with their roles. They differ from [`schema`](Self::schema) in roles and storage only.
    pub fn set_schema(&mut self, schema: Schema) {
        self.schema = schema;
    }

    /// The footer metadata to copy, with the annotations of logical types.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let is_kept = |(key, _): &&(String, String)| {
            annotated_column(key).is_none_or(|name| self.schema.index_of(name).is_some())
        };
        self.pairs.iter().filter(is_kept).cloned().collect()
    }

    /// Adds footer metadata to copy.
    pub fn annotate(&mut self, key: String, value: String) {
        if !self.pairs.iter().any(|(known, _)| *known == key) {
            self.pairs.push((key, value));
        }
    }

    /// The text table, if it is one.
    pub fn text(&self) -> Option<&TextTable> {
        match &self.rows {
            Kind::Text(table) => Some(table),
            _ => None,
        }
    }

    /// The total size of the files.
    pub fn input_bytes(&self) -> u64 {
        self.input_bytes
    }

    /// Problems of the files that do not prevent reading, and the file of each.
    pub fn warnings(&self) -> Vec<(Arc<str>, String)> {
        match &self.rows {
            #[cfg(feature = "arrow")]
            Kind::Arrow(readers) => {
                let of = |(reader, _): &(TableReader, ColumnOrder)| {
                    let name = Arc::clone(reader.table().name());
                    reader.warnings().iter().map(|text| (Arc::clone(&name), text.clone())).collect::<Vec<_>>()
                };
                readers.iter().flat_map(of).collect()
            }
            _ => {
                let skipped = |count: u64| format!("skipped {}", counted(count, "deleted document"));
                self.deleted.iter().map(|(name, count)| (Arc::clone(name), skipped(*count))).collect()
            }
        }
    }

    /// All column names of the input, including those that are not read.
    pub fn names(&self, progress: &dyn Progress) -> Vec<String> {
        match &self.rows {
            #[cfg(feature = "arrow")]
            Kind::Arrow(readers) => {
                readers.first().map(|(reader, _)| reader.names().to_vec()).unwrap_or_default()
            }
            Kind::Tatami(_) => self.fields.iter().map(|field| field.name.to_string()).collect(),
            Kind::Text(table) => table.names(progress).unwrap_or_default(),
        }
    }

    /// Infers the columns of text input again, from all rows. Roles, filter and projection must be set again.
    pub fn infer_all(&mut self, progress: &dyn Progress) -> Result<(), TableError> {
        let name = self.name();
        if let Kind::Text(table) = &mut self.rows {
            table.infer_all(progress)?;
            (self.fields, self.pairs) = (table.fields().to_vec(), table.annotations().to_vec());
            self.schema =
                Schema::new(self.fields.clone()).map_err(|error| refused(&name, &error.to_string()))?;
            (self.predicate, self.expr, self.columns) = (None, None, None);
        }
        Ok(())
    }

    /// The logical types of all columns that are read.
    pub fn logical_types(&self) -> Vec<Option<LogicalType>> {
        LogicalType::for_fields(&self.fields, &self.pairs)
    }

    /// Filters the rows. Call it before [`project`](Self::project).
    pub fn filter(&mut self, filter: &ParsedFilter) -> Result<(), Box<(BindError, Range<usize>)>> {
        let schema = Schema::new(self.fields.clone()).unwrap_or_else(|_| self.schema.clone());
        self.predicate = Some(filter.bind(&schema, &self.logical_types()).map_err(Box::new)?);
        self.expr = Some(filter.expr().clone());
        Ok(())
    }

    /// Selects columns by name, in this order; fails with the first name that does not exist.
    pub fn project(&mut self, names: &[String]) -> Result<(), String> {
        let mut columns = Vec::new();
        for name in names {
            let position = self.fields.iter().position(|field| *field.name == **name);
            columns.push(position.ok_or_else(|| name.clone())?);
        }
        let fields = columns.iter().map(|column| self.fields[*column].clone()).collect();
        self.schema = Schema::new(fields).map_err(|error| error.to_string())?;
        self.columns = Some(columns);
        Ok(())
    }

    /// The Arrow types of the columns.
    #[cfg(feature = "arrow")]
    pub fn arrow_table(&self) -> Result<tercet_arrow::Table, TableError> {
        let all: Vec<usize> = (0..self.fields.len()).collect();
        let columns = self.columns.as_ref().unwrap_or(&all);
        Ok(match &self.rows {
            Kind::Arrow(readers) if readers.len() == 1 => {
                readers[0].0.table().project(columns)?.with_schema(self.schema.clone())
            }
            Kind::Tatami(files) if files.len() == 1 => {
                tercet_arrow::Table::from_file(&files[0].0, columns)?.with_schema(self.schema.clone())
            }
            _ => tercet_arrow::Table::from_annotated(&self.name(), &self.schema, &self.pairs())?,
        })
    }

    /// Passes all rows on, and rejected records of text input to `reject`; returns warnings.
    pub fn read<E: From<TableError> + Send>(
        &mut self,
        progress: &dyn Progress,
        reject: &mut dyn FnMut(Reject),
        mut each: impl FnMut(Rows) -> Result<(), E>,
    ) -> Result<Vec<(Arc<str>, String)>, E> {
        let selection = Selection { predicate: self.predicate.clone(), columns: self.columns.clone() };
        let mut warnings = Vec::new();
        let mut reported = 0;
        let counter = Arc::clone(&self.read);
        let mut go_on = |name: &Arc<str>| {
            let read = counter.load(Ordering::Relaxed);
            progress.advance(read.saturating_sub(reported));
            reported = reported.max(read);
            let cancelled = || Error::new(Arc::clone(name), ErrorKind::Cancelled(Cancelled));
            if progress.is_cancelled() { Err(TableError::Text(cancelled())) } else { Ok(()) }
        };
        match &mut self.rows {
            #[cfg(feature = "arrow")]
            Kind::Arrow(readers) => {
                for (reader, order) in readers {
                    let input = Arc::clone(reader.table().name());
                    for columns in reader.by_ref() {
                        go_on(&input)?;
                        let columns = taken(columns.map_err(TableError::from)?, order);
                        if let Some((columns, _)) = selection.apply(columns, None) {
                            each(Rows { input: Arc::clone(&input), columns, lines: None })?;
                        }
                    }
                    if reader.is_truncated() {
                        let reason = "the stream has no end marker; it may be truncated";
                        warnings.push((input, reason.to_owned()));
                    }
                }
            }
            Kind::Tatami(files) => {
                let all: Vec<usize> = (0..self.fields.len()).collect();
                let columns = self.columns.as_ref().unwrap_or(&all);
                for (file, order) in files {
                    let input = Arc::clone(file.name());
                    let columns: &[usize] = &columns.iter().map(|column| order[*column]).collect::<Vec<_>>();
                    let fitting = file.estimate_batch_rows(columns, BATCH_BYTES).min(65_536);
                    let rows = self.batch_rows.map_or(fitting, |rows| rows as u64);
                    let scan = file.scan().column_positions(columns).map_err(TableError::from)?;
                    let mut scan = scan.with_batch_rows(rows);
                    if let Some(expr) = &self.expr {
                        scan = scan.filter(expr).map_err(TableError::from)?;
                    }
                    for batch in scan.batches() {
                        go_on(&input)?;
                        let columns = batch.map_err(TableError::from)?.columns;
                        each(Rows { input: Arc::clone(&input), columns, lines: None })?;
                    }
                }
            }
            Kind::Text(table) => {
                // Columns that are not projected have no roles.
                let mut fields = self.fields.clone();
                for field in self.schema.fields() {
                    if let Some(mine) = fields.iter_mut().find(|mine| mine.name == field.name) {
                        *mine = field.clone();
                    }
                }
                let schema = Schema::new(fields).unwrap_or_else(|_| self.schema.clone());
                let done = table.read(&schema, progress, reject, |input, batch| {
                    let input = Arc::clone(input);
                    match selection.apply(batch.columns, Some(batch.lines)) {
                        Some((columns, lines)) => {
                            each(Rows { input, columns, lines }).map_err(Stopped::Consumer)
                        }
                        None => Ok(()),
                    }
                });
                done.map_err(|stopped| match stopped {
                    Stopped::Reader(error) => E::from(TableError::Text(error)),
                    Stopped::Consumer(error) => error,
                })?;
            }
        }
        Ok(warnings)
    }

    /// Whether nullability is not known in advance: all columns are declared nullable.
    pub fn has_unknown_nulls(&self) -> bool {
        matches!(&self.rows, Kind::Text(table) if table.is_sampled())
    }

    /// The rows from which the types of text input are inferred.
    pub fn sample(&self) -> Option<Sample> {
        self.text().filter(|table| !table.is_declared()).map(TextTable::sample)
    }
}

/// Why the reading of text stopped.
enum Stopped<E> {
    Reader(Error),
    Consumer(E),
}

impl<E> From<Error> for Stopped<E> {
    fn from(error: Error) -> Self {
        Self::Reader(error)
    }
}

/// Decompresses files that are read at random positions into temporary files; `None` if none is compressed.
fn unpacked(
    sources: &[Arc<dyn ByteSource>],
    format: TableFormat,
    most: u64,
    progress: &dyn Progress,
) -> Result<Option<Vec<Arc<dyn ByteSource>>>, TableError> {
    if format.is_text() {
        return Ok(None);
    }
    let mut all = Vec::with_capacity(sources.len());
    let mut is_any = false;
    for source in sources {
        let compression = detect(source)?.compression;
        is_any |= compression != Compression::None;
        all.push(match compression {
            Compression::None => Arc::clone(source),
            _ => unpack(source, compression, most, progress)?,
        });
    }
    Ok(is_any.then_some(all))
}

/// Decompresses a file into a temporary file of at most `most` bytes.
fn unpack(
    source: &Arc<dyn ByteSource>,
    compression: Compression,
    most: u64,
    progress: &dyn Progress,
) -> Result<Arc<dyn ByteSource>, TableError> {
    let name = source.name();
    let named = |kind| TableError::from(Error::new(Arc::clone(name), kind));
    let failed = |error| named(ErrorKind::Read(error));
    let (mut input, _) = decompressed(Arc::clone(source), compression).map_err(failed)?;
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut buffer = vec![0; UNPACK_LEN];
    let mut len = 0;
    loop {
        let count = match io::Read::read(&mut input, &mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        len += count as u64;
        if len > most {
            return Err(named(ErrorKind::UnpackedTooLong { limit: most }));
        }
        io::Write::write_all(&mut file, &buffer[..count]).map_err(failed)?;
        if progress.is_cancelled() {
            return Err(named(ErrorKind::Cancelled(Cancelled)));
        }
    }
    let file = source::File::from_handle(name, file);
    Ok(Arc::new(file.map_err(|error| failed(io::Error::other(error)))?))
}

/// The column of a logical type annotation.
fn annotated_column(key: &str) -> Option<&str> {
    ["arrow.type:", "arrow.metadata:", "arrow.element:"].iter().find_map(|start| key.strip_prefix(start))
}

fn other_logical_types(name: &Arc<str>, first: &Arc<str>) -> TableError {
    refused(name, &format!("logical types differ from {}", escape::name(first)))
}

/// The columns that all files have, in the order of the first file: of the same names and types, nullable if they are in one of the
/// files. For each file the positions of its columns.
fn same_columns<'a>(
    mut tables: impl Iterator<Item = (&'a Arc<str>, &'a [Field])>,
) -> Result<(Vec<Field>, Vec<ColumnOrder>), TableError> {
    let Some((first, fields)) = tables.next() else { return Ok((Vec::new(), Vec::new())) };
    let mut fields = fields.to_vec();
    let mut orders: Vec<ColumnOrder> = vec![(0..fields.len()).collect()];
    for (name, others) in tables {
        let differ = |reason: &str| refused(name, &format!("{reason} than in {}", escape::name(first)));
        if others.len() != fields.len() {
            return Err(differ("other columns"));
        }
        let positions: HashMap<&str, usize> = others.iter().map(|other| &*other.name).zip(0..).collect();
        let mut order = Vec::with_capacity(fields.len());
        for mine in &mut fields {
            let Some(at) = positions.get(&*mine.name).copied() else { return Err(differ("other columns")) };
            let other = &others[at];
            if (mine.kind, mine.element) != (other.kind, other.element) {
                return Err(differ(&format!("column `{}` has another type", escape::name(&other.name))));
            }
            mine.nullable |= other.nullable;
            order.push(at);
        }
        orders.push(order);
    }
    Ok((fields, orders))
}

/// Some columns of a batch, each at most once.
fn taken(mut batch: Vec<Column>, order: &[usize]) -> Vec<Column> {
    if order.len() == batch.len() && order.iter().enumerate().all(|(to, from)| to == *from) {
        return batch;
    }
    let empty = || Column::new(Values::Bool(Vec::new()));
    order.iter().filter_map(|at| Some(std::mem::replace(batch.get_mut(*at)?, empty()))).collect()
}

/// The filter and projection of batches.
struct Selection {
    predicate: Option<Predicate>,
    columns: Option<Vec<usize>>,
}

impl Selection {
    /// Filters and projects a batch; `None` if no row matches.
    fn apply(
        &self,
        mut batch: Vec<Column>,
        lines: Option<Vec<u64>>,
    ) -> Option<(Vec<Column>, Option<Vec<u64>>)> {
        let rows = batch.first().map_or(0, Column::len);
        let mask = self.predicate.as_ref().map(|predicate| predicate.mask(&batch));
        if let Some(columns) = &self.columns {
            // Positions are unique.
            batch = taken(batch, columns);
        }
        match mask {
            Some(mask) if mask.count() == 0 => None,
            Some(mask) if mask.count() < rows => {
                let rows: Vec<usize> = mask.positions().collect();
                let lines = lines.map(|lines| rows.iter().map(|row| lines[*row]).collect());
                Some((batch.iter().map(|column| column.take(&rows)).collect(), lines))
            }
            _ => Some((batch, lines)),
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
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, SourceError> {
        self.read.fetch_add(span.len(), Ordering::Relaxed);
        self.source.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.source.read_into(start, out)
    }
    fn read_many(&self, spans: &[Span]) -> Result<Vec<bytes::Bytes>, SourceError> {
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
