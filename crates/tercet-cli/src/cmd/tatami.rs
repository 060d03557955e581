//! The verbs for `.tatami` files.

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod cat;
mod columns;
pub(crate) mod head;
pub(crate) mod inspect;
pub(crate) mod lookup;
mod open;
mod scalars;
pub(crate) mod stats;

/// The verbs for `.tatami` files.
#[derive(Debug, Subcommand)]
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
    /// Say what columns hold and how it is stored
    ///
    /// Footer, page headers and value dictionaries are read, but no values.
    Stats(stats::Args),
}

impl Verb {
    pub(crate) fn run(&self, out: &mut Ui) -> Result<Outcome, Failure> {
        match self {
            Self::Inspect(args) => inspect::run(args, out),
            Self::Cat(args) => cat::run(args, out),
            Self::Head(args) => head::run(args, out),
            Self::Lookup(args) => lookup::run(args, out),
            Self::Stats(args) => stats::run(args, out),
        }
    }
}
