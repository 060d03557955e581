//! Tables of any format into one of any format: the engine of `create` and `convert`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::convert::tables::{
    self, Dialect, Reject, Rows, Sample, SortError, Table, TableError, TableOptions,
};
use tercet::core::Sink as _;
use tercet::core::progress::NoProgress;
use tercet::core::{ByteSource, Progress, escape};
use tercet::tatami::{Collection, Field, LogicalType, Type};

use super::collection_scan;
use super::columns::{Columns, no_column};
use super::create::options::{Text, WriteArgs};
use super::create::roles::Roles;
use super::create::schema::Declared;
use super::filter::{Where, bind_failure};
use super::layout::Layout;
use crate::failure::Failure;
use crate::input::Input;
use crate::many::table_files;
use crate::output::{Output, atomic_file, display_path};
use crate::ui::{Ui, WARN, paint};

pub(super) mod format;
mod target;

use format::Format;
pub(super) use target::Counts;
use target::Target;

/// Batch size of the reference implementation, which ends row groups at batch boundaries only.
#[cfg(feature = "arrow")]
const INTEROP_BATCH_ROWS: usize = 4096;

/// What to read and how.
pub(super) struct Request<'a> {
    pub(super) from: &'a [PathBuf],
    pub(super) from_format: Option<Format>,
    pub(super) to: Format,
    pub(super) write: &'a WriteArgs,
    pub(super) text: &'a Text,
    pub(super) filter: &'a Where,
    pub(super) columns: &'a Columns,
    pub(super) declared: Option<&'a Declared>,
    pub(super) roles: &'a Roles,
    pub(super) layout: &'a Layout,
    #[cfg(feature = "arrow")]
    pub(super) timestamps: tercet::arrow::Timestamps,
    /// Text output has stored values.
    pub(super) stored: bool,
    pub(super) batch: Option<usize>,
}

/// What was written.
pub(super) struct Done {
    pub(super) inputs: Vec<String>,
    pub(super) from: Format,
    pub(super) input_bytes: u64,
    pub(super) counts: Counts,
    pub(super) rejected: u64,
}

/// The result of `--dry-run`.
#[derive(Debug, Serialize)]
struct PlanJson {
    inputs: Vec<String>,
    format: Format,
    /// The rows from which types are inferred; all if absent.
    sample_rows: Option<u64>,
    dialects: Vec<DialectJson>,
    columns: Vec<PlanColumn>,
}

#[derive(Debug, Serialize)]
struct DialectJson {
    input: String,
    delimiter: String,
    quote: Option<String>,
    header: bool,
    decimal_comma: bool,
}

#[derive(Debug, Serialize)]
struct PlanColumn {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    nullable: bool,
}

/// Reads the inputs and writes the output; `None` for a dry run.
pub(super) fn run(request: &Request<'_>, output: Output, out: &mut Ui) -> Result<Option<Done>, Failure> {
    let Opened { mut table, from, inputs, input_bytes } = open(request, &output, out)?;
    for (name, warning) in table.warnings() {
        out.note(format_args!("{} {}: {warning}", paint(WARN, "warning:"), escape::name(&name)))?;
    }
    if request.text.dry_run {
        select(&mut table, request, from, out)?;
        plan(&table, from, inputs, request.write.json.json, out)?;
        return Ok(None);
    }
    note_dialects(&table, out)?;
    loop {
        select(&mut table, request, from, out)?;
        let mut rejects = Rejects::new(request.text.rejects.as_deref(), request.write.force.force)?;
        match transfer(&mut table, request, &output, &mut rejects, out) {
            Ok((target, warnings)) => {
                let counts = target.finish(output, out)?;
                for warning in warnings.into_iter().chain(counts.warnings.iter().cloned()) {
                    out.note(warning)?;
                }
                let rejected = rejects.finish(out)?;
                return Ok(Some(Done { inputs, from, input_bytes, counts, rejected }));
            }
            // The types of the sample do not hold all values. The incomplete output is discarded.
            Err(Stopped::Table(error)) if error.is_outside_sample() => {
                let bar = out.bar("inferring", input_bytes);
                table.infer_all(&bar)?;
            }
            Err(Stopped::Table(error)) => return Err(explained(error, request)),
            Err(Stopped::Failure(failure)) => return Err(failure),
        }
    }
}

/// The opened input.
struct Opened {
    table: Table,
    from: Format,
    inputs: Vec<String>,
    input_bytes: u64,
}

/// Opens the inputs as one table.
fn open(request: &Request<'_>, output: &Output, out: &mut Ui) -> Result<Opened, Failure> {
    if let Some(opened) = open_collection(request, output, out)? {
        return Ok(opened);
    }
    for path in request.from {
        output.must_not_be(path)?;
    }
    let input = |path: &Path| {
        output.must_not_be(path)?;
        Ok(request.write.input(path))
    };
    let (sources, from) = sources(request.from, input, request.from_format, request.declared.is_some())?;
    if request.declared.is_some() && !from.is_text() {
        return Err(Failure::request("`--schema` applies to CSV and JSONL input only"));
    }
    let options = options(request, from)?;
    let input_bytes = sources.iter().map(ByteSource::len).sum();
    let bar = request.declared.is_none().then(|| out.bar("inferring", input_bytes));
    let progress: &dyn Progress = bar.as_ref().map_or(&NoProgress, |bar| bar);
    let opened = Table::open(&sources, from.in_library(), &options, progress);
    drop(bar);
    let table = opened.map_err(|error| explained(error, request))?;
    let inputs = sources.iter().map(|source| source.name().to_string()).collect();
    Ok(Opened { table, from, inputs, input_bytes })
}

/// Opens the files that paths name, all of one format.
pub(super) fn sources(
    paths: &[PathBuf],
    input: impl Fn(&Path) -> Result<Input, Failure>,
    format: Option<Format>,
    has_schema: bool,
) -> Result<(Vec<Arc<dyn ByteSource>>, Format), Failure> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(table_files(path)?);
    }
    let is_many = files.len() > 1;
    let mut sources: Vec<Arc<dyn ByteSource>> = Vec::new();
    for path in &files {
        let input = input(path)?;
        sources.push(if is_many { input.one_of_many()? } else { input.source()? });
    }
    let Some(first) = sources.first() else { return Err(Failure::request("no input files")) };
    let from = Format::detect(format, first, has_schema)?;
    for source in &sources[1..] {
        let other = Format::detect(format, source, has_schema)?;
        if other != from {
            let (name, first) = (escape::name(source.name()), escape::name(first.name()));
            let (one, two) = (other.name(), from.name());
            return Err(Failure::request(format!("{name}: is {one}, but {first} is {two}")));
        }
    }
    Ok((sources, from))
}

/// Opens a collection, whose manifest names the files and their deleted rows; `None` for other inputs.
fn open_collection(request: &Request<'_>, output: &Output, out: &mut Ui) -> Result<Option<Opened>, Failure> {
    let Some(path) = request.from.iter().find(|path| is_collection(path)) else { return Ok(None) };
    if request.from.len() > 1 {
        let reason = format!("{}: a collection must be the only input", display_path(path));
        return Err(Failure::request(reason));
    }
    output.must_not_be(path)?;
    if request.declared.is_some() {
        return Err(Failure::request("`--schema` applies to CSV and JSONL input only"));
    }
    let Some(collection) = collection_scan::collection(&request.write.input(path), out)? else {
        return Ok(None);
    };
    let files = collection.members().iter().map(|member| collection.open_member(member));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() {
        return Err(Failure::request(format!("{}: the collection has no files", display_path(path))));
    }
    let table = Table::from_files(files, &options(request, Format::Tatami)?)?;
    let inputs = vec![collection_scan::name(path)];
    Ok(Some(Opened { table, from: Format::Tatami, inputs, input_bytes: collection.bytes() }))
}

/// Whether a path is a directory with a manifest, even a damaged one.
fn is_collection(path: &Path) -> bool {
    crate::input::is_local(path)
        && path.is_dir()
        && Collection::open(path).map_or(true, |collection| collection.manifest_path().exists())
}

/// The options of the library.
fn options(request: &Request<'_>, from: Format) -> Result<TableOptions, Failure> {
    let mut only = request.columns.names()?;
    if let (Some(names), Some(filter)) = (&mut only, request.filter.text()) {
        names.extend(filter.parsed()?.expr().columns().into_iter().map(str::to_owned));
    }
    let mut options = TableOptions::new()
        .with_text(request.text.options(from, only.clone())?)
        .with_declared(request.declared.map(Declared::columns))
        .with_batch_rows(request.batch);
    #[cfg(feature = "arrow")]
    {
        let into_tatami = request.to == Format::Tatami;
        let is_interop = into_tatami && request.layout.is_interop();
        let roles =
            if into_tatami { request.roles.for_table()? } else { tercet::arrow::ColumnOptions::none() };
        let arrow = tercet::arrow::Options::new()
            .with_column_options(roles)
            .with_timestamps(request.timestamps)
            .with_interop(is_interop)
            .with_columns(only);
        let batch = request.batch.or(is_interop.then_some(INTEROP_BATCH_ROWS));
        options = options.with_arrow(arrow).with_batch_rows(batch);
    }
    Ok(options)
}

/// Applies filter, projection and roles.
fn select(table: &mut Table, request: &Request<'_>, from: Format, out: &mut Ui) -> Result<(), Failure> {
    let name = table.name();
    if let Some(filter) = request.filter.text() {
        let parsed = filter.parsed()?;
        if let Err(wrong) = table.filter(&parsed) {
            let failure = bind_failure(&name, filter.as_str(), &wrong.0, &wrong.1);
            let names = table.names(&out.bar("reading names", 0));
            let is_there = |column: &&str| names.iter().any(|name| name == column);
            // Only some columns of the file are read.
            return Err(
                if parsed.expr().columns().iter().all(is_there) || request.columns.names()?.is_none() {
                    failure
                } else {
                    failure.with_hint(super::columns::listed(&names))
                },
            );
        }
    }
    if let Some(names) = request.columns.names()?
        && let Err(missing) = table.project(&names)
    {
        return Err(no_column(&name, &missing, &table.names(&out.bar("reading names", 0))));
    }
    if request.to == Format::Tatami && (from.is_text() || from == Format::Tatami) {
        let mut fields = table.schema().fields().to_vec();
        let schema = if from.is_text() {
            let schema = request.roles.apply(fields.clone())?;
            // Text that is stored as a blob stays text.
            for (before, after) in fields.iter().zip(schema.fields()) {
                if before.kind == Type::String && after.kind == Type::BlobRef {
                    table.annotate(LogicalType::key(&before.name), "string".to_owned());
                }
            }
            schema
        } else {
            with_roles(&name, &mut fields, request.roles)?;
            tercet::tatami::Schema::new(fields).map_err(|error| Failure::request(error.to_string()))?
        };
        table.set_schema(schema);
    }
    if let Some(key) = request.roles.sort()
        && table.schema().index_of(key).is_none()
    {
        let failure = Failure::request(format!("`--sort {}`: no such column", escape::name(key)));
        let names: Vec<String> = table.schema().fields().iter().map(|field| field.name.to_string()).collect();
        return Err(failure.with_hint(super::columns::listed(&names)));
    }
    Ok(())
}

#[cfg(feature = "arrow")]
fn with_roles(name: &std::sync::Arc<str>, fields: &mut [Field], roles: &Roles) -> Result<(), Failure> {
    Ok(roles.for_table()?.apply_explicit(name, fields)?)
}

#[cfg(not(feature = "arrow"))]
fn with_roles(_: &std::sync::Arc<str>, fields: &mut Vec<Field>, roles: &Roles) -> Result<(), Failure> {
    *fields = roles.apply(fields.clone())?.fields().to_vec();
    Ok(())
}

/// Why the transfer stopped.
enum Stopped {
    Table(TableError),
    Failure(Failure),
}

impl From<TableError> for Stopped {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<SortError> for Stopped {
    fn from(error: SortError) -> Self {
        Self::Failure(match error {
            SortError::Run(error) => error.into(),
            error => Failure::from_error(&error),
        })
    }
}

/// Writes the rows of the table, sorted if requested.
fn transfer(
    table: &mut Table,
    request: &Request<'_>,
    output: &Output,
    rejects: &mut Rejects,
    out: &mut Ui,
) -> Result<(Target, Vec<String>), Stopped> {
    let logical_types = logical_types(request, table);
    let force = request.write.force.force;
    let mut target = Target::create(output, request.to, table, &logical_types, request.layout, force)?;
    let sort = request.roles.sort().and_then(|key| table.schema().index_of(key));
    let bar = out.bar("writing", table.input_bytes());
    let mut reject = |rejected: Reject| rejects.add(&rejected);
    let push = |rows: Rows| Ok::<_, Stopped>(target.push(&rows)?);
    let warnings = tables::transfer(table, sort, Target::directory(output), &bar, &mut reject, push)?;
    let warning = |(name, reason): (std::sync::Arc<str>, String)| {
        format!("{} {}: {reason}", paint(WARN, "warning:"), escape::name(&name))
    };
    Ok((target, warnings.into_iter().map(warning).collect()))
}

/// The logical types of columns in text output.
fn logical_types(request: &Request<'_>, table: &Table) -> Vec<Option<LogicalType>> {
    let fields = table.schema().fields();
    if request.stored {
        return vec![None; fields.len()];
    }
    let noted = LogicalType::for_fields(fields, &table.pairs());
    // Raw numbers have an unknown unit.
    #[cfg(feature = "arrow")]
    let is_raw = request.timestamps == tercet::arrow::Timestamps::Raw;
    #[cfg(not(feature = "arrow"))]
    let is_raw = false;
    let natural =
        |field: &Field| (field.scalar() == Type::TimestampMicros && !is_raw).then_some(LogicalType::UTC);
    noted.into_iter().zip(fields).map(|(noted, field)| noted.or_else(|| natural(field))).collect()
}

/// Adds a hint to errors about columns.
fn explained(error: TableError, request: &Request<'_>) -> Failure {
    #[cfg(feature = "arrow")]
    if let TableError::Arrow(error) = error {
        return explained_arrow(error, request);
    }
    if let TableError::Text(text) = &error
        && let tercet::convert::tables::ErrorKind::NoSuchColumns(columns) = text.kind()
        && let Ok(Some(names)) = request.columns.names()
        && let Some(missing) = names.first()
    {
        return no_column(text.location(), missing, columns);
    }
    let is_other_encoding = error.to_string().contains("invalid UTF-8");
    let failure = Failure::from(error);
    if is_other_encoding { failure.with_hint("set the encoding: `--encoding windows-1252`") } else { failure }
}

/// Adds a hint to errors about unsupported types.
#[cfg(feature = "arrow")]
fn explained_arrow(error: tercet::arrow::Error, request: &Request<'_>) -> Failure {
    use tercet::arrow::ErrorKind;
    use tercet::core::Class;

    if let ErrorKind::NoSuchColumns { columns } = error.kind()
        && let Ok(Some(names)) = request.columns.names()
        && let Some(missing) = names.first()
    {
        return no_column(error.location(), missing, columns);
    }
    let ErrorKind::UnsupportedTypes { columns } = error.kind() else { return error.into() };
    let is_list = |kind: &str| kind.starts_with("list of ");
    if request.layout.is_interop() && columns.iter().all(|column| is_list(&column.type_name)) {
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

/// A dialect in words, without what is usual.
fn dialect_words(dialect: &Dialect) -> Vec<String> {
    let mut words = Vec::new();
    match dialect.delimiter {
        b',' => {}
        b'\t' => words.push("tabs".to_owned()),
        delimiter => words.push(format!("delimiter `{}`", escape::name(&char::from(delimiter).to_string()))),
    }
    match dialect.quote {
        Some(b'"') => {}
        Some(quote) => words.push(format!("quote `{}`", escape::name(&char::from(quote).to_string()))),
        None => words.push("no quotes".to_owned()),
    }
    if !dialect.has_header {
        words.push("no header".to_owned());
    }
    if dialect.has_decimal_comma {
        words.push("decimal comma".to_owned());
    }
    words
}

/// Notes files without a header, which are easily taken for others.
fn note_dialects(table: &Table, out: &mut Ui) -> Result<(), Failure> {
    let Some(text) = table.text().filter(|text| !text.is_declared()) else { return Ok(()) };
    for (name, dialect) in text.dialects() {
        if !dialect.has_header {
            let words = dialect_words(dialect).join(", ");
            out.note(format_args!("note: {}: {words}; columns are column0, column1, …", escape::name(name)))?;
        }
    }
    Ok(())
}

/// Prints what would be read.
fn plan(table: &Table, from: Format, inputs: Vec<String>, json: bool, out: &mut Ui) -> Result<(), Failure> {
    let logical_types = LogicalType::for_fields(table.schema().fields(), &table.pairs());
    let kind = |field: &Field, logical: &Option<LogicalType>| {
        let kind = logical.map_or_else(|| field.scalar().name().to_owned(), |logical| logical.to_string());
        if field.kind == Type::List { format!("list of {kind}") } else { kind }
    };
    let columns = table.schema().fields().iter().zip(&logical_types).map(|(field, logical)| PlanColumn {
        name: field.name.to_string(),
        kind: kind(field, logical),
        nullable: field.nullable,
    });
    let columns: Vec<PlanColumn> = columns.collect();
    let sample_rows = match table.sample() {
        Some(Sample::Rows(rows)) => Some(rows),
        _ => None,
    };
    let dialects: Vec<_> = table.text().map(|text| text.dialects().collect()).unwrap_or_default();
    if json {
        let letter = |byte: u8| char::from(byte).to_string();
        let dialects = dialects.iter().map(|(name, dialect)| DialectJson {
            input: name.to_string(),
            delimiter: letter(dialect.delimiter),
            quote: dialect.quote.map(letter),
            header: dialect.has_header,
            decimal_comma: dialect.has_decimal_comma,
        });
        let dialects = dialects.collect();
        return out.json(&PlanJson { inputs, format: from, sample_rows, dialects, columns });
    }
    for input in &inputs {
        let words =
            dialects.iter().find(|(name, _)| ***name == **input).map(|(_, found)| dialect_words(found));
        let words = words
            .filter(|words| !words.is_empty())
            .map_or_else(String::new, |words| format!(", {}", words.join(", ")));
        out.line(format_args!("{}: {}{words}", escape::name(input), from.name()))?;
    }
    let width = columns.iter().map(|column| escape::name(&column.name).chars().count()).max().unwrap_or(0);
    for column in &columns {
        let nullable = if column.nullable { ", nullable" } else { "" };
        out.line(format_args!("  {:<width$}  {}{nullable}", escape::name(&column.name), column.kind))?;
    }
    if let Some(rows) = sample_rows {
        out.line(format_args!("types are inferred from the first {rows} rows; later values may widen them"))?;
    }
    Ok(())
}

/// Rejected records.
struct Rejects {
    count: u64,
    kept: u64,
    first: Vec<String>,
    file: Option<std::io::BufWriter<tercet::core::publish::AtomicFile>>,
    path: String,
    error: Option<std::io::Error>,
}

/// A rejected record in the file of `--rejects`.
#[derive(Serialize)]
struct RejectJson<'a> {
    input: &'a str,
    line: u64,
    reason: &'a str,
    text: &'a str,
}

impl Rejects {
    const SHOWN: usize = 5;

    fn new(path: Option<&Path>, force: bool) -> Result<Self, Failure> {
        let file = path.map(|path| atomic_file(path, force).map(std::io::BufWriter::new)).transpose()?;
        let path = path.map(display_path).unwrap_or_default();
        Ok(Self { count: 0, kept: 0, first: Vec::new(), file, path, error: None })
    }

    fn add(&mut self, reject: &Reject) {
        if reject.is_kept {
            self.kept += 1;
        } else {
            self.count += 1;
        }
        if self.first.len() < Self::SHOWN {
            self.first.push(format!(
                "{}: line {}: {}",
                escape::name(&reject.input),
                reject.line,
                reject.reason
            ));
        }
        if let Some(file) = self.file.as_mut().filter(|_| self.error.is_none()) {
            let Reject { input, line, reason, text, .. } = reject;
            let json = serde_json::to_string(&RejectJson { input, line: *line, reason, text });
            let line = json.unwrap_or_default();
            self.error = writeln!(file, "{line}").err();
        }
    }

    /// Reports the records and publishes the file; returns their number.
    fn finish(self, out: &mut Ui) -> Result<u64, Failure> {
        let Self { count, kept, first, file, path, error } = self;
        if let Some(file) = file {
            let failed = |error: std::io::Error| Failure::io(&path, &error);
            if let Some(error) = error {
                return Err(failed(error));
            }
            let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
            drop(file.finish().map_err(failed)?);
        }
        if count + kept == 0 {
            return Ok(0);
        }
        let mut words = Vec::new();
        if count > 0 {
            words.push(format!("{count} row{} rejected", if count == 1 { "" } else { "s" }));
        }
        if kept > 0 {
            words.push(format!("{kept} value{} replaced by null", if kept == 1 { "" } else { "s" }));
        }
        out.note(format_args!("{} {}", paint(WARN, "warning:"), words.join(", ")))?;
        for line in &first {
            out.note(format_args!("  {line}"))?;
        }
        if count + kept > first.len() as u64 {
            out.note("  …")?;
        }
        Ok(count + kept)
    }
}
