//! The page headers of the document columns of a search segment, copied into one record.
//!
//! The headers of a chunk are spread over the file, one before each page, so the page of a document is found by as many reads as there are
//! pages. The copies are read at once. Each has its own checksum, and is compared with the footer as the headers themselves are.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tercet_core::{Reason, Span};

use crate::block_codec::fault;
use crate::chunk::ChunkReader;
use crate::error::ErrorKind;
use crate::file::{File, Inner};
use crate::region::Region;
use crate::wire::footer::{AccessSection, Group};
use crate::wire::ids::Kind;
use crate::wire::page::HEADER_LEN;

const REGION: Region = Region::Inverted { part: "page headers" };

/// The columns with copies: ID, URL, title and body.
pub(crate) const COLUMNS: usize = 4;

/// The copies that were read, by row group.
pub(crate) type PageHeaders = Mutex<HashMap<usize, Bytes>>;

/// The copies of the headers of a chunk; `None` without a record.
pub(crate) fn of_chunk(inner: &Inner, group: usize, column: usize) -> Result<Option<Bytes>, ErrorKind> {
    let section =
        inner.footer.page_headers.as_ref().filter(|_| column < COLUMNS && inner.has_header_checksums());
    let Some(section) = section else { return Ok(None) };
    let (Some(span), Ok(entry)) = (span(inner, section, group), inner.group(group)) else { return Ok(None) };
    // Columns are read in parallel, and have the copies in common.
    let mut known = inner.page_headers.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = if let Some(bytes) = known.get(&group) {
        bytes.clone()
    } else {
        let bytes = inner.source.read_at(span)?;
        known.insert(group, bytes.clone());
        bytes
    };
    let start = index(headers(entry, column));
    let end = index(headers(entry, column + 1));
    Ok((start <= end && end <= bytes.len()).then(|| bytes.slice(start..end)))
}

/// The bytes of the copies of a row group. `None` if the record is that of other row groups: other programs keep sections that they do
/// not know.
fn span(inner: &Inner, section: &AccessSection, group: usize) -> Option<Span> {
    let groups = &inner.footer.groups;
    let len = |group: &Group| headers(group, COLUMNS);
    let all = groups.iter().map(len).fold(0, u64::saturating_add);
    let before = groups.get(..group)?.iter().map(len).fold(0, u64::saturating_add);
    let offset = section.offset.checked_add(HEADER_LEN)?.checked_add(before)?;
    let span = inner.body_span(REGION, offset, len(groups.get(group)?)).ok()?;
    (all == section.length).then_some(span)
}

/// The bytes of the headers of the first columns of a row group.
fn headers(group: &Group, columns: usize) -> u64 {
    let pages = group.chunks.iter().take(columns).map(|chunk| chunk.pages);
    pages.fold(0, u64::saturating_add).saturating_mul(HEADER_LEN)
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Verifies the record: its checksum, and with `deep` that it holds the headers of the pages.
pub(crate) fn check(file: &File, section: &AccessSection, deep: bool) -> Result<(), ErrorKind> {
    let inner = file.inner();
    let record = inner.record(REGION, section.offset, Kind::Index)?;
    if record.span.len() != section.length {
        let because = "the length in the footer";
        let reason = Reason::Mismatch { found: record.span.len(), expected: section.length, because };
        return Err(fault(REGION, "stored_size", section.offset + 12, 4, reason));
    }
    if !deep || inner.footer.groups.is_empty() || span(inner, section, 0).is_none() {
        return Ok(());
    }
    let mut at = 0;
    for (number, group) in inner.footer.groups.iter().enumerate() {
        for column in 0..COLUMNS.min(group.chunks.len()) {
            // Damaged headers are reported with their pages.
            let Ok(table) = ChunkReader::new(inner, number, column).own_page_table() else { return Ok(()) };
            for page in &table.pages {
                let end = at + index(HEADER_LEN);
                if record.stored.get(at..end) != Some(&page.header.to_bytes()[..]) {
                    let rule = "the copies agree with the page headers";
                    let start = record.span.start() + at as u64;
                    return Err(fault(REGION, "header", start, HEADER_LEN, Reason::Unexpected { rule }));
                }
                at = end;
            }
        }
    }
    Ok(())
}
