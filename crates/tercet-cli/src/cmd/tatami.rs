//! The verbs for `.tatami` files.

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod cat;
pub(crate) mod collection;
mod columns;
mod condition;
#[cfg(feature = "arrow")]
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod explain;
mod folder;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod lookup;
pub(crate) mod merge;
mod names;
mod odd;
mod open;
pub(crate) mod outline;
pub(crate) mod repair;
mod scalars;
pub(crate) mod search;
pub(crate) mod stats;
pub(crate) mod verify;

/// The verbs for `.tatami` files.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one is made for each run")]
pub(crate) enum Verb {
    /// Say what a file holds: columns, row groups, indexes, metadata
    ///
    /// Only the last bytes of the file and its header are read, however large it is.
    #[command(visible_alias = "info")]
    Inspect(inspect::Args),
    /// Print rows as JSON, one object on a line
    Cat(cat::Args),
    /// Print the first rows as JSON
    Head(head::Args),
    /// Print the row with a key
    ///
    /// The key is a value of the column that the file is sorted by. One page of that column is searched; of the other
    /// columns only the pages that hold the row are read.
    Lookup(lookup::Args),
    /// Count rows, all of them or those that fulfil a condition
    Count(count::Args),
    /// Say which row groups and pages a condition leaves out, and by what
    Explain(explain::Args),
    /// Make a table of another format: Parquet, Arrow, CSV, JSONL and .tatami, each into the others
    ///
    /// What the input is, its first bytes say; what the output is, its name says, or --to. The output appears when it is
    /// complete; until then nothing changes.
    #[cfg(feature = "arrow")]
    Convert(convert::Args),
    /// Say what columns hold and how it is stored
    ///
    /// Footer, page headers and value dictionaries are read, but no values.
    Stats(stats::Args),
    /// Make a file from JSONL or CSV
    ///
    /// The rows are read one after the other, with memory for one row group. The file appears when it is complete;
    /// until then nothing changes.
    Create(create::Args),
    /// Make a search segment of documents
    ///
    /// Text, Markdown, web pages, JSONL, Parquet and TREC. Memory does not grow with the documents, and the file appears when it is
    /// complete; until then nothing changes.
    Index(index::Args),
    /// Search the documents of a segment
    Search(search::Args),
    /// Take documents out of a search segment
    Delete(delete::Args),
    /// Make one file of several: search segments, or files with the same columns
    Merge(merge::Args),
    /// Keep many files as one: add, list, remove, compact
    #[command(visible_alias = "col")]
    Collection(collection::Args),
    /// Check a file: structure, checksums, values
    Verify(verify::Args),
    /// Draw a file as a tree of named bytes
    Outline(outline::Args),
    /// Keep the intact rows of a damaged file, in a new one
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
            Self::Explain(args) => explain::run(args, out),
            #[cfg(feature = "arrow")]
            Self::Convert(args) => convert::run(args, out),
            Self::Stats(args) => stats::run(args, out),
            Self::Create(args) => create::run(args, out),
            Self::Index(args) => index::run(args, out),
            Self::Search(args) => search::run(args, out),
            Self::Delete(args) => delete::run(args, out),
            Self::Merge(args) => merge::run(args, out),
            Self::Collection(args) => collection::run(args, out),
            Self::Verify(args) => verify::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::Repair(args) => repair::run(args, out),
        }
    }
}
