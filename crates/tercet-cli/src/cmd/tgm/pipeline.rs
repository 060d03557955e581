//! How the values of objects are stored: the options for it.

use clap::ValueEnum;
use tercet::tgm::DataObjectDescriptor;

use crate::failure::Failure;

mod check;
mod settle;
mod widen;

pub(super) use settle::Unfit;
pub(super) use widen::{can_widen, widen};

/// The heading under which help lists these options.
const HEADING: &str = "How values are stored";

/// Bits of a packed value, unless the user says otherwise.
const BITS: u32 = 16;
/// Blocks between two reference samples of szip.
const SZIP_RSI: u32 = 128;
/// Samples in a block of szip.
const SZIP_BLOCK: u32 = 16;
/// The level of Blosc2.
const BLOSC2_LEVEL: i32 = 5;

/// How the values of objects are stored.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Pipeline {
    /// Pack float64 values into integers of few bits
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// Bits of a packed value, 0 to 64; without it 16
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    bits: Option<u32>,
    /// Keep D decimals of packed values, as far as there are bits for them
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    decimal_scale: Option<i32>,
    /// Group the bytes of numbers by their position, which compresses better
    #[arg(long, value_name = "FILTER")]
    filter: Option<Filter>,
    /// Compress
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// The level of `zstd` (without it 3) or `blosc2` (0 to 9, without it 5)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    compression_level: Option<i32>,
    /// The compressor inside `blosc2`; without it `lz4`
    #[arg(long, value_name = "CODEC")]
    blosc2_codec: Option<Blosc2Codec>,
    /// Blocks of `szip` between two values that are stored whole, 1 to 4096; without it 128
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    szip_rsi: Option<u32>,
    /// Values in a block of `szip`: 8, 16, 32 or 64; without it 16
    #[arg(long, value_name = "N")]
    szip_block_size: Option<u32>,
    /// Flags of `szip`, added up; without it 8 (store differences), and 9 for signed integers
    #[arg(long, value_name = "N")]
    szip_flags: Option<u32>,
    /// `zfp` with R bits for each value
    #[arg(long, value_name = "R", group = "zfp", allow_negative_numbers = true)]
    zfp_rate: Option<f64>,
    /// `zfp` with P bits of precision in each block
    #[arg(long, value_name = "P", group = "zfp")]
    zfp_precision: Option<u32>,
    /// `zfp` with errors of at most T
    #[arg(long, value_name = "T", group = "zfp", allow_negative_numbers = true)]
    zfp_tolerance: Option<f64>,
    /// What the bound of `sz3` is about: the error, the error as a part of the range, or the noise in decibels; without
    /// it the error
    #[arg(long, value_name = "MODE")]
    sz3_mode: Option<Sz3Mode>,
    /// The bound of `sz3`
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    sz3_bound: Option<f64>,
    /// Make float64 of other numbers where that is needed and exact
    #[arg(long)]
    widen: bool,
    /// No decoded value may be farther than E from the original, which is measured and recorded in the metadata. Without
    /// other options of this group the smallest form that holds it is searched
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = bound)]
    max_error: Option<f64>,
}

/// How numbers become integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Encoding {
    #[default]
    None,
    SimplePacking,
}

/// How bytes are rearranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Filter {
    #[default]
    None,
    Shuffle,
}

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Compression {
    #[default]
    None,
    Szip,
    Zstd,
    Lz4,
    Blosc2,
    Zfp,
    Sz3,
    Rle,
    Roaring,
}

/// What is inside a Blosc2 frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Blosc2Codec {
    Blosclz,
    #[default]
    Lz4,
    Lz4hc,
    Zlib,
    Zstd,
}

/// What the bound of SZ3 is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Sz3Mode {
    #[default]
    Abs,
    Rel,
    Psnr,
}

/// The name that the user types, which is the one in descriptors.
fn name(value: impl ValueEnum + Copy) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads the largest error that is allowed.
pub(super) fn bound(text: &str) -> Result<f64, String> {
    let bound: Option<f64> = text.parse().ok();
    let bound = bound.filter(|bound| bound.is_finite() && *bound >= 0.0);
    bound.ok_or_else(|| "expected a number that is not negative, like `0.01`".to_owned())
}

impl Pipeline {
    /// Whether the user said how values are to be stored, by a pipeline or by a bound.
    pub(super) fn is_given(&self) -> bool {
        self.has_stages() || self.max_error.is_some()
    }

    /// Whether the user named a stage.
    pub(super) fn has_stages(&self) -> bool {
        self.encoding.is_some() || self.filter.is_some() || self.compression.is_some()
    }

    /// The largest error that is allowed.
    pub(super) fn max_error(&self) -> Option<f64> {
        self.max_error
    }

    /// Whether truth values are to become bits: these compressors take nothing else.
    pub(super) fn makes_bitmasks(&self) -> bool {
        matches!(self.compression, Some(Compression::Rle | Compression::Roaring))
    }

    /// Whether packing leaves no bits for values that differ from the first.
    pub(super) fn keeps_first_value_only(&self) -> bool {
        self.encoding == Some(Encoding::SimplePacking) && self.bits == Some(0)
    }

    /// Whether other numbers are to become float64, where float64 is of use: packing, `zfp` and `sz3` take nothing else,
    /// and so do the lossy forms among which a bound chooses.
    pub(super) fn widens(&self) -> bool {
        let chooses = !self.has_stages() && self.max_error.is_some_and(|bound| bound > 0.0);
        self.widen && (self.needs_float64().is_some() || chooses)
    }

    /// The stage that takes float64 only, if there is one.
    fn needs_float64(&self) -> Option<String> {
        match (self.encoding, self.compression) {
            (Some(encoding @ Encoding::SimplePacking), _) => Some(format!("encoding `{}`", name(encoding))),
            (_, Some(codec @ (Compression::Zfp | Compression::Sz3))) => {
                Some(format!("compression `{}`", name(codec)))
            }
            _ => None,
        }
    }

    /// Refuses options that belong to stages that are not there, before anything is read.
    pub(super) fn check(&self) -> Result<(), Failure> {
        check::check(self)
    }

    /// What is asked of the encoder for an object that is stored plainly so far.
    pub(super) fn apply(&self, plain: DataObjectDescriptor) -> Result<DataObjectDescriptor, Unfit> {
        settle::settle(self, plain)
    }
}
