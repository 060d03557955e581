//! Verification of the byte layout: no gaps, no overlaps.

use tercet_core::{Finding, Span};

use crate::file::Inner;
use crate::wire::header;
use crate::wire::page::HEADER_LEN;

/// Checks that header, chunks, records and footer are contiguous.
pub(super) fn check(inner: &Inner) -> Finding {
    let mut spans: Vec<(Span, &'static str)> = Vec::new();
    let mut add = |offset: u64, len: u64, what: &'static str| {
        if len > 0
            && let Some(span) = Span::at(offset, len)
        {
            spans.push((span, what));
        }
    };
    for group in &inner.footer.groups {
        for chunk in &group.chunks {
            let heads = chunk.pages.saturating_mul(HEADER_LEN);
            add(chunk.offset, chunk.stored_bytes.saturating_add(heads), "chunk");
            if let Some(offset) = chunk.page_index {
                add(offset, record_len(inner, offset), "page index");
            }
        }
    }
    for run in inner.footer.blobs.iter().flat_map(|blob| &blob.runs) {
        add(run.offset, run.stored_bytes.saturating_add(HEADER_LEN), "blob run");
    }
    for entry in &inner.footer.dictionaries {
        add(entry.offset, record_len(inner, entry.offset), "dictionary");
    }
    for entry in &inner.footer.indexes {
        add(entry.offset, entry.payload_bytes.saturating_add(HEADER_LEN), "index record");
    }
    if let Some(inverted) = &inner.footer.inverted {
        let parts = [
            (inverted.term_dict_offset, inverted.term_dict_length),
            (inverted.postings_offset, inverted.postings_length),
            (inverted.skips_offset, inverted.skips_length),
            (inverted.live_offset, inverted.live_length),
        ];
        for (offset, len) in parts.into_iter().filter(|(offset, _)| *offset > 0) {
            add(offset, len.saturating_add(HEADER_LEN), "inverted record");
        }
    }
    if let Some(access) = &inner.footer.access {
        add(access.offset, access.length.saturating_add(HEADER_LEN), "access index");
    }
    if let Some(positions) = &inner.footer.positions {
        add(positions.offset, positions.length.saturating_add(HEADER_LEN), "positions");
    }
    if let Some(headers) = &inner.footer.page_headers {
        add(headers.offset, headers.length.saturating_add(HEADER_LEN), "page headers");
    }
    spans.sort_by_key(|(span, _)| (span.start(), span.end()));
    let mut at = header::LEN;
    let mut gaps: Vec<Span> = Vec::new();
    for (span, what) in spans {
        if span.start() < at {
            return Finding::fail("layout", format!("{what} at bytes {span} overlaps the preceding record"));
        }
        gaps.extend(Span::between(at, span.start()).filter(|gap| !gap.is_empty()));
        at = span.end();
    }
    let end = inner.footer_span.start();
    if at > end {
        return Finding::fail(
            "layout",
            format!("records end at {at}, after the start of the footer at {end}"),
        );
    }
    gaps.extend(Span::between(at, end).filter(|gap| !gap.is_empty()));
    match gaps.first() {
        None => Finding::pass("layout"),
        Some(first) => {
            let bytes: u64 = gaps.iter().map(|gap| gap.len()).sum();
            Finding::warn("layout", format!("{bytes} unused bytes, the first at {first}"))
        }
    }
}

/// The length of a record from its header; errors are reported elsewhere.
fn record_len(inner: &Inner, offset: u64) -> u64 {
    let Ok(head) = inner.body_span(crate::Region::Footer, offset, HEADER_LEN) else { return 0 };
    let Ok(bytes) = inner.source.read_at(head) else { return 0 };
    let header = crate::wire::page::PageHeader::parse(crate::Region::Footer, offset, &bytes, false);
    header.map_or(0, |header| HEADER_LEN + u64::from(header.stored_bytes))
}
