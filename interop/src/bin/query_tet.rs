//! Writes `.tet` files and runs queries: one JSON request per line of stdin, one JSON answer per line of stdout.
//!
//! ```text
//! {"write": {"path", "values", "dtype", "shape", "chunk_shape", …}}       {}
//! {"query": {"path", "text", "toml", "statistics", "parallel", "preview"}} {"results": …, "preview": …, "strategy": …}
//! {"reduce": {"path", "axes", "filter", "ops", …}}                         {"results": [[elements, shape, values], …]}
//! {"read": {"path"}}                                                       {"dtype", "shape", "labels", "values": …}
//! ```
//!
//! Floats are answered as the hexadecimal digits of their bytes, so that every bit can be compared.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tercet_core::progress::NoProgress;
use tercet_core::{DType, ElementType, TensorView};
use tercet_interop::Failure;
use tercet_tet::compat::Answer;
use tercet_tet::{
    Comparison, Compression, Computed, File, Group, Layout, MemoryBudget, Op, Query, RunOptions, Scalar,
    Syntax, Window, Writer, WriterOptions,
};

/// The dataset of every file.
const NAME: &str = "values";

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let answer = match request {
            Request::Write(write) => write.run(),
            Request::Query(query) => query.run(),
            Request::Reduce(reduce) => reduce.run(),
            Request::Read(read) => read.run(),
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
    Query(QueryRequest),
    Reduce(ReduceRequest),
    Read(ReadRequest),
}

/// Writes one array to a file.
#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option")]
struct WriteRequest {
    path: PathBuf,
    /// The file with the values, row-major and little-endian.
    values: PathBuf,
    dtype: String,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    zstd: Option<i32>,
    attrs: BTreeMap<String, String>,
    dim_names: Vec<String>,
    labels: BTreeMap<String, Vec<String>>,
    interop: bool,
    checksums: bool,
    statistics: bool,
    zone_maps: bool,
    budget: u32,
}

impl WriteRequest {
    fn run(self) -> Result<Value, Failure> {
        let dtype = self.dtype.parse::<DType>()?;
        let dtype = ElementType::ALL.into_iter().find(|element| element.to_string() == dtype.short_name());
        let dtype = dtype.ok_or("not an element type")?;
        let mut layout = Layout::new();
        let id = layout.dataset(NAME, dtype, &self.shape[..], &self.chunk_shape[..])?;
        if let Some(level) = self.zstd {
            layout.compress(id, Compression::Zstd { level })?;
        }
        for (key, value) in &self.attrs {
            layout.attr(id, key, value)?;
        }
        if !self.dim_names.is_empty() {
            layout.dims(id, self.dim_names.iter().map(String::as_str))?;
        }
        for (axis, labels) in self.labels {
            layout.labels(id, &axis, labels)?;
        }
        layout.memory_budget(MemoryBudget { percent_bps: 0, bytes: self.budget })?;
        let options = if self.interop { WriterOptions::interop() } else { WriterOptions::new() };
        let options = options
            .with_checksums(self.checksums)
            .with_statistics(self.statistics)
            .with_zone_maps(self.zone_maps)
            .with_overwrite(true);
        let values = std::fs::read(&self.values)?;
        let mut writer = Writer::create(&self.path, layout, options)?;
        writer.array(id, TensorView::new(dtype, &self.shape, &values)?)?;
        writer.finish()?;
        Ok(json!({}))
    }
}

/// Runs a query document.
#[derive(Deserialize)]
struct QueryRequest {
    path: String,
    text: String,
    toml: bool,
    statistics: bool,
    parallel: bool,
    preview: u64,
}

impl QueryRequest {
    fn run(self) -> Result<Value, Failure> {
        let query = Query::parse(&self.text, if self.toml { Syntax::Toml } else { Syntax::Json })?;
        let file = File::open(self.path.as_str())?;
        let options = RunOptions::new()
            .with_preview(self.preview)
            .with_statistics(self.statistics)
            .with_parallel(Some(self.parallel));
        let result = query.run(&file, &options, &NoProgress)?;
        let execution = Answer::new(&result).execution.ok_or("no execution")?;
        let tensor = match result.outcome.as_ref().map(|outcome| &outcome.computed) {
            Some(Computed::Transformed(made)) => made.tensor.as_ref(),
            _ => None,
        };
        let members = execution.results.iter().chain(&execution.details);
        let results: Map<String, Value> =
            members.map(|(name, value)| ((*name).to_owned(), encode(value))).collect();
        let preview = execution.preview.and_then(|preview| preview.values.as_ref());
        Ok(json!({
            "results": results,
            "preview": preview.map(|values| hex(values.bytes())),
            "tensor": tensor.map(|tensor| hex(tensor.bytes())),
            "strategy": execution.memory_strategy,
            "bytes_read": execution.total_bytes_read_from_disk,
        }))
    }
}

fn encode(value: &tercet_tet::compat::Value<'_>) -> Value {
    match value {
        tercet_tet::compat::Value::Number(number) => json!({ "f64": hex(&number.to_le_bytes()) }),
        tercet_tet::compat::Value::Numbers(numbers) => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!({ "f64": hex(&bytes) })
        }
        other => json!(other),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Runs several operations at once with the typed interface.
#[derive(Deserialize)]
struct ReduceRequest {
    path: String,
    /// Start, stop and step of each axis.
    slices: Vec<[u64; 3]>,
    /// Axis and label of a label filter.
    label: Option<(usize, String)>,
    /// Numbers as text, because JSON numbers are not parsed to the nearest float.
    filter: BTreeMap<String, String>,
    /// Axes to reduce.
    axes: Vec<usize>,
    /// Axes to group by label.
    groups: Vec<usize>,
    /// Axis, size, step (0 for bins) and minimum count of windows.
    window: Option<(usize, u64, u64, u64)>,
    /// Keys of query documents.
    ops: Vec<String>,
    statistics: bool,
    parallel: bool,
    budget: Option<u64>,
}

impl ReduceRequest {
    fn run(self) -> Result<Value, Failure> {
        let file = File::open(self.path.as_str())?;
        let dataset = file.dataset(NAME)?;
        // The model computes with stored values, as documents do.
        let mut part = dataset.select().raw().statistics(self.statistics).parallel(self.parallel);
        for (axis, [start, stop, step]) in self.slices.into_iter().enumerate() {
            part = part.isel(axis, start..stop)?.step(axis, step)?;
        }
        if let Some((axis, label)) = &self.label {
            part = part.with_labels(*axis, |other| other == label)?;
        }
        for (key, number) in &self.filter {
            part = part.filter(comparison(key, number)?);
        }
        if let Some(budget) = self.budget {
            part = part.memory_budget(budget);
        }
        let ops = self.ops.iter().map(|key| operation(key)).collect::<Result<Vec<_>, _>>()?;
        let mut reduce = part.reduce(ops).over(self.axes);
        for axis in self.groups {
            reduce = reduce.group_by(Group::labels(axis, str::to_owned));
        }
        if let Some((axis, size, step, min_count)) = self.window {
            let window =
                if step == 0 { Window::bins(axis, size) } else { Window::rolling(axis, size).step(step) };
            reduce = reduce.window(window.min_count(min_count));
        }
        let results = reduce.run_all()?.into_iter().map(|result| {
            let tensor = &result.tensor;
            json!([result.elements, tensor.shape()[..], tensor.dtype().to_string(), hex(tensor.bytes())])
        });
        Ok(json!({ "results": results.collect::<Vec<_>>() }))
    }
}

fn comparison(key: &str, number: &str) -> Result<Comparison, Failure> {
    let whole = number.parse().map(Scalar::Whole);
    let scalar = whole.or_else(|_| number.parse().map(Scalar::Float))?;
    Ok(match key {
        "eq" => Comparison::Eq(scalar),
        "ne" => Comparison::Ne(scalar),
        "lt" => Comparison::Lt(scalar),
        "le" => Comparison::Le(scalar),
        "gt" => Comparison::Gt(scalar),
        "ge" => Comparison::Ge(scalar),
        "is_null" => Comparison::IsNull,
        "is_not_null" => Comparison::IsNotNull,
        _ => return Err(format!("unknown comparison `{key}`").into()),
    })
}

fn operation(key: &str) -> Result<Op, Failure> {
    let all = [
        Op::Sum,
        Op::Mean,
        Op::Min,
        Op::Max,
        Op::Count,
        Op::Var,
        Op::Std,
        Op::Product,
        Op::NormL1,
        Op::NormL2,
        Op::AllFinite,
        Op::AnyNan,
        Op::AnyInf,
        Op::NanCount,
        Op::InfCount,
        Op::NanMean,
        Op::NanStd,
        Op::ArgMin,
        Op::ArgMax,
        Op::Median,
    ];
    let found = all.into_iter().find(|op| op.key() == key);
    found.ok_or_else(|| format!("unknown operation `{key}`").into())
}

/// Reads the first dataset of a file.
#[derive(Deserialize)]
struct ReadRequest {
    path: String,
}

impl ReadRequest {
    fn run(self) -> Result<Value, Failure> {
        let file = File::open(self.path.as_str())?;
        let dataset = file.datasets().next().ok_or("no dataset")?;
        let values = dataset.read_all()?;
        let labels: Vec<_> = (0..dataset.shape().len()).map(|axis| dataset.labels(axis)).collect();
        Ok(json!({
            "name": dataset.name(),
            "dtype": dataset.dtype().map(DType::short_name),
            "shape": dataset.shape(),
            "labels": labels,
            "values": hex(values.bytes()),
        }))
    }
}
