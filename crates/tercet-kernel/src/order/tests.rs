use tercet_core::tensor::f16;

use super::key::{Coding, Key, Number, Rank, between};
use super::*;
use crate::widen;

fn keys<K: Key>(coding: &Coding<K>, dtype: ElementType, elements: &[u8]) -> Vec<K> {
    let count = elements.len() / dtype.size();
    let mut words = vec![0u64; count];
    let values = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..count * coding.compute.size()];
    widen(dtype, elements, coding.compute, values);
    let mut keys = vec![K::default(); count];
    (coding.encode)(values, &mut keys);
    keys
}

fn in_order<K: Key>(coding: &Coding<K>, dtype: ElementType, elements: &[u8], numbers: &[Number]) {
    let keys = keys(coding, dtype, elements);
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{dtype:?}: {keys:?}");
    let decoded: Vec<Number> = keys.iter().map(|&key| (coding.decode)(key)).collect();
    assert_eq!(decoded, numbers, "{dtype:?}");
}

macro_rules! check {
    ($coding:expr, $dtype:ident, $number:ident, [$($value:expr),*]) => {
        let elements: Vec<u8> = [$($value.to_le_bytes()),*].concat();
        in_order(&$coding, ElementType::$dtype, &elements, &[$(Number::$number($value.into())),*]);
    };
}

#[test]
fn keys_sort_like_values() {
    let narrow = |dtype| Coding::narrow(dtype).unwrap();
    check!(narrow(ElementType::U8), U8, Float, [0u8, 1u8, 255u8]);
    check!(narrow(ElementType::I16), I16, Float, [i16::MIN, -1i16, 0i16, 1i16, i16::MAX]);
    check!(narrow(ElementType::I32), I32, Integer, [i32::MIN, -1i32, 0i32, 1i32, i32::MAX]);
    check!(narrow(ElementType::U32), U32, Integer, [0u32, 1u32, u32::MAX]);
    check!(
        Coding::wide(ElementType::I64),
        I64,
        Integer,
        [i64::MIN, i64::MIN + 1, -1i64, 0i64, 1i64, i64::MAX]
    );
    check!(Coding::wide(ElementType::U64), U64, Integer, [0u64, 1u64, u64::MAX]);
    check!(
        narrow(ElementType::F32),
        F32,
        Float,
        [f32::NEG_INFINITY, f32::MIN, -1f32, 1e-45f32, 1f32, f32::INFINITY]
    );
    check!(
        Coding::wide(ElementType::F64),
        F64,
        Float,
        [f64::NEG_INFINITY, f64::MIN, -5e-324f64, 5e-324f64, f64::MAX]
    );
    let zeros = [(-0.0f32).to_le_bytes(), 0f32.to_le_bytes()].concat();
    let zeros = keys(&narrow(ElementType::F32), ElementType::F32, &zeros);
    assert!(zeros[0] < zeros[1]);
    check!(Coding::wide(ElementType::F64), F64, Float, [-1f64, -5e-324f64, 5e-324f64, 1f64, f64::INFINITY]);
    let zeros = [(-0.0f64).to_le_bytes(), 0f64.to_le_bytes()].concat();
    let zeros = keys(&Coding::wide(ElementType::F64), ElementType::F64, &zeros);
    assert!(zeros[0] < zeros[1]);
    let halves = [f16::NEG_INFINITY, f16::MIN, f16::from_f32(-0.0), f16::ZERO, f16::MAX, f16::INFINITY];
    let halves: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    let halves = keys(&narrow(ElementType::F16), ElementType::F16, &halves);
    assert!(halves.windows(2).all(|pair| pair[0] < pair[1]), "{halves:?}");
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
        let coding = narrow(ElementType::F32);
        assert_eq!(keys(&coding, ElementType::F32, &nan.to_le_bytes()), [u32::MAX]);
    }
}

#[test]
fn interpolation_follows_the_definition() {
    let inf = f64::INFINITY;
    let float = |a, b, fraction| between(Number::Float(a), Number::Float(b), fraction);
    let whole = |a, b, fraction| between(Number::Integer(a), Number::Integer(b), fraction);
    assert_eq!(float(1.0, 2.0, 0.25), 1.25);
    assert_eq!(float(-inf, 3.0, 0.1), -inf);
    assert_eq!(float(3.0, inf, 0.9), inf);
    assert_eq!(float(inf, inf, 0.3), inf);
    assert!(float(-inf, inf, 0.5).is_nan());
    assert_eq!(float(-inf, inf, 0.0), -inf);
    assert_eq!(float(f64::MIN, f64::MAX, 0.5), 0.0);
    assert_eq!(float(f64::MAX, f64::MAX, 0.5), f64::MAX);
    let large = 2f64.powi(1023);
    assert_eq!(float(large, 1.5 * large, 0.5), 1.25 * large);
    assert_eq!(whole(i128::from(u64::MAX) - 1, u64::MAX.into(), 0.5), 2f64.powi(64));
    assert_eq!(whole(i64::MIN.into(), i64::MAX.into(), 0.5), -0.5);
    assert_eq!(whole(7, 8, 0.75), 7.75);
}

#[test]
fn rests_complete_integers_beyond_the_digits_of_f64() {
    let coding = Coding { is_rest: true, ..Coding::wide(ElementType::I64) };
    let rest = |a, b, fraction| coding.between(Number::Integer(a), Number::Integer(b), fraction);
    let big = i128::from(i64::MAX);
    assert_eq!(rest(big, big, 0.0), -1.0);
    assert_eq!(rest(big - 2, big, 0.5), -2.0);
    assert!(rest(big - 1, big, 0.5).is_nan());
    assert!(rest(3, 8, 0.25).is_nan());
    assert_eq!(rest(7, 7, 0.25), 0.0);
}

#[test]
fn ranks_follow_the_definition() {
    assert_eq!(Rank::new(0.5, 4), Rank { low: 1, fraction: 0.5 });
    assert_eq!(Rank::new(0.5, 5), Rank { low: 2, fraction: 0.0 });
    assert_eq!(Rank::new(1.0, 5), Rank { low: 4, fraction: 0.0 });
    assert_eq!(Rank::new(0.0, 1), Rank { low: 0, fraction: 0.0 });
    assert_eq!((Rank::new(0.5, 4).high(), Rank::new(0.5, 5).high()), (2, 2));
}
