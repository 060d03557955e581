//! A few cities as records.

use std::path::Path;

use tercet::core::Span;
use tercet::tatami::File;

use super::folder;
use crate::failure::Failure;

/// One city on each line, in the order of their names.
const CITIES: &str = include_str!("cities.jsonl");

/// Writes the text that the demo makes a file of.
pub(super) fn write_text(path: &Path) -> Result<(), Failure> {
    folder::write(path, CITIES.as_bytes())
}

/// The payload of the second page of the names.
pub(super) fn second_page(path: &Path) -> Result<Span, Failure> {
    let pages = File::open(path)?.pages(0, 0)?;
    let page = pages.get(1).and_then(|page| page.header.payload_span(page.offset));
    page.ok_or_else(|| Failure::request("the demo is broken: its records are in one page"))
}
