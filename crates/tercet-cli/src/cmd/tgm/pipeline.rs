//! Pipeline options: encoding, filter, compression.

use clap::ValueEnum;
use tercet::tgm::{
    self, DataObjectDescriptor, PipelineBuildError, PipelineBuilder, SimplePacking, Sz3Bound, SzipOptions,
    ZfpMode, can_widen_to_f64,
};

use crate::compression::{Leveled, leveled};
use crate::failure::Failure;

mod dependencies;

/// The heading under which help lists these options.
const HEADING: &str = "Pipeline (encoding, filter, compression)";

/// Default level of Blosc2.
const BLOSC2_LEVEL: u8 = 5;

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
    /// Compression codec; `zstd` and `blosc2` have levels: `zstd:9`
    #[arg(long, value_name = "CODEC[:LEVEL]", value_parser = leveled::<Compression>())]
    compression: Option<Leveled<Compression>>,
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

    /// Whether bools become bitmasks, which some codecs require.
    pub(super) fn makes_bitmasks(&self) -> bool {
        self.builder().requires_bitmask().is_some()
    }

    /// Whether packing has 0 bits, so that only the first value is stored.
    pub(super) fn keeps_first_value_only(&self) -> bool {
        self.encoding == Some(Encoding::SimplePacking) && self.bits == Some(0)
    }

    /// Whether other types are converted to float64: packing, `zfp` and `sz3` require it, and so do the lossy pipelines
    /// chosen for an error bound.
    pub(super) fn widens(&self) -> bool {
        let chooses = !self.has_stages() && self.max_error.is_some_and(|bound| bound > 0.0);
        self.widen && (self.builder().requires_float64().is_some() || chooses)
    }

    /// Rejects options of stages that are not selected.
    pub(super) fn check(&self) -> Result<(), Failure> {
        dependencies::check(self)
    }

    /// Adds the pipeline to the descriptor of an uncompressed object.
    pub(super) fn apply(&self, plain: DataObjectDescriptor) -> Result<DataObjectDescriptor, Unstorable> {
        self.builder().apply(plain).map_err(Unstorable)
    }

    /// The pipeline of the options, which [`check`](Self::check) has accepted.
    fn builder(&self) -> PipelineBuilder {
        let mut packing = None;
        if self.encoding == Some(Encoding::SimplePacking) {
            let bits = self.bits.map_or(SimplePacking::default(), SimplePacking::new);
            packing = Some(bits.with_decimal_scale(self.decimal_scale));
        }
        tgm::Pipeline::builder()
            .with_packing(packing)
            .with_shuffle(self.filter == Some(Filter::Shuffle))
            .with_compression(self.compression())
    }

    /// The codec, if one is given.
    fn codec(&self) -> Option<Compression> {
        self.compression.map(|compression| compression.codec)
    }

    /// The compression level: of `CODEC:LEVEL` or `--compression-level`.
    fn level(&self) -> Option<i32> {
        self.compression.and_then(|compression| compression.level).or(self.compression_level)
    }

    fn compression(&self) -> tgm::Compression {
        match self.codec().unwrap_or_default() {
            Compression::None => tgm::Compression::None,
            Compression::Szip => {
                let defaults = SzipOptions::new();
                tgm::Compression::Szip(
                    defaults
                        .with_rsi(self.szip_rsi.unwrap_or(defaults.rsi))
                        .with_block_size(self.szip_block_size.unwrap_or(defaults.block_size))
                        .with_flags(self.szip_flags.map(u64::from)),
                )
            }
            Compression::Zstd => tgm::Compression::Zstd { level: self.level() },
            Compression::Lz4 => tgm::Compression::Lz4,
            Compression::Blosc2 => {
                let level = self.level().and_then(|level| u8::try_from(level).ok());
                let codec = self.blosc2_codec.unwrap_or_default().into();
                tgm::Compression::Blosc2 { codec, level: level.unwrap_or(BLOSC2_LEVEL) }
            }
            Compression::Zfp => tgm::Compression::Zfp(self.zfp_mode()),
            Compression::Sz3 => {
                let bound = self.sz3_bound.unwrap_or_default();
                tgm::Compression::Sz3(match self.sz3_mode.unwrap_or_default() {
                    Sz3Mode::Abs => Sz3Bound::Abs(bound),
                    Sz3Mode::Rel => Sz3Bound::Rel(bound),
                    Sz3Mode::Psnr => Sz3Bound::Psnr(bound),
                })
            }
            Compression::Rle => tgm::Compression::Rle,
            Compression::Roaring => tgm::Compression::Roaring,
        }
    }

    fn zfp_mode(&self) -> ZfpMode {
        match (self.zfp_rate, self.zfp_precision) {
            (Some(rate), _) => ZfpMode::FixedRate(rate),
            (None, Some(precision)) => ZfpMode::FixedPrecision(precision),
            // `check` ensures that one of the three modes is given.
            (None, None) => ZfpMode::FixedAccuracy(self.zfp_tolerance.unwrap_or_default()),
        }
    }
}

impl From<Blosc2Codec> for tgm::Blosc2Codec {
    fn from(codec: Blosc2Codec) -> Self {
        match codec {
            Blosc2Codec::Blosclz => Self::BloscLz,
            Blosc2Codec::Lz4 => Self::Lz4,
            Blosc2Codec::Lz4hc => Self::Lz4hc,
            Blosc2Codec::Zlib => Self::Zlib,
            Blosc2Codec::Zstd => Self::Zstd,
        }
    }
}

/// An object that the pipeline cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unstorable(PipelineBuildError);

impl Unstorable {
    pub(super) fn reason(self) -> String {
        self.0.to_string()
    }

    /// The error for an object of this name.
    pub(super) fn failure(self, object: &str) -> Failure {
        let failure = Failure::request(format!("{object}: {}", self.0));
        match self.0 {
            PipelineBuildError::RequiresFloat64 { dtype, .. } if can_widen_to_f64(dtype) => {
                failure.with_hint("add `--widen` to convert to float64 if exact")
            }
            PipelineBuildError::ShuffledBits { bits } => {
                failure.with_hint(format!("use `--bits {}`", bits.max(1).next_multiple_of(8)))
            }
            _ => failure,
        }
    }
}
