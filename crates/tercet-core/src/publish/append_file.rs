//! Appending to a file in place.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{DiskFile, FileLock, Operation, PublishError};
use crate::sink::Sink;

/// The size of the write buffer. Longer writes go to the file directly.
const BUFFER_LEN: usize = 256 * 1024;

/// The number of bytes that are written after all others are on the disk.
const COMMIT_LEN: usize = 8;

/// A locked file that grows at its end, for formats whose readers recognize an incomplete tail.
///
/// The last 8 bytes are written only after all bytes before them are synced. A record that ends with a mark of 8 bytes is
/// therefore either complete or has no mark, also after a power cut. Bytes before the start never change.
///
/// Dropping it without [`finish`](Sink::finish), or any failure, truncates the file to its old length, and writes the bytes
/// again that it replaced. A process that dies leaves an incomplete tail, for the next writer to cut.
#[derive(Debug)]
pub struct AppendFile {
    lock: FileLock,
    /// The old length of the file.
    old_len: u64,
    /// The offset of the first new byte.
    start: u64,
    /// The bytes between `start` and the old length that are written again after a failure.
    replaced: Vec<u8>,
    /// The last bytes, which are not in the file yet; they start at `buffer_at`.
    buffer: Vec<u8>,
    buffer_at: u64,
    /// The logical position.
    position: u64,
    /// The position of the file handle, if known.
    file_at: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The file is unchanged.
    Unchanged,
    /// Bytes are written.
    Changed,
    Failed,
    Finished,
}

impl AppendFile {
    /// Starts after the first `start` bytes of a locked file of `len` bytes. Of the bytes after them, `replaced` are written
    /// again if the new ones cannot be written; the others are removed for good.
    pub(super) fn new(lock: FileLock, len: u64, start: u64, replaced: Vec<u8>) -> Self {
        Self {
            lock,
            old_len: len,
            start,
            replaced,
            buffer: Vec::new(),
            buffer_at: start,
            position: start,
            file_at: None,
            state: State::Unchanged,
        }
    }

    /// The path of the file, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        self.lock.path()
    }

    /// The logical end of the file.
    fn end(&self) -> u64 {
        self.buffer_at + self.buffer.len() as u64
    }

    /// Cuts the bytes after the start, before the first write.
    fn begin(&mut self) -> Result<(), PublishError> {
        if self.state != State::Unchanged {
            return Ok(());
        }
        self.lock.check()?;
        // A program that ignores locks may have appended meanwhile.
        let len = self.attempt(Operation::Seek, |file| file.seek(SeekFrom::End(0)))?;
        if len != self.old_len {
            return Err(PublishError::Replaced { path: self.lock.given().to_owned() });
        }
        self.state = State::Changed;
        if len > self.start {
            let start = self.start;
            self.attempt(Operation::SetLen, |file| file.set_len(start))?;
            // Otherwise a power cut could leave old bytes after new ones.
            self.attempt(Operation::Sync, |file| file.sync_all())?;
        }
        self.file_at = None;
        Ok(())
    }

    /// Writes the buffer except its last `keep` bytes.
    fn write_buffer(&mut self, keep: usize) -> Result<(), PublishError> {
        let len = self.buffer.len().saturating_sub(keep);
        if len == 0 {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let at = self.buffer_at;
        self.write_at(at, buffer.get(..len).unwrap_or_default())?;
        self.buffer = buffer;
        self.buffer.drain(..len);
        self.buffer_at = at + len as u64;
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), PublishError> {
        self.begin()?;
        if self.file_at != Some(at) {
            self.attempt(Operation::Seek, |file| file.seek(SeekFrom::Start(at)))?;
        }
        self.file_at = None;
        self.attempt(Operation::Write, |file| super::atomic_file::write_all(file, bytes))?;
        self.file_at = Some(at + bytes.len() as u64);
        Ok(())
    }

    /// Syncs all bytes but the last 8, then writes these.
    fn commit(&mut self) -> Result<(), PublishError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer(COMMIT_LEN)?;
        self.attempt(Operation::Sync, |file| file.sync_all())?;
        self.write_buffer(0)
    }

    /// Makes the new bytes durable; returns the path, with symbolic links resolved.
    pub fn publish(mut self) -> Result<PathBuf, PublishError> {
        self.commit()?;
        if self.state == State::Unchanged && self.old_len > self.start {
            self.begin()?;
        }
        if self.state == State::Changed {
            self.attempt(Operation::Sync, |file| file.sync_all())?;
        }
        if self.state == State::Failed {
            return Err(self.incomplete());
        }
        self.state = State::Finished;
        Ok(self.lock.path().to_owned())
    }

    fn incomplete(&self) -> PublishError {
        PublishError::Incomplete { path: self.lock.given().to_owned() }
    }

    /// Runs one operation on the file, unless an earlier one failed.
    fn attempt<T>(
        &mut self,
        operation: Operation,
        act: impl FnOnce(&mut dyn DiskFile) -> io::Result<T>,
    ) -> Result<T, PublishError> {
        if self.state == State::Failed {
            return Err(self.incomplete());
        }
        act(self.lock.file_mut()).map_err(|error| {
            let is_changed = self.state == State::Changed;
            self.state = State::Failed;
            if is_changed {
                self.cut_back();
            }
            self.lock.target().error(operation, error)
        })
    }

    /// Restores the old end, best effort: a tail that stays is incomplete, and the next writer cuts it.
    fn cut_back(&mut self) {
        let (start, replaced) = (self.start, &self.replaced);
        let file = self.lock.file_mut();
        let restored = file.set_len(start).and_then(|()| {
            if !replaced.is_empty() {
                file.seek(SeekFrom::Start(start))?;
                super::atomic_file::write_all(file, replaced)?;
            }
            file.sync_all()
        });
        if restored.is_err() {
            let _ = file.set_len(start);
        }
    }
}

impl Drop for AppendFile {
    fn drop(&mut self) {
        if self.state == State::Changed {
            self.cut_back();
        }
    }
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.state == State::Failed {
            return Err(self.incomplete().into());
        }
        if self.position < self.end() {
            // A change of bytes that are already written: up to the buffer, or inside it.
            let room =
                if self.position < self.buffer_at { self.buffer_at } else { self.end() } - self.position;
            let len = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let bytes = bytes.get(..len).unwrap_or_default();
            match self.position.checked_sub(self.buffer_at) {
                Some(at) => {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    if let Some(part) = self.buffer.get_mut(at..at.saturating_add(len)) {
                        part.copy_from_slice(bytes);
                    }
                }
                None => self.write_at(self.position, bytes)?,
            }
            self.position += len as u64;
            return Ok(len);
        }
        if bytes.len() > BUFFER_LEN {
            self.write_buffer(0)?;
            let (now, last) = bytes.split_at(bytes.len() - COMMIT_LEN);
            self.write_at(self.buffer_at, now)?;
            self.buffer_at += now.len() as u64;
            self.buffer.extend_from_slice(last);
        } else {
            if self.buffer.len() + bytes.len() > BUFFER_LEN {
                self.write_buffer(COMMIT_LEN)?;
            }
            self.buffer.extend_from_slice(bytes);
        }
        self.position = self.end();
        Ok(bytes.len())
    }

    /// Does nothing: bytes are written in order, and the last ones by [`checkpoint`](Sink::checkpoint).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for AppendFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end().checked_add_signed(by),
        };
        match target.filter(|at| (self.start..=self.end()).contains(at)) {
            Some(at) => {
                self.position = at;
                Ok(at)
            }
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl Sink for AppendFile {
    type Output = PathBuf;

    fn checkpoint(&mut self) -> io::Result<()> {
        self.commit()?;
        if self.state == State::Changed {
            self.attempt(Operation::Sync, |file| file.sync_all())?;
        }
        Ok(())
    }

    fn finish(self) -> io::Result<PathBuf> {
        Ok(self.publish()?)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at the file as other programs do")]
mod tests {
    use super::*;

    fn start(path: &Path, keep: u64, replaced: &[u8]) -> AppendFile {
        let len = std::fs::metadata(path).unwrap().len();
        FileLock::acquire(path).unwrap().extend(len, keep, replaced.to_vec())
    }

    #[test]
    fn the_last_bytes_are_written_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"old").unwrap();
        let mut file = start(&path, 3, b"");
        let long = vec![b'x'; BUFFER_LEN + 100];
        file.write_all(&long).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 3 + long.len() - COMMIT_LEN);
        // Both in the file and in the buffer.
        file.seek(SeekFrom::Start(3)).unwrap();
        file.write_all(b"A").unwrap();
        file.seek(SeekFrom::End(-10)).unwrap();
        file.write_all(b"YYYYYYYYYYZ").unwrap();
        file.publish().unwrap();
        let mut expected = [b"old", &long[..], b"Z"].concat();
        expected[3] = b'A';
        let end = expected.len() - 11;
        expected[end..end + 10].fill(b'Y');
        assert!(std::fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn an_unfinished_append_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"old index").unwrap();
        let mut file = start(&path, 4, b"index");
        file.write_all(&vec![b'x'; 2 * BUFFER_LEN]).unwrap();
        file.checkpoint().unwrap();
        assert!(std::fs::read(&path).unwrap().ends_with(b"xxxx"));
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"old index");
        assert!(start(&path, 4, b"").seek(SeekFrom::Start(3)).is_err(), "old bytes cannot be changed");
        assert_eq!(std::fs::read(&path).unwrap(), b"old index");
    }

    #[test]
    fn an_append_by_another_program_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"old").unwrap();
        let mut file = start(&path, 3, b"");
        std::fs::write(&path, b"older").unwrap();
        file.write_all(b"new").unwrap();
        assert!(matches!(file.publish().unwrap_err(), PublishError::Replaced { .. }));
        assert_eq!(std::fs::read(&path).unwrap(), b"older");
    }
}
