//! Comparisons with logical types: decimals, dates, times.
//!
//! A literal equals a stored value or is between two of them, which determines the comparison of stored values: with scale 2,
//! `price < 12.345` is `<= 1234`, and `price = 12.345` matches nothing. Literals are never rounded.

use super::{BindError, Comparison, Literal, Predicate};
use crate::logical_type::{LiteralPosition, LogicalType, is_number};
use crate::scalar::Scalar;
use crate::schema::{Field, Type};

/// The position of a literal among stored values.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// Equal to a value, or between it and the next.
    Near(Near),
    /// Less than every value of the column type.
    BelowAll,
    /// Greater than every value of the column type.
    AboveAll,
}

#[derive(Clone, Debug)]
pub(super) struct Near {
    value: Scalar,
    /// Equal to this value; otherwise between it and the next.
    is_equal: bool,
    is_negative: bool,
}

/// Locates a literal among the values of a column, or of its list elements.
pub(super) fn locate(
    field: &Field,
    logical_type: LogicalType,
    literal: &Literal,
) -> Result<Bound, BindError> {
    let column = || field.name.to_string();
    let invalid = || BindError::LogicalType { column: column(), logical_type, value: literal.display() };
    let text = match literal {
        Literal::Number(text) => text,
        // Quoted numbers are decimals only: a year is not a date.
        Literal::Text(text) if logical_type.is_number() || !is_number(text) => text,
        _ => return Err(invalid()),
    };
    // A date is midnight in UTC.
    let midnight = (matches!(logical_type, LogicalType::Timestamp { .. })
        && LogicalType::Date32.position(text).is_some())
    .then(|| format!("{text}T00:00:00Z"))
    .filter(|_| !is_number(text));
    let text = midnight.as_ref().unwrap_or(text);
    let beyond = |is_negative| if is_negative { Bound::BelowAll } else { Bound::AboveAll };
    let (number, is_equal) = match logical_type.position(text) {
        Some(LiteralPosition::At(number)) => (number, true),
        Some(LiteralPosition::After(number)) => (number, false),
        // Exceeds every decimal.
        None if logical_type.is_number() && is_number(text) => return Ok(beyond(text.starts_with('-'))),
        None => return Err(invalid()),
    };
    let is_negative = number.is_negative();
    Ok(match logical_type.stored(field.scalar(), number) {
        Some(value) => Bound::Near(Near { value, is_equal, is_negative }),
        None if logical_type.is_number() => beyond(is_negative),
        None => return Err(invalid()),
    })
}

/// The logical type of integers.
pub(super) const INTEGER: LogicalType = LogicalType::Decimal { precision: 76, scale: 0, width: 32 };

/// Locates a number among the values of an integer column, or of its list elements; `None` for other literals.
pub(super) fn locate_integer(field: &Field, literal: &Literal) -> Option<Bound> {
    let Literal::Number(text) = literal else { return None };
    let beyond = |is_negative| if is_negative { Bound::BelowAll } else { Bound::AboveAll };
    let (number, is_equal) = match INTEGER.position(text) {
        Some(LiteralPosition::At(number)) => (number, true),
        Some(LiteralPosition::After(number)) => (number, false),
        None => return is_number(text).then(|| beyond(text.starts_with('-'))),
    };
    let is_negative = number.is_negative();
    let digits = format!("{}{}", if is_negative { "-" } else { "" }, number.digits());
    Some(match Scalar::parse(field.scalar(), &digits) {
        Some(value) => Bound::Near(Near { value, is_equal, is_negative }),
        None => beyond(is_negative),
    })
}

/// Translates a comparison to stored values.
pub(super) fn bound(
    column: usize,
    field: &Field,
    logical_type: LogicalType,
    test: Comparison<Bound>,
) -> Predicate {
    let width = match (field.scalar(), logical_type) {
        (Type::Bytes | Type::BlobRef, LogicalType::Decimal { width, .. }) => Some(usize::from(width)),
        _ => None,
    };
    let column = Column { column, width };
    match test {
        Comparison::Eq(Bound::Near(near)) if near.is_equal => column.leaf(Comparison::Eq(near.value)),
        Comparison::Ne(Bound::Near(near)) if near.is_equal => column.leaf(Comparison::Ne(near.value)),
        Comparison::Contains(Bound::Near(near)) if near.is_equal => {
            column.leaf(Comparison::Contains(near.value))
        }
        Comparison::Eq(_) | Comparison::Contains(_) => column.none(),
        Comparison::Ne(_) => column.all(),
        Comparison::Lt(bound) => column.less(bound, Comparison::Lt),
        Comparison::Le(bound) => column.less(bound, Comparison::Le),
        Comparison::Gt(bound) => column.greater(bound, Comparison::Gt),
        Comparison::Ge(bound) => column.greater(bound, Comparison::Ge),
        Comparison::Between(Bound::Near(low), Bound::Near(high)) if width.is_none() && low.is_equal => {
            column.leaf(Comparison::Between(low.value, high.value))
        }
        Comparison::Between(low, high) => {
            Predicate::And(vec![column.greater(low, Comparison::Ge), column.less(high, Comparison::Le)])
        }
        Comparison::In(bounds) => {
            let there = bounds.into_iter().filter_map(|bound| match bound {
                Bound::Near(near) if near.is_equal => Some(near.value),
                _ => None,
            });
            column.leaf(Comparison::In(there.collect()))
        }
        // Operators on strings are not bound to logical types.
        Comparison::Prefix(_)
        | Comparison::EndsWith(_)
        | Comparison::Substring(_)
        | Comparison::Like(_)
        | Comparison::ILike(_)
        | Comparison::Regexp(_)
        | Comparison::Matches(_)
        | Comparison::IsNull => column.leaf(Comparison::IsNull),
    }
}

/// A column of integers, or of decimals as bytes.
#[derive(Clone, Copy)]
struct Column {
    column: usize,
    /// Length of a decimal; `None` for integers.
    width: Option<usize>,
}

impl Column {
    fn leaf(self, test: Comparison<Scalar>) -> Predicate {
        Predicate::Comparison { column: self.column, test, number: 0 }
    }

    /// The smallest bytes of negative numbers, which sort after those of positive numbers.
    fn negatives(self) -> Option<Scalar> {
        let mut bytes = vec![0; self.width?];
        *bytes.first_mut()? = 0x80;
        Some(Scalar::Bytes(bytes))
    }

    /// False for every non-null row.
    fn none(self) -> Predicate {
        self.leaf(Comparison::In(Vec::new()))
    }

    fn all(self) -> Predicate {
        Predicate::Not(Box::new(self.none()))
    }

    /// Values less than a bound, including its value if the comparison does or if the bound is greater.
    fn less(self, bound: Bound, test: fn(Scalar) -> Comparison<Scalar>) -> Predicate {
        let near = match bound {
            Bound::Near(near) => near,
            Bound::BelowAll => return self.none(),
            Bound::AboveAll => return self.all(),
        };
        let test = if near.is_equal { test } else { Comparison::Le };
        let leaf = self.leaf(test(near.value));
        match self.negatives().map(|first| self.leaf(Comparison::Ge(first))) {
            None => leaf,
            Some(negative) if near.is_negative => Predicate::And(vec![negative, leaf]),
            Some(negative) => Predicate::Or(vec![negative, leaf]),
        }
    }

    /// Values greater than a bound, including its value if the comparison does and the bound equals it.
    fn greater(self, bound: Bound, test: fn(Scalar) -> Comparison<Scalar>) -> Predicate {
        let near = match bound {
            Bound::Near(near) => near,
            Bound::BelowAll => return self.all(),
            Bound::AboveAll => return self.none(),
        };
        let test = if near.is_equal { test } else { Comparison::Gt };
        let leaf = self.leaf(test(near.value));
        match self.negatives().map(|first| self.leaf(Comparison::Lt(first))) {
            None => leaf,
            Some(positive) if near.is_negative => Predicate::Or(vec![positive, leaf]),
            Some(positive) => Predicate::And(vec![positive, leaf]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expr, Mask};
    use super::*;
    use crate::column::{Bitmap, Column as Rows, Values};
    use crate::logical_type::Unit;
    use crate::schema::Schema;

    /// The matching rows of a column whose last row is null.
    fn matching(kind: Type, logical_type: LogicalType, values: Values, filter: &str) -> Vec<usize> {
        let schema = Schema::new(vec![Field::new("x", kind).with_nulls()]).unwrap();
        let predicate = Expr::parse(filter).unwrap().bind_with_types(&schema, &[Some(logical_type)]).unwrap();
        let rows = values.len();
        let validity: Bitmap = (0..rows).map(|row| row + 1 < rows).collect();
        let mask: Mask = predicate.mask(&[Rows::new(values).with_validity(validity)]);
        mask.positions().collect()
    }

    /// Literals between two integers, or beyond all of them, are compared by value.
    #[test]
    fn integers_are_compared_with_any_number() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let schema = |kind| Schema::new(vec![Field::new("x", kind)]).unwrap();
        let matching = |kind, values: Values, filter: &str| -> Vec<usize> {
            let predicate = Expr::parse(filter).unwrap().bind(&schema(kind)).unwrap();
            predicate.mask(&[Rows::new(values)]).positions().collect()
        };
        let numbers: Vec<i8> = vec![-128, -2, -1, 0, 1, 2, 127];
        for literal in [
            "-128.5", "-129", "-1.5", "-1", "-0.5", "0", "0.25", "1.5", "1e0", "15e-1", "127.5", "128",
            "1e30", "-1e30",
        ] {
            let value: f64 = literal.parse().unwrap();
            // Orders of a value and the literal for which the operator holds.
            let tests = [
                ("<", vec![Less]),
                ("<=", vec![Less, Equal]),
                (">", vec![Greater]),
                (">=", vec![Greater, Equal]),
                ("=", vec![Equal]),
                ("!=", vec![Less, Greater]),
            ];
            for (operator, holds) in tests {
                let is_match = |x: i8| holds.contains(&f64::from(x).total_cmp(&(value + 0.0)));
                let rows = numbers.iter().enumerate().filter(|(_, x)| is_match(**x));
                let expected: Vec<usize> = rows.map(|(row, _)| row).collect();
                let filter = format!("x {operator} {literal}");
                assert_eq!(
                    matching(Type::Int8, Values::Int8(numbers.clone()), &filter),
                    expected,
                    "{filter}"
                );
            }
        }
        let all = || Values::UInt64(vec![0, 1, u64::MAX]);
        assert_eq!(matching(Type::UInt64, all(), "x > -0.5"), [0, 1, 2]);
        assert_eq!(matching(Type::UInt64, all(), "x < 18446744073709551615.5"), [0, 1, 2]);
        assert_eq!(matching(Type::UInt64, all(), "x >= 18446744073709551614.5"), [2]);
        assert_eq!(matching(Type::UInt64, all(), "x between 0.5 and 1.5 or x in (0, 0.5)"), [0, 1]);
        let error = Expr::parse("x = \"3\"").unwrap().bind(&schema(Type::Int8)).unwrap_err();
        assert!(matches!(error, BindError::Value { .. }));
    }

    /// Decimals of scale 1 against literals of scale 2, in both storage types.
    #[test]
    fn decimals_are_compared_by_value() {
        let numbers: Vec<i64> = (-25..=25).chain([0]).collect();
        let last = numbers.len() - 1;
        let wide = numbers.iter().map(|number| i128::from(*number).to_be_bytes()).collect::<Vec<_>>();
        let narrow = LogicalType::Decimal { precision: 18, scale: 1, width: 16 };
        let broad = LogicalType::Decimal { precision: 38, scale: 1, width: 16 };
        for hundredths in -260..=260_i64 {
            let (sign, size) = (if hundredths < 0 { "-" } else { "" }, hundredths.abs());
            let literal = format!("{sign}{}.{:02}", size / 100, size % 100);
            for (operator, holds) in [
                ("=", (|a, b| a == b) as fn(i64, i64) -> bool),
                ("!=", |a, b| a != b),
                ("<", |a, b| a < b),
                ("<=", |a, b| a <= b),
                (">", |a, b| a > b),
                (">=", |a, b| a >= b),
            ] {
                let expected: Vec<usize> =
                    (0..last).filter(|row| holds(numbers[*row] * 10, hundredths)).collect();
                let opposite: Vec<usize> = (0..last).filter(|row| !expected.contains(row)).collect();
                let filter = format!("x {operator} {literal}");
                for (filter, expected) in [(format!("not {filter}"), opposite), (filter, expected)] {
                    let values = Values::Int64(numbers.clone());
                    assert_eq!(matching(Type::Int64, narrow, values, &filter), expected, "{filter}");
                    let values = Values::Bytes(wide.iter().collect());
                    assert_eq!(matching(Type::Bytes, broad, values, &filter), expected, "{filter}");
                }
            }
            let filter = format!("x between {literal} and 1.05");
            let expected: Vec<usize> =
                (0..last).filter(|row| (hundredths..=105).contains(&(numbers[*row] * 10))).collect();
            let values = Values::Int64(numbers.clone());
            assert_eq!(matching(Type::Int64, narrow, values, &filter), expected, "{filter}");
            let values = Values::Bytes(wide.iter().collect());
            assert_eq!(matching(Type::Bytes, broad, values, &filter), expected, "{filter}");
        }
        let values = || Values::Int64(numbers.clone());
        assert_eq!(matching(Type::Int64, narrow, values(), "x in (0.1, 0.15, \"-2.5\", 1e300)"), [0, 26]);
        // Outside the range of the column type.
        let all: Vec<usize> = (0..last).collect();
        for far in ["9223372036854775807", "1e70", "1e400"] {
            for (filter, expected) in [
                (format!("x < {far}"), &all[..]),
                (format!("x >= -{far}"), &all),
                (format!("x != {far}"), &all),
                (format!("x between -{far} and {far}"), &all),
                (format!("not x > {far}"), &all),
                (format!("x > {far}"), &[]),
                (format!("x <= -{far}"), &[]),
                (format!("x = -{far}"), &[]),
                (format!("x between 0 and -{far}"), &[]),
            ] {
                assert_eq!(matching(Type::Int64, narrow, values(), &filter), expected, "{filter}");
                let values = Values::Bytes(wide.iter().collect());
                assert_eq!(matching(Type::Bytes, broad, values, &filter), expected, "{filter}");
            }
        }
        // Decimals stored as bytes do not sort like their bytes.
        let schema = Schema::new(vec![Field::new("x", Type::Bytes)]).unwrap();
        let bound = |text: &str| Expr::parse(text).unwrap().bind_with_types(&schema, &[Some(broad)]);
        assert!(bound("x < x'00'").is_err() && bound("x between x'00' and x'01'").is_err());
        assert!(bound("x = x'00000000000000000000000000000001'").is_ok());
    }

    #[test]
    fn uuids_are_compared_as_bytes_and_enums_as_strings() {
        let uuids = || Values::Bytes([[0_u8; 16], [0x11; 16], [0xff; 16], [0; 16]].iter().collect());
        let uuid = LogicalType::Uuid;
        let ones = "11111111-1111-1111-1111-111111111111";
        assert_eq!(matching(Type::Bytes, uuid, uuids(), &format!("x = \"{ones}\"")), [1]);
        assert_eq!(matching(Type::Bytes, uuid, uuids(), &format!("x >= \"{ones}\"")), [1, 2]);
        assert_eq!(matching(Type::Bytes, uuid, uuids(), &format!("x not in (\"{ones}\")")), [0, 2]);
        assert_eq!(matching(Type::Bytes, uuid, uuids(), &format!("x = x'{}'", "11".repeat(16))), [1]);
        let schema = Schema::new(vec![Field::new("x", Type::Bytes)]).unwrap();
        for filter in ["x = \"1\"", "x = 1", "x like \"1%\""] {
            let bound = Expr::parse(filter).unwrap().bind_with_types(&schema, &[Some(uuid)]);
            assert!(bound.is_err(), "{filter}");
        }
        let names = || Values::Bytes(["red", "green", "rose", ""].iter().collect());
        for kind in [Type::String, Type::Bytes] {
            assert_eq!(matching(kind, LogicalType::Enum, names(), "x like \"r%\""), [0, 2]);
            assert_eq!(matching(kind, LogicalType::Json, names(), "x = \"green\""), [1]);
        }
    }

    #[test]
    fn dates_and_times_are_strings() {
        let days = || Values::Int32(vec![18_261, 18_262, 18_263, 0]);
        assert_eq!(matching(Type::Int32, LogicalType::Date32, days(), "x >= \"2020-01-01\""), [1, 2]);
        assert_eq!(matching(Type::Int32, LogicalType::Date32, days(), "x = 18262"), [1]);
        let times = || Values::Int64(vec![0, 1, 2, 0]);
        let kind = Type::TimestampMicros;
        assert_eq!(matching(kind, LogicalType::UTC, times(), "x > \"1970-01-01T00:00:00.0000005Z\""), [1, 2]);
        assert_eq!(
            matching(
                kind,
                LogicalType::LocalTimestamp(Unit::Micros),
                times(),
                "x <= \"1970-01-01T00:00:00.000001\""
            ),
            [0, 1]
        );
        let schema = Schema::new(vec![Field::new("x", Type::Int32)]).unwrap();
        for (logical_type, filter) in [
            (LogicalType::Date32, "x = \"2020\""),
            (LogicalType::Date32, "x = \"2020-01-01T00:00:00Z\""),
            (LogicalType::Date32, "x prefix \"2020\""),
            (LogicalType::Date32, "x = true"),
            (LogicalType::Date32, "x = 99999999999"),
            (LogicalType::Decimal { precision: 9, scale: 2, width: 4 }, "x < \"abc\""),
        ] {
            let bound = Expr::parse(filter).unwrap().bind_with_types(&schema, &[Some(logical_type)]);
            assert!(bound.is_err(), "{filter}");
        }
    }
}
