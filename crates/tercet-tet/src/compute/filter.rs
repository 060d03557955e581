//! Comparisons of values.

use std::cmp::Ordering;

use crate::query::operation::Scalar;
use crate::query::resolved::Filter;

/// A comparison of values with a number, or a null check. NaN and the fill value of the dataset fail every comparison
/// except `Ne` and `IsNull`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Comparison {
    Eq(Scalar),
    Ne(Scalar),
    Lt(Scalar),
    Le(Scalar),
    Gt(Scalar),
    Ge(Scalar),
    IsNull,
    IsNotNull,
}

/// Adds a comparison to a filter. The error describes a combination that a filter cannot hold.
pub(super) fn add(filter: &mut Filter, comparison: Comparison) -> Result<(), String> {
    match comparison {
        Comparison::Eq(number) => same(&mut filter.eq, number, "equal to"),
        Comparison::Ne(number) => same(&mut filter.ne, number, "not equal to"),
        Comparison::Lt(number) => bound(&mut filter.lt, number, Ordering::Less),
        Comparison::Le(number) => bound(&mut filter.le, number, Ordering::Less),
        Comparison::Gt(number) => bound(&mut filter.gt, number, Ordering::Greater),
        Comparison::Ge(number) => bound(&mut filter.ge, number, Ordering::Greater),
        Comparison::IsNull => {
            filter.is_null = true;
            Ok(())
        }
        Comparison::IsNotNull => {
            filter.is_not_null = true;
            Ok(())
        }
    }
}

fn same(slot: &mut Option<Scalar>, number: Scalar, what: &str) -> Result<(), String> {
    match *slot {
        Some(other) if compare(other, number) != Some(Ordering::Equal) => {
            Err(format!("values {what} {} and {what} {} in one filter", other.to_f64(), number.to_f64()))
        }
        _ => {
            *slot = Some(number);
            Ok(())
        }
    }
}

/// Keeps the tighter one of two bounds.
fn bound(slot: &mut Option<Scalar>, number: Scalar, tighter: Ordering) -> Result<(), String> {
    if let Some(other) = *slot {
        let order = compare(number, other).ok_or("a bound that is NaN in a filter")?;
        if order != tighter {
            return Ok(());
        }
    }
    *slot = Some(number);
    Ok(())
}

pub(crate) fn compare(a: Scalar, b: Scalar) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Whole(a), Scalar::Whole(b)) => Some(a.cmp(&b)),
        _ => a.to_f64().partial_cmp(&b.to_f64()),
    }
}
