//! Codecs of chunks.

use std::io::Read as _;

use serde_json::Value;
use tercet_core::checksum;
use tercet_core::tensor::BoxCopy;

use crate::arrays::ZstdChunks;

/// The codecs of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Codecs {
    /// The order of axes in the stored chunk.
    pub(super) transpose: Option<Vec<usize>>,
    pub(super) serializer: Serializer,
    /// Compressors and checksums, in the order of encoding.
    pub(super) bytes: Vec<BytesCodec>,
    /// The level of Zstandard, if it is recorded.
    zstd_level: Option<i32>,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Serializer {
    #[default]
    Little,
    Big,
    Strings,
    Sharding {
        chunk: Vec<u64>,
        inner: Box<Codecs>,
        index: Box<Codecs>,
        at_end: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BytesCodec {
    Gzip,
    Zlib,
    Zstd,
    Lz4,
    Blosc,
    Crc32c,
}

type Decode<T> = Result<T, String>;

impl Codecs {
    /// The codecs of version 3.
    pub(super) fn parse(list: &Value, depth: usize) -> Decode<Self> {
        let mut codecs = Self::default();
        if depth > 4 {
            return Err("shards inside shards".to_owned());
        }
        for codec in list.as_array().ok_or("the codecs are not a list")? {
            let name =
                codec.as_str().or_else(|| codec.get("name").and_then(Value::as_str)).unwrap_or_default();
            let options = codec.get("configuration").unwrap_or(&Value::Null);
            match name.strip_prefix("numcodecs.").unwrap_or(name) {
                "bytes" => {
                    let big = options.get("endian").and_then(Value::as_str) == Some("big");
                    codecs.serializer = if big { Serializer::Big } else { Serializer::Little };
                }
                "vlen-utf8" => codecs.serializer = Serializer::Strings,
                "transpose" => {
                    let order = options.get("order").and_then(Value::as_array);
                    let order = order.map(|order| {
                        order
                            .iter()
                            .filter_map(Value::as_u64)
                            .filter_map(|axis| usize::try_from(axis).ok())
                            .collect()
                    });
                    codecs.transpose = Some(order.ok_or("a transpose without an order")?);
                }
                "sharding_indexed" => {
                    let chunk = options
                        .get("chunk_shape")
                        .and_then(Value::as_array)
                        .ok_or("a shard without chunks")?;
                    codecs.serializer = Serializer::Sharding {
                        chunk: chunk.iter().filter_map(Value::as_u64).collect(),
                        inner: Box::new(Self::parse(
                            options.get("codecs").unwrap_or(&Value::Null),
                            depth + 1,
                        )?),
                        index: Box::new(Self::parse(
                            options.get("index_codecs").unwrap_or(&Value::Null),
                            depth + 1,
                        )?),
                        at_end: options.get("index_location").and_then(Value::as_str) != Some("start"),
                    };
                }
                other => codecs.push(other, options)?,
            }
        }
        Ok(codecs)
    }

    fn push(&mut self, name: &str, options: &Value) -> Decode<()> {
        let codec = bytes_codec(name)?;
        if codec == BytesCodec::Zstd {
            let level =
                options.get("level").and_then(Value::as_i64).and_then(|level| i32::try_from(level).ok());
            // Level 0 is the default of the library.
            self.zstd_level = level.map(|level| if level == 0 { 3 } else { level });
        }
        self.bytes.push(codec);
        Ok(())
    }

    /// Whether chunks are Zstandard frames of row-major, little-endian values.
    pub(super) fn zstd(&self, unit: usize) -> Option<ZstdChunks> {
        let is_plain = match self.serializer {
            Serializer::Little => true,
            Serializer::Big => unit == 1,
            Serializer::Strings | Serializer::Sharding { .. } => false,
        };
        let is_zstd = self.bytes == [BytesCodec::Zstd] && self.transpose.is_none();
        (is_plain && is_zstd).then_some(ZstdChunks { level: self.zstd_level })
    }

    /// The codecs of version 2.
    pub(super) fn version_2(metadata: &Value, big: bool, rank: usize) -> Decode<Self> {
        let mut codecs =
            Self { serializer: if big { Serializer::Big } else { Serializer::Little }, ..Self::default() };
        if metadata.get("order").and_then(Value::as_str) == Some("F") {
            codecs.transpose = Some((0..rank).rev().collect());
        }
        let filters = metadata.get("filters").and_then(Value::as_array).into_iter().flatten();
        let compressor = metadata.get("compressor").filter(|compressor| !compressor.is_null());
        for codec in filters.chain(compressor) {
            match codec.get("id").and_then(Value::as_str).unwrap_or_default() {
                "vlen-utf8" => codecs.serializer = Serializer::Strings,
                other => codecs.push(other, codec)?,
            }
        }
        Ok(codecs)
    }

    /// Decodes a chunk of this shape into row-major little-endian elements. Missing inner chunks have the fill value.
    pub(super) fn decode(
        &self,
        mut bytes: Vec<u8>,
        shape: &[u64],
        size: usize,
        unit: usize,
        fill: &[u8],
    ) -> Decode<Vec<u8>> {
        let len = byte_len(shape, size)?;
        for codec in self.bytes.iter().rev() {
            // A shard can be larger than its values: its index, and chunks that do not shrink.
            bytes = codec.decode(&bytes, len.saturating_mul(2).saturating_add(1 << 20))?;
        }
        let mut values = match &self.serializer {
            Serializer::Little | Serializer::Big => bytes,
            Serializer::Strings => return Err("strings are not numbers".to_owned()),
            Serializer::Sharding { chunk, inner, index, at_end } => {
                shard(&bytes, shape, chunk, (size, unit), (inner, index, *at_end), fill)?
            }
        };
        if values.len() != len {
            return Err(format!("a chunk has {} bytes, not {len}", values.len()));
        }
        if matches!(self.serializer, Serializer::Big) && unit > 1 {
            values.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        match &self.transpose {
            None => Ok(values),
            Some(order) => transposed(&values, shape, order, size),
        }
    }

    /// Decodes the strings of a chunk.
    pub(super) fn decode_strings(&self, mut bytes: Vec<u8>) -> Decode<Vec<String>> {
        for codec in self.bytes.iter().rev() {
            bytes = codec.decode(&bytes, 1 << 30)?;
        }
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
            bytes.and_then(|number| usize::try_from(number).ok()).ok_or("strings are truncated")
        };
        let count = number(0)?;
        let (mut at, mut texts) = (4, Vec::new());
        for _ in 0..count {
            let len = number(at)?;
            let text = bytes.get(at + 4..at + 4 + len).ok_or("strings are truncated")?;
            texts.push(String::from_utf8(text.to_vec()).map_err(|_| "a string is not UTF-8")?);
            at += 4 + len;
        }
        Ok(texts)
    }
}

fn bytes_codec(name: &str) -> Decode<BytesCodec> {
    match name {
        "gzip" => Ok(BytesCodec::Gzip),
        "zlib" => Ok(BytesCodec::Zlib),
        "zstd" => Ok(BytesCodec::Zstd),
        "lz4" => Ok(BytesCodec::Lz4),
        "blosc" => Ok(BytesCodec::Blosc),
        "crc32c" => Ok(BytesCodec::Crc32c),
        other => Err(format!("the codec `{other}` is not supported")),
    }
}

impl BytesCodec {
    fn decode(self, bytes: &[u8], most: usize) -> Decode<Vec<u8>> {
        let limited = |reader: &mut dyn std::io::Read| {
            let mut out = Vec::new();
            let read =
                reader.take(most as u64 + 1).read_to_end(&mut out).map_err(|error| error.to_string())?;
            if read > most { Err(format!("a chunk has more than {most} bytes")) } else { Ok(out) }
        };
        match self {
            Self::Gzip => limited(&mut flate2::read::MultiGzDecoder::new(bytes)),
            Self::Zlib => limited(&mut flate2::read::ZlibDecoder::new(bytes)),
            Self::Zstd => limited(&mut zstd::Decoder::new(bytes).map_err(|error| error.to_string())?),
            Self::Lz4 => {
                let len = bytes.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len) as usize);
                if len > most {
                    return Err(format!("a chunk has {len} bytes"));
                }
                lz4_flex::block::decompress(bytes.get(4..).unwrap_or_default(), len)
                    .map_err(|error| error.to_string())
            }
            Self::Blosc => {
                let len = bytes
                    .get(4..8)
                    .and_then(|len| len.try_into().ok())
                    .map_or(0, |len| u32::from_le_bytes(len) as usize);
                if len > most {
                    return Err(format!("a chunk has {len} bytes"));
                }
                blosc2_pure_rs::compress::decompress(bytes).map_err(|error| format!("blosc: {error}"))
            }
            Self::Crc32c => {
                let (values, stored) = bytes.split_last_chunk::<4>().ok_or("a checksum is missing")?;
                if checksum::crc32c(values) != u32::from_le_bytes(*stored) {
                    return Err("the checksum of a chunk does not match".to_owned());
                }
                Ok(values.to_vec())
            }
        }
    }
}

fn byte_len(shape: &[u64], size: usize) -> Decode<usize> {
    let len = shape.iter().try_fold(size as u64, |len, extent| len.checked_mul(*extent));
    let len = len.filter(|len| *len <= 8 << 30).and_then(|len| usize::try_from(len).ok());
    len.ok_or_else(|| format!("a chunk of shape {shape:?} is too large"))
}

/// Byte strides of a row-major array.
pub(super) fn strides(shape: &[u64], size: usize) -> Vec<usize> {
    let mut strides = vec![size; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] =
            strides[axis + 1].saturating_mul(usize::try_from(shape[axis + 1]).unwrap_or(usize::MAX));
    }
    strides
}

/// Undoes a transpose: axis `i` of the stored array is axis `order[i]` of the chunk.
fn transposed(values: &[u8], shape: &[u64], order: &[usize], size: usize) -> Decode<Vec<u8>> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (0..shape.len()).collect::<Vec<_>>() {
        return Err(format!("invalid transpose {order:?}"));
    }
    let stored: Vec<u64> = order.iter().map(|axis| shape[*axis]).collect();
    let stored_strides = strides(&stored, size);
    let mut from = vec![0; shape.len()];
    order.iter().zip(&stored_strides).for_each(|(axis, stride)| from[*axis] = *stride);
    let counts: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    let mut out = vec![0; values.len()];
    BoxCopy::new(size, &counts, (0, &from), (0, &strides(shape, size)))
        .run(values, &mut out)
        .map_err(|error| error.to_string())?;
    Ok(out)
}

/// Decodes all chunks of a shard.
fn shard(
    bytes: &[u8],
    shape: &[u64],
    chunk: &[u64],
    (size, unit): (usize, usize),
    (inner, index, at_end): (&Codecs, &Codecs, bool),
    fill: &[u8],
) -> Decode<Vec<u8>> {
    if chunk.len() != shape.len()
        || chunk.contains(&0)
        || shape.iter().zip(chunk).any(|(extent, chunk)| extent % chunk != 0)
    {
        return Err(format!("a shard of shape {shape:?} with chunks {chunk:?}"));
    }
    let counts: Vec<u64> = shape.iter().zip(chunk).map(|(extent, chunk)| extent / chunk).collect();
    let count = counts
        .iter()
        .try_fold(1u64, |count, part| count.checked_mul(*part))
        .filter(|count| *count <= 1 << 24);
    let count = count.and_then(|count| usize::try_from(count).ok()).ok_or("a shard with too many chunks")?;
    let has_crc = index.bytes.contains(&BytesCodec::Crc32c);
    let index_len = count * 16 + if has_crc { 4 } else { 0 };
    let stored = if at_end {
        bytes.len().checked_sub(index_len).and_then(|start| bytes.get(start..))
    } else {
        bytes.get(..index_len)
    };
    let stored = stored.ok_or("a shard is shorter than its index")?;
    let table = index.decode(stored.to_vec(), &[count as u64, 2], 8, 8, &[0; 8])?;
    let mut out = vec![0; byte_len(shape, size)?];
    let to = strides(shape, size);
    let counts_of: Vec<usize> = chunk.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    let empty = fill.repeat(byte_len(chunk, size)? / size.max(1));
    for number in 0..count {
        let field =
            |at: usize| table[number * 16 + at..][..8].try_into().map_or(u64::MAX, u64::from_le_bytes);
        let (offset, len) = (field(0), field(8));
        let values = if offset == u64::MAX && len == u64::MAX {
            empty.clone()
        } else {
            let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
            let piece = range.and_then(|(at, len)| bytes.get(at..at.checked_add(len)?));
            inner.decode(piece.ok_or("a chunk is outside of its shard")?.to_vec(), chunk, size, unit, fill)?
        };
        let mut rest = number as u64;
        let mut start = 0;
        for axis in (0..shape.len()).rev() {
            start += usize::try_from(rest % counts[axis] * chunk[axis]).unwrap_or(0) * to[axis];
            rest /= counts[axis];
        }
        BoxCopy::new(size, &counts_of, (0, &strides(chunk, size)), (start, &to))
            .run(&values, &mut out)
            .map_err(|error| error.to_string())?;
    }
    Ok(out)
}
