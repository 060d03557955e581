use proptest::prelude::*;
use tercet_core::tensor::f16;

use super::*;

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn le<T: Element>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| bytemuck::bytes_of(&value.swap_le()).to_vec()).collect()
}

#[test]
fn rows_have_the_specified_bytes() {
    let floats = Stats::compute(ElementType::F32, &le(&[1.5f32, f32::NAN, -0.0, 2.25]));
    assert_eq!(
        hex(&floats.encode()),
        "040000000000000001000000000000000000000000000000000000000000024000000000\
         00000e400000000000000000"
    );
    let huge = Stats::compute(ElementType::U64, &le(&[u64::MAX, u64::MAX]));
    assert_eq!(
        hex(&huge.encode()),
        "02000000000000000000000000000000ffffffffffffffffffffffffffffffff\
         feffffffffffffff0100000000000000"
    );
    let small = Stats::compute(ElementType::I16, &le(&[-5i16, 3]));
    assert_eq!(
        hex(&small.encode()),
        "02000000000000000000000000000000fbffffffffffffff0300000000000000\
         feffffffffffffffffffffffffffffff"
    );
}

#[test]
fn special_floats() {
    let range = |values: &[f64]| match Stats::compute(ElementType::F64, &le(values)).range {
        Range::Float { min, max, sum } => [min.to_bits(), max.to_bits(), sum.to_bits()],
        _ => unreachable!(),
    };
    let nan = NAN.to_bits();
    assert_eq!(range(&[f64::NAN; 3]), [nan, nan, 0]);
    let inf = f64::INFINITY;
    assert_eq!(range(&[inf, 1.0, -inf]), [(-inf).to_bits(), inf.to_bits(), nan]);
    assert_eq!(range(&[1.0, inf, f64::NAN]), [1f64.to_bits(), inf.to_bits(), inf.to_bits()]);
    assert_eq!(range(&[f64::MAX, f64::MAX])[2], inf.to_bits(), "an overflow is infinite, not NaN");
    assert_eq!(range(&[-0.0, -0.0]), [0, 0, 0], "no negative zero");
}

#[test]
fn unaligned_chunks_give_the_same() {
    let values: Vec<u64> = (0..5000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for dtype in ElementType::ALL {
        let bytes = le(&values);
        let shifted = [&[0u8][..], &bytes].concat();
        assert_eq!(
            Stats::compute(dtype, &bytes).encode(),
            Stats::compute(dtype, &shifted[1..]).encode(),
            "{dtype}"
        );
    }
}

/// The slow obvious version for floats.
fn naive(values: &[f64]) -> (u64, f64, f64, f64) {
    let numbers: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    let min = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let max = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    ((values.len() - numbers.len()) as u64, min, max, numbers.iter().sum())
}

proptest! {
    #[test]
    fn floats_equal_a_plain_loop(
        values in prop::collection::vec(prop_oneof![9 => -1e6f32..1e6, 1 => Just(f32::NAN)], 1..10_000),
    ) {
        let wide: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let (nan_count, min, max, sum) = naive(&wide);
        let stats = Stats::compute(ElementType::F32, &le(&values));
        prop_assert_eq!((stats.count, stats.nan_count), (values.len() as u64, nan_count));
        let Range::Float { min: m, max: x, sum: s } = stats.range else { unreachable!() };
        if nan_count < values.len() as u64 {
            prop_assert_eq!((m, x), (min, max));
        }
        prop_assert!((s - sum).abs() <= 1e-9 * wide.iter().filter(|v| !v.is_nan()).map(|v| v.abs()).sum::<f64>());
        prop_assert_eq!(Stats::compute(ElementType::F64, &le(&wide)).range, stats.range);
    }

    #[test]
    fn half_floats_widen_exactly(bits in prop::collection::vec(any::<u16>(), 1..6000)) {
        let halves: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).collect();
        let wide: Vec<f64> = halves.iter().map(|&h| f64::from(h)).collect();
        prop_assert_eq!(Stats::compute(ElementType::F16, &le(&halves)).encode(), Stats::compute(ElementType::F64, &le(&wide)).encode());
    }

    #[test]
    fn integers_are_exact(values in prop::collection::vec(any::<i64>(), 1..6000)) {
        let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
        let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        let stats = Stats::compute(ElementType::I64, &le(&values));
        prop_assert_eq!(stats.range, Range::Signed { min, max, sum });
        let small: Vec<u16> = values.iter().map(|&v| v as u16).collect();
        let sum: i128 = small.iter().map(|&v| i128::from(v)).sum();
        let (min, max) = (u64::from(*small.iter().min().unwrap()), u64::from(*small.iter().max().unwrap()));
        let stats = Stats::compute(ElementType::U16, &le(&small));
        prop_assert_eq!(stats.range, Range::Unsigned { min, max, sum });
        prop_assert_eq!(Stats::decode(ElementType::U16, &stats.encode()), stats);
    }
}

#[test]
fn parts_make_the_whole() {
    let numbers = [1.5, f32::NAN, -0.0, 2.25, f32::NAN, f32::INFINITY, -7.0, f32::NEG_INFINITY];
    for end in 1..=numbers.len() {
        for cut in 1..end {
            let bytes =
                |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
            let stats = |values: &[f32]| Stats::compute(ElementType::F32, &bytes(values));
            let joined = stats(&numbers[..cut]).join(&stats(&numbers[cut..end]));
            assert_eq!(joined.encode(), stats(&numbers[..end]).encode(), "{cut} {end}");
        }
    }
    let stats = |values: &[u8]| Stats::compute(ElementType::U8, values);
    assert_eq!(stats(&[3, 9]).join(&stats(&[1])), stats(&[3, 9, 1]));
}
