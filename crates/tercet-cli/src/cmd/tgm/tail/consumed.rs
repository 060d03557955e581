//! What was read of a file, to know it again.

use tercet::core::SourceError;
use tercet::core::checksum::Xxh3;

use super::growing::Growing;

/// The last bytes that are compared each time there are more: a file that was written anew shows there.
const RECENT: usize = 256;
/// The first bytes that are compared when a file changed but did not grow.
const HEAD: usize = 64 << 10;
/// Bytes of a length field.
const FIELD: usize = 8;
/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// What was read of a file: all of it, and up to where the last message ended that was whole.
///
/// A writer that can go back fills in the length of a message when it knows it, behind our back: those fields count as
/// what they were when they were read, which is 0.
#[derive(Debug)]
pub(super) struct Consumed {
    all: Prefix,
    /// Without the bytes that were added last.
    before: Prefix,
    whole: Prefix,
    /// The first of them: a file that is written anew has others there.
    head: Prefix,
    /// Where lengths stand that were not known, in ascending order.
    lengths: Vec<u64>,
}

/// Bytes from somewhere up to somewhere, to be known again.
#[derive(Clone, Debug)]
struct Prefix {
    from: u64,
    end: u64,
    hash: Xxh3,
    recent: Vec<u8>,
}

impl Consumed {
    /// What is read of a file from here on: `known` to begin with, which ends where the first message starts.
    pub(super) fn starting_with(from: u64, known: &[u8]) -> Self {
        let mut all = Prefix { from, end: from, hash: Xxh3::new(), recent: Vec::new() };
        all.add(known);
        Self { before: all.clone(), whole: all.clone(), head: all.clone(), all, lengths: Vec::new() }
    }

    /// The first byte that was not read.
    pub(super) fn end(&self) -> u64 {
        self.all.end
    }

    /// Where the last message ended that was whole.
    pub(super) fn whole_end(&self) -> u64 {
        self.whole.end
    }

    /// The last bytes that were read.
    pub(super) fn recent(&self) -> &[u8] {
        &self.all.recent
    }

    /// Adds the next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(usize::try_from(self.head.end - self.head.from).unwrap_or(HEAD));
        self.head.add(&bytes[..room.min(bytes.len())]);
        self.before = self.all.clone();
        self.all.add(bytes);
    }

    /// Remembers that a message is whole that ends here, if that is inside the bytes that were added last. One that was
    /// told later, because half a message had taken it in, is not remembered.
    pub(super) fn add_whole(&mut self, end: u64, added: &[u8]) -> bool {
        let len = end.checked_sub(self.before.end).and_then(|len| usize::try_from(len).ok());
        let Some(bytes) = len.and_then(|len| added.get(..len)) else { return false };
        self.whole = self.before.clone();
        self.whole.add(bytes);
        true
    }

    /// Remembers a length that was not known: that of the message that starts here.
    pub(super) fn add_open_message(&mut self, start: u64) {
        let at = start.saturating_add(16);
        if self.lengths.last().is_none_or(|last| *last < at) {
            self.lengths.push(at);
        }
    }

    /// Forgets what was read behind the last message that was whole.
    pub(super) fn rewind(&mut self) {
        self.all = self.whole.clone();
        if self.head.end > self.whole.end {
            self.head = self.whole.clone();
        }
        self.lengths.retain(|at| *at < self.whole.end);
    }

    /// Whether these bytes, which end where reading stopped, are the ones that were read.
    pub(super) fn ends_with(&self, bytes: &[u8]) -> bool {
        let start = self.all.end - self.all.recent.len() as u64;
        let mut bytes = bytes.to_vec();
        blank(&self.lengths, start, &mut bytes);
        bytes == self.all.recent
    }

    /// Whether a file has the first and the last bytes that were read where they were: one that was written anew has not.
    pub(super) fn looks_like(&self, thing: &dyn Growing) -> Result<bool, SourceError> {
        let mut recent = vec![0; self.all.recent.len()];
        let read = thing.read_at(self.all.end - recent.len() as u64, &mut recent)?;
        Ok(read == recent.len() && self.ends_with(&recent) && self.head.is_start_of(thing, &self.lengths)?)
    }

    /// Whether a file starts with all that was read.
    pub(super) fn is_start_of(&self, thing: &dyn Growing) -> Result<bool, SourceError> {
        self.all.is_start_of(thing, &self.lengths)
    }

    /// Whether a file starts with all messages that were whole, of which there is one at least.
    pub(super) fn whole_is_start_of(&self, thing: &dyn Growing) -> Result<bool, SourceError> {
        Ok(self.whole.end > self.whole.from && self.whole.is_start_of(thing, &self.lengths)?)
    }
}

impl Prefix {
    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.end += bytes.len() as u64;
        self.recent.extend_from_slice(&bytes[bytes.len().saturating_sub(RECENT)..]);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
    }

    fn is_start_of(&self, thing: &dyn Growing, lengths: &[u64]) -> Result<bool, SourceError> {
        if thing.len()? < self.end {
            return Ok(false);
        }
        let mut hash = Xxh3::new();
        let mut piece = vec![0; PIECE];
        let mut at = self.from;
        while at < self.end {
            let len = usize::try_from(self.end - at).unwrap_or(PIECE).min(PIECE);
            let piece = &mut piece[..len];
            if thing.read_at(at, piece)? < len {
                return Ok(false);
            }
            blank(lengths, at, piece);
            hash.update(piece);
            at += len as u64;
        }
        Ok(hash.digest() == self.hash.digest())
    }
}

/// Makes the lengths that were not known what they were, in bytes that start at `start`.
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
    use crate::cmd::tgm::tail::growing::{Path, Place as _};

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, Box<dyn Growing>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let opened = Path::new(file.path()).open().unwrap().unwrap();
        (file, opened)
    }

    #[test]
    fn a_file_is_known_again_by_what_was_read() {
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
    fn lengths_that_are_filled_in_change_nothing() {
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

    /// Half a message that is gone, or others in its place: what was whole is known again.
    #[test]
    fn whole_messages_are_known_again_without_the_rest() {
        let text: Vec<u8> = (0..2_000u32).map(|n| (n * 7 % 251) as u8).collect();
        let mut consumed = Consumed::starting_with(0, &[]);
        let (_kept, opened) = file(&text);
        assert!(!consumed.whole_is_start_of(&*opened).unwrap(), "nothing is no sign");
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
