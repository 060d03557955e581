//! What a batch says of its rows and buffers, held against the bytes that are there.

use std::sync::Arc;

use arrow_ipc::{CompressionType, RecordBatch};
use tercet_core::{Class, Limits, Span};

use crate::error::{Batch, Error};

/// The length in front of compressed bytes.
const PREFIX_LEN: usize = 8;
/// That length when the bytes are not compressed after all.
const PLAIN: i64 = -1;
/// Rows that a batch may have whatever its bytes: columns of nothing but null have none.
const FREE_ROWS: u64 = i32::MAX as u64;

/// What is wrong with a batch.
pub(super) struct Flaw {
    buffer: Option<usize>,
    start: u64,
    len: u64,
    class: Class,
    message: String,
}

impl Flaw {
    fn of_batch(message: String) -> Self {
        Self { buffer: None, start: 0, len: 0, class: Class::Malformed, message }
    }

    /// The same as an error about a batch whose body lies at a span of the file.
    pub(super) fn at(self, name: &Arc<str>, batch: Batch, index: u64, body: Span) -> Error {
        let span = match self.buffer {
            Some(_) => body.start().checked_add(self.start).and_then(|start| Span::at(start, self.len)),
            None => None,
        };
        let (name, span) = (Arc::clone(name), span.unwrap_or(body));
        Error::Batch {
            name,
            batch,
            index,
            buffer: self.buffer,
            span,
            class: self.class,
            message: self.message,
        }
    }
}

/// Compares a batch with its body: buffers inside of it, lengths that their compression can have, rows that fit.
pub(super) fn batch(data: &RecordBatch<'_>, body: &[u8], limits: Limits) -> Result<(), Flaw> {
    let codec = data.compression().map(|compression| compression.codec());
    let (mut total, mut count) = (0_u64, 0_u64);
    for (index, buffer) in data.buffers().into_iter().flatten().enumerate() {
        let flaw = |start: u64, len: u64, message: String| Flaw {
            buffer: Some(index),
            start,
            len,
            class: Class::Malformed,
            message,
        };
        let (offset, len) = (buffer.offset(), buffer.length());
        let bytes = usize::try_from(offset)
            .ok()
            .zip(usize::try_from(len).ok())
            .and_then(|(start, len)| Some((start, body.get(start..start.checked_add(len)?)?)));
        let Some((start, bytes)) = bytes else {
            let message =
                format!("says {len} bytes at {offset}, but the body of the batch has {}", body.len());
            return Err(flaw(0, body.len() as u64, message));
        };
        let plain = match codec {
            Some(codec) => unpacked(codec, bytes)
                .map_err(|message| flaw(start as u64, PREFIX_LEN.min(bytes.len()) as u64, message))?,
            None => bytes.len() as u64,
        };
        total = total.saturating_add(plain);
        // Buffers may lie on each other: the body alone does not bound their sum.
        let most = limits.chunk_bytes.max(body.len() as u64);
        if total > most {
            let message = format!("makes {total} bytes of the batch, but the limit is {most}");
            return Err(Flaw { class: Class::Limit, ..flaw(start as u64, bytes.len() as u64, message) });
        }
        count += 1;
    }
    if codec.is_some() {
        affordable(total)?;
    }
    // A row takes a bit at least, where it takes anything.
    let most = total.saturating_mul(8).max(FREE_ROWS);
    let rows = |len: i64| u64::try_from(len).ok().filter(|len| *len <= most);
    if rows(data.length()).is_none() {
        return Err(Flaw::of_batch(format!("says {} rows, but has {total} bytes", data.length())));
    }
    for (index, node) in data.nodes().into_iter().flatten().enumerate() {
        let (len, nulls) = (node.length(), node.null_count());
        if rows(len).is_none() || !(0..=len).contains(&nulls) {
            let message =
                format!("array {index} says {len} rows, {nulls} of them null, but has {total} bytes");
            return Err(Flaw::of_batch(message));
        }
    }
    let variadic = data.variadicBufferCounts().into_iter().flatten();
    let sum = |sum: u64, count: i64| sum.checked_add(u64::try_from(count).ok()?);
    if variadic.into_iter().try_fold(0_u64, sum).is_none_or(|sum| sum > count) {
        return Err(Flaw::of_batch(format!("says more buffers of texts than the {count} that it has")));
    }
    Ok(())
}

/// The length of a buffer once it is unpacked, if its compression can reach it.
fn unpacked(codec: CompressionType, bytes: &[u8]) -> Result<u64, String> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let Some((prefix, packed)) = bytes.split_first_chunk::<PREFIX_LEN>() else {
        return Err(format!("has {} bytes, fewer than the length of what is compressed", bytes.len()));
    };
    let packed = packed.len() as u64;
    let said = i64::from_le_bytes(*prefix);
    if said == PLAIN {
        return Ok(packed);
    }
    // LZ4 adds at most 255 bytes to a match for each of its bytes; a block of Zstandard makes at most 128 KiB of at least four.
    let most = packed.saturating_mul(if codec == CompressionType::LZ4_FRAME { 255 } else { 32 << 10 });
    u64::try_from(said).ok().filter(|len| *len <= most).ok_or_else(|| {
        format!("says {said} bytes when it is unpacked, but its {packed} bytes hold at most {most}")
    })
}

/// Whether the memory can be had: the library would end the process without it.
fn affordable(total: u64) -> Result<(), Flaw> {
    let len = usize::try_from(total).ok();
    let fits = len.is_some_and(|len| Vec::<u8>::new().try_reserve_exact(len).is_ok());
    let message = || format!("takes {total} bytes of memory, which cannot be had");
    if fits { Ok(()) } else { Err(Flaw { class: Class::Limit, ..Flaw::of_batch(message()) }) }
}
