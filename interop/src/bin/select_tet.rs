//! Writes `.tet` files with coordinates and attributes, and selects from them: one JSON request per line of stdin, one
//! JSON answer per line of stdout.
//!
//! ```text
//! {"write": {"path", "datasets": [{"name", "dtype", "shape", "values", "dims", "attrs", "labels"}]}}   {}
//! {"select": {"path", "dataset", "steps": [[AXIS, {"label": L} | {"range": [L, L]} | …], …]}}          {"shape", "dtype", "values"}
//! {"reduce": {"path", "dataset", "ops", "over", "raw", "skipna", "group"}}                             {"results", "skipped", "labels"}
//! {"coordinates": {"path", "dataset"}}                                                                 {"labels"}
//! ```
//!
//! Values are the hexadecimal digits of their little-endian bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tercet_core::tensor::IndexSlice;
use tercet_core::{DType, ElementType, Tensor, TensorView};
use tercet_interop::Failure;
use tercet_tet::{File, Group, Label, LabelSelection, Layout, Op, Select, TimePart, Writer, WriterOptions};

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str::<Request>(&line?)? {
            Request::Write(write) => write.run(),
            Request::Select(select) => select.run(),
            Request::Reduce(reduce) => reduce.run(),
            Request::Coordinates(coordinates) => coordinates.run(),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Write(WriteRequest),
    Select(SelectRequest),
    Reduce(ReduceRequest),
    Coordinates(CoordinatesRequest),
}

/// Writes a file.
#[derive(Deserialize)]
struct WriteRequest {
    path: PathBuf,
    datasets: Vec<DatasetRequest>,
}

#[derive(Deserialize)]
struct DatasetRequest {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    values: String,
    dims: Vec<String>,
    #[serde(default)]
    attrs: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, Vec<String>>,
}

impl WriteRequest {
    fn run(self) -> Result<Value, Failure> {
        let mut layout = Layout::new();
        let mut arrays = Vec::new();
        for dataset in self.datasets {
            let dtype = dataset.dtype.parse::<DType>()?;
            let dtype =
                ElementType::ALL.into_iter().find(|element| element.to_string() == dtype.short_name());
            let dtype = dtype.ok_or("not an element type")?;
            let chunks: Vec<u64> = dataset.shape.iter().map(|extent| extent.div_ceil(2)).collect();
            let id = layout.dataset(&dataset.name, dtype, &dataset.shape[..], &chunks[..])?;
            layout.dims(id, dataset.dims.iter().map(String::as_str))?;
            for (key, value) in &dataset.attrs {
                layout.attr(id, key, value)?;
            }
            for (axis, labels) in dataset.labels {
                layout.labels(id, &axis, labels)?;
            }
            arrays.push((id, dtype, dataset.shape, unhex(&dataset.values)?));
        }
        let mut writer = Writer::create(&self.path, layout, WriterOptions::new().with_overwrite(true))?;
        for (id, dtype, shape, values) in arrays {
            writer.array(id, TensorView::new(dtype, &shape, &values)?)?;
        }
        writer.finish()?;
        Ok(json!({}))
    }
}

/// Selects a part of a dataset and reads it.
#[derive(Deserialize)]
struct SelectRequest {
    path: String,
    dataset: String,
    #[serde(default)]
    steps: Vec<(String, Step)>,
    #[serde(default)]
    decode: bool,
}

/// The selection of one axis. Labels are strings, because JSON numbers are not parsed to the nearest float.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Label(String),
    Range(Option<String>, Option<String>),
    Nearest(String, Option<f64>),
    /// A slice of positions.
    Positions(String),
}

impl SelectRequest {
    fn run(self) -> Result<Value, Failure> {
        let file = File::open(self.path.as_str())?;
        let mut select = file.dataset(&self.dataset)?.select();
        for (axis, step) in self.steps {
            select = step.apply(select, &axis)?;
        }
        let tensor = if self.decode { select.read_decoded()? } else { select.read()? };
        Ok(tensor_json(&tensor))
    }
}

impl Step {
    fn apply<'f>(self, select: Select<'f>, axis: &str) -> Result<Select<'f>, Failure> {
        let label = |text: String| Label::parse(&text);
        let labels = match self {
            Self::Label(text) => LabelSelection::One(label(text)),
            Self::Range(from, to) => LabelSelection::Range(from.map(label), to.map(label)),
            Self::Nearest(text, tolerance) => LabelSelection::Nearest { label: label(text), tolerance },
            Self::Positions(text) => {
                return Ok(select.isel(axis, IndexSlice::parse(&text).ok_or("not a slice")?)?);
            }
        };
        Ok(select.sel(axis, labels)?)
    }
}

/// Reduces a dataset.
#[derive(Deserialize)]
struct ReduceRequest {
    path: String,
    dataset: String,
    ops: Vec<String>,
    #[serde(default)]
    over: Vec<String>,
    #[serde(default)]
    raw: bool,
    skipna: Option<bool>,
    /// Axis and part of its times.
    group: Option<(String, String)>,
}

impl ReduceRequest {
    fn run(self) -> Result<Value, Failure> {
        let file = File::open(self.path.as_str())?;
        let mut select = file.dataset(&self.dataset)?.select();
        if let Some(skipna) = self.skipna {
            select = select.skipna(skipna);
        }
        if self.raw {
            select = select.raw();
        }
        let ops = self.ops.iter().map(|name| operation(name)).collect::<Result<Vec<_>, _>>()?;
        let mut reduce = select.reduce(ops).over(&self.over);
        if let Some((axis, part)) = &self.group {
            let part = TimePart::parse(part).ok_or("not a part of times")?;
            reduce = reduce.group_by(Group::time(axis, part));
        }
        let results = reduce.run_all()?;
        let skipped = results.first().map(|result| result.skipped);
        let labels: Option<Vec<_>> =
            results.first().map(|result| result.dims.iter().map(|dim| dim.labels.clone()).collect());
        let results: Vec<Value> = results.iter().map(|result| tensor_json(&result.tensor)).collect();
        Ok(json!({ "results": results, "skipped": skipped, "labels": labels }))
    }
}

fn operation(name: &str) -> Result<Op, Failure> {
    let all = [Op::Sum, Op::Mean, Op::Min, Op::Max, Op::Count, Op::Var, Op::Std, Op::Median, Op::Product];
    let found = all.into_iter().find(|op| op.key() == name);
    found.ok_or_else(|| format!("unknown operation `{name}`").into())
}

/// Prints the coordinates of the axes as text.
#[derive(Deserialize)]
struct CoordinatesRequest {
    path: String,
    dataset: String,
}

impl CoordinatesRequest {
    fn run(self) -> Result<Value, Failure> {
        let file = File::open(self.path.as_str())?;
        let dataset = file.dataset(&self.dataset)?;
        let mut labels = Vec::new();
        for axis in 0..dataset.shape().len() {
            let coordinates = dataset.coordinates(axis)?;
            let text = |all: tercet_tet::Coordinates| (0..all.len()).map(|at| all.text(at)).collect();
            labels.push(coordinates.map(text).map(|labels: Vec<String>| labels));
        }
        Ok(json!({ "labels": labels }))
    }
}

fn tensor_json(tensor: &Tensor) -> Value {
    let mut digits = String::with_capacity(tensor.bytes().len() * 2);
    for byte in tensor.bytes() {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    json!({ "shape": tensor.shape()[..], "dtype": tensor.dtype().to_string(), "values": digits })
}

fn unhex(digits: &str) -> Result<Vec<u8>, Failure> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    pairs.map(byte).collect()
}
