//! The payload of a record: in memory, or read in blocks with checksums of their own.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::{ByteSource, CommonError, Reason, Span};

use crate::block_codec::fault;
use crate::error::ErrorKind;
use crate::region::Region;

/// The payload of a record.
#[derive(Debug)]
pub(crate) struct Payload {
    region: Region,
    span: Span,
    bytes: PayloadBytes,
}

#[derive(Debug)]
enum PayloadBytes {
    /// Verified as a whole.
    Whole(Bytes),
    /// Verified block by block, when it is read.
    Blocks {
        source: Arc<dyn ByteSource>,
        block_bytes: u64,
        /// The CRC-32C of each block, little-endian; `None` if checksums are not verified.
        sums: Option<Bytes>,
    },
}

impl Payload {
    pub(crate) const fn whole(region: Region, span: Span, bytes: Bytes) -> Self {
        Self { region, span, bytes: PayloadBytes::Whole(bytes) }
    }

    pub(crate) fn in_blocks(
        region: Region,
        span: Span,
        source: Arc<dyn ByteSource>,
        block_bytes: u64,
        sums: Option<Bytes>,
    ) -> Self {
        Self { region, span, bytes: PayloadBytes::Blocks { source, block_bytes, sums } }
    }

    /// Its bytes in the file.
    pub(crate) const fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn is_remote(&self) -> bool {
        match &self.bytes {
            PayloadBytes::Whole(_) => false,
            PayloadBytes::Blocks { source, .. } => source.is_remote(),
        }
    }

    /// Some of its bytes. The blocks with them are read at once and verified.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Result<Bytes, ErrorKind> {
        let end = offset.checked_add(len).filter(|end| *end <= self.span.len());
        let Some(end) = end else {
            let what = "the bytes of the record";
            let reason = Reason::OutOfBounds { offset, len, end: self.span.len(), what };
            return Err(fault(self.region, "offset", self.span.start(), 0, reason));
        };
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        match &self.bytes {
            PayloadBytes::Whole(bytes) => Ok(bytes.slice(index(offset)..index(end))),
            PayloadBytes::Blocks { source, block_bytes, sums } => {
                if len == 0 {
                    return Ok(Bytes::new());
                }
                let first = offset / block_bytes;
                let start = first * block_bytes;
                let stop = end.next_multiple_of(*block_bytes).min(self.span.len());
                let span = self.part(start, stop - start);
                let bytes = source.read_at(span)?;
                if let Some(sums) = sums {
                    let blocks = bytes.chunks(index(*block_bytes));
                    for (number, block) in (first..).zip(blocks) {
                        let at = index(number) * 4;
                        let sum = sums.get(at..at + 4).and_then(|sum| sum.first_chunk());
                        let stored = sum.map_or(0, |sum| u32::from_le_bytes(*sum));
                        Mismatch::check_crc32c(stored, crc32c(block)).map_err(|mismatch| {
                            let span = self.part(number * block_bytes, block.len() as u64);
                            CommonError::Checksum { region: self.region, span, mismatch }
                        })?;
                    }
                }
                Ok(bytes.slice(index(offset - start)..index(end - start)))
            }
        }
    }

    fn part(&self, offset: u64, len: u64) -> Span {
        let start = self.span.start() + offset;
        Span::at(start, len).unwrap_or(Span::empty(start))
    }
}
