//! Chunk loading and checksum verification for reductions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ByteSource as _, checksum};

use super::job::{Job, reads_parts};
use super::sizes::SHORT_PIECE;
use super::task::{Region, to_usize};
use crate::error::ErrorKind;
use crate::file::ChunkRef;
use crate::wire::ids::Codec;

/// The chunks of a job.
pub(crate) struct Chunks<'a> {
    job: &'a Job<'a>,
    mapped: bool,
    reads_parts: bool,
    /// Whether the regions of all tasks together cover complete chunks.
    partition: bool,
    /// Per chunk of the plan: the combined checksum of the pieces seen so far, and their bytes.
    pieces: OnceLock<Vec<(AtomicU32, AtomicU64)>>,
    /// Buffers that are not in use, the oldest first.
    pool: Mutex<Vec<Buffer>>,
    /// Bytes of decoded chunks in the pool that are kept for further tasks.
    kept_bytes: u64,
}

/// Bytes of a chunk.
pub(crate) enum Held {
    Mapped(Bytes),
    Read(Buffer),
}

/// A buffer with the bytes of a chunk, or a part of them.
pub(crate) struct Buffer {
    words: Vec<u64>,
    /// Number of bytes in use.
    len: usize,
    /// Offset of the first byte in the chunk.
    start: u64,
    /// Number of the complete, checked chunk in the buffer.
    chunk: Option<usize>,
}

impl Held {
    /// Bytes of the chunk from `start` to `end`.
    pub(crate) fn slab(&self, start: u64, end: u64) -> &[u8] {
        match self {
            Self::Mapped(bytes) => &bytes[to_usize(start)..to_usize(end)],
            Self::Read(buffer) => {
                let bytes = &bytemuck::cast_slice(&buffer.words)[..buffer.len];
                &bytes[to_usize(start - buffer.start)..to_usize(end - buffer.start)]
            }
        }
    }
}

/// A checksum computed while bytes are in the cache. Results computed from damaged bytes are never returned: the entire
/// execution fails.
pub(crate) enum Check {
    /// Nothing to check.
    None,
    /// The complete chunk, in order: the expected checksum, and the checksum so far.
    Whole(u32, u32),
    /// Pieces of the chunk: start, end and checksum.
    Pieces(Vec<(u64, u64, u32)>),
}

/// Operators that combine checksums of pieces, kept because the chunks of a batch are cut alike.
#[derive(Debug, Default)]
pub(crate) struct Shifts(Vec<(u64, checksum::Crc32cShift)>);

impl Shifts {
    fn get(&mut self, len: u64) -> checksum::Crc32cShift {
        /// Number of operators kept.
        const MOST: usize = 16;
        if let Some((_, shift)) = self.0.iter().find(|(other, _)| *other == len) {
            return *shift;
        }
        let shift = checksum::Crc32cShift::new(len);
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.push((len, shift));
        shift
    }
}

impl Check {
    /// Whether every byte must be visited.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Updates the checksum with bytes of the chunk at `start`.
    pub(crate) fn look(&mut self, start: u64, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Whole(_, crc) => *crc = checksum::crc32c_append(*crc, bytes),
            Self::Pieces(pieces) => match pieces.last_mut() {
                Some((_, end, crc)) if *end == start => {
                    *crc = checksum::crc32c_append(*crc, bytes);
                    *end += bytes.len() as u64;
                }
                _ => pieces.push((start, start + bytes.len() as u64, checksum::crc32c(bytes))),
            },
        }
    }
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(job: &'a Job<'a>) -> Self {
        let reads_parts = reads_parts(&job.dataset, job.plan);
        let mapped = reads_parts && job.dataset.file.source.is_zero_copy();
        let (pieces, pool) = (OnceLock::new(), Mutex::default());
        Self { job, mapped, reads_parts, partition: false, pieces, pool, kept_bytes: 0 }
    }

    /// Whether chunks are memory-mapped, so that repeated reads cost nothing.
    pub(crate) fn are_mapped(&self) -> bool {
        self.mapped
    }

    /// Whether parts of chunks can be read without reading or decoding more.
    pub(crate) fn reads_parts(&self) -> bool {
        self.reads_parts
    }

    /// Sets whether the regions of all tasks together cover complete chunks.
    pub(crate) fn expect_pieces(&mut self, partition: bool) {
        self.partition = partition;
    }

    /// Sets whether several tasks visit the same chunks, so that decoded ones are worth keeping.
    pub(crate) fn keep_decoded(&mut self, keep: bool) {
        self.kept_bytes = if keep && !self.reads_parts { self.job.budget / 4 } else { 0 };
    }

    /// Loads the bytes of the chunk of a region, with the remaining check.
    pub(crate) fn load(&self, region: &Region) -> Result<(Held, Check), ErrorKind> {
        let (job, dataset) = (self.job, &self.job.dataset);
        let place = &job.plan.chunks[region.chunk].stored;
        let size = job.plan.grid.element().size();
        if place.codec != Codec::Raw {
            return Ok((Held::Read(self.decoded(region.chunk)?), Check::None));
        }
        let is_piece = self.partition && region.is_selected && region.run_bytes(size) >= SHORT_PIECE;
        if dataset.file.source.is_zero_copy() {
            let stored = dataset.file.source.read_at(place.span)?;
            job.count(if region.is_selected { region.bytes(size) } else { place.span.len() });
            let check = match dataset.crc_to_check(place)? {
                None => Check::None,
                Some(expected) if region.is_whole => Check::Whole(expected, 0),
                Some(_) if is_piece => Check::Pieces(Vec::new()),
                Some(expected) => {
                    let tile = &job.plan.chunks[region.chunk].tile[..job.plan.grid.rank()];
                    dataset.check_crc(tile, place, expected, checksum::crc32c(&stored))?;
                    Check::None
                }
            };
            return Ok((Held::Mapped(stored), check));
        }
        let expected = dataset.crc_to_check(place)?;
        if region.is_whole || !self.reads_parts || !(is_piece || expected.is_none()) {
            return Ok((Held::Read(self.decoded(region.chunk)?), Check::None));
        }
        let (start, end) = region.byte_range(size);
        let len = check_limit("a chunk", end - start, dataset.file.options.limits.chunk_bytes)?;
        let mut buffer = self.buffer(None, len)?;
        let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut buffer.words)[..len];
        dataset.file.source.read_into(place.span.start() + start, out)?;
        job.count(end - start);
        buffer.start = start;
        let check = if expected.is_some() { Check::Pieces(Vec::new()) } else { Check::None };
        Ok((Held::Read(buffer), check))
    }

    /// A complete chunk, checked and decoded.
    fn decoded(&self, chunk: usize) -> Result<Buffer, ErrorKind> {
        let (job, dataset) = (self.job, &self.job.dataset);
        let planned = &job.plan.chunks[chunk];
        let place = &planned.stored;
        let len = check_limit("a chunk", place.raw_len, dataset.file.options.limits.chunk_bytes)?;
        let mut buffer = self.buffer(Some(chunk), len)?;
        if buffer.chunk == Some(chunk) {
            return Ok(buffer);
        }
        let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut buffer.words)[..len];
        dataset.load(&planned.tile[..job.plan.grid.rank()], place, out)?;
        job.count(place.span.len());
        buffer.chunk = Some(chunk);
        Ok(buffer)
    }

    /// A buffer of `len` bytes: the one with a chunk, if it is kept, or any other.
    fn buffer(&self, chunk: Option<usize>, len: usize) -> Result<Buffer, ErrorKind> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = chunk.and_then(|_| pool.iter().position(|buffer| buffer.chunk == chunk)) {
            return Ok(pool.remove(found));
        }
        let pooled: usize = pool.iter().map(|buffer| buffer.words.len() * 8).sum();
        // Decoded chunks are kept while they and this one fit.
        let keeps = pooled.saturating_add(len) as u64 <= self.kept_bytes;
        let mut words = if pool.is_empty() || keeps { Vec::new() } else { pool.remove(0).words };
        drop(pool);
        let count = len.div_ceil(8);
        if words.len() < count {
            words = Vec::new();
            words.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes: len })?;
            words.resize(count, 0);
        }
        Ok(Buffer { words, len, start: 0, chunk: None })
    }

    /// Ends a visit: compares checksums and returns buffers to the pool.
    pub(crate) fn end(
        &self,
        chunk: usize,
        held: Held,
        check: Check,
        shifts: &mut Shifts,
    ) -> Result<(), ErrorKind> {
        if let Held::Read(buffer) = held {
            self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
        let planned = &self.job.plan.chunks[chunk];
        let tile = &planned.tile[..self.job.plan.grid.rank()];
        match check {
            Check::None => Ok(()),
            Check::Whole(expected, crc) => self.job.dataset.check_crc(tile, &planned.stored, expected, crc),
            Check::Pieces(pieces) => self.join(chunk, tile, &planned.stored, (&pieces, shifts)),
        }
    }

    /// Combines checksums of pieces with the checksum of the chunk, in any order.
    fn join(
        &self,
        chunk: usize,
        tile: &[u64],
        place: &ChunkRef,
        (pieces, shifts): (&[(u64, u64, u32)], &mut Shifts),
    ) -> Result<(), ErrorKind> {
        let count = self.job.plan.chunks.len();
        let all = self.pieces.get_or_init(|| (0..count).map(|_| Default::default()).collect());
        let Some((joined, seen)) = all.get(chunk) else { return Ok(()) };
        let mut bytes = 0;
        for &(start, end, crc) in pieces {
            joined.fetch_xor(shifts.get(place.raw_len - end).apply(crc), Ordering::Relaxed);
            bytes += end - start;
        }
        // The thread that completes the chunk sees the checksums of all pieces.
        if seen.fetch_add(bytes, Ordering::AcqRel) + bytes < place.raw_len {
            return Ok(());
        }
        let Some(expected) = self.job.dataset.crc_to_check(place)? else { return Ok(()) };
        self.job.dataset.check_crc(tile, place, expected, joined.load(Ordering::Relaxed))
    }

    /// Checks the chunks of which only some pieces were visited.
    pub(crate) fn finish(&self) -> Result<(), ErrorKind> {
        let Some(pieces) = self.pieces.get() else { return Ok(()) };
        for ((_, seen), chunk) in pieces.iter().zip(&self.job.plan.chunks) {
            let place = &chunk.stored;
            if (1..place.raw_len).contains(&seen.load(Ordering::Acquire))
                && let Some(expected) = self.job.dataset.crc_to_check(place)?
            {
                let stored = self.job.dataset.file.source.read_at(place.span)?;
                let tile = &chunk.tile[..self.job.plan.grid.rank()];
                self.job.dataset.check_crc(tile, place, expected, checksum::crc32c(&stored))?;
            }
        }
        Ok(())
    }
}

/// Bytes of a chunk that is split into pieces, and of such a piece.
const LARGE_CHUNK: u64 = if cfg!(test) { 128 } else { 8 << 20 };
const PIECE: u64 = if cfg!(test) { 64 } else { 4 << 20 };

/// Splits the region of a large chunk so that several threads can process it.
pub(crate) fn divide(region: Region, size: usize, steps: &[u64], regions: &mut Vec<Region>) {
    if region.bytes(size) <= LARGE_CHUNK {
        regions.push(region);
        return;
    }
    let Some((axis, below)) = region.outermost(size).filter(|&(axis, _)| steps[axis] == 1) else {
        regions.push(region);
        return;
    };
    let each = to_usize((PIECE / below.max(1)).max(1)) as u64;
    for part in region.parts(axis, each) {
        divide(part, size, steps, regions);
    }
}
