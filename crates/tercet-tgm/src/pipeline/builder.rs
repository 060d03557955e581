//! Building of pipelines from typed options.

use tercet_codec::bytes::blosc2::Inner;
use tercet_codec::bytes::sz3::Sz3;
use tercet_codec::bytes::szip::flags;
use tercet_codec::bytes::zfp::Zfp;
use tercet_core::DType;
use thiserror::Error;

use super::parameters::{SP_BITS, SP_DECIMAL};
use super::{NONE, PACKING, SHUFFLE};
use crate::descriptor::DataObjectDescriptor;

/// Sets the pipeline of descriptors: encoding, filter and compression, with the defaults of the format.
///
/// The same builder serves objects of different types: [`apply`](Self::apply) derives the parameters that depend on the
/// object and rejects types that a stage does not support. [`precision`](crate::precision) chooses a pipeline by an error
/// bound instead.
///
/// ```
/// use tercet_tgm::{Compression, DType, DataObjectDescriptor, Pipeline, SimplePacking};
///
/// let pipeline = Pipeline::builder()
///     .with_packing(SimplePacking::new(24))
///     .with_shuffle(true)
///     .with_compression(Compression::Zstd { level: Some(3) });
/// let descriptor = pipeline.apply(DataObjectDescriptor::new(DType::F64, [181, 360]))?;
/// assert_eq!(descriptor.params["shuffle_element_size"], 3.into());
/// assert!(pipeline.apply(DataObjectDescriptor::new(DType::I32, [4])).is_err());
/// # Ok::<(), tercet_tgm::PipelineBuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PipelineBuilder {
    packing: Option<SimplePacking>,
    shuffle: bool,
    compression: Compression,
}

/// The encoding `simple_packing`: float64 values as integers of a fixed number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimplePacking {
    /// Bits per value, 0 to 64; with 0 all values are stored as the first one. 16 by default.
    pub bits: u32,
    /// The power of ten by which values are multiplied.
    pub decimal_scale: Option<i32>,
}

impl Default for SimplePacking {
    fn default() -> Self {
        Self { bits: 16, decimal_scale: None }
    }
}

impl SimplePacking {
    /// Packing into integers of `bits` bits.
    pub fn new(bits: u32) -> Self {
        Self { bits, ..Self::default() }
    }

    /// Sets the decimal scale factor.
    pub fn with_decimal_scale(mut self, scale: Option<i32>) -> Self {
        self.decimal_scale = scale;
        self
    }
}

/// A compression and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// CCSDS 121.0-B-3, known as szip.
    Szip(SzipOptions),
    /// Zstandard.
    Zstd {
        /// The level; by default that of readers and writers of the format, 3.
        level: Option<i32>,
    },
    /// LZ4.
    Lz4,
    /// Blosc2.
    Blosc2 {
        /// The compressor of the blocks.
        codec: Inner,
        /// The level, 0 to 9.
        level: u8,
    },
    /// ZFP. Lossy; requires float64.
    Zfp(Zfp),
    /// SZ3. Lossy; requires float64.
    Sz3(Sz3),
    /// Run lengths. Requires bitmasks.
    Rle,
    /// Roaring bitmaps. Requires bitmasks.
    Roaring,
}

/// The parameters of szip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SzipOptions {
    /// The reference sample interval in blocks, 1 to 4096. 128 by default.
    pub rsi: u32,
    /// The block size in samples: 8, 16, 32 or 64. 16 by default.
    pub block_size: u32,
    /// The flags. By default preprocessing, and signed samples for signed integers without encoding and filter.
    pub flags: Option<u64>,
}

impl Default for SzipOptions {
    fn default() -> Self {
        Self { rsi: 128, block_size: 16, flags: None }
    }
}

impl SzipOptions {
    /// The defaults of the format.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the reference sample interval in blocks.
    pub fn with_rsi(mut self, rsi: u32) -> Self {
        self.rsi = rsi;
        self
    }

    /// Sets the block size in samples.
    pub fn with_block_size(mut self, block_size: u32) -> Self {
        self.block_size = block_size;
        self
    }

    /// Sets the flags.
    pub fn with_flags(mut self, flags: Option<u64>) -> Self {
        self.flags = flags;
        self
    }
}

impl Compression {
    /// Blosc2 with LZ4 blocks at level 5: the defaults of the format.
    pub const BLOSC2: Self = Self::Blosc2 { codec: Inner::Lz4, level: 5 };

    /// The name in descriptors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => NONE,
            Self::Szip(_) => "szip",
            Self::Zstd { .. } => "zstd",
            Self::Lz4 => "lz4",
            Self::Blosc2 { .. } => "blosc2",
            Self::Zfp(_) => "zfp",
            Self::Sz3(_) => "sz3",
            Self::Rle => "rle",
            Self::Roaring => "roaring",
        }
    }
}

/// The error of an object that a pipeline cannot store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PipelineBuildError {
    /// A stage for float64 values. [`widen_to_f64`](crate::widen_to_f64) may convert the values.
    #[error("{stage} requires float64, found {dtype}")]
    RequiresFloat64 {
        /// The stage.
        stage: &'static str,
        /// The element type of the object.
        dtype: DType,
    },
    /// A compression for bitmasks.
    #[error("{stage} requires bitmask, found {dtype}")]
    RequiresBitmask {
        /// The stage.
        stage: &'static str,
        /// The element type of the object.
        dtype: DType,
    },
    /// The filter `shuffle` after packing into incomplete bytes.
    #[error("filter `shuffle` requires whole bytes; packed values have {bits} bits")]
    ShuffledBits {
        /// Bits per packed value.
        bits: u32,
    },
    /// The filter `shuffle` of bitmasks.
    #[error("filter `shuffle` requires whole bytes, found bitmask")]
    ShuffledBitmask,
}

impl PipelineBuilder {
    /// Packs float64 values.
    pub fn with_packing(mut self, packing: impl Into<Option<SimplePacking>>) -> Self {
        self.packing = packing.into();
        self
    }

    /// Sets whether bytes are grouped by significance, which improves most compressions.
    pub fn with_shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// Sets the compression.
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The stage that requires float64, if any: `simple_packing`, `zfp` or `sz3`.
    pub fn requires_float64(&self) -> Option<&'static str> {
        match (self.packing, self.compression) {
            (Some(_), _) => Some("encoding `simple_packing`"),
            (_, Compression::Zfp(_)) => Some("compression `zfp`"),
            (_, Compression::Sz3(_)) => Some("compression `sz3`"),
            _ => None,
        }
    }

    /// The stage that requires bitmasks, if any: `rle` or `roaring`.
    pub fn requires_bitmask(&self) -> Option<&'static str> {
        match self.compression {
            Compression::Rle => Some("compression `rle`"),
            Compression::Roaring => Some("compression `roaring`"),
            _ => None,
        }
    }

    /// Adds the pipeline to the descriptor of an object without one.
    pub fn apply(
        &self,
        descriptor: DataObjectDescriptor,
    ) -> Result<DataObjectDescriptor, PipelineBuildError> {
        let dtype = descriptor.dtype;
        if let Some(stage) = self.requires_float64().filter(|_| dtype != DType::F64) {
            return Err(PipelineBuildError::RequiresFloat64 { stage, dtype });
        }
        if let Some(stage) = self.requires_bitmask().filter(|_| dtype != DType::Bitmask) {
            return Err(PipelineBuildError::RequiresBitmask { stage, dtype });
        }
        let mut descriptor = descriptor;
        if let Some(packing) = self.packing {
            descriptor = descriptor.with_encoding(PACKING).with_param(SP_BITS, packing.bits);
            if let Some(scale) = packing.decimal_scale {
                descriptor = descriptor.with_param(SP_DECIMAL, scale);
            }
        }
        if self.shuffle {
            let size = self.element_size(dtype)?;
            descriptor = descriptor.with_filter(SHUFFLE).with_param("shuffle_element_size", size);
        }
        Ok(self.compress(descriptor))
    }

    /// The element size of the shuffle filter.
    fn element_size(&self, dtype: DType) -> Result<u32, PipelineBuildError> {
        match self.packing {
            Some(SimplePacking { bits, .. }) if bits == 0 || !bits.is_multiple_of(8) => {
                Err(PipelineBuildError::ShuffledBits { bits })
            }
            Some(SimplePacking { bits, .. }) => Ok(bits / 8),
            None if dtype == DType::Bitmask => Err(PipelineBuildError::ShuffledBitmask),
            None => Ok(dtype.bits() / 8),
        }
    }

    fn compress(&self, descriptor: DataObjectDescriptor) -> DataObjectDescriptor {
        let default_flags = default_szip_flags(&descriptor);
        let descriptor = descriptor.with_compression(self.compression.name());
        match self.compression {
            Compression::None
            | Compression::Lz4
            | Compression::Zstd { level: None }
            | Compression::Rle
            | Compression::Roaring => descriptor,
            Compression::Zstd { level: Some(level) } => descriptor.with_param("zstd_level", level),
            Compression::Blosc2 { codec, level } => descriptor
                .with_param("blosc2_codec", codec.name())
                .with_param("blosc2_clevel", i32::from(level)),
            Compression::Szip(szip) => descriptor
                .with_param("szip_rsi", szip.rsi)
                .with_param("szip_block_size", szip.block_size)
                .with_param("szip_flags", szip.flags.unwrap_or(default_flags)),
            Compression::Zfp(mode) => match mode {
                Zfp::FixedRate(rate) => {
                    descriptor.with_param("zfp_mode", "fixed_rate").with_param("zfp_rate", rate)
                }
                Zfp::FixedPrecision(precision) => descriptor
                    .with_param("zfp_mode", "fixed_precision")
                    .with_param("zfp_precision", precision),
                Zfp::FixedAccuracy(tolerance) => {
                    descriptor.with_param("zfp_mode", "fixed_accuracy").with_param("zfp_tolerance", tolerance)
                }
            },
            Compression::Sz3(bound) => {
                let (mode, bound) = match bound {
                    Sz3::Abs(bound) => ("abs", bound),
                    Sz3::Rel(bound) => ("rel", bound),
                    Sz3::Psnr(bound) => ("psnr", bound),
                };
                descriptor.with_param("sz3_error_bound_mode", mode).with_param("sz3_error_bound", bound)
            }
        }
    }
}

/// Preprocessing; signed samples for signed integers without encoding and filter.
fn default_szip_flags(descriptor: &DataObjectDescriptor) -> u64 {
    let is_bare = descriptor.encoding == NONE && descriptor.filter == NONE;
    let is_signed = matches!(descriptor.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let signed = if is_bare && is_signed { flags::SIGNED } else { 0 };
    flags::PREPROCESS | signed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipeline;

    fn applied(pipeline: PipelineBuilder, dtype: DType) -> Result<String, PipelineBuildError> {
        let descriptor = pipeline.apply(DataObjectDescriptor::new(dtype, [4]))?;
        let params = descriptor.params.iter().map(|(key, value)| format!("{key}={}", value.printed()));
        let params = params.collect::<Vec<_>>().join(" ");
        Ok(format!("{}/{}/{} {params}", descriptor.encoding, descriptor.filter, descriptor.compression))
    }

    #[test]
    fn defaults_are_those_of_the_format() {
        let codec = |compression| Pipeline::builder().with_compression(compression);
        let szip = codec(Compression::Szip(SzipOptions::new()));
        for (dtype, flags) in [(DType::U16, 8), (DType::I16, 9), (DType::F32, 8)] {
            let expected = format!("none/none/szip szip_block_size=16 szip_flags={flags} szip_rsi=128");
            assert_eq!(applied(szip, dtype), Ok(expected));
        }
        assert_eq!(
            applied(codec(Compression::Zstd { level: None }), DType::I8),
            Ok("none/none/zstd ".into())
        );
        let blosc2 = applied(codec(Compression::BLOSC2), DType::I8);
        assert_eq!(blosc2, Ok("none/none/blosc2 blosc2_clevel=5 blosc2_codec=lz4".into()));
        let packing = Pipeline::builder().with_packing(SimplePacking::default());
        assert_eq!(applied(packing, DType::F64), Ok("simple_packing/none/none sp_bits_per_value=16".into()));
    }

    #[test]
    fn shuffled_elements_are_whole_bytes() {
        let shuffle = Pipeline::builder().with_shuffle(true);
        assert_eq!(applied(shuffle, DType::C64).unwrap(), "none/shuffle/none shuffle_element_size=8");
        assert_eq!(applied(shuffle, DType::Bitmask), Err(PipelineBuildError::ShuffledBitmask));
        let packed = |bits| shuffle.with_packing(SimplePacking::new(bits));
        assert!(applied(packed(24), DType::F64).unwrap().contains("shuffle_element_size=3"));
        assert_eq!(applied(packed(12), DType::F64), Err(PipelineBuildError::ShuffledBits { bits: 12 }));
        let szip = packed(16).with_compression(Compression::Szip(SzipOptions::new()));
        assert!(applied(szip, DType::F64).unwrap().contains("szip_flags=8"));
    }

    #[test]
    fn unsupported_types_are_rejected() {
        let zfp = Pipeline::builder().with_compression(Compression::Zfp(Zfp::FixedRate(8.0)));
        let error = applied(zfp, DType::F32).unwrap_err();
        assert_eq!(error.to_string(), "compression `zfp` requires float64, found float32");
        let rle = Pipeline::builder().with_compression(Compression::Rle);
        let error = applied(rle, DType::U8).unwrap_err();
        assert_eq!(error.to_string(), "compression `rle` requires bitmask, found uint8");
        assert!(applied(rle, DType::Bitmask).is_ok());
    }
}
