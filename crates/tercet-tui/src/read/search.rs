//! Searches in segments.

use std::path::Path;
use std::sync::Arc;

use tercet::Format;
use tercet::core::Progress;
use tercet::core::num::grouped;
use tercet::tatami::search::{Query, SearchRequest, Searcher, Segment};
use tercet::tatami::{File, ReadOptions};

use super::{Files, OrMessage as _, check, lock, shown, stamp};
use crate::text::{Piece, counted, marked, marked_lines, safe};
use crate::tree::Item;
use crate::views::{Found, HitLine};

/// The number of hits.
const HITS: usize = 50;
/// The bytes of an excerpt.
const SNIPPET: usize = 240;
/// The bytes of a document.
const MAX_TEXT: usize = 1 << 18;

impl Files {
    /// Hits with excerpts. An empty query finds all documents.
    pub(super) fn search(&self, item: &Item, query: &str, progress: &dyn Progress) -> Result<Found, String> {
        let searcher = self.searcher(item)?;
        let query = Query::parse(if query.trim().is_empty() { "*" } else { query }).or_message()?;
        let request = SearchRequest::new(query.dedup_terms()).with_limit(HITS).with_snippet_bytes(SNIPPET);
        let found = searcher.search_with(&request, progress).or_message();
        check(progress)?;
        let found = found?;
        let hits = found.hits.iter().map(|hit| {
            let stored = &hit.stored;
            let titles = [&stored.title, &stored.url, &stored.doc_id];
            let title = titles.into_iter().find(|title| !title.trim().is_empty());
            let highlight = hit.highlight.as_ref();
            HitLine {
                segment: hit.segment,
                document: hit.document,
                title: title.map_or_else(|| format!("document {}", hit.document), |title| safe(title)),
                score: hit.score.map(|score| format!("{score:.2}")).unwrap_or_default(),
                snippet: highlight
                    .map(|found| marked(&found.text, 0..found.text.len(), &found.marks))
                    .unwrap_or_default(),
            }
        });
        let total = found.total.map_or_else(String::new, |total| {
            let at_least = if total.is_exact { "" } else { "at least " };
            format!("{at_least}{} of ", grouped(total.documents))
        });
        let all = counted(searcher.documents(), "document");
        let summary = format!("{total}{all} in {:.1} ms", found.took.total.as_secs_f64() * 1e3);
        Ok(Found { hits: hits.collect(), summary })
    }

    /// The lines of a document with the matches of a query.
    pub(super) fn document(
        &self,
        item: &Item,
        segment: usize,
        document: u32,
        query: &str,
    ) -> Result<Vec<Vec<Piece>>, String> {
        let searcher = self.searcher(item)?;
        let segment = searcher.segments().get(segment).ok_or("the files changed; search again")?;
        let bytes = segment.text(document).or_message()?;
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]);
        let marks = match query.trim() {
            "" => Vec::new(),
            query => {
                let query = Query::parse(query).or_message()?;
                segment.matches_in(&query, text.as_bytes()).or_message()?
            }
        };
        let mut lines = marked_lines(&text, &marks);
        if bytes.len() > MAX_TEXT {
            lines.push(vec![("…".to_owned(), false)]);
        }
        if bytes.is_empty() {
            lines.push(vec![("the segment does not store the text of this document".to_owned(), false)]);
        }
        Ok(lines)
    }

    fn searcher(&self, item: &Item) -> Result<Arc<Searcher>, String> {
        let path = item.path();
        let stamp = stamp(path)?;
        let known = lock(&self.searcher).clone();
        if let Some((_, _, searcher)) = known.filter(|(other, at, _)| other == path && *at == stamp) {
            return Ok(searcher);
        }
        let searcher = Arc::new(open(path, item.is_directory())?);
        *lock(&self.searcher) = Some((path.to_owned(), stamp, Arc::clone(&searcher)));
        Ok(searcher)
    }
}

/// Opens a segment, a collection, or the segments among the files of a directory.
fn open(path: &Path, is_directory: bool) -> Result<Searcher, String> {
    if !is_directory {
        let segment = segment(path)?;
        let missing = || format!("{}: not a search segment; create one with `tatami index`", shown(path));
        return Ok(Searcher::from_segment(segment.ok_or_else(missing)?));
    }
    if let Ok(searcher) = Searcher::open_directory(path, ReadOptions::new()) {
        return Ok(searcher);
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", shown(path)))?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.map_err(|error| format!("{}: {error}", shown(path)))?.path());
    }
    files.retain(|file| Format::from_extension(file) == Some(Format::Tatami));
    files.sort();
    let mut segments = Vec::new();
    for file in files {
        segments.extend(segment(&file)?);
    }
    if segments.is_empty() {
        return Err(format!("{}: there is no search segment", shown(path)));
    }
    Searcher::new(segments).or_message()
}

fn segment(path: &Path) -> Result<Option<Segment>, String> {
    File::open(path).or_message()?.segment().or_message()
}
