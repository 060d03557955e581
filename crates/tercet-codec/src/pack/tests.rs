#![expect(clippy::float_cmp, reason = "values are compared to the last bit")]

use proptest::prelude::*;

use super::samples::{ALMOST_HALF, Backward, Forward};
use super::*;

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn bits_of(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn packed_len(packing: &Packing, count: usize) -> usize {
    usize::try_from(packing.packed_len(count as u64).unwrap()).unwrap()
}

/// The integer of a value, by the formula.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is in range")]
fn slow_integer(packing: &Packing, value: f64) -> u64 {
    let scale = power_of_ten(packing.decimal_scale) * 2f64.powi(-packing.binary_scale);
    let rounded = ((value - packing.reference) * scale).round();
    if rounded <= 0.0 {
        0
    } else if rounded >= 2f64.powi(packing.bits.cast_signed()) {
        max_integer(packing.bits)
    } else {
        rounded as u64
    }
}

/// Bit by bit.
fn slow_pack(packing: &Packing, values: &[f64]) -> Vec<u8> {
    let mut packed = vec![0; (values.len() * packing.bits as usize).div_ceil(8)];
    let mut at = 0;
    for &value in values {
        let integer = slow_integer(packing, value);
        for bit in (0..packing.bits).rev() {
            packed[at / 8] |= ((integer >> bit & 1) as u8) << (7 - at % 8);
            at += 1;
        }
    }
    packed
}

/// Bit by bit.
#[expect(clippy::cast_precision_loss, reason = "as the format specifies")]
fn slow_unpack(packing: &Packing, packed: &[u8], count: usize) -> Vec<f64> {
    let scale = 2f64.powi(packing.binary_scale) * power_of_ten(-packing.decimal_scale);
    let mut at = 0;
    let mut next = || {
        let mut integer = 0u64;
        for _ in 0..packing.bits {
            integer = integer << 1 | u64::from(packed[at / 8] >> (7 - at % 8) & 1);
            at += 1;
        }
        integer
    };
    (0..count).map(|_| packing.reference + scale * next() as f64).collect()
}

/// Values over the whole range of the integers and beyond it on both sides.
fn noise(seed: u64, count: usize, packing: &Packing) -> Vec<f64> {
    let top =
        2f64.powi(packing.binary_scale + packing.bits.cast_signed()) * power_of_ten(-packing.decimal_scale);
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from((state >> 32) as u32) / f64::from(u32::MAX)
    };
    (0..count).map(|_| packing.reference + top * (next() * 1.2 - 0.1)).collect()
}

/// All implementations agree with the slow ones.
fn check_all(packing: &Packing, values: &[f64]) {
    let (raw, expected) = (bytes(values), slow_pack(packing, values));
    let forward = packing.forward(&raw, &expected).unwrap();
    for kernel in [arch::pack, samples::pack] as [fn(&Forward, &[u8], &mut [u8]) -> bool; 2] {
        let mut packed = vec![0xaa; expected.len()];
        assert!(kernel(&forward, &raw, &mut packed), "finite");
        assert_eq!(packed, expected, "{packing:?}, {} values", values.len());
    }
    let expected_values = bits_of(&slow_unpack(packing, &expected, values.len()));
    let backward = packing.backward(&expected, 0, &raw).unwrap();
    for kernel in [arch::unpack, samples::unpack] as [fn(&Backward, &[u8], &mut [u8]); 2] {
        let mut back = vec![0xaa; raw.len()];
        kernel(&backward, &expected, &mut back);
        assert_eq!(bits_of(&numbers(&back)), expected_values, "{packing:?}, {} values", values.len());
    }
}

#[test]
fn every_width_agrees_with_single_bits() {
    for bits in 1..=64u32 {
        let packing =
            Packing { reference: -3.25, binary_scale: 3 - bits.cast_signed(), decimal_scale: 1, bits };
        for count in (0..=34).chain([63, 64, 65, 300]) {
            check_all(&packing, &noise(u64::from(bits) * 1000 + count as u64, count, &packing));
        }
    }
}

#[test]
fn the_last_bit_of_every_integer_arrives() {
    // Integers that doubles represent exactly: the last bits of wide integers are rounded away.
    let odd: Vec<f64> = (0..40).map(|i| f64::from(2 * i + 1)).collect();
    for bits in 7..=64 {
        let packing = Packing { reference: 0.0, binary_scale: 0, decimal_scale: 0, bits };
        check_all(&packing, &odd);
        let mut packed = vec![0; packed_len(&packing, 40)];
        packing.pack(&bytes(&odd), &mut packed).unwrap();
        let mut back = vec![0; 320];
        packing.unpack(&packed, 0, &mut back).unwrap();
        assert_eq!(numbers(&back), odd, "{bits} bits");
    }
}

#[test]
fn values_far_outside_are_clamped_at_every_width() {
    for bits in 1..=64u32 {
        let packing = Packing { reference: 0.0, binary_scale: 0, decimal_scale: 0, bits };
        let top = 2f64.powi(bits.cast_signed());
        let below = f64::from_bits(top.to_bits() - 1);
        let values = [
            -5.0,
            -0.0,
            0.5 - f64::EPSILON / 4.0,
            0.5,
            1.5,
            2.5,
            below,
            top,
            top * 1.5,
            f64::MAX,
            f64::MIN,
            5e-324,
        ];
        check_all(&packing, &values);
        let mut packed = vec![0; packed_len(&packing, 12)];
        packing.pack(&bytes(&values), &mut packed).unwrap();
        let mut back = vec![0; 96];
        packing.unpack(&packed, 0, &mut back).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "as the format specifies")]
        let clamped = max_integer(bits) as f64;
        assert_eq!(numbers(&back)[7..11], [clamped, clamped, clamped, 0.0], "{bits} bits");
    }
}

#[test]
fn a_half_is_rounded_away_from_zero() {
    let halves = (0..100).map(|i| f64::from(i) + 0.5);
    let edges = (0..64).flat_map(|k| {
        let power = 2f64.powi(k);
        [-2, -1, 0, 1, 2].map(|ulps| f64::from_bits(power.to_bits().wrapping_add_signed(ulps)))
    });
    let fractions = [0.0, 0.5 - f64::EPSILON / 4.0, 0.5, 0.5 + f64::EPSILON, 4_503_599_627_370_495.5, 1e300];
    for value in halves.chain(edges).chain(fractions) {
        assert_eq!((value + ALMOST_HALF).trunc().to_bits(), value.round().to_bits(), "{value:e}");
    }
}

#[test]
fn the_test_vector_is_reproduced() {
    let values = bytes(&[1.5, 2.25, 3.0, 10.0]);
    let packing = Packing::for_values(&values, 12, 0, false).unwrap();
    assert_eq!(packing, Packing { reference: 1.5, binary_scale: -8, decimal_scale: 0, bits: 12 });
    let mut packed = [0; 6];
    packing.pack(&values, &mut packed).unwrap();
    assert_eq!(packed, [0x00, 0x00, 0xc0, 0x18, 0x08, 0x80]);
}

#[test]
fn pieces_join_and_any_part_can_be_read() {
    for bits in [0, 1, 7, 13, 16, 24, 31, 52, 57, 64] {
        let packing = Packing { reference: 2.0, binary_scale: -4, decimal_scale: 0, bits };
        let values = noise(9, WORTH_SPLITTING + 13, &packing);
        let raw = bytes(&values);
        let expected = slow_pack(&packing, &values);
        let mut packed = vec![0xaa; expected.len()];
        packing.pack(&raw, &mut packed).unwrap();
        assert!(packed == expected, "{bits} bits");
        let mut whole = vec![0; raw.len()];
        packing.unpack(&packed, 0, &mut whole).unwrap();
        assert!(
            bits_of(&numbers(&whole)) == bits_of(&slow_unpack(&packing, &packed, values.len())),
            "{bits} bits"
        );
        for first in (0..20).chain([PIECE - 1, PIECE, WORTH_SPLITTING]) {
            for count in [0, 1, 3, 12, 13] {
                let mut part = vec![0; count * VALUE];
                packing.unpack(&packed, first as u64, &mut part).unwrap();
                assert_eq!(
                    part,
                    whole[first * VALUE..][..count * VALUE],
                    "{bits} bits, {count} from {first}"
                );
            }
        }
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let mut again = vec![0; expected.len()];
        threads.install(|| packing.pack(&raw, &mut again)).unwrap();
        assert!(again == expected, "{bits} bits with three threads");
    }
}

#[test]
fn the_first_of_equal_values_is_the_reference() {
    for (values, sign) in [([0.0, -0.0, 1.0], 0.0f64), ([-0.0, 0.0, 1.0], -0.0), ([1.0, -0.0, 0.0], -0.0)] {
        let packing = Packing::for_values(&bytes(&values), 16, 0, false).unwrap();
        assert_eq!(packing.reference.to_bits(), sign.to_bits(), "{values:?}");
    }
    let mut many = vec![1.0; WORTH_SPLITTING + 5];
    (many[PIECE + 7], many[PIECE + 9], many[3 * PIECE]) = (-0.0, 0.0, 0.0);
    let packing = Packing::for_values(&bytes(&many), 16, 0, false).unwrap();
    assert_eq!(packing.reference.to_bits(), (-0.0f64).to_bits());
}

#[test]
fn parameters_follow_the_formula() {
    let of = |values: &[f64], bits, decimal| Packing::for_values(&bytes(values), bits, decimal, false);
    assert_eq!(
        of(&[], 16, 2).unwrap(),
        Packing { reference: 0.0, binary_scale: 0, decimal_scale: 2, bits: 16 }
    );
    assert_eq!(of(&[7.0, 3.0], 0, 0).unwrap().reference, 7.0, "first, not smallest");
    assert_eq!(
        of(&[3.0; 9], 12, 0).unwrap(),
        Packing { reference: 3.0, binary_scale: 0, decimal_scale: 0, bits: 12 }
    );
    assert_eq!(of(&[0.0, 65535.0], 16, 0).unwrap().binary_scale, 0);
    assert_eq!(of(&[0.0, 65536.0], 16, 0).unwrap().binary_scale, 1);
    assert_eq!(of(&[0.0, 1.0], 64, 0).unwrap().binary_scale, -64);
    assert_eq!(of(&[0.0, 1.0], 65, 0), Err(PackError::Bits { found: 65 }));
    assert_eq!(of(&[f64::MAX, f64::MIN], 8, 0), Err(PackError::Overflow));
    assert_eq!(of(&[0.0, 5e-324], 1, 0), Err(PackError::BinaryScale { found: -1074 }));
    assert_eq!(of(&[0.0, 5e-324], 16, 0), Err(PackError::BinaryScale { found: i32::MIN.into() }));
    assert!(matches!(of(&[0.0, 5e-324], 16, 300), Err(PackError::Scale { .. })), "the step would be zero");
    for found in [309, -309, 400, -400, i32::MAX, i32::MIN] {
        assert_eq!(of(&[1.0], 8, found), Err(PackError::DecimalScale { found }));
    }
    assert_eq!(of(&[1.0, 2.0], 8, 200).unwrap_err(), PackError::BinaryScale { found: 657 });
}

#[test]
fn non_finite_values_are_found_or_skipped() {
    let mut values = noise(3, 200, &Packing { reference: 0.0, binary_scale: 0, decimal_scale: 0, bits: 8 });
    let finite = Packing::for_values(&bytes(&values), 24, 1, false).unwrap();
    for (found, what) in [
        (f64::NAN, NonFinite::Nan),
        (f64::INFINITY, NonFinite::PosInf),
        (f64::NEG_INFINITY, NonFinite::NegInf),
    ] {
        for index in [0, 1, 7, 100, 200] {
            values.insert(index, found);
            let raw = bytes(&values);
            let expected = PackError::NonFinite { index: index as u64, what };
            for bits in [0, 24, 64] {
                assert_eq!(Packing::for_values(&raw, bits, 1, false), Err(expected.clone()));
                let packing = Packing { bits, ..finite };
                let mut packed = vec![0; packed_len(&packing, 201)];
                assert_eq!(packing.pack(&raw, &mut packed), Err(expected.clone()), "{bits} bits");
            }
            assert_eq!(Packing::for_values(&raw, 24, 1, true), Ok(finite));
            values.remove(index);
        }
    }
    let nothing = Packing::for_values(&bytes(&[f64::NAN; 20]), 24, 1, true).unwrap();
    assert_eq!((nothing.reference, nothing.binary_scale), (0.0, 0));
    assert_eq!(Packing::for_values(&bytes(&[f64::NAN, 5.0, 2.0]), 0, 0, true).unwrap().reference, 5.0);
}

#[test]
fn invalid_parameters_are_rejected() {
    let good = Packing { reference: 1.0, binary_scale: 0, decimal_scale: 0, bits: 8 };
    assert_eq!(good.check_for_writing(), Ok(()));
    let bits = Packing { bits: 65, ..good };
    assert_eq!(bits.check(), Err(PackError::Bits { found: 65 }));
    assert!(bits.unpack(&[0; 100], 0, &mut [0; 8]).is_err());
    for reference in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let bad = Packing { reference, bits: 0, ..good };
        assert!(matches!(bad.check(), Err(PackError::Reference { .. })));
    }
    for binary_scale in [257, -257] {
        let far = Packing { binary_scale, ..good };
        assert_eq!((far.check(), far.check_for_writing().is_err()), (Ok(()), true), "read, not written");
    }
    for (binary_scale, decimal_scale) in [(1024, 0), (i32::MAX, 0), (256, -300)] {
        let infinite = Packing { binary_scale, decimal_scale, ..good };
        assert!(matches!(infinite.check(), Err(PackError::Scale { .. })), "{infinite:?}");
        assert_eq!(Packing { bits: 0, ..infinite }.check(), Ok(()), "no step without bits");
    }
    let vanishing = Packing { binary_scale: i32::MIN, ..good };
    let mut value = [0; 8];
    vanishing.unpack(&[255], 0, &mut value).unwrap();
    assert_eq!(f64::from_le_bytes(value), 1.0);
    let tiny = Packing { reference: 0.0, binary_scale: -1074, ..good };
    tiny.unpack(&[3], 0, &mut value).unwrap();
    assert_eq!(f64::from_le_bytes(value).to_bits(), 3);
    assert!(Packing { binary_scale: -256, decimal_scale: 300, ..good }.check_for_writing().is_err());
}

#[test]
fn wrong_lengths_are_rejected() {
    let packing = Packing { reference: 0.0, binary_scale: 0, decimal_scale: 0, bits: 12 };
    for len in [0, 4, 6] {
        assert!(matches!(packing.pack(&[0; 24], &mut vec![0; len]), Err(PackError::Length { .. })), "{len}");
    }
    assert!(
        packing.pack(&[0; 23], &mut [0; 5]).is_err() && packing.unpack(&[0; 5], 0, &mut [0; 23]).is_err()
    );
    assert!(packing.pack(&[0; 24], &mut [0; 5]).is_ok());
    for (first, ok) in [(0, true), (1, true), (2, false), (u64::MAX, false), (u64::MAX - 1, false)] {
        assert_eq!(
            packing.unpack(&[0; 5], first, &mut [0; 16]).is_ok(),
            ok,
            "two values from {first} of three"
        );
    }
    assert!(Packing::for_values(&[0; 9], 8, 0, false).is_err());
    assert_eq!(packing.packed_len(u64::MAX), None);
    assert_eq!(Packing { bits: 1, ..packing }.packed_len(u64::MAX), Some(1 << 61));
}

#[test]
fn powers_are_those_of_the_format() {
    assert_eq!((power_of_ten(0), power_of_ten(1), power_of_ten(22)), (1.0, 10.0, 1e22));
    assert_eq!(power_of_ten(-1), 0.1);
    assert_eq!(power_of_ten(308).to_bits(), (1e4 * 1e16 * 1e32 * power_of_ten(256)).to_bits());
    assert!(power_of_ten(309).is_infinite() && power_of_ten(i32::MIN) == 0.0);
    for k in -1023..1024 {
        assert_eq!(power_of_two(k), 2f64.powi(k), "{k}");
    }
    assert_eq!((power_of_two(-1074), power_of_two(-1075), power_of_two(1024)), (5e-324, 0.0, f64::INFINITY));
}

#[test]
fn masks_are_extracted_and_restored_in_one_pass() {
    for bits in [0, 5, 24, 60] {
        let packing = Packing { reference: -1.0, binary_scale: -2, decimal_scale: 0, bits };
        for count in [0, 1, 63, 64, 65, 1000, 1024, 2049, WORTH_SPLITTING + 77] {
            let mut values = noise(5, count, &packing);
            for (index, value) in values.iter_mut().enumerate() {
                match index * index % 31 {
                    1 => *value = -f64::NAN,
                    2 if index > 500 => *value = f64::INFINITY,
                    4 if index > 1500 => *value = f64::NEG_INFINITY,
                    _ => {}
                }
            }
            let raw = bytes(&values);
            let mut zeroed = raw.clone();
            let expected_masks = finite::extract_masks(&mut zeroed, Float::F64).unwrap();
            let mut expected = vec![0; packed_len(&packing, count)];
            packing.pack(&zeroed, &mut expected).unwrap();
            let mut packed = vec![1; expected.len()];
            let masks = packing.pack_masked(&raw, &mut packed).unwrap();
            assert!(packed == expected && masks == expected_masks, "{bits} bits, {count} values");

            let parts = [
                (NonFinite::Nan, &masks.nan),
                (NonFinite::PosInf, &masks.pos_inf),
                (NonFinite::NegInf, &masks.neg_inf),
            ];
            let parts: Vec<_> =
                parts.iter().filter_map(|(what, mask)| Some((*what, mask.as_deref()?))).collect();
            for first in [0, 1, 70].into_iter().filter(|first| *first <= count) {
                let mut expected = vec![0; (count - first) * VALUE];
                packing.unpack(&packed, first as u64, &mut expected).unwrap();
                for (what, mask) in &parts {
                    finite::restore(&mut expected, Float::F64, *what, mask, first as u64);
                }
                let mut found = vec![0; expected.len()];
                packing.unpack_masked(&packed, first as u64, &mut found, &parts).unwrap();
                assert!(found == expected, "{bits} bits, {count} values from {first}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_values_at_any_width(
        values in prop::collection::vec(-1e6f64..1e6, 0..300),
        bits in 1u32..=64, decimal in -5i32..=5,
    ) {
        let packing = Packing::for_values(&bytes(&values), bits, decimal, false).unwrap();
        let smallest = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        prop_assert_eq!(packing.reference.to_bits(), smallest.to_bits());
        check_all(&packing, &values);
    }

    #[test]
    fn any_parameters(
        values in prop::collection::vec(any::<f64>().prop_filter("finite", |v| v.is_finite()), 0..60),
        bits in 1u32..=64, decimal in -20i32..=20, binary_scale in -256i32..=256,
        reference in any::<f64>().prop_filter("finite", |v| v.is_finite()),
    ) {
        check_all(&Packing { reference, binary_scale, decimal_scale: decimal, bits }, &values);
    }

    #[test]
    fn rounding_is_away_from_zero(value in 0f64..1e18, small in 0f64..9.0) {
        for value in [value, small] {
            prop_assert_eq!((value + ALMOST_HALF).trunc().to_bits(), value.round().to_bits());
        }
    }
}
