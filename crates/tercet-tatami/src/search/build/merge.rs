//! Spilled runs and their merge.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::{Path, PathBuf};

use tercet_codec::varint;

use super::run::{self, Reader};
use crate::error::ErrorKind;
use crate::search::inverted::InvertedWriter;
use crate::writer::Spool;

/// Size of writes to a file.
const WRITE_LEN: usize = 1 << 18;

/// Runs in the order of their documents: first those in files, then those in memory.
#[derive(Debug)]
pub(super) struct Runs {
    directory: Option<PathBuf>,
    limit: u64,
    files: Vec<Spool>,
    memory: Vec<Vec<u8>>,
    held: u64,
}

impl Runs {
    pub(super) fn new(directory: Option<&Path>, limit: u64) -> Self {
        let directory = directory.map(Path::to_owned);
        Self { directory, limit, files: Vec::new(), memory: Vec::new(), held: 0 }
    }

    /// Adds the run of the next documents.
    pub(super) fn push(&mut self, run: Vec<u8>) -> Result<(), ErrorKind> {
        self.held += run.len() as u64;
        self.memory.push(run);
        if self.held >= self.limit { self.spill() } else { Ok(()) }
    }

    /// Merges the runs in memory to one run in a file.
    fn spill(&mut self) -> Result<(), ErrorKind> {
        let mut spool = Spool::new(self.directory.as_deref());
        let mut out = Vec::with_capacity(WRITE_LEN);
        let readers = std::mem::take(&mut self.memory).into_iter().map(Reader::memory);
        let mut merged = Merge::new(readers)?;
        // A term is written once all of its pieces are known.
        let mut pieces = 0;
        let mut stored = Vec::new();
        while let Some(term) = merged.next() {
            varint::put(term.len() as u64, &mut out);
            out.extend_from_slice(term);
            merged.pieces(|documents, bytes| {
                pieces += 1;
                varint::put(documents as u64, &mut stored);
                varint::put(bytes.len() as u64, &mut stored);
                stored.extend_from_slice(bytes);
                Ok(())
            })?;
            varint::put(std::mem::take(&mut pieces), &mut out);
            out.append(&mut stored);
            if out.len() >= WRITE_LEN {
                spool.push(&[&out])?;
                out.clear();
            }
        }
        spool.push(&[&out])?;
        self.files.push(spool);
        self.held = 0;
        Ok(())
    }

    /// Merges all runs into the writer.
    pub(super) fn merge_into(self, out: &mut InvertedWriter, has_positions: bool) -> Result<(), ErrorKind> {
        let files = self.files.into_iter().map(|file| file.into_reader().map(Reader::file));
        let files = files.collect::<io::Result<Vec<_>>>()?;
        let mut merged = Merge::new(files.into_iter().chain(self.memory.into_iter().map(Reader::memory)))?;
        while let Some(term) = merged.next() {
            out.begin(term)?;
            merged.pieces(|documents, bytes| {
                run::each_posting(documents, bytes, has_positions, |document, frequency, gaps| {
                    out.push_with(document, frequency, gaps)
                })
            })?;
        }
        Ok(())
    }
}

/// K-way merge of runs by term.
struct Merge {
    heads: BinaryHeap<Head>,
    term: Vec<u8>,
}

/// A run and its current term. Ordered in reverse, by term and run, so that the first is on top of the heap.
struct Head {
    reader: Reader,
    number: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        other.reader.term().cmp(self.reader.term()).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl Merge {
    fn new(readers: impl Iterator<Item = Reader>) -> Result<Self, ErrorKind> {
        let mut heads = BinaryHeap::new();
        for (number, mut reader) in readers.enumerate() {
            if reader.next()? {
                heads.push(Head { reader, number });
            }
        }
        Ok(Self { heads, term: Vec::new() })
    }

    /// Advances to the next term.
    fn next(&mut self) -> Option<&[u8]> {
        let head = self.heads.peek()?;
        self.term.clear();
        self.term.extend_from_slice(head.reader.term());
        Some(&self.term)
    }

    /// Calls `each` with the pieces of the term, in document order.
    fn pieces(
        &mut self,
        mut each: impl FnMut(usize, &[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        while let Some(mut head) = self.heads.peek_mut() {
            if *head.reader.term() != *self.term {
                break;
            }
            while head.reader.pieces() > 0 {
                let (documents, bytes) = head.reader.piece()?;
                each(documents, bytes)?;
            }
            if !head.reader.next()? {
                PeekMut::pop(head);
            }
        }
        Ok(())
    }
}
