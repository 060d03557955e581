//! `tatami repair`: salvage intact rows.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{ByteSource, Sink, escape};
use tercet::tatami::salvage::{SalvageOptions, SalvageReport, salvage};
use tercet::tatami::{Schema, WriterOptions};

use super::create::schema::Declared;
use super::layout::Layout;
use crate::args::{ForceArgs, JsonArgs, QuietArgs, limits};
use crate::cmd::tgm::ReportFormat;
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::output::{Output, Spool, atomic_file, deliver, json_path};
use crate::render::human_size;
use crate::ui::{BAD, Ui, WARN, paint};

/// Lost ranges printed.
const SHOWN: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tatami repair bad.tatami                      print what is intact and what is lost
  tatami repair bad.tatami -o good.tatami       write the rows that are intact in all columns
  tatami repair cut.tatami -o good.tatami --schema id:int64,title:string:nullable
                                                a file without footer requires a schema

Exit code 0: nothing is lost; 1: rows are lost, or the footer is lost and the loss is unknown. A plan has the exit \
code of `-o`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("force", |arg| arg.requires("output")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Print what could be kept and write nothing (default); takes several files
    #[arg(long, conflicts_with = "output")]
    plan: bool,
    /// Output file or URL of the intact rows; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Schema of a file without footer: `name:type[:nullable],…`
    #[arg(long, value_name = "COLUMNS")]
    schema: Option<Declared>,
    /// Sort key of such a file
    #[arg(long, value_name = "NAME", requires = "schema")]
    sort_key: Option<String>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
    #[command(flatten)]
    layout: Layout,
}

/// A request of `tatami repair` or `tercet repair`.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) output: Option<&'a Path>,
    pub(crate) force: bool,
    pub(crate) schema: Option<Schema>,
    pub(crate) writer: WriterOptions,
    pub(crate) form: ReportFormat,
}

/// The JSON report.
#[derive(Debug, Serialize)]
struct RepairJson<'a> {
    path: &'a str,
    output: Option<String>,
    has_losses: bool,
    #[serde(flatten)]
    report: &'a SalvageReport,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let schema =
        args.schema.as_ref().map(|declared| declared.schema(args.sort_key.as_deref())).transpose()?;
    let request = Request {
        output: args.output.as_deref(),
        force: args.force.force,
        schema,
        writer: args.layout.options()?,
        form: ReportFormat::new(args.json.json, args.quiet.quiet),
    };
    args.files.only_one_if(args.output.is_some(), "repair")?;
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        run_on(request.clone(), input.source_of(Format::Tatami)?, out)
    })
}

/// Repairs an open file.
pub(crate) fn run_on(
    request: Request<'_>,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let target = target(&request, &source)?;
    if let Some(target) = &target {
        target.reserve_stdout(out)?;
    }
    let name = source.name().to_string();
    let mut options = SalvageOptions::new().with_writer(request.writer);
    options.read = options.read.with_limits(limits());
    options.schema = request.schema;
    let bar = out.bar("repairing", source.len());
    let into = target.as_ref().map(Output::name);
    let (report, bytes) = match target {
        Some(Output::Path(path)) => {
            let atomic_file = atomic_file(&path, request.force)?;
            let report = salvage(source, atomic_file, options, &bar).map_err(explained)?;
            let (report, _) = report.into_parts();
            (report, std::fs::metadata(path).map_or(0, |meta| meta.len()))
        }
        Some(output) => {
            let report = salvage(source, Spool::new()?, options, &bar).map_err(explained)?;
            let (report, file) = report.into_parts();
            (report, deliver(file, output, out)?)
        }
        None => salvage(source, NullSink::default(), options, &bar).map_err(explained)?.into_parts(),
    };
    drop(bar);
    // The loss of a truncated file is unknown.
    let has_losses = !report.is_complete();
    match request.form {
        ReportFormat::Json => {
            let output = request.output.map(json_path);
            out.json(&RepairJson { path: &name, output, has_losses, report: &report })?;
        }
        ReportFormat::OneLine => {
            let (path, status) = (escape::name(&name), if has_losses { "failed" } else { "ok" });
            let SalvageReport { rows, rows_kept, .. } = report;
            out.line(format_args!("path={path} status={status} rows={rows} kept={rows_kept}"))?;
        }
        ReportFormat::Text => print(&name, &report, into.as_deref(), bytes, out)?,
    }
    Ok(if has_losses { Outcome::CheckFailed } else { Outcome::Done })
}

/// Adds the hint that a schema allows a repair without footer.
fn explained(error: tercet::tatami::Error) -> Failure {
    use tercet::core::Diagnostic as _;
    match error.class() {
        tercet::core::Class::Malformed | tercet::core::Class::Corrupt => {
            Failure::from(error).with_hint("without footer or header, set the schema: `--schema name:type,…`")
        }
        _ => error.into(),
    }
}

/// The output file, which must not be the input.
fn target(request: &Request<'_>, source: &Arc<dyn ByteSource>) -> Result<Option<Output>, Failure> {
    let Some(path) = request.output else { return Ok(None) };
    let output = Output::open(path, request.force)?;
    output.must_not_be(Path::new(&**source.name()))?;
    Ok(Some(output))
}

fn print(
    name: &str,
    report: &SalvageReport,
    into: Option<&str>,
    bytes: u64,
    out: &mut Ui,
) -> Result<(), Failure> {
    out.line(format_args!("from: {}", escape::name(name)))?;
    if let Some(into) = into {
        out.line(format_args!("into: {into}, {}", human_size(bytes)))?;
    }
    if let Some(fault) = &report.footer_fault {
        let fault = escape::name(&fault.replace("\n  ", ": ")).into_owned();
        out.line(format_args!("{} the footer was rebuilt: {fault}", paint(WARN, "note:")))?;
    }
    let verb = if into.is_some() { "kept" } else { "intact" };
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
        let more = counted(more as u64, "more range");
        out.line(format_args!("  … and {more}; `--json` prints all"))?;
    }
    for reason in &report.reasons {
        out.line(format_args!("  {}", escape::name(&reason.replace("\n  ", ": "))))?;
    }
    if report.more_reasons > 0 {
        out.line(format_args!("  … and {} more reasons", report.more_reasons))?;
    }
    Ok(())
}

/// A sink that only counts bytes.
#[derive(Debug, Default)]
struct NullSink {
    at: u64,
    len: u64,
}

impl Write for NullSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.at = self.at.saturating_add(bytes.len() as u64);
        self.len = self.len.max(self.at);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for NullSink {
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

impl Sink for NullSink {
    type Output = u64;

    fn finish(self) -> io::Result<u64> {
        Ok(self.len)
    }
}
