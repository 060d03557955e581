//! Lists: lengths, then the elements of all rows as one stream.

use std::borrow::Cow;

use tercet_codec::varint;

use super::{Rows, Stream, Tools, put_lengths, stream};
use crate::column::{Column, Lists};
use crate::error::ErrorKind;

/// Flag: a validity bitmap of the elements follows.
const HAS_NULLS: u8 = 1;

/// Appends the non-null lists; the encoding is that of the elements.
pub(super) fn encode(
    lists: &Lists,
    rows: &Rows<'_>,
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<Stream, ErrorKind> {
    let lengths: Vec<u32> = rows
        .positions()
        // Batches with longer lists are rejected.
        .map(|row| u32::try_from(lists.range(row).len()).unwrap_or(u32::MAX))
        .collect();
    put_lengths(&lengths, out)?;
    let (elements, range) = elements(lists, rows);
    varint::put(range.len() as u64, out);
    let rows = Rows::new(&elements, range);
    out.push(if rows.validity.is_some() { HAS_NULLS } else { 0 });
    rows.put_bitmap(out);
    stream(&elements.values, &rows, tools, out)
}

/// The elements of the non-null rows and their range; copied only if a null row has elements.
fn elements<'a>(lists: &'a Lists, rows: &Rows<'_>) -> (Cow<'a, Column>, std::ops::Range<usize>) {
    let is_stray =
        |row: &usize| rows.validity.is_some_and(|bits| !bits.get(*row)) && !lists.range(*row).is_empty();
    if !rows.range.clone().any(|row| is_stray(&row)) {
        let at = |row: usize| if row == 0 { 0 } else { lists.range(row - 1).end };
        return (Cow::Borrowed(&lists.elements), at(rows.range.start)..at(rows.range.end));
    }
    let mut kept = Column { values: lists.elements.values.same_empty(), validity: None };
    for row in rows.positions() {
        let range = lists.range(row);
        kept.extend_from(&lists.elements, range.start, range.end);
    }
    let len = kept.len();
    (Cow::Owned(kept), 0..len)
}
