//! Chunk encoder.

use blosc2_pure_rs::filters;
use rayon::prelude::*;

use super::chunk::{FLAG_LONG_HEADER, FLAG_ONE_STREAM, FLAG_STORED, HEADER_BYTES};
use super::{Blosc2, CODEC, Inner, Shuffle, codec};
use crate::CodecError;

/// Version of the chunk format, and of all codecs in it.
const VERSIONS: [u8; 2] = [5, 1];

/// Smaller inputs are never compressed.
const MIN_BYTES: usize = 32;

/// Blocks of larger elements are never split into streams.
const MAX_STREAMS: usize = 16;

/// Blocks that each thread compresses per round.
const BLOCKS_PER_THREAD: usize = 4;

/// Parameters shared by the blocks of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    settings: Blosc2,
    type_size: usize,
    pub(super) block_bytes: usize,
    is_split: bool,
}

impl Plan {
    /// The plan for chunks of `raw_bytes`: block sizes are those of C-Blosc2, on which ratios depend.
    pub(super) fn new(settings: Blosc2, raw_bytes: usize) -> Self {
        // One byte in the header.
        let type_size = usize::from(u8::try_from(settings.type_size).unwrap_or(1));
        let mut plan = Self { settings, type_size, block_bytes: raw_bytes, is_split: false };
        plan.is_split = plan.splits(raw_bytes);
        let wanted = match settings.level {
            level @ 1.. if plan.is_split => split_block(level, type_size),
            level => whole_block(settings.codec, level, raw_bytes),
        };
        plan.block_bytes = wanted.min(raw_bytes);
        if plan.block_bytes > type_size {
            plan.block_bytes -= plan.block_bytes % type_size;
        }
        plan.is_split = plan.splits(plan.block_bytes);
        plan
    }

    /// Whether each byte of the elements gets its own stream.
    fn splits(&self, block_bytes: usize) -> bool {
        let is_fast = match self.settings.codec {
            Inner::BloscLz | Inner::Lz4 => true,
            Inner::Zstd => self.settings.level <= 5,
            Inner::Lz4hc | Inner::Zlib => false,
        };
        is_fast
            && self.settings.shuffle == Shuffle::Bytes
            && self.type_size <= MAX_STREAMS
            && block_bytes / self.type_size >= MIN_BYTES
    }

    /// Appends the chunk of `raw`.
    pub(super) fn append(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = out.len();
        let mut flags = FLAG_LONG_HEADER;
        if self.settings.level > 0 && raw.len() >= MIN_BYTES {
            flags |= codec::format(self.settings.codec) << 5;
            out.extend_from_slice(
                &self.header(flags | if self.is_split { 0 } else { FLAG_ONE_STREAM }, raw.len())?,
            );
            if self.append_blocks(raw, start, out)? {
                let stored = number(out.len() - start)?;
                out[start + 12..start + 16].copy_from_slice(&stored);
                return Ok(());
            }
            out.truncate(start);
        }
        out.extend_from_slice(&self.header(flags | FLAG_STORED, raw.len())?);
        out.extend_from_slice(raw);
        Ok(())
    }

    /// The header of a chunk; initially with the stored length of an uncompressed chunk.
    fn header(&self, flags: u8, raw_bytes: usize) -> Result<[u8; HEADER_BYTES], CodecError> {
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&VERSIONS);
        header[2] = flags;
        header[3] = u8::try_from(self.type_size).unwrap_or(1);
        header[4..8].copy_from_slice(&number(raw_bytes)?);
        header[8..12].copy_from_slice(&number(self.block_bytes.min(raw_bytes))?);
        header[12..16].copy_from_slice(&number(raw_bytes + HEADER_BYTES)?);
        header[16..22].copy_from_slice(&filter_slots(self.settings.shuffle));
        header[22] = codec::number(self.settings.codec);
        Ok(header)
    }

    /// Appends the table of block positions and all blocks; returns whether that saved anything.
    fn append_blocks(&self, raw: &[u8], start: usize, out: &mut Vec<u8>) -> Result<bool, CodecError> {
        let table = out.len();
        let blocks = raw.len().div_ceil(self.block_bytes);
        out.resize(table + 4 * blocks, 0);
        let limit = start + HEADER_BYTES + raw.len();
        let mut at = table;
        let mut note = |out: &mut Vec<u8>, begin: usize| {
            out[at..at + 4].copy_from_slice(&number(begin - start)?);
            at += 4;
            Ok::<_, CodecError>(())
        };
        let threads = rayon::current_num_threads();
        if threads == 1 || blocks == 1 {
            let mut scratch = Scratch::default();
            for block in raw.chunks(self.block_bytes) {
                let begin = out.len();
                note(out, begin)?;
                self.append_block(block, &mut scratch, out);
                if out.len() > limit {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // One round is appended while the next is compressed; each slot keeps its memory between rounds.
        let slots = blocks.min(threads * BLOCKS_PER_THREAD);
        let mut packing: Vec<(Scratch, Vec<u8>)> = (0..slots).map(|_| Default::default()).collect();
        let mut packed: Vec<(Scratch, Vec<u8>)> = (0..slots).map(|_| Default::default()).collect();
        let mut ready = 0;
        let mut rounds = raw.chunks(self.block_bytes * slots);
        loop {
            let round = rounds.next().unwrap_or_default();
            let ordered = rayon::join(
                || {
                    let blocks = round.par_chunks(self.block_bytes);
                    blocks.zip(&mut packing).for_each(|(block, (scratch, streams))| {
                        streams.clear();
                        self.append_block(block, scratch, streams);
                    });
                },
                || {
                    packed[..ready].iter().try_for_each(|(_, streams)| {
                        let begin = out.len();
                        out.extend_from_slice(streams);
                        note(out, begin)
                    })
                },
            );
            ordered.1?;
            if round.is_empty() || out.len() > limit {
                return Ok(out.len() <= limit);
            }
            ready = round.len().div_ceil(self.block_bytes);
            std::mem::swap(&mut packing, &mut packed);
        }
    }

    /// Appends the streams of one block.
    fn append_block(&self, raw: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
        let Scratch { filtered, room } = scratch;
        let block = match self.settings.shuffle {
            Shuffle::Bytes if self.type_size == 1 => raw,
            shuffle => {
                filtered.resize(raw.len(), 0);
                if shuffle == Shuffle::Bytes {
                    filters::shuffle(self.type_size, raw, filtered);
                } else {
                    filters::bitshuffle(self.type_size, raw, filtered);
                }
                filtered
            }
        };
        let streams = if self.is_split && raw.len() == self.block_bytes { self.type_size } else { 1 };
        for stream in block.chunks(block.len() / streams) {
            append_stream(self.settings, stream, room, out);
        }
    }
}

/// Scratch memory of one thread.
#[derive(Default)]
struct Scratch {
    filtered: Vec<u8>,
    room: Vec<u8>,
}

fn append_stream(settings: Blosc2, stream: &[u8], room: &mut Vec<u8>, out: &mut Vec<u8>) {
    if let Some(value) = single_value(stream) {
        out.extend_from_slice(&(-i32::from(value)).to_le_bytes());
        if value != 0 {
            out.push(1);
        }
        return;
    }
    room.resize(stream.len(), 0);
    let packed = match codec::compress(settings.codec, settings.level, stream, room) {
        Some(len) if len < stream.len() => &room[..len],
        _ => stream,
    };
    // A stream is never longer than a block, which is shorter than 2^31 bytes.
    out.extend_from_slice(&i32::try_from(packed.len()).unwrap_or(i32::MAX).to_le_bytes());
    out.extend_from_slice(packed);
}

/// The byte of a stream of one repeated byte.
fn single_value(stream: &[u8]) -> Option<u8> {
    let (&first, rest) = stream.split_first()?;
    // Nearly every other stream differs within a few bytes; the rest is compared at memory speed.
    (stream.len() >= 2 && rest == &stream[..rest.len()]).then_some(first)
}

/// The filters of a chunk, in the order in which they are applied.
pub(super) const fn filter_slots(shuffle: Shuffle) -> [u8; 6] {
    match shuffle {
        Shuffle::Bytes => [0, 0, 0, 0, 0, 1],
        Shuffle::Bits => [2, 0, 0, 0, 0, 0],
    }
}

/// Block size with one stream per byte of the elements.
fn split_block(level: u8, type_size: usize) -> usize {
    let stream = match level {
        ..=3 => 32 << 10,
        4..=6 => 64 << 10,
        7 => 128 << 10,
        8 => 256 << 10,
        9.. => 512 << 10,
    };
    (stream * type_size).clamp(32 << 10, 4 << 20)
}

/// Block size with a single stream.
fn whole_block(inner: Inner, level: u8, raw_bytes: usize) -> usize {
    let cache = 32 << 10;
    if raw_bytes < cache {
        return raw_bytes;
    }
    let is_slow = matches!(inner, Inner::Lz4hc | Inner::Zlib | Inner::Zstd);
    let base = if is_slow { 2 * cache } else { cache };
    match level {
        0 => base / 4,
        1 => base / 2,
        2 => base,
        3 => base * 2,
        4 | 5 => base * 4,
        9.. if is_slow => base * 16,
        6.. => base * 8,
    }
}

/// A size as stored in chunks.
fn number(size: usize) -> Result<[u8; 4], CodecError> {
    let number = i32::try_from(size).map_err(|_| {
        let detail = format!("{size} bytes are too many for a chunk");
        CodecError::Encode { codec: CODEC, detail }
    })?;
    Ok(number.to_le_bytes())
}
