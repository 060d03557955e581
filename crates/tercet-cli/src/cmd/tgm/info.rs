//! `tgm info`: message count, size, contents and integrity.

use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{ByteSource, Shape, escape};
use tercet::tgm::{ArrayKind, Contents, CutTail, Gap, IndexSummary, KeyRange, Summary, VERSION, Value};

use super::ReportFormat;
use super::open::ReadArgs;
use super::select::printed;
use crate::args::{JsonArgs, QuietArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::persona::is_reference;
use crate::render::human_size;
use crate::ui::{Ui, WARN, paint};

const EXAMPLES: &str = "\
Examples:
  tgm info run.tgm             messages, names, shapes, ranges of keys, sizes
  tgm info --json *.tgm        JSON for several files
  cat run.tgm | tgm info -     from a pipe";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

/// The summary of a file with its contents, as `--json` prints it.
#[derive(Serialize)]
pub(crate) struct InfoJson {
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// `None` in the form of the reference implementation, and for remote files of many messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<Contents>,
    /// The gaps between messages.
    gaps: Vec<Gap>,
    /// The incomplete message at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_tail: Option<CutTail>,
}

/// Summarizes a file.
pub(crate) fn summary(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<InfoJson, Failure> {
    let file = ReadArgs::default().open_or_empty(source, out)?;
    let is_cheap = !file.source().is_remote() || file.message_count()? <= MAX_REMOTE;
    let reads = !is_reference() && is_cheap;
    let contents = reads.then(|| file.contents(&out.bar("reading", file.len()))).transpose()?;
    let info =
        InfoJson { summary: file.summary()?, contents, gaps: file.gaps()?, cut_tail: file.cut_tail()? };
    for (number, error) in info.contents.iter().flat_map(|contents| &contents.unreadable) {
        let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()));
        let error = escape::name(error);
        out.note(format_args!("{warning} {name}: message {number} cannot be read: {error}"))?;
    }
    Ok(info)
}

impl InfoJson {
    /// Whether parts of the file are lost or damaged.
    pub(crate) fn outcome(&self) -> Outcome {
        let is_damaged = self.contents.as_ref().is_some_and(|contents| contents.unreadable_messages > 0);
        if !is_reference() && (is_damaged || self.cut_tail.is_some()) {
            Outcome::CheckFailed
        } else {
            Outcome::Done
        }
    }
}

fn print(info: &InfoJson, out: &mut Ui) -> Result<(), Failure> {
    let summary = &info.summary;
    out.line(format_args!("File: {}", escape::name(&summary.location)))?;
    out.line(format_args!("  Messages: {}", summary.messages))?;
    out.line(format_args!("  Size: {} bytes", summary.file_len))?;
    if let Some(version) = summary.version {
        out.line(format_args!("  Version: {version}"))?;
    }
    if let Some(IndexSummary { span, keys, .. }) = &summary.index {
        let keys: Vec<_> = keys.iter().map(|key| escape::name(key)).collect();
        out.line(format_args!("  Index: {} bytes, keys: {}", span.len(), keys.join(", ")))?;
    }
    if let Some(contents) = info.contents.as_ref().filter(|_| summary.messages > 0) {
        print_contents(info, contents, out)?;
    }
    out.line("")
}

/// Messages of a remote file that are read for the contents: each takes requests.
const MAX_REMOTE: u64 = 256;
/// Lines of a kind that are printed.
const SHOWN: usize = 16;

fn print_contents(info: &InfoJson, contents: &Contents, out: &mut Ui) -> Result<(), Failure> {
    let (stored, decoded) = (human_size(contents.stored_bytes), human_size(contents.decoded_bytes));
    out.line(format_args!("  Objects: {}, {stored} stored, {decoded} decoded", contents.objects))?;
    for ArrayKind { name, dtype, shape, count, .. } in contents.arrays.iter().take(SHOWN) {
        let name = name.as_deref().map_or("(no name)".into(), escape::name);
        let shape = Shape::new(shape.clone());
        out.line(format_args!("    {name}: {count} × {dtype} {shape}"))?;
    }
    print_more(contents.arrays.len(), "more kind of arrays", out)?;
    if !contents.keys.is_empty() {
        out.line("  Keys:")?;
    }
    for range in contents.keys.iter().take(SHOWN) {
        out.line(format_args!("    {}: {}", escape::name(&range.key), values(range)))?;
    }
    print_more(contents.keys.len(), "more key", out)?;
    if let Some((first, last)) = &contents.written {
        let last = if first == last { String::new() } else { format!(" to {}", escape::name(last)) };
        out.line(format_args!("  Written: {}{last}", escape::name(first)))?;
    }
    out.line(format_args!("  Integrity: {}", integrity(info, contents)))
}

fn print_more(count: usize, what: &str, out: &mut Ui) -> Result<(), Failure> {
    match count.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => out.line(format_args!("    … {}; `--json` prints all", counted(more as u64, what))),
    }
}

/// The values of a key: a few of them, or their range.
fn values(range: &KeyRange) -> String {
    const FEW: usize = 6;
    let shown = |value: &Value| escape::name(&printed(value)).into_owned();
    if range.values.len() <= FEW && !range.has_more {
        return range.values.iter().map(shown).collect::<Vec<_>>().join(", ");
    }
    let more = if range.has_more { "more than " } else { "" };
    let count = format!("{more}{} values", range.values.len());
    match (&range.min, &range.max) {
        (Some(min), Some(max)) => format!("{}..{} ({count})", shown(min), shown(max)),
        _ => count,
    }
}

/// What is known without reading payloads.
fn integrity(info: &InfoJson, contents: &Contents) -> String {
    let Contents { objects, hashed_objects, unreadable_messages, .. } = contents;
    let hashes = match (objects, hashed_objects) {
        (0, _) => "no objects".to_owned(),
        (objects, hashed) if objects == hashed => "all objects have hashes".to_owned(),
        (_, 0) => "no object has a hash".to_owned(),
        (objects, hashed) => format!("{} of {objects} objects have no hash", objects - hashed),
    };
    let mut parts = vec![hashes];
    if *unreadable_messages > 0 {
        parts.push(format!("{} cannot be read", counted(*unreadable_messages, "message")));
    }
    let gaps = info.gaps.len() as u64 - u64::from(info.cut_tail.is_some() && !info.gaps.is_empty());
    parts.push(match gaps {
        0 => "no gaps".to_owned(),
        count => counted(count, "gap"),
    });
    parts.extend(info.cut_tail.map(|cut| cut.to_string()));
    parts.join(", ")
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tgm), JsonList::Always, out, |input, out| {
        run_on(ReportFormat::new(args.json.json, args.quiet.quiet), input.source()?, out)
    })
}

/// Prints the summary of an open file.
pub(crate) fn run_on(
    form: ReportFormat,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let info = summary(source, out)?;
    match form {
        ReportFormat::Text => print(&info, out)?,
        ReportFormat::OneLine => {
            let Summary { location, file_len: size, messages, .. } = &info.summary;
            let file = escape::name(location);
            out.line(format_args!("path={file} file_len={size} version={VERSION} messages={messages}"))?;
        }
        ReportFormat::Json => out.json(&info)?,
    }
    Ok(info.outcome())
}
