//! Masks: positions of non-finite values.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use tercet_codec::bits::{rle, roaring};
use tercet_codec::bytes::blosc2::{self, Blosc2, Inner, Shuffle};
use tercet_codec::bytes::{lz4, zstd};
use tercet_codec::finite::{Masks, NonFinite};
use tercet_codec::{CodecError, finite};

use super::decode::zeroed;
use super::error::PipelineError;
use crate::descriptor::DataObjectDescriptor;
use crate::encode::EncodeOptions;
use crate::metadata::{MetadataError, MetadataErrorKind, string_of, type_error, u64_of};
use crate::value::Value;

/// The non-finite values that a mask marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskKind {
    /// Not a number.
    Nan,
    /// Positive infinity.
    PosInf,
    /// Negative infinity.
    NegInf,
}

impl MaskKind {
    /// All kinds, in the order in which masks are stored and applied.
    pub const ALL: [Self; 3] = [Self::Nan, Self::PosInf, Self::NegInf];

    /// The key in the descriptor.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nan => "nan",
            Self::PosInf => "inf+",
            Self::NegInf => "inf-",
        }
    }

    pub(super) fn value(self) -> NonFinite {
        match self {
            Self::Nan => NonFinite::Nan,
            Self::PosInf => NonFinite::PosInf,
            Self::NegInf => NonFinite::NegInf,
        }
    }
}

impl fmt::Display for MaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The compression of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaskMethod {
    /// Packed bits.
    None,
    /// Run lengths.
    Rle,
    /// A roaring bitmap of the positions: small if few values are masked.
    #[default]
    Roaring,
    /// LZ4 over the packed bits.
    Lz4,
    /// Zstandard over the packed bits.
    Zstd {
        /// The level; 3 by default.
        level: Option<i32>,
    },
    /// Blosc2 over the packed bits. The reference cannot read it unless the process has used Blosc2 before.
    Blosc2 {
        /// The inner compressor.
        codec: Inner,
        /// The level, 0 to 9.
        level: u8,
    },
    /// Roaring; with [`EncodeOptions::max_error`], the shortest of all methods but Blosc2.
    Auto,
}

impl MaskMethod {
    /// The names of all methods, in the order of the documentation.
    pub const NAMES: [&'static str; 6] = ["none", "rle", "roaring", "lz4", "zstd", "blosc2"];

    /// The methods among which the shortest is found, fastest to decode first.
    const SEARCHED: [Self; 5] = [Self::None, Self::Lz4, Self::Zstd { level: None }, Self::Rle, Self::Roaring];

    /// The name in the descriptor; `auto` is never stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Rle => "rle",
            Self::Roaring => "roaring",
            Self::Lz4 => "lz4",
            Self::Zstd { .. } => "zstd",
            Self::Blosc2 { .. } => "blosc2",
        }
    }

    /// The parameters of the method in the descriptor.
    fn parameters(self) -> Option<Value> {
        match self {
            Self::Zstd { level: Some(level) } => Some(Value::Map(vec![("level".into(), level.into())])),
            Self::Blosc2 { codec, level } => Some(Value::Map(vec![
                ("codec".into(), codec.name().into()),
                ("level".into(), i32::from(level).into()),
            ])),
            _ => None,
        }
    }
}

impl FromStr for MaskMethod {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "rle" => Ok(Self::Rle),
            "roaring" => Ok(Self::Roaring),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd { level: None }),
            "blosc2" => Ok(Self::Blosc2 { codec: Inner::Lz4, level: 5 }),
            _ => Err(format!("must be one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// Appends masks to a payload; returns their entry in the descriptor, if any.
pub(super) fn append(
    masks: &Masks,
    elements: u64,
    options: &EncodeOptions,
    payload: &mut Cow<'_, [u8]>,
) -> Result<Option<Value>, PipelineError> {
    let found = [
        (MaskKind::Nan, &masks.nan, options.nan_mask),
        (MaskKind::PosInf, &masks.pos_inf, options.pos_inf_mask),
        (MaskKind::NegInf, &masks.neg_inf, options.neg_inf_mask),
    ];
    let mut entries = Vec::new();
    for (kind, bits, method) in found {
        let Some(bits) = bits else { continue };
        let failed = |error| PipelineError::Mask { kind, error };
        let offset = payload.len() as u64;
        let method = match method {
            _ if bits.len() as u64 <= options.small_mask_threshold => MaskMethod::None,
            MaskMethod::Auto if options.max_error.is_some() => shortest(bits, elements).map_err(failed)?,
            // Positions in roaring bitmaps have 32 bits.
            MaskMethod::Roaring | MaskMethod::Auto if elements > u32::MAX.into() => MaskMethod::Rle,
            MaskMethod::Auto => MaskMethod::Roaring,
            method => method,
        };
        compress(bits, elements, method, payload.to_mut()).map_err(failed)?;
        let mut entry = vec![
            ("length".into(), (payload.len() as u64 - offset).into()),
            ("method".into(), method.name().into()),
            ("offset".into(), offset.into()),
        ];
        entry.extend(method.parameters().map(|parameters| ("params".into(), parameters)));
        entries.push((Value::from(kind.name()), Value::Map(entry)));
    }
    Ok((!entries.is_empty()).then_some(Value::Map(entries)))
}

/// The method with the shortest result, the first of equal ones.
fn shortest(bits: &[u8], elements: u64) -> Result<MaskMethod, CodecError> {
    let mut best = (bits.len(), MaskMethod::None);
    for method in MaskMethod::SEARCHED {
        let is_possible = match method {
            MaskMethod::None => false,
            MaskMethod::Lz4 => lz4::is_built_in(),
            MaskMethod::Zstd { .. } => zstd::is_built_in(),
            _ => method != MaskMethod::Roaring || elements <= u32::MAX.into(),
        };
        if is_possible {
            let mut out = Vec::new();
            compress(bits, elements, method, &mut out)?;
            if out.len() < best.0 {
                best = (out.len(), method);
            }
        }
    }
    Ok(best.1)
}

fn compress(bits: &[u8], elements: u64, method: MaskMethod, out: &mut Vec<u8>) -> Result<(), CodecError> {
    match method {
        MaskMethod::None => out.extend_from_slice(bits),
        MaskMethod::Rle => rle::encode(bits, elements, out)?,
        MaskMethod::Roaring | MaskMethod::Auto => roaring::encode(bits, elements, out)?,
        MaskMethod::Lz4 => lz4::encode(bits, out)?,
        MaskMethod::Zstd { level } => zstd::encode(bits, level.unwrap_or(zstd::DEFAULT_LEVEL), out)?,
        MaskMethod::Blosc2 { codec, level } => {
            blosc2::encode(bits, &Blosc2 { codec, level, type_size: 1, shuffle: Shuffle::Bits }, out)?;
        }
    }
    Ok(())
}

/// A mask of a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mask {
    pub(crate) kind: MaskKind,
    method: Box<str>,
    /// The offset from the start of the payload region.
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Mask {
    /// The masks of an object, in the order in which they are applied.
    pub(crate) fn all(descriptor: &DataObjectDescriptor) -> Result<Vec<Self>, MetadataError> {
        let Some(masks) = &descriptor.masks else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for kind in MaskKind::ALL {
            let entry = masks.untagged().get(kind.name()).map(Value::untagged);
            let Some(entry) = entry.filter(|entry| **entry != Value::Null) else { continue };
            let path = format!("masks.{kind}");
            if entry.as_map().is_none() {
                return Err(type_error(entry, &path, "a map"));
            }
            let field = |key: &str| {
                let path = format!("{path}.{key}");
                match entry.get(key) {
                    Some(value) => Ok((value.untagged(), path)),
                    None => Err(MetadataError::new(path, MetadataErrorKind::Missing)),
                }
            };
            let number = |key| field(key).and_then(|(value, path)| u64_of(value, &path));
            let (offset, length) = (number("offset")?, number("length")?);
            let (method, path) = field("method")?;
            let method = string_of(method.clone(), &path)?.into();
            all.push(Self { kind, method, offset, length });
        }
        Ok(all)
    }

    /// The packed bits of the mask; `elements` is the number of elements of the object.
    pub(crate) fn bits(&self, blob: &[u8], elements: u64) -> Result<Vec<u8>, PipelineError> {
        let mut bits = zeroed(elements.div_ceil(8))?;
        let wrong = |error| PipelineError::Mask { kind: self.kind, error };
        let decoded = match &*self.method {
            "none" if blob.len() == bits.len() => {
                bits.copy_from_slice(blob);
                Ok(())
            }
            "none" => {
                let (expected, found) = (bits.len() as u64, blob.len() as u64);
                Err(CodecError::WrongLength { codec: "none", expected, found })
            }
            "rle" => rle::decode(blob, elements, &mut bits),
            "roaring" => roaring::decode(blob, elements, &mut bits),
            "lz4" => lz4::decode(blob, &mut bits),
            "zstd" => zstd::decode(blob, &mut bits),
            "blosc2" => blosc2::decode(blob, &mut bits),
            name => return Err(PipelineError::Unknown { stage: "mask method", name: name.into() }),
        };
        decoded.map_err(wrong)?;
        Ok(bits)
    }
}

impl super::Pipeline {
    /// Restores masked values; the first value is element `first` of the object.
    pub(crate) fn restore(&self, kind: MaskKind, bits: &[u8], first: u64, values: &mut [u8]) {
        if let Some(float) = self.float() {
            finite::restore(values, float, kind.value(), bits, first);
        }
    }
}
