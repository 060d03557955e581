//! The verbs for `.tatami` files.

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod agg;
pub(crate) mod cat;
pub(crate) mod collection;
mod collection_scan;
mod columns;
#[cfg(feature = "arrow")]
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod head;
pub(crate) mod index;
mod ingest;
pub(crate) mod inspect;
mod layout;
pub(crate) mod lookup;
pub(crate) mod merge;
mod names;
mod new_rows;
pub(crate) mod open;
pub(crate) mod outline;
pub(crate) mod repair;
mod scalars;
pub(crate) mod search;
pub(crate) mod stats;
pub(crate) mod upsert;
pub(crate) mod verify;
mod warnings;

/// The verbs for `.tatami` files.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum Verb {
    /// Show columns, row groups, indexes and metadata
    ///
    /// Reads the footer and the header only.
    #[command(visible_alias = "info")]
    Inspect(inspect::Args),
    /// Print rows as JSON Lines
    Cat(cat::Args),
    /// Print the first rows as JSON Lines
    Head(head::Args),
    /// Look up a row by its sort key
    ///
    /// Searches one page of the sort key column, and reads only the pages with the row from the other columns.
    #[command(visible_alias = "get")]
    Lookup(lookup::Args),
    /// Count rows, with an optional filter
    Count(count::Args),
    /// Aggregate rows: count, min, max, sum, mean, by group
    ///
    /// Row groups whose statistics prove the result are not read.
    #[command(visible_alias = "aggregate")]
    Agg(agg::Args),
    /// Explain which row groups and pages a filter prunes
    Explain(explain::Args),
    /// Convert between .tatami, Parquet, Arrow IPC, CSV and JSONL
    ///
    /// The input format is detected; the output format follows the file extension, or --to. The output file is written
    /// atomically.
    #[cfg(feature = "arrow")]
    Convert(convert::Args),
    /// Print column statistics and storage
    ///
    /// Reads footer, page headers and dictionaries, but no values.
    Stats(stats::Args),
    /// Create a file from tables: CSV, JSONL, Parquet, Arrow
    ///
    /// Rows are streamed, with one row group in memory. The output file is written atomically.
    Create(create::Args),
    /// Index documents into a search segment
    ///
    /// Reads text, Markdown, HTML, JSONL, Parquet and TREC files. Memory is bounded, and the output file is written
    /// atomically.
    Index(index::Args),
    /// Search the documents of a segment or collection
    Search(search::Args),
    /// Evaluate search rankings with relevance judgments
    Eval(eval::Args),
    /// Serve search and tables over HTTP
    ///
    /// Every .tatami file of the directory must be a search segment; `tercet serve` serves files of any format.
    Serve(Box<crate::cmd::serve::Args>),
    /// Insert rows, or replace those with the same key
    ///
    /// Atomic: readers see the old rows or the new ones.
    Upsert(upsert::Args),
    /// Delete documents from a search segment, or rows from a file or collection
    Delete(delete::Args),
    /// Merge search segments, or files with the same schema
    Merge(merge::Args),
    /// Manage a collection of files: add, append, list, merge, remove, verify, compact
    #[command(visible_alias = "col")]
    Collection(collection::Args),
    /// Verify structure, checksums and values
    Verify(verify::Args),
    /// Print the byte layout as a tree
    Outline(outline::Args),
    /// Salvage the intact rows of a damaged file
    Repair(repair::Args),
}

impl Verb {
    pub(crate) fn run(&self, out: &mut Ui) -> Result<Outcome, Failure> {
        match self {
            Self::Inspect(args) => inspect::run(args, out),
            Self::Cat(args) => cat::run(args, out),
            Self::Head(args) => head::run(args, out),
            Self::Lookup(args) => lookup::run(args, out),
            Self::Count(args) => count::run(args, out),
            Self::Agg(args) => agg::run(args, out),
            Self::Explain(args) => explain::run(args, out),
            #[cfg(feature = "arrow")]
            Self::Convert(args) => convert::run(args, out),
            Self::Stats(args) => stats::run(args, out),
            Self::Create(args) => create::run(args, out),
            Self::Index(args) => index::run(args, out),
            Self::Search(args) => search::run(args, out),
            Self::Eval(args) => eval::run(args, out),
            Self::Serve(args) => crate::cmd::serve::run_tatami(args, out),
            Self::Upsert(args) => upsert::run(args, out),
            Self::Delete(args) => delete::run(args, out),
            Self::Merge(args) => merge::run(args, out),
            Self::Collection(args) => collection::run(args, out),
            Self::Verify(args) => verify::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::Repair(args) => repair::run(args, out),
        }
    }
}
