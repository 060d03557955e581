//! `.tet` files as a source of variables.

use std::sync::Arc;

use serde_json::Value;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{DType, Selection};
use tercet_tet::{AttrType, AttrValue, Codec, Dataset, File};

use super::typed::{self, TYPED};
use crate::Error;
use crate::arrays::dims::DimTable;
use crate::arrays::source::{check_box, malformed, refused};
use crate::arrays::{ArraySource, AttrData, Dim, Header, Kind, Numbers, Variable, ZstdChunks};

/// A `.tet` file.
#[derive(Debug)]
pub(crate) struct TetSource {
    file: Arc<File>,
    header: Header,
    origins: Vec<Origin>,
}

/// Where the values of a variable are.
#[derive(Clone, Debug)]
enum Origin {
    /// Values of a dataset, as they are.
    Dataset(usize),
    /// int8 values, stored as int16.
    Narrow(usize),
    /// Labels of an axis.
    Labels { dataset: usize, axis: usize },
}

impl TetSource {
    /// The variables of a file.
    pub(crate) fn new(file: Arc<File>) -> Self {
        let metadata = file.metadata().map(serde_json::to_value).and_then(Result::ok).unwrap_or_default();
        let mut dims = DimTable::new();
        let mut header = Header { format: "Tetration .tet".to_owned(), ..Header::default() };
        let file_record = metadata.get("file").and_then(|file| file.get(TYPED));
        let stored: Vec<(String, String, AttrData)> = file
            .metadata()
            .into_iter()
            .flat_map(|metadata| metadata.file.attrs())
            .map(|(key, value)| (key.to_owned(), value.text().to_owned(), data(&value)))
            .collect();
        header.attrs = typed::attributes(file_record, stored);
        let mut origins = Vec::new();
        for dataset in file.datasets() {
            let record = metadata
                .get("datasets")
                .and_then(|all| all.get(dataset.name()))
                .and_then(|info| info.get(TYPED));
            let Some(dtype) = dataset.dtype().filter(|_| dataset.grid().is_ok()) else {
                let reason = dataset.grid().err().map_or_else(
                    || format!("unknown element type {}", dataset.dtype_tag()),
                    |error| error.kind().to_string(),
                );
                header.unreadable.push((dataset.name().to_owned(), reason));
                continue;
            };
            let (variable, origin) = variable(&dataset, dtype, record, &mut dims);
            header.variables.push(variable);
            origins.push(origin);
        }
        labels(&file, &mut header, &mut origins, &dims);
        header.dims = recorded_dims(file_record, dims);
        Self { file, header, origins }
    }

    fn dataset(&self, number: usize) -> Result<Dataset<'_>, Error> {
        self.file.datasets().nth(number).ok_or_else(|| malformed(self.file.name(), "a dataset is missing"))
    }
}

/// The dimensions in their recorded order, with those that no variable has. Lengths are those of the datasets.
fn recorded_dims(record: Option<&Value>, dims: DimTable) -> Vec<Dim> {
    let mut found = dims.into_dims(|_| false);
    let mut ordered = Vec::new();
    let recorded = record.and_then(|record| record.get("dims")).and_then(Value::as_array);
    for item in recorded.into_iter().flatten() {
        let (Some(name), Some(len)) =
            (item.get(0).and_then(Value::as_str), item.get(1).and_then(Value::as_u64))
        else {
            continue;
        };
        let unlimited = item.get(2) == Some(&Value::Bool(true));
        let position = found.iter().position(|dim| dim.name == name);
        let len = position.map_or(len, |position| found.remove(position).len);
        if !ordered.iter().any(|dim: &Dim| dim.name == name) {
            ordered.push(Dim { name: name.to_owned(), len, unlimited });
        }
    }
    ordered.extend(found);
    // Axes that exist in this format only.
    ordered
}

/// The variable of a dataset, as it was before it was stored.
fn variable(
    dataset: &Dataset<'_>,
    dtype: DType,
    record: Option<&Value>,
    dims: &mut DimTable,
) -> (Variable, Origin) {
    let mut shape = dataset.shape().to_vec();
    let mut chunks = dataset.chunk_shape().to_vec();
    let mut names: Vec<Option<&str>> = (0..shape.len()).map(|axis| dataset.axis_name(axis)).collect();
    let recorded = record.and_then(|record| record.get("kind")).and_then(Value::as_str);
    let mut origin = Origin::Dataset(dataset.id());
    let kind = match (recorded, dtype) {
        (Some("char"), DType::U8) => Kind::Char,
        (Some("bool"), DType::U8) => Kind::Number(DType::Bool),
        (Some("int8"), DType::I16) => {
            origin = Origin::Narrow(dataset.id());
            Kind::Number(DType::I8)
        }
        (Some("complex64"), DType::F32) if shape.last() == Some(&2) && shape.len() > 1 => {
            Kind::Number(DType::C64)
        }
        (Some("complex128"), DType::F64) if shape.last() == Some(&2) && shape.len() > 1 => {
            Kind::Number(DType::C128)
        }
        _ => Kind::Number(dtype),
    };
    if matches!(kind, Kind::Number(DType::C64 | DType::C128)) {
        shape.pop();
        chunks.pop();
        names.pop();
    }
    if record.and_then(|record| record.get("scalar")) == Some(&Value::Bool(true)) && shape == [1] {
        (shape, chunks, names) = (Vec::new(), Vec::new(), Vec::new());
    }
    let stored = dataset.info().map(|info| {
        let value =
            |key: &String| info.attr(key).map(|value| (key.clone(), value.text().to_owned(), data(&value)));
        info.attrs.keys().filter_map(value).collect()
    });
    let attrs = typed::attributes(record, stored.unwrap_or_default());
    let dims = dims.resolve(dataset.name(), &names, &shape);
    let chunks = (!shape.is_empty()).then_some(chunks);
    (Variable { name: dataset.name().to_owned(), kind, dims, shape, chunks, attrs }, origin)
}

/// Adds the labels of axes as string variables, unless there is a variable of that name.
fn labels(file: &File, header: &mut Header, origins: &mut Vec<Origin>, dims: &DimTable) {
    for dataset in file.datasets() {
        let Some(variable) = header.variables.iter().find(|variable| variable.name == dataset.name()) else {
            continue;
        };
        let names = variable.dims.clone();
        for (axis, name) in names.iter().enumerate() {
            if dataset.labels(axis).is_some() && header.find(name).is_none() && dims.contains(name) {
                header.variables.push(Variable {
                    name: name.clone(),
                    kind: Kind::String,
                    dims: vec![name.clone()],
                    shape: vec![dataset.shape()[axis]],
                    chunks: None,
                    attrs: Vec::new(),
                });
                origins.push(Origin::Labels { dataset: dataset.id(), axis });
            }
        }
    }
}

/// The value of an attribute without a record.
fn data(value: &AttrValue) -> AttrData {
    let text = value.text();
    match value.kind() {
        AttrType::String => AttrData::Text(text.to_owned()),
        AttrType::Number(Some(dtype)) => Numbers::parse(dtype.into(), &[text], false)
            .map_or_else(|| AttrData::Text(text.to_owned()), AttrData::Numbers),
        AttrType::Bool | AttrType::Json | AttrType::Number(None) => serde_json::from_str::<Value>(text)
            .map_or_else(|_| AttrData::Text(text.to_owned()), |value| AttrData::from_json(&value)),
    }
}

impl ArraySource for TetSource {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn read_box(&self, variable: usize, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let item = &self.header.variables[variable];
        check_box(self.name(), &item.shape, item.item_size(), (start, extents), out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let read = |dataset: usize, out: &mut [u8]| -> Result<(), Error> {
            let dataset = self.dataset(dataset)?;
            let mut axes: Vec<AxisSlice> = start
                .iter()
                .zip(extents)
                .map(|(&start, &extent)| AxisSlice { start, stop: start + extent, step: 1 })
                .collect();
            // A scalar, or the parts of complex numbers.
            axes.extend(dataset.shape()[axes.len()..].iter().map(|extent| AxisSlice::full(*extent)));
            let selection = Selection::new(axes, dataset.shape());
            let selection = selection.map_err(|error| refused(self.name(), error.to_string()))?;
            Ok(dataset.read_into(&selection, out, &NoProgress)?)
        };
        match self.origins[variable] {
            Origin::Dataset(dataset) => read(dataset, out),
            Origin::Narrow(dataset) => {
                let mut wide = vec![0; out.len() * 2];
                read(dataset, &mut wide)?;
                for (narrow, wide) in out.iter_mut().zip(wide.as_chunks::<2>().0) {
                    let value = i16::from_le_bytes(*wide);
                    *narrow = i8::try_from(value)
                        .map_err(|_| {
                            malformed(
                                self.name(),
                                format!("`{}` is recorded as int8, but has {value}", item.name),
                            )
                        })?
                        .cast_unsigned();
                }
                Ok(())
            }
            Origin::Labels { .. } => Err(refused(self.name(), format!("`{}` contains strings", item.name))),
        }
    }

    fn zstd(&self, variable: usize) -> Option<ZstdChunks> {
        let item = self.header.variables.get(variable)?;
        let Origin::Dataset(dataset) = self.origins[variable] else { return None };
        let dataset = self.dataset(dataset).ok()?;
        let is_plain = matches!(item.kind, Kind::Number(dtype) if dtype != DType::Bool)
            && item.shape == dataset.shape()
            && !item.shape.is_empty();
        let first = dataset.chunk_ref(&vec![0; item.shape.len()]).ok()?;
        (is_plain && first.codec == Codec::Zstd).then_some(ZstdChunks { level: None })
    }

    fn stored_chunk(&self, variable: usize, coords: &[u64]) -> Result<Option<Vec<u8>>, Error> {
        let Origin::Dataset(dataset) = self.origins[variable] else { return Ok(None) };
        if self.header.variables[variable].shape.len() != coords.len() {
            return Ok(None);
        }
        Ok(self.dataset(dataset)?.stored_zstd(coords)?.map(|frames| frames.to_vec()))
    }

    fn read_strings(&self, variable: usize) -> Result<Vec<String>, Error> {
        let Origin::Labels { dataset, axis } = self.origins[variable] else {
            return Err(refused(self.name(), "the variable does not contain strings"));
        };
        Ok(self.dataset(dataset)?.labels(axis).unwrap_or_default().to_vec())
    }
}
