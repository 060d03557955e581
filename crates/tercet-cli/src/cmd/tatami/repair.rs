//! `tatami repair`: the intact rows of a damaged file, in a new one.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, Sink, escape};
use tercet::tatami::repair::{RepairOptions, Repaired, repair};
use tercet::tatami::{Schema, WriterOptions};

use super::create::schema::Declared;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, atomic_file, shown};
use crate::render::human_size;
use crate::ui::{BAD, Ui, WARN, paint};

/// Lost ranges that are listed before it is said how many more there are.
const SHOWN: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tatami repair bad.tatami                      what is intact, and what is lost; writes nothing
  tatami repair bad.tatami -o good.tatami       the rows that are intact in all columns, in a new file
  tatami repair cut.tatami -o good.tatami --schema id:int64,title:string:nullable
                                                a file whose footer is lost: its columns must be told

Exit code 0: nothing was lost; 1: something was, or nobody can tell because the footer is lost.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write. Without it, print what could be kept
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The columns of a file whose footer is lost: `name:type[:nullable],…`
    #[arg(long, value_name = "COLUMNS")]
    schema: Option<Declared>,
    /// The column that the rows of such a file are sorted by
    #[arg(long, value_name = "NAME", requires = "schema")]
    sort_key: Option<String>,
    /// Write only what other readers of the format know
    #[arg(long)]
    interop: bool,
    /// Replace a file that is there already
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// What is asked for, by this verb or by that of `tercet`.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) output: Option<&'a Path>,
    pub(crate) force: bool,
    pub(crate) schema: Option<Schema>,
    pub(crate) interop: bool,
    pub(crate) json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'a> {
    file: &'a str,
    output: Option<String>,
    has_losses: bool,
    #[serde(flatten)]
    report: &'a Repaired,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let schema =
        args.schema.as_ref().map(|declared| declared.schema(args.sort_key.as_deref())).transpose()?;
    let request = Request {
        output: args.output.as_deref(),
        force: args.force,
        schema,
        interop: args.interop,
        json: args.json,
    };
    run_on(request, args.input.source()?, out)
}

/// Repairs a file that is open already.
pub(crate) fn run_on(
    request: Request<'_>,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let target = target(&request, &source)?;
    let name = source.name().to_string();
    let writer = if request.interop { WriterOptions::interop() } else { WriterOptions::new() };
    let mut options = RepairOptions::default().with_writer(writer);
    options.schema = request.schema;
    let bar = out.bar("repairing", source.len());
    let (report, bytes) = match &target {
        Some(path) => {
            let atomic_file = atomic_file(path, request.force)?;
            let (report, _) = repair(source, atomic_file, options, &bar).map_err(explained)?;
            (report, std::fs::metadata(path).map_or(0, |meta| meta.len()))
        }
        None => repair(source, Nowhere::default(), options, &bar).map_err(explained)?,
    };
    drop(bar);
    // What stood behind the end of a file that was cut, nobody knows.
    let has_losses = !report.is_whole();
    if request.json {
        let output = target.as_ref().map(|path| path.to_string_lossy().into_owned());
        out.json(&Told { file: &name, output, has_losses, report: &report })?;
    } else {
        print(&name, &report, target.as_deref(), bytes, out)?;
    }
    Ok(if has_losses { Outcome::CheckFailed } else { Outcome::Done })
}

/// A footer that cannot be used is no dead end: whoever knows the columns can tell them.
fn explained(error: tercet::tatami::Error) -> Failure {
    use tercet::core::Diagnose as _;
    match error.class() {
        tercet::core::Class::Malformed | tercet::core::Class::Corrupt => Failure::from(error)
            .with_hint("`--schema name:type,…` tells the columns of a file whose footer or header is lost"),
        _ => error.into(),
    }
}

/// The file that is written, which is never the one that is read.
fn target(request: &Request<'_>, source: &Arc<dyn ByteSource>) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = request.output else { return Ok(None) };
    let output = Output::of(path, request.force)?;
    output.must_not_be(Path::new(&**source.name()))?;
    match output {
        Output::Path(path) => Ok(Some(path)),
        Output::Object(_) | Output::Stdout => {
            let failure = Failure::request("a repaired file can be written to a path only");
            Err(failure.with_hint("give the path of a new file"))
        }
    }
}

fn print(
    name: &str,
    report: &Repaired,
    target: Option<&Path>,
    bytes: u64,
    out: &mut Ui,
) -> Result<(), Failure> {
    out.line(format_args!("from: {}", escape::name(name)))?;
    if let Some(path) = target {
        out.line(format_args!("into: {}, {}", shown(path), human_size(bytes)))?;
    }
    if let Some(fault) = &report.footer_fault {
        let fault = escape::name(&fault.replace("\n  ", ": ")).into_owned();
        out.line(format_args!("{} the footer was made again: {fault}", paint(WARN, "note:")))?;
    }
    let verb = if target.is_some() { "kept" } else { "intact" };
    out.line(format_args!("{verb}: {} of {} rows", report.rows_kept, report.rows))?;
    for lost in report.lost.iter().take(SHOWN) {
        let last = lost.end.saturating_sub(1);
        let rows = if lost.start == last {
            format!("row {last}")
        } else {
            format!("rows {}..{}", lost.start, lost.end)
        };
        out.line(format_args!("{} {rows}", paint(BAD, "lost:")))?;
    }
    if let Some(more @ 1..) = report.lost.len().checked_sub(SHOWN) {
        out.line(format_args!("  … and {more} more ranges; --json lists all"))?;
    }
    for reason in &report.reasons {
        out.line(format_args!("  {}", escape::name(&reason.replace("\n  ", ": "))))?;
    }
    if report.more_reasons > 0 {
        out.line(format_args!("  … and {} more reasons", report.more_reasons))?;
    }
    Ok(())
}

/// A sink that keeps nothing but the length.
#[derive(Debug, Default)]
struct Nowhere {
    at: u64,
    len: u64,
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.at = self.at.saturating_add(bytes.len() as u64);
        self.len = self.len.max(self.at);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Sink for Nowhere {
    type Done = u64;

    fn finish(self) -> io::Result<u64> {
        Ok(self.len)
    }
}
