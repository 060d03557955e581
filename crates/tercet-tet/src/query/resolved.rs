//! A query bound to a dataset: axes are numbers, labels are positions, shapes are checked.

use std::sync::Arc;

use tercet_core::{ElementType, Selection};
use tercet_kernel::Decode;

use super::operation::{Kind, Scalar};
use super::{Target, Write};

/// A query bound to its dataset.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// The selection.
    pub(crate) selection: Selection,
    /// Axes whose positions are in descending order in the result.
    pub(crate) reversed: Vec<bool>,
    /// Axes of a single selected position that are not dimensions of the result.
    pub(crate) dropped: Vec<usize>,
    pub(crate) operation: Option<Operation>,
    /// Elements to include; folds skip the others.
    pub(crate) filter: Option<Filter>,
    /// Positions of one axis to include.
    pub(crate) positions: Option<Positions>,
    /// The fill value of the dataset, from its attributes.
    pub(crate) fill: Option<Scalar>,
    /// How missing and packed values are treated.
    pub(crate) values: Values,
    /// The file for the selection, without an operation.
    pub(crate) spill: Option<String>,
    /// The output of a transform.
    pub(crate) write: Option<Write>,
    /// `group_by`: the number of groups.
    pub(crate) group_count: Option<u64>,
    /// Whether there is a `window`, for `window_count`.
    pub(crate) window_count: Option<u64>,
}

/// How stored values become the values of a computation. The default computes with stored values as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    /// Whether missing values are skipped: NaN and the fill values.
    pub(crate) skip_missing: bool,
    /// A second fill value.
    pub(crate) other_fill: Option<Scalar>,
    /// The minimum and the maximum of valid stored values: others are missing.
    pub(crate) valid: [Option<Scalar>; 2],
    /// Decoding of packed values to f64, with missing ones as NaN.
    pub(crate) decode: Option<Arc<Decode>>,
}

/// An operation and the roles of the axes.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The fill value of `NullCount` is resolved.
    pub(crate) kind: Kind,
    /// The reduced axes in the given order (for the echo); empty means all.
    pub(crate) axes: Vec<usize>,
    /// One role per axis of the selection.
    pub(crate) roles: Vec<Role>,
}

/// The role of one axis of the selection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Reduced: all positions contribute to one result.
    Reduced,
    /// Kept: one result per position.
    Kept,
    /// Grouped by labels or bins: a position contributes to its group. `numbers` has one entry per selected
    /// position.
    Grouped(Groups),
    /// Rolling: a position contributes to every window that covers it.
    Rolling(Rolling),
}

/// Groups of positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Groups {
    /// The group of each selected position.
    pub(crate) numbers: Arc<[u32]>,
    pub(crate) count: u32,
    /// For bins: padding of short ones, and the minimum of positions.
    pub(crate) padding: Option<Padding>,
    /// The size of a full bin; 0 for labels.
    pub(crate) size: u64,
}

/// Rolling windows along an axis of `extent` selected positions: window `w` covers the positions
/// `first + w·step .. first + w·step + size`, some of which may be outside the axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rolling {
    pub(crate) size: u64,
    pub(crate) step: u64,
    /// The start of the first window; negative with padding at the start.
    pub(crate) first: i64,
    pub(crate) count: u64,
    pub(crate) padding: Padding,
    /// Whether windows share no partial results: each is reduced from its values.
    pub(crate) separate: bool,
}

/// Padding of positions outside the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Padding {
    /// The value of padding elements; `None` without padding.
    pub(crate) value: Option<Scalar>,
    /// A window with fewer real elements that pass the filter is NaN; 1 by default.
    pub(crate) min_count: u64,
}

/// The positions of an axis to include.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Positions {
    pub(crate) axis: usize,
    /// For each selected position, whether it is included.
    pub(crate) counts: Arc<[bool]>,
}

/// A filter by value: all comparisons must hold. Null means NaN or the fill value of the dataset.
///
/// A null element fails every comparison but `ne`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    pub(crate) eq: Option<Scalar>,
    pub(crate) ne: Option<Scalar>,
    pub(crate) lt: Option<Scalar>,
    pub(crate) le: Option<Scalar>,
    pub(crate) gt: Option<Scalar>,
    pub(crate) ge: Option<Scalar>,
    pub(crate) is_null: bool,
    pub(crate) is_not_null: bool,
}

impl Role {
    /// The output extent of an axis with `extent` selected positions; `None` if the axis is reduced.
    pub(crate) fn output_len(&self, extent: u64) -> Option<u64> {
        match self {
            Self::Reduced => None,
            Self::Kept => Some(extent),
            Self::Grouped(groups) => Some(u64::from(groups.count)),
            Self::Rolling(rolling) => Some(rolling.count),
        }
    }
}

impl Rolling {
    /// Whether every one of `extent` positions is in a window.
    pub(crate) fn covers(&self, extent: u64) -> bool {
        let Some(last) = self.count.checked_sub(1) else { return false };
        let end = i128::from(self.first) + i128::from(last) * i128::from(self.step) + i128::from(self.size);
        self.first <= 0 && self.step <= self.size && end >= i128::from(extent)
    }

    /// The last position of each window; `None` if windows are padded.
    pub(crate) fn last_positions(&self) -> Option<Vec<usize>> {
        let first = u64::try_from(self.first).ok().filter(|_| self.padding.value.is_none())?;
        let last = |window: u64| usize::try_from(first + window * self.step + self.size - 1).ok();
        (0..self.count).map(last).collect()
    }
}

impl Operation {
    /// Whether the result is a scalar.
    pub(crate) fn is_scalar(&self) -> bool {
        self.roles.iter().all(|role| matches!(role, Role::Reduced))
    }

    /// The shape of the result, for the shape of the selection.
    pub(crate) fn output_shape(&self, selection: &[u64]) -> Vec<u64> {
        self.roles.iter().zip(selection).filter_map(|(role, &extent)| role.output_len(extent)).collect()
    }
}

impl Resolved {
    /// The fill values.
    pub(crate) fn fills(&self) -> [Option<Scalar>; 2] {
        [self.fill, self.values.other_fill]
    }

    /// The filter that excludes missing values, for elements of a type that may be missing.
    pub(crate) fn missing_filter(&self, dtype: ElementType) -> Option<Filter> {
        let is_float = matches!(dtype, ElementType::F16 | ElementType::F32 | ElementType::F64);
        let may_miss = is_float || self.values.decode.is_some() || self.has_missing_values();
        // A filter for missing values includes them.
        let includes = self.filter.is_some_and(|filter| filter.is_null);
        let [ge, le] = self.values.valid;
        (self.values.skip_missing && may_miss && !includes).then_some(Filter {
            ge,
            le,
            is_not_null: true,
            ..Filter::default()
        })
    }

    /// Whether stored values other than NaN are missing.
    pub(crate) fn has_missing_values(&self) -> bool {
        self.fills().iter().chain(&self.values.valid).any(Option::is_some)
    }

    /// The filter of a dense result of stored values: the filter of the query, without missing values.
    pub(crate) fn dense_filter(&self, dtype: ElementType) -> Option<Filter> {
        match (self.filter, self.missing_filter(dtype)) {
            (Some(filter), Some(_)) => Some(Filter { is_not_null: true, ..filter }),
            (Some(filter), None) => Some(filter),
            (None, missing) => missing,
        }
    }

    /// The target of a transform.
    pub(crate) fn target(&self) -> Target {
        self.write.as_ref().map_or(Target::Switch, |write| write.target)
    }
}
