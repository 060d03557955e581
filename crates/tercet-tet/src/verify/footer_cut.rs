//! The offset at which a damaged footer can be cut off.

use tercet_core::{ByteSource, Limits};

use crate::catalog::{Catalog, read_tail};
use crate::error::ErrorKind;
use crate::rows::{RowContext, Rows};
use crate::wire::footer::Json;

/// The end of the payloads of a file with a damaged footer: the start of the footer if it is found, but never before
/// the end of a payload.
pub(crate) fn footer_cut_offset(source: &dyn ByteSource, limits: &Limits) -> Result<u64, ErrorKind> {
    let catalog = Catalog::read_head(source, limits)?;
    let grids = catalog.grids();
    let rows = Rows::new(&catalog, &grids);
    let context = RowContext { source, checker: None, limits, grids: &grids };
    let mut payloads_end = catalog.head_end();
    rows.for_each(&context, |number, row| {
        let (_, span) = row.check(number, rows.row_start(number), source.len())?;
        payloads_end = payloads_end.max(span.end());
        Ok(())
    })?;
    let text_start = read_tail(source).ok().map(|(tail, json)| {
        let spilled = source.read_at(json).ok().and_then(|text| {
            let parsed = Json::parse(&text, json).ok()?;
            parsed.spilled(tail.history_version, catalog.head_end(), json)
        });
        // JSON that does not parse has no known spills.
        json.start().saturating_sub(spilled.unwrap_or(0))
    });
    Ok(text_start.map_or(payloads_end, |start| start.max(payloads_end)))
}
