//! Unsigned LEB128 varints.
//!
//! Seven bits per byte, low bits first; the high bit marks that more bytes follow. [`put`] writes the shortest form,
//! [`get`] also accepts longer ones of at most ten bytes, like other readers.

use crate::CodecError;

/// Maximum bytes of one number.
pub const MAX_BYTES: usize = 10;

/// Appends `value` to `out`.
#[expect(clippy::cast_possible_truncation, reason = "a byte is cut off at a time")]
pub fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Number of bytes that [`put`] appends for `value`.
pub const fn len(value: u64) -> usize {
    // Zero takes one byte.
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Decodes the number at the start of `bytes`, and returns it with its length.
#[inline]
pub fn get(bytes: &[u8]) -> Result<(u64, usize), CodecError> {
    match bytes {
        [byte @ 0..0x80, ..] => Ok((u64::from(*byte), 1)),
        _ => get_long(bytes),
    }
}

fn get_long(bytes: &[u8]) -> Result<(u64, usize), CodecError> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        if index + 1 == MAX_BYTES && byte > 1 {
            return Err(failed("a number has more than 64 bits".to_owned()));
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(failed(format!("truncated number after {} bytes", bytes.len())))
}

fn failed(detail: String) -> CodecError {
    CodecError::Decode { codec: "varint", detail }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put(value, &mut out);
        out
    }

    #[test]
    fn numbers_have_known_bytes() {
        assert_eq!(written(0), [0]);
        assert_eq!(written(127), [0x7f]);
        assert_eq!(written(128), [0x80, 0x01]);
        assert_eq!(written(1000), [0xe8, 0x07]);
        assert_eq!(written(70_000), [0xf0, 0xa2, 0x04]);
        assert_eq!(written(u64::MAX), [&[0xff; 9][..], &[0x01]].concat());
    }

    #[test]
    fn longer_forms_are_accepted_up_to_ten_bytes() {
        assert_eq!(get(&[0x85, 0x00]), Ok((5, 2)));
        assert_eq!(get(&[0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), Ok((5, 10)));
        assert_eq!(get(&[&[0x80; 9][..], &[0x01]].concat()), Ok((1 << 63, 10)));
    }

    #[test]
    fn wrong_lengths_are_rejected() {
        assert!(get(&[]).is_err());
        for len in 1..=MAX_BYTES {
            assert!(get(&vec![0x80; len]).is_err(), "{len} bytes without an end");
        }
        assert!(get(&[&[0xff; 9][..], &[0x02]].concat()).is_err(), "65 bits");
        assert!(get(&[&[0x80; 10][..], &[0x00]].concat()).is_err(), "an eleventh byte");
        assert!(
            get(&[&[0x80; 9][..], &[0x81, 0x00]].concat()).is_err(),
            "an eleventh byte after a small tenth"
        );
    }

    proptest! {
        #[test]
        fn round_trips(bits in 0u32..=64, noise in any::<u64>(), tail in any::<u8>()) {
            let value = noise.checked_shr(64 - bits).unwrap_or(0);
            let mut bytes = written(value);
            prop_assert_eq!(bytes.len(), len(value));
            for cut in 0..bytes.len() {
                prop_assert!(get(&bytes[..cut]).is_err());
            }
            bytes.push(tail);
            prop_assert_eq!(get(&bytes), Ok((value, bytes.len() - 1)));
        }
    }
}
