//! Text input in chunks of whole records.
//!
//! Chunks are cut on one thread and parsed on all: a quote is found faster than a field.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr_iter, memrchr};
use tercet_core::ByteSource;

use super::decode::{Decoding, text};
use super::error::{Error, ErrorKind, NonText};
use super::format::Compression;

/// Target size of a chunk.
pub(super) const CHUNK_LEN: usize = 1 << 20;
/// Maximum size of a record.
const RECORD_LEN: usize = 128 << 20;
/// Bytes read at a time.
const READ_LEN: usize = 1 << 18;

/// Whole records.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// The line of the first byte, from 1.
    pub(super) line: u64,
    /// Bytes of the source read for it.
    pub(super) read: u64,
}

impl Chunk {
    /// Chunks of at most `most` lines.
    pub(super) fn split(self, most: usize) -> impl Iterator<Item = Self> {
        let Self { bytes, mut line, mut read } = self;
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
            let end = memchr_iter(b'\n', rest).nth(most.saturating_sub(1)).map_or(rest.len(), |at| at + 1);
            let part = Self { bytes: rest[..end].to_vec(), line, read: std::mem::take(&mut read) };
            line += memchr_iter(b'\n', &part.bytes).count() as u64;
            start += end;
            Some(part)
        })
    }
}

/// Where a record ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Boundary {
    /// At the end of a line.
    Line,
    /// At the end of a line outside quotes.
    Quoted {
        delimiter: u8,
        quote: u8,
        /// The start of a line without records.
        comment: Option<u8>,
    },
}

/// Cuts text input into chunks.
pub(super) struct Chunks {
    name: Arc<str>,
    input: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    reported: u64,
    boundary: Boundary,
    target: usize,
    buffer: Vec<u8>,
    line: u64,
    is_first: bool,
    is_done: bool,
}

/// Sequential reader of a byte source.
struct Sequential {
    source: Arc<dyn ByteSource>,
    at: u64,
    read: Arc<AtomicU64>,
}

impl Read for Sequential {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        if len == 0 {
            return Ok(0);
        }
        self.source.read_into(self.at, &mut into[..len]).map_err(io::Error::other)?;
        self.at += len as u64;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// The decompressed bytes of a source; the counter counts compressed ones.
pub(super) fn decompressed(
    source: Arc<dyn ByteSource>,
    compression: Compression,
) -> io::Result<(Box<dyn Read + Send>, Arc<AtomicU64>)> {
    let read = Arc::new(AtomicU64::new(0));
    let input = Sequential { source, at: 0, read: Arc::clone(&read) };
    let input: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(input),
        Compression::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(READ_LEN, input)))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(input)?),
    };
    Ok((input, read))
}

impl Chunks {
    /// Starts at the beginning of a source.
    pub(super) fn new(
        source: Arc<dyn ByteSource>,
        decoding: Decoding,
        boundary: Boundary,
    ) -> Result<Self, Error> {
        let name = Arc::clone(source.name());
        let (input, read) =
            text(source, decoding).map_err(|error| Error::new(Arc::clone(&name), ErrorKind::Read(error)))?;
        Ok(Self {
            name,
            input,
            read,
            reported: 0,
            boundary,
            target: CHUNK_LEN,
            buffer: Vec::new(),
            line: decoding.skip_lines.saturating_add(1),
            is_first: true,
            is_done: false,
        })
    }

    /// Sets the target size of a chunk.
    pub(super) fn with_target(mut self, target: usize) -> Self {
        self.target = target;
        self
    }

    /// The next chunk; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, Error> {
        let mut scanner = Scanner::default();
        loop {
            let is_full = self.buffer.len() >= self.target;
            if is_full || self.is_done {
                scanner.scan(&self.buffer, self.boundary);
                let end = if self.is_done { Some(self.buffer.len()) } else { scanner.end };
                if let Some(end) = end {
                    return Ok(self.cut(end));
                }
                if self.buffer.len() > RECORD_LEN {
                    let limit = RECORD_LEN as u64;
                    return Err(self.error(ErrorKind::LineTooLong { line: self.line, limit }));
                }
            }
            self.fill(if is_full { self.buffer.len() } else { READ_LEN })?;
        }
    }

    fn cut(&mut self, end: usize) -> Option<Chunk> {
        if end == 0 {
            return None;
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        self.buffer.reserve_exact(self.target + READ_LEN);
        self.buffer.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
        let line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let total = self.read.load(Ordering::Relaxed);
        let read = total - std::mem::replace(&mut self.reported, total);
        Some(Chunk { bytes, line, read })
    }

    /// Reads up to `len` more bytes.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        let len = len.clamp(READ_LEN, 8 << 20);
        let start = self.buffer.len();
        self.buffer.resize(start + len, 0);
        let mut filled = start;
        while filled < start + len {
            match self.input.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.is_done = true;
                    break;
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(filled);
                    return Err(self.error(ErrorKind::Read(error)));
                }
            }
        }
        self.buffer.truncate(filled);
        if std::mem::take(&mut self.is_first) {
            if let Some(found) = NonText::detect(&self.buffer) {
                return Err(self.error(ErrorKind::NonText(found)));
            }
            // Byte order mark.
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
        }
        Ok(())
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }
}

/// Finds the end of the last complete record.
#[derive(Debug, Default)]
struct Scanner {
    at: usize,
    in_quotes: bool,
    /// Where the last quoted field was closed; a quote there is an escaped one.
    closed: Option<usize>,
    end: Option<usize>,
}

impl Scanner {
    /// Scans the bytes that are new since the last call.
    fn scan(&mut self, bytes: &[u8], boundary: Boundary) {
        let Boundary::Quoted { delimiter, quote, comment } = boundary else {
            self.note_break(bytes, self.at, bytes.len());
            self.at = bytes.len();
            return;
        };
        let mut outside = self.at;
        for found in memchr_iter(quote, &bytes[self.at..]) {
            let at = self.at + found;
            if self.in_quotes {
                self.in_quotes = false;
                self.closed = Some(at + 1);
                outside = at + 1;
                continue;
            }
            let is_escaped = self.closed == Some(at);
            let is_opening = is_escaped || at == 0 || bytes[at - 1] == delimiter || bytes[at - 1] == b'\n';
            let is_comment = || {
                let line = memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
                comment.is_some() && bytes.get(line).copied() == comment
            };
            if is_opening && !is_comment() {
                self.note_break(bytes, outside, at);
                self.in_quotes = true;
            }
        }
        if !self.in_quotes {
            self.note_break(bytes, outside, bytes.len());
        }
        self.at = bytes.len();
    }

    fn note_break(&mut self, bytes: &[u8], from: usize, to: usize) {
        if let Some(at) = memrchr(b'\n', &bytes[from..to]) {
            self.end = Some(from + at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;

    use super::*;

    fn chunks(text: &str, target: usize) -> Vec<(String, u64)> {
        let source = Arc::new(Memory::new("t.csv", text.as_bytes().to_vec()));
        let boundary = Boundary::Quoted { delimiter: b',', quote: b'"', comment: Some(b'#') };
        let mut chunks = Chunks::new(source, Decoding::default(), boundary).unwrap().with_target(target);
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next().unwrap() {
            all.push((String::from_utf8(chunk.bytes).unwrap(), chunk.line));
        }
        all
    }

    #[test]
    fn records_with_line_breaks_are_not_cut() {
        let long = "x".repeat(READ_LEN);
        let text = format!("a,b\n1,\"{long}\n{long}\"\"\n,\"\n2,\"y\"\n{long},4\"\n5,6\n");
        let all = chunks(&text, 1);
        assert_eq!(all.iter().map(|(text, _)| text.as_str()).collect::<String>(), text);
        for (chunk, line) in &all {
            assert!(chunk.ends_with('\n'));
            let first = text.split_inclusive('\n').nth(usize::try_from(*line).unwrap() - 1).unwrap();
            assert!(chunk.starts_with(first), "line {line}");
            let quotes = chunk.matches('"').count() - chunk.matches("4\"").count();
            assert_eq!(quotes % 2, 0, "{}", &chunk[..20]);
        }
        assert!(all.len() > 1);
    }

    #[test]
    fn quotes_in_comments_open_no_field() {
        let text = "a,b\n#,\"\n1,\"x\n#\"\n\"#\",2\n";
        let lines: Vec<String> = ["a,b\n", "#,\"\n", "1,\"x\n#\"\n", "\"#\",2\n"].map(str::to_owned).into();
        let scanned = |text: &str| {
            let mut scanner = Scanner::default();
            scanner.scan(
                text.as_bytes(),
                Boundary::Quoted { delimiter: b',', quote: b'"', comment: Some(b'#') },
            );
            scanner.end
        };
        for count in 1..=lines.len() {
            let start: String = lines[..count].concat();
            assert_eq!(scanned(&start), Some(start.len()), "{start}");
        }
        assert_eq!(scanned("a,b\n1,\"x\n#"), Some(4));
        assert_eq!(chunks(text, 1), [(text.to_owned(), 1)]);
    }

    #[test]
    fn the_last_record_needs_no_line_break_and_a_mark_is_skipped() {
        assert_eq!(chunks("\u{feff}a\n1", 1), [("a\n1".to_owned(), 1)]);
        assert_eq!(chunks("", 1), []);
    }
}
