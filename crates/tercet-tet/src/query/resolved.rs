//! A query bound to a dataset: names became numbers, labels became positions, and everything fits the array.

use std::sync::Arc;

use tercet_core::Selection;

use super::operation::{Kind, Scalar};
use super::{Target, Write};

/// A query that is known to fit its dataset.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// The selected positions of the array.
    pub(crate) selection: Selection,
    pub(crate) operation: Option<Operation>,
    /// Which cells count; the others are skipped by folds.
    pub(crate) filter: Option<Filter>,
    /// Which positions of one axis count.
    pub(crate) positions: Option<Positions>,
    /// The fill value of the dataset: that of its attributes.
    pub(crate) fill: Option<Scalar>,
    /// Where the selection goes, without an operation.
    pub(crate) spill: Option<String>,
    /// Where the result of a transform goes.
    pub(crate) write: Option<Write>,
    /// `group_by`: the number of groups.
    pub(crate) group_count: Option<u64>,
    /// Whether there is a `window`, for the answer's `window_count`.
    pub(crate) window_count: Option<u64>,
}

/// An operation and its geometry.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// `NullCount` has its fill by now.
    pub(crate) kind: Kind,
    /// The reduced axes in the order given (for the echo); empty means all.
    pub(crate) axes: Vec<usize>,
    /// One role for each axis of the selection.
    pub(crate) roles: Vec<Role>,
}

/// What happens to the positions of one axis of the selection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// All positions go into one cell.
    Reduced,
    /// Each position is a cell of its own.
    Kept,
    /// A position goes into the cell of its group: repeated labels, bins. `cells` has one entry for each selected
    /// position.
    Grouped(Groups),
    /// A position goes into every window that covers it.
    Rolling(Rolling),
}

/// Groups of positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Groups {
    /// The group of each selected position.
    pub(crate) cells: Arc<[u32]>,
    pub(crate) count: u32,
    /// For bins: what fills short ones, and how many positions a bin must have.
    pub(crate) padding: Option<Padding>,
    /// The size of a full bin; 0 for labels.
    pub(crate) size: u64,
}

/// Rolling windows along an axis of `extent` selected positions: window `w` covers the positions
/// `first + w·step .. first + w·step + size`, some of which may lie outside the axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rolling {
    pub(crate) size: u64,
    pub(crate) step: u64,
    /// The start of the first window; negative with padding at the start.
    pub(crate) first: i64,
    pub(crate) count: u64,
    pub(crate) padding: Padding,
}

/// What stands for positions outside the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Padding {
    /// The value of a padding cell; without one there is no padding.
    pub(crate) value: Option<Scalar>,
    /// A window with fewer real cells that pass the filter than this answers NaN; 1 by default.
    pub(crate) min_count: u64,
}

/// Which positions of an axis count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Positions {
    pub(crate) axis: usize,
    /// For each selected position whether it counts.
    pub(crate) counts: Arc<[bool]>,
}

/// A filter by value: all of it must hold. Null means NaN or equal to the fill value of the dataset.
///
/// A null cell fails every comparison but `ne`.
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
    /// The number of output cells of an axis of `extent` selected positions; `None` where the axis disappears.
    pub(crate) fn cells(&self, extent: u64) -> Option<u64> {
        match self {
            Self::Reduced => None,
            Self::Kept => Some(extent),
            Self::Grouped(groups) => Some(u64::from(groups.count)),
            Self::Rolling(rolling) => Some(rolling.count),
        }
    }
}

impl Operation {
    /// Whether the result is one cell without axes.
    pub(crate) fn is_scalar(&self) -> bool {
        self.roles.iter().all(|role| matches!(role, Role::Reduced))
    }

    /// The extents of the result, for the extents of the selection.
    pub(crate) fn output_shape(&self, selection: &[u64]) -> Vec<u64> {
        self.roles.iter().zip(selection).filter_map(|(role, &extent)| role.cells(extent)).collect()
    }
}

impl Resolved {
    /// The target of a transform.
    pub(crate) fn target(&self) -> Target {
        self.write.as_ref().map_or(Target::Switch, |write| write.target)
    }
}
