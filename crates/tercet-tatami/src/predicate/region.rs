//! Evaluation of filters on statistics.

use std::cmp::Ordering;

use super::{Comparison, Leaf, Predicate};
use crate::column::Values;
use crate::scalar::Scalar;

/// The possible results of a filter for the rows of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriState {
    pub(crate) yes: bool,
    pub(crate) no: bool,
    pub(crate) unknown: bool,
}

impl TriState {
    pub(crate) const ANY: Self = Self { yes: true, no: true, unknown: true };

    /// No row matches.
    pub(crate) const fn is_never(self) -> bool {
        !self.yes
    }

    /// Every row matches.
    pub(crate) const fn is_always(self) -> bool {
        self.yes && !self.no && !self.unknown
    }

    const fn not(self) -> Self {
        Self { yes: self.no, no: self.yes, unknown: self.unknown }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            yes: self.yes && other.yes,
            no: self.no || other.no,
            unknown: (self.unknown && (other.unknown || other.yes)) || (other.unknown && self.yes),
        }
    }

    const fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// Statistics of the values of a region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Minimum and maximum of the non-null values, except NaN.
    pub(crate) bounds: Option<(Scalar, Scalar)>,
    /// Whether some value equals each bound.
    pub(crate) exact: bool,
    /// Whether a non-null value may be NaN.
    pub(crate) nan: bool,
    /// The number of null rows, if known.
    pub(crate) nulls: Option<u64>,
    pub(crate) rows: u64,
}

impl Predicate {
    /// The possible results of the filter; `leaf` evaluates a comparison.
    pub(crate) fn tri_state<E>(
        &self,
        leaf: &mut impl FnMut(Leaf<'_>) -> Result<TriState, E>,
    ) -> Result<TriState, E> {
        match self {
            Self::Comparison { column, test, number } => leaf(Leaf::Test(*number, *column, test)),
            Self::Columns(pair) => leaf(Leaf::Columns(pair)),
            Self::Not(part) => Ok(part.tri_state(leaf)?.not()),
            Self::And(parts) => {
                let mut all: Option<TriState> = None;
                for part in parts {
                    let one = part.tri_state(leaf)?;
                    let sum = all.map_or(one, |all| all.and(one));
                    if sum.is_never() && !sum.unknown {
                        // Short circuit, so that bloom filters are not read needlessly.
                        return Ok(sum);
                    }
                    all = Some(sum);
                }
                Ok(all.unwrap_or(TriState::ANY))
            }
            Self::Or(parts) => {
                let mut all: Option<TriState> = None;
                for part in parts {
                    let one = part.tri_state(leaf)?;
                    let sum = all.map_or(one, |all| all.or(one));
                    if sum.is_always() {
                        return Ok(sum);
                    }
                    all = Some(sum);
                }
                Ok(all.unwrap_or(TriState::ANY))
            }
        }
    }
}

impl Comparison<Scalar> {
    /// The possible results of the comparison for values with these statistics.
    pub(crate) fn tri_state(&self, known: &Summary) -> TriState {
        let some_null = known.nulls != Some(0);
        let some_present = known.nulls != Some(known.rows);
        if let Self::IsNull = self {
            return TriState { yes: some_null, no: some_present, unknown: false };
        }
        let (yes, no) = self.for_present(known);
        TriState { yes: yes && some_present, no: no && some_present, unknown: some_null }
    }

    /// Whether the comparison can be true, and whether it can be false, for a non-null value.
    fn for_present(&self, known: &Summary) -> (bool, bool) {
        let Some((min, max)) = &known.bounds else { return (true, true) };
        // NaN is neither less than nor equal to anything.
        let nan = known.nan;
        let less = |a: &Scalar, b: &Scalar| a.order(b) == Some(Ordering::Less);
        let at_most = |a: &Scalar, b: &Scalar| matches!(a.order(b), Some(Ordering::Less | Ordering::Equal));
        let equal = |a: &Scalar, b: &Scalar| a.order(b) == Some(Ordering::Equal);
        // A NaN literal matches nothing.
        if self.literals().iter().any(|probe| probe.is_nan()) {
            return match self {
                Self::Ne(_) => (true, false),
                Self::In(_) => (true, true),
                _ => (false, true),
            };
        }
        let same = |x: &Scalar| known.exact && equal(min, x) && equal(max, x);
        match self {
            Self::Eq(x) => (at_most(min, x) && at_most(x, max), !same(x) || nan),
            Self::Ne(x) => (!same(x) || nan, at_most(min, x) && at_most(x, max)),
            Self::Lt(x) => (less(min, x), !less(max, x) || nan),
            Self::Le(x) => (at_most(min, x), !at_most(max, x) || nan),
            Self::Gt(x) => (less(x, max), !less(x, min) || nan),
            Self::Ge(x) => (at_most(x, max), !at_most(x, min) || nan),
            Self::Between(low, high) => {
                let can = at_most(low, max) && at_most(min, high) && at_most(low, high);
                (can, !(at_most(low, min) && at_most(max, high)) || nan)
            }
            Self::In(values) => {
                let inside = |x: &Scalar| at_most(min, x) && at_most(x, max);
                (values.iter().any(inside), !values.iter().any(same) || nan)
            }
            Self::Prefix(prefix) => match (prefix, min, max) {
                (Scalar::Bytes(prefix), Scalar::Bytes(min), Scalar::Bytes(max)) => {
                    let can = may_start_with(prefix, min, max);
                    (can, !(min.starts_with(prefix) && max.starts_with(prefix)))
                }
                _ => (true, true),
            },
            Self::EndsWith(_) | Self::Substring(_) | Self::Matches(_) => match (min, max) {
                // All values are the same.
                (Scalar::Bytes(only), Scalar::Bytes(max)) if known.exact && only == max => {
                    let yes = self.values(&Values::Bytes([only].into_iter().collect())).get(0);
                    (yes, !yes)
                }
                (Scalar::Bytes(min), Scalar::Bytes(max)) => match self {
                    Self::Matches(matcher) => (may_start_with(matcher.prefix(), min, max), true),
                    _ => (true, true),
                },
                _ => (true, true),
            },
            // A list may also have other elements, or none.
            Self::Contains(x) => (at_most(min, x) && at_most(x, max), true),
            // Binding compiles patterns.
            Self::Like(_) | Self::ILike(_) | Self::Regexp(_) | Self::IsNull => (true, true),
        }
    }

    /// The values of which at least one must occur for the comparison to be true: keys for a bloom filter.
    pub(crate) fn members(&self) -> Option<Vec<&Scalar>> {
        match self {
            Self::Eq(x) | Self::Contains(x) => Some(vec![x]),
            Self::In(values) => Some(values.iter().collect()),
            _ => None,
        }
    }
}

/// Whether a value between two bounds, which may be truncated, may have a prefix.
fn may_start_with(prefix: &[u8], min: &[u8], max: &[u8]) -> bool {
    let head = |text: &'_ [u8]| -> Vec<u8> { text[..text.len().min(prefix.len())].to_vec() };
    head(min).as_slice() <= prefix && head(max).as_slice() >= prefix
}
