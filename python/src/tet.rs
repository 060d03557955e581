//! Handles of `.tet` files.

use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tercet::Container;
use tercet::core::tensor::IndexSlice;
use tercet::tet::compat::Answer;
use tercet::tet::{
    Codec, Comparison, Computed, CoordinateValues, Coordinates, Dataset, File, Grid, Group, IntegrityStatus,
    Label, LabelSelection, Method, Op, Query, Request, ResultValues, Results, RunOptions, Select, Syntax,
    TimePart, Weights, Window,
};

use crate::buffer::{self, Array, Buffer};
use crate::error::{internal, request, to_py};
use crate::job;

/// An open `.tet` file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Tet {
    file: File,
}

impl Tet {
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }

    fn dataset(&self, py: Python<'_>, number: usize) -> PyResult<Dataset<'_>> {
        self.file.datasets().nth(number).ok_or_else(|| request(py, "no such dataset"))
    }
}

/// One step of a selection, in the order of the calls.
#[derive(Debug, FromPyObject)]
enum Step {
    /// Axis, start, stop, step.
    Slice(usize, Option<i64>, Option<i64>, i64),
    /// Axis, position.
    Position(usize, i64),
    /// Axis, `one`, `range` or `nearest`, first label, last label, tolerance.
    Labels(usize, String, Option<LabelArg>, Option<LabelArg>, Option<f64>),
}

/// A number or a string.
#[derive(Debug, FromPyObject)]
enum LabelArg {
    Number(f64),
    Text(String),
}

impl From<LabelArg> for Label {
    fn from(label: LabelArg) -> Self {
        match label {
            LabelArg::Number(number) => Self::Number(number),
            LabelArg::Text(text) => Self::Text(text),
        }
    }
}

/// What is computed.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct Reduction {
    ops: Vec<String>,
    quantiles: Vec<f64>,
    bins: Option<u32>,
    range: Option<(f64, f64)>,
    over: Vec<usize>,
    group_by: Option<(usize, Option<String>)>,
    rolling: Option<(usize, u64)>,
    weights: Option<String>,
    filter: Option<String>,
    skipna: bool,
    raw: bool,
}

#[pymethods]
impl Tet {
    /// Path or URL.
    fn name(&self) -> &str {
        self.file.name()
    }

    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| crate::summary(&Container::Tet(self.file.clone())))
    }

    /// Attributes, records of types, dimensions and labels of the file and its datasets, as JSON.
    fn metadata(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.file.metadata()).map_err(internal))
    }

    /// The length in bytes; the bytes of the decoded datasets; whether reads are verified: `checked`, `partial`, `absent`,
    /// `unknown`, `ignored`.
    fn describe(&self) -> (u64, u64, &'static str) {
        let bytes = |dataset: Dataset<'_>| dataset.grid().map_or(0, Grid::bytes);
        let state = match self.file.integrity_status() {
            IntegrityStatus::Checked { .. } => "checked",
            IntegrityStatus::Partial { .. } => "partial",
            IntegrityStatus::Absent => "absent",
            IntegrityStatus::Unknown => "unknown",
            IntegrityStatus::Ignored => "ignored",
        };
        (self.file.len(), self.file.datasets().map(bytes).fold(0, u64::saturating_add), state)
    }

    /// Name, element type, shape, chunk shape, axis names and attributes of each dataset.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn datasets(
        &self,
    ) -> Vec<(String, Option<&'static str>, Vec<u64>, Vec<u64>, Vec<Option<String>>, Vec<(String, String)>)>
    {
        let describe = |dataset: Dataset<'_>| {
            let axes = 0..dataset.shape().len();
            let attrs = dataset.info().map(|info| &info.attrs).into_iter().flatten();
            (
                dataset.name().to_owned(),
                dataset.dtype().map(tercet::core::DType::name),
                dataset.shape().to_vec(),
                dataset.chunk_shape().to_vec(),
                axes.map(|axis| dataset.axis_name(axis).map(str::to_owned)).collect(),
                attrs.map(|(key, value)| (key.clone(), value.clone())).collect(),
            )
        };
        self.file.datasets().map(describe).collect()
    }

    /// The labels of an axis, as stored.
    fn labels(&self, py: Python<'_>, dataset: usize, axis: usize) -> PyResult<Option<Vec<String>>> {
        Ok(self.dataset(py, dataset)?.labels(axis).map(<[String]>::to_vec))
    }

    /// Reads a selection; decodes packed and missing values by the CF conventions if asked.
    fn read(&self, py: Python<'_>, dataset: usize, steps: Vec<Step>, decode: bool) -> PyResult<Array> {
        let dataset = self.dataset(py, dataset)?;
        let tensor = py.detach(|| {
            let select = select(dataset, steps)?.keep_single();
            if decode { select.read_decoded() } else { select.read() }
        });
        buffer::tensor(py, tensor.map_err(to_py)?)
    }

    /// Reads a selection into an array of its size: contiguous, of the stored type. Signals stop it.
    #[pyo3(signature = (dataset, steps, out, progress = None))]
    fn read_into(
        &self,
        py: Python<'_>,
        dataset: usize,
        steps: Vec<Step>,
        mut out: PyBuffer<u8>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let dataset = self.dataset(py, dataset)?;
        let out = buffer::bytes_mut(py, &mut out)?;
        let read = job::run(py, progress.as_ref(), |progress| {
            let selection = select(dataset, steps)?.selection()?;
            dataset.read_into(&selection, out, progress)
        })?;
        read.map_err(to_py)
    }

    /// A read-only view of a dataset of one raw chunk, without a copy if the file is mapped; none for other datasets.
    fn view(&self, py: Python<'_>, dataset: usize) -> PyResult<Option<Array>> {
        let dataset = self.dataset(py, dataset)?;
        let origin = vec![0; dataset.shape().len()];
        let chunk = py.detach(|| {
            let is_single = dataset.grid()?.chunk_count() == 1;
            if is_single && dataset.chunk_ref(&origin)?.codec == Codec::Raw {
                dataset.chunk(&origin).map(Some)
            } else {
                Ok(None)
            }
        });
        let Some(chunk) = chunk.map_err(to_py)? else { return Ok(None) };
        let (dtype, shape) = (chunk.dtype().name(), chunk.shape().to_vec());
        Ok(Some((Py::new(py, Buffer::view(chunk))?, dtype, shape)))
    }

    /// Transforms a selection, in memory. Signals stop it.
    #[pyo3(signature = (dataset, steps, method, over, raw, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options of a transform")]
    fn transform(
        &self,
        py: Python<'_>,
        dataset: usize,
        steps: Vec<Step>,
        method: &str,
        over: Vec<usize>,
        raw: bool,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Array> {
        let dataset = self.dataset(py, dataset)?;
        let method: Method = serde_json::from_value(method.into())
            .map_err(|_| request(py, &format!("unknown transform `{method}`")))?;
        let outcome = job::run(py, progress.as_ref(), |progress| {
            let select = select(dataset, steps)?.keep_single();
            let select = if raw { select.raw() } else { select };
            select.transform(method).over(over).in_memory().request()?.run(progress)
        })?;
        let tensor = match outcome.map_err(to_py)?.computed {
            Computed::Transformed(transformed) => transformed.tensor,
            _ => None,
        };
        buffer::tensor(py, tensor.ok_or_else(|| internal("the transform has no values"))?)
    }

    /// Runs or plans a query document: JSON or TOML. Returns the answer as JSON. Files are written beside this one, or
    /// into the allowed directories.
    #[pyo3(signature = (text, *, preview = None, plan = false, reference = true, allowed = Vec::new()))]
    fn query(
        &self,
        py: Python<'_>,
        text: &str,
        preview: Option<u64>,
        plan: bool,
        reference: bool,
        allowed: Vec<PathBuf>,
    ) -> PyResult<String> {
        let query =
            Query::parse(text, Syntax::guess(text)).map_err(|error| request(py, &error.to_string()))?;
        let mut options = RunOptions::new().with_reference(reference).with_overwrite(true);
        options.spill_allow = allowed;
        if let Some(elements) = preview {
            options = options.with_preview(elements);
        }
        if reference && !self.file.datasets().any(|dataset| dataset.name() == query.dataset()) {
            return serde_json::to_string(&Answer::not_found(&query, &self.file)).map_err(internal);
        }
        let result = job::run(py, None, |progress| {
            if plan { query.plan(&self.file, &options) } else { query.run(&self.file, &options, progress) }
        })?;
        serde_json::to_string(&Answer::new(&result.map_err(to_py)?)).map_err(internal)
    }

    /// Dimensions and coordinates of a selection, without its values.
    fn coordinates<'py>(
        &self,
        py: Python<'py>,
        dataset: usize,
        steps: Vec<Step>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let dataset = self.dataset(py, dataset)?;
        let all = py.detach(|| {
            let select = select(dataset, steps)?.keep_single();
            (0..dataset.shape().len()).map(|axis| select.coordinates(axis)).collect::<Result<Vec<_>, _>>()
        });
        let all = all.map_err(to_py)?;
        all.into_iter().map(|one| one.map(|one| coordinates(py, &one)).transpose()).collect()
    }

    /// The shape of a selection. One position keeps its axis, with extent 1.
    fn shape(&self, py: Python<'_>, dataset: usize, steps: Vec<Step>) -> PyResult<Vec<u64>> {
        let dataset = self.dataset(py, dataset)?;
        Ok(py.detach(|| select(dataset, steps)).map_err(to_py)?.keep_single().shape())
    }

    /// Reduces a selection: one dictionary for each operation.
    #[pyo3(signature = (dataset, steps, reduction, progress = None))]
    fn reduce<'py>(
        &self,
        py: Python<'py>,
        dataset: usize,
        steps: Vec<Step>,
        reduction: Reduction,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let dataset = self.dataset(py, dataset)?;
        let ops = ops(py, &reduction)?;
        let filter = match &reduction.filter {
            Some(text) => Comparison::parse(text)
                .map_err(|error| request(py, &format!("invalid filter `{text}`: {}", error.detail)))?,
            None => Vec::new(),
        };
        let weights = match &reduction.weights {
            Some(text) => Some(Weights::parse(text).ok_or_else(|| {
                request(py, &format!("unknown weights `{text}`; write `cos(lat)` with the name of the axis"))
            })?),
            None => None,
        };
        let group = reduction.group_by.map(|(axis, part)| match part {
            None => Ok(Group::labels(axis, str::to_owned)),
            Some(part) => TimePart::parse(&part).map(|part| Group::time(axis, part)).ok_or_else(|| {
                request(py, &format!("unknown part of a time `{part}`; use year, season, month, day or hour"))
            }),
        });
        let group = group.transpose()?;
        let results = job::run(py, progress.as_ref(), |progress| {
            let mut select = select(dataset, steps)?;
            select = filter.into_iter().fold(select, Select::filter);
            if reduction.raw {
                select = select.raw();
            } else if !reduction.skipna {
                select = select.skipna(false);
            }
            let mut reduce = select.reduce(ops);
            if let Some(group) = group {
                reduce = reduce.group_by(group);
            }
            if let Some((axis, size)) = reduction.rolling {
                reduce = reduce.window(Window::rolling(axis, size));
            }
            if let Some(weights) = weights {
                reduce = reduce.weights(weights);
            }
            let request: Request<'_> = reduce.over(reduction.over).with_shared_bins()?.request()?;
            request.results(progress)
        })?;
        results_to_py(py, results.map_err(to_py)?)
    }
}

fn select(dataset: Dataset<'_>, steps: Vec<Step>) -> Result<Select<'_>, tercet::tet::Error> {
    steps.into_iter().try_fold(dataset.select(), |select, step| match step {
        Step::Slice(axis, start, stop, step) => {
            select.isel(axis, IndexSlice { start, stop, step, is_single: false })
        }
        Step::Position(axis, at) => {
            select.isel(axis, IndexSlice { start: Some(at), is_single: true, ..IndexSlice::FULL })
        }
        Step::Labels(axis, kind, first, last, tolerance) => {
            let (first, last) = (first.map(Label::from), last.map(Label::from));
            let labels = match (kind.as_str(), first) {
                ("nearest", Some(label)) => LabelSelection::Nearest { label, tolerance },
                ("one", Some(label)) => LabelSelection::One(label),
                (_, first) => LabelSelection::Range(first, last),
            };
            select.sel(axis, labels)
        }
    })
}

fn ops(py: Python<'_>, reduction: &Reduction) -> PyResult<Vec<Op>> {
    let mut ops = Vec::new();
    for name in &reduction.ops {
        match name.as_str() {
            "quantile" => ops.extend(reduction.quantiles.iter().map(|&q| Op::Quantile { q })),
            "histogram" => {
                ops.push(Op::Histogram { bins: reduction.bins.unwrap_or(10), range: reduction.range });
            }
            // No name of a reduction: the result is a matrix.
            "covariance" => ops.push(Op::Covariance),
            "correlation" => ops.push(Op::Correlation),
            name => {
                let op = name.parse().map_err(|unknown: tercet::tet::UnknownOp| {
                    let near = unknown.nearest.as_ref().map(|near| format!("; did you mean `{near}`?"));
                    request(py, &format!("{unknown}{}", near.unwrap_or_default()))
                })?;
                ops.push(op);
            }
        }
    }
    Ok(ops)
}

/// Numbers as a list of floats, times and strings as strings.
fn coordinates<'py>(py: Python<'py>, coordinates: &Coordinates) -> PyResult<Bound<'py, PyAny>> {
    let (kind, values) = match &coordinates.values {
        CoordinateValues::Numbers(numbers) => ("number", numbers.clone().into_pyobject(py)?.into_any()),
        CoordinateValues::Times(times) => {
            let texts: Vec<String> = times.iter().map(ToString::to_string).collect();
            ("time", texts.into_pyobject(py)?.into_any())
        }
        CoordinateValues::Strings(strings) => ("string", strings.clone().into_pyobject(py)?.into_any()),
        _ => {
            let texts: Vec<String> = (0..coordinates.len()).map(|at| coordinates.text(at)).collect();
            ("string", texts.into_pyobject(py)?.into_any())
        }
    };
    Ok((kind, values, coordinates.units.clone()).into_pyobject(py)?.into_any())
}

fn results_to_py(py: Python<'_>, results: Results) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let (elements, skipped) = (results.elements, results.skipped);
    let mut dicts = Vec::with_capacity(results.arrays.len());
    for array in results.arrays {
        let dict = PyDict::new(py);
        dict.set_item("name", &array.name)?;
        let mut dims = Vec::with_capacity(array.dims.len());
        for dim in &array.dims {
            let values = dim.coordinates.as_ref().map(|one| coordinates(py, one)).transpose()?;
            dims.push((dim.name.clone(), dim.len, values));
        }
        dict.set_item("dims", dims)?;
        dict.set_item("attrs", array.attrs)?;
        dict.set_item("edges", array.edges)?;
        dict.set_item("elements", elements)?;
        dict.set_item("skipped", skipped)?;
        match array.values {
            ResultValues::Numbers(tensor) => dict.set_item("values", buffer::tensor(py, tensor)?)?,
            ResultValues::Flags(tensor) => {
                dict.set_item("values", buffer::tensor(py, tensor)?)?;
                dict.set_item("flags", true)?;
            }
            ResultValues::Positions(axes) => {
                let mut positions = Vec::with_capacity(axes.len());
                for axis in axes {
                    let values =
                        axis.has_coordinates.then(|| coordinates(py, &axis.coordinates)).transpose()?;
                    positions.push((axis.axis, axis.indices, values));
                }
                dict.set_item("positions", positions)?;
            }
            _ => return Err(internal("a result of an unknown form")),
        }
        dicts.push(dict);
    }
    Ok(dicts)
}
