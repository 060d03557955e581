//! A filter in the terms of an element type.

use tercet_core::DType;
use tercet_core::tensor::f16;

use super::number::Number;
use crate::query::operation::Scalar;
use crate::query::resolved::Filter;
use crate::stats::{Range, Stats};

/// Which values pass a filter: those within inclusive bounds of their own type, or those that are null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicate<T> {
    /// Inclusive bounds; `None` lets nothing pass.
    bounds: Option<(T, T)>,
    /// Whether bounds come from comparisons, which null cells fail.
    compares: bool,
    /// A value that must not be met.
    not: Option<T>,
    fill: Option<T>,
    /// What null cells must be.
    null: Option<bool>,
}

impl<T: Number> Predicate<T> {
    /// A filter on a dataset with this fill value.
    pub(crate) fn new(filter: &Filter, fill: Option<Scalar>) -> Self {
        let mut low = Some(lowest::<T>());
        let mut high = Some(highest::<T>());
        let raise = |bound: &mut Option<T>, to: Option<T>| {
            *bound = bound.zip(to).map(|(a, b)| if b > a { b } else { a });
        };
        let lower = |bound: &mut Option<T>, to: Option<T>| {
            *bound = bound.zip(to).map(|(a, b)| if b < a { b } else { a });
        };
        if let Some(value) = filter.eq {
            let value = equal_to::<T>(value);
            raise(&mut low, value);
            lower(&mut high, value);
        }
        if let Some(value) = filter.gt {
            raise(&mut low, least_above(value, false));
        }
        if let Some(value) = filter.ge {
            raise(&mut low, least_above(value, true));
        }
        if let Some(value) = filter.lt {
            lower(&mut high, greatest_below(value, false));
        }
        if let Some(value) = filter.le {
            lower(&mut high, greatest_below(value, true));
        }
        let compares = [filter.eq, filter.gt, filter.ge, filter.lt, filter.le].iter().any(Option::is_some);
        let null = match (filter.is_null, filter.is_not_null) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => compares.then_some(false),
        };
        Self {
            bounds: low.zip(high).filter(|(low, high)| low <= high),
            compares,
            not: filter.ne.and_then(equal_to),
            fill: fill.and_then(fill_value),
            null,
        }
    }

    /// Whether a value passes.
    #[inline(always)]
    pub(crate) fn passes(&self, value: T) -> bool {
        if let Some(wanted) = self.null
            && (value.is_nan() || self.fill == Some(value)) != wanted
        {
            return false;
        }
        if self.compares && !self.bounds.is_some_and(|(low, high)| low <= value && value <= high) {
            return false;
        }
        self.not != Some(value)
    }

    /// False only if no value of a chunk with these statistics passes.
    pub(crate) fn may_match(&self, stats: &Stats) -> bool {
        if !self.compares {
            // Nulls are NaN or the fill value, of which statistics know the first only.
            return self.null != Some(true) || self.fill.is_some() || stats.nan_count > 0;
        }
        let Some((low, high)) = self.bounds else { return false };
        match stats.range {
            Range::Float { min, max, .. } => {
                stats.nan_count < stats.count && low.to_f64() <= max && min <= high.to_f64()
            }
            Range::Signed { min, max, .. } => {
                low.to_i128() <= i128::from(max) && i128::from(min) <= high.to_i128()
            }
            Range::Unsigned { min, max, .. } => {
                low.to_i128() <= i128::from(max) && i128::from(min) <= high.to_i128()
            }
        }
    }
}

/// The element nearest to a number; for integers `None` unless there is one that equals it.
pub(crate) fn fill_value<T: Number>(value: Scalar) -> Option<T> {
    if T::FLOAT { Some(nearest(value.to_f64())) } else { equal_to(value) }
}

/// The elements that count as equal to a number: floats after rounding, integers exactly.
fn equal_to<T: Number>(value: Scalar) -> Option<T> {
    if T::FLOAT {
        return Some(nearest(value.to_f64()));
    }
    whole(value, true).and_then(|(whole, exact)| if exact { in_range(whole) } else { None })
}

/// The least element above a number, or not below it if `or_equal`.
fn least_above<T: Number>(value: Scalar, or_equal: bool) -> Option<T> {
    if T::FLOAT {
        let bound = value.to_f64();
        let rounded = nearest::<T>(bound);
        let up = |x: T| neighbour(x, true);
        let fits = |x: T| if or_equal { x.to_f64() >= bound } else { x.to_f64() > bound };
        return if fits(rounded) { Some(rounded) } else { Some(up(rounded)).filter(|&x| fits(x)) };
    }
    let (whole, exact) = whole(value, false)?;
    let least = if exact && or_equal { whole } else { whole.saturating_add(1) };
    if least > highest::<T>().to_i128() { None } else { in_range(least.max(lowest::<T>().to_i128())) }
}

/// The greatest element below a number, or not above it if `or_equal`.
fn greatest_below<T: Number>(value: Scalar, or_equal: bool) -> Option<T> {
    if T::FLOAT {
        let bound = value.to_f64();
        let rounded = nearest::<T>(bound);
        let fits = |x: T| if or_equal { x.to_f64() <= bound } else { x.to_f64() < bound };
        return if fits(rounded) {
            Some(rounded)
        } else {
            Some(neighbour(rounded, false)).filter(|&x| fits(x))
        };
    }
    let (whole, exact) = whole(value, false)?;
    let greatest = if exact && !or_equal { whole.saturating_sub(1) } else { whole };
    if greatest < lowest::<T>().to_i128() { None } else { in_range(greatest.min(highest::<T>().to_i128())) }
}

/// The whole number at or below a number, and whether it is that number; infinities clamp unless they must be exact.
#[expect(clippy::cast_possible_truncation, reason = "casts saturate, far beyond every element")]
fn whole(value: Scalar, must_be_exact: bool) -> Option<(i128, bool)> {
    match value {
        Scalar::Whole(number) => Some((number, true)),
        Scalar::Float(number) if number.is_nan() || (must_be_exact && number.is_infinite()) => None,
        Scalar::Float(number) => Some((number.floor() as i128, number.floor() == number)),
    }
}

/// The element of a float type nearest to a number.
fn nearest<T: Number>(value: f64) -> T {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
    match T::DTYPE {
        DType::F16 => bytemuck::cast_slice(&[nearest_half(value)])[0],
        DType::F32 => bytemuck::cast_slice(&[value as f32])[0],
        _ => bytemuck::cast_slice(&[value])[0],
    }
}

/// The nearest half float. The library's own conversion from f64 is wrong for some numbers near the middle of two;
/// by way of an odd f32 it is right.
fn nearest_half(value: f64) -> f16 {
    const LOST: u64 = (1 << 29) - 1;
    let bits = value.to_bits();
    let odd = u64::from(bits & LOST != 0) << 29;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "exact but for numbers that are infinite or zero as f16 anyway"
    )]
    let single = f64::from_bits(bits & !LOST | odd) as f32;
    if value.is_nan() { f16::NAN } else { f16::from_f32(single) }
}

/// The next element of a float type.
fn neighbour<T: Number>(value: T, up: bool) -> T {
    macro_rules! step {
        ($bits:ty) => {{
            let bits = bytemuck::cast_slice::<T, $bits>(&[value])[0];
            let sign = 1 << (<$bits>::BITS - 1);
            let next = match (bits & !sign == 0, (bits & sign == 0) == up) {
                // From zero of either sign to the least number of the other.
                (true, _) => {
                    if up {
                        1
                    } else {
                        sign | 1
                    }
                }
                (false, true) => bits + 1,
                (false, false) => bits - 1,
            };
            bytemuck::cast_slice::<$bits, T>(&[next])[0]
        }};
    }
    if value.is_nan() || value.is_infinite() && (value.to_f64() > 0.0) == up {
        return value;
    }
    match T::DTYPE {
        DType::F16 => step!(u16),
        DType::F32 => step!(u32),
        _ => step!(u64),
    }
}

/// A whole number as an element of an integer type, if it is one.
fn in_range<T: Number>(whole: i128) -> Option<T> {
    macro_rules! element {
        ($type:ty) => {
            <$type>::try_from(whole).ok().map(|value| bytemuck::cast_slice::<$type, T>(&[value])[0])
        };
    }
    match T::DTYPE {
        DType::I16 => element!(i16),
        DType::I32 => element!(i32),
        DType::I64 => element!(i64),
        DType::U8 => element!(u8),
        DType::U16 => element!(u16),
        DType::U32 => element!(u32),
        DType::U64 => element!(u64),
        DType::F16 | DType::F32 | DType::F64 => None,
    }
}

fn lowest<T: Number>() -> T {
    match T::DTYPE {
        DType::I16 => in_range(i16::MIN.into()),
        DType::I32 => in_range(i32::MIN.into()),
        DType::I64 => in_range(i64::MIN.into()),
        DType::F16 | DType::F32 | DType::F64 => Some(nearest(f64::NEG_INFINITY)),
        _ => in_range(0),
    }
    .unwrap_or_default()
}

fn highest<T: Number>() -> T {
    match T::DTYPE {
        DType::I16 => in_range(i16::MAX.into()),
        DType::I32 => in_range(i32::MAX.into()),
        DType::I64 => in_range(i64::MAX.into()),
        DType::U8 => in_range(u8::MAX.into()),
        DType::U16 => in_range(u16::MAX.into()),
        DType::U32 => in_range(u32::MAX.into()),
        DType::U64 => in_range(u64::MAX.into()),
        DType::F16 | DType::F32 | DType::F64 => Some(nearest(f64::INFINITY)),
    }
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(word: &str, value: Scalar) -> Filter {
        let mut filter = Filter::default();
        let place = match word {
            "eq" => &mut filter.eq,
            "ne" => &mut filter.ne,
            "lt" => &mut filter.lt,
            "le" => &mut filter.le,
            "gt" => &mut filter.gt,
            _ => &mut filter.ge,
        };
        *place = Some(value);
        filter
    }

    #[test]
    fn numbers_are_compared_as_the_element_type_has_them() {
        let passes =
            |word, bound: f64, x: f32| Predicate::new(&filter(word, Scalar::Float(bound)), None).passes(x);
        assert!(passes("eq", 0.1, 0.1));
        assert!(passes("eq", 0.0, -0.0));
        assert!(passes("gt", 0.1, 0.1) == (f64::from(0.1f32) > 0.1));
        assert!(!passes("lt", 0.1, 0.1));
        assert!(passes("ge", f64::NEG_INFINITY, f32::NEG_INFINITY));
        assert!(!passes("gt", f64::INFINITY, f32::INFINITY));
        assert!(!passes("gt", 1e300, f32::INFINITY) || f32::INFINITY > 1e30);
        assert!(passes("ne", 1.0, f32::NAN));
        assert!(!passes("ge", 1.0, f32::NAN));
        let passes = |word, bound, x: u64| Predicate::new(&filter(word, bound), None).passes(x);
        let big = (1 << 53) + 1;
        assert!(passes("eq", Scalar::Whole(big), big as u64));
        assert!(!passes("eq", Scalar::Whole(big), big as u64 - 1));
        assert!(!passes("eq", Scalar::Float(2.5), 2) && !passes("eq", Scalar::Float(2.5), 3));
        assert!(passes("ne", Scalar::Float(2.5), 2));
        assert!(passes("gt", Scalar::Whole(-1), 0));
        assert!(!passes("lt", Scalar::Whole(0), 0));
        assert!(passes("le", Scalar::Float(f64::INFINITY), u64::MAX));
    }

    #[test]
    fn null_cells_fail_comparisons_only() {
        let fill = Some(Scalar::Float(-9999.0));
        let with = |filter: Filter| Predicate::<f32>::new(&filter, fill);
        for (value, null) in [(f32::NAN, true), (-9999.0, true), (1.0, false)] {
            assert_eq!(with(Filter { is_null: true, ..Filter::default() }).passes(value), null);
            assert_eq!(with(Filter { is_not_null: true, ..Filter::default() }).passes(value), !null);
            assert_eq!(with(filter("lt", Scalar::Whole(5))).passes(value), !null);
            assert!(with(filter("ne", Scalar::Whole(5))).passes(value));
        }
    }

    proptest! {
        #[test]
        fn floats_agree_with_wide_comparisons(x: f32, bound in prop_oneof![any::<f64>(), any::<f32>().prop_map(f64::from)]) {
            for word in ["lt", "le", "gt", "ge"] {
                let wide = f64::from(x);
                let expected = match word {
                    "lt" => wide < bound,
                    "le" => wide <= bound,
                    "gt" => wide > bound,
                    _ => wide >= bound,
                };
                let predicate = Predicate::new(&filter(word, Scalar::Float(bound)), None);
                prop_assert_eq!(predicate.passes(x), expected && !bound.is_nan(), "{} {} {}", x, word, bound);
                let stats = Stats::of(DType::F32, &x.to_le_bytes());
                prop_assert!(predicate.may_match(&stats) || !predicate.passes(x));
            }
        }

        #[test]
        fn integers_agree_with_wide_comparisons(x: i16, bound in -40000i32..40000, half: bool) {
            let bound = f64::from(bound) + if half { 0.5 } else { 0.0 };
            for word in ["lt", "le", "gt", "ge", "eq", "ne"] {
                let wide = f64::from(x);
                let expected = match word {
                    "lt" => wide < bound,
                    "le" => wide <= bound,
                    "gt" => wide > bound,
                    "ge" => wide >= bound,
                    "eq" => wide == bound,
                    _ => wide != bound,
                };
                let predicate = Predicate::new(&filter(word, Scalar::Float(bound)), None);
                prop_assert_eq!(predicate.passes(x), expected, "{} {} {}", x, word, bound);
                let stats = Stats::of(DType::I16, &x.to_le_bytes());
                prop_assert!(predicate.may_match(&stats) || !predicate.passes(x));
            }
        }
    }
}
