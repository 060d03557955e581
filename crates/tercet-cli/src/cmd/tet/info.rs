//! `tet info`: what a file holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use tercet::core::ByteSource;
use tercet::tet::{self, File, ReadOptions, Summary};

use super::report::warn_of_gaps;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

mod filter;
mod text;

use filter::Filter;

const EXAMPLES: &str = "\
Examples:
  tet info era5.tet                        datasets and metadata
  tet info era5.tet --chunks -n 0          every chunk
  tet info era5.tet --dataset t2m --json   all about one dataset, for programs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print one line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print every section
    #[arg(long)]
    all: bool,
    /// Print the fields of the superblock
    #[arg(long)]
    layout: bool,
    /// Print the author's advice on memory
    #[arg(long)]
    execution: bool,
    /// Print the datasets (default, with their metadata)
    #[arg(long)]
    datasets: bool,
    /// Print the chunks
    #[arg(long)]
    chunks: bool,
    /// Print what happened to the file
    #[arg(long)]
    history: bool,
    /// Print metadata with the labels of each axis
    #[arg(long)]
    metadata: bool,
    /// Print at most N chunks; 0 means all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 32)]
    limit: u64,
    /// Only datasets whose name contains this, in any case
    #[arg(long, value_name = "TEXT")]
    dataset: Option<String>,
    /// Only datasets whose name, element type or metadata contain this, in any case
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Show a file whose checksums are wrong; what is shown may be wrong too
    #[arg(long)]
    ignore_checksums: bool,
}

impl Args {
    /// The first option given that says something about `.tet` files only.
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

/// What `--json` prints.
#[derive(Serialize)]
struct Told {
    path: String,
    file_len: u64,
    filter: Option<String>,
    summary: Summary,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    run_on(args, args.input.source()?, out)
}

pub(crate) fn run_on(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = ReadOptions::new().with_ignore_checksums(args.ignore_checksums);
    let file = options.open_source(source)?;
    warn_of_gaps(&file, out)?;
    let filter = Filter::new(args.dataset.as_deref(), args.grep.as_deref());
    if args.json {
        out.json(&told(&file, &filter)?)?;
    } else if args.quiet {
        out.line(one_line(&file, &filter)?)?;
    } else {
        text::print(&file, args, &filter, out)?;
    }
    Ok(Outcome::Done)
}

fn told(file: &File, filter: &Filter) -> Result<Told, Failure> {
    let mut summary = file.summary()?;
    // Present even when there is none, so that programs need not ask.
    let metadata = summary.metadata.get_or_insert_default();
    if filter.is_active() {
        let kept = filter.apply(file);
        let names: BTreeSet<&str> = kept.datasets.iter().map(tet::Dataset::name).collect();
        metadata.datasets.retain(|name, _| names.contains(name.as_str()));
        // `dataset_id` counts the datasets that are shown: `datasets[dataset_id]` stays right.
        summary.chunks.retain_mut(|row| match kept.place(row.dataset_id) {
            Some(place) => {
                row.dataset_id = place as u64;
                true
            }
            None => false,
        });
        let mut ids = 0..;
        summary.datasets.retain(|_| ids.next().is_some_and(|id| kept.place(id).is_some()));
    }
    Ok(Told { path: file.name().to_owned(), file_len: file.len(), filter: filter.to_text(), summary })
}

fn one_line(file: &File, filter: &Filter) -> Result<String, Failure> {
    let (mut datasets, mut chunks) = (file.datasets().len(), file.chunk_count());
    if filter.is_active() {
        let kept = filter.apply(file);
        (datasets, chunks) = (kept.datasets.len(), 0);
        file.for_each_row(|_, row| chunks += u64::from(kept.place(row.dataset_id).is_some()))?;
    }
    Ok(format!(
        "path={} file_len={} layout={} datasets={datasets} chunks={chunks} history={}",
        tercet::core::escape::name(file.name()),
        file.len(),
        file.superblock().layout_version,
        file.history().len(),
    ))
}
