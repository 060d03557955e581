//! `.tet` files: datasets, values, coordinates, chunks.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use axum::http::HeaderName;
use schemars::JsonSchema;
use serde::Serialize;
use tercet::core::tensor::IndexSlice;
use tercet::plot::{self, Colormap, ImageOptions};
use tercet::raster::{self, Raster, axis_standard};
use tercet::tet::{
    CoordinateValues, Coordinates, Dataset, File, IntegrityStatus, LabelSelection, Op, PositionRange, Select,
    Stats,
};
use tercet::{Container, convert};

use super::{cached, opened, wrong_format};
use crate::catalog::{ChunkCheck, Entry, Opened};
use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::reply::{BYTES, Reply, Shortest};

/// The maximum number of chunks that are verified by a request.
const MAX_VERIFIED: u64 = 1000;

/// The header of values that are described in it.
pub(crate) const ARRAY: HeaderName = HeaderName::from_static("tercet-array");

const DATASET: Parameter = Parameter::text("dataset", "The name of the dataset").in_path();
const ISEL: Parameter =
    Parameter::text("isel", "Select by position: `AXIS=5`, `AXIS=0..24`, `AXIS=0:24:6`").repeated();

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/tet/{id}",
        tag: "arrays",
        summary: "Datasets, axes and attributes of a .tet file",
        parameters: &[Parameter::id()],
        run: Run::Work,
        content: &[Content::json::<FileJson>()],
        handler: describe,
    },
    Endpoint {
        path: "/api/tet/{id}/{dataset}",
        tag: "arrays",
        summary: "Values or reductions of a dataset",
        parameters: &[
            Parameter::id(),
            DATASET,
            ISEL,
            Parameter::text("sel", "Select by coordinate: `AXIS=850`, `AXIS=60..30`, `AXIS=~52.3`")
                .repeated(),
            Parameter::list("op", "Reductions: mean, min, max, sum, std, var, count, median, …"),
            Parameter::list("over", "The reduced axes [default: all]"),
            Parameter::flag("raw", "Stored values, not decoded by the CF conventions"),
            FORMAT,
            MAX,
            COLORMAP,
            Parameter::number("vmin", "Lower end of the colours"),
            Parameter::number("vmax", "Upper end of the colours"),
            Parameter::list("stretch", "Two percentiles as the ends of the colours [default: 0,100]"),
            Parameter::integer("width", 1, 8192, "Width of an image in pixels"),
            Parameter::integer("height", 1, 8192, "Height of an image in pixels"),
            Parameter::flag("axes", "Whether an image has axes [default: true]"),
        ],
        run: Run::Work,
        content: &[
            Content::json::<serde_json::Value>(),
            Content::other("application/octet-stream"),
            Content::other(super::arrow::STREAM),
            Content::other("image/png"),
        ],
        handler: values,
    },
    Endpoint {
        path: "/api/tet/{id}/{dataset}/coords/{axis}",
        tag: "arrays",
        summary: "Coordinates of an axis",
        parameters: &[
            Parameter::id(),
            DATASET,
            Parameter::text("axis", "The name or the number of the axis").in_path(),
            Parameter::integer("offset", 0, u64::MAX, "Positions to skip"),
            Parameter::integer("limit", 0, 1_000_000, "Maximum number of positions [default: 100000]"),
        ],
        run: Run::Work,
        content: &[Content::json::<CoordsJson>()],
        handler: coords,
    },
    Endpoint {
        path: "/api/tet/{id}/{dataset}/chunks",
        tag: "arrays",
        summary: "Chunks of a dataset: place, size, statistics, checksum state",
        parameters: &[
            Parameter::id(),
            DATASET,
            ISEL,
            Parameter::integer("offset", 0, u64::MAX, "Chunks to skip"),
            Parameter::integer(
                "limit",
                0,
                100_000,
                "Maximum number of chunks [default: 10000; 1000 with verify]",
            ),
            Parameter::flag("verify", "Read the chunks and compare their checksums"),
        ],
        run: Run::Work,
        content: &[Content::json::<ChunksJson>()],
        handler: chunks,
    },
];

pub(super) const FORMAT: Parameter =
    Parameter::one_of("format", &["json", "npy", "arrow", "f32", "png"], "Media type [default: json]");
pub(super) const MAX: Parameter =
    Parameter::list("max", "f32 and png: maximum number of values on each axis, reduced to block means");
pub(super) const COLORMAP: Parameter = Parameter::one_of(
    "colormap",
    &["viridis", "plasma", "inferno", "magma", "cividis", "turbo", "greys", "blues", "coolwarm"],
    "Colours [default: viridis]",
);

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TetFile")]
struct FileJson {
    id: String,
    path: String,
    version: String,
    file_len: u64,
    /// `checked`, `partial`, `absent`, `unknown` or `ignored`.
    protection: &'static str,
    attrs: BTreeMap<String, serde_json::Value>,
    history: serde_json::Value,
    datasets: Vec<DatasetJson>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Dataset")]
struct DatasetJson {
    name: String,
    dtype: Option<&'static str>,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    /// The number of chunks on each axis.
    chunk_counts: Vec<u64>,
    chunks: Option<u64>,
    raw_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    attrs: BTreeMap<String, String>,
    units: Option<String>,
    long_name: Option<String>,
    encoding: Option<serde_json::Value>,
    packed: bool,
    fill: Option<f64>,
    axes: Vec<AxisJson>,
    /// The axes of latitudes and longitudes.
    map: Option<MapJson>,
    is_coordinate: bool,
    problem: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MapAxes")]
pub(super) struct MapJson {
    pub(super) lat: usize,
    pub(super) lon: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Axis")]
struct AxisJson {
    name: Option<String>,
    index: usize,
    size: u64,
    /// Where the coordinates are.
    #[schemars(extend("enum" = ["labels", "dataset", null]))]
    coordinates: Option<&'static str>,
    #[schemars(extend("enum" = ["numbers", "times", "strings", null]))]
    kind: Option<&'static str>,
    units: Option<String>,
    /// What the axis is by the CF conventions.
    #[schemars(extend("enum" = ["lat", "lon", "time", "vertical", null]))]
    standard: Option<&'static str>,
    first: Option<serde_json::Value>,
    last: Option<serde_json::Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Coordinates")]
struct CoordsJson {
    axis: String,
    index: usize,
    size: u64,
    #[schemars(extend("enum" = ["numbers", "times", "strings", null]))]
    kind: Option<&'static str>,
    #[schemars(extend("enum" = ["labels", "dataset", null]))]
    source: Option<&'static str>,
    units: Option<String>,
    offset: usize,
    values: Vec<serde_json::Value>,
    epoch_seconds: Option<Vec<f64>>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "ChunkTable")]
struct ChunksJson {
    dataset: String,
    chunk_shape: Vec<u64>,
    counts: Vec<u64>,
    /// The number of chunks of the dataset.
    total: u64,
    /// The number of chunks that match.
    listed: u64,
    offset: u64,
    number: Vec<u64>,
    coords: Vec<Vec<u64>>,
    offset_bytes: Vec<Option<u64>>,
    stored_bytes: Vec<Option<u64>>,
    raw_bytes: Vec<u64>,
    codec: Vec<Option<&'static str>>,
    #[schemars(extend("items" = super::checksum_state()))]
    state: Vec<&'static str>,
    min: Vec<Option<Shortest<f64>>>,
    max: Vec<Option<Shortest<f64>>>,
    missing: Vec<Option<u64>>,
    errors: Vec<Option<String>>,
}

/// The open `.tet` file that the path names.
fn tet(call: &Call<'_>) -> Result<(Arc<Entry>, Arc<Opened>, File), Failure> {
    let (entry, opened) = opened(call)?;
    match &opened.container {
        Container::Tet(file) => {
            let file = file.clone();
            Ok((entry, opened, file))
        }
        _ => Err(wrong_format(&entry, "a .tet file")),
    }
}

fn dataset<'f>(call: &Call<'_>, file: &'f File) -> Result<Dataset<'f>, Failure> {
    file.dataset(call.params.path("dataset")).map_err(|error| {
        let mut failure = Failure::from(error);
        failure.status = axum::http::StatusCode::NOT_FOUND;
        failure.code = "not_found";
        failure
    })
}

fn describe(call: &Call<'_>) -> Result<Reply, Failure> {
    let (entry, opened, file) = tet(call)?;
    cached(call, &opened.stamp, || {
        let mut stored: HashMap<u64, u64> = HashMap::new();
        file.for_each_row(|_, row| *stored.entry(row.dataset_id).or_default() += row.stored_byte_len)?;
        call.work.check_deadline()?;
        // Coordinates of one name and length are the same.
        let mut known = HashMap::new();
        let names: Vec<&str> = file.datasets().flat_map(axis_names).collect();
        let mut datasets = Vec::new();
        for dataset in file.datasets() {
            call.work.check_deadline()?;
            let mut json = describe_dataset(&dataset, &mut known);
            json.stored_bytes = Some(stored.get(&(dataset.id() as u64)).copied().unwrap_or(0));
            json.is_coordinate = dataset.shape().len() == 1 && names.contains(&dataset.name());
            datasets.push(json);
        }
        let attrs = file.metadata().map(|metadata| {
            metadata.file.attrs().map(|(key, value)| (key.to_owned(), attr_json(&value))).collect()
        });
        Ok(Reply::json(&FileJson {
            id: entry.id.clone(),
            path: entry.path.clone(),
            version: opened.stamp.version(),
            file_len: file.len(),
            protection: match file.integrity_status() {
                IntegrityStatus::Checked { .. } => "checked",
                IntegrityStatus::Partial { .. } => "partial",
                IntegrityStatus::Absent => "absent",
                IntegrityStatus::Ignored => "ignored",
                IntegrityStatus::Unknown => "unknown",
            },
            attrs: attrs.unwrap_or_default(),
            history: serde_json::to_value(file.history()).unwrap_or_default(),
            datasets,
        }))
    })
}

/// An attribute of the file: a string, or what its text is as JSON.
fn attr_json(value: &tercet::tet::AttrValue) -> serde_json::Value {
    let text = || value.text().into();
    match value.kind() {
        tercet::tet::AttrType::String => text(),
        _ => serde_json::from_str(value.text()).unwrap_or_else(|_| text()),
    }
}

fn axis_names(dataset: Dataset<'_>) -> Vec<&str> {
    (0..dataset.shape().len()).filter_map(|axis| dataset.axis_name(axis)).collect()
}

/// Coordinates by name and length of the axis, if they are those of a dataset.
type KnownCoordinates = HashMap<(String, u64), Option<Coordinates>>;

fn describe_dataset(dataset: &Dataset<'_>, known: &mut KnownCoordinates) -> DatasetJson {
    let attrs = dataset.info().map(|info| info.attrs.clone()).unwrap_or_default();
    let attr = |name: &str| attrs.get(name).cloned();
    let mut json = DatasetJson {
        name: dataset.name().to_owned(),
        dtype: dataset.dtype().map(tercet::core::DType::name),
        shape: dataset.shape().to_vec(),
        chunk_shape: dataset.chunk_shape().to_vec(),
        units: attr("units"),
        long_name: attr("long_name"),
        ..DatasetJson::default()
    };
    match dataset.grid() {
        Ok(grid) => {
            json.chunk_counts = grid.counts().to_vec();
            json.chunks = Some(grid.chunk_count());
            json.raw_bytes = Some(grid.bytes());
        }
        Err(error) => json.problem = Some(error.to_string()),
    }
    match dataset.cf_encoding() {
        Ok(encoding) => {
            json.packed = encoding.is_packed();
            json.fill = encoding.missing_values.first().map(|fill| fill.to_f64());
            json.encoding =
                (!encoding.is_empty()).then(|| serde_json::to_value(&encoding).unwrap_or_default());
        }
        Err(error) => json.problem = Some(error.to_string()),
    }
    json.attrs = attrs;
    json.axes = (0..dataset.shape().len()).map(|axis| describe_axis(dataset, axis, known)).collect();
    let of = |standard| json.axes.iter().position(|axis| axis.standard == Some(standard));
    json.map = of("lat").zip(of("lon")).map(|(lat, lon)| MapJson { lat, lon });
    json
}

fn describe_axis(dataset: &Dataset<'_>, axis: usize, known: &mut KnownCoordinates) -> AxisJson {
    let name = dataset.axis_name(axis).map(str::to_owned);
    let size = dataset.shape()[axis];
    let is_labelled = dataset.labels(axis).is_some();
    // Damaged coordinates are shown as missing; positions can be selected without them.
    let read = || dataset.readable_coordinates(axis).ok().flatten().filter(|found| !found.is_empty());
    let coordinates = match &name {
        Some(name) if !is_labelled => known.entry((name.clone(), size)).or_insert_with(read).clone(),
        _ => read(),
    };
    let kind = coordinates.as_ref().map(kind);
    let units = coordinates.as_ref().and_then(|coordinates| coordinates.units.clone());
    let source = if is_labelled { "labels" } else { "dataset" };
    AxisJson {
        standard: axis_standard(name.as_deref().unwrap_or(""), units.as_deref(), kind == Some("times")),
        name,
        index: axis,
        size,
        coordinates: kind.map(|_| source),
        kind,
        units,
        first: coordinates.as_ref().map(|coordinates| value(coordinates, 0)),
        last: coordinates.as_ref().map(|coordinates| value(coordinates, coordinates.len() - 1)),
    }
}

fn kind(coordinates: &Coordinates) -> &'static str {
    match coordinates.values {
        CoordinateValues::Numbers(_) => "numbers",
        CoordinateValues::Times(_) => "times",
        _ => "strings",
    }
}

/// A coordinate: a number with its stored digits, or a string.
fn value(coordinates: &Coordinates, at: usize) -> serde_json::Value {
    let text = coordinates.text(at);
    match &coordinates.values {
        CoordinateValues::Numbers(numbers) => {
            let number = text.parse().ok().and_then(serde_json::Number::from_f64);
            number
                .or_else(|| serde_json::Number::from_f64(numbers[at]))
                .map_or(serde_json::Value::Null, Into::into)
        }
        _ => text.into(),
    }
}

fn coords(call: &Call<'_>) -> Result<Reply, Failure> {
    let (_, opened, file) = tet(call)?;
    cached(call, &opened.stamp, || {
        let dataset = dataset(call, &file)?;
        let axis = axis(&dataset, call.params.path("axis"))?;
        let coordinates = dataset.coordinates(axis)?;
        let offset = call.params.number("offset").unwrap_or(0);
        let limit = call.params.number("limit").unwrap_or(100_000);
        let end = |len: usize| len.min(usize::saturating_add(offset, limit));
        let mut json = CoordsJson {
            axis: dataset.axis_name(axis).map_or_else(|| axis.to_string(), str::to_owned),
            index: axis,
            size: dataset.shape()[axis],
            kind: coordinates.as_ref().map(kind),
            source: coordinates
                .as_ref()
                .map(|_| if dataset.labels(axis).is_some() { "labels" } else { "dataset" }),
            units: coordinates.as_ref().and_then(|coordinates| coordinates.units.clone()),
            offset,
            values: Vec::new(),
            epoch_seconds: None,
        };
        if let Some(coordinates) = &coordinates {
            let range = offset.min(coordinates.len())..end(coordinates.len());
            json.values = range.clone().map(|at| value(coordinates, at)).collect();
            json.epoch_seconds = coordinates.epoch_seconds().map(|(seconds, ..)| seconds[range].to_vec());
        }
        Ok(Reply::json(&json))
    })
}

fn axis(dataset: &Dataset<'_>, name: &str) -> Result<usize, Failure> {
    dataset.axis(name).map_err(|error| {
        let mut failure = Failure::from(error);
        failure.status = axum::http::StatusCode::NOT_FOUND;
        failure.code = "not_found";
        failure
    })
}

/// The part of a parameter before and after `=`.
pub(super) fn split<'a>(parameter: &'static str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let parts = text.split_once('=').map(|(axis, value)| (axis.trim(), value.trim()));
    parts.filter(|(axis, value)| !axis.is_empty() && !value.is_empty()).ok_or_else(|| {
        Failure::request(format!("`{parameter}` must be AXIS=VALUE, not `{}`", crate::catalog::shown(text)))
    })
}

/// The selected part of a dataset. Axes of which one position is selected are not dimensions of results.
fn select<'f>(call: &Call<'f>, dataset: Dataset<'f>) -> Result<Select<'f>, Failure> {
    let mut select = dataset.select().with_progress(call.work);
    let mut given = Vec::new();
    for (parameter, text) in call
        .params
        .all("isel")
        .map(|text| ("isel", text))
        .chain(call.params.all("sel").map(|text| ("sel", text)))
    {
        let (name, selected) = split(parameter, text)?;
        let axis = dataset.axis(name)?;
        if given.contains(&axis) {
            return Err(twice(name));
        }
        given.push(axis);
        select = if parameter == "isel" {
            let range = PositionRange::parse(selected).ok_or_else(|| {
                let message = format!("`isel`: invalid positions `{}`", crate::catalog::shown(selected));
                Failure::request(message).with_hint("write `time=5`, `time=0..24`, `time=-1` or `time=::2`")
            })?;
            select.isel(axis, range)?
        } else {
            let labels = match select.coordinates(axis)? {
                Some(coordinates) => coordinates.parse_selection(selected),
                None => LabelSelection::parse(selected),
            };
            select.sel(axis, labels)?
        };
    }
    Ok(if call.params.flag("raw") { select.raw() } else { select })
}

fn twice(axis: &str) -> Failure {
    Failure::request(format!("axis `{}` is selected twice", crate::catalog::shown(axis)))
}

fn ops(call: &Call<'_>) -> Result<Vec<Op>, Failure> {
    let mut ops: Vec<Op> = Vec::new();
    for name in call.params.list("op") {
        let op: Op = name.parse().map_err(|unknown: tercet::tet::UnknownOp| {
            let failure = Failure::request(unknown.to_string());
            match unknown.nearest {
                Some(nearest) => failure.with_hint(format!("did you mean `{nearest}`?")),
                None => failure,
            }
        })?;
        if !ops.contains(&op) {
            ops.push(op);
        }
    }
    Ok(ops)
}

fn values(call: &Call<'_>) -> Result<Reply, Failure> {
    let (_, opened, file) = tet(call)?;
    cached(call, &opened.stamp, || {
        let dataset = dataset(call, &file)?;
        let select = select(call, dataset)?;
        let ops = ops(call)?;
        let format = call.params.get("format").unwrap_or("json");
        let raw = call.params.flag("raw");
        if ops.is_empty() && call.params.get("over").is_some() {
            return Err(Failure::request("`over` needs a reduction: `op`"));
        }
        if matches!(format, "f32" | "png") && (raw || !ops.is_empty()) {
            return Err(Failure::request(format!(
                "`{format}` is for decoded values, without `op` and `raw`"
            )));
        }
        match format {
            "f32" => f32_reply(call, &raster(call, &select)?, &dataset, unit(&dataset)),
            "png" => png(call, &select),
            "npy" if ops.is_empty() => {
                limit(call, &select.shape())?;
                let results = select.results(!raw)?;
                npy(&results)
            }
            "npy" => npy(&reduced(call, &select, ops)?),
            "arrow" if ops.is_empty() => {
                limit(call, &select.shape())?;
                super::arrow::results(&select.results(!raw)?)
            }
            "arrow" => super::arrow::results(&reduced(call, &select, ops)?),
            _ if ops.is_empty() => {
                limit(call, &select.shape())?;
                Ok(Reply::json(&select.results(!raw)?))
            }
            _ => Ok(Reply::json(&reduced(call, &select, ops)?)),
        }
    })
}

/// Fails if a result has too many values.
pub(super) fn limit(call: &Call<'_>, shape: &[u64]) -> Result<(), Failure> {
    let most = call.state.options.max_values;
    let values = shape.iter().copied().fold(1u64, u64::saturating_mul);
    if values <= most {
        return Ok(());
    }
    let failure =
        Failure::request(format!("the selection has {values} values, and a response at most {most}"));
    Err(failure.with_hint("select a part with `isel`, or reduce it with `op` or `max`"))
}

fn reduced(call: &Call<'_>, select: &Select<'_>, ops: Vec<Op>) -> Result<tercet::tet::Results, Failure> {
    let dataset = select.dataset();
    let axes =
        call.params.list("over").into_iter().map(|name| dataset.axis(name)).collect::<Result<Vec<_>, _>>()?;
    let request = select.reduce(ops).over(axes).with_shared_bins()?.request()?;
    let shape: Vec<u64> = request.dims().iter().map(|dim| dim.len).collect();
    limit(call, &shape)?;
    Ok(request.results(call.work)?)
}

fn npy(results: &tercet::tet::Results) -> Result<Reply, Failure> {
    let sink = std::io::Cursor::new(Vec::new());
    let npy = convert::write_results(results, convert::ResultFormat::Npy, sink, "response");
    Ok(Reply::bytes(BYTES, npy.map_err(|error| Failure::from_error(&error))?))
}

fn unit(dataset: &Dataset<'_>) -> Option<String> {
    dataset.info()?.attrs.get("units").cloned()
}

/// The limits of `max`, for each of the last two axes.
pub(super) fn most(call: &Call<'_>, rank: usize) -> Result<Vec<u64>, Failure> {
    let given = call.params.list("max");
    let number = |text: &str| text.parse::<u64>().ok().filter(|&most| (1..=8192).contains(&most));
    let invalid = || Failure::request("`max` must be one or two integers from 1 to 8192");
    let limits: Vec<u64> =
        given.iter().map(|text| number(text).ok_or_else(invalid)).collect::<Result<_, _>>()?;
    let mut most = vec![u64::MAX; rank];
    match (limits[..].len(), &limits[..]) {
        (0, _) => {}
        (1, [limit]) => most.iter_mut().rev().take(2).for_each(|most| *most = *limit),
        (2, [rows, columns]) => {
            most.iter_mut().rev().zip([columns, rows]).for_each(|(most, limit)| *most = *limit);
        }
        _ => return Err(invalid()),
    }
    Ok(most)
}

fn raster(call: &Call<'_>, select: &Select<'_>) -> Result<Raster, Failure> {
    let shape = select.shape();
    let most = most(call, shape.len())?;
    let reduced: Vec<u64> = shape.iter().zip(&most).map(|(extent, most)| *extent.min(most)).collect();
    limit(call, &reduced)?;
    let raster = Raster::from_tet(select, &most)?;
    call.work.check_deadline()?;
    Ok(raster)
}

#[derive(Debug, Serialize)]
struct ArrayJson<'a> {
    dataset: &'a str,
    dims: &'a [String],
    shape: &'a [u64],
    selected: &'a [u64],
    units: Option<String>,
    count: u64,
    missing: u64,
    infinite: u64,
    min: Option<Shortest<f32>>,
    max: Option<Shortest<f32>>,
    p2: Option<Shortest<f32>>,
    p98: Option<Shortest<f32>>,
    exact: bool,
}

fn f32_reply(
    call: &Call<'_>,
    raster: &Raster,
    dataset: &Dataset<'_>,
    units: Option<String>,
) -> Result<Reply, Failure> {
    raster_reply(call, raster, dataset.name(), units)
}

/// Values as little-endian floats, described in a header.
pub(super) fn raster_reply(
    call: &Call<'_>,
    raster: &Raster,
    name: &str,
    units: Option<String>,
) -> Result<Reply, Failure> {
    let (range, middle) = (raster.range(), raster.percentiles(2.0, 98.0));
    call.work.check_deadline()?;
    let json = ArrayJson {
        dataset: name,
        dims: &raster.dims,
        shape: &raster.shape,
        selected: &raster.selected,
        units,
        count: raster.count,
        missing: raster.missing,
        infinite: raster.infinite,
        min: range.map(|range| Shortest(range.0)),
        max: range.map(|range| Shortest(range.1)),
        p2: middle.map(|range| Shortest(range.0)),
        p98: middle.map(|range| Shortest(range.1)),
        exact: raster.is_exact,
    };
    let text = serde_json::to_string(&json).unwrap_or_default();
    Ok(Reply::bytes(BYTES, raster.to_bytes()).with_header(ARRAY, &ascii(&text)))
}

/// JSON in ASCII.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (' '..='~').contains(&c) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// The ends of the colours.
pub(super) fn color_range(call: &Call<'_>, raster: &Raster) -> Result<Option<(f32, f32)>, Failure> {
    #[expect(clippy::cast_possible_truncation, reason = "colours")]
    let given = |name| call.params.number::<f64>(name).map(|value| value as f32);
    let stretch = call.params.list("stretch");
    let percent = |text: &str| text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    let found = match stretch[..] {
        [] => raster.range(),
        [low, high] => match percent(low).zip(percent(high)).filter(|(low, high)| low < high) {
            Some((low, high)) => raster.percentiles(low, high),
            None => return Err(Failure::request("`stretch` must be two percentiles: `2,98`")),
        },
        _ => return Err(Failure::request("`stretch` must be two percentiles: `2,98`")),
    };
    let (low, high) = (given("vmin"), given("vmax"));
    Ok(match (low, high, found) {
        (Some(low), Some(high), _) => Some((low, high)),
        (low, high, Some(found)) => Some((low.unwrap_or(found.0), high.unwrap_or(found.1))),
        _ => None,
    })
}

pub(super) fn colormap(call: &Call<'_>) -> Colormap {
    let name = call.params.get("colormap").unwrap_or("viridis");
    Colormap::ALL.into_iter().find(|map| map.name() == name).unwrap_or_default()
}

pub(super) fn png_reply(call: &Call<'_>, raster: &Raster) -> Result<Reply, Failure> {
    let range = color_range(call, raster)?;
    let Some(image) = raster.to_png(colormap(call), range) else {
        let failure = Failure::request("an image has one or two dimensions");
        return Err(failure.with_hint("select one position of the other axes with `isel`"));
    };
    let image = image.map_err(|error| Failure::request(error.to_string()))?;
    Ok(Reply::bytes("image/png", image))
}

fn png(call: &Call<'_>, select: &Select<'_>) -> Result<Reply, Failure> {
    let size = |name| call.params.number::<usize>(name);
    if !call.params.flag_or("axes", true) {
        let shape = select.shape();
        let mut most = most(call, shape.len())?;
        let sizes = [size("width"), size("height")];
        for (most, size) in most.iter_mut().rev().zip(sizes) {
            *most = (*most).min(size.map_or(u64::MAX, |size| size as u64));
        }
        let reduced: Vec<u64> = shape.iter().zip(&most).map(|(extent, most)| *extent.min(most)).collect();
        limit(call, &reduced)?;
        let raster = Raster::from_tet(select, &most)?;
        call.work.check_deadline()?;
        return png_reply(call, &raster);
    }
    let width = size("width").unwrap_or(1000);
    let plot = plot::from_tet(select, (width as u64).clamp(16, 2048)).map_err(|error| match error {
        plot::PlotError::Tet(error) => Failure::from(*error),
        other => Failure::request(other.to_string()),
    })?;
    call.work.check_deadline()?;
    let range = call.params.number::<f64>("vmin").zip(call.params.number::<f64>("vmax"));
    if range.is_some_and(|(low, high)| low >= high) {
        return Err(Failure::request("`vmin` must be less than `vmax`"));
    }
    let options =
        ImageOptions::default().with_width(width).with_height(size("height")).with_colormap(colormap(call));
    let image = plot.with_range(range).to_image(&options).to_png();
    Ok(Reply::bytes("image/png", image.map_err(|error| Failure::request(error.to_string()))?))
}

fn chunks(call: &Call<'_>) -> Result<Reply, Failure> {
    let (_, opened, file) = tet(call)?;
    let dataset = dataset(call, &file)?;
    let grid = dataset.grid()?;
    let verify = call.params.flag("verify");
    let (offset, most) =
        (call.params.number("offset").unwrap_or(0), if verify { MAX_VERIFIED } else { 10_000 });
    let limit: u64 = call.params.number("limit").unwrap_or(most);
    if verify && limit > MAX_VERIFIED {
        return Err(Failure::request(format!("`limit` must be at most {MAX_VERIFIED} with `verify`")));
    }
    let mut json = ChunksJson {
        dataset: dataset.name().to_owned(),
        chunk_shape: grid.chunk_shape().to_vec(),
        counts: grid.counts().to_vec(),
        total: grid.chunk_count(),
        offset,
        ..ChunksJson::default()
    };
    let ranges = ranges(call, &dataset)?;
    json.listed = ranges.iter().fold(1u64, |product, range| product.saturating_mul(range.end - range.start));
    let has_checksums = matches!(file.integrity_status(), IntegrityStatus::Checked { .. });
    let whole = opened.verified();
    for position in offset..json.listed.min(offset.saturating_add(limit)) {
        call.work.check_deadline()?;
        let (mut rest, mut coords) = (position, vec![0; ranges.len()]);
        for (axis, range) in ranges.iter().enumerate().rev() {
            let extent = range.end - range.start;
            coords[axis] = range.start + rest % extent;
            rest /= extent;
        }
        let number = grid.linear(&coords).unwrap_or(0);
        let found = dataset.chunk_ref(&coords);
        if verify && found.is_ok() {
            let check = match dataset.chunk(&coords) {
                Ok(_) => ChunkCheck::Ok,
                Err(error) => ChunkCheck::Damaged(error.to_string()),
            };
            opened.set_chunk(dataset.id(), number, check);
        }
        let check = opened.chunk(dataset.id(), number);
        let (state, error) = match (&found, check) {
            (Err(error), _) => ("missing", Some(error.to_string())),
            (_, Some(ChunkCheck::Damaged(error))) => ("damaged", Some(error)),
            (Ok(_), _) if !has_checksums => ("unprotected", None),
            (_, Some(ChunkCheck::Ok)) => ("ok", None),
            (Ok(chunk), None) => match &whole {
                Some((_, damaged)) if damaged.iter().any(|span| overlap(*span, chunk.span)) => {
                    ("damaged", None)
                }
                Some((true, _)) => ("ok", None),
                _ => ("unverified", None),
            },
        };
        let stats = dataset.chunk_stats(&coords).ok().flatten();
        let range = stats.as_ref().and_then(range_of);
        json.number.push(number);
        json.raw_bytes.push(grid.chunk_bytes_at(&coords));
        json.coords.push(coords);
        json.offset_bytes.push(found.as_ref().ok().map(|chunk| chunk.span.start()));
        json.stored_bytes.push(found.as_ref().ok().map(|chunk| chunk.span.len()));
        json.codec.push(found.as_ref().ok().map(|chunk| codec(chunk.codec)));
        json.state.push(state);
        json.errors.push(error.map(|error| call.state.catalog.without_root(&error)));
        json.min.push(range.map(|range| Shortest(range.0)));
        json.max.push(range.map(|range| Shortest(range.1)));
        json.missing.push(stats.map(|stats| stats.nan_count));
    }
    Ok(Reply::json(&json))
}

fn codec(codec: tercet::tet::Codec) -> &'static str {
    match codec {
        tercet::tet::Codec::Raw => "raw",
        tercet::tet::Codec::Zstd => "zstd",
    }
}

fn overlap(one: tercet::core::Span, other: tercet::core::Span) -> bool {
    one.start() < other.end() && other.start() < one.end()
}

/// Min and max of a chunk, as they are stored.
#[expect(clippy::cast_precision_loss, reason = "for display")]
fn range_of(stats: &Stats) -> Option<(f64, f64)> {
    let (low, high) = match stats.range {
        tercet::tet::Range::Signed { min, max, .. } => (min as f64, max as f64),
        tercet::tet::Range::Unsigned { min, max, .. } => (min as f64, max as f64),
        tercet::tet::Range::Float { min, max, .. } => (min, max),
    };
    (low <= high && stats.nan_count < stats.count).then_some((low, high))
}

/// The chunks of a selection, on each axis.
fn ranges(call: &Call<'_>, dataset: &Dataset<'_>) -> Result<Vec<std::ops::Range<u64>>, Failure> {
    let grid = dataset.grid()?;
    let mut ranges: Vec<_> = grid.counts().iter().map(|&count| 0..count).collect();
    let mut given = Vec::new();
    for text in call.params.all("isel") {
        let (name, positions) = split("isel", text)?;
        let axis = dataset.axis(name)?;
        if given.contains(&axis) {
            return Err(twice(name));
        }
        given.push(axis);
        let slice = IndexSlice::parse(&positions.replace("..", ":")).ok_or_else(|| {
            Failure::request(format!("`isel`: invalid positions `{}`", crate::catalog::shown(positions)))
        })?;
        let (slice, _) = raster::positions(&slice, axis, dataset.shape()[axis])
            .map_err(|error| Failure::request(error.to_string()))?;
        let chunk = grid.chunk_shape()[axis].max(1);
        ranges[axis] = slice.start / chunk..slice.stop.div_ceil(chunk);
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_ascii() {
        assert_eq!(ascii("\"é𝄞\n\""), "\"\\u00e9\\ud834\\udd1e\\u000a\"");
        let text: String = serde_json::from_str(&ascii("\"é𝄞 °N\"")).unwrap();
        assert_eq!(text, "é𝄞 °N");
    }
}
