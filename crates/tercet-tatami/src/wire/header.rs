//! The file header.

use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::{CommonError, FieldReader, Malformed, Reason, Span};

use super::cursor::Varints as _;
use super::ids::Codec;
use crate::error::ErrorKind;
use crate::region::Region;

/// Length of the header.
pub(crate) const LEN: u64 = 64;

/// The magic at both ends of a file.
pub(crate) const MAGIC: &[u8; 4] = b"TAT1";

/// The file header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format version, major number.
    pub major: u16,
    /// Format version, minor number.
    pub minor: u16,
    /// See [`file_flags`](super::ids::file_flags).
    pub flags: u16,
    /// The checksum algorithm; always 1, CRC-32C.
    pub checksum: u8,
    /// The default codec of pages; every page stores its own.
    pub default_codec: Codec,
    /// The target size of a page in bytes; 0 for none.
    pub page_size_hint: u32,
    /// The UUID of the file; zero if none.
    pub uuid: [u8; 16],
    /// Number of rows.
    pub rows: u64,
    /// Offset of the footer.
    pub footer_offset: u64,
    /// Creation time in milliseconds since 1970; 0 if unknown.
    pub created_millis: u64,
    /// ID of the creator; 0 if unknown.
    pub creator_id: u32,
}

impl Header {
    /// Parses and verifies the header.
    pub fn parse(bytes: &[u8]) -> Result<Self, ErrorKind> {
        let mut fields = FieldReader::new(Region::Header, 0, bytes);
        fields.magic("magic", MAGIC)?;
        let mut after = fields.clone();
        let covered = &bytes[..bytes.len().min(60)];
        after.skip("fields", 56)?;
        let stored = after.u32_le("header_crc")?;
        Mismatch::check_crc32c(stored, crc32c(covered)).map_err(|mismatch| CommonError::Checksum {
            region: Region::Header,
            span: Span::first(60),
            mismatch,
        })?;
        let major = fields.u16_le("major_version")?;
        if major != 1 {
            let reason = Reason::UnknownVersion { found: major.into(), known: "1" };
            return Err(fields.fault("major_version", 2, reason).into());
        }
        Ok(Self::fields(major, &mut fields)?)
    }

    fn fields(major: u16, fields: &mut FieldReader<'_, Region>) -> Result<Self, Malformed<Region>> {
        Ok(Self {
            major,
            minor: fields.u16_le("minor_version")?,
            flags: fields.u16_le("flags")?,
            checksum: fields.byte("checksum_algorithm")?,
            default_codec: Codec::from_id(fields.byte("default_codec")?),
            page_size_hint: fields.u32_le("page_size_hint")?,
            uuid: fields.array("uuid")?,
            rows: fields.u64_le("row_count")?,
            footer_offset: fields.u64_le("footer_offset")?,
            created_millis: fields.u64_le("created_millis")?,
            creator_id: fields.u32_le("creator_id")?,
        })
    }

    /// The bytes, with their checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.major.to_le_bytes());
        out.extend_from_slice(&self.minor.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.push(self.checksum);
        out.push(self.default_codec.id());
        out.extend_from_slice(&self.page_size_hint.to_le_bytes());
        out.extend_from_slice(&self.uuid);
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.footer_offset.to_le_bytes());
        out.extend_from_slice(&self.created_millis.to_le_bytes());
        out.extend_from_slice(&self.creator_id.to_le_bytes());
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        out
    }

    /// Whether a flag is set.
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            major: 1,
            minor: 1,
            flags: 0,
            checksum: 1,
            default_codec: Codec::Zstd,
            page_size_hint: 0,
            uuid: [0; 16],
            rows: 3,
            footer_offset: 0x70,
            created_millis: 0,
            creator_id: 0,
        }
    }

    #[test]
    fn the_first_test_vector_round_trips() {
        let bytes = header().to_bytes();
        assert_eq!(bytes.len(), 64);
        assert_eq!(&bytes[60..], [0x5c, 0x4a, 0xbd, 0x34]);
        assert_eq!(Header::parse(&bytes).unwrap(), header());
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let mut bytes = header().to_bytes();
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            assert!(Header::parse(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x10;
        }
        for cut in 0..64 {
            assert!(Header::parse(&bytes[..cut]).is_err(), "truncated to {cut}");
        }
    }
}
