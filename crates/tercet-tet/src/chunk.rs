//! [`Chunk`]: reads, checks and decodes one chunk.

use bytes::Bytes;
use tercet_codec::bytes::zstd;
use tercet_core::checksum::{self, Mismatch};
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, DType, Element, Shape, TensorView};

use crate::error::{ChunkError, Error, ErrorKind};
use crate::file::{ChunkRef, Dataset};
use crate::integrity::CrcRun;
use crate::wire::ids::Codec;

/// A decoded chunk.
#[derive(Clone, Debug)]
pub struct Chunk {
    dtype: DType,
    shape: Shape,
    bytes: Bytes,
}

impl Chunk {
    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape, clipped at the edge of the array.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes: row-major, little-endian. A raw chunk of a memory-mapped file is not copied.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The elements without a copy; `None` for another type, an unaligned chunk or a big-endian host.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.dtype || cfg!(target_endian = "big") {
            return None;
        }
        bytemuck::try_cast_slice(&self.bytes).ok()
    }

    /// A copy of the elements; `None` for another type.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        self.view()?.to_vec()
    }

    /// The chunk as a tensor view, under the conditions of [`as_slice`](Self::as_slice).
    pub fn view(&self) -> Option<TensorView<'_>> {
        TensorView::new(self.dtype, &self.shape, &self.bytes).ok()
    }
}

impl Dataset<'_> {
    /// Reads the chunk at grid coordinates, checked and decoded. Raw chunks of a memory-mapped file are not copied.
    pub fn chunk(&self, coords: &[u64]) -> Result<Chunk, Error> {
        let chunk = || {
            let grid = self.checked_grid()?;
            let chunk_ref = self.find_chunk(coords)?;
            let stored = self.fetch(coords, &chunk_ref)?;
            let bytes = match chunk_ref.codec {
                Codec::Raw => stored,
                Codec::Zstd => {
                    let mut raw = self.room(&chunk_ref)?;
                    self.decode(coords, &chunk_ref, &stored, &mut raw)?;
                    raw.into()
                }
            };
            Ok(Chunk { dtype: grid.dtype(), shape: Shape::new(grid.chunk_shape_at(coords)), bytes })
        };
        chunk().map_err(|fault| self.file.error(fault))
    }

    /// The Zstandard frames of a chunk, checked against their checksum; `None` for a chunk that is not compressed.
    pub fn stored_zstd(&self, coords: &[u64]) -> Result<Option<Bytes>, Error> {
        let frames = || {
            let chunk_ref = self.find_chunk(coords)?;
            match chunk_ref.codec {
                Codec::Raw => Ok(None),
                Codec::Zstd => self.fetch(coords, &chunk_ref).map(Some),
            }
        };
        frames().map_err(|fault| self.file.error(fault))
    }

    /// The stored bytes of a chunk, checked against their checksum.
    pub(crate) fn fetch(&self, coords: &[u64], chunk_ref: &ChunkRef) -> Result<Bytes, ErrorKind> {
        check_limit("a stored chunk", chunk_ref.span.len(), self.file.options.limits.chunk_bytes)?;
        let stored = self.file.source.read_at(chunk_ref.span)?;
        if let Some(expected) = self.crc_to_check(chunk_ref)? {
            self.check_crc(coords, chunk_ref, expected, checksum::crc32c(&stored))?;
        }
        Ok(stored)
    }

    /// Allocates memory for a decoded chunk, within the limits.
    pub(crate) fn room(&self, chunk_ref: &ChunkRef) -> Result<Vec<u8>, ErrorKind> {
        let len = check_limit("a chunk", chunk_ref.raw_len, self.file.options.limits.chunk_bytes)?;
        let mut room = Vec::new();
        let failed = |_| tercet_core::tensor::OutOfMemory { bytes: len };
        room.try_reserve_exact(len).map_err(failed)?;
        room.resize(len, 0);
        Ok(room)
    }

    /// Decodes checked bytes into exactly `raw`.
    pub(crate) fn decode(
        &self,
        coords: &[u64],
        chunk_ref: &ChunkRef,
        stored: &[u8],
        raw: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let decoded = match chunk_ref.codec {
            Codec::Raw => {
                raw.copy_from_slice(stored);
                Ok(())
            }
            Codec::Zstd => zstd::decode(stored, raw),
        };
        decoded.map_err(|error| {
            self.chunk_fault(coords, chunk_ref.row, chunk_ref.span, ChunkError::Codec(Box::new(error)))
        })
    }

    /// Reads, checks and decodes a chunk into `out`, which has its length.
    pub(crate) fn load(&self, coords: &[u64], chunk_ref: &ChunkRef, out: &mut [u8]) -> Result<(), ErrorKind> {
        if chunk_ref.codec == Codec::Zstd || self.file.source.is_zero_copy() {
            let stored = self.fetch(coords, chunk_ref)?;
            return self.decode(coords, chunk_ref, &stored, out);
        }
        self.file.source.read_into(chunk_ref.span.start(), out)?;
        match self.crc_to_check(chunk_ref)? {
            Some(expected) => self.check_crc(coords, chunk_ref, expected, checksum::crc32c(out)),
            None => Ok(()),
        }
    }

    pub(crate) fn expected_crc(&self, chunk_ref: &ChunkRef) -> Result<Option<u32>, ErrorKind> {
        match &self.file.checker {
            Some(checker) => checker.row_crc(&self.file.source, chunk_ref.row),
            None => Ok(None),
        }
    }

    /// The expected checksum of a chunk; `None` if there is none, or if the chunk was verified before.
    pub(crate) fn crc_to_check(&self, chunk_ref: &ChunkRef) -> Result<Option<u32>, ErrorKind> {
        if self.file.source.is_zero_copy() && self.file.verified.contains(chunk_ref.row) {
            return Ok(None);
        }
        self.expected_crc(chunk_ref)
    }

    /// [`crc_to_check`](Self::crc_to_check) for many chunks in the order of their rows.
    pub(crate) fn next_crc_to_check(
        &self,
        chunk_ref: &ChunkRef,
        run: &mut CrcRun,
    ) -> Result<Option<u32>, ErrorKind> {
        match &self.file.checker {
            Some(checker) if !self.file.source.is_zero_copy() => {
                checker.row_crc_of_run(&self.file.source, chunk_ref.row, run)
            }
            _ => self.crc_to_check(chunk_ref),
        }
    }

    pub(crate) fn check_crc(
        &self,
        coords: &[u64],
        chunk_ref: &ChunkRef,
        expected: u32,
        actual: u32,
    ) -> Result<(), ErrorKind> {
        Mismatch::check_crc32c(expected, actual).map_err(|mismatch| {
            self.chunk_fault(coords, chunk_ref.row, chunk_ref.span, ChunkError::Checksum(mismatch))
        })?;
        if self.file.source.is_zero_copy() {
            self.file.verified.insert(chunk_ref.row, self.file.rows.count());
        }
        Ok(())
    }
}
