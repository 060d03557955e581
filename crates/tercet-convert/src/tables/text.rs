//! Lines of text input.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use tercet_core::{ByteSource, Span};

use super::error::{Error, ErrorKind, NonText};

/// Maximum line length.
const LINE_BYTES: u64 = 1 << 30;

/// Sequential reader of a byte source.
#[derive(Debug)]
struct Sequential {
    source: Arc<dyn ByteSource>,
    at: u64,
}

impl Read for Sequential {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let len = left.min(into.len() as u64);
        if len == 0 {
            return Ok(0);
        }
        let span = Span::at(self.at, len).ok_or(io::ErrorKind::InvalidInput)?;
        let bytes = self.source.read_at(span).map_err(io::Error::other)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// A line reader with line numbers.
#[derive(Debug)]
pub(super) struct Lines {
    name: Arc<str>,
    from: BufReader<Sequential>,
    line: Vec<u8>,
    /// The current line number, from 1.
    number: u64,
    /// Bytes read so far.
    bytes: u64,
}

impl Lines {
    /// Creates a reader of a byte source.
    pub(super) fn new(source: Arc<dyn ByteSource>) -> Self {
        let name = Arc::clone(source.name());
        let from = BufReader::with_capacity(1 << 18, Sequential { source, at: 0 });
        Self { name, from, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line with its line break; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.line.clear();
        let read = (&mut self.from).take(LINE_BYTES + 1).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.error(ErrorKind::Read(error)))?;
        if read as u64 > LINE_BYTES {
            return Err(self.error(ErrorKind::LineTooLong { line: self.number + 1, limit: LINE_BYTES }));
        }
        self.number += 1;
        self.bytes += read as u64;
        if self.number == 1
            && let Some(found) = NonText::detect(&self.line)
        {
            return Err(self.error(ErrorKind::NonText(found)));
        }
        // Byte order mark.
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok((read > 0).then_some(&self.line[..]))
    }

    /// The number of the line returned last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error of the input.
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }

    /// A line that breaks the rules of the format.
    pub(super) fn malformed(&self, line: u64, reason: &str) -> Error {
        self.error(ErrorKind::Malformed { line, reason: reason.into() })
    }
}
