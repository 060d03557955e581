//! The query document: its keys and their types.
//!
//! These types define the document: the parser and the JSON Schema are derived from them. They define
//! types and closed sets of keys; rules between keys are in [`check`](super::check).

mod axes;
mod execution;
mod features;
mod nullable;
mod operations;
mod selection;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use axes::{Axes, AxisToken};
pub(crate) use execution::ExecutionOptions;
#[cfg(test)]
pub(crate) use execution::Gpus;
pub(crate) use execution::{Device, UnknownDevice};
pub(crate) use features::{Align, BinAlign, Filter, GroupBy, LabelFilter, Mode, Pad, Window};
pub(crate) use nullable::Nullable;
use nullable::without_null;
pub(crate) use operations::{Histogram, NullCount, Quantile, Specified, Transform, parse_scalar};
pub(crate) use selection::{AxisEntry, AxisObject, LabelValue, Position, Selecting};

use super::Write;
use super::operation::Kind;

/// The limit of axes of a selection, an operation, `group_by` and `align`.
pub(crate) const MAX_AXES: usize = 8;
/// The limit of pipeline steps.
pub(crate) const MAX_STEPS: usize = 8;
/// The length limit of dataset names, in bytes.
pub(crate) const NAME_BYTES: usize = 1024;

/// A closed object that may contain operations.
macro_rules! with_operations {
    (
        $(#[$attribute:meta])*
        struct $name:ident { $($(#[$field_attribute:meta])* $field:ident: $type:ty,)* }
        $($operation:ident: $value:ty = $description:literal,)*
    ) => {
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        $(#[$attribute])*
        #[serde(deny_unknown_fields)]
        #[schemars(transform = without_null)]
        pub(crate) struct $name {
            $($(#[$field_attribute])* pub(crate) $field: $type,)*
            $(#[doc = $description] $operation: Option<$value>,)*
        }

        impl $name {
            /// The keys of the operations.
            pub(crate) const OPERATIONS: &'static [&'static str] = &[$(stringify!($operation)),*];

            /// The operations in the document.
            pub(crate) fn operations(&self) -> Vec<Specified> {
                let mut written = Vec::new();
                $(written.extend(self.$operation.as_ref().map(|value| value.specify(stringify!($operation))));)*
                written
            }
        }
    };
}

/// The operations of a document or of a pipeline step.
macro_rules! operations {
    ($($rest:tt)*) => {
        with_operations! {
            $($rest)*
            sum: Axes = "Σx",
            mean: Axes = "Σx/n",
            min: Axes = "The minimum of the elements that are not NaN.",
            max: Axes = "The maximum of the elements that are not NaN.",
            count: Axes = "The number of elements.",
            var: Axes = "Population variance.",
            std: Axes = "Population standard deviation.",
            product: Axes = "Πx",
            norm_l1: Axes = "Σ|x|",
            norm_l2: Axes = "√Σx²",
            all_finite: Axes = "Whether no element is NaN or infinite.",
            any_nan: Axes = "Whether an element is NaN.",
            any_inf: Axes = "Whether an element is infinite.",
            nan_count: Axes = "The number of elements that are NaN.",
            inf_count: Axes = "The number of infinite elements.",
            nan_mean: Axes = "The mean of the elements that are not NaN.",
            nan_std: Axes = "The standard deviation of the elements that are not NaN.",
            null_count: NullCount = "The number of elements that equal the fill value.",
            arg_min: Axes = "The position of the minimum.",
            arg_max: Axes = "The position of the maximum.",
            median: Axes = "The middle element, or the mean of the two middle ones.",
            quantile: Quantile = "A quantile by linear interpolation.",
            histogram: Histogram = "Counts in bins of equal width.",
            covariance: Axes = "Covariances of the columns of a table; the axis is that of the observations.",
            correlation: Axes = "Correlations of the columns of a table; the axis is that of the observations.",
            transform: Transform = "A new array of the same shape.",
        }
    };
}

operations! {
    /// A query on one dataset of a `.tet` file.
    #[schemars(title = "tet query")]
    struct Document {
        /// The name of the dataset.
        #[schemars(length(min = 1, max = NAME_BYTES), regex(pattern = r"\S"))]
        dataset: String,
        /// Echoed in the answer.
        #[schemars(range(max = u32::MAX))]
        layout_version: Option<u32>,
        /// A slice for each of the leading axes, or selections by axis name; by default all of the array.
        selection: Option<Selecting>,
        /// Whether missing values are skipped; true by default.
        skipna: Option<bool>,
        /// Whether stored values are used as they are: packed ones are not decoded, and fill values are ordinary values.
        raw: Option<bool>,
        /// Writes the selection to this file: row-major, little-endian, no header.
        #[schemars(regex(pattern = r"\S"))]
        spill: Option<String>,
        /// The output of a transform.
        write: Option<Write>,
        /// Execution options.
        execution: Option<ExecutionOptions>,
        /// Elements to include, by value.
        filter: Option<Filter>,
        /// Positions of an axis to include, by label.
        label_filter: Option<LabelFilter>,
        /// One result per position, or per label.
        group_by: Option<GroupBy>,
        /// One result per window.
        window: Option<Window>,
        /// Compare the axes of two datasets.
        align: Option<Align>,
        /// The same as ordered steps: `select`, `filter`, an operation, `spill` or `write`.
        #[schemars(length(min = 1, max = MAX_STEPS))]
        pipeline: Option<Vec<Step>>,
    }
}

operations! {
    /// One step of a pipeline: one key, or an operation with `group_by` or `window`.
    struct Step {
        /// A slice for each of the leading axes, or selections by axis name.
        select: Option<Selecting>,
        /// Elements to include, by value.
        filter: Option<Filter>,
        /// One result per position, or per label.
        group_by: Option<GroupBy>,
        /// One result per window.
        window: Option<Window>,
        /// Writes the selection to this file.
        #[schemars(regex(pattern = r"\S"))]
        spill: Option<String>,
        /// The output of a transform.
        write: Option<Write>,
    }
}

/// The operation of a key without parameters.
fn plain_kind(key: &str) -> Option<Kind> {
    use Kind::{
        AllFinite, AnyInf, AnyNan, ArgMax, ArgMin, Correlation, Count, Covariance, InfCount, Max, Mean,
        Median, Min, NanCount, NanMean, NanStd, NormL1, NormL2, Product, Std, Sum, Var,
    };
    let kinds = [
        Sum,
        Mean,
        Min,
        Max,
        Count,
        Var,
        Std,
        Product,
        NormL1,
        NormL2,
        AllFinite,
        AnyNan,
        AnyInf,
        NanCount,
        InfCount,
        NanMean,
        NanStd,
        ArgMin,
        ArgMax,
        Median,
        Covariance,
        Correlation,
    ];
    kinds.into_iter().find(|kind| kind.key() == key)
}
