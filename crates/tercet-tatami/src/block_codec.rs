//! Records: 32-byte header and payload; checksums and decompression.

use bytes::Bytes;
use tercet_codec::bytes::{lz4, zstd};
use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{CommonError, Malformed, Reason, Site, Span};

use crate::error::ErrorKind;
use crate::file::Inner;
use crate::region::Region;
use crate::wire::header;
use crate::wire::ids::{Codec, Kind};
use crate::wire::page::{HEADER_LEN, PageHeader};

/// A verified record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) header: PageHeader,
    /// The byte range of the payload.
    pub(crate) span: Span,
    /// The stored payload.
    pub(crate) stored: Bytes,
}

impl Inner {
    /// Reads a record of this kind between header and footer.
    pub(crate) fn record(&self, region: Region, offset: u64, kind: Kind) -> Result<Record, ErrorKind> {
        let head = self.body_span(region, offset, HEADER_LEN)?;
        let header =
            PageHeader::parse(region, offset, &self.source.read_at(head)?, self.has_header_checksums())?;
        if header.kind != kind {
            let reason = Reason::OutOfRange { found: header.kind.id().into(), allowed: kind_number(kind) };
            return Err(fault(region, "kind", offset, 1, reason));
        }
        let start = offset + HEADER_LEN;
        let span = self.body_span(region, start, header.stored_bytes.into())?;
        let stored = self.source.read_at(span)?;
        self.check_payload(region, span, &header, &stored)?;
        Ok(Record { header, span, stored })
    }

    /// A record whose header and payload have been read.
    pub(crate) fn record_in(
        &self,
        region: Region,
        offset: u64,
        kind: Kind,
        bytes: &Bytes,
    ) -> Result<Record, ErrorKind> {
        let header = PageHeader::parse(region, offset, bytes, self.has_header_checksums())?;
        let span = self.body_span(region, offset + HEADER_LEN, header.stored_bytes.into())?;
        let start = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
        if header.kind != kind || bytes.len().checked_sub(start) != span.len_usize() {
            // Reading the record reports the error.
            return self.record(region, offset, kind);
        }
        let stored = bytes.slice(start..);
        self.check_payload(region, span, &header, &stored)?;
        Ok(Record { header, span, stored })
    }

    /// The span of `len` bytes at `offset`, which must be between header and footer.
    pub(crate) fn body_span(&self, region: Region, offset: u64, len: u64) -> Result<Span, ErrorKind> {
        let body = Span::between(header::LEN, self.footer_span.start());
        Span::at(offset, len).filter(|span| body.is_some_and(|body| body.contains(*span))).ok_or_else(|| {
            let reason = Reason::OutOfBounds {
                offset,
                len,
                end: self.footer_span.start(),
                what: "the bytes between header and footer",
            };
            fault(region, "offset", offset, 0, reason)
        })
    }

    /// Verifies the checksum of a payload.
    pub(crate) fn check_payload(
        &self,
        region: Region,
        span: Span,
        header: &PageHeader,
        stored: &[u8],
    ) -> Result<(), ErrorKind> {
        if !self.options.common.verify {
            return Ok(());
        }
        Mismatch::check_crc32c(header.payload_crc, crc32c(stored))
            .map_err(|mismatch| CommonError::Checksum { region, span, mismatch })?;
        Ok(())
    }

    /// Decompresses a payload to exactly `raw_bytes` bytes.
    pub(crate) fn decompress(
        &self,
        region: Region,
        span: Span,
        stored: &Bytes,
        codec: Codec,
        raw_bytes: u64,
        dictionary: Option<&zstd::Dictionary>,
    ) -> Result<Bytes, ErrorKind> {
        if stored.is_empty() && raw_bytes == 0 {
            return Ok(Bytes::new());
        }
        if codec == Codec::None {
            if stored.len() as u64 == raw_bytes {
                return Ok(stored.clone());
            }
            let because = "the stored size of an uncompressed payload";
            let reason = Reason::Mismatch { found: raw_bytes, expected: stored.len() as u64, because };
            return Err(fault(region, "uncompressed_size", span.start(), 0, reason));
        }
        let len = check_limit("a decompressed payload", raw_bytes, self.page_limit())?;
        let mut raw = self.pool.take(len);
        let decoded = match codec {
            Codec::Zstd => zstd::decode_new(stored, len, &mut raw),
            Codec::Lz4 => {
                raw.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes: len })?;
                raw.resize(len, 0);
                lz4::block::decode(stored, &mut raw)
            }
            Codec::ZstdDict => {
                let Some(dictionary) = dictionary else {
                    let rule = "a payload with a dictionary belongs to a column that has one";
                    return Err(fault(region, "codec", span.start(), 0, Reason::Unexpected { rule }));
                };
                dictionary.decode_new(stored, len, &mut raw)
            }
            Codec::None | Codec::Unknown(_) => {
                let reason = Reason::UnknownId { found: codec.id().into(), known: "0 to 3" };
                return Err(fault(region, "codec", span.start(), 0, reason));
            }
        };
        decoded.map_err(|error| ErrorKind::Codec { region, span, error: Box::new(error) })?;
        Ok(self.pool.lend(raw))
    }
}

const fn kind_number(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "0 (a page)",
        Kind::Dictionary => "1 (a dictionary)",
        Kind::Index => "2 (an index record)",
        Kind::Run => "3 (a blob run)",
        Kind::Unknown(_) => "a known kind",
    }
}

/// Error of a field of a region.
pub(crate) fn fault(region: Region, field: &'static str, offset: u64, len: u64, reason: Reason) -> ErrorKind {
    let span = Span::at(offset, len).unwrap_or(Span::empty(offset));
    Malformed { site: Site { region, field, span }, reason }.into()
}
