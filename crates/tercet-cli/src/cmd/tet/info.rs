//! `tet info`: datasets, metadata, chunks and history.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::ByteSource;
use tercet::tet::{self, File, ReadOptions, Summary};

use super::report::warn_if_partly_protected;
use crate::args::{JsonArgs, LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::ui::Ui;

mod filter;
mod text;

use filter::Filter;

/// Items printed by default.
pub(crate) const LIMIT: u64 = 32;

const EXAMPLES: &str = "\
Examples:
  tet info era5.tet                        datasets and metadata
  tet info era5.tet --chunks -n 0          every chunk
  tet info era5.tet --dataset t2m --json   one dataset as JSON
  tet info -r archive -q                   one line for each file of a directory tree";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N chunks; 0 prints all [default: 32]")))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    /// Print a one-line summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print all sections
    #[arg(long)]
    all: bool,
    /// Print the superblock
    #[arg(long)]
    layout: bool,
    /// Print the execution hints: memory budget
    #[arg(long)]
    execution: bool,
    /// Print datasets and their metadata (default)
    #[arg(long)]
    datasets: bool,
    /// Print the chunk index
    #[arg(long)]
    chunks: bool,
    /// Print the file history
    #[arg(long)]
    history: bool,
    /// Print metadata and axis labels
    #[arg(long)]
    metadata: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Select datasets whose name contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    dataset: Option<String>,
    /// Select datasets whose name, dtype or metadata contain TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Skip checksum verification; the output may be wrong
    #[arg(long)]
    ignore_checksums: bool,
}

impl Args {
    /// The first given option that applies to `.tet` files only.
    pub(crate) fn for_tet_only(&self) -> Option<&'static str> {
        let flags = [
            (self.layout, "--layout"),
            (self.execution, "--execution"),
            (self.datasets, "--datasets"),
            (self.chunks, "--chunks"),
            (self.history, "--history"),
            (self.metadata, "--metadata"),
            (self.dataset.is_some(), "--dataset"),
            (self.grep.is_some(), "--grep"),
        ];
        flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

/// The output of `--json`.
#[derive(Serialize)]
pub(crate) struct InfoJson {
    pub(crate) path: String,
    pub(crate) file_len: u64,
    filter: Option<String>,
    pub(crate) summary: Summary,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tet), JsonList::ForMany, out, |input, out| {
        run_on(args, input.source_of(Format::Tet)?, out)
    })
}

/// The output of `--json`.
pub(crate) fn read(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<InfoJson, Failure> {
    info_json(&open(args, source, out)?, &Filter::new(args.dataset.as_deref(), args.grep.as_deref()))
}

fn open(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<File, Failure> {
    let options = ReadOptions::new().with_verify(!args.ignore_checksums).with_limits(limits());
    let file = File::from_source(source, options)?;
    warn_if_partly_protected(&file, out)?;
    Ok(file)
}

pub(crate) fn run_on(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open(args, source, out)?;
    let filter = Filter::new(args.dataset.as_deref(), args.grep.as_deref());
    if args.json.json {
        out.json(&info_json(&file, &filter)?)?;
    } else if args.quiet {
        out.line(one_line(&file, &filter)?)?;
    } else {
        text::print(&file, args, &filter, out)?;
    }
    Ok(Outcome::Done)
}

fn info_json(file: &File, filter: &Filter) -> Result<InfoJson, Failure> {
    let mut summary = file.summary()?;
    // Always present, so that consumers need no special case.
    let metadata = summary.metadata.get_or_insert_default();
    if filter.is_active() {
        let kept = filter.apply(file);
        let names: BTreeSet<&str> = kept.datasets.iter().map(tet::Dataset::name).collect();
        metadata.datasets.retain(|name, _| names.contains(name.as_str()));
        // Renumber `dataset_id`, so that it indexes the filtered `datasets`.
        summary.chunks.retain_mut(|row| match kept.position(row.dataset_id) {
            Some(position) => {
                row.dataset_id = position as u64;
                true
            }
            None => false,
        });
        let mut ids = 0..;
        summary.datasets.retain(|_| ids.next().is_some_and(|id| kept.position(id).is_some()));
    }
    Ok(InfoJson { path: file.name().to_owned(), file_len: file.len(), filter: filter.to_text(), summary })
}

fn one_line(file: &File, filter: &Filter) -> Result<String, Failure> {
    let (mut datasets, mut chunks) = (file.datasets().len(), file.chunk_count());
    if filter.is_active() {
        let kept = filter.apply(file);
        (datasets, chunks) = (kept.datasets.len(), 0);
        file.for_each_row(|_, row| chunks += u64::from(kept.position(row.dataset_id).is_some()))?;
    }
    Ok(format!(
        "path={} file_len={} layout={} datasets={datasets} chunks={chunks} history={}",
        tercet::core::escape::name(file.name()),
        file.len(),
        file.superblock().layout_version,
        file.history().len(),
    ))
}
