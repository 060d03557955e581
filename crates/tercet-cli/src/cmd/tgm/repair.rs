//! `tgm repair`: salvage intact messages and objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{ByteSource, Span, escape};
use tercet::tgm::salvage::{
    Loss, Lost, RepairedMessage, SalvageOptions, SalvagePlan, SalvageReport, State, plan,
};
use tercet::tgm::{EncodeOptions, Provenance, Writer, WriterOptions};

use super::ReportFormat;
use super::open::ReadArgs;
use crate::args::{ForceArgs, JsonArgs, QuietArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::output::{Output, Spool, deliver, json_path};
use crate::render::human_size;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// Items of a kind printed.
const SHOWN: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tgm repair bad.tgm                   print what is intact and what is lost
  tgm repair bad.tgm -o good.tgm       write the intact parts to a new file

Intact messages are copied unchanged. Of a damaged message, objects with a matching hash and intact \
metadata are kept. Objects without a hash are kept if their structure is valid, and reported as unverified.
Exit code 0: nothing is lost; 1: something is lost, or nothing can be kept. A plan has the exit code of `-o`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("force", |arg| arg.requires("output")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Print what could be kept and write nothing (default); takes several files
    #[arg(long, conflicts_with = "output")]
    plan: bool,
    /// Output file or URL of the intact parts; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
    /// Omit timestamp, UUID and producer, for reproducible output
    #[arg(long)]
    reproducible: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

/// A request of `tgm repair` or `tercet repair`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The input file, unless it is standard input.
    pub(crate) input: Option<&'a Path>,
    pub(crate) output: Option<&'a Path>,
    pub(crate) force: bool,
    pub(crate) reproducible: bool,
    pub(crate) form: ReportFormat,
}

/// The JSON report.
#[derive(Debug, Serialize)]
struct RepairJson<'a> {
    output: Option<String>,
    has_losses: bool,
    #[serde(flatten)]
    report: &'a SalvageReport,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.only_one_if(args.output.is_some(), "repair")?;
    args.files.each(Some(Format::Tgm), JsonList::ForMany, out, |input, out| {
        let request = Request {
            input: Some(input.path.as_path()).filter(|_| !input.is_stdin()),
            output: args.output.as_deref(),
            force: args.force.force,
            reproducible: args.reproducible,
            form: ReportFormat::new(args.json.json, args.quiet.quiet),
        };
        let target = request.target(out)?;
        request.run(target, &input.source_of(Format::Tgm)?, out)
    })
}

/// Repairs an open file.
pub(crate) fn run_on(
    request: Request<'_>,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let target = request.target(out)?;
    request.run(target, source, out)
}

impl Request<'_> {
    /// The output file, which must not be the input.
    fn target(self, out: &mut Ui) -> Result<Option<Output>, Failure> {
        let Some(path) = self.output else { return Ok(None) };
        let output = Output::open(path, self.force)?;
        if let Some(input) = self.input {
            output.must_not_be(input)?;
        }
        output.reserve_stdout(out)?;
        Ok(Some(output))
    }

    fn run(
        self,
        target: Option<Output>,
        source: &Arc<dyn ByteSource>,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let writing = EncodeOptions::new();
        let writing = if self.reproducible { writing.with_provenance(Provenance::Off) } else { writing };
        let bar = out.bar("searching", source.len());
        let options = SalvageOptions::new().with_read(ReadArgs::default().options()).with_encode(writing);
        let found = plan(source, &options, &bar)?;
        drop(bar);
        let is_wanted = target.is_some();
        let written = match target {
            Some(target) if found.is_worth_writing() => {
                let bar = out.bar("writing", found.len());
                let name = target.name();
                if let Output::Path(path) = target {
                    let options = WriterOptions::new().with_overwrite(self.force);
                    let mut writer = Writer::create(path, options)?;
                    found.write(&mut writer, &bar)?;
                    writer.finish()?;
                } else {
                    let mut writer = Writer::new(Spool::new()?, WriterOptions::new()).with_name(&name);
                    found.write(&mut writer, &bar)?;
                    deliver(writer.finish()?.output, target, out)?;
                }
                Some(name)
            }
            _ => None,
        };
        let report = &found.report;
        let is_bad = !report.is_complete() || !found.is_worth_writing();
        match self.form {
            ReportFormat::Json => {
                let output = written.as_ref().and(self.output).map(json_path);
                out.json(&RepairJson { output, has_losses: !report.is_complete(), report })?;
            }
            ReportFormat::OneLine => out.line(one_line(report, is_bad))?,
            ReportFormat::Text => print(&found, written.as_deref(), out)?,
        }
        if is_wanted && written.is_none() {
            out.note("nothing could be kept; no file written")?;
        }
        Ok(if is_bad { Outcome::CheckFailed } else { Outcome::Done })
    }
}

/// The report as one line.
fn one_line(report: &SalvageReport, is_bad: bool) -> String {
    let losses: usize = report.messages.iter().map(|message| message.lost.len()).sum();
    format!(
        "path={} status={} messages={} objects={} intact={} losses={losses}",
        escape::name(&report.location),
        if is_bad { "failed" } else { "ok" },
        report.kept_messages,
        report.kept_objects,
        report.intact_messages,
    )
}

fn print(found: &SalvagePlan, written: Option<&str>, out: &mut Ui) -> Result<(), Failure> {
    let report = &found.report;
    out.line(format_args!("from: {}", escape::name(&report.location)))?;
    if let Some(name) = written {
        out.line(format_args!("into: {name}"))?;
    }
    let SalvageReport { kept_messages, kept_objects, intact_messages, .. } = report;
    let size = human_size(found.len());
    out.line(format_args!(
        "kept: {kept_messages} message(s) with {kept_objects} object(s), {size}; {intact_messages} message(s) were intact"
    ))?;
    let mut lines: Vec<String> = report.messages.iter().flat_map(message_lines).collect();
    lines.extend(report.unrecognized.iter().map(|span| {
        let partial = if report.partial_messages.contains(span) {
            ", but they contain parts of one"
        } else if report.may_lose(*span) {
            "; a message may be lost"
        } else {
            ""
        };
        format!("{} bytes {span}: not part of a message{partial}", paint(WARN, "unrecognized:"))
    }));
    if report.search_stopped_early {
        lines.push(format!(
            "{} too many false frame signatures; some bytes were not searched",
            paint(BAD, "lost:")
        ));
    }
    if report.index_dropped {
        lines.push("the message index is omitted; add a new one with `tgm index`".to_owned());
    }
    if lines.is_empty() {
        lines.push(paint(GOOD, "the file is intact"));
    }
    if report.unverified_messages > 0 {
        lines.push(format!(
            "{} {} intact message(s) have objects without a hash; only their structure was verified",
            paint(WARN, "unverified:"),
            report.unverified_messages
        ));
    }
    let more = lines.len().saturating_sub(4 * SHOWN) as u64;
    lines.into_iter().take(4 * SHOWN).try_for_each(|line| out.line(line))?;
    if more > 0 {
        out.line(format_args!("… and {}; `--json` prints all", counted(more, "more line")))?;
    }
    Ok(())
}

/// The lines of a damaged message.
fn message_lines(repaired: &RepairedMessage) -> Vec<String> {
    let RepairedMessage { message, span, objects_kept, .. } = repaired;
    let state = match repaired.state {
        State::Repaired => paint(GOOD, "repaired"),
        State::Lost => paint(BAD, "lost"),
        _ => paint(WARN, "damaged"),
    };
    let position = repaired.output.map_or_else(String::new, |number| format!(", now message {number}"));
    let mut lines =
        vec![format!("message {message} (bytes {span}): {state}, {objects_kept} object(s) kept{position}")];
    let shown = repaired.lost.iter().take(SHOWN);
    lines.extend(shown.map(|loss| format!("  {} {}", paint(BAD, "lost:"), lost(loss))));
    if let Some(more @ 1..) = repaired.lost.len().checked_sub(SHOWN) {
        lines.push(format!("  … and {more} more; `--json` prints all"));
    }
    if !repaired.unverified.is_empty() {
        let count = repaired.unverified.len();
        lines.push(format!(
            "  {} {count} kept object(s) have no hash; only their structure was verified",
            paint(WARN, "unverified:")
        ));
    }
    lines.extend(repaired.notes.iter().take(SHOWN).map(|note| format!("  note: {}", escape::name(note))));
    lines
}

fn lost(loss: &Loss) -> String {
    let what = match (loss.what, loss.object) {
        (Lost::Object, Some(number)) => format!("object {number}"),
        (Lost::Object, None) => "an object".to_owned(),
        (Lost::Objects, _) => "objects".to_owned(),
        (Lost::Metadata, _) => "the metadata".to_owned(),
        (Lost::ObjectMetadata, Some(number)) => format!("the metadata of object {number}"),
        (Lost::ObjectMetadata, None) => "the metadata of an object".to_owned(),
        _ => "bytes".to_owned(),
    };
    let range = |span: Span| {
        if span.is_empty() { format!("at byte {}", span.start()) } else { format!("bytes {span}") }
    };
    format!("{what} ({}): {}", range(loss.span), escape::name(&loss.reason))
}
