//! CRC-32C and xxh3-64 checksums.

use std::fmt;
use std::hash::Hasher as _;

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli) of `bytes`.
///
/// ```
/// assert_eq!(tercet_core::checksum::crc32c(b"123456789"), 0xe306_9283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    low_half(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// Extends the CRC-32C `crc` by `bytes`.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    // The state of the computation is the inverted checksum.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, (!crc).into());
    digest.update(bytes);
    low_half(digest.finalize())
}

#[expect(clippy::cast_possible_truncation, reason = "the library returns all checksums as 64 bits")]
fn low_half(checksum: u64) -> u32 {
    checksum as u32
}

/// The CRC-32C of a concatenation: a prefix with the checksum `crc` and `rest_len` bytes with the checksum `rest`.
///
/// With `rest` 0 it is the contribution of the prefix: the exclusive or of the contributions of all parts, in any
/// order, is the checksum of the whole.
///
/// ```
/// use tercet_core::checksum::{crc32c, crc32c_combine};
///
/// assert_eq!(crc32c_combine(crc32c(b"12345"), crc32c(b"6789"), 4), crc32c(b"123456789"));
/// ```
pub fn crc32c_combine(crc: u32, rest: u32, rest_len: u64) -> u32 {
    Crc32cShift::new(rest_len).apply(crc) ^ rest
}

/// Shifts CRC-32C checksums by a fixed number of bytes: the same as [`crc32c_combine`] with `rest` 0, but computed once
/// for a length and then applied within nanoseconds.
///
/// ```
/// use tercet_core::checksum::{Crc32cShift, crc32c};
///
/// let shift = Crc32cShift::new(4);
/// assert_eq!(shift.apply(crc32c(b"12345")) ^ crc32c(b"6789"), crc32c(b"123456789"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc32cShift(u32);

impl Crc32cShift {
    /// The shift by `len` bytes: x^(8·len) modulo the polynomial.
    pub fn new(len: u64) -> Self {
        /// x^(2^k) for every k.
        const POWERS: [u32; 67] = {
            let mut powers = [1 << 30; 67];
            let mut k = 1;
            while k < powers.len() {
                powers[k] = multiply(powers[k - 1], powers[k - 1]);
                k += 1;
            }
            powers
        };
        let (mut power, mut rest, mut k) = (1 << 31, len, 3);
        while rest > 0 {
            if rest & 1 == 1 {
                power = multiply(POWERS[k], power);
            }
            rest >>= 1;
            k += 1;
        }
        Self(power)
    }

    /// The checksum, shifted.
    pub fn apply(self, crc: u32) -> u32 {
        multiply(self.0, crc)
    }
}

/// The product of two polynomials modulo that of CRC-32C, the highest bit being the coefficient of 1.
const fn multiply(a: u32, mut b: u32) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let (mut product, mut bit) = (0, 1 << 31);
    while bit != 0 {
        // Without branches: bits of checksums cannot be guessed.
        product ^= b & ((a & bit != 0) as u32).wrapping_neg();
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

/// xxh3-64 (seed 0, default secret) of `bytes`.
///
/// ```
/// assert_eq!(tercet_core::checksum::xxh3(b""), 0x2d06_8005_38d3_94c2);
/// ```
pub fn xxh3(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// Incremental xxh3-64.
#[derive(Clone, Default)]
pub struct Xxh3(twox_hash::XxHash3_64);

impl Xxh3 {
    /// The hash of no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all bytes so far.
    pub fn digest(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xxh3({:016x})", self.digest())
    }
}

/// The error of a stored checksum that differs from the computed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The checksum stored in the file.
    pub expected: u64,
    /// The checksum of the bytes read.
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

    /// Compares two xxh3-64 values.
    pub fn check_xxh3(expected: u64, actual: u64) -> Result<(), Self> {
        if expected == actual {
            return Ok(());
        }
        Err(Self { expected, actual, digits: 16 })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = usize::from(self.digits);
        write!(f, "checksum {:0width$x} expected, {:0width$x} found", self.expected, self.actual)
    }
}

impl std::error::Error for Mismatch {}

/// Parses exactly eight lowercase hex digits.
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

    /// One bit at a time.
    fn naive_crc32c(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
                (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
            })
        })
    }

    #[test]
    fn every_length_and_alignment_equals_the_naive_computation() {
        let bytes: Vec<u8> = (0..9000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        let lengths = (0..700).chain([767, 768, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 4097, 8192, 8900]);
        for len in lengths {
            for start in [0, 1, 7, 33] {
                let bytes = &bytes[start..start + len];
                let expected = naive_crc32c(bytes);
                assert_eq!(crc32c(bytes), expected, "{len} bytes from {start}");
                let (head, tail) = bytes.split_at(len / 3);
                assert_eq!(
                    crc32c_append(crc32c(head), tail),
                    expected,
                    "{len} bytes from {start}, in two parts"
                );
            }
        }
    }

    #[test]
    fn contributions_combine_in_any_order() {
        let text = b"stream with tgm, keep with tet, find with tatami";
        let (first, rest) = text.split_at(7);
        let (second, third) = rest.split_at(20);
        let parts = [(third, 0), (first, rest.len()), (second, third.len())];
        let whole =
            parts.iter().fold(0, |sum, (part, after)| sum ^ crc32c_combine(crc32c(part), 0, *after as u64));
        assert_eq!(whole, crc32c(text));
    }

    #[test]
    fn xxh3_in_pieces_equals_one_pass() {
        let text: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in [0, 1, 3, 16, 17, 128, 129, 240, 241, 256, 257, 1024, 1025, 5000] {
            for cut in [0, 1, len / 3, len / 2, len] {
                let (head, tail) = text[..len].split_at(cut.min(len));
                let mut hash = Xxh3::new();
                hash.update(head);
                hash.update(tail);
                assert_eq!(hash.digest(), xxh3(&text[..len]), "{len} cut at {cut}");
            }
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
