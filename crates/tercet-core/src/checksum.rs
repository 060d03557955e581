//! CRC-32C and the one way a mismatch is told.

use std::fmt;

/// CRC-32C (Castagnoli) of `bytes`.
///
/// ```
/// assert_eq!(tercet_core::checksum::crc32c(b"123456789"), 0xe306_9283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The CRC-32C of a longer text whose beginning has the checksum `crc`.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// A stored checksum that differs from the computed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The checksum stored in the file.
    pub expected: u64,
    /// The checksum of the bytes as they are now.
    pub actual: u64,
    /// Hex digits of the checksum: 8 for 32 bits, 16 for 64.
    pub digits: u8,
}

impl Mismatch {
    /// Compares two CRC-32C values.
    pub fn check_crc32c(expected: u32, actual: u32) -> Result<(), Self> {
        if expected == actual {
            return Ok(());
        }
        Err(Self { expected: expected.into(), actual: actual.into(), digits: 8 })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = usize::from(self.digits);
        write!(f, "checksum {:0width$x} expected, {:0width$x} found", self.expected, self.actual)
    }
}

impl std::error::Error for Mismatch {}

/// Reads exactly eight lowercase hex digits.
pub fn parse_hex8(text: &str) -> Option<u32> {
    let plain = text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u32::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appending_equals_one_pass() {
        let text = b"stream with tgm, keep with tet, find with tatami";
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(crc32c_append(crc32c(head), tail), crc32c(text));
        }
    }

    #[test]
    fn hex_is_eight_lowercase_digits() {
        assert_eq!(parse_hex8("e3069283"), Some(0xe306_9283));
        for wrong in ["E3069283", "e306928", "e30692830", "+3069283", ""] {
            assert_eq!(parse_hex8(wrong), None);
        }
    }
}
