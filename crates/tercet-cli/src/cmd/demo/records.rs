//! A table of cities.

use std::path::Path;

use tercet::core::Span;
use tercet::tatami::File;

use super::directory;
use crate::failure::Failure;

/// One city per line, sorted by name.
const CITIES: &str = include_str!("cities.jsonl");

/// Writes the JSONL input.
pub(super) fn write_text(path: &Path) -> Result<(), Failure> {
    directory::write(path, CITIES.as_bytes())
}

/// The payload span of the second page of the name column.
pub(super) fn second_page(path: &Path) -> Result<Span, Failure> {
    let pages = File::open(path)?.pages(0, 0)?;
    let page = pages.get(1).and_then(|page| page.header.payload_span(page.offset));
    page.ok_or_else(|| Failure::request("bug in the demo: the table has a single page"))
}
