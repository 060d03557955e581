//! Truncated, modified and random streams.

use super::*;

/// No damaged stream of `values` panics or yields another number of values.
pub(super) fn survives<T: Integer>(values: &[T], seed: u64) {
    for scheme in CASCADE {
        let mut bytes = Vec::new();
        if encode(scheme, values, &mut bytes).is_err() {
            continue;
        }
        let n = values.len();
        for cut in 0..bytes.len() {
            assert!(decoded::<T>(scheme, &bytes[..cut], n).is_err(), "{scheme:?} cut at {cut}");
        }
        let looks = |bytes: &[u8], n: usize| {
            if let Ok(values) = decoded::<T>(scheme, bytes, n) {
                assert_eq!(values.len(), n, "{scheme:?}");
            }
        };
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff, seed.to_le_bytes()[at % 8]] {
                bytes[at] ^= flip;
                looks(&bytes, n);
                bytes[at] ^= flip;
            }
        }
        for other in [0, n + 1, n * 2, n.saturating_sub(1)] {
            looks(&bytes, other);
        }
        // Noise from a position on.
        let from = usize::try_from(seed).unwrap_or(0) % (bytes.len() + 1);
        for (byte, at) in bytes[from..].iter_mut().zip(0u64..) {
            *byte = (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[6];
        }
        looks(&bytes, n);
    }
}

fn detail<T: Integer>(scheme: Scheme, bytes: &[u8], n: usize) -> String {
    decoded::<T>(scheme, bytes, n).unwrap_err().to_string()
}

#[test]
fn invalid_streams_are_explained() {
    use Scheme::{BitpackFor, Delta, GroupVarint, Pfor, Plain, Rle};

    let message = detail::<u32>;
    assert_eq!(
        message(Plain, &[1, 2, 3], 1),
        "plain cannot decode: 1 values of 32 bits take 4 bytes, but 3 are left"
    );
    assert_eq!(message(Plain, &[0; 5], 1), "plain cannot decode: 1 values end after 4 of 5 bytes");
    assert_eq!(message(BitpackFor, &[], 1), "bitpack_for cannot decode: no bytes: the width is missing");
    assert_eq!(
        message(BitpackFor, &[0, 0], 1),
        "bitpack_for cannot decode: a width of 0 bits instead of 1 to 64"
    );
    assert_eq!(
        message(BitpackFor, &[65, 0], 1),
        "bitpack_for cannot decode: a width of 65 bits instead of 1 to 64"
    );
    assert_eq!(
        message(BitpackFor, &[2], 0),
        "bitpack_for cannot decode: an empty list must be byte 1, found 2"
    );
    assert_eq!(message(BitpackFor, &[], 0), "bitpack_for cannot decode: an empty list must be byte 1");
    assert!(message(BitpackFor, &[1, 0x80], 1).contains("no base"));
    assert!(message(Delta, &[0x80], 2).contains("no first value"));
    assert!(message(Delta, &[1], 1).contains("an empty list must be byte 1"));
    assert_eq!(message(Rle, &[1, 0], 1), "rle cannot decode: an empty group at value 0");
    assert_eq!(message(Rle, &[1, 1, 0], 1), "rle cannot decode: an empty group at value 0");
    assert_eq!(message(Rle, &[1, 5, 0], 1), "rle cannot decode: a group of 2 values where 1 of 1 are left");
    assert!(message(Rle, &[1, 3, 0], 2).contains("no group at value 1"));
    assert!(
        message(Rle, &[64, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], 9).contains("9 of 9")
    );
    assert!(message(GroupVarint, &[0, 1], 2).contains("cannot hold 2 values"));
    assert_eq!(
        message(GroupVarint, &[0b1111, 1, 1, 1, 1, 1, 1], 2),
        "group_varint cannot decode: truncated before value 1 of 2"
    );
    assert!(message(Pfor, &[1, 0], 257).contains("257 values"));
    assert!(message(Pfor, &[33, 0], 1).contains("a width of 33"));
    assert!(message(Pfor, &[1], 1).contains("number of exceptions"));
    assert_eq!(message(Pfor, &[1, 1, 2, 5, 0], 2), "pfor cannot decode: an exception at 2; expected 0 to 2");
    assert!(message(Pfor, &[1, 2, 1, 5, 1, 5, 0], 2).contains("an exception at 1; expected 2 to 2"));
    assert!(message(Pfor, &[1, 2, 1, 5, 0, 5, 0], 2).contains("an exception at 0; expected 2 to 2"));
    assert!(message(Pfor, &[1, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 0], 1).contains("more than 32 bits"));
}

#[test]
fn allocations_are_bounded_by_the_input() {
    let bytes = [8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    for scheme in CASCADE {
        for n in [1 << 40, usize::MAX / 64, usize::MAX / 2, usize::MAX] {
            let mut out = Vec::<u64>::new();
            assert!(decode(scheme, &bytes, n, &mut out).is_err(), "{scheme:?}");
            assert!(out.capacity() < 1000, "{scheme:?} {}", out.capacity());
        }
    }
    // A run that claims all of memory.
    let mut run = vec![1];
    crate::varint::put((usize::MAX as u64 >> 1) << 1 | 1, &mut run);
    run.push(1);
    let error = decoded::<u64>(Scheme::Rle, &run, usize::MAX).unwrap_err();
    assert!(matches!(error, CodecError::OutOfMemory { .. }), "{error}");
}
