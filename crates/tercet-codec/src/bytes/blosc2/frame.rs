//! Frame encoder and decoder.
//!
//! The header is `MessagePack` of a fixed shape, so every field has a fixed position:
//!
//! ```text
//!  0  14 fields, "b2frame\0"          38  i64 stored bytes of all chunks
//! 10  i32 header bytes                47  i32 element bytes
//! 15  u64 frame bytes                 52  i32 block bytes
//! 24  4 flags: format, kind, codec    57  i32 raw bytes of a chunk, except the last
//!     and level, way of splitting     62  2 × i16 threads, bool, filters and codec, metadata
//! 29  i64 raw bytes
//! ```
//!
//! All numbers of the header are big-endian, each after its type byte.

use rayon::prelude::*;

use super::chunk::{Chunk, HEADER_BYTES as CHUNK_HEADER_BYTES, zeros};
use super::pack::{Plan, filter_slots};
use super::{Blosc2, CODEC, codec, failed};
use crate::CodecError;

const MAGIC: [u8; 10] = *b"\x9e\xa8b2frame\0";

/// The header without metadata.
const HEADER_BYTES: usize = 97;

/// Minimum header: all fields up to the metadata.
const MIN_HEADER_BYTES: usize = 87;

/// `MessagePack` types in the header, and their positions.
const KINDS: [(usize, u8); 8] =
    [(10, 0xd2), (15, 0xcf), (24, 0xa4), (29, 0xd3), (38, 0xd3), (47, 0xd2), (52, 0xd2), (57, 0xd2)];

/// No metadata, 35 bytes, no fingerprint.
const TRAILER: [u8; 35] = *b"\x94\x01\x93\xcd\x00\x06\xde\x00\x00\xdc\x00\x00\xce\x00\x00\x00\x23\xd8\x00\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A frame with a validated header.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    chunks: &'a [u8],
    offsets: &'a [u8],
    pub(super) raw_bytes: u64,
    chunk_bytes: u64,
    type_size: u64,
}

impl<'a> Frame<'a> {
    pub(super) fn open(stored: &'a [u8]) -> Result<Self, CodecError> {
        if stored.len() < MIN_HEADER_BYTES || !stored.starts_with(&MAGIC) {
            return Err(failed("not a Blosc2 frame"));
        }
        if let Some((at, _)) = KINDS.into_iter().find(|&(at, kind)| stored[at] != kind) {
            return Err(failed(format!("byte {at} of the header is {:#04x}", stored[at])));
        }
        if stored[26] != 0 {
            return Err(failed("a frame of several files"));
        }
        let (header_bytes, frame_bytes) = (field::<4>(stored, 11)?, field::<8>(stored, 16)?);
        if frame_bytes != stored.len() as u64 {
            return Err(failed(format!("a frame of {frame_bytes} bytes in {}", stored.len())));
        }
        let (raw_bytes, stored_bytes) = (field::<8>(stored, 30)?, field::<8>(stored, 39)?);
        let (type_size, chunk_bytes) = (field::<4>(stored, 48)?, field::<4>(stored, 58)?);
        if raw_bytes > 0 && chunk_bytes == 0 {
            return Err(failed("chunks of varying length"));
        }
        let bodies = usize::try_from(header_bytes).ok().filter(|&start| start >= MIN_HEADER_BYTES);
        let (chunks, offsets) = bodies
            .and_then(|start| stored.get(start..))
            .and_then(|rest| rest.split_at_checked(usize::try_from(stored_bytes).ok()?))
            .ok_or_else(|| {
                failed(format!("{stored_bytes} bytes of chunks after a header of {header_bytes} bytes"))
            })?;
        Ok(Self { chunks, offsets, raw_bytes, chunk_bytes, type_size })
    }

    /// Reads the raw bytes from `first` on, which are inside the frame.
    pub(super) fn read(&self, first: u64, raw: &mut [u8]) -> Result<(), CodecError> {
        if raw.is_empty() {
            return Ok(());
        }
        let offsets = Chunk::open(self.offsets)?;
        let chunks = self.raw_bytes.div_ceil(self.chunk_bytes);
        if chunks.checked_mul(8) != Some(offsets.raw_bytes as u64) {
            return Err(failed(format!("{} bytes of offsets for {chunks} chunks", offsets.raw_bytes)));
        }
        // Below 2^31: chunks have 32-bit sizes.
        let chunk_bytes = usize::try_from(self.chunk_bytes).map_err(|_| failed("chunk too large"))?;
        if chunks > 1 && chunk_bytes < size_of::<u64>() {
            return Err(failed(format!("chunks of {chunk_bytes} bytes")));
        }
        let skip = usize::try_from(first % self.chunk_bytes).unwrap_or(0);
        let first_chunk = first / self.chunk_bytes;
        // At once, because each read decodes a block of them; a chunk has at least as many bytes as its offset.
        let position = usize::try_from(first_chunk * 8).map_err(|_| failed("too many chunks"))?;
        let mut needed = zeros((skip + raw.len()).div_ceil(chunk_bytes) * 8)?;
        offsets.read(position, &mut needed)?;
        let (needed, _) = needed.as_chunks();
        let Some((head_offset, rest_offsets)) = needed.split_first() else { return Ok(()) };

        let (head, rest) = raw.split_at_mut(raw.len().min(chunk_bytes - skip));
        self.read_chunk(*head_offset, first_chunk, skip, head)?;
        rest.par_chunks_mut(chunk_bytes).zip(rest_offsets).enumerate().try_for_each(|(at, (part, offset))| {
            self.read_chunk(*offset, first_chunk + 1 + at as u64, 0, part)
        })
    }

    /// Reads the raw bytes of one chunk from `skip` on.
    fn read_chunk(&self, offset: [u8; 8], at: u64, skip: usize, raw: &mut [u8]) -> Result<(), CodecError> {
        let offset = i64::from_le_bytes(offset);
        let expected = self.chunk_bytes.min(self.raw_bytes - at * self.chunk_bytes);
        let chunk = if let Ok(offset) = usize::try_from(offset) {
            Chunk::open(self.chunks.get(offset..).unwrap_or_default())?
        } else {
            // The highest byte is the kind of special chunk, all other bytes are zero.
            let kind = offset.to_be_bytes()[0] & 7;
            let sizes = usize::try_from(expected).ok().zip(usize::try_from(self.type_size).ok());
            let (len, type_size) = sizes.ok_or_else(|| failed("chunk too large"))?;
            Chunk::special(kind, len, type_size)?
        };
        if chunk.raw_bytes as u64 != expected {
            return Err(failed(format!("chunk {at} has {} bytes instead of {expected}", chunk.raw_bytes)));
        }
        chunk.read(skip, raw)
    }
}

/// The number in the `N` bytes from `at` on, which must not be negative.
fn field<const N: usize>(stored: &[u8], at: usize) -> Result<u64, CodecError> {
    let bytes = stored
        .get(at..)
        .and_then(|bytes| bytes.first_chunk::<N>())
        .ok_or_else(|| failed("truncated header"))?;
    if bytes[0] >= 0x80 {
        return Err(failed(format!("a negative number at byte {at} of the header")));
    }
    Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Appends a frame of `raw`, in chunks of at most `chunk_bytes`.
pub(super) fn append(
    raw: &[u8],
    settings: Blosc2,
    chunk_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let too_many = || CodecError::Encode { codec: CODEC, detail: "too many chunks".to_owned() };
    let type_size = settings.type_size as usize;
    let chunk_bytes =
        if chunk_bytes > type_size { chunk_bytes - chunk_bytes % type_size } else { chunk_bytes };
    let chunk_bytes = chunk_bytes.min(raw.len());
    let plan = Plan::new(settings, chunk_bytes);
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);

    let mut offsets = Vec::new();
    for part in raw.chunks(chunk_bytes) {
        offsets.extend_from_slice(&((out.len() - start - HEADER_BYTES) as u64).to_le_bytes());
        // A shorter last chunk may need other block sizes.
        let plan = if part.len() == chunk_bytes { plan } else { Plan::new(settings, part.len()) };
        plan.append(part, out)?;
    }
    let stored_bytes = out.len() - start - HEADER_BYTES;

    let size = i32::try_from(offsets.len()).map_err(|_| too_many())?;
    let whole = size.checked_add(32).ok_or_else(too_many)?;
    let mut header = [0; CHUNK_HEADER_BYTES];
    header[..4].copy_from_slice(&[5, 1, 7, 8]);
    header[4..8].copy_from_slice(&size.to_le_bytes());
    header[8..12].copy_from_slice(&size.to_le_bytes());
    header[12..16].copy_from_slice(&whole.to_le_bytes());
    header[21] = 1;
    out.extend_from_slice(&header);
    out.extend_from_slice(&offsets);
    out.extend_from_slice(&TRAILER);

    let frame_bytes = out.len() - start;
    let sizes = [raw.len() as u64, stored_bytes as u64, frame_bytes as u64];
    out[start..start + HEADER_BYTES].copy_from_slice(&frame_header(
        settings,
        sizes,
        plan.block_bytes,
        chunk_bytes,
    )?);
    Ok(())
}

fn frame_header(
    settings: Blosc2,
    [raw, stored, frame]: [u64; 3],
    block_bytes: usize,
    chunk_bytes: usize,
) -> Result<[u8; HEADER_BYTES], CodecError> {
    let four = |size: usize| {
        let detail = || CodecError::Encode { codec: CODEC, detail: format!("{size} bytes are too many") };
        Ok::<_, CodecError>(i32::try_from(size).map_err(|_| detail())?.to_be_bytes())
    };
    let mut header = [0; HEADER_BYTES];
    header[..10].copy_from_slice(&MAGIC);
    for (at, kind) in KINDS {
        header[at] = kind;
    }
    header[11..15].copy_from_slice(&four(HEADER_BYTES)?);
    header[16..24].copy_from_slice(&frame.to_be_bytes());
    // Format 2 with 64-bit offsets; contiguous; blocks are split in the forward-compatible mode.
    header[25..29].copy_from_slice(&[0x12, 0, settings.level << 4 | codec::number(settings.codec), 3]);
    header[30..38].copy_from_slice(&raw.to_be_bytes());
    header[39..47].copy_from_slice(&stored.to_be_bytes());
    header[48..52].copy_from_slice(&four(settings.type_size as usize)?);
    header[53..57].copy_from_slice(&four(block_bytes)?);
    header[58..62].copy_from_slice(&four(chunk_bytes)?);
    // The numbers of threads are constants: bytes must not depend on them.
    header[62..71].copy_from_slice(&[0xd1, 0, 0, 0xd1, 0, 1, 0xc2, 0xd8, 6]);
    header[71..77].copy_from_slice(&filter_slots(settings.shuffle));
    header[77] = codec::number(settings.codec);
    // No metadata.
    header[87..].copy_from_slice(b"\x93\xcd\x00\x07\xde\x00\x00\xdc\x00\x00");
    Ok(header)
}
