//! `tet query`: run a query document on a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::Format as Container;
use tercet::tet::compat::Answer;
use tercet::tet::{ErrorKind, File, Query, QueryResult, ReadOptions, RunOptions};

use super::extract::Access;
use super::report::warn_if_partly_protected;
use super::save::{FileFormat, SaveArgs};
use crate::args::{ForceArgs, JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, check_format};
use crate::ui::Ui;

mod arrays;
mod compact_json;
mod document;
mod missing;
mod named;
mod one_line;
mod result;
mod table;
mod text;

pub(super) use document::Document;
use result::Context;
pub(super) use result::element;

use super::history;

/// Default number of preview values.
const PREVIEW: u64 = 64;

const EXAMPLES: &str = r#"Examples:
  tet query '{"dataset":"t2m","mean":"time"}' -t era5.tet -x
  tet query '{"dataset":"t2m","max":["lat","lon"],"filter":{"gt":250}}' -t era5.tet -x -q
  tet query q.toml -t era5.tet --format plan      print the read plan only
  tet query '{"dataset":"t2m"}' -t era5.tet -x    the first values
  tet query q.json -t era5.tet -x --json          dimensions, coordinates and values as JSON
  tet query q.json -t era5.tet -x -o mean.tet     the result as a file
  tet query --schema > query.schema.json          JSON Schema for editors

A query that starts with `{` is JSON, any other TOML, unless it is a file with the extension
.json or .toml."#;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Query document or file; `-` or nothing reads standard input
    #[arg(value_name = "QUERY")]
    query: Option<OsString>,
    /// Input file; `-` reads standard input; without it the query is only validated
    #[arg(short, long, value_name = "PATH")]
    pub(crate) tet: Option<PathBuf>,
    /// Execute the query; without it, print the read plan
    #[arg(short = 'x', long, requires = "tet")]
    execute: bool,
    #[command(flatten)]
    options: QueryArgs,
    /// Print the JSON Schema of query documents
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// Execution and output options.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("json", |arg| arg.conflicts_with("format")))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct QueryArgs {
    /// Output format [default: full]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write the result to a file or URL: *.npy, *.tet, *.csv or *.json; requires `-x`
    #[arg(short, long, value_name = "OUT", conflicts_with = "format")]
    output: Option<PathBuf>,
    /// Format of the output file [default: by its extension]
    #[arg(long = "as", value_name = "FORMAT", requires = "output")]
    file_format: Option<FileFormat>,
    /// Print a one-line summary; same as `--format quiet`
    #[arg(short, long, conflicts_with_all = ["format", "json"])]
    quiet: bool,
    #[command(flatten)]
    json: JsonArgs,
    /// Print the first N selected values, or results of a transform; requires `-x` [default: 64 for `reference` and for
    /// `full` without a reduction, else 0]
    #[arg(long, value_name = "N", alias = "preview-f32")]
    preview: Option<u64>,
    /// Allow `spill` and `write` to create files in this directory. Repeatable
    #[arg(long, value_name = "DIR")]
    spill_allow: Vec<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
    /// Compute device: `cpu`, `auto`, `cuda:0` …; overrides the query, but has no effect: everything runs on the CPU
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Ignore chunk statistics; compute from values only
    #[arg(long)]
    no_stats: bool,
    /// Explain how the result is computed
    #[arg(long)]
    explain: bool,
    /// Fail if the dataset does not exist, also with the formats of the reference implementation
    #[arg(long)]
    strict: bool,
    /// Skip checksum verification, for data recovery
    #[arg(long)]
    ignore_checksums: bool,
    /// Access method: `mmap`, or `pread` for files that may be truncated while they are read
    #[arg(long, value_name = "METHOD", default_value = "pread")]
    access: Access,
}

/// Output formats of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text and tables
    Full,
    /// JSON of the reference implementation, computed with stored values; `json` is the same
    #[value(alias = "json")]
    Reference,
    /// Like `reference`, without the chunk list and element values
    Stats,
    /// Like `stats`, but only the read plan; nothing is executed
    Plan,
    /// One line
    Quiet,
    /// Tables
    Table,
    /// Tables with execution details
    TableVerbose,
    /// `--json`: dimensions, coordinates and values
    #[value(skip)]
    Clean,
}

impl Format {
    /// Whether the answer is that of the reference implementation, in shape and numbers.
    fn is_reference(self) -> bool {
        matches!(self, Self::Reference | Self::Stats | Self::Plan)
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.schema {
        out.json(&Query::schema())?;
        return Ok(Outcome::Done);
    }
    let from_stdin = args.query.as_ref().is_none_or(|query| query == "-");
    if from_stdin && args.tet.as_ref().is_some_and(|tet| tet.as_os_str() == "-") {
        return Err(Failure::request("standard input (`-`) is given as the query and as the file"));
    }
    let document = Document::read(args.query.as_deref(), out)?;
    run_query(&document, args.tet.as_deref(), args.execute, &args.options, out)
}

/// Runs a query and prints its result.
pub(super) fn run_query(
    document: &Document,
    tet: Option<&Path>,
    execute: bool,
    query_args: &QueryArgs,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let mut query = document.parse()?;
    if let Some(device) = &query_args.device {
        query = query.with_device(device).map_err(|unknown| Failure::request(unknown.to_string()))?;
    }
    query_args.check(&query, tet.is_some(), execute)?;
    out.hush(query_args.format() == Format::Quiet);
    let Some(path) = tet else {
        show(&Context { query: &query, result: None }, query_args, out)?;
        return Ok(Outcome::Done);
    };
    let target = query_args.save().open(Some(path).filter(|path| path.as_os_str() != "-"), out)?;
    let file = query_args.open(path)?;
    warn_if_partly_protected(&file, out)?;
    let format = query_args.format();
    let execute = execute && format != Format::Plan;
    let is_missing = !file.datasets().any(|dataset| dataset.name() == query.dataset());
    if is_missing && format.is_reference() && !query_args.strict {
        print_json(&Answer::not_found(&query, &file), format, out)?;
        missing::hint(query.dataset(), &file, out)?;
        return Ok(Outcome::Done);
    }
    if execute && (target.is_some() || format == Format::Clean) {
        let options = query_args.options(&query);
        named::run(&query, &file, (&options, query_args.explain), target, out).map_err(
            |error| match error {
                named::Error::Tet(error) => query_failure(document, error),
                named::Error::Failure(failure) => failure,
            },
        )?;
        history::record(path, execute, &query, out)?;
        return Ok(Outcome::Done);
    }
    let result =
        result(&query, &file, execute, query_args, out).map_err(|error| query_failure(document, error))?;
    show(&Context { query: &query, result: Some(&result) }, query_args, out)?;
    history::record(path, execute, &query, out)?;
    Ok(Outcome::Done)
}

/// An error of a query, with the part of the document that it is about.
fn query_failure(document: &Document, error: tercet::tet::Error) -> Failure {
    match error.kind() {
        ErrorKind::Query(wrong) => document.point_at(wrong, Failure::for_program(&error, "tet")),
        _ => error.into(),
    }
}

fn result<'a>(
    query: &'a Query,
    file: &'a File,
    execute: bool,
    query_args: &QueryArgs,
    out: &Ui,
) -> Result<QueryResult<'a>, tercet::tet::Error> {
    let options = query_args.options(query);
    if !execute {
        return query.plan(file, &options);
    }
    let bar = out.bar("querying", 0);
    query.run(file, &options, &bar)
}

fn show(context: &Context<'_>, query_args: &QueryArgs, out: &mut Ui) -> Result<(), Failure> {
    let explanation = if query_args.explain { text::explanation(context) } else { Vec::new() };
    match query_args.format() {
        Format::Full => text::print(context, query_args.preview.is_some(), out)?,
        Format::Table => table::print(context, false, out)?,
        Format::TableVerbose => table::print(context, true, out)?,
        Format::Quiet => {
            out.line(one_line::format(context))?;
            return explanation.into_iter().try_for_each(|line| out.note(line));
        }
        format @ (Format::Reference | Format::Clean | Format::Stats | Format::Plan) => {
            let answer = match context.result {
                Some(result) if query_args.explain => Answer::new(result).with_explain(result),
                Some(result) => Answer::new(result),
                None => Answer::without_file(context.query),
            };
            return print_json(&answer, format, out);
        }
    }
    explanation.into_iter().try_for_each(|line| out.line(line))
}

fn print_json(answer: &Answer<'_>, format: Format, out: &mut Ui) -> Result<(), Failure> {
    match format {
        Format::Stats => out.json(&compact_json::Stats(answer)),
        Format::Plan => out.json(&compact_json::Plan(answer)),
        Format::Clean => out.json(&compact_json::Checked(answer)),
        _ => out.json(answer),
    }
}

impl QueryArgs {
    fn format(&self) -> Format {
        match (self.quiet, self.json.json) {
            (true, _) => Format::Quiet,
            (_, true) => Format::Clean,
            _ => self.format.unwrap_or(Format::Full),
        }
    }

    /// Prints a plan, unless another format was given.
    pub(super) fn plan_by_default(mut self) -> Self {
        self.format = self.format.or((!self.quiet && !self.json.json).then_some(Format::Plan));
        self
    }

    /// Rejects option combinations without a result.
    fn check(&self, query: &Query, has_file: bool, execute: bool) -> Result<(), Failure> {
        if !execute {
            if self.output.is_some() {
                return Err(Failure::request("`-o` requires `-x`").with_hint("add `-x`"));
            }
            if self.preview.is_some() {
                let failure = Failure::request("`--preview` requires `-x`");
                return Err(failure.with_hint("add `-x`"));
            }
            if has_file && query.has_operation() && self.format() != Format::Plan {
                let failure = Failure::request("the query has an operation but `-x` is missing");
                return Err(
                    failure.with_hint("add `-x` to execute it, or `--format plan` to print the read plan")
                );
            }
            return Ok(());
        }
        let has_use =
            query.has_operation() || ["spill", "align"].iter().any(|key| result::has_key(query, key));
        let is_named = self.output.is_some() || self.format() == Format::Clean;
        if self.preview(query) == 0 && !has_use && !is_named && self.format() != Format::Plan {
            let failure =
                Failure::request("the query has no operation and no preview, so there is nothing to print");
            return Err(failure.with_hint("add `--preview N` to print the first N values"));
        }
        Ok(())
    }

    /// The number of preview values.
    fn preview(&self, query: &Query) -> u64 {
        let by_default = match self.format() {
            // The inputs of a reduction are not printed, so they need not be read.
            Format::Full if query.has_operation() && !result::has_key(query, "transform") => 0,
            Format::Full | Format::Reference => PREVIEW,
            _ => 0,
        };
        self.preview.unwrap_or(by_default)
    }

    fn options(&self, query: &Query) -> RunOptions {
        let mut options = RunOptions::default();
        options.preview = self.preview(query);
        options.statistics = !self.no_stats;
        options.spill_allow.clone_from(&self.spill_allow);
        options.overwrite = self.force.force;
        options.reference = self.format().is_reference();
        options
    }

    /// The output file.
    fn save(&self) -> SaveArgs {
        SaveArgs { output: self.output.clone(), format: self.file_format, force: self.force }
    }

    fn open(&self, path: &Path) -> Result<File, Failure> {
        let options = ReadOptions::new().with_verify(!self.ignore_checksums).with_limits(limits());
        let input = Input::new(path);
        if !input.is_on_disk() {
            return Ok(File::from_source(input.source_of(Container::Tet)?, options)?);
        }
        check_format(path, Container::Tet)?;
        Ok(File::open_with(path, options.with_access(self.access.into()))?)
    }
}
