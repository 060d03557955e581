use std::cmp::Ordering;

use bytemuck::{cast_slice, pod_read_unaligned};
use proptest::prelude::*;
use tercet_core::{ElementType, with_element};

use super::*;

/// Numbers near the ends and middles of types, and near each other.
fn numbers() -> impl Strategy<Value = Scalar> {
    let ends =
        [0i128, 1, 3, 127, 255, 2047, 32767, 65535, 1 << 24, 1 << 31, 1 << 32, 1 << 53, 1 << 63, 1 << 64];
    let whole = (prop::sample::select(ends.to_vec()), -2i128..3, any::<bool>())
        .prop_map(|(end, near, minus)| Scalar::Whole(if minus { -end + near } else { end + near }));
    let floats =
        vec![0.1, -0.1, 0.5, 2.5, -2.5, -0.0, 3.0, 1e-8, 65504.5, 1e20, 3.5e38, -3.5e38, 1e300, 5e-324];
    let any = (-10f64..10.0).prop_map(Scalar::Float);
    prop_oneof![whole, prop::sample::select(floats).prop_map(Scalar::Float), any]
}

fn filters() -> impl Strategy<Value = Filter> {
    let number = || prop::option::weighted(0.3, numbers());
    (number(), number(), number(), number(), number(), number(), any::<u8>()).prop_map(
        |(eq, ne, lt, le, gt, ge, flags)| Filter {
            eq: eq.filter(|_| flags % 4 == 0),
            ne,
            lt,
            le: le.filter(|_| lt.is_none()),
            gt,
            ge: ge.filter(|_| gt.is_none()),
            is_null: flags & 0x30 == 0x30 && [eq, ne, lt, le, gt, ge].iter().all(Option::is_none),
            is_not_null: flags & 0xc0 == 0xc0,
        },
    )
}

/// Compares a value with a number, without rounding.
fn compare<T: Number>(value: T, number: Scalar) -> Option<Ordering> {
    let whole_and_rest = |float: f64| (float.floor() as i128, float - float.floor());
    let value = if T::FLOAT { Scalar::Float(value.to_f64()) } else { Scalar::Whole(value.to_i128()) };
    match (value, number) {
        (Scalar::Whole(a), Scalar::Whole(b)) => Some(a.cmp(&b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
        (Scalar::Float(a), Scalar::Whole(b)) if a.is_finite() => whole_and_rest(a).partial_cmp(&(b, 0.0)),
        (Scalar::Float(a), Scalar::Whole(_)) => a.partial_cmp(&0.0),
        (Scalar::Whole(a), Scalar::Float(b)) => (a, 0.0).partial_cmp(&whole_and_rest(b)),
    }
}

/// Whether a value equals the conversion of a number to its type.
fn equals<T: Number>(value: T, number: Scalar) -> bool {
    if !T::FLOAT {
        return compare(value, number) == Some(Ordering::Equal);
    }
    let rounded = match number {
        Scalar::Whole(number) => T::nearest_i128(number).unwrap(),
        Scalar::Float(number) => T::nearest_f64(number),
    };
    value == rounded && !rounded.is_infinite() || value.is_nan() && rounded.is_nan()
}

/// Naive filter, straight from the definition.
fn obviously_passes<T: Number>(filter: &Filter, fill: Option<Scalar>, value: T) -> bool {
    let is_null = value.is_nan() || fill.is_some_and(|fill| equals(value, fill));
    let holds = |number: Option<Scalar>, wanted: &[Ordering]| {
        let compares = |number| compare(value, number).is_some_and(|order| wanted.contains(&order));
        number.is_none_or(|number| !is_null && compares(number))
    };
    filter.eq.is_none_or(|number| !is_null && equals(value, number))
        && filter.ne.is_none_or(|number| is_null || !equals(value, number))
        && holds(filter.lt, &[Ordering::Less])
        && holds(filter.le, &[Ordering::Less, Ordering::Equal])
        && holds(filter.gt, &[Ordering::Greater])
        && holds(filter.ge, &[Ordering::Greater, Ordering::Equal])
        && (!filter.is_null || is_null)
        && (!filter.is_not_null || !is_null)
}

/// Values near the numbers of a filter, and any others.
fn values<T: Number>(filter: &Filter, fill: Option<Scalar>, seeds: &[u64]) -> Vec<T> {
    let of_bits = |bits: u64| -> T { pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()]) };
    let mut values: Vec<T> = seeds.iter().map(|&seed| of_bits(seed)).collect();
    let numbers = [filter.eq, filter.ne, filter.lt, filter.le, filter.gt, filter.ge, fill];
    for number in numbers.into_iter().flatten() {
        let near = |whole: i128| (-1..2).filter_map(move |off| T::nearest_i128(whole.saturating_add(off)));
        match number {
            Scalar::Float(number) if T::FLOAT => values.extend([number, -number].map(T::nearest_f64)),
            Scalar::Float(number) => values.extend(near(number as i128)),
            Scalar::Whole(number) => values.extend(near(number)),
        }
    }
    // Adjacent floats.
    let word = |value: &T| {
        let mut bytes = [0; 8];
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(value));
        u64::from_le_bytes(bytes)
    };
    let bits: Vec<u64> = values.iter().map(word).collect();
    for bits in bits {
        values.extend([of_bits(bits.wrapping_add(1)), of_bits(bits.wrapping_sub(1))]);
    }
    if T::FLOAT {
        values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0].map(T::nearest_f64));
    }
    values
}

fn check<T: Number>(filter: &Filter, fill: Option<Scalar>, seeds: &[u64]) {
    let predicate = Predicate::<T>::new(filter, [fill, None]);
    let values = values::<T>(filter, fill, seeds);
    for &value in &values {
        let wanted = obviously_passes(filter, fill, value);
        assert_eq!(predicate.passes(value), wanted, "{value:?} ({}), {filter:?}, fill {fill:?}", T::ELEMENT);
    }
    // Widened values pass like the original ones.
    let passing: Vec<bool> = values.iter().map(|&value| predicate.passes(value)).collect();
    let compute = ComputeType::for_dtype(T::ELEMENT);
    let mut words = vec![0u64; (values.len() * compute.size()).div_ceil(8)];
    let widened = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..values.len() * compute.size()];
    tercet_kernel::widen(T::ELEMENT, cast_slice(&values), compute, widened);
    let mut mask = vec![false; values.len()];
    compute_filter(filter, [fill, None], T::ELEMENT, compute).mask(widened, &mut mask);
    assert_eq!(mask, passing, "{filter:?}, fill {fill:?}");
    // Chunks of every length, so that ranges are narrow and wide.
    for length in [1, 2, 3, 1000] {
        for chunk in values.chunks(length) {
            let any = chunk.iter().any(|&value| predicate.passes(value));
            let stats = Stats::compute(T::ELEMENT, cast_slice(chunk));
            assert!(predicate.may_match(&stats) || !any, "{chunk:?}, {filter:?}, fill {fill:?}");
            if length == 1 {
                assert_eq!(predicate.may_match(&stats), any, "{chunk:?}, {filter:?}, fill {fill:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn values_pass_as_the_filter_says(
        filter in filters(),
        fill in prop::option::of(prop_oneof![numbers(), Just(Scalar::Float(f64::NAN))]),
        seeds in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        for dtype in ElementType::ALL {
            with_element!(dtype, |T| check::<T>(&filter, fill, &seeds));
        }
    }
}

#[test]
fn ranges_tell_when_nothing_matches() {
    let stats = Stats::compute(ElementType::F32, cast_slice(&[1.0f32, 2.0, f32::NAN]));
    let may = |filter: Filter| Predicate::<f32>::new(&filter, [None; 2]).may_match(&stats);
    let none = Filter::default();
    assert!(!may(Filter { gt: Some(Scalar::Float(2.0)), ..none }));
    assert!(may(Filter { ge: Some(Scalar::Float(2.0)), ..none }));
    assert!(!may(Filter { lt: Some(Scalar::Whole(1)), ..none }));
    assert!(!may(Filter { eq: Some(Scalar::Whole(3)), ..none }));
    assert!(may(Filter { ne: Some(Scalar::Whole(3)), ..none }));
    assert!(may(Filter { is_null: true, ..none }));
    let numbers = Stats::compute(ElementType::F32, cast_slice(&[1.0f32, 2.0]));
    let is_null =
        |fill| Predicate::<f32>::new(&Filter { is_null: true, ..none }, [fill, None]).may_match(&numbers);
    assert!(!is_null(None));
    assert!(!is_null(Some(Scalar::Whole(-999))));
    assert!(is_null(Some(Scalar::Float(1.5))));
    let only_fill = Stats::compute(ElementType::I16, cast_slice(&[-999i16, -999]));
    let below = Filter { lt: Some(Scalar::Whole(0)), ..none };
    assert!(!Predicate::<i16>::new(&below, [Some(Scalar::Whole(-999)), None]).may_match(&only_fill));
    assert!(Predicate::<i16>::new(&below, [None; 2]).may_match(&only_fill));
}

#[test]
fn fill_values_are_rounded_to_the_type() {
    assert_eq!(fill_value::<f32>(Scalar::Float(0.1)), Some(0.1f32));
    assert_eq!(fill_value::<f32>(Scalar::Float(1e20)), Some(1e20f32));
    assert_eq!(fill_value::<f32>(Scalar::Float(1e300)), None);
    assert_eq!(fill_value::<f32>(Scalar::Float(f64::INFINITY)), Some(f32::INFINITY));
    assert!(fill_value::<f64>(Scalar::Float(f64::NAN)).is_some_and(f64::is_nan));
    assert_eq!(fill_value::<i16>(Scalar::Float(-999.0)), Some(-999));
    assert_eq!(fill_value::<i16>(Scalar::Float(0.5)), None);
    assert_eq!(fill_value::<u8>(Scalar::Whole(-1)), None);
    assert_eq!(fill_value::<u8>(Scalar::Float(f64::NAN)), None);
    assert_eq!(fill_value::<u64>(Scalar::Whole(i128::from(u64::MAX))), Some(u64::MAX));
    assert_eq!(fill_value::<i64>(Scalar::Float(1e300)), None);
}
