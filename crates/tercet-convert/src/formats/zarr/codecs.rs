//! Codecs of chunks: filters, a serializer, compressors and checksums.

use std::io::Read as _;

use serde_json::Value;
use tercet_codec::shuffle::unshuffle;
use tercet_core::tensor::BoxCopy;
use tercet_core::{Limits, checksum};

use super::filters::Filter;
use crate::arrays::ZstdChunks;
use crate::formats::strided::strides;

/// The codecs of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Codecs {
    /// The order of axes in the stored chunk.
    pub(super) transpose: Option<Vec<usize>>,
    /// Filters of elements, in the order of encoding.
    filters: Vec<Filter>,
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
    FixedText(FixedText),
    Sharding {
        chunk: Vec<u64>,
        inner: Box<Codecs>,
        index: Box<Codecs>,
        at_end: bool,
    },
}

/// Strings of a fixed number of bytes, filled with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FixedText {
    pub(super) width: usize,
    /// UTF-32, otherwise bytes.
    pub(super) is_utf32: bool,
    pub(super) is_big: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BytesCodec {
    Gzip,
    Zlib,
    Zstd,
    Lz4,
    Blosc,
    Crc32c,
    /// CRC-32 and Adler-32 of numcodecs are stored before the bytes, Fletcher-32 after them.
    Crc32,
    Adler32,
    Fletcher32,
    /// Bytes of elements of this size, first all first bytes.
    Shuffle(usize),
}

/// The longest chunk of a store: a hostile one is small.
fn max_chunk(stored: usize) -> usize {
    let limits = Limits::default().for_file(stored as u64);
    usize::try_from(limits.chunk_bytes).unwrap_or(usize::MAX)
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
                // Rounding, which is not undone.
                "bitround" => {}
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
        if let Some(filter) = Filter::parse(name, options)? {
            self.filters.push(filter);
            return Ok(());
        }
        let codec = bytes_codec(name, options)?;
        if codec == BytesCodec::Zstd {
            let level =
                options.get("level").and_then(Value::as_i64).and_then(|level| i32::try_from(level).ok());
            // Level 0 is the default of the library.
            self.zstd_level = level.map(|level| if level == 0 { 3 } else { level });
        }
        self.bytes.push(codec);
        Ok(())
    }

    /// Strings have a fixed width, also those of inner chunks.
    pub(super) fn set_text(&mut self, text: FixedText) {
        match &mut self.serializer {
            Serializer::Sharding { inner, .. } => inner.set_text(text),
            serializer => {
                // The byte order is that of the serializer.
                let is_big = text.is_big || matches!(serializer, Serializer::Big);
                *serializer = Serializer::FixedText(FixedText { is_big, ..text });
            }
        }
    }

    /// Whether chunks are Zstandard frames of row-major, little-endian values.
    pub(super) fn zstd(&self, unit: usize) -> Option<ZstdChunks> {
        let is_plain = match self.serializer {
            Serializer::Little => true,
            Serializer::Big => unit == 1,
            Serializer::Strings | Serializer::FixedText(_) | Serializer::Sharding { .. } => false,
        };
        let is_zstd = self.bytes == [BytesCodec::Zstd] && self.transpose.is_none() && self.filters.is_empty();
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
                "bitround" => {}
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
        if matches!(self.serializer, Serializer::Sharding { .. }) && len > max_chunk(bytes.len()) {
            return Err(format!("a shard of {} bytes has {len} bytes of values", bytes.len()));
        }
        for codec in self.bytes.iter().rev() {
            // A shard can be larger than its values: its index, and chunks that do not shrink. Filters change the size of elements.
            bytes = codec.decode(
                &bytes,
                len.saturating_mul(8).min(len.saturating_add(1 << 28)).saturating_add(1 << 20),
            )?;
        }
        let mut values = match &self.serializer {
            Serializer::Little | Serializer::Big => bytes,
            Serializer::Strings | Serializer::FixedText(_) => {
                return Err("strings are not numbers".to_owned());
            }
            Serializer::Sharding { chunk, inner, index, at_end } => {
                shard(&bytes, shape, chunk, (size, unit), (inner, index, *at_end), fill)?
            }
        };
        for filter in self.filters.iter().rev() {
            values = filter.decode(values, len)?;
        }
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

    /// Decodes the strings of a chunk of this shape, row-major. Missing inner chunks have the fill value.
    pub(super) fn decode_strings(
        &self,
        mut bytes: Vec<u8>,
        shape: &[u64],
        fill: &str,
    ) -> Decode<Vec<String>> {
        for codec in self.bytes.iter().rev() {
            bytes = codec.decode(&bytes, 1 << 30)?;
        }
        if self.transpose.as_ref().is_some_and(|order| !order.is_sorted()) {
            return Err("transposed strings are not supported".to_owned());
        }
        let count = byte_len(shape, 1)?;
        let texts = match &self.serializer {
            Serializer::FixedText(text) => text.decode(&bytes)?,
            Serializer::Sharding { chunk, inner, index, at_end } => {
                if count > max_chunk(bytes.len()) / size_of::<String>() {
                    return Err(format!("a shard of {} bytes has {count} strings", bytes.len()));
                }
                let mut texts = vec![fill.to_owned(); count];
                for (start, piece) in pieces(&bytes, shape, chunk, (index, *at_end))? {
                    let Some(piece) = piece else { continue };
                    let found = inner.decode_strings(piece.to_vec(), chunk, fill)?;
                    for (number, text) in found.into_iter().enumerate() {
                        let place = crate::arrays::place_of(&start, chunk, number);
                        let linear =
                            place.iter().zip(shape).fold(0, |linear, (at, extent)| linear * extent + at);
                        if let Some(slot) =
                            usize::try_from(linear).ok().and_then(|linear| texts.get_mut(linear))
                        {
                            *slot = text;
                        }
                    }
                }
                texts
            }
            _ => variable_texts(&bytes)?,
        };
        if texts.len() != count {
            return Err(format!("a chunk has {} strings, not {count}", texts.len()));
        }
        Ok(texts)
    }
}

/// Strings of any length: their number, and each after its length.
fn variable_texts(bytes: &[u8]) -> Decode<Vec<String>> {
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

impl FixedText {
    fn decode(self, bytes: &[u8]) -> Decode<Vec<String>> {
        let text = |element: &[u8]| -> Decode<String> {
            if !self.is_utf32 {
                let end = element.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                return String::from_utf8(element[..end].to_vec())
                    .map_err(|_| "a string is not UTF-8".to_owned());
            }
            let code = |unit: &[u8; 4]| {
                let code = if self.is_big { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) };
                char::from_u32(code).ok_or("a string has invalid characters")
            };
            let text: String = element.as_chunks::<4>().0.iter().map(code).collect::<Result<_, _>>()?;
            Ok(text.trim_end_matches('\0').to_owned())
        };
        if self.width == 0 || !bytes.len().is_multiple_of(self.width) {
            return Err(format!("strings of {} bytes in {} bytes", self.width, bytes.len()));
        }
        bytes.chunks_exact(self.width).map(text).collect()
    }
}

fn bytes_codec(name: &str, options: &Value) -> Decode<BytesCodec> {
    let is_first =
        |default: &str| options.get("location").and_then(Value::as_str).unwrap_or(default) == "start";
    match name {
        "crc32" if is_first("start") => Ok(BytesCodec::Crc32),
        "adler32" if is_first("start") => Ok(BytesCodec::Adler32),
        "fletcher32" => Ok(BytesCodec::Fletcher32),
        "shuffle" => {
            let size = options.get("elementsize").map_or(Some(4), Value::as_u64);
            let size =
                size.and_then(|size| usize::try_from(size).ok()).filter(|size| (1..=4096).contains(size));
            size.map(BytesCodec::Shuffle)
                .ok_or_else(|| "the filter `shuffle` has no size of elements".to_owned())
        }
        "gzip" => Ok(BytesCodec::Gzip),
        "zlib" => Ok(BytesCodec::Zlib),
        "zstd" => Ok(BytesCodec::Zstd),
        "lz4" => Ok(BytesCodec::Lz4),
        "blosc" => Ok(BytesCodec::Blosc),
        "crc32c" if !is_first("end") => Ok(BytesCodec::Crc32c),
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
                verified(values, checksum::crc32c(values), *stored)
            }
            Self::Crc32 => {
                let (stored, values) = bytes.split_first_chunk::<4>().ok_or("a checksum is missing")?;
                let mut crc = flate2::Crc::new();
                crc.update(values);
                verified(values, crc.sum(), *stored)
            }
            Self::Adler32 => {
                let (stored, values) = bytes.split_first_chunk::<4>().ok_or("a checksum is missing")?;
                verified(values, adler32(values), *stored)
            }
            Self::Fletcher32 => {
                let (values, stored) = bytes.split_last_chunk::<4>().ok_or("a checksum is missing")?;
                verified(values, hdf5_reader::checksum::fletcher32(values), *stored)
            }
            Self::Shuffle(size) => {
                // Bytes after the last whole element are not shuffled.
                let whole = bytes.len() / size * size;
                let mut out = bytes.to_vec();
                unshuffle(&bytes[..whole], size, &mut out[..whole]).map_err(|error| error.to_string())?;
                Ok(out)
            }
        }
    }
}

/// The values, if their checksum is the stored one.
fn verified(values: &[u8], computed: u32, stored: [u8; 4]) -> Decode<Vec<u8>> {
    if computed == u32::from_le_bytes(stored) {
        Ok(values.to_vec())
    } else {
        Err("the checksum of a chunk does not match".to_owned())
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    // Sums over this number of bytes do not overflow.
    let (low, high) = bytes.chunks(5552).fold((1u32, 0u32), |(low, high), part| {
        let (low, high) = part.iter().fold((low, high), |(low, high), byte| {
            let low = low + u32::from(*byte);
            (low, high + low)
        });
        (low % 65_521, high % 65_521)
    });
    high << 16 | low
}

fn byte_len(shape: &[u64], size: usize) -> Decode<usize> {
    let len = shape.iter().try_fold(size as u64, |len, extent| len.checked_mul(*extent));
    let len = len.filter(|len| *len <= 8 << 30).and_then(|len| usize::try_from(len).ok());
    len.ok_or_else(|| format!("a chunk of shape {shape:?} is too large"))
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

/// A chunk of a shard.
type Piece<'b> = (Vec<u64>, Option<&'b [u8]>);

/// The chunks of a shard: the position of the first element, and the stored bytes; `None` if the chunk is missing.
fn pieces<'b>(
    bytes: &'b [u8],
    shape: &[u64],
    chunk: &[u64],
    (index, at_end): (&Codecs, bool),
) -> Decode<Vec<Piece<'b>>> {
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
    let piece = |number: usize| -> Decode<Piece<'b>> {
        let field =
            |at: usize| table[number * 16 + at..][..8].try_into().map_or(u64::MAX, u64::from_le_bytes);
        let (offset, len) = (field(0), field(8));
        let grid: Vec<u64> = crate::arrays::place_of(&vec![0; counts.len()], &counts, number);
        let start = grid.iter().zip(chunk).map(|(at, chunk)| at * chunk).collect();
        if offset == u64::MAX && len == u64::MAX {
            return Ok((start, None));
        }
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let piece = range.and_then(|(at, len)| bytes.get(at..at.checked_add(len)?));
        Ok((start, Some(piece.ok_or("a chunk is outside of its shard")?)))
    };
    (0..count).map(piece).collect()
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
    let pieces = pieces(bytes, shape, chunk, (index, at_end))?;
    let mut out = vec![0; byte_len(shape, size)?];
    let to = strides(shape, size);
    let counts: Vec<usize> = chunk.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    let empty = fill.repeat(byte_len(chunk, size)? / size.max(1));
    for (start, piece) in pieces {
        let decoded = piece.map(|piece| inner.decode(piece.to_vec(), chunk, size, unit, fill)).transpose()?;
        let values = decoded.as_ref().unwrap_or(&empty);
        let at = start.iter().zip(&to).map(|(at, stride)| usize::try_from(*at).unwrap_or(0) * stride).sum();
        BoxCopy::new(size, &counts, (0, &strides(chunk, size)), (at, &to))
            .run(values, &mut out)
            .map_err(|error| error.to_string())?;
    }
    Ok(out)
}
