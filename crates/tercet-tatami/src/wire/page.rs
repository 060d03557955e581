//! The 32-byte header of pages, runs, dictionaries and index records.

use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::{CommonError, FieldReader, Malformed, Span};

use super::cursor::Varints as _;
use super::ids::{Codec, Encoding, Kind, MARK, page_flags};
use crate::error::ErrorKind;
use crate::region::Region;

/// Length of a record header.
pub(crate) const HEADER_LEN: u64 = 32;

/// The header of a page or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// The kind of the record.
    pub kind: Kind,
    /// The encoding of the values; of a dictionary, its kind.
    pub encoding: Encoding,
    /// The codec of the payload.
    pub codec: Codec,
    /// Whether the codec byte has the mark.
    pub marked: bool,
    /// See [`page_flags`].
    pub flags: u8,
    /// Rows of a page, values of a run.
    pub values: u32,
    /// Uncompressed size of the payload.
    pub raw_bytes: u32,
    /// Compressed size of the payload.
    pub stored_bytes: u32,
    /// Null rows.
    pub nulls: u32,
    /// The first row of a page, relative to its row group.
    pub first_row: u32,
    /// CRC-32C of the stored payload.
    pub payload_crc: u32,
}

impl PageHeader {
    /// The header of an index record, whose payload is never compressed.
    pub(crate) const fn index(payload_bytes: u32, payload_crc: u32) -> Self {
        Self {
            kind: Kind::Index,
            encoding: Encoding::Plain,
            codec: Codec::None,
            marked: false,
            flags: 0,
            values: 0,
            raw_bytes: payload_bytes,
            stored_bytes: payload_bytes,
            nulls: 0,
            first_row: 0,
            payload_crc,
        }
    }

    /// The header of an index record with this payload, which is shorter than 4 GiB.
    pub(crate) fn for_index(payload: &[u8]) -> Self {
        Self::index(u32::try_from(payload.len()).unwrap_or(u32::MAX), crc32c(payload))
    }

    /// Parses the header at `offset`; with `has_checksum` its checksum is verified.
    pub fn parse(region: Region, offset: u64, bytes: &[u8], has_checksum: bool) -> Result<Self, ErrorKind> {
        let mut fields = FieldReader::new(region, offset, bytes);
        let mut after = fields.clone();
        after.skip("header", 28)?;
        let stored = after.u32_le("header_crc")?;
        if has_checksum {
            let covered = &bytes[..bytes.len().min(28)];
            Mismatch::check_crc32c(stored, crc32c(covered)).map_err(|mismatch| CommonError::Checksum {
                region,
                span: Span::at(offset, 28).unwrap_or(Span::empty(offset)),
                mismatch,
            })?;
        }
        Ok(Self::fields(&mut fields)?)
    }

    fn fields(fields: &mut FieldReader<'_, Region>) -> Result<Self, Malformed<Region>> {
        let kind = Kind::from_id(fields.byte("kind")?);
        let encoding = Encoding::from_id(fields.byte("encoding")?);
        let codec = fields.byte("codec")?;
        Ok(Self {
            kind,
            encoding,
            codec: Codec::from_id(codec & !MARK),
            marked: codec & MARK != 0,
            flags: fields.byte("flags")?,
            values: fields.u32_le("num_values")?,
            raw_bytes: fields.u32_le("uncompressed_size")?,
            stored_bytes: fields.u32_le("stored_size")?,
            nulls: fields.u32_le("null_count")?,
            first_row: fields.u32_le("first_row_index")?,
            payload_crc: fields.u32_le("payload_crc")?,
        })
    }

    /// The bytes, with their checksum at the end.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let mark = if self.marked { MARK } else { 0 };
        out[..4].copy_from_slice(&[self.kind.id(), self.encoding.id(), self.codec.id() | mark, self.flags]);
        let numbers =
            [self.values, self.raw_bytes, self.stored_bytes, self.nulls, self.first_row, self.payload_crc];
        for (field, number) in out[4..28].chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c(&out[..28]);
        out[28..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Whether a flag is set.
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Non-null rows; `None` if there are more nulls than rows.
    pub const fn present(&self) -> Option<u32> {
        self.values.checked_sub(self.nulls)
    }

    /// Whether the payload starts with a validity bitmap.
    pub const fn has_nulls(&self) -> bool {
        self.has(page_flags::NULLS)
    }

    /// Header and payload of a record at `offset`.
    pub const fn span(&self, offset: u64) -> Option<Span> {
        Span::at(offset, HEADER_LEN + self.stored_bytes as u64)
    }

    /// The payload of a record at `offset`.
    pub const fn payload_span(&self, offset: u64) -> Option<Span> {
        match offset.checked_add(HEADER_LEN) {
            Some(start) => Span::at(start, self.stored_bytes as u64),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector() -> PageHeader {
        PageHeader {
            kind: Kind::Data,
            encoding: Encoding::BitpackFor,
            codec: Codec::Zstd,
            marked: false,
            flags: 0,
            values: 3,
            raw_bytes: 3,
            stored_bytes: 16,
            nulls: 0,
            first_row: 0,
            payload_crc: u32::from_le_bytes([0xdc, 0x7c, 0x0a, 0x2b]),
        }
    }

    #[test]
    fn the_first_test_vector_round_trips() {
        let bytes = vector().to_bytes();
        assert_eq!(&bytes[..4], [0, 3, 2, 0]);
        assert_eq!(&bytes[28..], [0x57, 0x46, 0x64, 0xa4]);
        let region = Region::Page { group: 0, column: 0, page: 0 };
        assert_eq!(PageHeader::parse(region, 64, &bytes, true).unwrap(), vector());
    }

    #[test]
    fn flips_under_a_checksum_are_detected() {
        let region = Region::Page { group: 0, column: 0, page: 0 };
        let mut bytes = vector().to_bytes();
        for at in 0..32 {
            bytes[at] ^= 4;
            assert!(PageHeader::parse(region, 64, &bytes, true).is_err(), "byte {at}");
            bytes[at] ^= 4;
        }
        bytes[30] = 0;
        PageHeader::parse(region, 64, &bytes, false).unwrap();
    }
}
