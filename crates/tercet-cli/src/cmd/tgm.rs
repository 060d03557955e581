//! The verbs for `.tgm` files.

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

pub(crate) mod advise;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod doctor;
pub(crate) mod dump;
mod editing;
pub(crate) mod extract;
pub(crate) mod get;
mod globals;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod merge;
mod open;
pub(crate) mod outline;
mod pipeline;
mod place;
pub(crate) mod recode;
pub(crate) mod repair;
pub(crate) mod reshuffle;
mod select;
pub(crate) mod set;
pub(crate) mod split;
#[cfg(feature = "sz3")]
pub(crate) mod sz3;
pub(crate) mod tail;
pub(crate) mod validate;

pub(crate) use globals::Globals;

/// All commands for .tgm files
#[derive(Debug, clap::Args)]
pub(crate) struct Line {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs for `.tgm` files.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say how many messages files hold
    Info(info::Args),
    /// List messages with values of their metadata
    Ls(ls::Args),
    /// Print all metadata of messages, and what their objects are
    ///
    /// The payloads are not printed, but every one that has a hash is compared with it.
    Dump(dump::Args),
    /// Print values of the metadata of messages, for scripts
    Get(get::Args),
    /// Follow a file or a stream, and list each message as it becomes whole
    Tail(tail::Args),
    /// Copy messages as they are, into one file or into one for each value of a key
    ///
    /// Every message that is copied is checked before the first byte is written. Output files appear when they are
    /// complete. With options that say how values are stored, the messages are recoded on the way.
    Copy(copy::Args),
    /// Set values in the metadata of messages
    ///
    /// Stored values are carried over as they are, with their hashes. Every message is checked before the first byte is
    /// written, and the output file appears when it is complete.
    Set(set::Args),
    /// Put the objects of all messages into one message
    ///
    /// Stored values are carried over as they are, with their hashes, and checked before the first byte is written.
    Merge(merge::Args),
    /// Put each object into a file of its own
    ///
    /// Stored values are carried over as they are, with their hashes, and checked before the first byte is written.
    Split(split::Args),
    /// Put metadata, index and hashes of streamed messages before their objects
    ///
    /// Stored values are carried over as they are, with their hashes, and checked before the first byte is written.
    Reshuffle(reshuffle::Args),
    /// Make a message from arrays
    ///
    /// Reads NumPy .npy files, in C or Fortran order and either byte order, and writes them as the objects of one
    /// message: the only one of a new file, or the last one of a file that is there. The file appears when it is
    /// complete; until then nothing changes.
    Create(create::Args),
    /// Store the values of messages in another way
    ///
    /// Metadata and element types are kept. Every object is decoded again after it was encoded: a value that changed is an
    /// error, unless `--lossy` or `--max-error` allows it. Messages that were streamed become messages in one piece. One
    /// message at a time is in memory, and the output file appears when it is complete.
    Recode(recode::Args),
    /// Say how an array is stored best
    ///
    /// Tries every way of storing it that is worth a try, and measures sizes, errors and speeds.
    Advise(advise::Args),
    /// Take an array, or ranges of its values, out of a message
    ///
    /// Its hash is compared first. The output file appears when it is complete.
    Extract(extract::Args),
    /// Give a file a catalogue, so that messages are found without looking at all of them
    ///
    /// The catalogue is a message at the end of the file: places and lengths of all messages, and the values of keys. It is
    /// kept up by `tgm create --append`; other programs take it for an ordinary message. A file that has one already is only
    /// written if messages were added or other keys are asked for.
    Index(index::Args),
    /// Check files: structure, metadata, hashes, values
    ///
    /// With `--against` the values of an object are compared with those they were made from.
    #[command(visible_alias = "verify")]
    Validate(validate::Args),
    /// Keep what is intact of a damaged file, in a new one
    Repair(repair::Args),
    /// Draw a file as a tree of named bytes
    Outline(outline::Args),
    /// Say what this build can do, and check that it does
    Doctor(doctor::Args),
}

/// How the verbs of `tercet` show what they found about one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    OneLine,
    Json,
}

impl Form {
    pub(crate) fn of(json: bool, quiet: bool) -> Self {
        match (json, quiet) {
            (true, _) => Self::Json,
            (_, true) => Self::OneLine,
            _ => Self::Text,
        }
    }
}

impl Verb {
    pub(crate) fn run(&self, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
        globals.limit_threads();
        match self {
            Self::Info(args) => info::run(args, out),
            Self::Ls(args) => ls::run(args, out),
            Self::Dump(args) => dump::run(args, out),
            Self::Get(args) => get::run(args, out),
            Self::Tail(args) => tail::run(args, out),
            Self::Copy(args) => copy::run(args, globals, out),
            Self::Set(args) => set::run(args, out),
            Self::Merge(args) => merge::run(args, out),
            Self::Split(args) => split::run(args, out),
            Self::Reshuffle(args) => reshuffle::run(args, out),
            Self::Create(args) => create::run(args, globals, out),
            Self::Recode(args) => recode::run(args, globals, out),
            Self::Advise(args) => advise::run(args, globals, out),
            Self::Extract(args) => extract::run(args, out),
            Self::Index(args) => index::run(args, out),
            Self::Validate(args) => validate::run(args, out),
            Self::Repair(args) => repair::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::Doctor(args) => doctor::run(args, out),
        }
    }
}
