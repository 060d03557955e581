//! `tet query`: a document asks, a file answers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::tet::{Answer, Device, ErrorKind, File, Query, ReadOptions, RunOptions};

use super::extract::Access;
use super::report::warn_of_gaps;
use crate::address;
use crate::failure::{Failure, Outcome};
use crate::input::{self, must_be_a_file};
use crate::ui::Ui;

mod arrays;
mod document;
mod missing;
mod quiet;
mod result;
mod slim;
mod table;
mod text;

pub(super) use document::Document;
use result::Scene;

use super::history;

/// Cells that are shown of an answer, where some are shown by default.
const PREVIEW: u64 = 64;

const EXAMPLES: &str = r#"Examples:
  tet query '{"dataset":"t2m","mean":"time"}' -t era5.tet -x
  tet query '{"dataset":"t2m","max":["lat","lon"],"filter":{"gt":250}}' -t era5.tet -x -q
  tet query q.toml -t era5.tet --format plan      what would be read, without reading it
  tet query '{"dataset":"t2m"}' -t era5.tet -x    the first values
  tet query --schema > query.schema.json          for editors

A document that starts with `{` is JSON, any other is TOML, unless the name of its file ends in
.json or .toml."#;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The query: a file, or the document itself; `-` or nothing reads standard input
    #[arg(value_name = "QUERY")]
    query: Option<OsString>,
    /// The file that answers; without one the query is only checked
    #[arg(short, long, value_name = "PATH")]
    pub(crate) tet: Option<PathBuf>,
    /// Read values and compute; without it the answer says what would be read
    #[arg(short = 'x', long, requires = "tet")]
    execute: bool,
    #[command(flatten)]
    how: How,
    /// Print the JSON Schema of query documents, and do nothing else
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// How a query is answered, and how the answer is shown.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct How {
    /// The form of the answer; without it `full`
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print one line: the same as `--format quiet`
    #[arg(short, long, conflicts_with_all = ["format", "json"])]
    quiet: bool,
    /// Print the answer as JSON: the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Show the first N values that are selected, or of the result of a transform; needs `-x`. Without it 64 for
    /// `full` (unless an operation sums them up) and `json`, none for other formats
    #[arg(long, value_name = "N", alias = "preview-f32")]
    preview: Option<u64>,
    /// A further folder that `spill` and `write` may put files in; can be given more than once
    #[arg(long, value_name = "DIR")]
    spill_allow: Vec<PathBuf>,
    /// Where to compute: `cpu`, `auto`, `cuda:0` …; comes before what the query says
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,
    /// Compute from values even where the statistics of chunks would do
    #[arg(long)]
    no_stats: bool,
    /// Tell how the answer is computed
    #[arg(long)]
    explain: bool,
    /// End with exit code 1 if the file has no such dataset
    #[arg(long)]
    strict: bool,
    /// Do not check checksums: for what can be had of a damaged file
    #[arg(long)]
    ignore_checksums: bool,
    /// How the file is read: mapped into memory, or by position (for files that may be truncated meanwhile)
    #[arg(long, value_name = "HOW", default_value = "pread")]
    access: Access,
}

/// The forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text and tables, for people
    Full,
    /// Everything, as JSON
    Json,
    /// JSON without the list of chunks and without values of cells
    Stats,
    /// Like `stats`, but only what would be read: nothing is computed
    Plan,
    /// One line
    Quiet,
    /// Tables
    Table,
    /// Tables, with how the answer was computed
    TableVerbose,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.schema {
        out.json(&Query::schema())?;
        return Ok(Outcome::Done);
    }
    let document = Document::read(args.query.as_deref(), out)?;
    ask(&document, args.tet.as_deref(), args.execute, &args.how, out)
}

/// Answers a query and shows the answer.
pub(super) fn ask(
    document: &Document,
    tet: Option<&Path>,
    execute: bool,
    how: &How,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let query = document.parse()?;
    how.check(&query, tet.is_some(), execute)?;
    out.hush(how.format() == Format::Quiet);
    let Some(path) = tet else {
        let answer = query.check();
        show(&Scene { query: &query, answer: &answer, file: None }, how, out)?;
        return Ok(Outcome::Done);
    };
    must_be_a_file(path, "query")?;
    let file = how.open(path)?;
    warn_of_gaps(&file, out)?;
    let execute = execute && how.format() != Format::Plan;
    let answer = answer(&query, &file, execute, how, out).map_err(|error| match error.kind() {
        ErrorKind::Query(wrong) => document.point_at(wrong, Failure::for_program(&error, "tet")),
        _ => error.into(),
    })?;
    show(&Scene { query: &query, answer: &answer, file: Some(&file) }, how, out)?;
    if missing::is_missing(&answer) {
        missing::hint(&answer, &file, out)?;
        return Ok(if how.strict { Outcome::CheckFailed } else { Outcome::Done });
    }
    history::record(path, execute, &query, out)?;
    Ok(Outcome::Done)
}

fn answer(
    query: &Query,
    file: &File,
    execute: bool,
    how: &How,
    out: &Ui,
) -> Result<Answer, tercet::tet::Error> {
    let options = how.options(query);
    if !execute {
        return query.plan(file, &options);
    }
    let bar = out.bar("querying", 0);
    query.run(file, &options, &bar)
}

fn show(scene: &Scene<'_>, how: &How, out: &mut Ui) -> Result<(), Failure> {
    match how.format() {
        Format::Full => text::print(scene, how.preview.is_some(), out),
        Format::Json => out.json(scene.answer),
        Format::Stats => out.json(&slim::stats(scene.answer)),
        Format::Plan => out.json(&slim::plan(scene.answer)),
        Format::Quiet => {
            out.line(quiet::line(scene.answer))?;
            text::explanation(scene.answer).into_iter().try_for_each(|line| out.note(line))
        }
        Format::Table => table::print(scene, false, out),
        Format::TableVerbose => table::print(scene, true, out),
    }
}

impl How {
    fn format(&self) -> Format {
        match (self.quiet, self.json) {
            (true, _) => Format::Quiet,
            (_, true) => Format::Json,
            _ => self.format.unwrap_or(Format::Full),
        }
    }

    /// Shows a plan, unless another form was asked for.
    pub(super) fn plan_by_default(mut self) -> Self {
        self.format = self.format.or((!self.quiet && !self.json).then_some(Format::Plan));
        self
    }

    /// Refuses what could only disappoint.
    fn check(&self, query: &Query, has_file: bool, execute: bool) -> Result<(), Failure> {
        if !execute {
            if self.preview.is_some() {
                let failure = Failure::request("`--preview` shows values, but none are read without `-x`");
                return Err(failure.with_hint("add `-x`"));
            }
            if has_file && query.has_operation() && self.format() != Format::Plan {
                let failure =
                    Failure::request("the query has an operation, which is computed only with `-x`");
                return Err(failure.with_hint("add `-x`, or `--format plan` to see what would be read"));
            }
            return Ok(());
        }
        let has_use = query.has_operation() || ["spill", "align"].iter().any(|key| result::asks(query, key));
        if self.preview(query) == 0 && !has_use && self.format() != Format::Plan {
            let failure = Failure::request("the query has no operation, and no values are to be shown");
            return Err(failure.with_hint("`--preview N` shows the first N values"));
        }
        Ok(())
    }

    /// How many values are shown.
    fn preview(&self, query: &Query) -> u64 {
        let by_default = match self.format() {
            // The values that an operation starts from are not what was asked for: they need not be read.
            Format::Full if query.has_operation() && !result::asks(query, "transform") => 0,
            Format::Full | Format::Json => PREVIEW,
            _ => 0,
        };
        self.preview.unwrap_or(by_default)
    }

    fn options(&self, query: &Query) -> RunOptions {
        let mut options = RunOptions::default();
        options.preview = self.preview(query);
        options.statistics = !self.no_stats;
        options.explain = self.explain;
        options.spill_allow.clone_from(&self.spill_allow);
        options.device = self.device;
        options
    }

    fn open(&self, path: &Path) -> Result<File, Failure> {
        let options = ReadOptions::new().with_ignore_checksums(self.ignore_checksums);
        if address::of(path).is_some() {
            return Ok(options.open_source(input::open(path)?)?);
        }
        Ok(options.with_access(self.access.into()).open(path)?)
    }
}
