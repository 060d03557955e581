use proptest::prelude::*;

use super::lanes::{Kinds, kinds};
use super::*;

const ALL: [Float; 6] = [Float::F16, Float::Bf16, Float::F32, Float::F64, Float::C64, Float::C128];

/// Classifies a number by the definition of its format: all exponent bits set, fraction zero or not.
fn kind_of_number(bytes: &[u8], float: Float) -> Option<NonFinite> {
    let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    let fraction_bits = match float {
        Float::F16 => 10,
        Float::Bf16 => 7,
        Float::F32 | Float::C64 => 23,
        Float::F64 | Float::C128 => 52,
    };
    let exponent_bits = bytes.len() * 8 - 1 - fraction_bits;
    let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    if exponent != (1 << exponent_bits) - 1 {
        return None;
    }
    let fraction = bits & ((1 << fraction_bits) - 1);
    Some(match (fraction, bits >> (bytes.len() * 8 - 1)) {
        (0, 0) => NonFinite::PosInf,
        (0, _) => NonFinite::NegInf,
        _ => NonFinite::Nan,
    })
}

fn kind_of_element(bytes: &[u8], float: Float) -> Option<NonFinite> {
    let parts: Vec<_> =
        bytes.chunks(float.lane_width()).filter_map(|part| kind_of_number(part, float)).collect();
    [NonFinite::Nan, NonFinite::PosInf, NonFinite::NegInf].into_iter().find(|kind| parts.contains(kind))
}

/// Element by element.
fn slow_extract_masks(bytes: &mut [u8], float: Float) -> Masks {
    let mut masks = Masks::default();
    let mask_len = (bytes.len() / float.width()).div_ceil(8);
    for (index, element) in bytes.chunks_exact_mut(float.width()).enumerate() {
        let mask = match kind_of_element(element, float) {
            None => continue,
            Some(NonFinite::Nan) => &mut masks.nan,
            Some(NonFinite::PosInf) => &mut masks.pos_inf,
            Some(NonFinite::NegInf) => &mut masks.neg_inf,
        };
        mask.get_or_insert_with(|| vec![0; mask_len])[index / 8] |= 0x80 >> (index % 8);
        element.fill(0);
    }
    masks
}

fn slow_first(bytes: &[u8], float: Float, allow_nan: bool, allow_inf: bool) -> Option<(u64, NonFinite)> {
    let kinds = bytes.chunks_exact(float.width()).map(|element| kind_of_element(element, float));
    (0..).zip(kinds).find_map(|(index, kind)| match kind? {
        NonFinite::Nan if allow_nan => None,
        NonFinite::PosInf | NonFinite::NegInf if allow_inf => None,
        what => Some((index, what)),
    })
}

fn pattern_bytes(float: Float, what: NonFinite) -> Vec<u8> {
    pattern(float, what).to_le_bytes()[..float.lane_width()].repeat(float.parts())
}

/// Numbers of which about one in `rarity` is special: infinite, NaN of any payload, or the largest finite value.
fn mixed(seed: u64, count: usize, float: Float, rarity: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 8
    };
    let (infinity, width) = (lanes::infinity(float), float.lane_width());
    let sign = 1u64 << (width * 8 - 1);
    let mut bytes = Vec::new();
    for _ in 0..count * float.parts() {
        let special =
            [infinity, infinity | sign, infinity + 1, sign - 1, infinity | sign | 1, infinity - 1, sign];
        let bits = match next() % rarity {
            0 => special[(next() % 7) as usize],
            _ => next() & (infinity - 1),
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
    }
    bytes
}

#[test]
fn the_patterns_are_the_canonical_ones() {
    let rows = [
        (Float::F16, [0x7e00, 0x7c00, 0xfc00]),
        (Float::Bf16, [0x7fc0, 0x7f80, 0xff80]),
        (Float::F32, [0x7fc0_0000, 0x7f80_0000, 0xff80_0000]),
        (Float::C64, [0x7fc0_0000, 0x7f80_0000, 0xff80_0000]),
        (Float::F64, [0x7ff8 << 48, 0x7ff0 << 48, 0xfff0 << 48]),
        (Float::C128, [0x7ff8 << 48, 0x7ff0 << 48, 0xfff0 << 48]),
    ];
    for (float, expected) in rows {
        let found = [NonFinite::Nan, NonFinite::PosInf, NonFinite::NegInf].map(|what| pattern(float, what));
        assert_eq!(found, expected, "{float:?}");
    }
}

#[test]
fn the_test_vector_is_reproduced() {
    let values = [1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0];
    let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let masks = extract_masks(&mut bytes, Float::F64).unwrap();
    let expected = Masks { nan: Some(vec![0x40]), pos_inf: Some(vec![0x20]), neg_inf: Some(vec![0x10]) };
    assert_eq!(masks, expected);
    let left: Vec<u8> = [1.0f64, 0.0, 0.0, 0.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(bytes, left);
}

#[test]
fn every_16_bit_number_is_classified() {
    for float in [Float::F16, Float::Bf16] {
        let mut bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut slow = bytes.clone();
        let expected = slow_extract_masks(&mut slow, float);
        assert!(extract_masks(&mut bytes, float).unwrap() == expected && bytes == slow, "{float:?}");
    }
}

#[test]
fn both_comparisons_agree() {
    for float in ALL {
        for rarity in [1, 3, 50] {
            let bytes = mixed(rarity, 64, float, rarity);
            for block in bytes.chunks(64 * float.lane_width()) {
                for limit in [lanes::infinity(float) - 1, lanes::infinity(float)] {
                    let (fast, slow) = (arch::above(block, float, limit), lanes::above(block, float, limit));
                    assert_eq!(fast, slow, "{float:?}");
                }
            }
            let (kinds, width) = (kinds(&bytes, float), float.width());
            for (index, element) in bytes.chunks(width).enumerate() {
                let at = |word: u64| word >> index & 1 == 1;
                let found = match kinds {
                    Kinds { nan, .. } if at(nan) => Some(NonFinite::Nan),
                    Kinds { pos_inf, .. } if at(pos_inf) => Some(NonFinite::PosInf),
                    Kinds { neg_inf, .. } if at(neg_inf) => Some(NonFinite::NegInf),
                    _ => None,
                };
                assert_eq!(found, kind_of_element(element, float), "{float:?}, element {index}");
            }
        }
    }
}

#[test]
fn halves_of_bytes_are_joined() {
    let bytes: [u8; 16] = std::array::from_fn(|index| 0xa0 | u8::try_from(index).unwrap());
    assert_eq!(lanes::join_halves(u128::from_le_bytes(bytes)), 0xfedc_ba98_7654_3210);
}

#[test]
fn large_inputs_are_cut_and_joined() {
    for float in ALL {
        let count = WORTH_SPLITTING / float.width() + 3 * PIECE + 77;
        for position in [0, PIECE - 1, PIECE, 2 * PIECE + 63, count - 1] {
            let mut bytes = vec![0; count * float.width()];
            let element = position * float.width()..(position + 1) * float.width();
            bytes[element].copy_from_slice(&pattern_bytes(float, NonFinite::NegInf));
            assert_eq!(
                first(&bytes, float, true, false),
                Some((position as u64, NonFinite::NegInf)),
                "{float:?}"
            );
            let masks = extract_masks(&mut bytes, float).unwrap();
            let mut expected = vec![0; count.div_ceil(8)];
            expected[position / 8] |= 0x80 >> (position % 8);
            assert!(
                masks == Masks { neg_inf: Some(expected), ..Masks::default() },
                "{float:?} at {position}"
            );
            assert!(bytes.iter().all(|&byte| byte == 0), "{float:?} at {position}");
        }
        let mut bytes = mixed(1, count, float, 20);
        let mut slow = bytes.clone();
        let (expected, first_found) =
            (slow_extract_masks(&mut slow, float), first(&bytes, float, false, true));
        assert_eq!(first_found, slow_first(&bytes, float, false, true));
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let masks = threads.install(|| extract_masks(&mut bytes, float)).unwrap();
        assert!(masks == expected && bytes == slow, "{float:?}");
        threads.install(|| restore(&mut bytes, float, NonFinite::Nan, masks.nan.as_deref().unwrap(), 0));
        assert!(extract_masks(&mut bytes, float).unwrap() == Masks { nan: expected.nan, ..Masks::default() });
    }
}

#[test]
fn odd_lengths_are_accepted() {
    for float in ALL {
        let mut bytes = vec![0xff; float.width() * 3 + 1];
        assert!(matches!(extract_masks(&mut bytes, float), Err(CodecError::Parameter { .. })));
        assert_eq!(first(&bytes[..float.width() - 1], float, false, false), None);
        restore(&mut bytes, float, NonFinite::Nan, &[0xff], 0);
        assert_eq!(bytes[float.width() * 3], 0xff);
        assert_eq!(extract_masks(&mut [], float).unwrap(), Masks::default());
    }
}

#[test]
fn positions_past_the_mask_are_unchanged() {
    for first in [0, 1, 7, 8, 9, 15, 16, 17, 1 << 40, u64::MAX - 3, u64::MAX] {
        let mut bytes = vec![0; 80];
        restore(&mut bytes, Float::F64, NonFinite::PosInf, &[0xff, 0xff], first);
        let set = bytes.chunks(8).filter(|element| element[7] == 0x7f).count() as u64;
        assert_eq!(set, 16u64.saturating_sub(first).min(10), "from {first}");
    }
}

#[test]
fn kinds_have_names() {
    let names = [NonFinite::Nan, NonFinite::PosInf, NonFinite::NegInf].map(|what| what.to_string());
    assert_eq!(names, ["NaN", "+Inf", "-Inf"]);
}

proptest! {
    #[test]
    fn everything_agrees_with_single_elements(
        seed in any::<u64>(), count in 0usize..300, which in 0usize..6, rarity in 1u64..80, from in 0usize..140,
    ) {
        let float = ALL[which];
        let bytes = mixed(seed, count, float, rarity);
        for (nan, inf) in [(false, false), (false, true), (true, false), (true, true)] {
            prop_assert_eq!(first(&bytes, float, nan, inf), slow_first(&bytes, float, nan, inf));
        }
        let (mut fast, mut slow) = (bytes.clone(), bytes.clone());
        let (masks, expected) = (extract_masks(&mut fast, float).unwrap(), slow_extract_masks(&mut slow, float));
        prop_assert_eq!(&masks, &expected);
        prop_assert_eq!(&fast, &slow);

        // Restoring any part gives the canonical pattern where the original was not finite.
        let start = from.min(count);
        let mut part = fast[start * float.width()..].to_vec();
        let kinds = [(NonFinite::Nan, masks.nan), (NonFinite::PosInf, masks.pos_inf), (NonFinite::NegInf, masks.neg_inf)];
        for (what, mask) in kinds {
            restore(&mut part, float, what, &mask.unwrap_or_default(), start as u64);
        }
        for (back, original) in part.chunks(float.width()).zip(bytes.chunks(float.width()).skip(start)) {
            let expected = kind_of_element(original, float).map_or(original.to_vec(), |what| pattern_bytes(float, what));
            prop_assert_eq!(back, &expected[..]);
        }
    }
}
