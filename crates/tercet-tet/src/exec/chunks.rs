//! Chunk loading and checksum verification.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rayon::prelude::*;
use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ByteSource as _, Span, checksum};

use super::job::{Scope, reads_part, reads_parts};
use super::sizes::{READ, SHORT_PIECE};
use super::task::{Region, to_usize};
use crate::error::ErrorKind;
use crate::file::ChunkRef;
use crate::integrity::CrcRun;
use crate::plan::PlannedChunk;
use crate::wire::ids::{Codec, MAX_RANK};

/// The chunks of a scope.
pub(crate) struct Chunks<'a> {
    scope: Scope<'a>,
    /// Whether the regions of all tasks together cover complete chunks.
    partition: bool,
    /// Chunks of which some pieces were visited, by the number of their row.
    pieces: Mutex<HashMap<u64, Joined>>,
    pool: Mutex<Pool>,
    /// Signals that a chunk of the pool was loaded, or could not be.
    loaded: Condvar,
    /// Bytes of decoded chunks that are kept for further tasks. Zero if each chunk is used by one task only.
    kept: u64,
    /// Whether parts of all chunks of a plan can be read without reading or decoding more.
    reads_parts: bool,
}

/// Pieces of a chunk that were visited so far.
struct Joined {
    coords: [u64; MAX_RANK],
    stored: ChunkRef,
    /// Combined checksum, and number of bytes.
    crc: u32,
    bytes: u64,
}

/// Memory of decoded chunks.
#[derive(Default)]
struct Pool {
    /// Buffers that are not in use.
    free: Vec<Buffer>,
    /// Complete, checked chunks for several tasks, the least recently used first.
    shared: Vec<Shared>,
}

/// A chunk that several tasks use.
struct Shared {
    /// Row of the chunk.
    row: u64,
    /// `None` while a thread loads it.
    chunk: Option<Arc<Buffer>>,
    len: usize,
}

/// Bytes of a chunk.
pub(crate) enum ChunkBytes {
    Mapped(Bytes),
    Read(Buffer),
    Shared(Arc<Buffer>),
}

/// A buffer with the bytes of a chunk, or a part of them.
pub(crate) struct Buffer {
    words: Vec<u64>,
    /// Number of bytes in use.
    len: usize,
    /// Offset of the first byte in the chunk.
    start: u64,
}

impl Buffer {
    /// A buffer of `len` bytes in memory that is not in use, or in new memory if that is too small.
    fn new(mut words: Vec<u64>, len: usize) -> Result<Self, ErrorKind> {
        let count = len.div_ceil(8);
        if words.len() < count {
            words = Vec::new();
            words.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes: len })?;
            words.resize(count, 0);
        }
        Ok(Self { words, len, start: 0 })
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

impl ChunkBytes {
    /// Bytes of the chunk from `start` to `end`.
    pub(crate) fn slab(&self, start: u64, end: u64) -> &[u8] {
        let buffer = match self {
            Self::Mapped(bytes) => return &bytes[to_usize(start)..to_usize(end)],
            Self::Read(buffer) => buffer,
            Self::Shared(buffer) => buffer,
        };
        &buffer.bytes()[to_usize(start - buffer.start)..to_usize(end - buffer.start)]
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
        const MAX_SHIFTS: usize = 16;
        if let Some((_, shift)) = self.0.iter().find(|(other, _)| *other == len) {
            return *shift;
        }
        let shift = checksum::Crc32cShift::new(len);
        if self.0.len() == MAX_SHIFTS {
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
    pub(crate) fn new(scope: Scope<'a>) -> Self {
        let reads_parts = scope.planned.is_some_and(|chunks| reads_parts(&scope.dataset, chunks));
        let (pieces, pool, loaded) = (Mutex::default(), Mutex::default(), Condvar::new());
        Self { scope, partition: false, pieces, pool, loaded, kept: 0, reads_parts }
    }

    /// Whether a chunk is memory-mapped, so that repeated reads cost nothing.
    pub(crate) fn is_mapped(&self, chunk: &ChunkRef) -> bool {
        chunk.codec == Codec::Raw && self.scope.dataset.file.source.is_zero_copy()
    }

    /// Whether all chunks of a plan are memory-mapped.
    pub(crate) fn are_mapped(&self) -> bool {
        self.scope.planned.is_some_and(|planned| planned.iter().all(|chunk| self.is_mapped(&chunk.stored)))
    }

    /// Whether parts of all chunks of a plan can be read without reading or decoding more.
    pub(crate) fn reads_parts(&self) -> bool {
        self.reads_parts
    }

    /// Sets the bytes of decoded chunks that are kept because several tasks visit them.
    pub(crate) fn keep_decoded(&mut self, bytes: u64) {
        self.kept = bytes;
    }

    /// Whether chunks are never decoded again, because all of them are kept.
    pub(crate) fn keeps(&self, bytes: u64, count: usize) -> bool {
        bytes <= self.kept && count <= MAX_KEPT
    }

    /// Sets whether the regions of all tasks together cover complete chunks.
    pub(crate) fn expect_pieces(&mut self, partition: bool) {
        self.partition = partition;
    }

    /// Loads the bytes of the chunk of a region, with the remaining check. The bytes of a `shared` chunk are checked
    /// here: several threads visit parts of it.
    pub(crate) fn load(&self, region: &Region, shared: bool) -> Result<(ChunkBytes, Check), ErrorKind> {
        let (scope, dataset) = (&self.scope, &self.scope.dataset);
        let chunk_ref = &region.stored;
        let coords = &region.coords[..scope.grid.rank()];
        if !self.is_mapped(chunk_ref) {
            return self.read(region, shared);
        }
        let stored = dataset.file.source.read_at(chunk_ref.span)?;
        self.count(region);
        let check = match dataset.crc_to_check(chunk_ref)? {
            None => Check::None,
            Some(expected) if region.is_whole && !shared => Check::Whole(expected, 0),
            Some(_) if !shared && self.is_joined(region) => Check::Pieces(Vec::new()),
            Some(expected) => {
                dataset.check_crc(coords, chunk_ref, expected, self.crc_of(&stored))?;
                Check::None
            }
        };
        Ok((ChunkBytes::Mapped(stored), check))
    }

    /// Whether a chunk is read slab by slab, because its values are used once and in their order.
    pub(crate) fn streams(&self, region: &Region) -> bool {
        let source = &self.scope.dataset.file.source;
        let is_local = !source.is_zero_copy() && !source.is_remote();
        region.is_whole && self.kept == 0 && region.stored.codec == Codec::Raw && is_local
    }

    /// A buffer for the slabs of a chunk of at most `most` bytes each, and the check of the chunk.
    pub(crate) fn open_stream(&self, region: &Region, most: u64) -> Result<(Buffer, Check), ErrorKind> {
        let dataset = &self.scope.dataset;
        let stored = &region.stored;
        check_limit("a chunk", stored.raw_len, dataset.file.options.limits.chunk_bytes)?;
        let check = dataset.crc_to_check(stored)?.map_or(Check::None, |expected| Check::Whole(expected, 0));
        let element = self.scope.grid.element().size() as u64;
        let mut buffer = self.buffer(to_usize(most.max(element).max(READ).min(stored.raw_len)))?;
        buffer.len = 0;
        self.scope.count(stored, stored.span.len(), stored.raw_len);
        Ok((buffer, check))
    }

    /// The next slab of a chunk, in the order of its bytes. Many slabs are read at once.
    pub(crate) fn next_slab<'b>(
        &self,
        region: &Region,
        (start, end): (u64, u64),
        buffer: &'b mut Buffer,
    ) -> Result<&'b [u8], ErrorKind> {
        let read_to = buffer.start + buffer.len as u64;
        if end > read_to {
            // The bytes of the slab that were read with those before it.
            let kept = to_usize(start - buffer.start)..buffer.len;
            let held = kept.len();
            let words = bytemuck::cast_slice_mut::<u64, u8>(&mut buffer.words);
            words.copy_within(kept, 0);
            let most = READ.max(end - start).min(words.len() as u64).min(region.stored.raw_len - start);
            let out = &mut words[held..to_usize(most)];
            self.scope.dataset.file.source.read_into(region.stored.span.start() + read_to, out)?;
            (buffer.start, buffer.len) = (start, to_usize(most));
        }
        Ok(&buffer.bytes()[to_usize(start - buffer.start)..to_usize(end - buffer.start)])
    }

    /// Reads raw chunks that are stored one after the other, and checks them: slabs of at most `most` bytes, which do not
    /// begin and end with chunks.
    pub(crate) fn span(
        &self,
        chunks: &[PlannedChunk],
        most: u64,
        mut visit: impl FnMut(&[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { return Ok(()) };
        let (start, end) = (first.stored.span.start(), last.stored.span.end());
        let (dataset, grid) = (&self.scope.dataset, self.scope.grid);
        let source = &dataset.file.source;
        let mapped = match Span::between(start, end) {
            Some(span) if source.is_zero_copy() => Some(source.read_at(span)?),
            _ => None,
        };
        let read = to_usize((READ / most).max(1) * most);
        let mut buffer = self.buffer(if mapped.is_some() { 0 } else { read.min(to_usize(end - start)) })?;
        let (mut rest, mut crcs) = (chunks.iter(), CrcRun::default());
        let mut open: Option<(&PlannedChunk, Option<u32>, u32)> = None;
        for at in (start..end).step_by(to_usize(most)) {
            let to = (at + most).min(end);
            let bytes = if let Some(mapped) = &mapped {
                &mapped[to_usize(at - start)..to_usize(to - start)]
            } else {
                let from = to_usize(at - start) % read;
                if from == 0 {
                    let len = read.min(to_usize(end - at));
                    source.read_into(at, &mut buffer.bytes_mut()[..len])?;
                }
                &buffer.bytes()[from..from + to_usize(to - at)]
            };
            let mut from = at;
            while from < to {
                let (chunk, expected, crc) = match open.take() {
                    Some(open) => open,
                    None => match rest.next() {
                        Some(chunk) => (chunk, dataset.next_crc_to_check(&chunk.stored, &mut crcs)?, 0),
                        None => break,
                    },
                };
                let until = chunk.stored.span.end().min(to);
                let part = &bytes[to_usize(from - at)..to_usize(until - at)];
                let crc = if expected.is_some() { checksum::crc32c_append(crc, part) } else { 0 };
                from = until;
                if until < chunk.stored.span.end() {
                    open = Some((chunk, expected, crc));
                } else if let Some(expected) = expected {
                    let coords = &grid.coords(chunk.number)[..grid.rank()];
                    dataset.check_crc(coords, &chunk.stored, expected, crc)?;
                }
            }
            visit(bytes)?;
        }
        self.release(ChunkBytes::Read(buffer));
        self.scope.count_span(chunks, end - start);
        Ok(())
    }

    /// Reads the chunk of a region, or only the region if its checksum can be joined with those of the others.
    fn read(&self, region: &Region, shared: bool) -> Result<(ChunkBytes, Check), ErrorKind> {
        let (scope, dataset) = (&self.scope, &self.scope.dataset);
        let chunk_ref = &region.stored;
        let limit = dataset.file.options.limits.chunk_bytes;
        let is_checked = dataset.crc_to_check(chunk_ref)?.is_some();
        let whole = region.is_whole || shared || !reads_part(dataset, chunk_ref);
        if whole || (is_checked && !self.is_joined(region)) {
            let len = check_limit("a chunk", chunk_ref.raw_len, limit)?;
            if self.kept > 0 {
                return Ok((ChunkBytes::Shared(self.shared(region, len)?), Check::None));
            }
            let mut buffer = self.buffer(len)?;
            self.load_into(region, buffer.bytes_mut())?;
            return Ok((ChunkBytes::Read(buffer), Check::None));
        }
        let (start, end) = region.byte_range(scope.grid.element().size());
        let len = check_limit("a chunk", end - start, limit)?;
        let mut buffer = self.buffer(len)?;
        let out = buffer.bytes_mut();
        let size = scope.grid.element().size();
        // Runs with unselected bytes between them are read one by one.
        if region.bytes(size) <= (end - start) / 8 * 7 {
            for (from, to) in region.runs(size) {
                let out = &mut out[to_usize(from - start)..to_usize(to - start)];
                dataset.file.source.read_into(chunk_ref.span.start() + from, out)?;
            }
        } else {
            dataset.file.source.read_into(chunk_ref.span.start() + start, out)?;
        }
        self.count(region);
        buffer.start = start;
        Ok((ChunkBytes::Read(buffer), if is_checked { Check::Pieces(Vec::new()) } else { Check::None }))
    }

    /// Bytes that are held for a region: its own, or those of the complete chunk if that is read or checked at once.
    pub(crate) fn held_bytes(&self, region: &Region) -> u64 {
        let size = self.scope.grid.element().size();
        let is_unchecked = || matches!(self.scope.dataset.crc_to_check(&region.stored), Ok(None));
        if self.reads_parts && (self.is_joined(region) || is_unchecked()) {
            region.span_bytes(size)
        } else {
            region.chunk_bytes(size)
        }
    }

    /// Counts the bytes of a region. Of a chunk with unselected bytes, one region counts them all.
    fn count(&self, region: &Region) {
        let bytes = region.bytes(self.scope.grid.element().size());
        let bytes = if region.is_selected { bytes } else { region.stored.raw_len };
        if region.is_selected || region.is_first {
            self.scope.count(&region.stored, bytes, bytes);
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `len` bytes.
    fn buffer(&self, len: usize) -> Result<Buffer, ErrorKind> {
        let free = self.pool().free.pop();
        Buffer::new(free.map(|buffer| buffer.words).unwrap_or_default(), len)
    }

    /// The complete chunk of a region, loaded by the first thread that needs it; the others wait for it.
    ///
    /// A thread that loads a chunk neither waits for another chunk nor runs other tasks of the thread pool, so every
    /// wait ends.
    fn shared(&self, region: &Region, len: usize) -> Result<Arc<Buffer>, ErrorKind> {
        let row = region.stored.row;
        let mut pool = self.pool();
        while let Some(found) = pool.shared.iter().position(|shared| shared.row == row) {
            if let Some(chunk) = pool.shared[found].chunk.clone() {
                let used = pool.shared.remove(found);
                pool.shared.push(used);
                return Ok(chunk);
            }
            pool = self.loaded.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        let words = pool.evict(len, self.kept);
        pool.shared.push(Shared { row, chunk: None, len });
        drop(pool);
        let loading = Loading { chunks: self, row };
        let mut buffer = Buffer::new(words, len)?;
        self.load_into(region, buffer.bytes_mut())?;
        let chunk = Arc::new(buffer);
        if let Some(shared) = self.pool().shared.iter_mut().find(|shared| shared.row == row) {
            shared.chunk = Some(Arc::clone(&chunk));
        }
        drop(loading);
        Ok(chunk)
    }

    /// Whether the checksum of a region is joined with those of other regions of its chunk.
    pub(crate) fn is_joined(&self, region: &Region) -> bool {
        // Many short pieces cost more than a look at the complete chunk, but less than reading it for each of them.
        let run = region.run_bytes(self.scope.grid.element().size());
        let is_long = run >= SHORT_PIECE || (self.reads_parts && !self.is_mapped(&region.stored));
        self.partition && region.is_selected && is_long
    }

    /// Checksum of a complete chunk, computed by several threads if it is large.
    fn crc_of(&self, stored: &[u8]) -> u32 {
        if self.scope.threads() == 1 || stored.len() as u64 <= LARGE_CHUNK {
            return checksum::crc32c(stored);
        }
        let pieces = stored.par_chunks(to_usize(PIECE)).map(|piece| (checksum::crc32c(piece), piece.len()));
        let pieces: Vec<(u32, usize)> = pieces.collect();
        pieces.iter().fold(0, |crc, &(next, len)| checksum::crc32c_combine(crc, next, len as u64))
    }

    /// Loads a complete chunk into a buffer of its length.
    pub(crate) fn load_into(&self, region: &Region, out: &mut [u8]) -> Result<(), ErrorKind> {
        let (scope, stored) = (&self.scope, &region.stored);
        scope.dataset.load(&region.coords[..scope.grid.rank()], stored, out)?;
        scope.count(stored, stored.span.len(), stored.raw_len);
        if stored.codec != Codec::Raw {
            scope.count_decoded(stored.raw_len);
        }
        Ok(())
    }

    /// Ends a visit: compares checksums and returns buffers to the pool.
    pub(crate) fn end(
        &self,
        region: &Region,
        held: ChunkBytes,
        check: Check,
        shifts: &mut Shifts,
    ) -> Result<(), ErrorKind> {
        self.release(held);
        match check {
            Check::None => Ok(()),
            Check::Whole(expected, crc) => {
                let coords = &region.coords[..self.scope.grid.rank()];
                self.scope.dataset.check_crc(coords, &region.stored, expected, crc)
            }
            Check::Pieces(pieces) => self.join(region, &pieces, shifts),
        }
    }

    /// Returns a buffer to the pool.
    pub(crate) fn release(&self, held: ChunkBytes) {
        if let ChunkBytes::Read(buffer) = held {
            self.pool().free.push(buffer);
        }
    }

    /// Combines checksums of pieces with the checksum of the chunk, in any order.
    fn join(
        &self,
        region: &Region,
        pieces: &[(u64, u64, u32)],
        shifts: &mut Shifts,
    ) -> Result<(), ErrorKind> {
        let Region { coords, stored, .. } = *region;
        let (mut crc, mut bytes) = (0, 0);
        for &(start, end, piece) in pieces {
            crc ^= shifts.get(stored.raw_len - end).apply(piece);
            bytes += end - start;
        }
        let joined = {
            let mut all = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            let joined = all.entry(stored.row).or_insert(Joined { coords, stored, crc: 0, bytes: 0 });
            joined.crc ^= crc;
            joined.bytes += bytes;
            if joined.bytes < stored.raw_len {
                return Ok(());
            }
            all.remove(&stored.row)
        };
        joined.map_or(Ok(()), |joined| self.compare(&joined, |joined| Ok(joined.crc)))
    }

    /// Compares the checksum of a chunk, unless it was verified before.
    fn compare(
        &self,
        joined: &Joined,
        crc: impl Fn(&Joined) -> Result<u32, ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let dataset = &self.scope.dataset;
        let Some(expected) = dataset.crc_to_check(&joined.stored)? else { return Ok(()) };
        let coords = &joined.coords[..self.scope.grid.rank()];
        dataset.check_crc(coords, &joined.stored, expected, crc(joined)?)
    }

    /// Checks the chunks of which only some pieces were visited.
    pub(crate) fn finish(&self) -> Result<(), ErrorKind> {
        let source = &self.scope.dataset.file.source;
        let all = std::mem::take(&mut *self.pieces.lock().unwrap_or_else(PoisonError::into_inner));
        let whole = |joined: &Joined| Ok(checksum::crc32c(&source.read_at(joined.stored.span)?));
        all.values().try_for_each(|joined| self.compare(joined, whole))
    }
}

impl Pool {
    /// Removes the least recently used chunks that are not in use, until those of `kept` bytes in all remain with a new
    /// one of `len` bytes. Returns memory for it.
    fn evict(&mut self, len: usize, kept: u64) -> Vec<u64> {
        let mut bytes: usize = len + self.shared.iter().map(|shared| shared.len).sum::<usize>();
        let mut words = Vec::new();
        let mut at = 0;
        // Many small chunks would take longer to find than to decode.
        while bytes as u64 > kept || self.shared.len() >= MAX_KEPT {
            let Some(shared) = self.shared.get_mut(at) else { break };
            // Threads that use a chunk, or load it, hold it in any case.
            let Some(buffer) = shared.chunk.take_if(|chunk| Arc::strong_count(chunk) == 1) else {
                at += 1;
                continue;
            };
            bytes -= self.shared.remove(at).len;
            words = Arc::into_inner(buffer).map(|buffer| buffer.words).unwrap_or(words);
        }
        words
    }
}

/// A chunk that is being loaded. Threads that wait for it are woken up at the end, also after an error.
struct Loading<'c, 'a> {
    chunks: &'c Chunks<'a>,
    row: u64,
}

impl Drop for Loading<'_, '_> {
    fn drop(&mut self) {
        self.chunks.pool().shared.retain(|shared| shared.row != self.row || shared.chunk.is_some());
        self.chunks.loaded.notify_all();
    }
}

/// Number of decoded chunks that are kept.
const MAX_KEPT: usize = if cfg!(test) { 3 } else { 256 };

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
