//! An open search segment.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tercet_core::Reason;

use super::access::{AccessIndex, PostingLocation};
use super::analyzer::{self, Analyzer, Tokenizer};
use super::cursor::{Cursor, END};
use super::live::Live;
use super::options::{
    Cancel, Hit, SearchOptions, SearchResult, SearchStats, StoredFields, TermExplanation, TermStats,
};
use super::positions::{Positions, Singles};
use super::postings::Postings;
use super::query::{ColumnTest, DocField, Part, Phrase, Query, Scored, TermQuery};
use super::rank::{self, Lengths, Norms, TermScorer, WITH_NORMS};
use super::terms::{Entry, Terms};
use super::{columns, disjunction, phrase, score, tree};
use crate::block_codec::fault;
use crate::column::Strings;
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner, section_fault};
use crate::predicate::{Expr, Mask};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::wire::footer::{INVERTED, Inverted};
use crate::wire::ids::{Kind, file_flags};

/// An open search segment: documents and an inverted index of their terms.
#[derive(Debug)]
pub struct Segment {
    pub(super) file: File,
    pub(super) terms: Arc<Terms>,
    postings: Arc<Postings>,
    pub(super) live: Option<Live>,
    live_mask: Option<Mask>,
    documents: u64,
    /// Document lengths and norms, computed on first use.
    lengths: Arc<OnceLock<Arc<Lengths>>>,
    access: Option<Arc<AccessIndex>>,
    norms: [OnceLock<Norms>; WITH_NORMS],
    analyzer: Analyzer,
    /// The mark of the updates of its collection: with the same mark, no other member has one of its live documents.
    pub(super) mark: Option<Box<str>>,
    /// Occurrences of terms, by posting list.
    occurrences: Mutex<HashMap<u32, u64>>,
}

/// A term of a segment and its postings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermInfo {
    /// Documents with the term, including deleted ones.
    pub documents: u64,
    /// Whether it occurs in a single document, which is stored in the term dictionary.
    pub singleton: bool,
    /// The documents and the frequency in each.
    pub postings: Vec<(u32, u32)>,
}

impl File {
    /// Opens the search segment; `None` if the file is not one. Of a segment with an access index, searches read and verify the bytes that
    /// they need; of others the inverted region is read and verified here.
    pub fn segment(&self) -> Result<Option<Segment>, Error> {
        if !self.header().has(file_flags::ROLE_SEARCH_SEG) {
            return Ok(None);
        }
        Segment::open(self, true).map(Some).map_err(|fault| self.error(fault))
    }

    /// The file without the rows of deleted documents, if it is a search segment: see [`without_rows`](Self::without_rows). Reads
    /// only the record of the live documents.
    pub fn without_deleted_documents(&self) -> Result<Self, Error> {
        let inner = self.inner();
        let Some(inverted) = &inner.footer.inverted else { return Ok(self.clone()) };
        let live = recorded_live(inner, inverted).map_err(|fault| self.error(fault))?;
        let Some(live) = live else { return Ok(self.clone()) };
        let is_deleted = |row: &u64| u32::try_from(*row).is_ok_and(|document| !live.contains(document));
        let deleted: Vec<u64> = (0..self.rows()).filter(is_deleted).collect();
        Ok(self.without_rows(&deleted.into()))
    }
}

/// The live documents; `None` if none is deleted.
fn recorded_live(inner: &Inner, inverted: &Inverted) -> Result<Option<Live>, ErrorKind> {
    if inverted.live_length == 0 {
        return Ok(None);
    }
    let (span, payload) = part(inner, ("live documents", inverted.live_offset, inverted.live_length))?;
    Ok(Some(Live::parse(span.start(), &payload, inverted.num_docs)?))
}

impl Segment {
    /// Opens a segment; without `with_access`, it is read and verified as a whole.
    pub(super) fn open(file: &File, with_access: bool) -> Result<Self, ErrorKind> {
        let inner = file.inner();
        inner.check_features()?;
        let Some(inverted) = &inner.footer.inverted else {
            let rule = "a file with the search role has an inverted descriptor";
            return Err(section_fault(INVERTED, "inverted", Reason::Unexpected { rule }));
        };
        let tree = inner.header.has(file_flags::BLOCK_TREE);
        let limit = inner.options.common.limits.chunk_bytes;
        let access =
            if with_access && tree { AccessIndex::open(inner, inverted)?.map(Arc::new) } else { None };
        let places = [
            ("term dictionary", inverted.term_dict_offset, inverted.term_dict_length),
            ("postings", inverted.postings_offset, inverted.postings_length),
            ("skip tables", inverted.skips_offset, inverted.skips_length),
        ];
        let (terms, mut postings) = if let Some(access) = &access {
            let [dictionary, lists, skips] = places;
            let dictionary = access.part(inner, 0, dictionary)?;
            let (lists, skips) = (access.part(inner, 1, lists)?, access.part(inner, 2, skips)?);
            let terms = Terms::with_access(dictionary, access, limit);
            (terms, Postings::with_access(lists, skips, Arc::clone(access)))
        } else {
            let [(dictionary, dictionary_payload), (span, payload), (skips_span, skips)] =
                [part(inner, places[0])?, part(inner, places[1])?, part(inner, places[2])?];
            let terms = Terms::parse(dictionary, &dictionary_payload, tree, limit)?;
            (terms, Postings::parse(span, payload, skips_span, skips)?)
        };
        postings.positions = Positions::open(inner, inverted)?;
        let numbers = [
            ("num_terms", inverted.num_terms, terms.count, "the terms of the term dictionary"),
            ("num_docs", inverted.num_docs, inner.header.rows, "the rows of the file"),
        ];
        for (field, found, expected, because) in numbers {
            if found != expected {
                return Err(section_fault(INVERTED, field, Reason::Mismatch { found, expected, because }));
            }
        }
        let live = recorded_live(inner, inverted)?;
        let documents = inverted.num_docs;
        let live = match file.live() {
            Some(rows) => Some(live.unwrap_or_else(|| Live::all(documents)).restricted(rows)),
            None => live,
        };
        let live_mask = live.as_ref().map(Live::mask);
        Ok(Self {
            file: file.clone(),
            terms: Arc::new(terms),
            postings: Arc::new(postings),
            live,
            live_mask,
            documents,
            lengths: Arc::default(),
            access,
            norms: Default::default(),
            analyzer: recorded_analyzer(inner)?,
            mark: None,
            occurrences: Mutex::default(),
        })
    }

    /// The file with the documents.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The analyzer of its documents and of queries.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// The number of documents, including deleted ones.
    pub fn document_count(&self) -> u64 {
        self.documents
    }

    /// The number of live documents.
    pub fn live_document_count(&self) -> u64 {
        self.live.as_ref().map_or(self.documents, Live::count)
    }

    /// The number of terms in the dictionary.
    pub fn term_count(&self) -> u64 {
        self.terms.count
    }

    /// The same segment for another searcher. They share what is read of terms, postings and lengths, but not the documents that a
    /// [`Searcher`](super::Searcher) hides because a newer version is in another segment.
    pub fn share(&self) -> Self {
        Self {
            file: self.file.clone(),
            terms: Arc::clone(&self.terms),
            postings: Arc::clone(&self.postings),
            live: self.live.clone(),
            live_mask: self.live_mask.clone(),
            documents: self.documents,
            lengths: Arc::clone(&self.lengths),
            access: self.access.clone(),
            norms: Default::default(),
            analyzer: self.analyzer,
            mark: self.mark.clone(),
            occurrences: Mutex::default(),
        }
    }

    /// Deletes documents from this open segment, not from its file.
    pub(super) fn hide(&mut self, documents: impl IntoIterator<Item = u32>) {
        let live = self.live.get_or_insert_with(|| Live::all(self.documents));
        documents.into_iter().for_each(|document| live.delete(document));
        self.live_mask = Some(live.mask());
    }

    /// Whether positions of terms are recorded: phrases are then found without reading texts.
    pub fn has_positions(&self) -> bool {
        self.postings.positions.is_some()
    }

    /// Whether its bytes are read from a remote source.
    pub fn is_remote(&self) -> bool {
        self.file.inner().source.is_remote()
    }

    /// Whether only snippets of the documents are stored.
    pub fn is_snippet_only(&self) -> bool {
        self.file.schema().fields().get(columns::BODY).is_some_and(|field| field.kind != crate::Type::BlobRef)
    }

    /// The top `k` documents for the terms of a text, with the native ranking.
    pub fn search(&self, text: &str, k: usize) -> Result<Vec<Hit>, Error> {
        Ok(self.search_with_stats(text, k)?.0)
    }

    /// The same with statistics.
    pub fn search_with_stats(&self, text: &str, k: usize) -> Result<(Vec<Hit>, SearchStats), Error> {
        let found = self.find(&Query::terms(text), &SearchOptions::new(k))?;
        Ok((found.hits, found.stats))
    }

    /// The top documents for a query.
    pub fn find(&self, query: &Query, options: &SearchOptions<'_>) -> Result<SearchResult, Error> {
        if options.k == 0 {
            return Ok(SearchResult::default());
        }
        let query = self.expanded(query).map_err(|kind| self.file.error(kind))?;
        self.find_terms(&query, options)
    }

    /// The top documents for a query in terms of this segment.
    pub(super) fn find_terms(
        &self,
        query: &TermQuery,
        options: &SearchOptions<'_>,
    ) -> Result<SearchResult, Error> {
        if options.k == 0 {
            return Ok(SearchResult::default());
        }
        let query = &*self.supported(query)?;
        let scorer = self.scorer(options)?;
        let allowed = self.allowed(options.filter);
        let allowed = allowed.as_deref();
        let found = match query.plain() {
            Some(terms) => self.any_of(&terms, options, scorer, allowed),
            None => self.tree(query, options, scorer, allowed),
        };
        found.map_err(|fault| self.file.error(fault))
    }

    /// The query without phrases of words that cannot be compared with a text.
    fn supported<'q>(&self, query: &'q TermQuery) -> Result<Cow<'q, TermQuery>, Error> {
        if !self.is_snippet_only() || !query.any(&|part| matches!(part, Part::Phrase(..))) {
            return Ok(Cow::Borrowed(query));
        }
        if query.any(&|part| matches!(part, Part::Phrase(_, phrase) if !phrase.is_word)) {
            return Err(self.file.error(ErrorKind::SnippetOnly));
        }
        let mut loose = query.clone();
        loose.try_for_each_mut(&mut |part| {
            part.loosen();
            Ok::<_, Error>(())
        })?;
        Ok(Cow::Owned(loose))
    }

    /// The live documents of a filter; `None` for all documents.
    fn allowed<'m>(&'m self, filter: Option<&'m Mask>) -> Option<Cow<'m, Mask>> {
        match (filter, &self.live_mask) {
            (Some(filter), Some(live)) => Some(Cow::Owned(filter.clone().and(live))),
            (filter, live) => filter.or(live.as_ref()).map(Cow::Borrowed),
        }
    }

    /// The live documents that match a query in terms of this segment, as far as the effort allows.
    pub(super) fn matching(
        &self,
        query: &TermQuery,
        filter: Option<&Mask>,
        effort: &mut Effort<'_>,
    ) -> Result<Matches, Error> {
        let query = &*self.supported(query)?;
        let allowed = self.allowed(filter);
        let found = match query.plain() {
            Some(terms) => self.matching_any(&terms, allowed.as_deref(), effort),
            None => self.matching_tree(query, allowed.as_deref(), effort),
        };
        found.map_err(|fault| self.file.error(fault))
    }

    /// The number of documents that match, if it is known without decoding a posting list.
    pub(super) fn known_count(&self, query: &TermQuery, filter: Option<&Mask>) -> Result<Option<u64>, Error> {
        if filter.is_some() || self.live_mask.is_some() {
            return Ok(None);
        }
        let [scored] = query.plain().unwrap_or_default()[..] else { return Ok(None) };
        Ok(Some(self.term_stats(&scored.term)?.map_or(0, |stats| stats.documents)))
    }

    fn matching_any(
        &self,
        terms: &[&Scored],
        allowed: Option<&Mask>,
        effort: &mut Effort<'_>,
    ) -> Result<Matches, ErrorKind> {
        let mut rows = Mask::filled(usize::try_from(self.documents).unwrap_or(0), false);
        let mut is_complete = true;
        for scored in terms {
            effort.cancel.check()?;
            let Some(entry) = self.terms.get(scored.term.as_bytes())? else { continue };
            if !effort.spend_postings(entry.documents().into()) {
                is_complete = false;
                continue;
            }
            let mut cursor = Cursor::new(&self.postings, entry, 0.0, self.documents, TermScorer::Native)?;
            cursor
                .each_block(|documents| documents.iter().for_each(|document| rows.set(*document as usize)))?;
        }
        let rows = match allowed {
            Some(allowed) => rows.and(allowed),
            None => rows,
        };
        Ok(Matches { rows, is_complete })
    }

    fn matching_tree(
        &self,
        query: &TermQuery,
        allowed: Option<&Mask>,
        effort: &mut Effort<'_>,
    ) -> Result<Matches, ErrorKind> {
        let mut texts = PhraseTexts::new(self, effort.cancel);
        let read = Rc::clone(&texts.read);
        let mut contains_phrase = |document: u32, phrase: &Phrase| texts.contains(document, phrase);
        let mut rows = Mask::filled(usize::try_from(self.documents).unwrap_or(0), false);
        let options = SearchOptions { cancel: effort.cancel, ..SearchOptions::new(0) };
        let (mut search, root) =
            self.bound_tree(query, &options, TermScorer::Native, allowed, &mut contains_phrase)?;
        let is_complete = search.matching(&root, &mut |document| {
            if let Some(document) = document {
                rows.set(document as usize);
            }
            effort.spend_postings(1) && read.get() <= effort.texts
        })?;
        effort.texts = effort.texts.saturating_sub(read.get());
        Ok(Matches { rows, is_complete })
    }

    fn scorer<'a>(&'a self, options: &SearchOptions<'a>) -> Result<TermScorer<'a>, Error> {
        let Some(parameters) = options.ranking.parameters() else { return Ok(TermScorer::Native) };
        let own = &self.norms[parameters.2];
        if let Some(norms) = options.norms.or(own.get()) {
            return Ok(TermScorer::Bm25(norms));
        }
        let norms = Norms::own(self.lengths()?, parameters);
        Ok(TermScorer::Bm25(own.get_or_init(|| norms)))
    }

    /// The lengths of the documents, including deleted ones.
    pub(super) fn lengths(&self) -> Result<&Arc<Lengths>, Error> {
        if let Some(lengths) = self.lengths.get() {
            return Ok(lengths);
        }
        let lengths = match &self.access {
            Some(access) => Lengths::with_access(access),
            None => Lengths::read(&self.file)?,
        };
        let lengths = Arc::new(lengths);
        Ok(self.lengths.get_or_init(|| lengths))
    }

    fn cursor<'a>(
        &'a self,
        scored: &Scored,
        options: &SearchOptions<'_>,
        scorer: TermScorer<'a>,
    ) -> Result<Option<Cursor<'a>>, ErrorKind> {
        let Some(entry) = self.terms.get(scored.term.as_bytes())? else { return Ok(None) };
        let given = options.idf_overrides.and_then(|overrides| overrides.get(scored.weight_term())).copied();
        let weight = if let Some(given) = given {
            given
        } else {
            let other = match &scored.weight_of {
                Some(term) if **term != *scored.term => self.terms.get(term.as_bytes())?,
                _ => None,
            };
            let entry = other.unwrap_or(entry);
            let idf = score::idf(self.documents, entry.documents().into());
            if options.ranking.is_weighted_by_frequency() {
                rank::weight(idf, entry.documents().into(), self.occurrences(entry)?)
            } else {
                idf
            }
        };
        Cursor::new(&self.postings, entry, weight * scored.boost, self.documents, scorer).map(Some)
    }

    /// The occurrences of a term in all documents, including deleted ones.
    pub(super) fn occurrences(&self, entry: Entry) -> Result<u64, ErrorKind> {
        let list = match entry {
            Entry::Singleton { frequency, .. } => return Ok(frequency.into()),
            Entry::List { list, documents } => {
                if let Some(recorded) = self.postings.recorded_occurrences(list, documents)? {
                    return Ok(recorded);
                }
                list
            }
        };
        if let Some(known) = self.occurrences.lock().unwrap_or_else(PoisonError::into_inner).get(&list) {
            return Ok(*known);
        }
        let mut cursor = Cursor::new(&self.postings, entry, 0.0, self.documents, TermScorer::Native)?;
        let sum = cursor.sum_frequencies()?;
        self.occurrences.lock().unwrap_or_else(PoisonError::into_inner).insert(list, sum);
        Ok(sum)
    }

    fn any_of(
        &self,
        terms: &[&Scored],
        options: &SearchOptions<'_>,
        scorer: TermScorer<'_>,
        allowed: Option<&Mask>,
    ) -> Result<SearchResult, ErrorKind> {
        let mut cursors = Vec::with_capacity(terms.len());
        for term in terms {
            cursors.extend(self.cursor(term, options, scorer)?);
        }
        let SearchOptions { k, min_score, cancel, .. } = *options;
        let (best, scored) = disjunction::best(&mut cursors, allowed, k, min_score, cancel)?;
        Ok(SearchResult::new(best, &cursors, scored, 0))
    }

    fn tree(
        &self,
        query: &TermQuery,
        options: &SearchOptions<'_>,
        scorer: TermScorer<'_>,
        allowed: Option<&Mask>,
    ) -> Result<SearchResult, ErrorKind> {
        let mut texts = PhraseTexts::new(self, options.cancel);
        let read = Rc::clone(&texts.read);
        let mut contains_phrase = |document: u32, phrase: &Phrase| texts.contains(document, phrase);
        let (mut search, root) = self.bound_tree(query, options, scorer, allowed, &mut contains_phrase)?;
        let best = search.best(&root, options.k, options.min_score)?;
        Ok(SearchResult::new(best, &search.cursors, search.scored, read.get()))
    }

    /// A query bound to the posting lists.
    fn bound_tree<'c, 'a>(
        &'a self,
        query: &TermQuery,
        options: &SearchOptions<'c>,
        scorer: TermScorer<'a>,
        allowed: Option<&'c Mask>,
        contains_phrase: &'c mut tree::ContainsPhrase<'c>,
    ) -> Result<(tree::Search<'c, 'a>, tree::Node), ErrorKind> {
        let (cursors, phrases) = (Vec::new(), Vec::new());
        let documents = u32::try_from(self.documents).unwrap_or(END);
        let (positions, cancel) = (Vec::new(), options.cancel);
        let mut search = tree::Search {
            cursors,
            phrases,
            positions,
            documents,
            allowed,
            scored: 0,
            cancel,
            contains_phrase,
        };
        let mut rows = |test: &ColumnTest| self.rows_of(test);
        let root = search.bind(&query.root, &mut |scored| self.cursor(scored, options, scorer), &mut rows)?;
        Ok((search, root))
    }

    /// The documents of a test of a column; none if the segment does not have it.
    fn rows_of(&self, test: &ColumnTest) -> Result<Mask, ErrorKind> {
        if self.file.schema().index_of(&test.column).is_none() {
            return Ok(Mask::filled(usize::try_from(self.documents).unwrap_or(0), false));
        }
        self.filter(&test.filter(&self.file)?).map_err(Error::into_kind)
    }

    /// String fields of a document.
    fn field_bytes(&self, document: u32, columns: &[usize]) -> Result<Vec<Vec<u8>>, ErrorKind> {
        let columns = self.file.take(&[document.into()], columns).map_err(Error::into_kind)?;
        let text = |column: crate::Column| match column.values {
            crate::Values::Bytes(strings) => strings.get(0).to_vec(),
            _ => Vec::new(),
        };
        Ok(columns.into_iter().map(text).collect())
    }

    /// The stored text of a document: its body or snippet.
    pub fn text(&self, document: u32) -> Result<Vec<u8>, Error> {
        let mut fields =
            self.field_bytes(document, &[columns::BODY]).map_err(|fault| self.file.error(fault))?;
        Ok(fields.pop().unwrap_or_default())
    }

    /// The stored texts of documents, in order.
    pub fn texts(&self, documents: &[u32]) -> Result<Strings, Error> {
        let rows: Vec<u64> = documents.iter().map(|document| u64::from(*document)).collect();
        let columns = self.file.take(&rows, &[columns::BODY])?;
        Ok(match columns.into_iter().next().map(|column| column.values) {
            Some(crate::Values::Bytes(strings)) => strings,
            _ => rows.iter().map(|_| b"").collect(),
        })
    }

    /// The row of the live document with an ID; the last one of several.
    pub fn document_with_id(&self, doc_id: &str) -> Result<Option<u32>, Error> {
        let name = self.file.schema().fields()[columns::DOC_ID].name.to_string();
        let filter = Expr::col(name).eq(Scalar::Bytes(doc_id.as_bytes().to_vec()));
        let mut found = None;
        for batch in self.file.scan().column_positions(&[])?.filter(&filter)?.batches() {
            let rows = batch?.rows.into_iter().filter_map(|row| u32::try_from(row).ok());
            let live = rows.filter(|row| self.live.as_ref().is_none_or(|live| live.contains(*row)));
            found = live.last().or(found);
        }
        Ok(found)
    }

    /// The stored fields of documents: ID, URL and title.
    pub fn documents(&self, documents: &[u32]) -> Result<Vec<StoredFields>, Error> {
        let rows: Vec<u64> = documents.iter().map(|document| u64::from(*document)).collect();
        let columns = self.file.take(&rows, &[columns::DOC_ID, columns::URL, columns::TITLE])?;
        let text = |column: usize, row: usize| match &columns[column].values {
            crate::Values::Bytes(strings) => String::from_utf8_lossy(strings.get(row)).into_owned(),
            _ => String::new(),
        };
        let one = |row| StoredFields { doc_id: text(0, row), url: text(1, row), title: text(2, row) };
        Ok((0..rows.len()).map(one).collect())
    }

    /// The documents that match a filter on their columns, for [`SearchOptions::filter`].
    pub fn filter(&self, filter: &Expr) -> Result<Mask, Error> {
        let mut rows = vec![false; usize::try_from(self.documents).unwrap_or(0)];
        for batch in self.file.scan().column_positions(&[])?.filter(filter)?.batches() {
            for row in batch?.rows {
                if let Some(bit) = usize::try_from(row).ok().and_then(|row| rows.get_mut(row)) {
                    *bit = true;
                }
            }
        }
        Ok(Mask::from_fn(rows.len(), |row| rows[row]))
    }

    /// The contribution of each query term to the score of a document, in order.
    pub fn explain(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        document: u32,
    ) -> Result<Vec<TermExplanation>, Error> {
        let query = self.expanded(query).map_err(|kind| self.file.error(kind))?;
        self.explain_terms(&query, options, document)
    }

    /// The same for a query in terms of this segment.
    pub(super) fn explain_terms(
        &self,
        query: &TermQuery,
        options: &SearchOptions<'_>,
        document: u32,
    ) -> Result<Vec<TermExplanation>, Error> {
        let scorer = self.scorer(options)?;
        let one = |scored: &Scored| -> Result<TermExplanation, ErrorKind> {
            let term = scored.term.clone();
            let mut out = TermExplanation { term, documents: 0, idf: 0.0, frequency: 0, score: 0.0 };
            if let Some(entry) = self.terms.get(scored.term.as_bytes())? {
                out.documents = entry.documents().into();
            }
            if let Some(mut cursor) = self.cursor(scored, options, scorer)? {
                out.idf = cursor.idf;
                if cursor.find(document)? {
                    out.frequency = cursor.frequency()?;
                    out.score = cursor.score()?;
                }
            }
            Ok(out)
        };
        query.scored().map(one).collect::<Result<_, _>>().map_err(|fault| self.file.error(fault))
    }

    /// Document frequency and maximum term frequency. No block is decoded.
    pub fn term_stats(&self, term: &str) -> Result<Option<TermStats>, Error> {
        self.term_stats_of(term.as_bytes())
    }

    pub(super) fn term_stats_of(&self, term: &[u8]) -> Result<Option<TermStats>, Error> {
        let found = || -> Result<Option<TermStats>, ErrorKind> {
            let Some(entry) = self.terms.get(term)? else { return Ok(None) };
            let max_frequency = match entry {
                Entry::Singleton { frequency, .. } => frequency,
                Entry::List { list, documents } => {
                    self.postings.open(list, documents, self.documents)?.max_frequency
                }
            };
            Ok(Some(TermStats { documents: entry.documents().into(), max_frequency }))
        };
        found().map_err(|fault| self.file.error(fault))
    }

    /// The occurrences of a term in all documents.
    pub(super) fn term_occurrences(&self, term: &str) -> Result<u64, Error> {
        let entry = self.terms.get(term.as_bytes());
        let found = entry.and_then(|entry| entry.map_or(Ok(0), |entry| self.occurrences(entry)));
        found.map_err(|fault| self.file.error(fault))
    }

    /// A term with its postings.
    pub fn term(&self, term: &str) -> Result<Option<TermInfo>, Error> {
        let found =
            self.terms.get(term.as_bytes()).and_then(|entry| entry.map(|entry| self.info(entry)).transpose());
        found.map_err(|fault| self.file.error(fault))
    }

    /// Calls `each` with every term, in order.
    pub fn for_each_term(&self, mut each: impl FnMut(&[u8], TermInfo)) -> Result<(), Error> {
        let mut failed = None;
        let walked = self.terms.for_each(&mut |term, entry| match self.info(entry) {
            Ok(info) if failed.is_none() => each(term, info),
            Ok(_) => {}
            Err(fault) => failed = failed.take().or(Some(fault)),
        });
        walked.and(failed.map_or(Ok(()), Err)).map_err(|fault| self.file.error(fault))
    }

    /// Where the posting list of a term is; `None` for a singleton.
    pub(super) fn place(&self, entry: Entry) -> Result<Option<PostingLocation>, ErrorKind> {
        match entry {
            Entry::Singleton { .. } => Ok(None),
            Entry::List { list, .. } => self.postings.place(list).map(Some),
        }
    }

    /// The first document with a term.
    pub(super) fn first_document(&self, entry: Entry) -> Result<u32, ErrorKind> {
        Cursor::new(&self.postings, entry, 0.0, self.documents, TermScorer::Native)?.seek(0)
    }

    /// The positions, if they are recorded.
    pub(super) fn positions(&self) -> Option<&Positions> {
        self.postings.positions.as_ref()
    }

    /// Calls `each` with the documents of a term, their frequencies and the gaps between their positions. Terms must be in order.
    pub(super) fn each_position(
        &self,
        entry: Entry,
        positions: &Positions,
        singles: &mut Singles<'_>,
        mut each: impl FnMut(u32, u32, &[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        if let Entry::Singleton { document, frequency } = entry {
            return each(document, frequency, &singles.next_gaps()?);
        }
        let mut cursor = Cursor::new(&self.postings, entry, 0.0, self.documents, TermScorer::Native)?;
        let mut document = cursor.seek(0)?;
        while document != END {
            // A document is decoded when it is asked for.
            cursor.find(document)?;
            let frequency = cursor.frequency()?;
            let (block, before) = cursor.position_block(positions)?;
            each(document, frequency, positions.slice(&block, before, frequency)?)?;
            document = cursor.seek(document + 1)?;
        }
        Ok(())
    }

    pub(super) fn info(&self, entry: Entry) -> Result<TermInfo, ErrorKind> {
        let mut cursor = Cursor::new(&self.postings, entry, 0.0, self.documents, TermScorer::Native)?;
        let mut postings = Vec::with_capacity(entry.documents() as usize);
        let mut document = cursor.seek(0)?;
        while document != END {
            postings.push((document, cursor.frequency()?));
            document = cursor.seek(document + 1)?;
        }
        let singleton = matches!(entry, Entry::Singleton { .. });
        Ok(TermInfo { documents: entry.documents().into(), singleton, postings })
    }
}

/// The documents that match a query.
#[derive(Clone, Debug)]
pub(super) struct Matches {
    pub(super) rows: Mask,
    /// Whether these are all.
    pub(super) is_complete: bool,
}

/// Work that may be spent on finding all matching documents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort<'a> {
    /// Postings.
    postings: u64,
    /// Texts read for phrases.
    texts: u64,
    cancel: Cancel<'a>,
}

impl<'a> Effort<'a> {
    /// As much as needed.
    pub(super) const fn unbounded(cancel: Cancel<'a>) -> Self {
        Self { postings: u64::MAX, texts: u64::MAX, cancel }
    }

    /// A few milliseconds.
    pub(super) const fn small(cancel: Cancel<'a>) -> Self {
        Self { postings: 1 << 20, texts: 32, cancel }
    }

    fn spend_postings(&mut self, count: u64) -> bool {
        let left = self.postings.checked_sub(count);
        self.postings = left.unwrap_or(self.postings);
        left.is_some()
    }
}

/// Reads texts to find phrases in them.
struct PhraseTexts<'a> {
    segment: &'a Segment,
    tokenizer: Tokenizer,
    /// The body of the last document, for queries with several phrases.
    body: Option<(u32, Vec<Vec<u8>>)>,
    /// The number of bodies read.
    read: Rc<Cell<u64>>,
    cancel: Cancel<'a>,
}

impl<'a> PhraseTexts<'a> {
    fn new(segment: &'a Segment, cancel: Cancel<'a>) -> Self {
        Self { segment, tokenizer: segment.analyzer.tokenizer(), body: None, read: Rc::default(), cancel }
    }

    fn contains(&mut self, document: u32, phrase: &Phrase) -> Result<bool, ErrorKind> {
        let Self { segment, tokenizer, body, read, cancel } = self;
        cancel.check()?;
        let mut any =
            |fields: &[Vec<u8>]| fields.iter().any(|field| phrase::contains(field, phrase, tokenizer));
        match phrase.field {
            Some(DocField::Title) => return Ok(any(&segment.field_bytes(document, &[columns::TITLE])?)),
            Some(DocField::Url) => return Ok(any(&segment.field_bytes(document, &[columns::URL])?)),
            Some(DocField::Body | DocField::Anchor) | None => {}
        }
        if body.as_ref().is_none_or(|(held, _)| *held != document) {
            *body = Some((document, segment.field_bytes(document, &[columns::BODY])?));
            read.set(read.get() + 1);
        }
        if body.as_ref().is_some_and(|(_, body)| any(body)) {
            return Ok(true);
        }
        // Title and URL, unless only the body counts.
        Ok(phrase.field.is_none() && any(&segment.field_bytes(document, &[columns::TITLE, columns::URL])?))
    }
}

/// The analyzer that a file records; the tokens of the format without a record.
fn recorded_analyzer(inner: &Inner) -> Result<Analyzer, ErrorKind> {
    let Some((_, value)) = inner.footer.pairs.iter().find(|(key, _)| key == analyzer::KEY) else {
        return Ok(Analyzer::PLAIN);
    };
    Analyzer::from_recorded(value).ok_or_else(|| {
        let features = format!("analyzer `{}`", tercet_core::escape::name(value));
        ErrorKind::UnsupportedFeatures { features: features.into() }
    })
}

/// A record of the inverted region, checked against the footer.
fn part(
    inner: &Inner,
    (name, offset, length): (&'static str, u64, u64),
) -> Result<(tercet_core::Span, bytes::Bytes), ErrorKind> {
    let region = Region::Inverted { part: name };
    let record = inner.record(region, offset, Kind::Index)?;
    if record.span.len() != length {
        let because = "the length in the footer";
        let reason = Reason::Mismatch { found: record.span.len(), expected: length, because };
        return Err(fault(region, "stored_size", offset + 12, 4, reason));
    }
    Ok((record.span, record.stored))
}
