//! Pipeline options: encoding, filter, compression.

use clap::ValueEnum;
use tercet::tgm::DataObjectDescriptor;

use crate::failure::Failure;

mod check;
mod descriptor;
mod widen;

pub(super) use descriptor::Unfit;
pub(super) use widen::{can_widen, widen};

/// The heading under which help lists these options.
const HEADING: &str = "Pipeline";

/// Default bits per packed value.
const BITS: u32 = 16;
/// Default reference sample interval of szip.
const SZIP_RSI: u32 = 128;
/// Default block size of szip.
const SZIP_BLOCK: u32 = 16;
/// Default level of Blosc2.
const BLOSC2_LEVEL: i32 = 5;

/// The pipeline options.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Pipeline {
    /// Encoding: pack float64 values into integers
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// Bits per packed value, 0 to 64 [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    bits: Option<u32>,
    /// Decimal scale factor of packed values
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    decimal_scale: Option<i32>,
    /// Filter: group bytes by significance, for better compression
    #[arg(long, value_name = "FILTER")]
    filter: Option<Filter>,
    /// Compression codec
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// Compression level of `zstd` [default: 3] or `blosc2`, 0 to 9 [default: 5]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    compression_level: Option<i32>,
    /// Inner codec of `blosc2` [default: lz4]
    #[arg(long, value_name = "CODEC")]
    blosc2_codec: Option<Blosc2Codec>,
    /// Reference sample interval (RSI) of `szip`, in blocks, 1 to 4096 [default: 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    szip_rsi: Option<u32>,
    /// Block size of `szip`: 8, 16, 32 or 64 [default: 16]
    #[arg(long, value_name = "N")]
    szip_block_size: Option<u32>,
    /// Bit flags of `szip` [default: 8 (preprocess), 9 for signed integers]
    #[arg(long, value_name = "N")]
    szip_flags: Option<u32>,
    /// Fixed-rate mode of `zfp`: R bits per value
    #[arg(long, value_name = "R", group = "zfp", allow_negative_numbers = true)]
    zfp_rate: Option<f64>,
    /// Fixed-precision mode of `zfp`: P bits per block
    #[arg(long, value_name = "P", group = "zfp")]
    zfp_precision: Option<u32>,
    /// Fixed-accuracy mode of `zfp`: absolute error at most T
    #[arg(long, value_name = "T", group = "zfp", allow_negative_numbers = true)]
    zfp_tolerance: Option<f64>,
    /// Error mode of `sz3`: absolute, relative to the value range, or PSNR in decibels [default: abs]
    #[arg(long, value_name = "MODE")]
    sz3_mode: Option<Sz3Mode>,
    /// Error bound of `sz3`
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    sz3_bound: Option<f64>,
    /// Convert other types to float64 where required and exact
    #[arg(long)]
    widen: bool,
    /// Maximum absolute error, verified and recorded in the metadata. Without other pipeline options, choose the
    /// smallest pipeline within the bound
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = bound)]
    max_error: Option<f64>,
}

/// Encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Encoding {
    #[default]
    None,
    SimplePacking,
}

/// Filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Filter {
    #[default]
    None,
    Shuffle,
}

/// Compression codecs.
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

/// Inner codecs of Blosc2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Blosc2Codec {
    Blosclz,
    #[default]
    Lz4,
    Lz4hc,
    Zlib,
    Zstd,
}

/// Error modes of SZ3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Sz3Mode {
    #[default]
    Abs,
    Rel,
    Psnr,
}

/// The name of a value on the command line and in descriptors.
fn name(value: impl ValueEnum + Copy) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Parses a maximum error.
pub(super) fn bound(text: &str) -> Result<f64, String> {
    let bound: Option<f64> = text.parse().ok();
    let bound = bound.filter(|bound| bound.is_finite() && *bound >= 0.0);
    bound.ok_or_else(|| "expected a non-negative number, like `0.01`".to_owned())
}

impl Pipeline {
    /// Whether a pipeline stage or an error bound is given.
    pub(super) fn is_given(&self) -> bool {
        self.has_stages() || self.max_error.is_some()
    }

    /// Whether a pipeline stage is given.
    pub(super) fn has_stages(&self) -> bool {
        self.encoding.is_some() || self.filter.is_some() || self.compression.is_some()
    }

    /// The maximum error.
    pub(super) fn max_error(&self) -> Option<f64> {
        self.max_error
    }

    /// Whether bools become bitmasks, which these codecs require.
    pub(super) fn makes_bitmasks(&self) -> bool {
        matches!(self.compression, Some(Compression::Rle | Compression::Roaring))
    }

    /// Whether packing has 0 bits, so that only the first value is stored.
    pub(super) fn keeps_first_value_only(&self) -> bool {
        self.encoding == Some(Encoding::SimplePacking) && self.bits == Some(0)
    }

    /// Whether other types are converted to float64: packing, `zfp` and `sz3` require it, and so do the lossy pipelines
    /// chosen for an error bound.
    pub(super) fn widens(&self) -> bool {
        let chooses = !self.has_stages() && self.max_error.is_some_and(|bound| bound > 0.0);
        self.widen && (self.needs_float64().is_some() || chooses)
    }

    /// The stage that requires float64, if any.
    fn needs_float64(&self) -> Option<String> {
        match (self.encoding, self.compression) {
            (Some(encoding @ Encoding::SimplePacking), _) => Some(format!("encoding `{}`", name(encoding))),
            (_, Some(codec @ (Compression::Zfp | Compression::Sz3))) => {
                Some(format!("compression `{}`", name(codec)))
            }
            _ => None,
        }
    }

    /// Rejects options of stages that are not selected.
    pub(super) fn check(&self) -> Result<(), Failure> {
        check::check(self)
    }

    /// Adds the pipeline to the descriptor of an uncompressed object.
    pub(super) fn apply(&self, plain: DataObjectDescriptor) -> Result<DataObjectDescriptor, Unfit> {
        descriptor::apply(self, plain)
    }
}
