//! The chunk index: a header and one row per chunk (`docs/spec/tet.md`, chunk index).

use serde::Serialize;
use tercet_core::{FieldReader, Malformed, Reason, Span};

use super::ids::{Codec, INDEX_HEADER_LEN, INDEX_MAGIC, INDEX_VERSION, MAX_RANK, ROW_LEN};
use crate::Region;

/// The memory budget for queries, as stored in the index header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryBudget {
    /// Hundredths of a percent of the host's memory; 0 means the engine's default of 2500.
    #[serde(rename = "memory_budget_percent_bps")]
    pub percent_bps: u16,
    /// A fixed number of bytes; 0 means that the percentage applies.
    #[serde(rename = "memory_budget_bytes")]
    pub bytes: u32,
}

impl MemoryBudget {
    /// Hundredths of a percent of all memory.
    pub(crate) const MAX_PERCENT_BPS: u16 = 10_000;

    /// The budget with at most 100 % of memory.
    pub(crate) fn clamped(self) -> Self {
        Self { percent_bps: self.percent_bps.min(Self::MAX_PERCENT_BPS), ..self }
    }
}

/// The first 32 bytes of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    pub(crate) entry_count: u64,
    pub(crate) budget: MemoryBudget,
}

impl IndexHeader {
    /// Parses the header of an index at `span`.
    pub(crate) fn parse(bytes: &[u8], span: Span) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region::IndexHeader, span.start(), bytes);
        fields.magic("magic", INDEX_MAGIC)?;
        let version = fields.u32_le("index_version")?;
        if version != INDEX_VERSION {
            let reason = Reason::UnknownVersion { found: version.into(), known: "1" };
            return Err(fields.fault("index_version", 4, reason));
        }
        let entry_count = fields.u64_le("entry_count")?;
        if index_len(entry_count) != Some(span.len()) {
            let rows = span.len().saturating_sub(INDEX_HEADER_LEN).checked_div(ROW_LEN).unwrap_or(0);
            let reason = Reason::Mismatch {
                found: entry_count,
                expected: rows,
                because: "chunk_index_length is 32 + 104 bytes for each entry",
            };
            return Err(fields.fault("entry_count", 8, reason));
        }
        let percent_bps = fields.u16_le("memory_budget_percent_bps")?;
        fields.skip("reserved", 2)?;
        let bytes = fields.u32_le("memory_budget_bytes")?;
        fields.skip("reserved", 8)?;
        fields.finish()?;
        Ok(Self { entry_count, budget: MemoryBudget { percent_bps, bytes } })
    }

    /// Encodes the 32 bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend(INDEX_MAGIC);
        out.extend(INDEX_VERSION.to_le_bytes());
        out.extend(self.entry_count.to_le_bytes());
        out.extend(self.budget.percent_bps.to_le_bytes());
        out.extend([0; 2]);
        out.extend(self.budget.bytes.to_le_bytes());
        out.extend([0; 8]);
        out
    }
}

/// The length of an index with this many rows; `None` on overflow.
pub(crate) fn index_len(rows: u64) -> Option<u64> {
    rows.checked_mul(ROW_LEN)?.checked_add(INDEX_HEADER_LEN)
}

/// One row of the chunk index: coordinates, offset, lengths and codec of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The position of the dataset in the directory.
    pub dataset_id: u64,
    /// Grid coordinates; those past the rank are ignored.
    pub chunk_index: [u64; MAX_RANK],
    /// The offset of the stored bytes.
    pub payload_offset: u64,
    /// The number of decoded bytes.
    pub raw_byte_len: u64,
    /// The number of stored bytes.
    pub stored_byte_len: u64,
    /// The number of the codec, known or not.
    pub codec: u32,
}

impl Row {
    /// Parses row `row`, whose 104 bytes are at `start`. The values are not validated.
    pub(crate) fn parse(bytes: &[u8], row: u64, start: u64) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region::IndexRow { row }, start, bytes);
        let dataset_id = fields.u64_le("dataset_id")?;
        let mut chunk_index = [0; MAX_RANK];
        for coordinate in &mut chunk_index {
            *coordinate = fields.u64_le("chunk_index")?;
        }
        let payload_offset = fields.u64_le("payload_offset")?;
        let raw_byte_len = fields.u64_le("raw_byte_len")?;
        let stored_byte_len = fields.u64_le("stored_byte_len")?;
        let codec = fields.u32_le("codec")?;
        fields.skip("reserved", 4)?;
        fields.finish()?;
        Ok(Self { dataset_id, chunk_index, payload_offset, raw_byte_len, stored_byte_len, codec })
    }

    /// Encodes the 104 bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.dataset_id.to_le_bytes());
        for coordinate in self.chunk_index {
            out.extend(coordinate.to_le_bytes());
        }
        out.extend(self.payload_offset.to_le_bytes());
        out.extend(self.raw_byte_len.to_le_bytes());
        out.extend(self.stored_byte_len.to_le_bytes());
        out.extend(self.codec.to_le_bytes());
        out.extend([0; 4]);
    }

    /// Validates a row; returns the codec and the span of the stored bytes.
    pub(crate) fn check(
        &self,
        row: u64,
        start: u64,
        payload_end: u64,
    ) -> Result<(Codec, Span), Malformed<Region>> {
        let fault = |field, at: u64, len: u64, reason| {
            let at = start.saturating_add(at);
            let span = Span::at(at, len).unwrap_or(Span::empty(at));
            let site = tercet_core::Site { region: Region::IndexRow { row }, field, span };
            Malformed { site, reason }
        };
        let payload = Span::at(self.payload_offset, self.stored_byte_len);
        let Some(payload) = payload.filter(|span| span.end() <= payload_end) else {
            let reason = Reason::OutOfBounds {
                offset: self.payload_offset,
                len: self.stored_byte_len,
                end: payload_end,
                what: "payloads",
            };
            let (field, at) = if self.payload_offset > payload_end {
                ("payload_offset", 72)
            } else {
                ("stored_byte_len", 88)
            };
            return Err(fault(field, at, 8, reason));
        };
        let Some(codec) = Codec::from_id(self.codec) else {
            let reason = Reason::OutOfRange { found: self.codec.into(), allowed: "0 (raw) or 1 (zstd)" };
            return Err(fault("codec", 96, 4, reason));
        };
        if codec == Codec::Raw && self.stored_byte_len != self.raw_byte_len {
            let reason = Reason::Mismatch {
                found: self.stored_byte_len,
                expected: self.raw_byte_len,
                because: "a raw chunk stores raw_byte_len bytes",
            };
            return Err(fault("stored_byte_len", 88, 8, reason));
        }
        Ok((codec, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_encoding() {
        let row = Row {
            dataset_id: 3,
            chunk_index: [1, 2, 3, 4, 5, 6, 7, 8],
            payload_offset: 4096,
            raw_byte_len: 60,
            stored_byte_len: 51,
            codec: 1,
        };
        let mut bytes = Vec::new();
        row.encode(&mut bytes);
        assert_eq!(bytes.len(), 104);
        assert_eq!(Row::parse(&bytes, 0, 0).unwrap(), row);
        assert_eq!(row.check(0, 0, 4147).unwrap().0, Codec::Zstd);
        let error = row.check(17, 1744, 4146).unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed chunk index › row 17 › stored_byte_len (bytes 1832..1840)\n  \
             declares 51 bytes at offset 4096, but payloads end at 4146"
        );
    }
}
