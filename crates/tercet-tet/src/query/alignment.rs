//! [`Alignment`]: compares the axes of two datasets.

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::Query;
use super::error::{QueryError, QueryErrorKind};
use crate::file::{Dataset, File};

/// The comparison of the axes of two datasets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// Whether all compared axes are equal.
    pub aligned: bool,
    /// The name of the dataset.
    pub left: String,
    /// The name of the other dataset.
    pub with: String,
    /// The axes, in the order of the query.
    pub axes: Vec<AxisAlignment>,
}

/// The comparison of one axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AxisAlignment {
    /// The axis as the query names it.
    pub axis: String,
    /// Whether extents, names and labels are equal.
    pub ok: bool,
    /// The extent of the axis in the dataset.
    pub extent_left: u64,
    /// The extent of the axis in the other dataset.
    pub extent_right: u64,
    /// The name of the axis in the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim_name_left: Option<String>,
    /// The name of the axis in the other dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim_name_right: Option<String>,
    /// Whether the labels are equal, or both axes have none.
    pub labels_ok: bool,
    /// The differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Query {
    /// Compares the axes of two datasets, if the query has `align`.
    pub(crate) fn alignment(
        &self,
        file: &File,
        dataset: &Dataset<'_>,
    ) -> Result<Option<Alignment>, QueryError> {
        let Some(align) = &self.flat.align else { return Ok(None) };
        let with = &align.value.with;
        let Some(other) = file.datasets().find(|other| other.name() == with) else {
            let names: Vec<&str> = file.datasets().map(|dataset| dataset.name()).collect();
            let reason = QueryErrorKind::not_found("no dataset", with, names.iter().copied());
            return Err(self.source.error(&align.member("with"), reason));
        };
        let path = align.member("axes");
        let left = self.resolve_axes(dataset, &align.value.axes, &path)?;
        let right = self.resolve_axes(&other, &align.value.axes, &path)?;
        let pairs = align.value.axes.iter().zip(left.into_iter().zip(right));
        let axes: Vec<_> = pairs
            .map(|(token, (left, right))| compare(token.to_string(), (dataset, left), (&other, right)))
            .collect();
        let aligned = axes.iter().all(|axis| axis.ok);
        Ok(Some(Alignment { aligned, left: dataset.name().to_owned(), with: with.clone(), axes }))
    }
}

fn compare(axis: String, left: (&Dataset<'_>, usize), right: (&Dataset<'_>, usize)) -> AxisAlignment {
    let extent = |(dataset, axis): (&Dataset<'_>, usize)| dataset.shape()[axis];
    let (extent_left, extent_right) = (extent(left), extent(right));
    let mut reasons = Vec::new();
    if extent_left != extent_right {
        reasons.push(format!("extent mismatch ({extent_left} vs {extent_right})"));
    }
    let (name_left, name_right) = (left.0.axis_name(left.1), right.0.axis_name(right.1));
    match (name_left, name_right) {
        (Some(left), Some(right)) if left != right => {
            reasons.push(format!("dim_names mismatch (`{left}` vs `{right}`)"));
        }
        (Some(_), None) | (None, Some(_)) => reasons.push("dim_names present on only one dataset".to_owned()),
        _ => {}
    }
    let (labels_left, labels_right) = (left.0.query_labels(left.1), right.0.query_labels(right.1));
    let labels_ok = labels_left == labels_right;
    if !labels_ok {
        let both = labels_left.is_some() && labels_right.is_some();
        let reason =
            if both { "coordinate labels mismatch" } else { "coordinate labels present on only one dataset" };
        reasons.push(reason.to_owned());
    }
    AxisAlignment {
        axis,
        ok: reasons.is_empty(),
        extent_left,
        extent_right,
        dim_name_left: name_left.map(str::to_owned),
        dim_name_right: name_right.map(str::to_owned),
        labels_ok,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    }
}
