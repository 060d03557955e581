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
    /// Show datasets, metadata, chunks and history
    Info(info::Args),
    /// Verify structure, checksums and chunks
    Verify(verify::Args),
    /// Repair a damaged file, or salvage its intact chunks
    Repair(repair::Args),
    /// Create a file from arrays
    ///
    /// Reads NumPy .npy files in C or Fortran order and either byte order. Arrays may be larger than memory. The output file
    /// is written atomically: it appears when it is complete.
    Create(create::Args),
    /// Extract an array, or a slice of it
    ///
    /// The result may be larger than memory. The output file is written atomically.
    Extract(extract::Args),
    /// Add arrays to a file
    ///
    /// Rewrites the file with the arrays added, verifies every copied chunk, and replaces the old file atomically.
    /// Concurrent changes of the same file are rejected.
    Append(append::Args),
    /// Remove arrays from a file
    ///
    /// Rewrites the file without them, verifies every copied chunk, and replaces the old file atomically.
    Drop(drop::Args),
    /// Print the byte layout as a tree
    Outline(outline::Args),
    /// Run a query: reductions, slices, transforms
    ///
    /// A query is a JSON or TOML document with a dataset, a selection and an operation.
    #[command(visible_alias = "q")]
    Query(query::Args),
    /// List past queries, or run one again
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
