//! Pseudo-relevance feedback: words of the best documents are added to the query.

use std::collections::BTreeMap;

use super::{RankedDocument, SearchRequest, Searcher};
use crate::error::Error;
use crate::predicate::Mask;
use crate::search::options::Cancel;
use crate::search::query::Query;
use crate::search::{columns, score};

/// The documents whose words are examined.
const DOCUMENTS: usize = 10;
/// Bytes of each.
const MAX_TEXT: usize = 1 << 16;
/// The words that are added.
const WORDS: usize = 30;
/// The boost of the best of them.
const BOOST: f32 = 0.6;

impl Searcher {
    /// The query of a request with optional words: those that are frequent in its best documents and rare in others.
    ///
    /// Documents that are frequent in the best ones count by their scores. A query without scores, such as `*`, is returned as it is.
    pub fn expanded(&self, request: &SearchRequest) -> Result<Query, Error> {
        let filters = request.filter.as_ref().map(|filter| self.filters(filter)).transpose()?;
        self.expanded_with(request, filters.as_deref(), Cancel::default())
    }

    pub(super) fn expanded_with(
        &self,
        request: &SearchRequest,
        filters: Option<&[Mask]>,
        cancel: Cancel<'_>,
    ) -> Result<Query, Error> {
        let mut first = request.clone();
        (first.limit, first.offset, first.sort) = (DOCUMENTS, 0, None);
        let (best, _) = self.ranked(&first, filters, cancel)?;
        let total: f32 = best.iter().filter_map(|hit| hit.score).sum();
        if total <= 0.0 {
            return Ok(request.query.clone());
        }
        // The word and the weight of each term of an analyzer.
        let mut found: BTreeMap<String, (String, f32)> = BTreeMap::new();
        for hit in &best {
            self.add_words(hit, hit.score.unwrap_or(0.0) / total, &mut found)?;
        }
        let mut words: Vec<(String, f32)> = found.into_values().filter(|(_, weight)| *weight > 0.0).collect();
        words.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        words.truncate(WORDS);
        let most = words.first().map_or(1.0, |(_, weight)| *weight);
        Ok(request
            .query
            .clone()
            .with_words(words.into_iter().map(|(word, weight)| (word, BOOST * weight / most))))
    }

    fn add_words(
        &self,
        hit: &RankedDocument,
        share: f32,
        out: &mut BTreeMap<String, (String, f32)>,
    ) -> Result<(), Error> {
        let segment = &self.segments[hit.segment];
        let fields = segment.file().take(&[hit.document.into()], &[columns::TITLE, columns::BODY])?;
        let mut tokenizer = segment.analyzer().tokenizer();
        let mut terms: BTreeMap<String, (String, u32)> = BTreeMap::new();
        let mut length = 0u32;
        for field in fields {
            let crate::Values::Bytes(strings) = field.values else { continue };
            let text = strings.get(0);
            tokenizer.spans(&text[..text.len().min(MAX_TEXT)], |range, term| {
                length += 1;
                let word = || (String::from_utf8_lossy(&text[range]).into_owned(), 0);
                terms.entry(term.to_owned()).or_insert_with(word).1 += 1;
            });
        }
        for (term, (word, frequency)) in terms {
            if segment.analyzer().is_stop_word(&word) {
                continue;
            }
            let documents = segment.term_stats(&term)?.map_or(0, |stats| stats.documents);
            // A term of this document only finds no other.
            if documents < 2 {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
            let rate = frequency as f32 / length.max(1) as f32;
            let weight = share * rate * score::idf(segment.document_count(), documents);
            out.entry(term).or_insert((word, 0.0)).1 += weight;
        }
        Ok(())
    }
}
