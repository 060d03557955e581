mod damage;
mod slow;

use proptest::prelude::*;

use super::*;

fn encoded<T: Integer>(scheme: Scheme, values: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(scheme, values, &mut out).unwrap();
    out
}

fn decoded<T: Integer>(scheme: Scheme, bytes: &[u8], n: usize) -> Result<Vec<T>, CodecError> {
    let mut out = Vec::new();
    decode(scheme, bytes, n, &mut out).map(|()| out)
}

/// Round trip, and the predicted length.
fn check<T: Integer>(scheme: Scheme, values: &[T], bytes: &[u8]) {
    assert_eq!(encoded(scheme, values), bytes, "{scheme:?} {values:?}");
    assert_eq!(encoded_len(scheme, values), Some(bytes.len() as u64), "{scheme:?} {values:?}");
    assert_eq!(decoded::<T>(scheme, bytes, values.len()).unwrap(), values, "{scheme:?}");
}

#[test]
fn streams_have_known_bytes() {
    use Scheme::{BitpackFor, Delta, GroupVarint, Pfor, Plain, Rle};

    check(Plain, &[300u16, 1], &[0x2c, 1, 1, 0]);
    check(Plain, &[-2i32], &[0xfe, 0xff, 0xff, 0xff]);
    check(BitpackFor, &[7i32, 8, 9], &[2, 7, 0x24]);
    check(BitpackFor, &[5u16, 6], &[1, 5, 2]);
    check(BitpackFor, &[1000u32, 1003, 1001], &[0x02, 0xe8, 0x07, 0x1c]);
    let negative = [0x03, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x50, 0x01];
    check(BitpackFor, &[-3i64, -1, 2], &negative);
    check(BitpackFor, &[-3i8, -1, 2], &negative);
    check(BitpackFor, &[5u64, 5, 5], &[0x01, 0x05, 0x00]);
    check(BitpackFor, &[0u8, 1, 0, 0], &[1, 0, 2]);
    check(BitpackFor, &[2u32, 2], &[1, 2, 0]);
    check(BitpackFor, &[1.5f32.to_bits(); 9], &[0x01, 0x80, 0x80, 0x80, 0xfe, 0x03, 0x00, 0x00]);
    check(Delta, &[100u32, 103, 101, 101], &[0x64, 0x03, 0x00, 0x1e, 0x00]);
    check(Delta, &[42i16], &[0x2a, 0x01]);
    check(
        Delta,
        &[-1i64, 0, 1],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x01, 0x02, 0x00],
    );
    check(Delta, &[1.5f32.to_bits(); 9], &[0x80, 0x80, 0x80, 0xfe, 0x03, 0x01, 0x00, 0x00]);
    check(Rle, &[7u8, 7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3], &[0x03, 0x13, 0x07, 0x06, 0xd1, 0x00]);
    check(Rle, &[1u32, 2, 9, 9, 9, 9, 9, 9, 9, 9], &[0x04, 0x04, 0x21, 0x11, 0x09]);
    check(Rle, &[7i32, 7, 7], &[0x03, 0x06, 0xff, 0x01]);
    check(Rle, &[1.5f32.to_bits(); 9], &[0x1e, 0x13, 0x00, 0x00, 0xc0, 0x3f]);
    check(
        GroupVarint,
        &[1u32, 256, 65_536, 16_777_216, 5, 300],
        &[0xe4, 0x01, 0x00, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x04, 0x05, 0x2c, 0x01],
    );
    check(GroupVarint, &[1u32, 1], &[0, 1, 1]);
    check(Pfor, &[1i32, 2, 3, 0, 70_000, 1, 2, 3], &[0x02, 0x01, 0x04, 0xf0, 0xa2, 0x04, 0x39, 0xe4]);
    check(Pfor, &[2u32, 3], &[2, 0, 0x0e]);
}

#[test]
fn packed_bits_are_self_contained() {
    let mut out = vec![9];
    pack_bits(3, &[6u8, 0, 1], &mut out).unwrap();
    assert_eq!(out, [9, 0x46, 0x00]);
    let mut back = vec![7u64];
    assert_eq!(unpack_bits(3, &[0x46, 0x00, 0xff], 3, &mut back), Ok(2));
    assert_eq!(back, [7, 6, 0, 1]);
    assert!(pack_bits(2, &[4u8], &mut out).is_err(), "too wide");
    assert!(pack_bits(63, &[-1i8], &mut out).is_err(), "too wide");
    pack_bits(64, &[-1i8], &mut out).unwrap();
    assert!(unpack_bits(3, &[0x46], 3, &mut back).is_err(), "too short");
    for width in [0, 65, u32::MAX] {
        assert!(pack_bits(width, &[0u8], &mut out).is_err());
        assert!(unpack_bits(width, &[0; 100], 1, &mut back).is_err());
    }
    assert_eq!((out.len(), back.len()), (11, 4));
}

#[test]
fn kernels_agree_with_the_plain_one() {
    let packed: Vec<u8> = (0..2000u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    for width in 1..=64 {
        for n in [0usize, 1, 5, 8, 63, 64, 65, 127, 128, 200] {
            let packed = &packed[..usize::try_from(bitpack::packed_len(n, width)).unwrap()];
            let (mut fast, mut plain) = (Vec::<u64>::new(), Vec::new());
            bitpack::unpack(width, packed, n, &mut bitpack::Above { base: 5, out: &mut fast });
            bitpack::unpack_portable(width, packed, n, &mut bitpack::Above { base: 5, out: &mut plain });
            assert_eq!(fast, plain, "{n} of {width} bits");
            let one = |index: usize| {
                let bits = (0..width as usize).map(|bit| index * width as usize + bit).enumerate();
                bits.map(|(bit, at)| u64::from(packed[at / 8] >> (at % 8) & 1) << bit)
                    .sum::<u64>()
                    .wrapping_add(5)
            };
            assert_eq!(plain, (0..n).map(one).collect::<Vec<_>>(), "{n} of {width} bits");
        }
    }
}

#[test]
fn picked_values_are_those_of_the_whole() {
    let packed: Vec<u8> = (0..600u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    for width in 1..=64 {
        let n = 70;
        let packed = &packed[..usize::try_from(bitpack::packed_len(n, width)).unwrap()];
        let mut all = Vec::<u64>::new();
        unpack_bits(width, packed, n, &mut all).unwrap();
        let one: Vec<u64> = (0..n).map(|index| bitpack::one(width, packed, index)).collect();
        assert_eq!(one, all, "{width} bits");
    }
    let picked = |scheme, bytes: &[u8], n, positions: &[usize]| {
        let mut out = vec![5i16];
        let done = pick(scheme, bytes, n, positions, &mut out);
        assert!(done.is_ok() || out == [5], "nothing is left of an error");
        done.map(|()| out)
    };
    let values = [-3i16, -1, 2, 900, 2, 2, 2, 2, 2, 2, 2, 2, 2, 7];
    for scheme in [Scheme::Plain, Scheme::BitpackFor, Scheme::Delta, Scheme::Rle] {
        let bytes = encoded(scheme, &values);
        let n = values.len();
        assert_eq!(picked(scheme, &bytes, n, &[3, 0, 13, 3]).unwrap(), [5, 900, -3, 7, 900], "{scheme:?}");
        assert_eq!(picked(scheme, &bytes, n, &[]).unwrap(), [5]);
        assert!(picked(scheme, &bytes, n, &[0, n]).is_err(), "{scheme:?}: past the end");
        assert!(picked(scheme, &bytes[..bytes.len() - 1], n, &[0]).is_err(), "{scheme:?}: cut");
        assert!(picked(scheme, &[&bytes[..], &[0]].concat(), n, &[0]).is_err(), "{scheme:?}: trailing bytes");
    }
    assert!(picked(Scheme::BitpackFor, &[], 0, &[0]).is_err());
}

#[test]
fn the_parts_of_a_posting_list_have_known_bytes() {
    let mut gaps = Vec::new();
    pack_bits(2, &[2u32; 127], &mut gaps).unwrap();
    assert_eq!(gaps, [&[0xaa; 31][..], &[0x2a]].concat());
    let mut frequencies = [1u32; 128];
    frequencies[3] = 40;
    check(Scheme::Pfor, &frequencies, &[&[0x01, 0x01, 0x03, 0x28, 0xf7][..], &[0xff; 15]].concat());
    check(Scheme::GroupVarint, &[744u32], &[0x01, 0xe8, 0x02]);
    check(Scheme::Pfor, &[1u32, 1], &[0x01, 0x00, 0x03]);
}

#[test]
fn no_values_have_a_form() {
    check::<u64>(Scheme::Plain, &[], &[]);
    check::<i64>(Scheme::BitpackFor, &[], &[1]);
    check::<u8>(Scheme::Delta, &[], &[]);
    check::<u16>(Scheme::Rle, &[], &[1]);
    check::<u32>(Scheme::GroupVarint, &[], &[]);
    check::<i32>(Scheme::Pfor, &[], &[1, 0]);
    assert_eq!(choose::<u32>(&[], &CASCADE), (Scheme::Plain, 0));
}

#[test]
fn unsupported_values_are_rejected() {
    for scheme in [Scheme::GroupVarint, Scheme::Pfor] {
        for values in [&[1, -1i64][..], &[1 << 32], &[i64::MAX, 0]] {
            assert_eq!(encoded_len(scheme, values), None);
            assert!(matches!(encode(scheme, values, &mut Vec::new()), Err(CodecError::Encode { .. })));
        }
        check(scheme, &[u64::from(u32::MAX); 4], &encoded(scheme, &[u32::MAX; 4]));
    }
    assert!(encoded_len(Scheme::Pfor, &[1u8; 256]).is_some());
    assert_eq!(encoded_len(Scheme::Pfor, &[1u8; 257]), None);
    assert!(encode(Scheme::Pfor, &[1u8; 257], &mut Vec::new()).is_err());
    assert_eq!(choose(&[-1i32], &[Scheme::Pfor]), (Scheme::Plain, 4));
}

#[test]
fn the_low_bits_are_kept() {
    assert_eq!(decoded::<u8>(Scheme::BitpackFor, &[8, 0xff, 0x01, 2], 1), Ok(vec![1]));
    assert_eq!(decoded::<i8>(Scheme::GroupVarint, &[1, 0xff, 0x7f], 1), Ok(vec![-1]));
    assert_eq!(decoded::<u8>(Scheme::Pfor, &[1, 1, 0, 0x81, 0x02, 1], 1), Ok(vec![1]));
    assert_eq!(decoded::<u16>(Scheme::Rle, &[17, 0x11, 3, 0, 1], 8), Ok(vec![3; 8]));
    assert_eq!(decoded::<u8>(Scheme::Delta, &[0x80, 0x02, 1], 1), Ok(vec![0]));
}

#[test]
fn every_exception_has_room_in_the_count() {
    // The narrow widths would make all 256 values exceptions, one more than a byte counts.
    for low in [2u32, 1 << 10, 1 << 20, 1 << 31] {
        let values: Vec<u32> = (0..256).map(|i| low | i & 1).collect();
        let bytes = encoded(Scheme::Pfor, &values);
        assert_eq!(decoded::<u32>(Scheme::Pfor, &bytes, 256).unwrap(), values);
        assert_eq!(encoded_len(Scheme::Pfor, &values), Some(bytes.len() as u64));
    }
}

#[test]
fn runs_are_found_wherever_they_begin() {
    for before in 0..12 {
        for len in 0..20 {
            for tail in 0..10 {
                let values: Vec<u32> =
                    (0..before).chain(std::iter::repeat_n(77, len)).chain(100..100 + tail).collect();
                check(Scheme::Rle, &values, &slow::rle(&values));
            }
        }
    }
}

/// Values with the spread, steps and repetitions of real columns, and random ones.
fn values<T: Integer>() -> impl Strategy<Value = Vec<T>> {
    let shape =
        (0u32..=64, any::<u64>(), prop_oneof![Just(0usize), 0..300usize, 0..30usize], 0..4u8, 1..40u64);
    (shape, any::<u64>()).prop_map(|((bits, base, n, kind, period), seed)| {
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        let noise = |i: u64| {
            let mixed = (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23)
        };
        let mut sum = base;
        let value = |i: u64| match kind {
            0 => base.wrapping_add(noise(i) & mask),
            1 => noise(i / period) & mask,
            2 => {
                sum = sum.wrapping_add(noise(i) & mask);
                sum
            }
            _ if noise(i) % 20 == 0 => noise(i) & mask,
            _ => noise(i) & 3,
        };
        (0..n as u64).map(value).map(T::narrow).collect()
    })
}

fn agrees<T: Integer>(values: &[T]) {
    let mut shortest: Option<(Scheme, u64)> = None;
    for scheme in CASCADE {
        let mut out = vec![1, 2, 3];
        let result = encode(scheme, values, &mut out);
        assert_eq!(&out[..3], &[1, 2, 3]);
        let bytes = &out[3..];
        let Ok(()) = result else {
            assert_eq!(encoded_len(scheme, values), None, "{scheme:?}");
            assert!(bytes.is_empty());
            continue;
        };
        assert_eq!(encoded_len(scheme, values), Some(bytes.len() as u64), "{scheme:?}");
        assert_eq!(bytes, slow::encode(scheme, values), "{scheme:?}");
        let mut back = vec![T::narrow(9)];
        decode(scheme, bytes, values.len(), &mut back).unwrap();
        assert_eq!(&back[1..], values, "{scheme:?}");
        // The same with trailing bytes.
        let longer = [bytes, &[0xff; 40]].concat();
        let mut back: Vec<T> = Vec::new();
        assert_eq!(decode_prefix(scheme, &longer, values.len(), &mut back), Ok(bytes.len()), "{scheme:?}");
        assert_eq!(back, values, "{scheme:?}");
        assert!(decode(scheme, &longer, values.len(), &mut back).is_err());
        assert_eq!(back, values, "an error changes nothing");
        if shortest.is_none_or(|(_, len)| (bytes.len() as u64) < len) {
            shortest = Some((scheme, bytes.len() as u64));
        }
    }
    assert_eq!(Some(choose(values, &CASCADE)), shortest);
}

macro_rules! lanes {
    ($($lane:ident)*) => { $(
        mod $lane {
            use super::*;

            proptest! {
                #[test]
                fn schemes_agree_with_single_bits(values in values::<$lane>()) {
                    agrees(&values);
                }

                #[test]
                fn damage_is_an_error_or_other_values(values in values::<$lane>(), seed in any::<u64>()) {
                    damage::survives(&values, seed);
                }
            }

            #[test]
            fn every_width_agrees_with_single_bits() {
                for bits in 1..=64u32 {
                    for n in [1usize, 7, 8, 9, 63, 64, 65, 128, 200] {
                        let values: Vec<$lane> = (0..n as u64)
                            .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits) | 1 << (bits - 1))
                            .map(<$lane>::narrow)
                            .collect();
                        agrees(&values);
                    }
                }
            }

            #[test]
            fn the_ends_of_the_type_agree() {
                agrees(&[$lane::MIN, $lane::MAX]);
                agrees(&[$lane::MAX, $lane::MIN, $lane::MIN, 0, $lane::MAX]);
                agrees(&[$lane::MIN; 100]);
                agrees(&[$lane::MAX; 100]);
            }
        }
    )* };
}

lanes! { u8 u16 u32 u64 i8 i16 i32 i64 }
