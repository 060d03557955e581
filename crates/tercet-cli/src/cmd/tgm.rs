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
mod named;
mod object_id;
mod open;
pub(crate) mod outline;
mod pipeline;
pub(crate) mod repack;
pub(crate) mod repair;
pub(crate) mod reshuffle;
mod select;
pub(crate) mod set;
pub(crate) mod split;
pub(crate) mod tail;
pub(crate) mod validate;
pub(crate) mod verify;

pub(crate) use globals::{Globals, environment_variable};

/// Run a command for .tgm files
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
    /// Show message count, names, shapes, key ranges and sizes
    Info(info::Args),
    /// List objects with shape, dtype, encoding, size and metadata
    Ls(ls::Args),
    /// Print all metadata and object descriptions
    ///
    /// Payloads are not printed, but their hashes are verified.
    Dump(dump::Args),
    /// Print metadata values, for scripts
    Get(get::Args),
    /// Follow a file or stream and list each complete message
    Tail(tail::Args),
    /// Copy messages to one file, or to one file per metadata value
    ///
    /// Every message is verified before the first byte is written. Output files are written atomically. With options
    /// for encoding, filter or compression, messages are repacked as by `tgm repack`.
    #[command(args = globals::mask_options())]
    Copy(copy::Args),
    /// Set metadata values
    ///
    /// Payloads are copied unchanged, with their hashes. Every message is verified before the first byte is written. The
    /// output file is written atomically.
    Set(set::Args),
    /// Merge all objects into one message
    ///
    /// Payloads are copied unchanged, with their hashes, and verified before the first byte is written.
    Merge(merge::Args),
    /// Split objects into one file each
    ///
    /// Payloads are copied unchanged, with their hashes, and verified before the first byte is written.
    Split(split::Args),
    /// Rewrite streamed messages with metadata, index and hashes before the objects
    ///
    /// A streamed message is written object by object; its index and hashes follow the objects.
    ///
    /// Payloads are copied unchanged, with their hashes, and verified before the first byte is written.
    Reshuffle(reshuffle::Args),
    /// Create a message from arrays
    ///
    /// Reads NumPy .npy files in C or Fortran order and either byte order, and writes them as the objects of one message,
    /// to a new file, which is written atomically, or with --append to the end of an existing one.
    #[command(args = globals::mask_options())]
    Create(create::Args),
    /// Rewrite messages with another encoding, filter or compression
    ///
    /// Metadata and dtypes are kept. Every object is decoded again after encoding: a changed value is an error, unless
    /// `--lossy` or `--max-error` allows it. Streamed messages get their index and hashes before the objects, as by
    /// `tgm reshuffle`. One message at a time is in memory, and the output file is written atomically.
    #[command(args = globals::mask_options(), alias = "recode")]
    Repack(repack::Args),
    /// Recommend encoding, filter and compression for an array
    ///
    /// Tries the useful pipelines (encoding, filter, compression) and measures size, error and speed.
    #[command(args = globals::mask_options())]
    Advise(advise::Args),
    /// Extract an array, or ranges of its values
    ///
    /// The hash is verified first. The output file is written atomically.
    Extract(extract::Args),
    /// Add a message index to a file
    ///
    /// The index is a message at the end of the file with offsets and lengths of all messages and the values of keys, so
    /// that messages are found without reading all of them. `tgm create --append` updates it; other programs see an
    /// ordinary message. Only the index is written; the messages are not changed.
    Index(index::Args),
    /// Validate structure, metadata, hashes and values
    ///
    /// With `--against`, compare an object with its original array.
    #[command(visible_alias = "verify")]
    Validate(validate::Args),
    /// Salvage the intact messages and objects of a damaged file
    Repair(repair::Args),
    /// Print the byte layout as a tree
    Outline(outline::Args),
    /// Convert NetCDF, HDF5 or Zarr files to messages
    ///
    /// Packed values are decoded and missing values become masks. All inputs go into one file, in their order. `tercet convert` has more
    /// options.
    ConvertNetcdf(named::NetcdfArgs),
    /// Convert GRIB files to messages
    ///
    /// Keys are kept as metadata. All inputs go into one file, in their order.
    ConvertGrib(named::GribArgs),
    /// Convert messages to a NetCDF file
    ///
    /// Messages on one grid are stacked: metadata keys that vary become dimensions.
    ToNetcdf(named::ExportArgs),
    /// Convert messages to a GRIB file
    ToGrib(named::ExportArgs),
    /// Print build features and run a self-test
    Doctor(doctor::Args),
}

/// The output format of a verb that reports on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Text,
    OneLine,
    Json,
}

impl ReportFormat {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        match (json, quiet) {
            (true, _) => Self::Json,
            (_, true) => Self::OneLine,
            _ => Self::Text,
        }
    }
}

impl Verb {
    pub(crate) fn run(&self, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
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
            Self::Repack(args) => repack::run(args, globals, out),
            Self::Advise(args) => advise::run(args, globals, out),
            Self::Extract(args) => extract::run(args, out),
            Self::Index(args) => index::run(args, out),
            Self::Validate(args) => validate::run(args, out),
            Self::Repair(args) => repair::run(args, out),
            Self::Outline(args) => outline::run(args, out),
            Self::ConvertNetcdf(args) => named::netcdf(args, out),
            Self::ConvertGrib(args) => named::grib(args, out),
            Self::ToNetcdf(args) => named::export(args, "nc", out),
            Self::ToGrib(args) => named::export(args, "grib2", out),
            Self::Doctor(args) => doctor::run(args, out),
        }
    }
}
