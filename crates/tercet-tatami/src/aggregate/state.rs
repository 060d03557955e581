//! The state of an aggregate for all groups.

use std::cmp::Ordering;

use super::Aggregate;
use super::keys::order_decimals;
use crate::column::{Column, Values};
use crate::logical_type::LogicalType;
use crate::logical_type::int256::Int256;
use crate::scalar::Scalar;
use crate::schema::{Field, Type};

/// The state of one aggregate, by group.
#[derive(Debug)]
pub(super) enum State {
    Count(Vec<u64>),
    Extreme {
        is_max: bool,
        kind: Type,
        logical_type: Option<LogicalType>,
        values: Vec<Option<Scalar>>,
    },
    /// Exact sums: 2^64 values of 64 bits fit 128 bits.
    Integers {
        totals: Vec<(i128, u64)>,
        result: Total,
        logical_type: Option<LogicalType>,
    },
    Floats {
        totals: Vec<(Compensated, u64)>,
        result: Total,
    },
    /// Sums of decimals of more than 18 digits; `None` after an overflow of 256 bits.
    Decimals {
        totals: Vec<(Option<Int256>, u64)>,
        is_mean: bool,
        scale: i8,
        logical_type: LogicalType,
    },
}

/// A sum that does not fit its type.
#[derive(Debug)]
pub(super) struct Overflow;

/// The type of a sum, or the mean.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    Signed,
    Unsigned,
    Float,
    /// The mean; the sum is divided by a power of ten.
    Mean {
        scale: i8,
    },
}

/// A sum with the rounding errors of its additions (Neumaier).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        // Beyond the largest float, and with infinities, the correction is NaN.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

impl State {
    pub(super) const fn count() -> Self {
        Self::Count(Vec::new())
    }

    /// The state of an aggregate of a column; `None` if the column has no such aggregate.
    pub(super) fn new(
        aggregate: &Aggregate,
        field: &Field,
        logical_type: Option<LogicalType>,
    ) -> Option<Self> {
        let kind = field.kind;
        if kind == Type::List {
            return None;
        }
        let is_max = match aggregate {
            Aggregate::Count => return Some(Self::count()),
            Aggregate::Min(_) => Some(false),
            Aggregate::Max(_) => Some(true),
            Aggregate::Sum(_) | Aggregate::Mean(_) => None,
        };
        if let Some(is_max) = is_max {
            return Some(Self::Extreme { is_max, kind, logical_type, values: Vec::new() });
        }
        let is_mean = matches!(aggregate, Aggregate::Mean(_));
        let (scale, summed) = match logical_type {
            None => (0, None),
            Some(LogicalType::Decimal { scale, width, .. }) if kind == Type::Bytes => {
                let precision = if width <= 16 { 38 } else { 76 };
                let logical_type =
                    LogicalType::Decimal { precision, scale, width: if width <= 16 { 16 } else { 32 } };
                return Some(Self::Decimals { totals: Vec::new(), is_mean, scale, logical_type });
            }
            Some(LogicalType::Decimal { scale, .. }) => {
                (scale, Some(LogicalType::Decimal { precision: 18, scale, width: 8 }))
            }
            Some(duration @ LogicalType::Duration(_)) if !is_mean => (0, Some(duration)),
            // Dates and times have no sum.
            Some(_) => return None,
        };
        let integers = |result: Total| {
            let (result, logical_type) =
                if is_mean { (Total::Mean { scale }, None) } else { (result, summed) };
            Some(Self::Integers { totals: Vec::new(), result, logical_type })
        };
        match kind {
            Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => integers(Total::Signed),
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => integers(Total::Unsigned),
            Type::Float32 | Type::Float64 => {
                let result = if is_mean { Total::Mean { scale: 0 } } else { Total::Float };
                Some(Self::Floats { totals: Vec::new(), result })
            }
            _ => None,
        }
    }

    /// Makes room for this many groups.
    pub(super) fn grow(&mut self, groups: usize) {
        match self {
            Self::Count(counts) => counts.resize(groups, 0),
            Self::Extreme { values, .. } => values.resize(groups, None),
            Self::Integers { totals, .. } => totals.resize(groups, (0, 0)),
            Self::Floats { totals, .. } => totals.resize(groups, (Compensated::default(), 0)),
            Self::Decimals { totals, .. } => totals.resize(groups, (Some(Int256::default()), 0)),
        }
    }

    /// Adds rows with the numbers of their groups.
    pub(super) fn add(&mut self, groups: &[u32], column: Option<&Column>) {
        match (self, column) {
            (Self::Count(counts), _) => groups.iter().for_each(|group| counts[*group as usize] += 1),
            (Self::Extreme { is_max, kind, logical_type, values }, Some(column)) => {
                let order = if is_long_decimal(*kind, *logical_type) { order_decimals } else { Ord::cmp };
                each_present(groups, column, |group, row| {
                    extreme(*is_max, order, column, row, &mut values[group]);
                });
            }
            (Self::Integers { totals, .. }, Some(column)) => each_present(groups, column, |group, row| {
                totals[group].0 += integer(&column.values, row);
                totals[group].1 += 1;
            }),
            (Self::Floats { totals, .. }, Some(column)) => each_present(groups, column, |group, row| {
                totals[group].0.add(float(&column.values, row));
                totals[group].1 += 1;
            }),
            (Self::Decimals { totals, .. }, Some(column)) => {
                let Values::Bytes(values) = &column.values else { return };
                each_present(groups, column, |group, row| {
                    let (sum, count) = &mut totals[group];
                    *sum = sum.and_then(|sum| sum.checked_add(Int256::from_bytes(values.get(row))?));
                    *count += 1;
                });
            }
            (_, None) => {}
        }
    }

    /// Whether page statistics have the result. Those of decimals of more than 18 digits are in the order of their bytes.
    pub(super) fn has_statistics(&self) -> bool {
        match self {
            Self::Count(_) => true,
            Self::Extreme { kind, logical_type, .. } => !is_long_decimal(*kind, *logical_type),
            Self::Integers { .. } | Self::Floats { .. } | Self::Decimals { .. } => false,
        }
    }

    /// Adds rows to the count of the only group.
    pub(super) fn add_rows(&mut self, rows: u64) {
        if let Self::Count(counts) = self
            && let Some(count) = counts.first_mut()
        {
            *count += rows;
        }
    }

    /// Adds the minimum or maximum of rows to the only group.
    pub(super) fn add_bound(&mut self, value: &Scalar) {
        if let Self::Extreme { is_max, values, .. } = self
            && let Some(extreme) = values.first_mut()
            && extreme.as_ref().is_none_or(|old| is_better(*is_max, value, old))
        {
            *extreme = Some(value.clone());
        }
    }

    /// The type of the result.
    pub(super) fn result_type(&self) -> (Type, Option<LogicalType>) {
        match self {
            Self::Count(_) => (Type::UInt64, None),
            Self::Extreme { kind, logical_type, .. } => (*kind, *logical_type),
            Self::Integers { result, logical_type, .. } => (result.kind(), *logical_type),
            Self::Floats { result, .. } => (result.kind(), None),
            Self::Decimals { is_mean: true, .. } => (Type::Float64, None),
            Self::Decimals { logical_type, .. } => (Type::Bytes, Some(*logical_type)),
        }
    }

    /// The result of a group: `None`, a null, without values.
    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    pub(super) fn result(&self, group: u32) -> Result<Option<Scalar>, Overflow> {
        let group = group as usize;
        Ok(match self {
            Self::Count(counts) => Some(Scalar::UInt64(counts[group])),
            Self::Extreme { values, .. } => values[group].clone(),
            Self::Integers { totals, .. } if totals[group].1 == 0 => None,
            Self::Integers { totals, result, .. } => Some(result.of_integers(totals[group]).ok_or(Overflow)?),
            Self::Floats { totals, .. } if totals[group].1 == 0 => None,
            Self::Floats { totals, result } => {
                let (total, count) = totals[group];
                let value = match result {
                    Total::Mean { .. } => total.value() / count as f64,
                    _ => total.value(),
                };
                Some(Scalar::Float64(value))
            }
            Self::Decimals { totals, .. } if totals[group].1 == 0 => None,
            Self::Decimals { totals, is_mean, scale, logical_type } => {
                let (sum, count) = totals[group];
                let sum = sum.ok_or(Overflow)?;
                Some(if *is_mean {
                    Scalar::Float64(sum.to_f64(*scale) / count as f64)
                } else {
                    let is_in_range = logical_type.has_digits_for(sum);
                    logical_type.stored(Type::Bytes, sum).filter(|_| is_in_range).ok_or(Overflow)?
                })
            }
        })
    }
}

/// Decimals of more than 18 digits are bytes, whose order is not that of the numbers.
fn is_long_decimal(kind: Type, logical_type: Option<LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Decimal { .. })) && kind == Type::Bytes
}

impl Total {
    const fn kind(self) -> Type {
        match self {
            Self::Signed => Type::Int64,
            Self::Unsigned => Type::UInt64,
            Self::Float | Self::Mean { .. } => Type::Float64,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    fn of_integers(self, (sum, count): (i128, u64)) -> Option<Scalar> {
        Some(match self {
            Self::Signed => Scalar::Int64(sum.try_into().ok()?),
            Self::Unsigned => Scalar::UInt64(sum.try_into().ok()?),
            Self::Float => Scalar::Float64(sum as f64),
            Self::Mean { scale } => {
                // Whole part and rest separately: a sum of more than 53 bits keeps its digits.
                let count = i128::from(count);
                let mean = (sum / count) as f64 + (sum % count) as f64 / count as f64;
                Scalar::Float64(mean / 10f64.powi(scale.into()))
            }
        })
    }
}

fn each_present(groups: &[u32], column: &Column, mut each: impl FnMut(usize, usize)) {
    for (row, group) in groups.iter().enumerate() {
        if column.is_present(row) {
            each(*group as usize, row);
        }
    }
}

fn is_better(is_max: bool, value: &Scalar, old: &Scalar) -> bool {
    value.order(old).is_some_and(|order| if is_max { order.is_gt() } else { order.is_lt() })
}

/// Replaces the extreme by the value of a row if that is less or greater. NaN is skipped.
fn extreme(
    is_max: bool,
    order: fn(&[u8], &[u8]) -> Ordering,
    column: &Column,
    row: usize,
    extreme: &mut Option<Scalar>,
) {
    // Strings are compared in place: most are not copied.
    if let (Values::Bytes(values), Some(Scalar::Bytes(old))) = (&column.values, &mut *extreme) {
        let value = values.get(row);
        let order = order(value, old);
        if if is_max { order.is_gt() } else { order.is_lt() } {
            old.clear();
            old.extend_from_slice(value);
        }
        return;
    }
    let Some(value) = column.scalar(row).filter(|value| !value.is_nan()) else { return };
    if extreme.as_ref().is_none_or(|old| is_better(is_max, &value, old)) {
        *extreme = Some(value);
    }
}

fn integer(values: &Values, row: usize) -> i128 {
    match values {
        Values::Int8(values) => values[row].into(),
        Values::Int16(values) => values[row].into(),
        Values::Int32(values) => values[row].into(),
        Values::Int64(values) => values[row].into(),
        Values::UInt8(values) => values[row].into(),
        Values::UInt16(values) => values[row].into(),
        Values::UInt32(values) => values[row].into(),
        Values::UInt64(values) => values[row].into(),
        _ => 0,
    }
}

fn float(values: &Values, row: usize) -> f64 {
    match values {
        Values::Float32(values) => values[row].into(),
        Values::Float64(values) => values[row],
        _ => f64::NAN,
    }
}
