//! Results as a `.tet` file.

use std::sync::atomic::{AtomicU64, Ordering};

use tercet_core::{DType, ElementType, Progress, Sink, TensorView};
use tercet_tet::{
    DatasetId, HistoryRow, Layout, LayoutError, ResultArray, ResultDim, ResultValues, Results, Select,
    Writer, WriterOptions, missing_values,
};

use super::{numbers_at, several_axes, times_at, view_of};
use crate::chunking::default_chunk_shape;
use crate::{Error, ResultFormat};

/// Attributes of a dataset beside those of its result.
type Attrs = Vec<(&'static str, String)>;

/// Values of a dataset to be written.
enum Values<'r> {
    View(TensorView<'r>),
    Floats(Vec<f64>),
    Integers(&'r [i64]),
    /// Values of a selection, which are read chunk by chunk.
    Unread(DType),
}

/// A selection whose values were not read.
#[derive(Clone, Copy)]
pub(super) struct Selected<'s> {
    pub(super) select: &'s Select<'s>,
    /// The type of decoded values; `None` for stored ones.
    pub(super) decoded: Option<ElementType>,
    pub(super) progress: &'s dyn Progress,
    /// Number of missing values among decoded ones.
    pub(super) missing: &'s AtomicU64,
}

impl Selected<'_> {
    /// The chunk shape of the dataset, where it is selected: so few chunks are decoded twice.
    fn chunk_shape(&self) -> Result<Vec<u64>, Error> {
        let selection = self.select.selection()?;
        let stored = self.select.dataset().chunk_shape();
        let kept = self.select.kept_axes();
        let chunk = |axis: usize| {
            let slice = selection.axes()[axis];
            stored[axis].div_ceil(slice.step).clamp(1, slice.count().max(1))
        };
        Ok(kept.into_iter().map(chunk).collect())
    }

    /// Reads a chunk of the output.
    fn read(&self, coords: &[u64], chunks: &[u64], out: &mut [u8]) -> Result<(), tercet_tet::Error> {
        let mut part = self.select.clone();
        for ((axis, &coord), (&chunk, extent)) in
            self.select.kept_axes().into_iter().zip(coords).zip(chunks.iter().zip(self.select.shape()))
        {
            let start = coord * chunk;
            part = part.isel(axis, start..extent.min(start + chunk))?;
        }
        let tensor = match self.decoded {
            Some(dtype) => {
                let tensor = part.read_decoded_as(dtype)?;
                self.missing.fetch_add(missing_values(&tensor), Ordering::Relaxed);
                tensor
            }
            None => part.read()?,
        };
        let bytes = tensor.bytes();
        out[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// Writes one dataset for each result, and the coordinate datasets of its dimensions. Values that were not read are those
/// of `selected`.
pub(super) fn write<S: Sink>(
    results: &Results,
    selected: Option<Selected<'_>>,
    sink: S,
    name: &str,
) -> Result<S::Output, Error> {
    let laid_out = |error: LayoutError| Error::from(tercet_tet::Error::new(name.into(), error.into()));
    let mut layout = Layout::new();
    let mut datasets: Vec<(DatasetId, Vec<u64>, Values<'_>)> = Vec::new();
    for array in &results.arrays {
        for (title, values, attrs) in variables(results, array) {
            let element = match &values {
                Values::View(view) => view.dtype().element(),
                Values::Floats(_) => Some(ElementType::F64),
                Values::Integers(_) => Some(ElementType::I64),
                Values::Unread(dtype) => dtype.element(),
            };
            let Some(element) = element else {
                return Err(super::refused(name, several_axes(array, ResultFormat::Tet)));
            };
            let mut shape = array.shape();
            if shape.is_empty() {
                shape.push(1);
            }
            let chunks = match (&values, &selected) {
                (Values::Unread(_), Some(selected)) if !array.dims.is_empty() => selected.chunk_shape()?,
                _ => default_chunk_shape(&shape, element.size()),
            };
            let id = layout.dataset(&title, element, &shape, &chunks).map_err(laid_out)?;
            describe(&mut layout, id, array, &attrs).map_err(laid_out)?;
            datasets.push((id, shape, values));
        }
    }
    for array in &results.arrays {
        for dim in &array.dims {
            if let Some((id, shape, values)) = coordinate(&mut layout, dim).map_err(laid_out)? {
                datasets.push((id, shape, values));
            }
        }
        if let Some(edges) = array.edges.as_ref().filter(|_| layout.find("bin_edges").is_none()) {
            let shape = vec![edges.len() as u64];
            let id = layout.dataset("bin_edges", ElementType::F64, &shape, &shape).map_err(laid_out)?;
            datasets.push((id, shape, Values::Floats(edges.clone())));
        }
    }
    layout.file_info("tercet", env!("CARGO_PKG_VERSION"), tercet_tet::unix_seconds());
    layout.history(history(results)).map_err(laid_out)?;
    let mut writer = Writer::new(sink, layout, WriterOptions::new())?;
    for (id, shape, values) in &datasets {
        match values {
            Values::View(view) => writer.array(*id, reshaped(view, shape, name)?)?,
            Values::Floats(numbers) => writer.array(*id, view_of(shape, numbers, name)?)?,
            Values::Integers(numbers) => writer.array(*id, view_of(shape, numbers, name)?)?,
            Values::Unread(_) => {
                let Some(selected) = &selected else { continue };
                let chunks = writer.grid(*id).chunk_shape().to_vec();
                let read = |coords: &[u64], out: &mut [u8]| selected.read(coords, &chunks, out);
                writer.fill(*id, read, selected.progress)?;
            }
        }
    }
    Ok(writer.finish()?.output)
}

fn reshaped<'v>(view: &TensorView<'v>, shape: &'v [u64], name: &str) -> Result<TensorView<'v>, Error> {
    TensorView::new(view.dtype(), shape, view.bytes())
        .map_err(|error| super::refused(name, error.to_string()))
}

/// The datasets of a result: their names, values and attributes, if they have others than the result.
fn variables<'r>(results: &'r Results, array: &'r ResultArray) -> Vec<(String, Values<'r>, Attrs)> {
    let title = match &results.arrays[..] {
        [_] => results.dataset.clone(),
        _ => format!("{}_{}", results.dataset, array.name),
    };
    match &array.values {
        ResultValues::Numbers(tensor) | ResultValues::Flags(tensor) => {
            vec![(title, Values::View(tensor.view()), Vec::new())]
        }
        ResultValues::Unread(dtype) => vec![(title, Values::Unread(*dtype), Vec::new())],
        ResultValues::Positions(axes) => axes
            .iter()
            .flat_map(|axis| {
                let title = format!("{}_{}_{}", results.dataset, array.name, axis.axis);
                let numbers = numbers_at(axis).map(|numbers| {
                    let units = axis.coordinates.units.iter().map(|units| ("units", units.clone())).collect();
                    (title.clone(), Values::Floats(numbers), units)
                });
                let numbers = numbers.or_else(|| {
                    let (numbers, attrs) = times_at(axis)?;
                    Some((title.clone(), Values::Floats(numbers), attrs))
                });
                let indices = (format!("{title}_index"), Values::Integers(&axis.indices), Vec::new());
                numbers.into_iter().chain([indices])
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Sets names, labels and attributes of a dataset.
fn describe(
    layout: &mut Layout,
    id: DatasetId,
    array: &ResultArray,
    attrs: &[(&str, String)],
) -> Result<(), LayoutError> {
    let has_names = array.dims.iter().any(|dim| dim.is_named);
    if has_names {
        layout.dims(id, array.dims.iter().map(|dim| dim.name.as_str()))?;
    }
    for (number, dim) in array.dims.iter().enumerate() {
        let labels = dim.coordinates.as_ref().filter(|_| dim.stored.is_none());
        if let Some(coordinates) = labels {
            let labels = (0..coordinates.len()).map(|position| coordinates.text(position)).collect();
            let axis = if has_names { dim.name.clone() } else { number.to_string() };
            layout.labels(id, &axis, labels)?;
        }
    }
    for (key, value) in &array.attrs {
        layout.attr(id, key, value)?;
    }
    for (key, value) in attrs {
        layout.attr(id, key, value)?;
    }
    Ok(())
}

/// Adds the coordinate dataset of a dimension.
fn coordinate<'r>(
    layout: &mut Layout,
    dim: &'r ResultDim,
) -> Result<Option<(DatasetId, Vec<u64>, Values<'r>)>, LayoutError> {
    let Some(stored) = dim.stored.as_ref().filter(|_| layout.find(&dim.name).is_none()) else {
        return Ok(None);
    };
    let shape = vec![dim.len];
    let chunks = default_chunk_shape(&shape, stored.values.dtype().size().unwrap_or(1));
    let id = layout.dataset(&dim.name, stored.values.dtype(), &shape, &chunks)?;
    layout.dims(id, [dim.name.as_str()])?;
    for (key, value) in &stored.attrs {
        layout.attr(id, key, value)?;
    }
    Ok(Some((id, shape, Values::View(stored.values.view()))))
}

fn history(results: &Results) -> HistoryRow {
    let ops: Vec<&str> = results.arrays.iter().map(|array| array.name.as_str()).collect();
    let is_computed = results.arrays.iter().any(|array| array.op.is_some());
    let mut row = HistoryRow::now(if is_computed { "compute" } else { "extract" }, "tercet");
    row.parents.push(results.source.clone());
    row = row.with_param("dataset", results.dataset.clone());
    if is_computed {
        row = row.with_param("operation", ops.join(", ")).with_param("skipped", results.skipped.to_string());
    }
    for (axis, coordinates) in &results.single {
        row = row.with_param(axis, coordinates.text(0));
    }
    row
}
