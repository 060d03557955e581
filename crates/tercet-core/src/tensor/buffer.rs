//! Zeroed, aligned memory for arrays, with huge pages for large ones.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Buffers of this size and larger are mapped with huge pages: a page fault per 2 MiB instead of 4 KiB, which
/// otherwise dominates reads into new memory.
#[cfg(unix)]
const MAP_FROM: usize = 4 << 20;

/// Zeroed bytes, aligned to at least 8.
pub struct Buffer {
    memory: Memory,
    len: usize,
}

enum Memory {
    Heap(Vec<u64>),
    #[cfg(unix)]
    Map(memmap2::MmapMut),
}

/// An allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes requested.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory ({} bytes)", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

impl Buffer {
    /// Allocates `len` zero bytes; an error instead of an abort if the allocation fails.
    pub fn zeroed(len: usize) -> Result<Self, OutOfMemory> {
        #[cfg(unix)]
        if len >= MAP_FROM {
            let map = memmap2::MmapMut::map_anon(len).map_err(|_| OutOfMemory { bytes: len })?;
            // A hint only: without huge pages the memory is slower to touch.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Ok(Self { memory: Memory::Map(map), len });
        }
        let words = len.div_ceil(8);
        let mut heap = Vec::new();
        heap.try_reserve_exact(words).map_err(|_| OutOfMemory { bytes: len })?;
        heap.resize(words, 0);
        Ok(Self { memory: Memory::Heap(heap), len })
    }

    /// The bytes of `words`, without a copy.
    pub(super) fn from_words(words: Vec<u64>) -> Self {
        Self { len: words.len() * 8, memory: Memory::Heap(words) }
    }

    /// The words of the buffer without a copy, if its memory is a vector of whole words.
    pub(super) fn into_words(self) -> Result<Vec<u64>, Self> {
        match self.memory {
            Memory::Heap(words) if words.len() * 8 == self.len => Ok(words),
            memory => Err(Self { memory, ..self }),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(words) => &bytemuck::cast_slice(words)[..self.len],
            #[cfg(unix)]
            Memory::Map(map) => &map[..self.len],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(words) => &mut bytemuck::cast_slice_mut(words)[..self.len],
            #[cfg(unix)]
            Memory::Map(map) => &mut map[..self.len],
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_zeroed_and_aligned() {
        for len in [0, 1, 7, 8, 9, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 3] {
            let mut buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&b| b == 0));
            assert_eq!(buffer.as_ptr().align_offset(8), 0);
            buffer.fill(7);
            assert!(buffer.iter().all(|&b| b == 7));
        }
    }

    #[test]
    fn impossible_sizes_are_an_error() {
        assert_eq!(Buffer::zeroed(usize::MAX - 7).unwrap_err(), OutOfMemory { bytes: usize::MAX - 7 });
    }
}
