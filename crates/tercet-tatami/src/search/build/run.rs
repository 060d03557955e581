//! Sorted runs: terms in order, with their documents.
//!
//! ```text
//! term    uvarint length, bytes │ uvarint pieces │ piece …
//! piece   uvarint documents, bytes │ per document: uvarint gap, uvarint frequency (the first gap from 0), with positions their gaps
//! ```
//!
//! A run holds consecutive documents. Pieces of later documents are appended without decoding.

use std::io::{self, Read};

use tercet_codec::varint;

use crate::search::postings::varints_len;

/// Size of reads from a file.
const READ_LEN: usize = 1 << 16;

/// A document of a term.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunPosting {
    pub(super) document: u32,
    pub(super) frequency: u32,
    /// Where the gaps between the positions start.
    pub(super) start: u64,
}

impl RunPosting {
    /// The gaps between its positions.
    fn gaps<'g>(&self, gaps: Option<&'g [u8]>) -> &'g [u8] {
        let from = usize::try_from(self.start).ok().and_then(|start| gaps?.get(start..)).unwrap_or_default();
        &from[..varints_len(from, self.frequency as usize).unwrap_or(0)]
    }
}

/// Appends a term of one piece. `gaps` has the positions of all postings, if they are recorded.
pub(super) fn put_term(term: &[u8], postings: &[RunPosting], gaps: Option<&[u8]>, out: &mut Vec<u8>) {
    varint::put(term.len() as u64, out);
    out.extend_from_slice(term);
    varint::put(1, out);
    let mut before = 0;
    let mut len = 0;
    for posting @ RunPosting { document, frequency, .. } in postings {
        len += varint::len((document - before).into()) + varint::len((*frequency).into());
        len += posting.gaps(gaps).len();
        before = *document;
    }
    varint::put(postings.len() as u64, out);
    varint::put(len as u64, out);
    before = 0;
    for posting @ RunPosting { document, frequency, .. } in postings {
        varint::put((document - before).into(), out);
        varint::put((*frequency).into(), out);
        out.extend_from_slice(posting.gaps(gaps));
        before = *document;
    }
}

/// Reader of a run.
pub(super) struct Reader {
    input: Option<Box<dyn Read + Send>>,
    buffer: Vec<u8>,
    at: usize,
    term: Vec<u8>,
    pieces: u64,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("term", &String::from_utf8_lossy(&self.term)).finish_non_exhaustive()
    }
}

impl Reader {
    /// A run in memory.
    pub(super) const fn memory(run: Vec<u8>) -> Self {
        Self { input: None, buffer: run, at: 0, term: Vec::new(), pieces: 0 }
    }

    /// A run in a file.
    pub(super) fn file(input: impl Read + Send + 'static) -> Self {
        let input: Box<dyn Read + Send> = Box::new(input);
        Self { input: Some(input), buffer: Vec::new(), at: 0, term: Vec::new(), pieces: 0 }
    }

    /// Advances to the next term; false at the end. The pieces of the current term must be read first.
    pub(super) fn next(&mut self) -> io::Result<bool> {
        debug_assert_eq!(self.pieces, 0, "unread pieces");
        if self.available(1)? == 0 {
            return Ok(false);
        }
        let len = self.number()?;
        self.need(len)?;
        self.term.clear();
        self.term.extend_from_slice(&self.buffer[self.at..self.at + len]);
        self.at += len;
        self.pieces = self.number()? as u64;
        Ok(true)
    }

    pub(super) fn term(&self) -> &[u8] {
        &self.term
    }

    pub(super) const fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The next piece: number of documents and bytes.
    pub(super) fn piece(&mut self) -> io::Result<(usize, &[u8])> {
        self.pieces -= 1;
        let documents = self.number()?;
        let len = self.number()?;
        self.need(len)?;
        self.at += len;
        Ok((documents, &self.buffer[self.at - len..self.at]))
    }

    fn number(&mut self) -> io::Result<usize> {
        self.available(varint::MAX_BYTES)?;
        let (value, used) = varint::get(&self.buffer[self.at..]).map_err(io::Error::other)?;
        self.at += used;
        usize::try_from(value).map_err(io::Error::other)
    }

    fn need(&mut self, len: usize) -> io::Result<()> {
        let there = self.available(len)? >= len;
        there.then_some(()).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Fills the buffer up to this many bytes; returns the number available.
    fn available(&mut self, len: usize) -> io::Result<usize> {
        while self.buffer.len() - self.at < len
            && let Some(input) = &mut self.input
        {
            self.buffer.drain(..self.at);
            self.at = 0;
            let had = self.buffer.len();
            let want = READ_LEN.max(len - had);
            let got = input.by_ref().take(want as u64).read_to_end(&mut self.buffer)?;
            if got == 0 {
                self.input = None;
            }
        }
        Ok(self.buffer.len() - self.at)
    }
}

/// Calls `each` with the documents of a piece, their frequencies and the gaps between their positions.
#[inline]
pub(super) fn each_posting<E: From<io::Error>>(
    documents: usize,
    mut bytes: &[u8],
    has_positions: bool,
    mut each: impl FnMut(u32, u32, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut document = 0u32;
    let next = |bytes: &mut &[u8]| {
        let (value, used) = varint::get(bytes).map_err(io::Error::other)?;
        *bytes = &bytes[used..];
        u32::try_from(value).map_err(io::Error::other)
    };
    for _ in 0..documents {
        document += next(&mut bytes)?;
        let frequency = next(&mut bytes)?;
        let mut len = 0;
        if has_positions {
            let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
            len = varints_len(bytes, frequency as usize).ok_or_else(end)?;
        }
        let (gaps, rest) = bytes.split_at(len);
        bytes = rest;
        each(document, frequency, gaps)?;
    }
    Ok(())
}
