//! [`Results`]: arrays with dimensions, coordinates and units, to be printed or stored.
//!
//! A [`Request`] is run and its outcome gets names: the clean JSON of an answer, and the contents of result files.

mod attributes;
mod json;
mod positions;

use std::collections::BTreeMap;
use std::sync::Arc;

use tercet_core::tensor::{AxisSlice, FromVecError, Scalar};
use tercet_core::{DType, Progress, Selection, Shape, Tensor};

use crate::compute::{
    Computed, Coordinates, Dim, Execution, Reduced, Request, Select, ValueMode, missing_values,
};
use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use crate::query::operation::Kind;
use crate::query::resolved::Role;
use crate::query::{Target, Write};

#[cfg(any(unix, windows))]
pub(crate) use attributes::ENCODING;
pub use positions::AxisPositions;

/// The error of a request whose result is elsewhere.
const NOT_IN_MEMORY: &str = "the result is not in memory";

/// Results of a computation or a selection, with names.
///
/// Serializes to JSON: an object `{dataset, operation, dims, coords, shape, dtype, units, values, elements, skipped, read}`
/// for one operation, a list of such objects for several. Values are nested lists; NaN and infinities are `null`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Results {
    /// The name of the dataset.
    pub dataset: String,
    /// The path or URL of the file.
    pub source: String,
    /// One array for each operation.
    pub arrays: Vec<ResultArray>,
    /// Names and coordinates of the axes of which a single position is selected, and which are not dimensions.
    pub single: Vec<(String, Coordinates)>,
    /// Whether the values are decoded by the CF conventions; else they are stored values.
    pub is_decoded: bool,
    /// The number of elements that were used, after filters.
    pub elements: u64,
    /// The number of missing elements that were skipped, or are NaN in decoded values.
    pub skipped: u64,
    /// How the results were computed; `None` for a selection that was read.
    pub execution: Option<Execution>,
    /// What is missing in the results: coordinates that cannot be read.
    pub warnings: Vec<String>,
}

/// One result.
#[derive(Debug)]
#[non_exhaustive]
pub struct ResultArray {
    /// The operation; `None` for a selection.
    pub op: Option<Kind>,
    /// The name: `mean`, `quantile_0.9`; `value` for a selection.
    pub name: String,
    /// The dimensions.
    pub dims: Vec<ResultDim>,
    /// The values.
    pub values: ResultValues,
    /// The attributes: `units`, `long_name`, `cell_methods`, …
    pub attrs: BTreeMap<String, String>,
    /// Bin edges of a histogram, if all bins have the same.
    pub edges: Option<Vec<f64>>,
    /// Number of values below and above the range of a histogram, which are in no bin.
    pub outside: Option<[u64; 2]>,
    /// Number of NaN among the values of a histogram, which are in no bin; `None` for other operations.
    pub nan: Option<u64>,
}

/// The values of a result.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResultValues {
    /// Numbers, row-major over the dimensions.
    Numbers(Tensor),
    /// True and false, as 1 and 0, row-major over the dimensions.
    Flags(Tensor),
    /// The positions of minima or maxima on each reduced axis.
    Positions(Vec<AxisPositions>),
    /// Values of this type that were not read: see [`Select::lazy_results`].
    Unread(DType),
}

/// A dimension of a result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResultDim {
    /// The name of the axis, or `dim_0` and so on.
    pub name: String,
    /// Whether the file has this name.
    pub is_named: bool,
    /// The number of positions, groups, windows or bins.
    pub len: u64,
    /// The coordinates of its positions.
    pub coordinates: Option<Coordinates>,
    /// The stored values and attributes of its coordinate dataset.
    pub stored: Option<StoredCoordinates>,
}

/// Values of a coordinate dataset at the positions of a dimension.
#[derive(Clone, Debug)]
pub struct StoredCoordinates {
    /// The stored values, in one dimension.
    pub values: Arc<Tensor>,
    /// The attributes.
    pub attrs: BTreeMap<String, String>,
}

impl ResultArray {
    /// The extents of the dimensions.
    pub fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.len).collect()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        let elements = self.dims.iter().map(|dim| dim.len).product::<u64>();
        usize::try_from(elements).unwrap_or(usize::MAX)
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The attribute `units`.
    pub fn units(&self) -> Option<&str> {
        self.attrs.get("units").map(String::as_str)
    }
}

impl Request<'_> {
    /// Runs the request; returns its results with names.
    pub fn results(&self, progress: &dyn Progress) -> Result<Results, Error> {
        let outcome = self.in_memory()?.run(progress)?;
        let mut results = Results {
            dataset: self.dataset.name().to_owned(),
            source: self.dataset.file.name().to_owned(),
            arrays: Vec::new(),
            single: self.single()?,
            is_decoded: self.settings.values != ValueMode::Stored && self.resolved.operation.is_some(),
            elements: 0,
            skipped: 0,
            execution: Some(outcome.execution),
            warnings: self.warnings(),
        };
        match outcome.computed {
            Computed::Reduced(reduced) => {
                let dims = self.result_dims()?;
                if let Some(first) = reduced.first() {
                    (results.elements, results.skipped) = (first.elements, first.skipped);
                }
                for reduced in reduced {
                    results.arrays.push(self.array(reduced, &dims)?);
                }
                distinct_names(&mut results.arrays);
            }
            Computed::Read(tensor) => {
                results.elements = tensor.shape().elements().unwrap_or(0);
                results.arrays.push(self.values(ResultValues::Numbers(tensor), None)?);
            }
            Computed::Transformed(made) => {
                (results.elements, results.skipped) = (made.elements, made.skipped);
                let made = *made;
                let Some(tensor) = made.tensor else { return Err(self.refuse(NOT_IN_MEMORY)) };
                let op = Kind::Transform { method: made.method };
                results.arrays.push(self.values(ResultValues::Numbers(tensor), Some(op))?);
            }
            Computed::Written(_) | Computed::Preview => return Err(self.refuse(NOT_IN_MEMORY)),
        }
        Ok(results)
    }

    /// Whether the result is written to a file that the query names, and not returned.
    pub fn writes_file(&self) -> bool {
        let is_file = |target| matches!(target, Target::Spill | Target::Sidecar);
        self.resolved.spill.is_some()
            || self.resolved.write.as_ref().is_some_and(|write| is_file(write.target))
    }

    /// The request with its result in memory.
    fn in_memory(&self) -> Result<Self, Error> {
        if self.writes_file() {
            return Err(self.refuse("the query writes its result to a file; remove `spill` or `write`"));
        }
        let mut request = self.clone();
        if matches!(&request.resolved.operation, Some(operation) if matches!(operation.kind, Kind::Transform { .. }))
        {
            request.resolved.write = Some(Write { target: Target::Ram, path: None, timestamp: None });
        }
        Ok(request)
    }

    fn refuse(&self, detail: &str) -> Error {
        let dataset = self.dataset.name().into();
        self.dataset.file.error(ErrorKind::Compute { dataset, detail: detail.into() })
    }

    /// An array of the shape of the selection.
    fn values(&self, values: ResultValues, op: Option<Kind>) -> Result<ResultArray, Error> {
        let dims = self.result_dims()?;
        let attrs = match op {
            Some(op) => attributes::of_operation(&self.dataset, op, self.settings.values, &[]),
            None => attributes::of_values(&self.dataset, false),
        };
        let name = op.map_or("value", Kind::key).to_owned();
        let shape: Vec<u64> = dims.iter().map(|dim| dim.len).collect();
        let values = match values {
            ResultValues::Numbers(tensor) => ResultValues::Numbers(self.reshaped(tensor, shape)?),
            other => other,
        };
        Ok(ResultArray { op, name, dims, values, attrs, edges: None, outside: None, nan: None })
    }

    fn reshaped(&self, tensor: Tensor, shape: Vec<u64>) -> Result<Tensor, Error> {
        if **tensor.shape() == shape[..] {
            return Ok(tensor);
        }
        let reshaped = tensor.reshape(Shape::new(shape));
        reshaped.map_err(|_| self.refuse("the result does not have the shape of its dimensions"))
    }

    fn array(&self, reduced: Reduced, dims: &[ResultDim]) -> Result<ResultArray, Error> {
        let (op, mut dims) = (reduced.op, dims.to_vec());
        let mode = self.settings.values;
        let mut attrs = attributes::of_operation(&self.dataset, op, mode, &self.reduced_names());
        let mut edges = reduced.edges;
        let mut tensor = reduced.tensor;
        let mut nan = None;
        let values = match op {
            Kind::ArgMin | Kind::ArgMax => {
                let indices = tensor.into_vec::<i64>().unwrap_or_default();
                ResultValues::Positions(positions::positions(self, &indices)?)
            }
            Kind::AllFinite | Kind::AnyNan | Kind::AnyInf => self.flags(tensor)?,
            Kind::Histogram { range, .. } => {
                let bins = tensor.shape().last().copied().unwrap_or(0);
                // Without a range, each result has bins of its own.
                let is_shared = dims.is_empty() || range.is_some();
                edges = edges.filter(|_| is_shared);
                dims.push(ResultDim::bare("bin", bins));
                tensor = self.reshaped(tensor, dims.iter().map(|dim| dim.len).collect())?;
                let [below, above] = reduced.outside.unwrap_or_default();
                let counts = self.counts(tensor)?;
                // Skipped values are not elements.
                let in_bins = counts.as_slice::<i64>().unwrap_or_default().iter().sum::<i64>();
                let counted = u64::try_from(in_bins).unwrap_or(0) + below + above;
                nan = Some(reduced.elements.saturating_sub(counted));
                let outliers = [
                    ("values_below_range", below),
                    ("values_above_range", above),
                    ("values_nan", nan.unwrap_or(0)),
                ];
                for (name, count) in outliers {
                    attrs.extend((count > 0).then(|| (name.to_owned(), count.to_string())));
                }
                ResultValues::Numbers(counts)
            }
            Kind::Covariance | Kind::Correlation => {
                let other = dims.first().cloned();
                dims.extend(other.map(|dim| ResultDim { name: format!("{}_2", dim.name), ..dim }));
                ResultValues::Numbers(tensor)
            }
            Kind::Count | Kind::NanCount | Kind::InfCount | Kind::NullCount { .. } => {
                ResultValues::Numbers(self.counts(tensor)?)
            }
            _ => ResultValues::Numbers(reduced.exact.unwrap_or(tensor)),
        };
        let name = match op {
            Kind::Quantile { q } => format!("quantile_{q}"),
            op => op.key().to_owned(),
        };
        Ok(ResultArray { op: Some(op), name, dims, values, attrs, edges, outside: reduced.outside, nan })
    }

    /// Counts as integers, unless a window has none.
    fn counts(&self, tensor: Tensor) -> Result<Tensor, Error> {
        let Some(counts) = tensor.as_slice::<f64>().filter(|counts| !counts.iter().any(|n| n.is_nan()))
        else {
            return Ok(tensor);
        };
        #[expect(clippy::cast_possible_truncation, reason = "counts are whole numbers")]
        let counts: Vec<i64> = counts.iter().map(|&count| count as i64).collect();
        self.tensor(tensor.shape().clone(), counts)
    }

    /// Flags as bytes; numbers if a window has none.
    fn flags(&self, tensor: Tensor) -> Result<ResultValues, Error> {
        let Some(flags) = tensor.as_slice::<f64>().filter(|flags| !flags.iter().any(|n| n.is_nan())) else {
            return Ok(ResultValues::Numbers(tensor));
        };
        let flags: Vec<u8> = flags.iter().map(|&flag| u8::from(flag > 0.0)).collect();
        Ok(ResultValues::Flags(self.tensor(tensor.shape().clone(), flags)?))
    }

    fn tensor<T: Scalar>(&self, shape: Shape, values: Vec<T>) -> Result<Tensor, Error> {
        Tensor::from_vec(shape, values).map_err(|error| match error {
            FromVecError::Memory(error) => self.dataset.file.error(error.into()),
            FromVecError::Shape(_) => self.refuse("the result does not have the shape of its dimensions"),
        })
    }

    /// Dimensions of the result.
    fn result_dims(&self) -> Result<Vec<ResultDim>, Error> {
        let axes = self.output_axes();
        let dims = axes.into_iter().zip(&self.dims).map(|(axis, dim)| self.result_dim(axis, dim));
        dims.collect()
    }

    fn result_dim(&self, axis: usize, dim: &Dim) -> Result<ResultDim, Error> {
        let slice = self.resolved.selection.axes()[axis];
        let role = self.resolved.operation.as_ref().map(|operation| &operation.roles[axis]);
        let stored = match role {
            Some(Role::Grouped(_)) => None,
            Some(Role::Rolling(rolling)) => match rolling.last_positions() {
                Some(last) => self.stored(axis, |position| last.get(position).copied(), dim.len, slice)?,
                None => None,
            },
            _ => {
                let count = usize::try_from(slice.count()).unwrap_or(usize::MAX);
                let reversed = self.resolved.reversed[axis];
                let position = |at: usize| if reversed { count.checked_sub(at + 1) } else { Some(at) };
                self.stored(axis, position, dim.len, slice)?
            }
        };
        Ok(ResultDim {
            name: dim.name.clone().unwrap_or_else(|| format!("dim_{axis}")),
            is_named: dim.name.is_some(),
            len: dim.len,
            coordinates: dim.coordinates.clone(),
            stored,
        })
    }

    /// Stored coordinates of some selected positions, unless the axis has labels.
    fn stored(
        &self,
        axis: usize,
        position: impl Fn(usize) -> Option<usize>,
        len: u64,
        slice: AxisSlice,
    ) -> Result<Option<StoredCoordinates>, Error> {
        if self.dataset.labels(axis).is_some() {
            return Ok(None);
        }
        let Some(coordinate) = self.dataset.coordinate_dataset(axis) else { return Ok(None) };
        if self.dataset.readable_coordinates(axis)?.is_none() {
            return Ok(None);
        }
        let selection = Selection::new(vec![slice], coordinate.shape())
            .map_err(|error| self.dataset.file.error(error.into()))?;
        let all = coordinate.read(&selection)?;
        let size = all.dtype().size().unwrap_or(1);
        let mut values = Tensor::zeros(all.dtype(), Shape::new(vec![len]))
            .map_err(|error| self.dataset.file.error(error.into()))?;
        for (at, out) in values.bytes_mut().chunks_exact_mut(size).enumerate() {
            let from = position(at).and_then(|from| all.bytes().get(from * size..(from + 1) * size));
            let Some(from) = from else { return Ok(None) };
            out.copy_from_slice(from);
        }
        let attrs = coordinate.info().map(|info| info.attrs.clone()).unwrap_or_default();
        Ok(Some(StoredCoordinates { values: Arc::new(values), attrs }))
    }

    /// Names of the axes that are reduced, grouped or windowed.
    fn reduced_names(&self) -> Vec<String> {
        let Some(operation) = &self.resolved.operation else { return Vec::new() };
        let weighted = self.weights.as_ref().map(|weights| weights.axis);
        let is_reduced = |axis: &usize| {
            let is_kept = matches!(operation.roles[*axis], Role::Kept) && weighted != Some(*axis);
            !is_kept && !self.resolved.dropped.contains(axis)
        };
        (0..operation.roles.len()).filter(is_reduced).map(|axis| axis_title(&self.dataset, axis)).collect()
    }

    /// Warnings of axes whose coordinates would be in the results, but cannot be read.
    fn warnings(&self) -> Vec<String> {
        let has_positions = self.ops.iter().any(|op| matches!(op, Kind::ArgMin | Kind::ArgMax));
        let is_shown = |axis: &usize| match &self.resolved.operation {
            Some(operation) if matches!(operation.roles[*axis], Role::Reduced) => {
                has_positions || self.resolved.dropped.contains(axis)
            }
            _ => true,
        };
        let axes = (0..self.resolved.selection.axes().len()).filter(is_shown);
        let warnings = axes.filter_map(|axis| {
            let error = self.dataset.coordinate_error(axis)?;
            let title = axis_title(&self.dataset, axis);
            let (title, kind) = (tercet_core::escape::name(&title), error.kind());
            Some(format!("the coordinates of axis `{title}` cannot be read, and positions are used: {kind}"))
        });
        warnings.collect()
    }

    /// Coordinates of the dropped axes.
    fn single(&self) -> Result<Vec<(String, Coordinates)>, Error> {
        let mut single = Vec::new();
        for &axis in &self.resolved.dropped {
            let slice = self.resolved.selection.axes()[axis];
            let found = self.dataset.readable_coordinates(axis)?.map(|all| all.selected(slice, false));
            let coordinates =
                found.unwrap_or_else(|| Coordinates::from_labels(vec![slice.start.to_string()]));
            single.push((axis_title(&self.dataset, axis), coordinates));
        }
        Ok(single)
    }
}

impl Select<'_> {
    /// Reads the selection, as stored or decoded by the CF conventions, with names.
    pub fn results(&self, decode: bool) -> Result<Results, Error> {
        let tensor = if decode { self.read_decoded()? } else { self.read()? };
        let skipped = if decode { missing_values(&tensor) } else { 0 };
        Ok(Results { skipped, ..self.named(ResultValues::Numbers(tensor), decode)? })
    }

    /// The names of a selection, as stored or decoded by the CF conventions, without its values. These are read block by
    /// block with [`lazy_values`](Self::lazy_values).
    pub fn lazy_results(&self, decode: bool) -> Result<Results, Error> {
        self.named(ResultValues::Unread(self.value_type(decode)?.into()), decode)
    }

    fn named(&self, values: ResultValues, decode: bool) -> Result<Results, Error> {
        let request = self.request()?;
        let dataset = request.dataset;
        let elements = request.resolved.selection.shape().elements().unwrap_or(0);
        let mut array = request.values(values, None)?;
        array.attrs = attributes::of_values(&dataset, decode);
        Ok(Results {
            dataset: dataset.name().to_owned(),
            source: dataset.file.name().to_owned(),
            arrays: vec![array],
            single: request.single()?,
            is_decoded: decode,
            elements,
            skipped: 0,
            execution: None,
            warnings: request.warnings(),
        })
    }
}

impl ResultDim {
    fn bare(name: &str, len: u64) -> Self {
        Self { name: name.to_owned(), is_named: true, len, coordinates: None, stored: None }
    }
}

/// The name of an axis, or `dim_0` and so on.
fn axis_title(dataset: &Dataset<'_>, axis: usize) -> String {
    dataset.axis_name(axis).map_or_else(|| format!("dim_{axis}"), str::to_owned)
}

/// Numbers the names of repeated operations.
fn distinct_names(arrays: &mut [ResultArray]) {
    for number in 1..arrays.len() {
        let (before, rest) = arrays.split_at_mut(number);
        let is_taken = |name: &str| before.iter().any(|other| other.name == name);
        if is_taken(&rest[0].name) {
            rest[0].name = format!("{}_{number}", rest[0].name);
        }
    }
}
