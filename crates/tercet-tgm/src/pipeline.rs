//! Pipelines: how values become a payload and back.
//!
//! ```text
//! values ─ masks ─▶ finite values ─ encoding ─▶ bytes ─ filter ─▶ bytes ─ compression ─▶ payload
//!           §            simple_packing          shuffle     zstd, szip, …
//! ```
//!
//! A [`Pipeline`] is a descriptor with checked parameters. Reading and writing share it, so that both reject the same
//! descriptors.

mod builder;
mod decode;
mod encode;
mod error;
mod masks;
mod parameters;
mod range;
mod rules;
mod widen;

use tercet_codec::bytes::blosc2::{Blosc2, Shuffle};
use tercet_codec::bytes::sz3::Sz3;
use tercet_codec::bytes::szip::Szip;
use tercet_codec::bytes::zfp::Zfp;
use tercet_codec::finite::Float;
use tercet_codec::pack::Packing;

pub use builder::{Compression, PipelineBuildError, PipelineBuilder, SimplePacking, SzipOptions};
pub(crate) use encode::encode;
pub use error::PipelineError;
pub(crate) use masks::Mask;
pub use masks::{MaskKind, MaskMethod};
pub(crate) use range::{Intervals, RangePlan, check_szip_offsets, with_correct_szip_offsets};
pub use widen::{WidenError, can_widen_to_f64, widen_to_f64};

use crate::descriptor::DataObjectDescriptor;
use crate::dtype::{ByteOrder, float_type};
use crate::metadata::{MetadataError, MetadataErrorKind};
use parameters::Parameters;
use tercet_core::DType;

/// The name of a stage that does nothing.
pub(crate) const NONE: &str = "none";
/// The encoding that packs numbers into integers of few bits.
pub(crate) const PACKING: &str = "simple_packing";
/// The filter that groups the bytes of elements by significance.
pub(crate) const SHUFFLE: &str = "shuffle";

/// The encodings of the format.
pub const ENCODINGS: &[&str] = &[NONE, PACKING];
/// The filters of the format.
pub const FILTERS: &[&str] = &[NONE, SHUFFLE];
/// The compressions of the format.
pub const COMPRESSIONS: &[&str] = &[NONE, "szip", "zstd", "lz4", "blosc2", "zfp", "sz3", "rle", "roaring"];

/// The prefixes of pipeline parameters. All other parameters are the user's.
const PARAMETERS: [&str; 7] = ["sp_", "shuffle_", "szip_", "zstd_", "blosc2_", "zfp_", "sz3_"];

/// Whether a key of a descriptor is a pipeline parameter, which must not change while the payload is kept.
pub fn is_pipeline_parameter(key: &str) -> bool {
    PARAMETERS.iter().any(|start| key.starts_with(start))
}

/// The pipeline of one object: its encoding, filter and compression, with checked parameters.
///
/// [`Pipeline::builder`] sets one for objects to be written.
#[derive(Clone, Debug)]
pub struct Pipeline {
    dtype: DType,
    order: ByteOrder,
    elements: u64,
    /// The length of the values in bytes.
    raw_len: u64,
    /// The length in bytes between encoding and compression; the filter does not change it.
    encoded_len: u64,
    packing: Option<Packing>,
    /// The element size of the shuffle filter.
    shuffle: Option<usize>,
    codec: Codec,
}

/// A compression and its parameters.
#[derive(Clone, Debug)]
enum Codec {
    None,
    Zstd {
        level: i32,
    },
    Lz4,
    Blosc2(Blosc2),
    /// With the stored offsets of its intervals, which may be wrong.
    Szip(Szip, Option<Vec<u64>>),
    Zfp(Zfp),
    Sz3(Sz3),
    Rle,
    Roaring,
}

impl Pipeline {
    /// A builder without encoding, filter and compression.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// The pipeline of an object with all its parameters.
    pub fn new(descriptor: &DataObjectDescriptor) -> Result<Self, PipelineError> {
        rules::check_names(descriptor)?;
        let parameters = Parameters::new(&descriptor.params);
        let packing = match &*descriptor.encoding {
            PACKING => Some(parameters.packing()?),
            _ => None,
        };
        Self::with_packing(descriptor, packing)
    }

    /// The pipeline of an object with a known packing.
    fn with_packing(
        descriptor: &DataObjectDescriptor,
        packing: Option<Packing>,
    ) -> Result<Self, PipelineError> {
        let parameters = Parameters::new(&descriptor.params);
        let overflow = || MetadataError::new("shape", MetadataErrorKind::Overflow);
        let elements = descriptor.elements().ok_or_else(overflow)?;
        let raw_len = descriptor.dtype.byte_len(elements).ok_or_else(overflow)?;
        let encoded_len = match &packing {
            Some(packing) => packing.packed_len(elements).ok_or_else(overflow)?,
            None => raw_len,
        };
        let shuffle = match &*descriptor.filter {
            SHUFFLE => Some(parameters.shuffle(encoded_len)?),
            _ => None,
        };
        rules::check_combination(descriptor, packing.map(|packing| packing.bits))?;
        let dtype = descriptor.dtype;
        let packed_bytes = packing.map(|packing| packing.bits.div_ceil(8));
        let codec = match &*descriptor.compression {
            "zstd" => Codec::Zstd { level: parameters.zstd_level()? },
            "lz4" => Codec::Lz4,
            "blosc2" => {
                let plain = if shuffle.is_some() { 1 } else { dtype.bits() / 8 };
                Codec::Blosc2(Blosc2 {
                    type_size: packed_bytes.unwrap_or(plain),
                    shuffle: Shuffle::Bytes,
                    ..parameters.blosc2()?
                })
            }
            "szip" => {
                let bits = match (&packing, shuffle) {
                    (Some(packing), _) => packing.bits,
                    (None, Some(_)) => 8,
                    (None, None) => dtype.bits(),
                };
                let szip = parameters.szip(bits, packing.is_some())?;
                Codec::Szip(szip, parameters.szip_offsets()?)
            }
            "zfp" => Codec::Zfp(parameters.zfp()?),
            "sz3" => Codec::Sz3(parameters.sz3()?),
            "rle" => Codec::Rle,
            "roaring" => Codec::Roaring,
            _ => Codec::None,
        };
        let order = descriptor.stored_order();
        Ok(Self { dtype, order, elements, raw_len, encoded_len, packing, shuffle, codec })
    }

    /// The length of the decoded values in bytes.
    pub fn decoded_len(&self) -> u64 {
        self.raw_len
    }

    /// The length of the payload, if it is known without decoding.
    pub fn stored_len(&self) -> Option<u64> {
        match &self.codec {
            Codec::None => Some(self.encoded_len),
            Codec::Zfp(zfp) => zfp.stored_len(self.elements),
            _ => None,
        }
    }

    /// Whether the payload is the values themselves.
    pub(crate) fn is_plain(&self) -> bool {
        self.packing.is_none() && self.shuffle.is_none() && matches!(self.codec, Codec::None)
    }

    /// The floating-point type, if the values are floats.
    fn float(&self) -> Option<Float> {
        float_type(self.dtype)
    }

    /// Whether decoded numbers have the stored byte order. Packing, zfp and sz3 compute numbers, which are
    /// little-endian.
    fn keeps_bytes(&self) -> bool {
        self.packing.is_none() && !matches!(self.codec, Codec::Zfp(_) | Codec::Sz3(_))
    }
}
