//! Variable-length fields.

pub(crate) use tercet_codec::varint::put;
use tercet_core::{FieldReader, Malformed, Reason};

use crate::region::Region;

/// Primitive fields of footer sections and record payloads.
pub(crate) trait Varints<'a> {
    /// The next unsigned LEB128 varint.
    fn uvarint(&mut self, field: &'static str) -> Result<u64, Malformed<Region>>;
    /// The next byte.
    fn byte(&mut self, field: &'static str) -> Result<u8, Malformed<Region>>;
    /// Length-prefixed bytes.
    fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], Malformed<Region>>;
    /// A length-prefixed string.
    fn text(&mut self, field: &'static str) -> Result<&'a str, Malformed<Region>>;
    /// A count of items of at least `min_len` bytes each, limited by the remaining bytes.
    fn count(&mut self, field: &'static str, min_len: usize) -> Result<usize, Malformed<Region>>;
}

impl<'a> Varints<'a> for FieldReader<'a, Region> {
    fn uvarint(&mut self, field: &'static str) -> Result<u64, Malformed<Region>> {
        let mut value = 0;
        for index in 0..10u32 {
            let [byte] = self.array(field)?;
            if index == 9 && byte > 1 {
                let reason = Reason::Overflow { what: "a varint of more than ten bytes" };
                return Err(self.fault(field, u64::from(index) + 1, reason));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, Malformed<Region>> {
        let [byte] = self.array(field)?;
        Ok(byte)
    }

    fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], Malformed<Region>> {
        let len = self.uvarint(field)?;
        self.take(field, len)
    }

    fn text(&mut self, field: &'static str) -> Result<&'a str, Malformed<Region>> {
        let len = self.uvarint(field)?;
        self.utf8(field, len)
    }

    fn count(&mut self, field: &'static str, min_len: usize) -> Result<usize, Malformed<Region>> {
        let before = self.remaining();
        let count = self.uvarint(field)?;
        let most = self.remaining() / min_len.max(1);
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => {
                let reason = Reason::OutOfRange {
                    found: count,
                    allowed: "at most what the remaining bytes can contain",
                };
                let len = before.saturating_sub(self.remaining()) as u64;
                Err(self.fault(field, len, reason))
            }
        }
    }
}

/// Appends length-prefixed bytes.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<u64, Malformed<Region>> {
        FieldReader::new(Region::Footer, 0, bytes).uvarint("number")
    }

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(value, &mut out);
            assert_eq!(read(&out).unwrap(), value);
        }
    }

    #[test]
    fn overlong_varints_are_rejected() {
        let mut tenth = [0x80; 10];
        tenth[9] = 2;
        assert!(read(&tenth).is_err());
        tenth[9] = 1;
        assert_eq!(read(&tenth).unwrap(), 1 << 63);
        assert!(read(&[0x80; 11]).is_err());
        assert!(read(&[0x80]).is_err());
    }

    #[test]
    fn counts_are_limited_by_the_bytes() {
        let mut fields = FieldReader::new(Region::Footer, 0, &[3, 0, 0]);
        assert!(fields.count("things", 1).is_err());
        let mut fields = FieldReader::new(Region::Footer, 0, &[2, 0, 0]);
        assert_eq!(fields.count("things", 1).unwrap(), 2);
    }
}
