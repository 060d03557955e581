//! `tatami merge`: merge files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::Format;
use tercet::core::{Sink, escape};
use tercet::tatami::collection::merge_files;
use tercet::tatami::search::{DirectorySegments, MergeOptions, MergePolicy, Segment, SegmentSize, merge};
use tercet::tatami::{Access, File, ReadOptions};

use super::layout::Layout;
use crate::args::{ForceArgs, JsonArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, must_be_on_disk};
use crate::output::display_path;
use crate::output::{Output, Spool, atomic_file, deliver, json_path};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

const EXAMPLES: &str = "\
Examples:
  tatami merge a.tatami b.tatami -o all.tatami
  tatami merge old.tatami new.tatami -o all.tatami --dedup   `new` replaces documents of `old`
  tatami merge --policy crawl                                segments to merge next

Deleted documents are dropped. Files with a sort key are merged in its order. With `--dedup`, the last live document \
with the same ID wins.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("force", |arg| arg.requires("output")))]
pub(crate) struct Args {
    /// Input files, collections or URLs, in document order; `-` reads standard input
    #[arg(value_name = "FILES", required_unless_present = "policy")]
    inputs: Vec<PathBuf>,
    /// Output file or URL; `-` writes to standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "policy")]
    output: Option<PathBuf>,
    /// Keep only the last document with the same ID
    #[arg(long)]
    dedup: bool,
    #[command(flatten)]
    force: ForceArgs,
    /// List the segments of a directory that the tiered merge policy selects; writes nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["inputs", "output", "dedup"])]
    policy: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    layout: Layout,
}

/// The JSON summary of a merge.
#[derive(Serialize)]
struct MergeJson {
    output: String,
    rows: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    drops_positions: bool,
}

/// The JSON output of `--policy`.
#[derive(Serialize)]
struct Plan {
    segments: Vec<Planned>,
    merge: Vec<String>,
}

#[derive(Serialize)]
struct Planned {
    file: String,
    documents: u64,
    live: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    match (&args.policy, &args.output) {
        (Some(directory), _) => plan(directory, args.json.json, out),
        (None, Some(output)) => write(args, output, out),
        (None, None) => Err(Failure::request("no output file").with_hint("add `-o OUT`")),
    }
}

fn write(args: &Args, output: &Path, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut files = Vec::with_capacity(args.inputs.len());
    let target = Output::open(output, args.force.force)?;
    target.reserve_stdout(out)?;
    let name = target.name();
    if args.inputs.iter().filter(|input| input.as_os_str() == "-").count() > 1 {
        return Err(Failure::request("standard input (`-`) is given more than once"));
    }
    for input in &args.inputs {
        target.must_not_be(input)?;
        let input = Input::new(input);
        if let Some(collection) = super::collection_scan::collection(&input, out)? {
            for member in collection.members() {
                files.push(collection.open_member(member)?);
            }
            continue;
        }
        let source = input.source_of(Format::Tatami)?;
        files.push(File::from_source(source, ReadOptions::new().with_limits(limits()))?);
    }
    if files.is_empty() {
        return Err(Failure::request("the collections have no files to merge"));
    }
    let bar = out.bar("merging", 0);
    let summary = if let Output::Path(path) = &target {
        merge_into(args, &files, || Ok(atomic_file(path, args.force.force)?), &bar)?.0
    } else {
        let (summary, file) = merge_into(args, &files, Spool::new, &bar)?;
        deliver(file, target, out)?;
        summary
    };
    drop(bar);
    if summary.drops_positions {
        out.note("positions of terms dropped: not all segments have them")?;
    }
    if args.json.json {
        out.json(&summary)?;
        return Ok(Outcome::Done);
    }
    let mut dropped = String::new();
    for (count, what) in [(summary.deleted, "deleted"), (summary.duplicates, "duplicates")] {
        if let Some(count) = count.filter(|count| *count > 0) {
            // Writing to a String cannot fail.
            let _ = write!(dropped, ", {count} {what} dropped");
        }
    }
    let (name, rows, bytes) = (name, summary.rows, human_size(summary.bytes));
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let (row, file) = (plural(rows), plural(files.len() as u64));
    out.summary(format_args!("{name}: {rows} row{row} of {} file{file}{dropped}, {bytes}", files.len()))?;
    Ok(Outcome::Done)
}

/// Merges search segments, or files with the same schema; `open` creates the output.
fn merge_into<S: Sink + Send>(
    args: &Args,
    files: &[File],
    open: impl FnOnce() -> Result<S, Failure>,
    bar: &Bar,
) -> Result<(MergeJson, S::Output), Failure> {
    let mut segments = Vec::new();
    for file in files {
        segments.extend(file.segment()?);
    }
    let writer = args.layout.options()?;
    let output = args.output.as_deref().map(json_path).unwrap_or_default();
    if segments.len() == files.len() {
        let options = MergeOptions::default().with_dedup(args.dedup).with_writer(writer);
        let merged = merge(&segments, open()?, options, bar)?;
        let summary = MergeJson {
            output,
            rows: merged.written.rows,
            bytes: merged.written.bytes,
            deleted: Some(merged.deleted),
            duplicates: args.dedup.then_some(merged.duplicates),
            drops_positions: merged.drops_positions,
        };
        return Ok((summary, merged.written.output));
    }
    if let Some(segment) = segments.first() {
        let message = format!(
            "{}: cannot merge a search segment with other files",
            escape::name(segment.file().name())
        );
        return Err(Failure::request(message).with_hint("merge search segments separately"));
    }
    if args.dedup {
        return Err(Failure::request("`--dedup` applies to search segments only"));
    }
    let written = merge_files(files, open()?, writer, bar)?;
    let (rows, bytes) = (written.rows, written.bytes);
    Ok((
        MergeJson { output, rows, bytes, deleted: None, duplicates: None, drops_positions: false },
        written.output,
    ))
}

/// Prints the plan of the merge policy.
fn plan(directory: &Path, json: bool, out: &mut Ui) -> Result<Outcome, Failure> {
    let segments = segments_of(directory, out)?;
    let sizes: Vec<SegmentSize> = segments
        .iter()
        .map(|segment| SegmentSize {
            documents: segment.document_count(),
            live: segment.live_document_count(),
        })
        .collect();
    let chosen = MergePolicy::default().choose(&sizes).unwrap_or_default();
    let name = |at: usize| segments[at].file().name().to_string();
    if json {
        let planned = sizes.iter().enumerate().map(|(at, size)| Planned {
            file: name(at),
            documents: size.documents,
            live: size.live,
        });
        out.json(&Plan { segments: planned.collect(), merge: chosen.into_iter().map(name).collect() })?;
        return Ok(Outcome::Done);
    }
    if chosen.is_empty() {
        out.line(format_args!("nothing to merge: {} segments", segments.len()))?;
    }
    for at in chosen {
        let SegmentSize { documents, live } = sizes[at];
        out.line(format_args!("{}: {live} of {documents} documents live", escape::name(&name(at))))?;
    }
    Ok(Outcome::Done)
}

/// The segments of a collection, or the `.tatami` files of a directory without a manifest, by name.
pub(super) fn segments_of(directory: &Path, out: &mut Ui) -> Result<Vec<Segment>, Failure> {
    must_be_on_disk(directory, "list")?;
    let options = ReadOptions::new().with_access(Access::Pread).with_limits(limits());
    let found = DirectorySegments::open(directory, options)?;
    super::collection::warn(directory, &found.warnings, out)?;
    if found.segments.is_empty() {
        out.note(format_args!("{}: the collection is empty", display_path(directory)))?;
    }
    Ok(found.segments)
}
