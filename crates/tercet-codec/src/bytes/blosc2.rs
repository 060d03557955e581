//! Blosc2 frames: filtered, compressed blocks inside chunks inside one frame.
//!
//! ```text
//! frame   header │ chunk │ … │ chunk │ offsets of the chunks (itself a chunk) │ trailer
//! chunk   header │ where each block begins │ block │ … │ block
//! block   one stream, or one per byte of the element type: length │ compressed bytes
//! ```
//!
//! The frame is self-describing: codec, element size, filters and sizes. Every field is validated against the bytes and the
//! expected length before it is used; scratch memory is one block per thread. Blocks are independent: they are coded in
//! parallel, and ranges decode only the blocks they touch.
//!
//! Unsupported, and rejected by name: dictionaries, the delta filter, blocks of varying length, codecs and filters beyond
//! the built-in ones, Blosc 1 chunks.

#[cfg(feature = "blosc2")]
mod chunk;
#[cfg(feature = "blosc2")]
mod codec;
#[cfg(feature = "blosc2")]
mod frame;
#[cfg(feature = "blosc2")]
mod pack;

use crate::CodecError;

const CODEC: &str = "blosc2";

/// Maximum raw bytes of one chunk, before rounding down to whole elements.
pub const CHUNK_BYTES: usize = 256 << 20;

/// Compressor of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// `BloscLZ`: fast.
    BloscLz,
    /// LZ4.
    Lz4,
    /// LZ4 with a slower, better search; decodes like [`Inner::Lz4`].
    Lz4hc,
    /// Deflate.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Inner {
    /// All compressors.
    pub const ALL: [Self; 5] = [Self::BloscLz, Self::Lz4, Self::Lz4hc, Self::Zlib, Self::Zstd];

    /// The name in descriptors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BloscLz => "blosclz",
            Self::Lz4 => "lz4",
            Self::Lz4hc => "lz4hc",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// Parses the name of a compressor.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|inner| inner.name() == name)
    }
}

/// Rearrangement of the bytes of elements before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Byte shuffle, in the last slot of the filter pipeline: for arrays.
    Bytes,
    /// Bit shuffle, in the first slot: for masks.
    Bits,
}

/// Encoding parameters of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blosc2 {
    /// The compressor.
    pub codec: Inner,
    /// The compression level, 0 (stored) to 9.
    pub level: u8,
    /// Element size in bytes; above 255 elements count as bytes.
    pub type_size: u32,
    /// The filter.
    pub shuffle: Shuffle,
}

impl Blosc2 {
    /// Rejects parameters that a frame cannot represent.
    pub fn check(&self) -> Result<(), CodecError> {
        let refused =
            |name, found: String, allowed| CodecError::Parameter { codec: CODEC, name, found, allowed };
        if self.level > 9 {
            return Err(refused("level", self.level.to_string(), "0 to 9"));
        }
        if self.type_size == 0 || i32::try_from(self.type_size).is_err() {
            return Err(refused("type size", self.type_size.to_string(), "1 to 2147483647 bytes"));
        }
        Ok(())
    }
}

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "blosc2")
}

/// Appends a frame of `raw` to `out`. Empty input cannot be encoded.
#[cfg(feature = "blosc2")]
pub fn encode(raw: &[u8], settings: &Blosc2, out: &mut Vec<u8>) -> Result<(), CodecError> {
    settings.check()?;
    if raw.is_empty() {
        return Err(CodecError::Encode { codec: CODEC, detail: "no bytes".to_owned() });
    }
    frame::append(raw, *settings, CHUNK_BYTES, out)
}

/// Decodes `stored` into exactly `raw.len()` bytes.
#[cfg(feature = "blosc2")]
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    decode_range(stored, 0, raw, raw.len() as u64)
}

/// Decodes the bytes from `first_byte` on of a frame of `total` bytes, as many as `raw` has room for.
///
/// Decodes only the blocks touched.
#[cfg(feature = "blosc2")]
pub fn decode_range(stored: &[u8], first_byte: u64, raw: &mut [u8], total: u64) -> Result<(), CodecError> {
    let frame = frame::Frame::open(stored)?;
    if frame.raw_bytes != total {
        return Err(CodecError::WrongLength { codec: CODEC, expected: total, found: frame.raw_bytes });
    }
    match first_byte.checked_add(raw.len() as u64) {
        Some(end) if end <= total => frame.read(first_byte, raw),
        _ => Err(failed(format!("{} bytes from {first_byte} on in a frame of {total}", raw.len()))),
    }
}

#[cfg(feature = "blosc2")]
fn failed(detail: impl Into<String>) -> CodecError {
    CodecError::Decode { codec: CODEC, detail: detail.into() }
}

/// Appends a frame of `raw` to `out`. Empty input cannot be encoded.
#[cfg(not(feature = "blosc2"))]
pub fn encode(_raw: &[u8], _settings: &Blosc2, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "blosc2" })
}

/// Decodes `stored` into exactly `raw.len()` bytes.
#[cfg(not(feature = "blosc2"))]
pub fn decode(_stored: &[u8], _raw: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "blosc2" })
}

/// Decodes the bytes from `first_byte` on of a frame of `total` bytes, as many as `raw` has room for.
#[cfg(not(feature = "blosc2"))]
pub fn decode_range(
    _stored: &[u8],
    _first_byte: u64,
    _raw: &mut [u8],
    _total: u64,
) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "blosc2" })
}

#[cfg(test)]
mod tests;
