//! Attributes of results by the CF conventions.

use std::collections::BTreeMap;

use crate::compute::ValueMode;
use crate::file::Dataset;
use crate::query::operation::{Kind, Method};

/// Attributes of packing and missing values: decoded values have neither.
pub(crate) const ENCODING: [&str; 9] = [
    "_FillValue",
    "missing_value",
    "fill_value",
    "valid_min",
    "valid_max",
    "valid_range",
    "scale_factor",
    "add_offset",
    "_Unsigned",
];

/// Attributes of a selection of a dataset.
pub(super) fn of_values(dataset: &Dataset<'_>, decoded: bool) -> BTreeMap<String, String> {
    let mut attrs = dataset.info().map(|info| info.attrs.clone()).unwrap_or_default();
    if decoded {
        attrs.retain(|name, _| !ENCODING.contains(&name.as_str()));
    }
    attrs
}

/// Attributes of the result of an operation over axes of these names.
pub(super) fn of_operation(
    dataset: &Dataset<'_>,
    op: Kind,
    mode: ValueMode,
    axes: &[String],
) -> BTreeMap<String, String> {
    let mut attrs = of_values(dataset, true);
    let is_packed = dataset.read_cf_encoding().is_ok_and(|encoding| encoding.is_packed());
    let units = attrs.remove("units").filter(|_| mode != ValueMode::Stored || !is_packed);
    attrs.extend(units_of(op, units).map(|units| ("units".to_owned(), units)));
    if !keeps_quantity(op) {
        attrs.remove("standard_name");
    }
    if let Some(method) = cell_method(op).filter(|_| !axes.is_empty()) {
        let before = attrs.get("cell_methods").map(|before| format!("{before} ")).unwrap_or_default();
        attrs.insert("cell_methods".to_owned(), format!("{before}{}: {method}", axes.join(": ")));
    }
    attrs
}

/// Whether the result is the same physical quantity.
fn keeps_quantity(op: Kind) -> bool {
    matches!(
        op,
        Kind::Mean | Kind::Min | Kind::Max | Kind::Median | Kind::Quantile { .. } | Kind::NanMean | Kind::Sum
    )
}

fn units_of(op: Kind, units: Option<String>) -> Option<String> {
    match op {
        Kind::Var | Kind::Covariance => units.map(|units| match units.as_str() {
            "1" | "" => units,
            simple if simple.chars().all(char::is_alphabetic) => format!("{simple}2"),
            _ => format!("({units})2"),
        }),
        Kind::Count
        | Kind::NanCount
        | Kind::InfCount
        | Kind::NullCount { .. }
        | Kind::Histogram { .. }
        | Kind::Correlation
        | Kind::Transform {
            method:
                Method::Zscore | Method::Scale | Method::Minmax | Method::L1 | Method::L2 | Method::Softmax,
        } => Some("1".to_owned()),
        Kind::Transform { method: Method::Log1p | Method::Sqrt }
        | Kind::Product
        | Kind::ArgMin
        | Kind::ArgMax
        | Kind::AllFinite
        | Kind::AnyNan
        | Kind::AnyInf => None,
        _ => units,
    }
}

/// The method of the attribute `cell_methods`.
fn cell_method(op: Kind) -> Option<&'static str> {
    Some(match op {
        Kind::Sum => "sum",
        Kind::Mean | Kind::NanMean => "mean",
        Kind::Min => "minimum",
        Kind::Max => "maximum",
        Kind::Var => "variance",
        Kind::Std | Kind::NanStd => "standard_deviation",
        Kind::Median => "median",
        _ => return None,
    })
}
