//! Lines of text input.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use tercet::core::{ByteSource, Class, Span};

use crate::failure::Failure;
use crate::render::human_size;

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
    name: String,
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
        let name = source.name().to_string();
        let from = BufReader::with_capacity(1 << 18, Sequential { source, at: 0 });
        Self { name, from, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line with its line break; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.line.clear();
        let read = (&mut self.from).take(LINE_BYTES + 1).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Failure::io(&format!("{}: cannot read", self.name), &error))?;
        if read as u64 > LINE_BYTES {
            let (name, limit) = (&self.name, human_size(LINE_BYTES));
            let message = format!("{name}: line {} exceeds {limit}", self.number + 1);
            return Err(Failure::new(Class::Limit, message));
        }
        self.number += 1;
        self.bytes += read as u64;
        if self.number == 1
            && let Some((what, hint)) = not_text(&self.line)
        {
            let failure = Failure::new(Class::Unsupported, format!("{}: {what}", self.name));
            return Err(failure.with_hint(hint));
        }
        // Byte order mark.
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok((read > 0).then_some(&self.line[..]))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The number of the line returned last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error of a line.
    pub(super) fn failure(&self, class: Class, line: u64, reason: &str) -> Failure {
        Failure::new(class, format!("{}: line {line}: {reason}", self.name))
    }
}

/// Detects known binary formats: description and hint.
pub(in crate::cmd::tatami) fn not_text(start: &[u8]) -> Option<(&'static str, &'static str)> {
    const UNPACK: &str = "decompress it first and pass it on standard input with `-`";
    const CONVERT: &str = "use `tatami convert` without `--from-format`";
    Some(match start {
        [0x1f, 0x8b, ..] => ("gzip-compressed data, not text", UNPACK),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd-compressed data, not text", UNPACK),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("UTF-16 text, not UTF-8", "save it as UTF-8"),
        [b'P', b'K', 3, 4, ..] => ("ZIP archive, not text", UNPACK),
        [b'P', b'A', b'R', b'1', ..] => ("Parquet file, not text", CONVERT),
        [b'A', b'R', b'R', b'O', b'W', b'1', 0, ..] => ("Arrow file, not text", CONVERT),
        [b'T', b'A', b'T', b'1', ..] => (".tatami file, not text", CONVERT),
        _ => return None,
    })
}
