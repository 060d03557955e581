//! `tgm repair`: what is intact of a damaged file, in a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, Span, escape};
use tercet::tgm::salvage::{Loss, Lost, RepairedMessage, Salvage, SalvageReport, State, salvage};
use tercet::tgm::{EncodeOptions, Provenance, Writer};

use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use crate::render::human_size;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// Things of a kind that are listed before it is said how many more there are.
const SHOWN: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tgm repair bad.tgm                   what is intact, and what is lost; writes nothing
  tgm repair bad.tgm -o good.tgm       everything that is intact, in a new file

Intact messages are kept byte for byte. Of a damaged one every object is kept whose hash is right, with \
the metadata that is intact. Objects without a hash are kept if their structure is sound, and called unproven.
Exit code 0: nothing was lost; 1: something was, or there is nothing to keep.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write. Without it, print what could be kept
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long, requires = "output")]
    force: bool,
    /// Leave out when and by what new messages were written, so that equal messages make equal bytes
    #[arg(long)]
    reproducible: bool,
    /// Print the report as JSON
    #[arg(short, long)]
    json: bool,
}

/// What is asked for, by this verb or by that of `tercet`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The file that is read, unless it is standard input.
    pub(crate) input: Option<&'a Path>,
    pub(crate) output: Option<&'a Path>,
    pub(crate) force: bool,
    pub(crate) reproducible: bool,
    pub(crate) json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'a> {
    output: Option<String>,
    has_losses: bool,
    #[serde(flatten)]
    report: &'a SalvageReport,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let request = Request {
        input: Some(args.input.path.as_path()).filter(|_| !args.input.is_stdin()),
        output: args.output.as_deref(),
        force: args.force,
        reproducible: args.reproducible,
        json: args.json,
    };
    let target = request.target()?;
    request.run(target.as_deref(), &args.input.source()?, out)
}

/// Repairs a file that is open already.
pub(crate) fn run_on(
    request: Request<'_>,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let target = request.target()?;
    request.run(target.as_deref(), source, out)
}

impl Request<'_> {
    /// The file that is written, which is never the one that is read.
    fn target(self) -> Result<Option<PathBuf>, Failure> {
        let Some(path) = self.output else { return Ok(None) };
        let output = Output::of(path, self.force)?;
        if let Some(input) = self.input {
            output.must_not_be(input)?;
        }
        match output {
            Output::Path(path) => Ok(Some(path)),
            Output::Object(object) => {
                let said = format!("{}: a repaired file cannot be written to an address", object.name());
                Err(Failure::request(said).with_hint("give the path of a new file"))
            }
            Output::Stdout => {
                let failure = Failure::request("a repaired file cannot be written to standard output");
                Err(failure.with_hint("give the path of a new file"))
            }
        }
    }

    fn run(
        self,
        target: Option<&Path>,
        source: &Arc<dyn ByteSource>,
        out: &mut Ui,
    ) -> Result<Outcome, Failure> {
        let writing = EncodeOptions::new();
        let writing = if self.reproducible { writing.with_provenance(Provenance::Off) } else { writing };
        let bar = out.bar("searching", source.len());
        let found = salvage(source, Reading::default().options(), &writing, &bar)?;
        drop(bar);
        let written = match target {
            Some(target) if found.is_worth_writing() => {
                let bar = out.bar("writing", found.len());
                let mut writer =
                    if self.force { Writer::create(target)? } else { Writer::create_new(target)? };
                found.write(&mut writer, &bar)?;
                writer.finish()?;
                Some(target)
            }
            _ => None,
        };
        let report = &found.report;
        if self.json {
            let output = written.map(|path| path.to_string_lossy().into_owned());
            out.json(&Told { output, has_losses: report.has_losses(), report })?;
        } else {
            print(&found, written, out)?;
        }
        if target.is_some() && written.is_none() {
            out.note("nothing could be kept, so no file was written")?;
        }
        let is_bad = report.has_losses() || !found.is_worth_writing();
        Ok(if is_bad { Outcome::CheckFailed } else { Outcome::Done })
    }
}

fn print(found: &Salvage, written: Option<&Path>, out: &mut Ui) -> Result<(), Failure> {
    let report = &found.report;
    out.line(format_args!("from: {}", escape::name(&report.file)))?;
    if let Some(path) = written {
        out.line(format_args!("into: {}", escape::name(&path.to_string_lossy())))?;
    }
    let SalvageReport { kept_messages, kept_objects, intact_messages, .. } = report;
    let size = human_size(found.len());
    out.line(format_args!(
        "kept: {kept_messages} message(s) with {kept_objects} object(s), {size}; {intact_messages} message(s) were intact"
    ))?;
    let mut lines: Vec<String> = report.messages.iter().flat_map(told).collect();
    lines.extend(report.junk.iter().map(|junk| {
        let remains = if report.remains.contains(junk) { ", but hold remains of one" } else { "" };
        format!("{} bytes {junk} belong to no message{remains}", paint(WARN, "junk:"))
    }));
    if report.search_given_up {
        lines.push(format!(
            "{} too many bytes look like frames and are none: some were not looked at",
            paint(BAD, "lost:")
        ));
    }
    if report.index_dropped {
        lines.push("the catalogue is left out; `tgm index` makes a new one".to_owned());
    }
    if lines.is_empty() {
        lines.push(paint(GOOD, "the file is intact"));
    }
    if report.unproven_messages > 0 {
        lines.push(format!(
            "{} {} intact message(s) hold objects without a hash: only their structure was checked",
            paint(WARN, "unproven:"),
            report.unproven_messages
        ));
    }
    let more = lines.len().saturating_sub(4 * SHOWN);
    lines.into_iter().take(4 * SHOWN).try_for_each(|line| out.line(line))?;
    if more > 0 {
        out.line(format_args!("… and {more} more lines; --json lists all"))?;
    }
    Ok(())
}

/// A damaged message: how it is, and what it lost.
fn told(repaired: &RepairedMessage) -> Vec<String> {
    let RepairedMessage { message, span, objects_kept, .. } = repaired;
    let state = match repaired.state {
        State::Repaired => paint(GOOD, "repaired"),
        State::Lost => paint(BAD, "lost"),
        _ => paint(WARN, "damaged"),
    };
    let place = repaired.output.map_or_else(String::new, |number| format!(", now message {number}"));
    let mut lines =
        vec![format!("message {message} (bytes {span}): {state}, {objects_kept} object(s) kept{place}")];
    let shown = repaired.lost.iter().take(SHOWN);
    lines.extend(shown.map(|loss| format!("  {} {}", paint(BAD, "lost:"), lost(loss))));
    if let Some(more @ 1..) = repaired.lost.len().checked_sub(SHOWN) {
        lines.push(format!("  … and {more} more; --json lists all"));
    }
    if !repaired.unproven.is_empty() {
        let count = repaired.unproven.len();
        lines.push(format!(
            "  {} {count} kept object(s) carry no hash: only their structure was checked",
            paint(WARN, "unproven:")
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
    let place = |span: Span| {
        if span.is_empty() { format!("at byte {}", span.start()) } else { format!("bytes {span}") }
    };
    format!("{what} ({}): {}", place(loss.span), escape::name(&loss.reason))
}
