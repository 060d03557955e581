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

/// The CRC-32C of a text whose beginning has the checksum `crc` and whose remaining `rest_len` bytes have `rest`.
///
/// With `rest` 0 this is what the beginning adds to the checksum of the whole: those of all parts, each with the
/// bytes behind it, make the checksum by exclusive or, in any order.
///
/// ```
/// use tercet_core::checksum::{crc32c, crc32c_combine};
///
/// assert_eq!(crc32c_combine(crc32c(b"12345"), crc32c(b"6789"), 4), crc32c(b"123456789"));
/// ```
pub fn crc32c_combine(crc: u32, rest: u32, rest_len: u64) -> u32 {
    let len = usize::try_from(rest_len);
    // Longer texts than a machine can hold are told in halves.
    len.map_or_else(
        |_| {
            let half = rest_len / 2;
            crc32c_combine(crc32c_combine(crc, 0, half), rest, rest_len - half)
        },
        |len| ::crc32c::crc32c_combine(crc, rest, len),
    )
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
    fn parts_in_any_order_make_the_whole() {
        let text = b"stream with tgm, keep with tet, find with tatami";
        let (first, rest) = text.split_at(7);
        let (second, third) = rest.split_at(20);
        let parts = [(third, 0), (first, rest.len()), (second, third.len())];
        let whole =
            parts.iter().fold(0, |sum, (part, after)| sum ^ crc32c_combine(crc32c(part), 0, *after as u64));
        assert_eq!(whole, crc32c(text));
    }

    #[test]
    fn hex_is_eight_lowercase_digits() {
        assert_eq!(parse_hex8("e3069283"), Some(0xe306_9283));
        for wrong in ["E3069283", "e306928", "e30692830", "+3069283", ""] {
            assert_eq!(parse_hex8(wrong), None);
        }
    }
}
