//! The consumed prefix of a file, to recognise the file after a change.

use tercet_core::SourceError;
use tercet_core::checksum::Xxh3;

use super::growing::GrowingFile;

/// Trailing bytes compared when the file grows, to detect a rewrite.
const RECENT: usize = 256;
/// Leading bytes compared when the file changed without growing.
const HEAD: usize = 64 << 10;
/// Size of a length field.
const FIELD: usize = 8;
/// Read buffer size.
const PIECE: usize = 1 << 20;

/// The consumed prefix: all bytes read, and the bytes up to the end of the last complete message.
///
/// A seekable writer fills in the length of a streamed message later: these fields count as 0, the value at the time of
/// reading.
#[derive(Debug)]
pub(super) struct Consumed {
    all: Prefix,
    /// Hash of all bytes except the most recent ones.
    before: Prefix,
    whole: Prefix,
    /// The leading bytes, which differ in a rewritten file.
    head: Prefix,
    /// Offsets of unknown length fields, ascending.
    lengths: Vec<u64>,
}

/// A hashed byte range.
#[derive(Clone, Debug)]
struct Prefix {
    from: u64,
    end: u64,
    hash: Xxh3,
    recent: Vec<u8>,
}

impl Consumed {
    /// Starts at the first message; `known` are the bytes before it.
    pub(super) fn starting_with(from: u64, known: &[u8]) -> Self {
        let mut all = Prefix { from, end: from, hash: Xxh3::new(), recent: Vec::new() };
        all.add(known);
        Self { before: all.clone(), whole: all.clone(), head: all.clone(), all, lengths: Vec::new() }
    }

    /// The end of the consumed bytes.
    pub(super) fn end(&self) -> u64 {
        self.all.end
    }

    /// The end of the last complete message.
    pub(super) fn whole_end(&self) -> u64 {
        self.whole.end
    }

    /// The most recent bytes.
    pub(super) fn recent(&self) -> &[u8] {
        &self.all.recent
    }

    /// Appends bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(usize::try_from(self.head.end - self.head.from).unwrap_or(HEAD));
        self.head.add(&bytes[..room.min(bytes.len())]);
        self.before = self.all.clone();
        self.all.add(bytes);
    }

    /// Records the end of a complete message, if it is inside the bytes added last. A message reported later, after an
    /// incomplete message that seemed to contain it, is not recorded.
    pub(super) fn add_whole(&mut self, end: u64, added: &[u8]) -> bool {
        let len = end.checked_sub(self.before.end).and_then(|len| usize::try_from(len).ok());
        let Some(bytes) = len.and_then(|len| added.get(..len)) else { return false };
        self.whole = self.before.clone();
        self.whole.add(bytes);
        true
    }

    /// Records the unknown length field of the message at `start`.
    pub(super) fn add_open_message(&mut self, start: u64) {
        let at = start.saturating_add(16);
        if self.lengths.last().is_none_or(|last| *last < at) {
            self.lengths.push(at);
        }
    }

    /// Discards the bytes after the last complete message.
    pub(super) fn rewind(&mut self) {
        self.all = self.whole.clone();
        if self.head.end > self.whole.end {
            self.head = self.whole.clone();
        }
        self.lengths.retain(|at| *at < self.whole.end);
    }

    /// Whether these bytes equal the most recent ones.
    pub(super) fn ends_with(&self, bytes: &[u8]) -> bool {
        let start = self.all.end - self.all.recent.len() as u64;
        let mut bytes = bytes.to_vec();
        blank(&self.lengths, start, &mut bytes);
        bytes == self.all.recent
    }

    /// Whether a file has the same leading and most recent bytes.
    pub(super) fn looks_like(&self, open_file: &dyn GrowingFile) -> Result<bool, SourceError> {
        let mut recent = vec![0; self.all.recent.len()];
        let read = open_file.read_at(self.all.end - recent.len() as u64, &mut recent)?;
        Ok(read == recent.len()
            && self.ends_with(&recent)
            && self.head.is_start_of(open_file, &self.lengths)?)
    }

    /// Whether a file starts with all consumed bytes.
    pub(super) fn is_start_of(&self, open_file: &dyn GrowingFile) -> Result<bool, SourceError> {
        self.all.is_start_of(open_file, &self.lengths)
    }

    /// Whether a file starts with all complete messages, at least one.
    pub(super) fn whole_is_start_of(&self, open_file: &dyn GrowingFile) -> Result<bool, SourceError> {
        Ok(self.whole.end > self.whole.from && self.whole.is_start_of(open_file, &self.lengths)?)
    }
}

impl Prefix {
    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.end += bytes.len() as u64;
        self.recent.extend_from_slice(&bytes[bytes.len().saturating_sub(RECENT)..]);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
    }

    fn is_start_of(&self, open_file: &dyn GrowingFile, lengths: &[u64]) -> Result<bool, SourceError> {
        if open_file.len()? < self.end {
            return Ok(false);
        }
        let mut hash = Xxh3::new();
        let mut piece = vec![0; PIECE];
        let mut at = self.from;
        while at < self.end {
            let len = usize::try_from(self.end - at).unwrap_or(PIECE).min(PIECE);
            let piece = &mut piece[..len];
            if open_file.read_at(at, piece)? < len {
                return Ok(false);
            }
            blank(lengths, at, piece);
            hash.update(piece);
            at += len as u64;
        }
        Ok(hash.digest() == self.hash.digest())
    }
}

/// Zeroes the unknown length fields in bytes that start at `start`.
fn blank(lengths: &[u64], start: u64, bytes: &mut [u8]) {
    let end = start.saturating_add(bytes.len() as u64);
    let first = lengths.partition_point(|at| at.saturating_add(FIELD as u64) <= start);
    for &at in lengths[first..].iter().take_while(|at| **at < end) {
        let inside = |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
        let (from, to) = (inside(at), inside(at.saturating_add(FIELD as u64)).min(bytes.len()));
        bytes[from..to].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::follow::growing::{FileLocation as _, LocalPath};

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, Box<dyn GrowingFile>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let opened = LocalPath::new(file.path()).open().unwrap().unwrap();
        (file, opened)
    }

    #[test]
    fn a_file_is_recognised_by_its_prefix() {
        let text: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut consumed = Consumed::starting_with(0, &[]);
        for piece in text.chunks(700_001) {
            consumed.add(piece);
        }
        assert_eq!(consumed.recent(), &text[text.len() - RECENT..]);
        let longer = [&text[..], b"more"].concat();
        let mut other = longer.clone();
        other[1_500_000] ^= 1;
        for (bytes, same) in [(&longer, true), (&text, true), (&other, false), (&text[1..].to_vec(), false)] {
            let (_kept, opened) = file(bytes);
            assert_eq!(consumed.is_start_of(&*opened).unwrap(), same);
        }
    }

    #[test]
    fn filled_in_lengths_are_ignored() {
        let mut text = vec![7u8; 100];
        text[16..24].fill(0);
        text[60..68].fill(0);
        let mut consumed = Consumed::starting_with(0, &[]);
        consumed.add(&text[..64]);
        consumed.add_open_message(0);
        consumed.add_open_message(44);
        consumed.add_open_message(44);
        assert!(consumed.ends_with(&text[..64]));
        text[16..24].fill(9);
        text[60..68].fill(9);
        assert!(consumed.ends_with(&text[..64]));
        let (_kept, opened) = file(&text);
        assert!(consumed.is_start_of(&*opened).unwrap());
        text[15] = 8;
        assert!(!consumed.ends_with(&text[..64]));
        let (_kept, opened) = file(&text);
        assert!(!consumed.is_start_of(&*opened).unwrap());
    }

    /// Complete messages are recognised without an incomplete one after them.
    #[test]
    fn complete_messages_are_recognised_without_the_rest() {
        let text: Vec<u8> = (0..2_000u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut consumed = Consumed::starting_with(0, &[]);
        let (_kept, opened) = file(&text);
        assert!(!consumed.whole_is_start_of(&*opened).unwrap(), "an empty prefix matches nothing");
        consumed.add(&text[..1000]);
        assert!(consumed.add_whole(700, &text[..1000]));
        consumed.add(&text[1000..1500]);
        assert!(!consumed.add_whole(800, &text[1000..1500]), "it ended before");
        assert_eq!((consumed.end(), consumed.whole_end()), (1500, 700));
        let mut other = text.clone();
        other[800] ^= 1;
        for (bytes, same) in
            [(&text[..700], true), (&other, true), (&text[..699], false), (&text[1..], false)]
        {
            let (_kept, opened) = file(bytes);
            assert_eq!(consumed.whole_is_start_of(&*opened).unwrap(), same);
            assert!(!consumed.is_start_of(&*opened).unwrap());
        }
        consumed.rewind();
        assert_eq!((consumed.end(), consumed.recent()), (700, &text[700 - RECENT..700]));
        consumed.add(&text[700..900]);
        let (_kept, opened) = file(&text);
        assert!(consumed.is_start_of(&*opened).unwrap());
    }
}
