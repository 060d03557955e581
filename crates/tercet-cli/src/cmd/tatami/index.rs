//! `tatami index`: index documents into a search segment.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use tercet::convert::documents::{
    self, Columns, Document, DocumentFile, DocumentFormat, DocumentOptions, DocumentReport, ErrorKind,
    FieldNames, FileFilter, Files, UpdateOptions, UpdateReport,
};
use tercet::core::num::counted;
use tercet::core::{Sink, escape};
use tercet::tatami::search::build::Built;
use tercet::tatami::search::{
    Analyzer, AnalyzerChoice, SegmentBuilder, SegmentOptions, StorageMode, UnknownAnalyzer,
};
use tercet::tatami::{Field, LogicalType};

use super::layout::Layout;
use crate::args::{ForceArgs, JsonArgs, ProfileName};
use crate::failure::{Failure, Outcome};
use crate::input::{binary_format, head, must_be_local, must_be_on_disk, must_be_text};
use crate::output::{Output, Spool, deliver, display_path};
use crate::render::{human_size, parse_size};
use crate::ui::{Bar, Ui, WARN, paint};

const EXAMPLES: &str = "\
Examples:
  tatami index docs/ -o docs.tatami
  tatami index notes.md page.html -o few.tatami --url-prefix https://example.org/
  tatami index crawl.jsonl -o crawl.tatami --snippet-only
  tatami index articles.jsonl -o articles.tatami --url-field link --body-field text
  tatami index pages.parquet -o pages.tatami --body-field markdown
  tatami index crawl -o pages.tatami           a collection
  tatami index docs/ -o segments/ --update     index what changed since the last update, and delete what is gone

The file type follows the extension: .txt, .md, .html, .jsonl, .trec, .parquet, .arrow and .tatami, or --format. Directories are \
searched recursively, in the order of file names, without hidden files, files that a .gitignore excludes, and .tatami files, except for \
the members of a collection; files that \
cannot be read are reported and skipped. Files with gzip and Zstandard compression are decompressed. Text in another encoding than UTF-8 \
is decoded: as declared in HTML, else by a guess, which is reported.

Other fields of JSONL and other columns are kept as typed columns: for filters, facets and sorting.

The URL of a document is --url-prefix followed by its path in the directory, or with the directory if several are given. Its ID is the SHA-256 of the URL, unless \
the JSONL line, Parquet row or TREC document has an ID.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Input directories and files
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// Output file or URL; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Store only the first N characters of each document [default N: 200]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "200")]
    snippet_only: Option<usize>,
    /// File type [default: by extension]
    #[arg(long, value_name = "KIND", value_enum)]
    format: Option<Kind>,
    /// Action for a file or document that cannot be read [default: stop for named files, skip in directories]
    #[arg(long, value_name = "ACTION", value_enum)]
    on_error: Option<OnErrorName>,
    /// Fail at the first file or document that cannot be read; the same as `--on-error stop`
    #[arg(long, conflicts_with = "on_error")]
    strict: bool,
    /// Update a directory of segments: index new and changed documents, and delete those that are gone
    #[arg(long, conflicts_with = "force")]
    update: bool,
    /// Prefix of document URLs
    #[arg(long, value_name = "TEXT", default_value = "")]
    url_prefix: String,
    /// Analyzer of documents and queries: `auto` (language of the first documents), `plain` (the tokens of the format specification), `standard` (no
    /// stemming), or a language such as `english` [default: auto; plain with `--profile interop`]
    #[arg(long, visible_alias = "language", value_name = "NAME")]
    analyzer: Option<String>,
    /// Store the positions of terms: faster phrase queries, larger files
    #[arg(long, conflicts_with = "snippet_only")]
    positions: bool,
    /// Indexing buffer; spills to temporary files beyond this size
    #[arg(long, alias = "memory", value_name = "SIZE", default_value = "128MiB", value_parser = parse_size)]
    buffer: u64,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    // Last: its heading also applies to the options after it.
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    layout: Layout,
}

/// Warnings about skipped files and documents that are printed.
const MAX_SKIPPED: usize = 10;

/// The type of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Plain text, one document
    Text,
    /// Markdown, one document with its first heading as title
    Markdown,
    /// HTML, one document
    Html,
    /// JSON Lines, one document per line
    Jsonl,
    /// TREC, documents between <DOC> and </DOC>
    Trec,
    /// Parquet, one document per row
    #[cfg(feature = "arrow")]
    Parquet,
    /// Arrow IPC, one document per row
    #[cfg(feature = "arrow")]
    Arrow,
    /// .tatami, one document per row
    Tatami,
}

impl From<Kind> for DocumentFormat {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Markdown => Self::Markdown,
            Kind::Html => Self::Html,
            Kind::Jsonl => Self::Jsonl,
            Kind::Trec => Self::Trec,
            #[cfg(feature = "arrow")]
            Kind::Parquet => Self::Parquet,
            #[cfg(feature = "arrow")]
            Kind::Arrow => Self::Arrow,
            Kind::Tatami => Self::Tatami,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnErrorName {
    /// Fail at the first one
    Stop,
    /// Skip and report it
    Skip,
}

/// The files of directories.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files of directories")]
struct FilterArgs {
    /// Index only files that match, with the rules of .gitignore. Repeatable
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Skip files and directories that match. Repeatable
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Index hidden files
    #[arg(long)]
    hidden: bool,
    /// Index files that a .gitignore or .ignore file excludes
    #[arg(long)]
    no_ignore: bool,
}

/// The field names of a document. Given names must exist.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fields of JSONL, columns of tables")]
struct Names {
    /// ID field [default: `doc_id` or `id`, if present]
    #[arg(long, value_name = "NAME")]
    id_field: Option<String>,
    /// URL field
    #[arg(long, value_name = "NAME", help = "URL field [default: url]")]
    url_field: Option<String>,
    /// Title field
    #[arg(long, value_name = "NAME", help = "Title field [default: title]")]
    title_field: Option<String>,
    /// Body field [default: body, text or contents]
    #[arg(long, value_name = "NAME")]
    body_field: Option<String>,
    /// Anchor text field
    #[arg(
        long,
        value_name = "NAME",
        help = "Anchor text of inbound links; indexed, not stored [default: anchor]"
    )]
    anchor_field: Option<String>,
    /// Do not keep this field as a column; repeatable
    #[arg(long, value_name = "NAME")]
    skip_field: Vec<String>,
    /// Keep no other fields as columns
    #[arg(long)]
    no_fields: bool,
}

/// The summary of a written segment.
#[derive(Debug, Serialize)]
struct IndexJson {
    path: String,
    documents: u64,
    terms: u64,
    analyzer: &'static str,
    bytes: u64,
    input_bytes: u64,
    /// The columns of other fields.
    columns: Vec<ColumnJson>,
    /// Skipped files of directories.
    files_skipped: u64,
    /// Files and documents that could not be read.
    problems: u64,
}

#[derive(Debug, Serialize)]
struct ColumnJson {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The summary of an update.
#[derive(Debug, Serialize)]
struct UpdateJson {
    path: String,
    added: u64,
    changed: u64,
    unchanged: u64,
    deleted: u64,
    kept: u64,
    documents: u64,
    segments: u64,
    bytes: u64,
    merged_segments: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_again: Option<&'static str>,
    files_skipped: u64,
    problems: u64,
}

/// Updates a directory of segments.
fn update(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    must_be_on_disk(&args.output, "update")?;
    let files = args.files()?;
    let bar = out.bar("indexing", files.found.iter().map(|file| file.bytes).sum());
    let (documents, columns) = args.documents(&files.found, &bar)?;
    let SegmentOptions { mode, writer, analyzer, .. } = args.options(&Columns::none())?;
    let options = UpdateOptions::new(documents)
        .with_mode(mode)
        .with_writer(writer)
        .with_analyzer(analyzer)
        .with_memory_bytes(args.buffer)
        .with_positions(args.positions);
    let report: UpdateReport = documents::update::<Failure>(&args.output, &files, &options, &bar)?;
    drop(bar);
    let summary = UpdateJson {
        path: display_path(&args.output),
        added: report.added,
        changed: report.changed,
        unchanged: report.unchanged,
        deleted: report.deleted,
        kept: report.kept,
        documents: report.documents,
        segments: report.segments,
        bytes: report.bytes,
        merged_segments: report.merged,
        indexed_again: report.rebuilt,
        files_skipped: files.unsupported + files.filtered + files.skipped.len() as u64,
        problems: report.read.skipped,
    };
    if args.json.json {
        out.json(&summary)?;
    } else {
        out.summary(format_args!(
            "{}: {} added, {} changed, {} unchanged, {} deleted; {} in {}, {}",
            summary.path,
            summary.added,
            summary.changed,
            summary.unchanged,
            summary.deleted,
            counted(summary.documents, "document"),
            counted(summary.segments, "segment"),
            human_size(summary.bytes),
        ))?;
        show_skipped(&files, out)?;
    }
    if let Some(reason) = report.rebuilt {
        out.note(format_args!("all documents were indexed again: {reason}"))?;
    }
    if report.kept > 0 {
        let kept = counted(report.kept, "missing document");
        out.note(format_args!("{kept} kept, because not all files could be read"))?;
    }
    warn(&files, &report.read, &columns, out)?;
    Ok(Outcome::Done)
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.update {
        return update(args, out);
    }
    let output = Output::open(&args.output, args.force.force)?;
    output.reserve_stdout(out)?;
    let files = args.files()?;
    let input_bytes = files.found.iter().map(|file| file.bytes).sum();
    let bar = out.bar("indexing", input_bytes);
    let name = output.name();
    let (reading, columns) = args.documents(&files.found, &bar)?;
    let options = args.options(&columns)?;
    let (report, documents, terms, analyzer, bytes) = if let Output::Path(path) = &output {
        let builder = SegmentBuilder::create(path, options.with_overwrite(args.force.force))?;
        let (report, Built { written, terms, analyzer, .. }) = build(builder, &files.found, &reading, &bar)?;
        (report, written.rows, terms, analyzer, written.bytes)
    } else {
        let builder = SegmentBuilder::new(Spool::new()?, options)?;
        let (report, Built { written, terms, analyzer, .. }) = build(builder, &files.found, &reading, &bar)?;
        (report, written.rows, terms, analyzer, deliver(written.output, output, out)?)
    };
    drop(bar);
    let summary = IndexJson {
        path: name,
        documents,
        terms,
        analyzer: analyzer.name(),
        bytes,
        input_bytes,
        columns: reading
            .columns
            .fields
            .iter()
            .map(|field| {
                let logical_type = LogicalType::for_field(field, &reading.columns.annotations);
                ColumnJson { name: field.name.to_string(), kind: type_name(field, logical_type) }
            })
            .collect(),
        files_skipped: files.unsupported + files.filtered + files.skipped.len() as u64,
        problems: report.skipped,
    };
    show(&summary, &files, args.json.json, out)?;
    warn(&files, &report, &columns, out)?;
    Ok(Outcome::Done)
}

impl Args {
    /// Finds the input files.
    fn files(&self) -> Result<Files, Failure> {
        let directories = self.inputs.iter().filter(|input| input.is_dir()).count();
        let filter = &self.filter;
        let filter = FileFilter::new()
            .with_patterns(filter.include.clone(), filter.exclude.clone())
            .with_all(filter.hidden, filter.no_ignore);
        let mut files = Files::new().with_directories(directories > 1).with_filter(filter);
        for input in &self.inputs {
            must_be_local(input, "index")?;
            files.add(input, self.format.map(Into::into), binary_format).map_err(|error| {
                let binary =
                    matches!(error.kind(), ErrorKind::Binary(_)).then(|| head(input, tercet::HEAD_LEN));
                // Its error names the command that reads the file.
                match binary.flatten().map(|head| must_be_text(&input.to_string_lossy(), &head, "a document"))
                {
                    Some(Err(failure)) => failure,
                    _ => error.into(),
                }
            })?;
        }
        let found = files.found.len();
        files.found.retain(|file| file.is_named || file.path != self.output);
        files.unsupported += (found - files.found.len()) as u64;
        files.check_names()?;
        Ok(files)
    }

    /// How documents are read, and the columns that were found; those of the options are kept.
    fn documents(&self, files: &[DocumentFile], bar: &Bar) -> Result<(DocumentOptions, Columns), Failure> {
        let names = &self.names;
        let mut fields = FieldNames::new();
        fields.id.clone_from(&names.id_field);
        fields.url.clone_from(&names.url_field);
        fields.title.clone_from(&names.title_field);
        fields.body.clone_from(&names.body_field);
        fields.anchor.clone_from(&names.anchor_field);
        let on_error = match (self.on_error, self.strict) {
            (Some(OnErrorName::Stop), _) | (None, true) => Some(documents::OnError::Stop),
            (Some(OnErrorName::Skip), _) => Some(documents::OnError::Skip),
            (None, false) => None,
        };
        let mut columns = if names.no_fields {
            Columns::none()
        } else {
            Columns::infer(files, &fields, &names.skip_field, bar)?
        };
        let mut kept = columns.clone();
        if self.layout.profile() == ProfileName::Interop {
            kept = Columns::none();
            columns.drop_all("`--profile interop` writes no columns for fields");
        }
        let options = DocumentOptions::new()
            .with_url_prefix(&self.url_prefix)
            .with_fields(fields)
            .with_on_error(on_error)
            .with_columns(kept);
        Ok((options, columns))
    }

    fn options(&self, columns: &Columns) -> Result<SegmentOptions, Failure> {
        let mut writer = self.layout.options()?;
        for (key, value) in &columns.annotations {
            writer = writer.with_metadata(key, value);
        }
        let mode = self.snippet_only.map_or(StorageMode::Full, StorageMode::Snippet);
        let analyzer = match (self.analyzer.as_deref(), self.layout.profile()) {
            (None, ProfileName::Interop) => AnalyzerChoice::Fixed(Analyzer::PLAIN),
            (None | Some("auto"), _) => AnalyzerChoice::Auto,
            (Some(name), _) => {
                let parsed = name.parse();
                AnalyzerChoice::Fixed(
                    parsed.map_err(|error: UnknownAnalyzer| Failure::request(error.to_string()))?,
                )
            }
        };
        let options = documents::segment_options(mode, writer).with_memory_bytes(self.buffer);
        let fields = columns.fields.clone();
        Ok(options.with_analyzer(analyzer).with_positions(self.positions).with_fields(fields))
    }
}

/// Indexes all files.
fn build<S: Sink + Send>(
    mut builder: SegmentBuilder<S>,
    files: &[DocumentFile],
    reading: &DocumentOptions,
    bar: &Bar,
) -> Result<(DocumentReport, Built<S::Output>), Failure> {
    let report = documents::read(files, reading, bar, |document: &Document| {
        Ok::<_, Failure>(builder.add(&document.into())?)
    })?;
    Ok((report, builder.finish()?))
}

/// The type of a column, with that of list elements.
fn type_name(field: &Field, logical_type: Option<LogicalType>) -> String {
    let kind =
        logical_type.map_or_else(|| field.scalar().to_string(), |logical_type| logical_type.to_string());
    match field.element {
        Some(_) => format!("list of {kind}"),
        None => kind,
    }
}

/// Prints what was skipped, guessed or is missing.
fn warn(files: &Files, report: &DocumentReport, columns: &Columns, out: &mut Ui) -> Result<(), Failure> {
    let warning = paint(WARN, "warning:");
    for field in columns.dropped.iter().take(MAX_SKIPPED) {
        out.note(format_args!("{warning} not kept as a column: {field}"))?;
    }
    if let Some(more @ 1..) = columns.dropped.len().checked_sub(MAX_SKIPPED) {
        out.note(format_args!("{warning} not kept as columns: {}", counted(more as u64, "more field")))?;
    }
    for error in files.skipped.iter().chain(&report.problems).take(MAX_SKIPPED) {
        out.note(format_args!("{warning} skipped {error}"))?;
    }
    let skipped = files.skipped.len() as u64 + report.skipped;
    if let Some(more @ 1..) = skipped.checked_sub(MAX_SKIPPED as u64) {
        let more = counted(more, "more file or document").replace("file or documents", "files or documents");
        out.note(format_args!("{warning} skipped {more}"))?;
    }
    match report.duplicates {
        0 => {}
        1 => out.note(format_args!("{warning} 1 document has the ID of an earlier document"))?,
        count => out.note(format_args!("{warning} {count} documents have the ID of an earlier document"))?,
    }
    for (name, documents) in &report.no_text {
        let (plural, have) = if *documents == 1 { ("", "has") } else { ("s", "have") };
        out.note(format_args!(
            "{documents} document{plural} of {} {have} no text: no field `body`, `text` or `contents`; \
             set the field with `--body-field`",
            escape::name(name)
        ))?;
    }
    for (name, encoding) in report.guessed.iter().take(MAX_SKIPPED) {
        let name = escape::name(name);
        out.note(format_args!("{name}: no declared encoding and not UTF-8; read as {encoding} by a guess"))?;
    }
    if let Some(more @ 1..) = report.guessed.len().checked_sub(MAX_SKIPPED) {
        out.note(format_args!("{} in a guessed encoding", counted(more as u64, "more file")))?;
    }
    match report.invalid_bytes {
        0 => Ok(()),
        1 => out.note("1 file has bytes that are invalid in its encoding; they are not indexed"),
        count => out.note(format_args!(
            "{count} files have bytes that are invalid in their encoding; they are not indexed"
        )),
    }
}

fn show(summary: &IndexJson, files: &Files, json: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(summary);
    }
    let mut columns = String::new();
    for (at, ColumnJson { name, kind }) in summary.columns.iter().take(MAX_SKIPPED).enumerate() {
        columns += if at == 0 { ", columns " } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(columns, "{} {kind}", escape::name(name));
    }
    if let Some(more @ 1..) = summary.columns.len().checked_sub(MAX_SKIPPED) {
        let _ = write!(columns, " and {more} more");
    }
    out.summary(format_args!(
        "{}: {}, {}, analyzer {}{columns}, {} (from {})",
        summary.path,
        counted(summary.documents, "document"),
        counted(summary.terms, "term"),
        summary.analyzer,
        human_size(summary.bytes),
        human_size(summary.input_bytes),
    ))?;
    show_skipped(files, out)
}

fn show_skipped(files: &Files, out: &mut Ui) -> Result<(), Failure> {
    match files.unsupported {
        0 => {}
        1 => out.side_summary("skipped 1 file with an unsupported extension")?,
        count => out.side_summary(format_args!("skipped {count} files with unsupported extensions"))?,
    }
    match files.filtered {
        0 => Ok(()),
        1 => out.side_summary("skipped 1 hidden, ignored or excluded file or directory"),
        count => out
            .side_summary(format_args!("skipped {count} hidden, ignored or excluded files and directories")),
    }
}
