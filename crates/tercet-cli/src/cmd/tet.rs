//! The verbs for `.tet` files.

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod append;
mod arrays;
pub(crate) mod create;
pub(crate) mod drop;
pub(crate) mod extract;
mod history;
pub(crate) mod info;
pub(crate) mod outline;
pub(crate) mod qhist;
pub(crate) mod query;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod verify;
mod written;

/// The verbs for `.tet` files.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say what a file holds: datasets, metadata, chunks, history
    Info(info::Args),
    /// Check a file: structure, checksums, chunks
    Verify(verify::Args),
    /// Repair a damaged file, or save what is good in it
    Repair(repair::Args),
    /// Make a file from arrays
    ///
    /// Reads NumPy .npy files of any size, in C or Fortran order and either byte order, and writes them as the
    /// datasets of one new file. The file appears when it is complete; until then nothing changes.
    Create(create::Args),
    /// Take an array, or a part of it, out of a file
    ///
    /// The result may be larger than memory. The output file appears when it is complete.
    Extract(extract::Args),
    /// Add arrays to a file
    ///
    /// The file is written anew with the arrays added and takes the place of the old one when it is complete; until
    /// then nothing changes. Every chunk that is copied is checked. A second command that tries to change the file
    /// meanwhile is refused.
    Append(append::Args),
    /// Remove arrays from a file
    ///
    /// The file is written anew without them and takes the place of the old one when it is complete; until then
    /// nothing changes. Every chunk that is copied is checked.
    Drop(drop::Args),
    /// Draw a file as a tree of named bytes
    Outline(outline::Args),
    /// Ask a file: reductions, slices, transforms
    ///
    /// A query is a JSON or TOML document that names a dataset, what to take of it, and what to compute.
    #[command(visible_alias = "q")]
    Query(query::Args),
    /// List the queries that were asked, or ask one again
    #[command(visible_alias = "hist")]
    Qhist(qhist::Args),
}

impl Verb {
    pub(crate) fn run(&self, out: &mut Ui) -> Result<Outcome, Failure> {
        match self {
            Self::Info(args) => info::run(args, out),
            Self::Verify(args) => verify::run(args, out),
            Self::Repair(args) => repair::run(args, out),
            Self::Create(args) => create::run(args, out),
            Self::Extract(args) => extract::run(args, out),
            Self::Append(args) => append::run(args, out),
            Self::Drop(args) => drop::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::Query(args) => query::run(args, out),
            Self::Qhist(args) => qhist::run(args, out),
        }
    }
}
