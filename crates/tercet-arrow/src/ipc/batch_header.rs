//! Checks of a batch header against the bytes of its body.

use std::sync::Arc;

use arrow_ipc::{CompressionType, MetadataVersion, RecordBatch};
use tercet_core::{Class, Limits, Span};

use super::layout::{self, Columns};
use crate::error::{Batch, Error, ErrorKind};

/// Length of the uncompressed length in front of a compressed buffer.
const PREFIX_LEN: usize = 8;
/// Uncompressed length of a buffer that is stored uncompressed.
const PLAIN: i64 = -1;
/// Number of rows that a batch may have regardless of its bytes: null columns have no buffers.
const FREE_ROWS: u64 = i32::MAX as u64;

/// An inconsistency in a batch.
pub(super) struct Inconsistency {
    buffer: Option<usize>,
    start: u64,
    len: u64,
    class: Class,
    message: String,
}

impl Inconsistency {
    fn in_batch(message: String) -> Self {
        Self { buffer: None, start: 0, len: 0, class: Class::Malformed, message }
    }

    /// Converts to an error; `body` is the byte range of the batch body.
    pub(super) fn at(self, name: &Arc<str>, batch: Batch, index: u64, body: Span) -> Error {
        let span = match self.buffer {
            Some(_) => body.start().checked_add(self.start).and_then(|start| Span::at(start, self.len)),
            None => None,
        };
        let kind = ErrorKind::Batch {
            batch,
            index,
            buffer: self.buffer,
            span: span.unwrap_or(body),
            class: self.class,
            message: self.message,
        };
        Error::new(Arc::clone(name), kind)
    }
}

/// Checks a batch against its body: buffer ranges, possible uncompressed lengths, number of rows. Returns the uncompressed
/// lengths of the buffers.
pub(super) fn batch(data: &RecordBatch<'_>, body: &[u8], limits: Limits) -> Result<Vec<u64>, Inconsistency> {
    let codec = data.compression().map(|compression| compression.codec());
    let (mut total, mut lens) = (0_u64, Vec::new());
    for (index, buffer) in data.buffers().into_iter().flatten().enumerate() {
        let inconsistency = |start: u64, len: u64, message: String| Inconsistency {
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
            let message = format!(
                "declares {len} bytes at offset {offset}, but the batch body has {} bytes",
                body.len()
            );
            return Err(inconsistency(0, body.len() as u64, message));
        };
        let plain = match codec {
            Some(codec) => uncompressed_len(codec, bytes).map_err(|message| {
                inconsistency(start as u64, PREFIX_LEN.min(bytes.len()) as u64, message)
            })?,
            None => bytes.len() as u64,
        };
        total = total.saturating_add(plain);
        // Buffers may overlap: the length of the body does not bound their sum.
        let most = limits.chunk_bytes.max(body.len() as u64);
        if total > most {
            let message = format!("batch of {total} bytes exceeds the limit of {most}");
            return Err(Inconsistency {
                class: Class::Limit,
                ..inconsistency(start as u64, bytes.len() as u64, message)
            });
        }
        lens.push(plain);
    }
    if codec.is_some() {
        check_allocation(total)?;
    }
    // A row takes at least one bit, unless all columns are null.
    let most = total.saturating_mul(8).max(FREE_ROWS);
    let rows = |len: i64| u64::try_from(len).ok().filter(|len| *len <= most);
    if rows(data.length()).is_none() {
        return Err(Inconsistency::in_batch(format!("declares {} rows in {total} bytes", data.length())));
    }
    for (index, node) in data.nodes().into_iter().flatten().enumerate() {
        let (len, nulls) = (node.length(), node.null_count());
        if rows(len).is_none() || !(0..=len).contains(&nulls) {
            let message = format!("array {index} declares {len} rows with {nulls} nulls in {total} bytes");
            return Err(Inconsistency::in_batch(message));
        }
    }
    let variadic = data.variadicBufferCounts().into_iter().flatten();
    let sum = |sum: u64, count: i64| sum.checked_add(u64::try_from(count).ok()?);
    let count = lens.len();
    if variadic.into_iter().try_fold(0_u64, sum).is_none_or(|sum| sum > count as u64) {
        return Err(Inconsistency::in_batch(format!(
            "declares more variadic buffers than its {count} buffers"
        )));
    }
    Ok(lens)
}

/// Checks the lengths of the buffers against the types of the columns.
pub(super) fn buffers(
    columns: &Columns<'_>,
    data: &RecordBatch<'_>,
    lens: &[u64],
    version: MetadataVersion,
) -> Result<(), Inconsistency> {
    layout::check(columns, data, lens, version).map_err(|(index, message)| {
        let buffer = data.buffers().and_then(|buffers| buffers.iter().nth(index));
        let at = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        Inconsistency {
            buffer: Some(index),
            start: at(buffer.map(arrow_ipc::Buffer::offset)),
            len: at(buffer.map(arrow_ipc::Buffer::length)),
            class: Class::Malformed,
            message,
        }
    })
}

/// The uncompressed length of a buffer, if its compression can reach it.
fn uncompressed_len(codec: CompressionType, bytes: &[u8]) -> Result<u64, String> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let Some((prefix, packed)) = bytes.split_first_chunk::<PREFIX_LEN>() else {
        return Err(format!("compressed buffer of {} bytes is shorter than its length prefix", bytes.len()));
    };
    let packed = packed.len() as u64;
    let declared = i64::from_le_bytes(*prefix);
    if declared == PLAIN {
        return Ok(packed);
    }
    // LZ4 adds at most 255 bytes to a match per byte; a Zstandard block expands at least 4 bytes to at most 128 KiB.
    let most = packed.saturating_mul(if codec == CompressionType::LZ4_FRAME { 255 } else { 32 << 10 });
    u64::try_from(declared).ok().filter(|len| *len <= most).ok_or_else(|| {
        format!("declares {declared} uncompressed bytes, but {packed} compressed bytes hold at most {most}")
    })
}

/// Checks that the memory can be allocated: arrow aborts the process otherwise.
fn check_allocation(total: u64) -> Result<(), Inconsistency> {
    let len = usize::try_from(total).ok();
    let fits = len.is_some_and(|len| Vec::<u8>::new().try_reserve_exact(len).is_ok());
    let message = || format!("out of memory ({total} bytes)");
    if fits {
        Ok(())
    } else {
        Err(Inconsistency { class: Class::Limit, ..Inconsistency::in_batch(message()) })
    }
}
