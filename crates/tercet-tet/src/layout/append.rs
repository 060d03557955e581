//! [`Append`]: datasets that grow along an axis.
#![cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "only files are rewritten"))]

use std::collections::BTreeSet;
use std::fmt;

use tercet_core::num::counted;
use tercet_core::{DType, Hint, Shape, escape};

use super::edit::listed;
use super::{DatasetId, EditError, Layout, LayoutError};
use crate::grid::Grid;
use crate::rounding::Rounding;

/// The largest clipped chunk of a coordinate dataset, in bytes, that is encoded again without being asked for.
const SMALL_COORDINATES: u64 = 1 << 20;

/// Arrays that are appended to datasets along one axis.
///
/// All datasets that share the axis must grow together: see [`Rewrite::append`](crate::Rewrite::append).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Append {
    /// The axis, by name or number.
    pub axis: String,
    /// The dataset, element type and shape of each array.
    pub arrays: Vec<(String, DType, Shape)>,
    /// The labels of the new positions, for datasets whose axis has labels.
    pub labels: Option<Vec<String>>,
    /// Decode and encode again the chunks that are clipped at the old edge. Small ones of coordinate datasets always are.
    pub rechunk: bool,
    /// Allow that other datasets with the same axis keep their extent.
    pub allow_partial: bool,
}

impl Append {
    /// Nothing yet, along an axis.
    pub fn along(axis: &str) -> Self {
        Self { axis: axis.to_owned(), ..Self::default() }
    }

    /// Adds an array.
    pub fn with_array(mut self, dataset: &str, dtype: impl Into<DType>, shape: impl AsRef<[u64]>) -> Self {
        self.arrays.push((dataset.to_owned(), dtype.into(), shape.as_ref().into()));
        self
    }

    /// Sets the labels of the new positions.
    pub fn with_labels(mut self, labels: Vec<String>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// Sets whether clipped chunks are encoded again.
    pub fn with_rechunk(mut self, rechunk: bool) -> Self {
        self.rechunk = rechunk;
        self
    }

    /// Sets whether other datasets with the same axis may keep their extent.
    pub fn with_allow_partial(mut self, allow: bool) -> Self {
        self.allow_partial = allow;
        self
    }
}

/// The result of planning an [`Append`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Appended {
    /// The datasets, in the order of the arrays.
    pub datasets: Vec<DatasetId>,
    /// The number of new positions.
    pub count: u64,
    /// Datasets with the same axis that keep their extent.
    pub shorter: Vec<String>,
    /// The datasets whose new values are rounded like the stored ones.
    pub rounded: Vec<(String, Rounding)>,
}

/// The error of an array that cannot be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum AppendError {
    Twice { dataset: String },
    NotStored { dataset: String },
    Type { dataset: String, expected: DType, found: DType },
    Shape { dataset: String, axis: String, expected: Shape, found: Shape },
    Counts { dataset: String, expected: u64, found: u64 },
    PartialChunk { dataset: String, axis: String, extent: u64, chunk: u64 },
    NoLabels { dataset: String, axis: String },
    LabelCount { axis: String, count: u64, found: usize },
    NotLabelled { axis: String },
    Coordinate { axis: String, dataset: String },
    Unextended { axis: String, extent: u64, datasets: Vec<String> },
}

impl AppendError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::PartialChunk { .. } => Hint::Rechunk,
            Self::NoLabels { axis, .. } => Hint::AppendLabels { axis: escape::name(axis).into() },
            Self::NotLabelled { .. } => "set the labels of the whole axis first".into(),
            Self::Coordinate { dataset, .. } => {
                Hint::AppendDatasets { names: escape::name(dataset).into(), optional: false }
            }
            Self::Unextended { datasets, .. } => Hint::AppendDatasets {
                names: listed(datasets.iter().map(String::as_str), 8).into(),
                optional: true,
            },
            _ => return None,
        })
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = |name: &str| format!("`{}`", escape::name(name));
        match self {
            Self::Twice { dataset } => write!(f, "dataset {} is given more than once", q(dataset)),
            Self::NotStored { dataset } => {
                write!(f, "dataset {} is new or grows already", q(dataset))
            }
            Self::Type { dataset, expected, found } => write!(
                f,
                "dataset {} is {}, but the appended array is {}",
                q(dataset),
                expected.short_name(),
                found.short_name()
            ),
            Self::Shape { dataset, axis, expected, found } => write!(
                f,
                "dataset {} is {expected}, but the appended array is {found}: all axes but {} must be equal",
                q(dataset),
                q(axis)
            ),
            Self::Counts { dataset, expected, found } => write!(
                f,
                "the array for dataset {} has {}, but the one before has {expected}",
                q(dataset),
                counted(*found, "new position")
            ),
            Self::PartialChunk { dataset, axis, extent, chunk } => write!(
                f,
                "dataset {}: the last chunk on axis {} is not complete: {} in chunks of {chunk}",
                q(dataset),
                q(axis),
                counted(*extent, "position")
            ),
            Self::NoLabels { dataset, axis } => {
                write!(
                    f,
                    "axis {} of dataset {} has labels, but the new positions have none",
                    q(axis),
                    q(dataset)
                )
            }
            Self::LabelCount { axis, count, found } => write!(
                f,
                "axis {} gets {}, but {} given",
                q(axis),
                counted(*count, "new position"),
                if *found == 1 { "1 label is".to_owned() } else { format!("{found} labels are") }
            ),
            Self::NotLabelled { axis } => {
                write!(
                    f,
                    "axis {} has no labels in these datasets, so new positions cannot have any",
                    q(axis)
                )
            }
            Self::Coordinate { axis, dataset } => {
                write!(
                    f,
                    "dataset {} holds the coordinates of axis {} and must grow with it",
                    q(dataset),
                    q(axis)
                )
            }
            Self::Unextended { axis, extent, datasets } => {
                let names: Vec<String> = datasets.iter().take(8).map(|name| q(name)).collect();
                let more = if datasets.len() > 8 { ", …" } else { "" };
                write!(
                    f,
                    "axis {} has {extent} positions in other datasets too, which would keep their length: {}{more}",
                    q(axis),
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for AppendError {}

/// A dataset that grows.
struct Part {
    id: DatasetId,
    axis: usize,
    /// The name of the axis, or its number.
    shown: String,
    name: Option<String>,
    extent: u64,
}

impl Layout {
    /// Makes stored datasets longer along an axis. Nothing changes if there is an error.
    ///
    /// Datasets share an axis if its name and extent are equal; a one-dimensional dataset with the name of the axis holds
    /// its coordinates.
    pub(crate) fn append(&mut self, append: &Append) -> Result<Appended, LayoutError> {
        let mut parts: Vec<Part> = Vec::with_capacity(append.arrays.len());
        let mut count = 0;
        for (dataset, dtype, shape) in &append.arrays {
            let (part, new) = self.part(append, dataset, *dtype, shape)?;
            if parts.iter().any(|other| other.id == part.id) {
                return Err(AppendError::Twice { dataset: dataset.clone() }.into());
            }
            if !parts.is_empty() && new != count {
                return Err(
                    AppendError::Counts { dataset: dataset.clone(), expected: count, found: new }.into()
                );
            }
            count = new;
            parts.push(part);
        }
        let shorter = self.shorter(&parts)?;
        if let (Some((axis, extent)), false) = (shorter.axis, append.allow_partial) {
            return Err(AppendError::Unextended { axis, extent, datasets: shorter.names }.into());
        }
        let keys = self.check_labels(append, &parts, count)?;
        let mut grids = Vec::with_capacity(parts.len());
        for part in &parts {
            grids.push(self.longer(part, count)?);
        }
        let mut rounded = Vec::new();
        for ((part, grid), key) in parts.iter().zip(grids).zip(keys) {
            if let Some(rounding) = self.recorded_rounding(part.id) {
                self.datasets[part.id.0].rounding = Some(rounding);
                rounded.push((self.datasets[part.id.0].name.clone(), rounding));
            }
            let planned = &mut self.datasets[part.id.0];
            planned.grid = grid;
            if let Some(origin) = &mut planned.origin {
                origin.grown = Some(part.axis);
            }
            if let (Some(key), Some(labels)) = (key, &append.labels)
                && let Some(coord) = self.info(part.id).coords.get_mut(&key)
            {
                coord.labels.extend(labels.iter().cloned());
            }
        }
        self.check_metadata()?;
        let datasets = parts.iter().map(|part| part.id).collect();
        Ok(Appended { datasets, count, shorter: shorter.names, rounded })
    }

    /// Checks an array against its dataset; returns the number of new positions.
    fn part(
        &self,
        append: &Append,
        dataset: &str,
        dtype: DType,
        shape: &Shape,
    ) -> Result<(Part, u64), LayoutError> {
        let of = || dataset.to_owned();
        let id = self
            .find(dataset)
            .ok_or_else(|| EditError::NoSuchDataset { name: of(), available: listed(self.names(), 8) })?;
        let planned = &self.datasets[id.0];
        let stored = planned.origin.as_ref().is_some_and(|origin| origin.grown.is_none() && !origin.recoded);
        if !stored {
            return Err(AppendError::NotStored { dataset: of() }.into());
        }
        let grid = &planned.grid;
        // A coordinate dataset need not name its axis.
        let is_coordinate = grid.rank() == 1 && leaf(dataset) == append.axis;
        let axis = match self.axis(id, &append.axis) {
            Ok(axis) => axis,
            Err(_) if is_coordinate => 0,
            Err(error) => return Err(error),
        };
        let name = self.axis_name(id, axis).map(str::to_owned);
        let name = name.or_else(|| is_coordinate.then(|| append.axis.clone()));
        let shown = name.clone().unwrap_or_else(|| axis.to_string());
        if dtype != grid.dtype() {
            return Err(AppendError::Type { dataset: of(), expected: grid.dtype(), found: dtype }.into());
        }
        let fits = shape.rank() == grid.rank()
            && shape.iter().zip(grid.shape()).enumerate().all(|(n, (new, old))| n == axis || new == old);
        if !fits || shape[axis] == 0 {
            let expected = Shape::from(grid.shape());
            let found = shape.clone();
            return Err(AppendError::Shape { dataset: of(), axis: shown, expected, found }.into());
        }
        let (extent, chunk) = (grid.shape()[axis], grid.chunk_shape()[axis]);
        // Coordinates often have other chunks than the values, and are small enough to be encoded again.
        let clipped = (extent % chunk).saturating_mul(grid.element().size() as u64);
        let is_small =
            grid.rank() == 1 && name.as_deref() == Some(leaf(dataset)) && clipped <= SMALL_COORDINATES;
        if !extent.is_multiple_of(chunk) && !append.rechunk && !is_small {
            return Err(AppendError::PartialChunk { dataset: of(), axis: shown, extent, chunk }.into());
        }
        Ok((Part { id, axis, shown, name, extent }, shape[axis]))
    }

    /// The datasets that share an axis with the parts and do not grow. A coordinate dataset among them is an error.
    fn shorter(&self, parts: &[Part]) -> Result<Unextended, LayoutError> {
        let mut left = Unextended::default();
        let shared: BTreeSet<(&str, u64)> =
            parts.iter().filter_map(|part| Some((part.name.as_deref()?, part.extent))).collect();
        for (position, planned) in self.datasets.iter().enumerate() {
            let id = DatasetId(position);
            if parts.iter().any(|part| part.id == id) {
                continue;
            }
            let shape = planned.grid.shape();
            for part in parts {
                let Some(axis) = &part.name else { continue };
                let grows = &self.datasets[part.id.0].name;
                if shape == [part.extent] && is_coordinate(&planned.name, grows, axis) {
                    let (axis, dataset) = (axis.clone(), planned.name.clone());
                    return Err(AppendError::Coordinate { axis, dataset }.into());
                }
            }
            let named = |axis: usize| Some((self.axis_name(id, axis)?, shape[axis]));
            let same = (0..shape.len()).filter_map(named).find(|axis| shared.contains(axis));
            if let Some((axis, extent)) = same {
                left.axis.get_or_insert((axis.to_owned(), extent));
                left.names.push(planned.name.clone());
            }
        }
        Ok(left)
    }

    /// Checks the labels of the new positions; returns the key of the labels of each part.
    fn check_labels(
        &self,
        append: &Append,
        parts: &[Part],
        count: u64,
    ) -> Result<Vec<Option<String>>, LayoutError> {
        let keys: Vec<Option<String>> =
            parts.iter().map(|part| self.labels_key(part.id, part.axis).map(str::to_owned)).collect();
        let axis = || append.axis.clone();
        let labelled = parts.iter().zip(&keys).find(|(_, key)| key.is_some());
        match (&append.labels, labelled) {
            (None, Some((part, _))) => {
                let dataset = self.datasets[part.id.0].name.clone();
                Err(AppendError::NoLabels { dataset, axis: part.shown.clone() }.into())
            }
            (Some(_), None) => Err(AppendError::NotLabelled { axis: axis() }.into()),
            (Some(labels), Some(_)) if labels.len() as u64 != count => {
                Err(AppendError::LabelCount { axis: axis(), count, found: labels.len() }.into())
            }
            (None, None) | (Some(_), Some(_)) => Ok(keys),
        }
    }

    /// The rounding that a dataset records, if its values can be rounded.
    fn recorded_rounding(&self, dataset: DatasetId) -> Option<Rounding> {
        let rounding = Rounding::recorded(self.dataset_info(dataset)?)?;
        self.rounder_for(dataset, rounding).ok().map(|_| rounding)
    }

    /// The grid of a dataset with more positions on an axis.
    fn longer(&self, part: &Part, count: u64) -> Result<Grid, LayoutError> {
        let planned = &self.datasets[part.id.0];
        let mut shape = planned.grid.shape().to_vec();
        shape[part.axis] = shape[part.axis].checked_add(count).ok_or(LayoutError::TooLarge)?;
        Grid::new(planned.grid.element(), &shape, planned.grid.chunk_shape())
            .map_err(|reason| LayoutError::Dataset { dataset: planned.name.clone(), reason })
    }
}

/// Datasets that keep their extent, and the axis that they share.
#[derive(Default)]
struct Unextended {
    axis: Option<(String, u64)>,
    names: Vec<String>,
}

/// Whether a one-dimensional dataset holds the coordinates of an axis of another dataset: it has the name of the axis and
/// is in the group of that dataset, or in a group around it.
fn is_coordinate(name: &str, dataset: &str, axis: &str) -> bool {
    let group = &name[..name.len() - leaf(name).len()];
    leaf(name) == axis && dataset.starts_with(group)
}

/// The name without its group.
pub(super) fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl From<AppendError> for LayoutError {
    fn from(error: AppendError) -> Self {
        Self::Append(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_in_the_group_of_the_dataset_or_around_it() {
        assert!(is_coordinate("time", "t2m", "time"));
        assert!(is_coordinate("time", "a/b/t2m", "time"));
        assert!(is_coordinate("a/time", "a/b/t2m", "time"));
        assert!(is_coordinate("a/b/time", "a/b/t2m", "time"));
        assert!(!is_coordinate("a/c/time", "a/b/t2m", "time"));
        assert!(!is_coordinate("times", "t2m", "time"));
        assert!(!is_coordinate("ab/time", "a/t2m", "time"));
    }
}
