//! `.tet` files as a sink of variables.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tercet_codec::bytes::zstd::DEFAULT_LEVEL;
use tercet_core::publish::AtomicFile;
use tercet_core::{DType, Progress};
use tercet_tet::{
    AttrValue, Compression, DatasetId, HistoryRow, Layout, LayoutError, Metadata, Rounding, Writer,
    WriterOptions, unix_seconds,
};

use super::typed::{self, TYPED, VISIBLE_ATTRS};
use crate::arrays::source::refused;
use crate::arrays::{ArraySink, Attr, AttrData, Dim, Header, Values, Variable};
use crate::{Error, chunking};

/// Writes a `.tet` file.
#[derive(Debug)]
pub(crate) struct TetSink {
    writer: Writer<AtomicFile>,
    name: String,
    /// The dataset of each variable; labels have none.
    ids: Vec<Option<DatasetId>>,
}

/// A variable of the plan, as it is stored.
#[derive(Debug)]
pub(crate) struct TetVariable {
    /// The variable of the source.
    pub(crate) original: Variable,
    /// Whether chunks of the source are stored as they are.
    pub(crate) is_carried: bool,
    /// The labels of an axis, if the variable is stored as labels.
    pub(crate) labels: Option<Vec<String>>,
    /// The rounding of values.
    pub(crate) rounding: Option<Rounding>,
}

impl TetSink {
    /// Starts a file. `variables` describes each variable of the header; the dimensions are those of the source.
    pub(crate) fn create(
        path: &Path,
        (header, source_dims): (&Header, &[Dim]),
        variables: &[TetVariable],
        compression: Compression,
        origin: &str,
        overwrite: bool,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy().into_owned();
        let failed =
            |error: LayoutError| Error::from(tercet_tet::Error::new(name.as_str().into(), error.into()));
        let mut layout = Layout::new();
        let mut ids = Vec::new();
        for (variable, planned) in header.variables.iter().zip(variables) {
            if planned.labels.is_some() {
                ids.push(None);
                continue;
            }
            let dtype = variable.dtype().unwrap_or(DType::U8);
            let chunks = match &variable.chunks {
                Some(chunks) => chunks.clone(),
                None => chunking::default_chunk_shape(&variable.shape, variable.item_size()),
            };
            let id = layout.dataset(&variable.name, dtype, &variable.shape, chunks).map_err(failed)?;
            let compression = match compression {
                // Carried chunks are compressed already.
                Compression::Auto if planned.is_carried => Compression::Zstd { level: DEFAULT_LEVEL },
                other => other,
            };
            layout.compress(id, compression).map_err(failed)?;
            layout.dims(id, variable.dims.iter().map(String::as_str)).map_err(failed)?;
            for (dim_variable, labels) in header.variables.iter().zip(variables) {
                let Some(labels) = &labels.labels else { continue };
                if variable.dims.contains(&dim_variable.name) {
                    layout.labels(id, &dim_variable.name, labels.clone()).map_err(failed)?;
                }
            }
            ids.push(Some(id));
        }
        let visible = attributes(&mut layout, header, &ids);
        let metadata = metadata(&layout, (header, source_dims), variables, &ids, &visible);
        let metadata: Metadata =
            serde_json::from_value(metadata).map_err(|error| refused(&name, error.to_string()))?;
        layout.metadata(metadata).map_err(failed)?;
        for (planned, id) in variables.iter().zip(&ids) {
            if let (Some(rounding), Some(id)) = (planned.rounding, *id) {
                layout.round(id, rounding).map_err(failed)?;
            }
        }
        layout.history(HistoryRow::now("convert", origin)).map_err(failed)?;
        let options = WriterOptions::new().with_overwrite(overwrite);
        let writer = Writer::create(path, layout, options)?;
        Ok(Self { writer, name, ids })
    }
}

/// Sets the attributes that other programs see. Returns their names, for each variable.
fn attributes(layout: &mut Layout, header: &Header, ids: &[Option<DatasetId>]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (variable, id) in header.variables.iter().zip(ids) {
        let mut visible: Vec<String> = Vec::new();
        for attr in &variable.attrs {
            let Some(id) = *id else { continue };
            let text = typed::text(&attr.value);
            if visible.len() >= VISIBLE_ATTRS || !typed::is_visible(&attr.name, &text) {
                continue;
            }
            let value = match &attr.value {
                AttrData::Text(text) => AttrValue::from(text.as_str()),
                AttrData::Numbers(numbers) if !numbers.is_list => match numbers.dtype.element() {
                    Some(element) => {
                        AttrValue::number(&text, element).unwrap_or_else(|_| AttrValue::from(text.as_str()))
                    }
                    None => AttrValue::parse(&text).unwrap_or_else(|_| AttrValue::from(text.as_str())),
                },
                _ => AttrValue::parse(&text).unwrap_or_else(|_| AttrValue::from(text.as_str())),
            };
            // An attribute that does not follow the CF conventions is recorded only: queries would fail.
            if layout.set_attr(id, &attr.name, &value).is_ok() {
                visible.push(attr.name.clone());
            }
        }
        all.push(visible);
    }
    all
}

/// The metadata of the file with all records.
fn metadata(
    layout: &Layout,
    (header, source_dims): (&Header, &[Dim]),
    variables: &[TetVariable],
    ids: &[Option<DatasetId>],
    visible: &[Vec<String>],
) -> Value {
    let mut datasets = BTreeMap::new();
    for (((variable, planned), id), visible) in header.variables.iter().zip(variables).zip(ids).zip(visible) {
        let Some(id) = *id else { continue };
        let info = layout.dataset_info(id).and_then(|info| serde_json::to_value(info).ok());
        let mut info = info.unwrap_or_else(|| json!({}));
        let mut record = Map::new();
        let (before, after) = (planned.original.kind.to_string(), variable.kind.to_string());
        if before != after || planned.original.kind == crate::arrays::Kind::Char {
            record.insert("kind".to_owned(), before.into());
        }
        if planned.original.shape.is_empty() {
            record.insert("scalar".to_owned(), true.into());
        }
        if !variable.attrs.is_empty() {
            let is_visible = |name: &str| visible.iter().any(|found| found == name);
            record.insert("attrs".to_owned(), typed::records(&variable.attrs, is_visible));
        }
        if !record.is_empty() {
            info[TYPED] = Value::Object(record);
        }
        datasets.insert(variable.name.clone(), info);
    }
    let is_visible = |attr: &Attr| {
        typed::is_visible(&attr.name, &typed::text(&attr.value)) && !attr.value.to_json().is_null()
    };
    let shown: Map<String, Value> = header
        .attrs
        .iter()
        .filter(|attr| is_visible(attr))
        .take(VISIBLE_ATTRS)
        .map(|attr| (attr.name.clone(), attr.value.to_json()))
        .collect();
    let mut record = Map::new();
    if !header.attrs.is_empty() {
        record.insert("attrs".to_owned(), typed::records(&header.attrs, |name| shown.contains_key(name)));
    }
    // Without the axes that scalars and complex numbers have in this format only.
    let is_of_source = |dim: &&Dim| {
        source_dims.iter().any(|found| found.name == dim.name)
            || variables.iter().any(|variable| variable.original.dims.contains(&dim.name))
    };
    let of_source = header.dims.iter().filter(is_of_source);
    let dims: Vec<Value> = of_source.map(|dim| json!([dim.name, dim.len, dim.unlimited])).collect();
    if !dims.is_empty() {
        record.insert("dims".to_owned(), dims.into());
    }
    let mut file = json!({
        "tool": "tercet",
        "library_version": env!("CARGO_PKG_VERSION"),
        "created_at": unix_seconds().to_string(),
    });
    if !shown.is_empty() {
        file["attrs"] = Value::Object(shown);
    }
    if !record.is_empty() {
        file[TYPED] = Value::Object(record);
    }
    json!({ "file": file, "datasets": datasets })
}

impl ArraySink for TetSink {
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let Some(id) = self.ids[variable] else { return Ok(()) };
        let grid = self.writer.grid(id).clone();
        let (shape, chunk) = (grid.shape().to_vec(), grid.chunk_shape().to_vec());
        let carried = values.carried(&chunk);
        let stored = |coords: &[u64]| carried.map_or(Ok(None), |stored| stored(coords));
        values.each_block(&shape, grid.element().size(), &chunk, &mut |part, read| {
            let fill = |coords: &[u64], out: &mut [u8]| {
                let (start, extents) = part.window(coords);
                read(&start, &extents, out)
            };
            let numbers = (0..part.len()).map(|number| part.linear(number));
            self.writer.fill_chunks(id, numbers, stored, fill, progress)
        })
    }

    fn write_strings(&mut self, variable: usize, _strings: &[String]) -> Result<(), Error> {
        // Labels are part of the layout.
        match self.ids[variable] {
            None => Ok(()),
            Some(_) => Err(refused(&self.name, "a .tet file has no strings")),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.writer.finish()?;
        Ok(())
    }
}
