//! Watching a file that grows, shrinks, is replaced, removed or recreated.

use std::collections::VecDeque;

use bytes::Bytes;
use tercet_core::{Progress, Span};

use super::consumed::Consumed;
use super::growing::{GrowingFile, Stamp};
use super::{FileChange, FollowEvent, Follower};
use crate::error::ErrorKind;
use crate::file::File;
use crate::options::ReadOptions;

/// Read buffer size.
const PIECE: usize = 256 << 10;
/// Bytes before the first message that are read to recognise the file.
const BEFORE: u64 = 64 << 10;
/// The number of first bytes in [`FollowEvent::Opened`].
const HEAD: u64 = 512;

/// An open file that is watched.
pub(super) struct Watched {
    open_file: Box<dyn GrowingFile>,
    options: ReadOptions,
    follower: Follower,
    consumed: Consumed,
    /// The number of the next message.
    next: u64,
    /// The modification stamp of the last poll.
    stamp: Stamp,
    /// Whether a message index follows, which is replaced when a message is appended.
    has_index: bool,
    /// Whether an index was removed: the messages appended in its place are followed by a new one.
    expects_index: bool,
    buffer: Vec<u8>,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// More bytes were read.
    More,
    /// Reached the current end of the file.
    End,
    /// The file was truncated or rewritten.
    Changed(FileChange),
}

impl Watched {
    /// Starts at the first byte, or with the last messages.
    pub(super) fn start(
        open_file: Box<dyn GrowingFile>,
        last: Option<u64>,
        options: ReadOptions,
    ) -> Result<Self, ErrorKind> {
        let follower = Follower::with_options(options);
        let (next, consumed, follower) = match last {
            None => (0, Consumed::starting_with(0, &[]), follower),
            Some(last) => {
                let file =
                    File::from_source(open_file.snapshot()?, options).map_err(crate::Error::into_kind)?;
                let messages = file.scan().map_err(crate::Error::into_kind)?.messages.clone();
                let number = messages.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX));
                let end = messages.last().map_or(0, |message| message.end());
                let at = messages.get(number).map_or(end, |message| message.start());
                let before = Span::between(at.saturating_sub(BEFORE), at).unwrap_or(Span::empty(at));
                let consumed = Consumed::starting_with(before.start(), &file.source().read_at(before)?);
                let next = number as u64;
                (next, consumed, follower.starting_at(at, next))
            }
        };
        let (stamp, buffer) = (None, Vec::new());
        let (has_index, expects_index) = (false, false);
        Ok(Self { open_file, options, follower, consumed, next, stamp, has_index, expects_index, buffer })
    }

    /// The first bytes of the file.
    pub(super) fn head(&self) -> Result<Bytes, ErrorKind> {
        let mut head = vec![0; usize::try_from(self.open_file.len()?.min(HEAD)).unwrap_or(0)];
        let read = self.open_file.read_at(0, &mut head)?;
        head.truncate(read);
        Ok(head.into())
    }

    /// The open file.
    pub(super) fn open_file(&self) -> &dyn GrowingFile {
        &*self.open_file
    }

    /// Restarts at the first byte.
    fn restart(&mut self) {
        self.follower = Follower::with_options(self.options);
        self.consumed = Consumed::starting_with(0, &[]);
        self.next = 0;
        (self.has_index, self.expects_index) = (false, false);
    }

    /// Whether the bytes after the last complete message are an index, or the start of one: the last bytes of an index may
    /// be written, and all of it replaced, between two polls.
    fn ends_with_index(&self) -> bool {
        self.follower.pending_index().unwrap_or(self.has_index || self.expects_index)
    }

    /// Continues after the last complete message.
    fn rewind(&mut self) {
        self.expects_index = self.ends_with_index();
        self.has_index = false;
        self.consumed.rewind();
        self.follower =
            Follower::with_options(self.options).starting_at(self.consumed.whole_end(), self.next);
    }

    /// Handles a changed file: continues after the reported messages if they are unchanged, as when a writer
    /// removes an incomplete message; else restarts.
    pub(super) fn start_again(
        &mut self,
        change: FileChange,
        events: &mut VecDeque<FollowEvent>,
    ) -> Result<(), ErrorKind> {
        let resumed = self.consumed.whole_is_start_of(&*self.open_file)?;
        // An append replaces the index at the end.
        let was_index = self.ends_with_index();
        if resumed {
            self.rewind();
        } else {
            self.restart();
        }
        if !(was_index && resumed) {
            events.push_back(FollowEvent::Changed { change, resumed });
        }
        Ok(())
    }

    /// Reads the next bytes.
    pub(super) fn read_on(&mut self, events: &mut VecDeque<FollowEvent>) -> Result<ReadResult, ErrorKind> {
        let ((len, stamp), end) = (self.open_file.stat()?, self.consumed.end());
        // Rewritten with the same length, or a length field was filled in.
        let is_suspect = len == end && stamp != self.stamp && self.stamp.is_some();
        self.stamp = stamp;
        if is_suspect && !self.consumed.looks_like(&*self.open_file)? {
            return Ok(ReadResult::Changed(FileChange::Rewritten));
        }
        if len == end {
            return Ok(ReadResult::End);
        }
        if len < end {
            return Ok(ReadResult::Changed(FileChange::Truncated));
        }
        // Read the most recent bytes again: if they differ, the file was rewritten.
        let known = self.consumed.recent().len();
        self.buffer.resize(known + usize::try_from(len - end).unwrap_or(PIECE).min(PIECE), 0);
        let read = self.open_file.read_at(end - known as u64, &mut self.buffer)?;
        let (again, new) = self.buffer[..read].split_at(known.min(read));
        if again.len() < known {
            return Ok(ReadResult::Changed(FileChange::Truncated));
        }
        if !self.consumed.ends_with(again) {
            return Ok(ReadResult::Changed(FileChange::Rewritten));
        }
        self.consumed.add(new);
        self.follower.push(new);
        while let Some(event) = self.follower.next_event() {
            if let FollowEvent::Message(message) = &event {
                if message.preamble.known_length().is_none() {
                    self.consumed.add_open_message(message.span.start());
                }
                let is_index = message.metadata.is_message_index();
                // A message after an index was appended by a program that does not replace it.
                self.expects_index &= is_index || !self.has_index;
                self.has_index = is_index;
                if !self.has_index && self.consumed.add_whole(message.span.end(), new) {
                    self.next = message.number + 1;
                }
            }
            events.push_back(event);
        }
        if let Some((start, preamble)) = self.follower.pending()
            && preamble.known_length().is_none()
        {
            self.consumed.add_open_message(start);
        }
        Ok(ReadResult::More)
    }

    /// Reads to the current end of the file, of one that is about to be closed.
    pub(super) fn read_rest(
        &mut self,
        events: &mut VecDeque<FollowEvent>,
        progress: &dyn Progress,
    ) -> Result<(), ErrorKind> {
        while self.read_on(events)? == ReadResult::More {
            progress.check()?;
        }
        self.finish(events);
        Ok(())
    }

    /// Reports an incomplete message at the end.
    pub(super) fn finish(&mut self, events: &mut VecDeque<FollowEvent>) {
        events.extend(std::iter::from_fn(|| self.follower.finish()));
    }

    /// Switches to a file that replaced this one: continues after the known bytes, or restarts.
    pub(super) fn take_over(
        &mut self,
        open_file: Box<dyn GrowingFile>,
        events: &mut VecDeque<FollowEvent>,
        progress: &dyn Progress,
    ) -> Result<(), ErrorKind> {
        let change = FileChange::Replaced;
        if self.consumed.is_start_of(&*open_file)? {
            self.open_file = open_file;
            return Ok(());
        }
        if self.consumed.whole_is_start_of(&*open_file)? {
            self.open_file = open_file;
            let was_index = self.ends_with_index();
            self.rewind();
            if !was_index {
                events.push_back(FollowEvent::Changed { change, resumed: true });
            }
            return Ok(());
        }
        // Read what was written before the replacement.
        self.read_rest(events, progress)?;
        events.push_back(FollowEvent::Changed { change, resumed: false });
        self.open_file = open_file;
        self.restart();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use tercet_core::progress::NoProgress;

    use super::*;
    use crate::encode::EncodeOptions;
    use crate::follow::growing::{FileLocation as _, LocalPath};
    use crate::metadata::GlobalMetadata;
    use crate::writer::{ReindexOptions, Writer, WriterOptions};

    /// The events up to the current end of the file.
    fn poll(watched: &mut Watched) -> Vec<FollowEvent> {
        let mut events = VecDeque::new();
        loop {
            match watched.read_on(&mut events).unwrap() {
                ReadResult::More => {}
                ReadResult::End => return events.into(),
                ReadResult::Changed(change) => watched.start_again(change, &mut events).unwrap(),
            }
        }
    }

    /// An append removes the index, writes the message and the new index, and the last bytes of it later. A follower may
    /// miss any of these steps.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test reads the file as other programs do")]
    fn an_index_that_is_replaced_is_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.tgm");
        let mut writer = Writer::create(&path, WriterOptions::new()).unwrap();
        writer.message(&GlobalMetadata::default(), &[], &EncodeOptions::new()).unwrap();
        writer.finish().unwrap();
        let mut ends = vec![std::fs::read(&path).unwrap().len()];
        Writer::reindex(&path, &ReindexOptions::new(), &NoProgress).unwrap();
        let mut files = vec![std::fs::read(&path).unwrap()];
        for _ in 0..2 {
            let mut writer = Writer::append(&path, &NoProgress).unwrap();
            writer.message(&GlobalMetadata::default(), &[], &EncodeOptions::new()).unwrap();
            writer.finish().unwrap();
            let file = File::open(&path).unwrap();
            ends.push(usize::try_from(file.index().unwrap().unwrap().span().start()).unwrap());
            files.push(std::fs::read(&path).unwrap());
        }
        // The length of the index when the follower sees it, and whether it sees the file without an index.
        for (len, sees_cut) in [(40, true), (40, false), (usize::MAX, true), (usize::MAX, false)] {
            let followed = tempfile::NamedTempFile::new().unwrap();
            let mut file = followed.as_file();
            let mut write = |bytes: &[u8]| {
                file.set_len(0).unwrap();
                file.seek(SeekFrom::Start(0)).unwrap();
                file.write_all(bytes).unwrap();
            };
            write(&files[0]);
            let opened = LocalPath::new(followed.path()).open().unwrap().unwrap();
            let mut watched = Watched::start(opened, None, ReadOptions::new()).unwrap();
            let mut events = poll(&mut watched);
            for (bytes, ends) in files[1..].iter().zip(ends.windows(2)) {
                if sees_cut {
                    write(&bytes[..ends[0]]);
                    events.extend(poll(&mut watched));
                }
                write(&bytes[..(bytes.len() - 8).min(ends[1].saturating_add(len))]);
                events.extend(poll(&mut watched));
            }
            write(&files[2]);
            events.extend(poll(&mut watched));
            let is_data = |event: &&FollowEvent| match event {
                FollowEvent::Message(message) => !message.metadata.is_message_index(),
                other => panic!("{other:?}"),
            };
            assert_eq!(events.iter().filter(is_data).count(), 3, "{len} {sees_cut}");
        }
    }

    /// A message that was never complete is removed: that is a change.
    #[test]
    fn a_removed_message_is_a_change() {
        let message = crate::encode::encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new());
        let message = message.unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&message).unwrap();
        file.write_all(&message[..message.len() - 9]).unwrap();
        let opened = LocalPath::new(file.path()).open().unwrap().unwrap();
        let mut watched = Watched::start(opened, None, ReadOptions::new()).unwrap();
        assert_eq!(poll(&mut watched).len(), 1);
        file.as_file().set_len(message.len() as u64).unwrap();
        let events = poll(&mut watched);
        let is_change = |event: &FollowEvent| {
            matches!(event, FollowEvent::Changed { change: FileChange::Truncated, resumed: true })
        };
        assert!(events.len() == 1 && is_change(&events[0]), "{events:?}");
    }
}
