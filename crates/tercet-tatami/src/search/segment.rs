//! An open search segment.

use serde::Serialize;
use tercet_core::Why;

use super::cursor::{Cursor, END};
use super::live::Live;
use super::postings::Postings;
use super::terms::Terms;
use super::{analyze, score, wand};
use crate::fault::{Error, Fault};
use crate::file::{File, Inner, section_fault};
use crate::record::fault;
use crate::region::Region;
use crate::wire::footer::INVERTED;
use crate::wire::ids::{Kind, file_flags};

/// A file with documents and an index of their words.
#[derive(Debug)]
pub struct Segment {
    pub(super) file: File,
    pub(super) terms: Terms,
    pub(super) postings: Postings,
    pub(super) live: Option<Live>,
    pub(super) documents: u64,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its row in the file.
    pub document: u32,
    /// How well it fits.
    pub score: f32,
}

/// What a search looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchStats {
    /// Words of the query that are in the dictionary.
    pub terms: u64,
    /// Blocks of their lists.
    pub blocks: u64,
    /// Blocks that were decoded.
    pub blocks_decoded: u64,
    /// Documents whose score was computed.
    pub documents_scored: u64,
}

/// A word of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermInfo {
    /// Documents that hold it, deleted ones included.
    pub documents: u64,
    /// Whether it is in one document only, which the dictionary tells itself.
    pub singleton: bool,
    /// The documents and how often each holds it.
    pub postings: Vec<(u32, u32)>,
}

impl File {
    /// The index of the file, if it is a search segment. Its records are read and checked here.
    pub fn segment(&self) -> Result<Option<Segment>, Error> {
        if !self.header().has(file_flags::ROLE_SEARCH_SEG) {
            return Ok(None);
        }
        Segment::open(self).map(Some).map_err(|fault| self.error(fault))
    }
}

impl Segment {
    fn open(file: &File) -> Result<Self, Fault> {
        let inner = file.inner();
        inner.check_features()?;
        let Some(inverted) = &inner.footer.inverted else {
            let rule = "a file with the search role has an inverted descriptor";
            return Err(section_fault(INVERTED, "inverted", Why::Misplaced { rule }));
        };
        let tree = inner.header.has(file_flags::BLOCK_TREE);
        let limit = inner.options.limits.chunk_bytes;
        let (span, payload) =
            part(inner, "term dictionary", inverted.term_dict_offset, inverted.term_dict_length)?;
        let terms = Terms::parse(span, &payload, tree, limit)?;
        let (span, payload) = part(inner, "postings", inverted.postings_offset, inverted.postings_length)?;
        let (skips_span, skips) = part(inner, "skip tables", inverted.skips_offset, inverted.skips_length)?;
        let postings = Postings::parse(span, payload, skips_span, skips)?;
        let numbers = [
            ("num_terms", inverted.num_terms, terms.count, "the words of the term dictionary"),
            ("num_docs", inverted.num_docs, inner.header.rows, "the rows of the file"),
        ];
        for (field, found, expected, because) in numbers {
            if found != expected {
                return Err(section_fault(INVERTED, field, Why::Disagrees { found, expected, because }));
            }
        }
        let live = if inverted.live_length == 0 {
            None
        } else {
            let (span, payload) = part(inner, "live documents", inverted.live_offset, inverted.live_length)?;
            Some(Live::parse(span.start(), &payload, inverted.num_docs)?)
        };
        Ok(Self { file: file.clone(), terms, postings, live, documents: inverted.num_docs })
    }

    /// The file with the documents.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Documents, deleted ones included.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Documents that are not deleted.
    pub fn live_documents(&self) -> u64 {
        self.live.as_ref().map_or(self.documents, Live::count)
    }

    /// Words of the dictionary.
    pub fn term_count(&self) -> u64 {
        self.terms.count
    }

    /// Whether the documents themselves are not in the file, only their beginnings.
    pub fn is_snippet_only(&self) -> bool {
        self.file.schema().fields().get(3).is_some_and(|field| field.kind != crate::Type::BlobRef)
    }

    /// The best `k` documents for the words of a text, with the ranking of the format.
    pub fn search(&self, text: &str, k: usize) -> Result<Vec<Hit>, Error> {
        Ok(self.search_with_stats(text, k)?.0)
    }

    /// The same, and what was looked at.
    pub fn search_with_stats(&self, text: &str, k: usize) -> Result<(Vec<Hit>, SearchStats), Error> {
        let words = analyze::tokens(text.as_bytes());
        self.ranked(&words, k).map_err(|fault| self.file.error(fault))
    }

    fn ranked(&self, words: &[String], k: usize) -> Result<(Vec<Hit>, SearchStats), Fault> {
        let mut stats = SearchStats::default();
        if k == 0 {
            return Ok((Vec::new(), stats));
        }
        let mut cursors = Vec::with_capacity(words.len());
        for word in words {
            let Some(entry) = self.terms.get(word.as_bytes())? else { continue };
            let idf = score::idf(self.documents, entry.documents().into());
            cursors.push(Cursor::new(&self.postings, entry, idf, self.documents)?);
        }
        let (best, scored) = wand::best(&mut cursors, self.live.as_ref(), k)?;
        stats.terms = cursors.len() as u64;
        stats.blocks = cursors.iter().map(Cursor::blocks).sum();
        stats.blocks_decoded = cursors.iter().map(|cursor| cursor.blocks_decoded).sum();
        stats.documents_scored = scored;
        let hits = best.into_iter().map(|(document, score)| Hit { document, score }).collect();
        Ok((hits, stats))
    }

    /// The best documents for some words, each as rare as `idf` says of the word and the documents that hold it here.
    pub(super) fn best(
        &self,
        words: &[String],
        k: usize,
        idf: &dyn Fn(&str, u64) -> f32,
    ) -> Result<Vec<Hit>, Error> {
        let best = || -> Result<Vec<Hit>, Fault> {
            let mut cursors = Vec::with_capacity(words.len());
            for word in words {
                let Some(entry) = self.terms.get(word.as_bytes())? else { continue };
                let idf = idf(word, entry.documents().into());
                cursors.push(Cursor::new(&self.postings, entry, idf, self.documents)?);
            }
            let (best, _) = wand::best(&mut cursors, self.live.as_ref(), k)?;
            Ok(best.into_iter().map(|(document, score)| Hit { document, score }).collect())
        };
        if k == 0 {
            return Ok(Vec::new());
        }
        best().map_err(|fault| self.file.error(fault))
    }

    /// What is known about a word.
    pub fn term(&self, word: &str) -> Result<Option<TermInfo>, Error> {
        let found =
            self.terms.get(word.as_bytes()).and_then(|entry| entry.map(|entry| self.info(entry)).transpose());
        found.map_err(|fault| self.file.error(fault))
    }

    /// Calls `each` with every word, in order.
    pub fn for_each_term(&self, mut each: impl FnMut(&[u8], TermInfo)) -> Result<(), Error> {
        let mut failed = None;
        let walked = self.terms.for_each(&mut |word, entry| match self.info(entry) {
            Ok(info) if failed.is_none() => each(word, info),
            Ok(_) => {}
            Err(fault) => failed = failed.take().or(Some(fault)),
        });
        walked.and(failed.map_or(Ok(()), Err)).map_err(|fault| self.file.error(fault))
    }

    fn info(&self, entry: super::terms::Entry) -> Result<TermInfo, Fault> {
        let mut cursor = Cursor::new(&self.postings, entry, 0.0, self.documents)?;
        let mut postings = Vec::with_capacity(entry.documents() as usize);
        while cursor.document() != END {
            postings.push((cursor.document(), cursor.frequency()?));
            cursor.advance()?;
        }
        let singleton = matches!(entry, super::terms::Entry::Singleton { .. });
        Ok(TermInfo { documents: entry.documents().into(), singleton, postings })
    }
}

/// A record of the inverted region, whose length the footer tells.
fn part(
    inner: &Inner,
    name: &'static str,
    offset: u64,
    length: u64,
) -> Result<(tercet_core::Span, bytes::Bytes), Fault> {
    let region = Region::Inverted { part: name };
    let record = inner.record(region, offset, Kind::Index)?;
    if record.span.len() != length {
        let because = "the length in the footer";
        let why = Why::Disagrees { found: record.span.len(), expected: length, because };
        return Err(fault(region, "stored_size", offset + 12, 4, why));
    }
    Ok((record.span, record.stored))
}
