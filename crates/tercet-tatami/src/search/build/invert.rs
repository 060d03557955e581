//! The terms of a block of documents, sorted, with their postings.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use tercet_codec::varint;

use super::run::RunPosting;
use super::{Block, StorageMode, run};
use crate::column::Strings;
use crate::search::analyze;
use crate::search::analyzer::Analyzer;
use crate::search::positions::GAP;
use crate::search::query::DocField;

/// An inverted block.
#[derive(Debug)]
pub(super) struct InvertedBlock {
    /// See [`run`].
    pub(super) run: Vec<u8>,
    /// The number of terms in body, title, anchor text and URL of each document.
    pub(super) norms: [Vec<u16>; 4],
    pub(super) snippets: Option<Strings>,
}

/// Inverts a block whose first document has this number.
pub(super) fn count(
    block: &Block,
    first: u32,
    mode: StorageMode,
    analyzer: Analyzer,
    with_positions: bool,
) -> InvertedBlock {
    let mut terms = TermCounter { with_positions, ..TermCounter::default() };
    let mut tokenizer = analyzer.tokenizer();
    let mut entry = String::new();
    let mut norms: [Vec<u16>; 4] = std::array::from_fn(|_| Vec::with_capacity(block.ids.len()));
    for document in 0..block.ids.len() {
        let fields = [
            (&block.bodies, None),
            (&block.titles, Some(DocField::Title)),
            (&block.anchors, Some(DocField::Anchor)),
            (&block.urls, Some(DocField::Url)),
        ];
        for ((texts, field), norm) in fields.into_iter().zip(&mut norms) {
            let entry_field = field.filter(|_| analyzer.has_fields());
            let mut count = 0u32;
            // No phrase reaches over the distance, or matches an anchor text.
            terms.position = terms.position.saturating_add(if field.is_some() { GAP } else { 0 });
            let step = if field == Some(DocField::Anchor) { GAP } else { 1 };
            tokenizer.spans(texts.get(document), |_, term| {
                terms.position = terms.position.saturating_add(step);
                terms.add(term.as_bytes());
                if let Some(field) = entry_field {
                    entry.clear();
                    entry.push_str(field.name());
                    entry.push(':');
                    entry.push_str(term);
                    terms.add(entry.as_bytes());
                }
                count += 1;
            });
            norm.push(u16::try_from(count).unwrap_or(u16::MAX));
        }
        terms.end(first + u32::try_from(document).unwrap_or(u32::MAX));
    }
    let snippets = match mode {
        StorageMode::Full => None,
        StorageMode::Snippet(limit) => {
            Some(block.bodies.iter().map(|body| analyze::snippet(body, limit)).collect())
        }
    };
    InvertedBlock { run: terms.into_run(), norms, snippets }
}

/// Counts terms of a block, numbered by first occurrence.
#[derive(Debug, Default)]
struct TermCounter {
    /// Random key, so that terms cannot be crafted to collide.
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    bytes: Vec<u8>,
    /// The end of each term.
    ends: Vec<u32>,
    /// The number of documents of each term.
    found: Vec<u32>,
    /// Frequency in the current document.
    here: Vec<u32>,
    /// The terms of the current document.
    touched: Vec<u32>,
    postings: Vec<RunPosting>,
    /// The term of each posting.
    terms: Vec<u32>,
    with_positions: bool,
    /// The position in the current document, and those of its terms.
    position: u32,
    here_positions: Vec<(u32, u32)>,
    /// The gaps between the positions of all postings.
    gaps: Vec<u8>,
}

fn text<'a>(bytes: &'a [u8], ends: &[u32], term: u32) -> &'a [u8] {
    let term = term as usize;
    let start = if term == 0 { 0 } else { ends[term - 1] as usize };
    &bytes[start..ends[term] as usize]
}

impl TermCounter {
    /// Counts a term of the current document.
    #[inline]
    fn add(&mut self, term: &[u8]) {
        let number = self.number(term);
        let here = &mut self.here[number as usize];
        if *here == 0 {
            self.touched.push(number);
        }
        *here = here.saturating_add(1);
        if self.with_positions {
            self.here_positions.push((number, self.position));
        }
    }

    #[inline]
    fn number(&mut self, term: &[u8]) -> u32 {
        let Self { hasher, table, bytes, ends, found, here, .. } = self;
        let hash = hasher.hash_one(term);
        if let Some(number) = table.find(hash, |number| text(bytes, ends, *number) == term) {
            return *number;
        }
        // Blocks are short unless a document is long, and document fields are shorter than 4 GiB.
        let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(term);
        ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        found.push(0);
        here.push(0);
        table.insert_unique(hash, number, |number| hasher.hash_one(text(bytes, ends, *number)));
        number
    }

    /// Ends a document.
    fn end(&mut self, document: u32) {
        self.position = 0;
        if self.with_positions {
            // By term, in their order.
            self.here_positions.sort_unstable();
            let mut rest = &self.here_positions[..];
            while let Some((term, _)) = rest.first().copied() {
                let len = rest.partition_point(|(other, _)| *other == term);
                let (here, after) = rest.split_at(len);
                rest = after;
                let (start, mut before) = (self.gaps.len(), 0);
                for (_, position) in here {
                    varint::put((position - before).into(), &mut self.gaps);
                    before = *position;
                }
                // As many as there are positions, also if the count is saturated.
                let frequency = u32::try_from(len).unwrap_or(u32::MAX);
                self.found[term as usize] += 1;
                self.here[term as usize] = 0;
                self.terms.push(term);
                self.postings.push(RunPosting { document, frequency, start: start as u64 });
            }
            self.here_positions.clear();
            self.touched.clear();
            return;
        }
        for term in self.touched.drain(..) {
            let frequency = std::mem::take(&mut self.here[term as usize]);
            self.found[term as usize] += 1;
            self.terms.push(term);
            self.postings.push(RunPosting { document, frequency, start: 0 });
        }
    }

    /// The run: by term, then by document.
    fn into_run(self) -> Vec<u8> {
        let Self { bytes, ends, found, postings, terms, gaps, with_positions, .. } = self;
        let gaps = with_positions.then_some(&*gaps);
        // The prefix decides almost always.
        let key = |term: u32| {
            let text = text(&bytes, &ends, term);
            let mut key = [0; 8];
            let len = text.len().min(8);
            key[..len].copy_from_slice(&text[..len]);
            u64::from_be_bytes(key)
        };
        let count = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        let mut order: Vec<(u64, u32)> = (0..count).map(|term| (key(term), term)).collect();
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| text(&bytes, &ends, a.1).cmp(text(&bytes, &ends, b.1)))
        });
        // Counting sort: the postings are in document order.
        let mut positions = vec![0u32; found.len()];
        let mut at = 0;
        for (_, term) in &order {
            positions[*term as usize] = at;
            at += found[*term as usize];
        }
        let mut sorted = vec![RunPosting::default(); postings.len()];
        for (term, posting) in terms.into_iter().zip(postings) {
            let position = &mut positions[term as usize];
            sorted[*position as usize] = posting;
            *position += 1;
        }
        let mut out = Vec::with_capacity(bytes.len() + 3 * sorted.len() + gaps.map_or(0, <[u8]>::len));
        let mut rest = &sorted[..];
        for (_, term) in order {
            let (here, after) = rest.split_at(found[term as usize] as usize);
            run::put_term(text(&bytes, &ends, term), here, gaps, &mut out);
            rest = after;
        }
        out
    }
}
