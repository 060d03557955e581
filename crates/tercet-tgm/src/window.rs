//! Buffered reads of small pieces of a source.

use std::collections::BTreeMap;

use bytes::Bytes;
use memchr::memmem;
use tercet_core::{ByteSource, SourceError, Span};

/// The block size for reads of preambles and postambles.
const BLOCK: u64 = 64 << 10;
/// The block size for reads of a remote message.
pub(crate) const REMOTE_BLOCK: u64 = 8 << 10;
/// The block size for scans of a remote file: remote sources have a block cache of their own.
const REMOTE_STEP: u64 = 64;
/// The block size for searches through unrecognized bytes.
const SEARCH_BLOCK: u64 = 1 << 20;

/// Reads small pieces of a source through one block.
///
/// A zero-copy source is one block.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    source: &'a dyn ByteSource,
    /// All bytes, if the source is memory.
    view: Option<&'a [u8]>,
    block: Bytes,
    start: u64,
    /// The end: bytes after it are not read.
    end: u64,
    /// The block size.
    block_len: u64,
    /// Whether blocks end at the requested bytes instead of starting there.
    backward: bool,
}

impl<'a> Window<'a> {
    pub(crate) fn new(source: &'a dyn ByteSource) -> Result<Self, SourceError> {
        let window = Self::up_to(source, source.len())?;
        let block_len = if source.is_remote() { REMOTE_STEP } else { BLOCK };
        Ok(Self { block_len, ..window })
    }

    /// A window on the bytes before `end`.
    pub(crate) fn up_to(source: &'a dyn ByteSource, end: u64) -> Result<Self, SourceError> {
        let end = end.min(source.len());
        let block = if source.is_zero_copy() { source.read_at(Span::first(end))? } else { Bytes::new() };
        let view = source.view(Span::first(end));
        let block_len = if source.is_remote() { REMOTE_BLOCK } else { BLOCK };
        Ok(Self { source, view, block, start: 0, end, block_len, backward: false })
    }

    /// A window for reading from the end.
    pub(crate) fn backward(source: &'a dyn ByteSource) -> Result<Self, SourceError> {
        Ok(Self { backward: true, ..Self::new(source)? })
    }

    pub(crate) fn len(&self) -> u64 {
        self.end
    }

    /// `len` bytes at `at`, or fewer at the end of the source.
    pub(crate) fn get(&mut self, at: u64, len: u64) -> Result<&[u8], SourceError> {
        let end = at.saturating_add(len).min(self.len());
        let at = at.min(end);
        if let Some(view) = self.view {
            let inside = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
            return Ok(view.get(inside(at)..inside(end)).unwrap_or_default());
        }
        if at < self.start || end > self.start.saturating_add(self.block.len() as u64) {
            let (from, to) = if self.backward {
                (end.saturating_sub(self.block_len).min(at), end)
            } else {
                (at, at.saturating_add(self.block_len).min(self.len()).max(end))
            };
            self.block = self.source.read_at(Span::between(from, to).unwrap_or(Span::empty(from)))?;
            self.start = from;
        }
        let inside =
            |position: u64| usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.block.get(inside(at)..inside(end)).unwrap_or_default())
    }

    /// Like [`get`](Self::get), but bytes outside the block do not replace it: an untrusted length may point anywhere.
    pub(crate) fn peek(&mut self, at: u64, len: u64) -> Result<Bytes, SourceError> {
        let end = at.saturating_add(len).min(self.len());
        let at = at.min(end);
        let inside = |position: u64| usize::try_from(position.checked_sub(self.start)?).ok();
        let range = inside(at).zip(inside(end)).filter(|&(_, to)| to <= self.block.len());
        match range {
            Some((from, to)) => Ok(self.block.slice(from..to)),
            None => self.source.read_at(Span::between(at, end).unwrap_or(Span::empty(at))),
        }
    }

    /// Keeps bytes that [`peek`](Self::peek) returned as the current block. After a long message they are the end of the
    /// message and the preamble of the next one, so that a scan reads only these bytes of a file.
    pub(crate) fn keep(&mut self, at: u64, bytes: Bytes) {
        let end = at.saturating_add(bytes.len() as u64);
        let is_inside = self.start <= at && end <= self.start.saturating_add(self.block.len() as u64);
        if self.view.is_none() && !is_inside {
            (self.start, self.block) = (at, bytes);
        }
    }

    /// The next occurrence of `needle` in `from..end`. The block size grows during the search.
    pub(crate) fn find(&mut self, needle: &[u8], from: u64, end: u64) -> Result<Option<u64>, SourceError> {
        let end = end.min(self.len());
        let finder = memmem::Finder::new(needle);
        if let Some(view) = self.view {
            let inside = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
            let bytes = view.get(inside(from)..inside(end)).unwrap_or_default();
            return Ok(finder.find(bytes).map(|found| from + found as u64));
        }
        let overlap = needle.len() as u64 - 1;
        let (mut at, mut size) = (from, BLOCK);
        while at.saturating_add(needle.len() as u64) <= end {
            let block_end = self.start.saturating_add(self.block.len() as u64);
            let inside = self.start <= at && at.saturating_add(overlap) < block_end;
            if !inside {
                let stop = at.saturating_add(size).min(self.end);
                self.block = self.source.read_at(Span::between(at, stop).unwrap_or(Span::empty(at)))?;
                self.start = at;
                size = (size * 4).min(SEARCH_BLOCK);
                continue;
            }
            let stop = block_end.min(end);
            let offset = |position: u64| usize::try_from(position - self.start).unwrap_or(usize::MAX);
            let bytes = self.block.get(offset(at)..offset(stop)).unwrap_or_default();
            if let Some(found) = finder.find(bytes) {
                return Ok(Some(at + found as u64));
            }
            // A needle may start in the last bytes of the block and end in the next one.
            at = stop.saturating_sub(overlap).max(at + 1);
        }
        Ok(None)
    }
}

/// Caches the positions of a needle, so that searches from any offset in any order scan each byte once.
#[derive(Debug)]
pub(crate) struct Search {
    needle: &'static [u8],
    /// The result for each start of a search. The ranges do not overlap.
    known: BTreeMap<u64, Option<u64>>,
}

impl Search {
    pub(crate) const fn new(needle: &'static [u8]) -> Self {
        Self { needle, known: BTreeMap::new() }
    }

    /// The next occurrence of the needle at or after `from`.
    pub(crate) fn next(&mut self, window: &mut Window<'_>, from: u64) -> Result<Option<u64>, SourceError> {
        if let Some((_, &found)) = self.known.range(..=from).next_back()
            && found.is_none_or(|found| from <= found)
        {
            return Ok(found);
        }
        let next = self.known.range(from..).next().map(|(&start, &found)| (start, found));
        let found = match next {
            // Only the bytes before a known range are scanned.
            Some((start, further)) => {
                let between = start.saturating_add(self.needle.len() as u64 - 1);
                let found = window.find(self.needle, from, between)?;
                if found.is_none() {
                    self.known.remove(&start);
                }
                found.or(further)
            }
            None => window.find(self.needle, from, window.len())?,
        };
        self.known.insert(from, found);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;

    use super::*;

    /// Searches in any order return what a plain search returns.
    #[test]
    fn cached_searches_equal_plain_searches() {
        let text: Vec<u8> = b"..ab...abab......ab..".repeat(7);
        let source = Memory::new("text", text.clone());
        let mut window = Window::new(&source).unwrap();
        let plain =
            |from: usize| text[from..].windows(2).position(|pair| pair == b"ab").map(|at| (from + at) as u64);
        for step in [1, 3, 7, 11, 146] {
            let mut search = Search::new(b"ab");
            for n in 0..text.len() {
                let from = n * step % text.len();
                assert_eq!(search.next(&mut window, from as u64).unwrap(), plain(from), "{from} by {step}");
            }
        }
    }
}
