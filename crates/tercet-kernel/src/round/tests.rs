#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "values of tests are small, and a test that cannot go on has failed"
)]

use proptest::prelude::*;
use tercet_testkit::cases;

use super::*;

const FLOATS: [ElementType; 3] = [ElementType::F16, ElementType::F32, ElementType::F64];

/// The bytes of one value of a float type.
fn to_bytes(dtype: ElementType, bits: u64) -> Vec<u8> {
    bits.to_le_bytes()[..dtype.size()].to_vec()
}

fn to_bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn to_f64(dtype: ElementType, bits: u64) -> f64 {
    match dtype {
        ElementType::F16 => f16::from_bits(bits as u16).to_f64(),
        ElementType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn rounded(rounding: BitRounding, dtype: ElementType, bits: u64) -> u64 {
    let mut bytes = to_bytes(dtype, bits);
    rounding.apply(&mut bytes);
    to_bits(&bytes)
}

/// Bits of a float type: any, and the edges of the type.
fn any_bits(dtype: ElementType) -> impl Strategy<Value = u64> {
    let width = dtype.size() * 8;
    let mantissa = BitRounding::mantissa_bits(dtype).unwrap();
    let mask = u64::MAX >> (64 - width);
    let infinity = (mask >> (mantissa + 1)) << mantissa & (mask >> 1);
    let edges =
        vec![0, 1, 2, 3, (1 << mantissa) - 1, 1 << mantissa, infinity - 1, infinity, infinity + 1, mask >> 1];
    let near = prop::sample::select(edges)
        .prop_flat_map(|edge| (Just(edge), 0u64..9).prop_map(|(edge, more)| edge ^ more));
    (prop_oneof![any::<u64>().prop_map(move |bits| bits & mask), near], any::<bool>())
        .prop_map(move |(bits, sign)| if sign { bits | 1 << (width - 1) } else { bits })
}

/// The obvious version of rounding to a number of bits: the nearer of the two neighbours, the even one of equally near ones.
fn slow_keep(dtype: ElementType, bits: u64, keep: u32) -> u64 {
    let width = dtype.size() * 8;
    let mantissa = BitRounding::mantissa_bits(dtype).unwrap();
    let (drop, sign) = (mantissa - keep, bits & 1 << (width - 1));
    let magnitude = u128::from(bits ^ sign);
    let infinity = u128::from(to_bits(&match dtype {
        ElementType::F16 => f16::INFINITY.to_le_bytes().to_vec(),
        ElementType::F32 => f32::INFINITY.to_le_bytes().to_vec(),
        _ => f64::INFINITY.to_le_bytes().to_vec(),
    }));
    if magnitude >= infinity {
        return bits;
    }
    let unit = 1u128 << drop;
    let (below, rest) = (magnitude / unit * unit, magnitude % unit);
    let above = below + unit;
    let is_up = match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => (below / unit) % 2 == 1,
    };
    sign | u64::try_from(if is_up && above < infinity { above } else { below }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2000)))]

    #[test]
    fn kept_bits_are_those_of_the_obvious_version(
        (dtype, bits, keep) in prop::sample::select(&FLOATS[..]).prop_flat_map(|dtype| {
            (Just(dtype), any_bits(dtype), 0..=BitRounding::mantissa_bits(dtype).unwrap())
        }),
    ) {
        let rounding = BitRounding::keep_bits(dtype, keep).unwrap();
        let once = rounded(rounding, dtype, bits);
        prop_assert_eq!(once, slow_keep(dtype, bits, keep));
        prop_assert_eq!(rounded(rounding, dtype, once), once);
        prop_assert!(to_f64(dtype, bits).is_finite() == to_f64(dtype, once).is_finite());
    }

    #[test]
    fn the_error_bound_holds_for_every_value(
        (dtype, bits) in prop::sample::select(&FLOATS[..]).prop_flat_map(|dtype| (Just(dtype), any_bits(dtype))),
        error_bits in any::<u64>(),
        scale in -30i32..30,
    ) {
        let value = to_f64(dtype, bits);
        // Any error, and one of about the size of the value.
        let any_error = f64::from_bits(error_bits >> 1);
        let near = (value * 2f64.powi(scale)).abs() * (1.0 + (error_bits % 1000) as f64 / 1000.0);
        for error in [any_error, near].into_iter().filter(|error| error.is_finite()) {
            let rounding = BitRounding::max_error(dtype, error).unwrap();
            let once = rounded(rounding, dtype, bits);
            let after = to_f64(dtype, once);
            if value.is_finite() {
                prop_assert!(after.is_finite());
                prop_assert!((value - after).abs() <= error, "{value} {after} {error}");
            } else {
                prop_assert_eq!(once, bits);
            }
            prop_assert_eq!(rounded(rounding, dtype, once), once);
            let largest = max_abs_error(dtype, &to_bytes(dtype, bits), &to_bytes(dtype, once));
            prop_assert!(largest <= error);
        }
    }

    #[test]
    fn values_become_the_nearest_multiples(value in -1e6f64..1e6, power in -20i32..20) {
        let unit = 2f64.powi(power);
        let rounding = BitRounding::max_error(ElementType::F64, unit / 2.0).unwrap();
        let after = to_f64(ElementType::F64, rounded(rounding, ElementType::F64, value.to_bits()));
        prop_assert_eq!(after, (value / unit).round_ties_even() * unit);
    }
}

#[test]
fn an_error_of_zero_changes_nothing_and_invalid_ones_are_refused() {
    for dtype in FLOATS {
        assert!(BitRounding::max_error(dtype, 0.0).unwrap().is_exact());
        for wrong in [-1.0, -f64::MIN_POSITIVE, f64::NAN, f64::INFINITY] {
            assert_eq!(BitRounding::max_error(dtype, wrong), None, "{wrong}");
        }
        let most = BitRounding::mantissa_bits(dtype).unwrap();
        assert!(BitRounding::keep_bits(dtype, most).unwrap().is_exact());
        assert_eq!(BitRounding::keep_bits(dtype, most + 1), None);
    }
    assert_eq!(BitRounding::max_error(ElementType::I32, 1.0), None);
    assert_eq!(BitRounding::keep_bits(ElementType::U8, 1), None);
}

#[test]
fn coarser_rounding_is_kept_by_finer_rounding() {
    let error = |error| BitRounding::max_error(ElementType::F32, error).unwrap();
    assert!(error(0.01).keeps(&error(0.5)) && !error(0.5).keeps(&error(0.01)));
    assert!(error(0.0).keeps(&error(0.01)) && error(0.01).keeps(&error(0.01)));
}

#[test]
fn unaligned_bytes_of_several_blocks_are_rounded() {
    let values: Vec<f32> = (0..3 * BLOCK).map(|n| n as f32 * 0.37).collect();
    let mut bytes = vec![0];
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes.push(9);
    BitRounding::max_error(ElementType::F32, 0.5).unwrap().apply(&mut bytes[1..]);
    for (value, bytes) in values.iter().zip(bytes[1..].chunks_exact(4)) {
        assert_eq!(f32::from_le_bytes(bytes.try_into().unwrap()), value.round_ties_even());
    }
    assert_eq!(bytes.last(), Some(&9));
}

#[test]
fn different_infinities_and_lengths_are_infinitely_far() {
    let bytes = |value: f32| value.to_le_bytes();
    let error = |before: f32, after: f32| max_abs_error(ElementType::F32, &bytes(before), &bytes(after));
    assert_eq!(error(1.0, 1.5), 0.5);
    assert_eq!(error(f32::NAN, f32::NAN), 0.0);
    assert_eq!(error(f32::INFINITY, f32::INFINITY), 0.0);
    for (before, after) in [(f32::NAN, 0.0), (0.0, f32::NAN), (f32::INFINITY, 1.0)] {
        assert_eq!(error(before, after), f64::INFINITY);
    }
    assert_eq!(max_abs_error(ElementType::F32, &[0; 4], &[0; 8]), f64::INFINITY);
}
