//! Chunk decoder.
//!
//! ```text
//!  0  u8  version            12  i32 stored bytes, header included
//!  1  u8  codec version      16  6 × u8 filters, first applied first
//!  2  u8  flags              22  u8 codec number, u8 codec detail
//!  3  u8  element bytes      24  6 × u8 filter details
//!  4  i32 raw bytes          30  u8 more flags
//!  8  i32 block bytes        31  u8 flags: how the chunk is filled, whether it has a dictionary
//! ```

use std::ops::Range;

use blosc2_pure_rs::filters;
use rayon::prelude::*;

use super::{CODEC, Inner, codec, failed};
use crate::CodecError;

pub(super) const HEADER_BYTES: usize = 32;

/// Both shuffle flags together mark the extended header of 32 bytes.
pub(super) const FLAG_LONG_HEADER: u8 = 0x05;
pub(super) const FLAG_STORED: u8 = 0x02;
pub(super) const FLAG_ONE_STREAM: u8 = 0x10;
const FLAG_VARYING_BLOCKS: u8 = 0x01;
const FLAG_DICTIONARY: u8 = 0x01;
/// Unsupported: chunks that refer to a file, or that contain instrumentation data.
const FLAGS_NO_VALUES: u8 = 0x88;

/// Versions with this header: six filter slots.
const VERSIONS: std::ops::RangeInclusive<u8> = 4..=6;

/// Maximum block size of the library.
const MAX_BLOCK_BYTES: usize = 536_866_816;

/// Content of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Raw bytes.
    Stored,
    /// Compressed blocks.
    Blocks(Inner),
    /// Zeros.
    Zeros,
    /// NaN in 4 or 8 bytes.
    Nans,
    /// One repeated element.
    Value,
}

/// A chunk with a validated header.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    bytes: &'a [u8],
    body: Body,
    pub(super) raw_bytes: usize,
    block_bytes: usize,
    type_size: usize,
    filters: [Filter; 6],
    is_split: bool,
}

/// A filter and its element size in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    number: u8,
    width: usize,
}

/// Scratch memory of one thread: a block before and after a filter.
#[derive(Default)]
pub(super) struct Scratch {
    block: Vec<u8>,
    other: Vec<u8>,
}

impl<'a> Chunk<'a> {
    /// Opens the chunk at the start of `bytes`; trailing bytes are ignored.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(failed(format!("{} bytes cannot hold a chunk", bytes.len())));
        };
        let [version, _, flags, type_size, ..] = *header;
        let (raw_bytes, block_bytes, stored) = (size(header, 4)?, size(header, 8)?, size(header, 12)?);
        if flags & FLAG_LONG_HEADER != FLAG_LONG_HEADER || !VERSIONS.contains(&version) {
            return Err(failed(format!("a chunk of version {version}")));
        }
        if header[30] & FLAG_VARYING_BLOCKS != 0 {
            return Err(failed("blocks of varying length"));
        }
        if header[31] & FLAG_DICTIONARY != 0 {
            return Err(failed("a dictionary"));
        }
        if header[31] & FLAGS_NO_VALUES != 0 {
            return Err(failed("a chunk with unsupported content"));
        }
        let bytes = bytes
            .get(..stored)
            .filter(|bytes| bytes.len() >= HEADER_BYTES)
            .ok_or_else(|| failed(format!("a chunk of {stored} bytes where {} are left", bytes.len())))?;
        let mut chunk = Self {
            bytes,
            body: match header[31] >> 4 & 7 {
                0 if flags & FLAG_STORED != 0 => Body::Stored,
                0 => Body::Blocks(
                    codec::reader(flags >> 5)
                        .ok_or_else(|| failed(format!("codec format {}", flags >> 5)))?,
                ),
                1 => Body::Zeros,
                2 => Body::Nans,
                3 => Body::Value,
                other => return Err(failed(format!("unknown special chunk {other}"))),
            },
            raw_bytes,
            block_bytes: block_bytes.min(raw_bytes),
            type_size: usize::from(type_size),
            filters: std::array::from_fn(|at| Filter::new(header[16 + at], header[24 + at], type_size)),
            is_split: flags & FLAG_ONE_STREAM == 0,
        };
        chunk.check()?;
        Ok(chunk)
    }

    /// A special chunk that exists only as an offset in the frame.
    pub(super) fn special(kind: u8, raw_bytes: usize, type_size: usize) -> Result<Self, CodecError> {
        let body = match kind {
            1 => Body::Zeros,
            2 => Body::Nans,
            other => return Err(failed(format!("unknown special chunk {other}"))),
        };
        let block_bytes = raw_bytes;
        let mut chunk = Self {
            bytes: &[],
            body,
            raw_bytes,
            block_bytes,
            type_size,
            filters: Default::default(),
            is_split: false,
        };
        chunk.check()?;
        Ok(chunk)
    }

    fn check(&mut self) -> Result<(), CodecError> {
        if self.raw_bytes > 0 && self.block_bytes == 0 || self.type_size == 0 {
            return Err(failed("a chunk without block or element size"));
        }
        let body = self.bytes.get(HEADER_BYTES..).unwrap_or_default();
        match self.body {
            Body::Stored if body.len() != self.raw_bytes => {
                return Err(failed(format!(
                    "{} stored bytes, but {} are declared",
                    body.len(),
                    self.raw_bytes
                )));
            }
            Body::Blocks(_) => {
                if let Some(filter) = self.filters.iter().find(|filter| !filter.is_known()) {
                    return Err(failed(format!("filter {}", filter.number)));
                }
                if self.block_bytes > MAX_BLOCK_BYTES {
                    return Err(failed(format!("blocks of {} bytes", self.block_bytes)));
                }
                let blocks = self.raw_bytes.div_ceil(self.block_bytes.max(1));
                if body.len() / 4 < blocks {
                    return Err(failed(format!("{} bytes cannot hold {blocks} blocks", body.len())));
                }
            }
            Body::Value if body.is_empty() || !self.raw_bytes.is_multiple_of(body.len()) => {
                return Err(failed("a chunk that is not a multiple of its repeated value"));
            }
            Body::Nans
                if !matches!(self.type_size, 4 | 8) || !self.raw_bytes.is_multiple_of(self.type_size) =>
            {
                return Err(failed(format!("NaN of {} bytes", self.type_size)));
            }
            Body::Stored | Body::Zeros | Body::Nans | Body::Value => {}
        }
        if !matches!(self.body, Body::Blocks(_)) {
            // One block: copied or filled without scratch memory.
            self.block_bytes = self.raw_bytes;
        }
        Ok(())
    }

    /// Reads the raw bytes from `first` on, which are inside the chunk.
    pub(super) fn read(&self, first: usize, raw: &mut [u8]) -> Result<(), CodecError> {
        if raw.is_empty() {
            return Ok(());
        }
        let Body::Blocks(inner) = self.body else {
            self.fill(first, raw);
            return Ok(());
        };
        let (first_block, skip) = (first / self.block_bytes, first % self.block_bytes);
        let (head, rest) = raw.split_at_mut(raw.len().min(self.block_bytes - skip));
        let read = |scratch: &mut Scratch, at: usize, skip: usize, raw: &mut [u8]| {
            self.read_block(inner, scratch, first_block + at, skip, raw)
        };
        if rest.is_empty() || rayon::current_num_threads() == 1 {
            let scratch = &mut Scratch::default();
            read(scratch, 0, skip, head)?;
            let mut blocks = rest.chunks_mut(self.block_bytes).zip(1..);
            return blocks.try_for_each(|(block, at)| read(scratch, at, 0, block));
        }
        let blocks = rest.par_chunks_mut(self.block_bytes).enumerate();
        let (head, rest) = rayon::join(
            || read(&mut Scratch::default(), 0, skip, head),
            || {
                blocks.try_for_each_init(Scratch::default, |scratch, (at, block)| {
                    read(scratch, at + 1, 0, block)
                })
            },
        );
        head.and(rest)
    }

    /// The bytes of an uncompressed chunk.
    fn fill(&self, first: usize, raw: &mut [u8]) {
        let body = self.bytes.get(HEADER_BYTES..).unwrap_or_default();
        let mut repeat = |value: &[u8]| {
            for (at, byte) in raw.iter_mut().enumerate() {
                *byte = value[(first + at) % value.len()];
            }
        };
        match self.body {
            Body::Nans if self.type_size == 4 => repeat(&f32::NAN.to_le_bytes()),
            Body::Nans => repeat(&f64::NAN.to_le_bytes()),
            Body::Value => repeat(body),
            Body::Stored => raw.copy_from_slice(&body[first..first + raw.len()]),
            Body::Zeros | Body::Blocks(_) => raw.fill(0),
        }
    }

    /// Reads the bytes of one block from `skip` on.
    fn read_block(
        &self,
        inner: Inner,
        scratch: &mut Scratch,
        at: usize,
        skip: usize,
        raw: &mut [u8],
    ) -> Result<(), CodecError> {
        let len = self.block_bytes.min(self.raw_bytes - at * self.block_bytes);
        if raw.len() == len {
            return self.decode_block(inner, scratch, at, raw);
        }
        let mut whole = zeros(len)?;
        self.decode_block(inner, scratch, at, &mut whole)?;
        raw.copy_from_slice(&whole[skip..skip + raw.len()]);
        Ok(())
    }

    /// Decodes one whole block.
    fn decode_block(
        &self,
        inner: Inner,
        scratch: &mut Scratch,
        at: usize,
        raw: &mut [u8],
    ) -> Result<(), CodecError> {
        let streams = self.streams(at)?;
        // Filters that move bytes; truncated precision cannot be restored. The last filter applied is undone first.
        let mut filters = self.filters.iter().rev().filter(|filter| filter.is_moving());
        let Some(&last) = filters.next() else {
            return self.unpack(inner, streams, raw);
        };
        let Scratch { block, other } = scratch;
        set_len(block, raw.len())?;
        self.unpack(inner, streams, block)?;
        let mut filter = last;
        for &next in filters {
            set_len(other, raw.len())?;
            filter.undo(block, other);
            std::mem::swap(block, other);
            filter = next;
        }
        filter.undo(block, raw);
        Ok(())
    }

    /// Start positions of the streams of one block.
    fn streams(&self, at: usize) -> Result<&'a [u8], CodecError> {
        let blocks = self.raw_bytes.div_ceil(self.block_bytes);
        let table: Range<usize> = HEADER_BYTES..HEADER_BYTES + 4 * blocks;
        let start = size(self.bytes, table.start + 4 * at)?;
        if start < table.end {
            return Err(failed(format!("block {at} starts at byte {start}, inside the header")));
        }
        self.bytes
            .get(start..)
            .ok_or_else(|| failed(format!("block {at} starts at byte {start}, past the end")))
    }

    /// Decompresses the streams of one block.
    fn unpack(&self, inner: Inner, mut streams: &[u8], block: &mut [u8]) -> Result<(), CodecError> {
        // A shorter last block is one stream.
        let count = if self.is_split && block.len() == self.block_bytes { self.type_size } else { 1 };
        if !block.len().is_multiple_of(count) {
            return Err(failed(format!("{count} streams in a block of {} bytes", block.len())));
        }
        let stream_bytes = block.len() / count;
        for raw in block.chunks_mut(stream_bytes.max(1)) {
            let (len, rest) = streams.split_first_chunk().ok_or_else(cut)?;
            let len = i32::from_le_bytes(*len);
            streams = rest;
            let Ok(len) = usize::try_from(len) else {
                // A run of one byte: the negated byte in place of the length, then a token of 1.
                let value = len.checked_neg().and_then(|value| u8::try_from(value).ok());
                let (Some(value), Some((1, rest))) = (value, streams.split_first()) else {
                    return Err(failed(format!("a stream of {len} bytes")));
                };
                raw.fill(value);
                streams = rest;
                continue;
            };
            let (stream, rest) = streams.split_at_checked(len).ok_or_else(cut)?;
            streams = rest;
            if len == 0 {
                raw.fill(0);
            } else if len == raw.len() {
                raw.copy_from_slice(stream);
            } else if !codec::decompress(inner, stream, raw) {
                return Err(failed(format!("a {} stream of {len} bytes is damaged", inner.name())));
            }
        }
        Ok(())
    }
}

fn cut() -> CodecError {
    failed("truncated stream")
}

/// The number at byte `at`, which must exist and not be negative.
fn size(bytes: &[u8], at: usize) -> Result<usize, CodecError> {
    let number =
        bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| i32::from_le_bytes(*bytes));
    let number = number.ok_or_else(cut)?;
    usize::try_from(number).map_err(|_| failed(format!("a size of {number}")))
}

impl Filter {
    fn new(number: u8, detail: u8, type_size: u8) -> Self {
        // Bytes can be shuffled with another width than the element size.
        let width = if number == Self::SHUFFLE && detail != 0 { detail } else { type_size };
        Self { number, width: usize::from(width) }
    }

    const SHUFFLE: u8 = 1;
    const BIT_SHUFFLE: u8 = 2;
    const CUT_PRECISION: u8 = 4;

    fn is_known(self) -> bool {
        matches!(self.number, 0 | Self::SHUFFLE | Self::BIT_SHUFFLE | Self::CUT_PRECISION)
    }

    fn is_moving(self) -> bool {
        self.number == Self::BIT_SHUFFLE || self.number == Self::SHUFFLE && self.width > 1
    }

    fn undo(self, from: &[u8], to: &mut [u8]) {
        if self.number == Self::SHUFFLE {
            filters::unshuffle(self.width, from, to);
        } else {
            filters::bitunshuffle(self.width, from, to);
        }
    }
}

pub(super) fn zeros(len: usize) -> Result<Vec<u8>, CodecError> {
    let mut memory = Vec::new();
    set_len(&mut memory, len)?;
    Ok(memory)
}

fn set_len(memory: &mut Vec<u8>, len: usize) -> Result<(), CodecError> {
    let more = len.saturating_sub(memory.len());
    memory
        .try_reserve_exact(more)
        .map_err(|_| CodecError::OutOfMemory { codec: CODEC, bytes: len as u64 })?;
    memory.resize(len, 0);
    Ok(())
}
