//! Comparisons of two columns.

use std::cmp::Ordering;

use super::rows::RowTriState;
use super::{Mask, Summary, TriState};
use crate::column::{Column, Values};
use crate::logical_type::LogicalType;
use crate::schema::{Field, Type};

/// An operator between two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the operators")]
pub enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Operator {
    /// The operator as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// Whether values in this order match. NaN has no order and differs from everything.
    pub const fn holds(self, order: Option<Ordering>) -> bool {
        match (self, order) {
            (Self::Ne, None) => true,
            (_, None) => false,
            (Self::Eq, Some(order)) => order.is_eq(),
            (Self::Ne, Some(order)) => order.is_ne(),
            (Self::Lt, Some(order)) => order.is_lt(),
            (Self::Le, Some(order)) => order.is_le(),
            (Self::Gt, Some(order)) => order.is_gt(),
            (Self::Ge, Some(order)) => order.is_ge(),
        }
    }
}

/// A bound comparison of two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnPair {
    /// The column on the left.
    pub left: usize,
    /// The operator.
    pub operator: Operator,
    /// The column on the right.
    pub right: usize,
    /// Both are decimals stored as big-endian bytes, whose first bit is the sign.
    signed_bytes: bool,
    /// Factors of both sides that give decimals and integers one scale.
    factors: (i128, i128),
}

/// The most digits by which scales differ: products of 64-bit integers with such a power of ten have less than 128 bits.
const MAX_SCALE_DIFFERENCE: u32 = 18;

/// The scale of integers, and of decimals stored as integers.
fn scale(field: &Field, logical_type: Option<LogicalType>) -> Option<i32> {
    match logical_type {
        _ if !field.kind.is_integer() || matches!(field.kind, Type::Bool | Type::TimestampMicros) => None,
        None => Some(0),
        Some(LogicalType::Decimal { scale, .. }) => Some(scale.into()),
        Some(_) => None,
    }
}

/// The factors that give two columns one scale.
fn factors(left: i32, right: i32) -> Option<(i128, i128)> {
    let most = left.max(right);
    let factor = |scale: i32| {
        let digits = u32::try_from(most - scale).ok().filter(|digits| *digits <= MAX_SCALE_DIFFERENCE)?;
        10_i128.checked_pow(digits)
    };
    Some((factor(left)?, factor(right)?))
}

impl ColumnPair {
    /// Binds two columns; `None` if their types cannot be compared.
    pub(super) fn bind(
        left: (usize, &Field, Option<LogicalType>),
        operator: Operator,
        right: (usize, &Field, Option<LogicalType>),
    ) -> Option<Self> {
        let (one, other) = (left.1.kind, right.1.kind);
        let is_text = |kind: Type| matches!(kind, Type::String | Type::Bytes | Type::BlobRef);
        let is_number =
            |kind: Type| !is_text(kind) && !matches!(kind, Type::Bool | Type::List | Type::TimestampMicros);
        let comparable = match (left.2, right.2) {
            (None, None) => {
                one != Type::List
                    && (one == other
                        || (is_text(one) && is_text(other))
                        || (is_number(one) && is_number(other)))
            }
            // The same unit, scale and width; timestamps are stored in one unit.
            (Some(one_type), Some(other_type)) => {
                one_type.is_comparable(other_type) && one == other && one != Type::List
            }
            _ => false,
        };
        let scales = (scale(left.1, left.2), scale(right.1, right.2));
        let scaled = match scales {
            (Some(one), Some(other)) if !comparable => factors(one, other),
            _ => None,
        };
        let (comparable, factors) = (comparable || scaled.is_some(), scaled.unwrap_or((1, 1)));
        let signed_bytes = matches!(left.2, Some(LogicalType::Decimal { .. })) && is_text(one);
        comparable.then_some(Self { left: left.0, operator, right: right.0, signed_bytes, factors })
    }

    /// The result for each row.
    pub(crate) fn rows(&self, left: &Column, right: &Column) -> RowTriState {
        let rows = left.len().min(right.len());
        let present = Mask::from_validity(left.validity.as_ref(), rows)
            .and(&Mask::from_validity(right.validity.as_ref(), rows));
        RowTriState::from_present(self.values(&left.values, &right.values, rows), &present)
    }

    fn values(&self, left: &Values, right: &Values, rows: usize) -> Mask {
        /// One loop per type, for columns of the same type.
        macro_rules! same {
            ($($variant:ident),*) => {
                match (left, right) {
                    $((Values::$variant(a), Values::$variant(b)) => {
                        return Mask::from_fn(rows, |row| self.operator.holds(a[row].partial_cmp(&b[row])));
                    })*
                    (Values::Bytes(a), Values::Bytes(b)) => {
                        return Mask::from_fn(rows, |row| {
                            self.operator.holds(Some(self.order(a.get(row), b.get(row))))
                        });
                    }
                    _ => {}
                }
            };
        }
        if self.factors != (1, 1) {
            return Mask::from_fn(rows, |row| {
                let number = |values: &Values, factor: i128| match Number::at(values, row) {
                    Some(Number::Integer(number)) => number.checked_mul(factor),
                    _ => None,
                };
                let (one, other) = (number(left, self.factors.0), number(right, self.factors.1));
                self.operator.holds(one.zip(other).map(|(one, other)| one.cmp(&other)))
            });
        }
        same!(Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64);
        Mask::from_fn(rows, |row| {
            let number = |values: &Values| Number::at(values, row);
            let (Some(a), Some(b)) = (number(left), number(right)) else { return false };
            self.operator.holds(a.order(b))
        })
    }

    fn order(&self, a: &[u8], b: &[u8]) -> Ordering {
        // Negative decimals have the first bit set, and sort before the others.
        let sign = |value: &[u8]| self.signed_bytes && value.first().is_some_and(|first| *first >= 0x80);
        sign(b).cmp(&sign(a)).then_with(|| a.cmp(b))
    }

    /// The possible results for rows with these statistics.
    pub(crate) fn tri_state(&self, left: &Summary, right: &Summary) -> TriState {
        let some_null = left.nulls != Some(0) || right.nulls != Some(0);
        let all_null = left.nulls == Some(left.rows) || right.nulls == Some(right.rows);
        if all_null {
            return TriState { yes: false, no: false, unknown: true };
        }
        let (yes, no) = self.for_present(left, right);
        TriState { yes, no, unknown: some_null }
    }

    fn for_present(&self, left: &Summary, right: &Summary) -> (bool, bool) {
        // The bounds of decimals stored as bytes are in another order, those of other scales are other numbers.
        if self.signed_bytes || self.factors != (1, 1) {
            return (true, true);
        }
        let (Some((a_min, a_max)), Some((b_min, b_max))) = (&left.bounds, &right.bounds) else {
            return (true, true);
        };
        let (Some(low), Some(high)) = (a_min.order(b_max), a_max.order(b_min)) else { return (true, true) };
        // `low` compares the least possible left with the greatest right, `high` the opposite.
        let nan = left.nan || right.nan;
        let (can_be_less, can_be_greater) = (low.is_lt(), high.is_gt());
        let can_be_equal = low.is_le() && high.is_ge();
        let (yes, no) = match self.operator {
            Operator::Eq => (can_be_equal, can_be_less || can_be_greater),
            Operator::Ne => (can_be_less || can_be_greater, can_be_equal),
            Operator::Lt => (can_be_less, can_be_equal || can_be_greater),
            Operator::Le => (can_be_less || can_be_equal, can_be_greater),
            Operator::Gt => (can_be_greater, can_be_equal || can_be_less),
            Operator::Ge => (can_be_greater || can_be_equal, can_be_less),
        };
        if self.operator == Operator::Ne { (yes || nan, no) } else { (yes, no || nan) }
    }
}

/// A number of any type.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn at(values: &Values, row: usize) -> Option<Self> {
        Some(match values {
            Values::Int8(v) => Self::Integer((*v.get(row)?).into()),
            Values::Int16(v) => Self::Integer((*v.get(row)?).into()),
            Values::Int32(v) => Self::Integer((*v.get(row)?).into()),
            Values::Int64(v) => Self::Integer((*v.get(row)?).into()),
            Values::UInt8(v) => Self::Integer((*v.get(row)?).into()),
            Values::UInt16(v) => Self::Integer((*v.get(row)?).into()),
            Values::UInt32(v) => Self::Integer((*v.get(row)?).into()),
            Values::UInt64(v) => Self::Integer((*v.get(row)?).into()),
            Values::Float32(v) => Self::Float((*v.get(row)?).into()),
            Values::Float64(v) => Self::Float(*v.get(row)?),
            Values::Bool(_) | Values::Bytes(_) | Values::List(_) => return None,
        })
    }

    /// The exact order; `None` with NaN.
    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Integer(a), Self::Float(b)) => order_mixed(a, b),
            (Self::Float(a), Self::Integer(b)) => order_mixed(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares an integer of at most 64 bits with a float, without rounding.
#[expect(clippy::cast_possible_truncation, reason = "in range, and without a fraction")]
fn order_mixed(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 1e30 {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let floor = float.floor();
    let order = integer.cmp(&(floor as i128));
    Some(order.then(if float > floor { Ordering::Less } else { Ordering::Equal }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_different_scales_are_compared_by_value() {
        let decimal = |scale| Some(LogicalType::Decimal { precision: 18, scale, width: 16 });
        let field = |kind| Field::new("x", kind);
        let bind = |one: (Type, Option<LogicalType>), other: (Type, Option<LogicalType>)| {
            ColumnPair::bind((0, &field(one.0), one.1), Operator::Lt, (1, &field(other.0), other.1))
        };
        // 12.5 < 12.51, 12.5 < 12 and the extremes.
        let left = Values::Int32(vec![125, 125, i32::MIN]);
        let right = Values::Int64(vec![1251, 1200, i64::MAX]);
        let pair = bind((Type::Int32, decimal(1)), (Type::Int64, decimal(2))).unwrap();
        assert_eq!(pair.values(&left, &right, 3).positions().collect::<Vec<_>>(), [0, 2]);
        let quantity = Values::UInt64(vec![12, 13, u64::MAX]);
        let pair = bind((Type::UInt64, None), (Type::Int64, decimal(18))).unwrap();
        let price = Values::Int64(vec![i64::MAX, i64::MIN, i64::MAX]);
        assert_eq!(pair.values(&quantity, &price, 3).positions().count(), 0);
        assert!(bind((Type::Int32, decimal(2)), (Type::Int64, decimal(2))).is_some());
        assert!(bind((Type::Int64, decimal(-3)), (Type::Int64, decimal(18))).is_none());
        assert!(bind((Type::Bytes, decimal(2)), (Type::Int64, decimal(2))).is_none());
        assert!(bind((Type::Int32, Some(LogicalType::Date32)), (Type::Int32, None)).is_none());
    }

    #[test]
    fn integers_and_floats_are_compared_exactly() {
        let big = i128::from(u64::MAX);
        for (integer, float, expected) in [
            (3, 3.0, Some(Ordering::Equal)),
            (3, 3.5, Some(Ordering::Less)),
            (-3, -3.5, Some(Ordering::Greater)),
            (big, 18_446_744_073_709_551_616.0, Some(Ordering::Less)),
            ((1 << 53) + 1, 9_007_199_254_740_992.0, Some(Ordering::Greater)),
            (0, f64::INFINITY, Some(Ordering::Less)),
            (0, f64::NEG_INFINITY, Some(Ordering::Greater)),
            (0, -0.0, Some(Ordering::Equal)),
            (0, f64::NAN, None),
        ] {
            assert_eq!(order_mixed(integer, float), expected, "{integer} {float}");
        }
    }
}
