//! The lines of an input.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use tercet::core::{ByteSource, Class, Span};

use crate::failure::Failure;
use crate::render::human_size;

/// The longest line that is taken.
const LINE_BYTES: u64 = 1 << 30;

/// A source of bytes, read from its start to its end.
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

/// Lines with their numbers.
#[derive(Debug)]
pub(super) struct Lines {
    name: String,
    from: BufReader<Sequential>,
    line: Vec<u8>,
    /// The number of the line at hand, from 1.
    number: u64,
    /// Bytes that were read.
    bytes: u64,
}

impl Lines {
    /// The lines of a file.
    pub(super) fn of(source: Arc<dyn ByteSource>) -> Self {
        let name = source.name().to_string();
        let from = BufReader::with_capacity(1 << 18, Sequential { source, at: 0 });
        Self { name, from, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// The next line with its break; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.line.clear();
        let read = (&mut self.from).take(LINE_BYTES + 1).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Failure::io(&format!("{}: cannot read", self.name), &error))?;
        if read as u64 > LINE_BYTES {
            let (name, limit) = (&self.name, human_size(LINE_BYTES));
            let said = format!("{name}: line {} is longer than {limit}", self.number + 1);
            return Err(Failure::new(Class::Limit, said));
        }
        self.number += 1;
        self.bytes += read as u64;
        if self.number == 1
            && let Some((what, hint)) = not_text(&self.line)
        {
            let failure = Failure::new(Class::Unsupported, format!("{}: {what}", self.name));
            return Err(failure.with_hint(hint));
        }
        // What some programs put in front of UTF-8 is no part of it.
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok((read > 0).then_some(&self.line[..]))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The number of the line that [`next`](Self::next) gave last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error about the line at hand.
    pub(super) fn refused(&self, class: Class, line: u64, reason: &str) -> Failure {
        Failure::new(class, format!("{}: line {line}: {reason}", self.name))
    }
}

/// What bytes are that are known to be no text, and what to do with them.
pub(in crate::cmd::tatami) fn not_text(start: &[u8]) -> Option<(&'static str, &'static str)> {
    const UNPACK: &str =
        "unpack it first: the rows are read from standard input with `-` in the place of the file";
    const CONVERT: &str = "`tatami convert` reads it, without `--from-format`";
    Some(match start {
        [0x1f, 0x8b, ..] => ("is compressed with gzip, not text", UNPACK),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("is compressed with zstd, not text", UNPACK),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("is text in UTF-16, not UTF-8", "save it as UTF-8"),
        [b'P', b'K', 3, 4, ..] => ("is a ZIP archive, not text", UNPACK),
        [b'P', b'A', b'R', b'1', ..] => ("is a Parquet file, not text", CONVERT),
        [b'A', b'R', b'R', b'O', b'W', b'1', 0, ..] => ("is an Arrow file, not text", CONVERT),
        [b'T', b'A', b'T', b'1', ..] => ("is a .tatami file, not text", CONVERT),
        _ => return None,
    })
}
