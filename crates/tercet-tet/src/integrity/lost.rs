//! Traces of an integrity block that is not found by its name.
//!
//! A reader finds the block through the footer flag, the members `metadata` or `metadata_ref`, `tercet`, and the
//! version. One damaged bit in any of them hides the block, and with it every checksum. So a file without a block is
//! called unprotected only after these traces were searched for; a file with traces and no block is damaged.
//!
//! Users can store any text: a trace counts only where other writers put nothing of their own. Attributes, labels,
//! history and payloads are not searched.

use serde_json::{Map, Value};
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, CommonError, Limits, Span};

use crate::Region;
use crate::catalog::{Catalog, Footer, check_text};
use crate::error::{ErrorKind, StaleBlockError};
use crate::metadata::Metadata;
use crate::rows::{RowContext, Rows};
use crate::wire::footer::{SpanRef, parse_spill, spill_span};
use crate::wire::ids::{FOOTER_MAGIC, SUPERBLOCK_LEN, TAIL_LEN};

/// Members of a block, as its writer spells them. One damaged byte leaves all but one.
const MEMBERS: [&str; 5] = ["footer_crc32c", "catalog_crc32c", "rows", "index_crc32c", "row_crc32c"];
/// Members that make an object a block: a writer that knows none of them uses no three of them by chance.
const ENOUGH_MEMBERS: usize = 3;
/// The same members as text, without `rows`, which other objects may have.
const TRACES: [&[u8]; 4] =
    [br#""footer_crc32c":""#, br#""catalog_crc32c":""#, br#""index_crc32c":"#, br#""row_crc32c":"#];
/// Number of different traces that make bytes a part of a block.
const ENOUGH_TRACES: usize = 2;
/// Bytes that are searched for text.
const WINDOW: u64 = 1 << 16;
/// Damaged bits that a footer magic may have.
const MAGIC_BITS: u32 = 4;

/// A block that is not found by its name.
#[derive(Debug)]
pub(crate) struct LostBlock {
    region: Region,
    span: Span,
    reason: StaleBlockError,
    /// The footer with the block under its name; `None` if only parts of its text are left.
    pub(crate) footer: Option<Footer>,
}

impl LostBlock {
    /// The error of a reader: the file is damaged, not unprotected.
    pub(crate) fn error(&self) -> ErrorKind {
        ErrorKind::StaleIntegrityBlock { region: self.region, span: self.span, reason: self.reason }
    }
}

/// Searches a file whose block is absent or of an unknown version for traces of one.
///
/// Files with a footer cost nothing unless it has no metadata; files without one cost 16 bytes unless these look like
/// the tail of a footer. All other costs are bounded by the footer and the chunk index.
pub(crate) fn find_lost_block(
    catalog: &Catalog,
    source: &dyn ByteSource,
    limits: &Limits,
) -> Result<Option<LostBlock>, ErrorKind> {
    let index_end = catalog.head_end();
    if let Some(footer) = &catalog.footer {
        let (region, span) = (Region::FooterJson, footer.json_span);
        if let Some(footer) = with_block_named(footer, source, index_end, limits)? {
            let reason = StaleBlockError::Renamed;
            return Ok(Some(LostBlock { region, span, reason, footer: Some(footer) }));
        }
        // A writer of blocks always writes metadata: the block would have been in it.
        return if footer.has_metadata {
            Ok(None)
        } else {
            find_parts(catalog, source, limits, span.start())
        };
    }
    if !looks_like_tail(source)? {
        return Ok(None);
    }
    let footer = match Footer::read(source, index_end, limits) {
        Ok(footer) => footer,
        Err(error @ ErrorKind::Common(CommonError::Source(_))) => return Err(error),
        Err(_) => return find_parts(catalog, source, limits, source.len()),
    };
    let footer = if footer.block.as_ref().is_some_and(is_block) {
        Some(footer)
    } else {
        with_block_named(&footer, source, index_end, limits)?
    };
    let Some(footer) = footer else { return Ok(None) };
    // A footer inside a payload is data: the payload may hold another file.
    let start = footer.payload_end(index_end).unwrap_or(footer.json_span.start());
    if payloads_end(catalog, source, limits)? > start {
        return Ok(None);
    }
    let span = Span::at(12, 4).unwrap_or(Span::first(SUPERBLOCK_LEN));
    let (region, reason) = (Region::Superblock, StaleBlockError::FooterFlag);
    Ok(Some(LostBlock { region, span, reason, footer: Some(footer) }))
}

/// Whether a JSON value has the members of a block.
fn is_block(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    let fits = |name: &&&str| match members.get(**name) {
        Some(Value::Number(_)) => **name == "rows",
        Some(Value::String(_)) => **name != "rows",
        // A column at a span of the file.
        Some(Value::Object(_)) => matches!(**name, "index_crc32c" | "row_crc32c"),
        _ => false,
    };
    MEMBERS.iter().filter(fits).count() >= ENOUGH_MEMBERS
}

/// Takes a block with a damaged name out of unknown members.
fn take_block(unknown: &mut Map<String, Value>) -> Option<Value> {
    let name = unknown.iter().find(|(_, value)| is_block(value))?.0.clone();
    unknown.remove(&name)
}

/// The footer with its block under the right name and of the right version; `None` without a block.
fn with_block_named(
    footer: &Footer,
    source: &dyn ByteSource,
    index_end: u64,
    limits: &Limits,
) -> Result<Option<Footer>, ErrorKind> {
    // Nearly every file without a block ends here.
    let hidden = footer.block.as_ref().is_some_and(is_block) || !footer.metadata.unknown.is_empty();
    if !hidden && footer.json.unknown.is_empty() {
        return Ok(None);
    }
    let mut found = footer.clone();
    let metadata_block = |found: &mut Footer| {
        let block = found.block.take().filter(is_block);
        block.or_else(|| take_block(&mut found.metadata.unknown))
    };
    let mut block = metadata_block(&mut found);
    for (name, value) in &footer.json.unknown {
        if block.is_some() {
            break;
        }
        if let Some(span_ref) = SpanRef::from_value(value) {
            let Ok(span) = spill_span(span_ref, index_end, footer.json_span) else { continue };
            let Some(metadata) = read_lost_spill(source, span, limits)? else { continue };
            (found.metadata, found.spill, found.json.metadata_ref) = (metadata, Some(span), Some(span_ref));
        } else if value.as_object().is_some_and(|members| members.values().any(is_block)) {
            found.metadata = metadata_around(value);
        } else {
            continue;
        }
        found.block = found.metadata.block.take();
        block = metadata_block(&mut found);
        if block.is_some() {
            found.json.unknown.remove(name);
        }
    }
    let Some(mut block) = block else { return Ok(None) };
    if let Some(members) = block.as_object_mut() {
        members.insert("version".to_owned(), 1.into());
    }
    found.block = Some(block);
    found.has_metadata = true;
    Ok(Some(found))
}

/// Metadata with a damaged name. If it does not parse, only its block is kept.
fn metadata_around(value: &Value) -> Metadata {
    serde_json::from_value(value.clone()).unwrap_or_else(|_| {
        let block = value.as_object().and_then(|members| members.values().find(|value| is_block(value)));
        Metadata { block: block.cloned(), ..Metadata::default() }
    })
}

/// A metadata spill whose reference has a damaged name; `None` if the bytes are something else.
fn read_lost_spill(
    source: &dyn ByteSource,
    span: Span,
    limits: &Limits,
) -> Result<Option<Metadata>, ErrorKind> {
    check_limit("a metadata spill", span.len(), limits.metadata_bytes)?;
    let text = source.read_at(span)?;
    if count_traces(&text) < ENOUGH_TRACES {
        return Ok(None);
    }
    check_text(span, limits)?;
    Ok(parse_spill(&text, span).ok())
}

/// Searches the bytes before `end`, after the last payload, for parts of the text of a block.
fn find_parts(
    catalog: &Catalog,
    source: &dyn ByteSource,
    limits: &Limits,
    end: u64,
) -> Result<Option<LostBlock>, ErrorKind> {
    let start = end.saturating_sub(WINDOW).max(catalog.head_end());
    let Some(window) = Span::between(start, end) else { return Ok(None) };
    let bytes = source.read_at(window)?;
    if count_traces(&bytes) < ENOUGH_TRACES {
        return Ok(None);
    }
    let start = payloads_end(catalog, source, limits)?.max(start);
    let skipped = usize::try_from(start - window.start()).unwrap_or(usize::MAX);
    if count_traces(bytes.get(skipped..).unwrap_or_default()) < ENOUGH_TRACES {
        return Ok(None);
    }
    let span = Span::between(start, source.len()).unwrap_or(window);
    Ok(Some(LostBlock { region: Region::Footer, span, reason: StaleBlockError::Parts, footer: None }))
}

fn count_traces(bytes: &[u8]) -> usize {
    TRACES.iter().filter(|text| memchr::memmem::find(bytes, text).is_some()).count()
}

/// Whether the last bytes are those of a footer, with at most a few damaged bits or one damaged field.
fn looks_like_tail(source: &dyn ByteSource) -> Result<bool, ErrorKind> {
    let start = source.len().saturating_sub(TAIL_LEN);
    let Some(span) = Span::at(start, TAIL_LEN).filter(|span| span.start() >= SUPERBLOCK_LEN) else {
        return Ok(false);
    };
    let tail = source.read_at(span)?;
    let fields = tail.split_first_chunk::<8>().and_then(|(json_len, rest)| {
        let (version, magic) = rest.split_first_chunk::<4>()?;
        Some((u64::from_le_bytes(*json_len), u32::from_le_bytes(*version), *magic.first_chunk::<4>()?))
    });
    let Some((json_len, version, magic)) = fields else { return Ok(false) };
    let damaged_bits = (u32::from_le_bytes(magic) ^ u32::from_le_bytes(*FOOTER_MAGIC)).count_ones();
    Ok(damaged_bits <= MAGIC_BITS || (matches!(version, 1 | 2) && (1..=start).contains(&json_len)))
}

/// The end of the last payload. Rows that reach beyond the file are skipped.
fn payloads_end(catalog: &Catalog, source: &dyn ByteSource, limits: &Limits) -> Result<u64, ErrorKind> {
    let grids = catalog.grids();
    let rows = Rows::new(catalog, &grids);
    let context = RowContext { source, checker: None, limits, grids: &grids };
    let mut last = catalog.head_end();
    rows.for_each(&context, |_, row| {
        let end = row.payload_offset.checked_add(row.stored_byte_len);
        last = last.max(end.filter(|&end| end <= source.len()).unwrap_or(0));
        Ok(())
    })?;
    Ok(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn three_members_make_a_block() {
        assert!(is_block(&json!({"footer_crc32c": "0", "rows": 1, "row_crc32c": ""})));
        assert!(is_block(&json!({"rows": 1, "index_crc32c": {"offset": 1}, "row_crc32c": ""})));
        for other in [
            json!(null),
            json!({"rows": 1, "row_crc32c": ""}),
            json!({"rows": "1", "row_crc32c": "", "index_crc32c": ""}),
            json!({"footer_crc32c": {"attrs": {}}, "catalog_crc32c": {}, "rows": {}}),
        ] {
            assert!(!is_block(&other), "{other}");
        }
    }
}
