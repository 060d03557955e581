//! Spools: temporary files for records that are written later.
//!
//! Blob runs and bloom filters are stored after all row groups, but produced while the groups are written. They are spooled to
//! an unnamed temporary file, in the directory of the target if there is one; small spools stay in memory.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

/// Maximum size in memory.
#[cfg(any(unix, windows))]
const MEMORY_LEN: usize = 1 << 20;

/// Size of copies.
const COPY_LEN: usize = 1 << 18;

#[cfg(any(unix, windows))]
type Storage = tempfile::SpooledTempFile;
#[cfg(not(any(unix, windows)))]
type Storage = io::Cursor<Vec<u8>>;

/// Bytes that are written once and read once.
#[derive(Debug)]
pub(crate) struct Spool {
    waiting: Storage,
    len: u64,
}

impl Spool {
    #[cfg(any(unix, windows))]
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        let waiting = match directory {
            Some(directory) => tempfile::spooled_tempfile_in(MEMORY_LEN, directory),
            None => tempfile::spooled_tempfile(MEMORY_LEN),
        };
        Self { waiting, len: 0 }
    }

    #[cfg(not(any(unix, windows)))]
    pub(crate) fn new(_folder: Option<&Path>) -> Self {
        Self { waiting: io::Cursor::new(Vec::new()), len: 0 }
    }

    /// Appends bytes and returns their offset.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> io::Result<u64> {
        let start = self.len;
        for part in parts {
            self.waiting.write_all(part)?;
            self.len += part.len() as u64;
        }
        Ok(start)
    }

    /// Reads everything from the start.
    pub(crate) fn into_reader(mut self) -> io::Result<impl io::Read + Send + 'static> {
        self.waiting.seek(SeekFrom::Start(0))?;
        Ok(self.waiting)
    }

    /// Copies everything and returns the number of bytes.
    pub(crate) fn copy_to(mut self, sink: &mut impl Write) -> io::Result<u64> {
        self.waiting.seek(SeekFrom::Start(0))?;
        let mut left = self.len;
        let mut buffer = vec![0; COPY_LEN];
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(COPY_LEN).min(COPY_LEN);
            self.waiting.read_exact(&mut buffer[..len])?;
            sink.write_all(&buffer[..len])?;
            left -= len as u64;
        }
        Ok(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spooled_bytes_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        for len in [0, 1, COPY_LEN, 3 * MEMORY_LEN + 5] {
            let bytes: Vec<u8> = (0..len).map(|at| (at * at / 7) as u8).collect();
            let mut spool = Spool::new(Some(directory.path()));
            assert_eq!(spool.push(&[&bytes[..len / 3], b"xy"]).unwrap(), 0);
            assert_eq!(spool.push(&[&bytes[len / 3..]]).unwrap(), len as u64 / 3 + 2);
            let mut out = Vec::new();
            assert_eq!(spool.copy_to(&mut out).unwrap(), len as u64 + 2);
            assert_eq!(out, [&bytes[..len / 3], b"xy", &bytes[len / 3..]].concat());
            assert_eq!(directory.path().read_dir().unwrap().count(), 0, "the file has no name");
        }
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(Some(&directory.path().join("missing")));
        spool.push(&[b"a little stays in memory"]).unwrap();
        assert!(spool.push(&[&vec![0; MEMORY_LEN + 1]]).is_err());
    }
}
