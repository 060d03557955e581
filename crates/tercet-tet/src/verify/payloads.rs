//! Checks of the stored bytes of chunks.

use bytes::Bytes;
use rayon::prelude::*;
use tercet_codec::bytes::zstd;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Limits};

use super::{Check, Context};
use crate::error::{Coords, ErrorKind};
use crate::wire::ids::Codec;
use crate::wire::index::Row;

/// Chunks checked between two checks for cancellation.
const BATCH: usize = 1024;

/// A damaged chunk and its error.
pub(super) struct DamagedChunk {
    pub(super) row: usize,
    pub(super) text: String,
}

/// The first few damaged chunks as text.
pub(super) fn list(bad: &[DamagedChunk]) -> String {
    let text = bad.iter().take(8).map(|bad| bad.text.clone()).collect::<Vec<_>>().join("; ");
    if bad.len() <= 8 {
        return text;
    }
    let rows: Vec<String> = bad.iter().skip(8).take(64).map(|bad| bad.row.to_string()).collect();
    let more = if bad.len() > 72 { ", …" } else { "" };
    format!("{text}; and {} more (rows {}{more})", bad.len() - 8, rows.join(", "))
}

/// Checks the first `count` chunks on all threads; returns the damaged ones, in order.
pub(super) fn for_rows(
    check: &Check<'_>,
    context: &Context<'_>,
    count: usize,
    look: impl Fn(usize, &Row) -> Result<Option<String>, ErrorKind> + Sync,
) -> Result<Vec<DamagedChunk>, ErrorKind> {
    let mut all = Vec::new();
    for (batch, rows) in context.table[..count].chunks(BATCH).enumerate() {
        check.progress.check()?;
        let found: Vec<Option<DamagedChunk>> = rows
            .par_iter()
            .enumerate()
            .map(|(at, row)| {
                let number = batch * BATCH + at;
                let reason = look(number, row)?;
                check.progress.advance(row.stored_byte_len);
                Ok(reason.map(|reason| DamagedChunk {
                    row: number,
                    text: describe(context, number, row, &reason),
                }))
            })
            .collect::<Result<_, ErrorKind>>()?;
        all.extend(found.into_iter().flatten());
    }
    Ok(all)
}

fn describe(context: &Context<'_>, number: usize, row: &Row, reason: &str) -> String {
    let record = usize::try_from(row.dataset_id).ok().and_then(|id| context.catalog.records.get(id));
    let Some(record) = record else { return format!("row {number}: {reason}") };
    let name = tercet_core::escape::name(&record.name);
    let coords = Coords(&row.chunk_index[..record.shape.len()]);
    format!("row {number} (dataset `{name}`, chunk {coords}): {reason}")
}

/// The chunks among the first `count` that do not decode.
pub(super) fn undecodable(
    check: &Check<'_>,
    context: &Context<'_>,
    count: usize,
) -> Result<Vec<DamagedChunk>, ErrorKind> {
    for_rows(check, context, count, |_, row| match decode(check.source, row, &check.options.limits)? {
        Ok(_) => Ok(None),
        Err(reason) => Ok(Some(reason)),
    })
}

/// The stored bytes of a valid row.
pub(super) fn stored(source: &dyn ByteSource, row: &Row, limits: &Limits) -> Result<Bytes, ErrorKind> {
    check_limit("a stored chunk", row.stored_byte_len, limits.chunk_bytes)?;
    let span = tercet_core::Span::at(row.payload_offset, row.stored_byte_len);
    let span = span.unwrap_or(tercet_core::Span::empty(row.payload_offset));
    Ok(source.read_at(span)?)
}

/// The decoded bytes of a row, or the error.
pub(super) fn decode(
    source: &dyn ByteSource,
    row: &Row,
    limits: &Limits,
) -> Result<Result<Bytes, String>, ErrorKind> {
    let stored = stored(source, row, limits)?;
    match Codec::from_id(row.codec) {
        Some(Codec::Raw) => Ok(Ok(stored)),
        Some(Codec::Zstd) => {
            let len = check_limit("a chunk", row.raw_byte_len, limits.chunk_bytes)?;
            let mut raw = Vec::new();
            raw.try_reserve_exact(len).map_err(|_| tercet_core::tensor::OutOfMemory { bytes: len })?;
            raw.resize(len, 0);
            Ok(zstd::decode(&stored, &mut raw).map(|()| raw.into()).map_err(|error| error.to_string()))
        }
        None => Ok(Err(format!("unknown codec {}", row.codec))),
    }
}
