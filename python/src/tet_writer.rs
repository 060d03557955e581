//! Writing `.tet` files.

use std::io::Cursor;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value, json};
use tercet::core::TensorView;
use tercet::core::publish::AtomicFile;
use tercet::core::tensor::DType;
use tercet::tet::{
    AttrValue, ChunkEncoder, Compression, DatasetId, EncodedChunk, HistoryRow, Layout, LayoutError, Metadata,
    Rewrite, Rounding, Writer, WriterOptions, unix_seconds,
};

use crate::buffer::bytes;
use crate::error::{internal, request, to_py};
use crate::job;

/// Longer attributes are in the record only, and so are more attributes than this: other programs do not expect them.
const VISIBLE_BYTES: usize = 1024;
const VISIBLE_ATTRS: usize = 60;

/// The description of a dataset to be written.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NewDataset {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    dims: Option<Vec<String>>,
    labels: Vec<(String, Vec<String>)>,
    /// Name, text, and the type for the record of types. Without one, the text is stored as given.
    attrs: Vec<(String, String, Option<String>)>,
    /// A level of Zstandard. Without one and `raw`, compression is chosen from a sample.
    zstd: Option<i32>,
    raw: bool,
    max_error: Option<f64>,
    keep_bits: Option<u32>,
}

/// Sets the attributes of a dataset. Returns the records of their types, if they do not follow from the text.
fn attributes(layout: &mut Layout, id: DatasetId, dataset: &NewDataset) -> Result<Vec<Value>, LayoutError> {
    let fits = |text: &str| !text.is_empty() && text.len() <= VISIBLE_BYTES;
    let mut records = Vec::new();
    let (mut visible, mut is_plain) = (0, true);
    for (name, text, kind) in &dataset.attrs {
        let Some(kind) = kind else {
            layout.attr(id, name, text)?;
            continue;
        };
        let is_shown = visible < VISIBLE_ATTRS
            && fits(name)
            && fits(text)
            // An attribute that does not follow the CF conventions is recorded only: queries would fail.
            && layout.set_attr(id, name, &attr_value(kind, text)).is_ok();
        visible += usize::from(is_shown);
        is_plain &= is_shown && kind == "string";
        records.push(if is_shown {
            json!([name, kind, text])
        } else {
            json!([name, kind, text, "only here"])
        });
    }
    Ok(if is_plain { Vec::new() } else { records })
}

fn attr_value(kind: &str, text: &str) -> AttrValue {
    if kind == "string" {
        return text.into();
    }
    let element = kind.parse::<DType>().ok().and_then(DType::element);
    let value = element.map_or_else(|| AttrValue::parse(text), |element| AttrValue::number(text, element));
    value.unwrap_or_else(|_| text.into())
}

/// Adds members to the metadata of a new file: those given, and the records of attributes.
fn add_members(
    py: Python<'_>,
    layout: &mut Layout,
    (datasets, ids): (&[NewDataset], &[(DatasetId, DType)]),
    records: Vec<Vec<Value>>,
    given: &Value,
) -> PyResult<()> {
    let mut all = Map::new();
    for ((dataset, (id, _)), records) in datasets.iter().zip(ids).zip(records) {
        let info = layout.dataset_info(*id).map(serde_json::to_value);
        let mut info = info.transpose().map_err(internal)?.unwrap_or_else(|| json!({}));
        let members = given.get("datasets").and_then(|all| all.get(&dataset.name)).and_then(Value::as_object);
        for (key, member) in members.into_iter().flatten() {
            info[key] = member.clone();
        }
        if !records.is_empty() {
            info["typed"]["attrs"] = records.into();
        }
        if info.as_object().is_some_and(|info| !info.is_empty()) {
            all.insert(dataset.name.clone(), info);
        }
    }
    let file = given.get("file").cloned().unwrap_or_else(|| json!({}));
    let metadata: Metadata =
        serde_json::from_value(json!({ "file": file, "datasets": all })).map_err(internal)?;
    layout.metadata(metadata).map_err(|error| request(py, &error.to_string()))
}

/// Adds datasets to the layout of a file. `metadata` has members of that of a new file.
fn plan(
    py: Python<'_>,
    layout: &mut Layout,
    datasets: &[NewDataset],
    history: Vec<(String, String)>,
    metadata: Option<&Value>,
) -> PyResult<Vec<(DatasetId, DType)>> {
    let refuse = |error: LayoutError| request(py, &error.to_string());
    let mut ids = Vec::with_capacity(datasets.len());
    let mut records = Vec::with_capacity(datasets.len());
    for dataset in datasets {
        let dtype: DType = dataset
            .dtype
            .parse()
            .map_err(|_| request(py, &format!("unknown element type `{}`", dataset.dtype)))?;
        let id = layout
            .dataset(&dataset.name, dtype, dataset.shape.clone(), dataset.chunks.clone())
            .map_err(refuse)?;
        if let Some(dims) = &dataset.dims {
            layout.dims(id, dims.iter().map(String::as_str)).map_err(refuse)?;
        }
        for (axis, labels) in &dataset.labels {
            layout.labels(id, axis, labels.clone()).map_err(refuse)?;
        }
        records.push(attributes(layout, id, dataset).map_err(refuse)?);
        let compression = match dataset.zstd {
            Some(level) => Compression::Zstd { level },
            None if dataset.raw => Compression::None,
            None => Compression::Auto,
        };
        layout.compress(id, compression).map_err(refuse)?;
        if let Some(bound) = dataset.max_error {
            layout.round(id, Rounding::MaxError(bound)).map_err(refuse)?;
        } else if let Some(bits) = dataset.keep_bits {
            layout.round(id, Rounding::KeepBits(bits)).map_err(refuse)?;
        }
        ids.push((id, dtype));
    }
    if let Some(metadata) = metadata {
        add_members(py, layout, (datasets, &ids), records, metadata)?;
    }
    for (op, source) in history {
        layout.history(HistoryRow::now(&op, &source)).map_err(refuse)?;
    }
    Ok(ids)
}

/// A file that is written chunk by chunk or array by array. It appears, complete, when it is finished.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct TetWriter {
    /// None when finished.
    writer: Mutex<Option<Writer<AtomicFile>>>,
    ids: Vec<(DatasetId, DType)>,
    /// The encoder of each dataset, from the first chunk on.
    encoders: Vec<OnceLock<Arc<ChunkEncoder>>>,
}

impl TetWriter {
    /// Runs work with the writer. The lock is only waited for without the interpreter lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Writer<AtomicFile>) -> Result<T, tercet::tet::Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.as_mut().map(work)
        });
        done.ok_or_else(|| request(py, "the file is finished"))?.map_err(to_py)
    }

    fn id(&self, py: Python<'_>, dataset: usize) -> PyResult<(DatasetId, DType)> {
        self.ids.get(dataset).copied().ok_or_else(|| request(py, "no such dataset"))
    }
}

#[pymethods]
impl TetWriter {
    /// Starts a new file, or the replacement of a file with more datasets.
    #[new]
    #[pyo3(signature = (path, datasets, *, history = Vec::new(), metadata = None, overwrite = false, append = false))]
    fn new(
        py: Python<'_>,
        path: &str,
        datasets: Vec<NewDataset>,
        history: Vec<(String, String)>,
        metadata: Option<&str>,
        overwrite: bool,
        append: bool,
    ) -> PyResult<Self> {
        let options = WriterOptions::new().with_overwrite(overwrite);
        let metadata: Option<Value> = metadata.map(serde_json::from_str).transpose().map_err(internal)?;
        let (writer, ids) = if append {
            if metadata.is_some() {
                return Err(request(py, "metadata can be set in a new file only"));
            }
            let mut rewrite = py.detach(|| Rewrite::open(path)).map_err(to_py)?;
            let ids = plan(py, rewrite.layout(), &datasets, history, None)?;
            let row = HistoryRow::now("append", "tercet");
            let started = job::run(py, None, |progress| rewrite.start(row, options, progress))?;
            (started.map_err(to_py)?, ids)
        } else {
            let mut layout = Layout::new();
            let has_history = !history.is_empty();
            let ids = plan(py, &mut layout, &datasets, history, metadata.as_ref())?;
            if has_history {
                layout.file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
            }
            (py.detach(|| Writer::create(path, layout, options)).map_err(to_py)?, ids)
        };
        let encoders = ids.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { writer: Mutex::new(Some(writer)), ids, encoders })
    }

    /// Writes a dataset. Values are contiguous, row-major and little-endian.
    fn array(&self, py: Python<'_>, dataset: usize, shape: Vec<u64>, values: PyBuffer<u8>) -> PyResult<()> {
        let (id, dtype) = self.id(py, dataset)?;
        let view = TensorView::new(dtype, &shape, bytes(py, &values)?)
            .map_err(|error| request(py, &error.to_string()))?;
        self.with(py, |writer| writer.array(id, view))
    }

    /// Writes one chunk, of the shape that it has in the array. Chunks of several threads are encoded at the same time.
    fn chunk(
        &self,
        py: Python<'_>,
        dataset: usize,
        coords: Vec<u64>,
        shape: Vec<u64>,
        values: PyBuffer<u8>,
    ) -> PyResult<()> {
        let (id, dtype) = self.id(py, dataset)?;
        let view = TensorView::new(dtype, &shape, bytes(py, &values)?)
            .map_err(|error| request(py, &error.to_string()))?;
        let slot = &self.encoders[dataset];
        let encoder = if let Some(encoder) = slot.get() {
            Arc::clone(encoder)
        } else {
            let made = self.with(py, |writer| writer.chunk_encoder(id, Some(view)))?;
            // Another thread may have made an equal one meanwhile.
            Arc::clone(slot.get_or_init(|| Arc::new(made)))
        };
        let chunk = py.detach(|| encoder.encode(&coords, view)).map_err(to_py)?;
        self.with(py, |writer| writer.put_chunk(&chunk))
    }

    /// Writes a chunk that an `Encoder` has encoded.
    fn put(&self, py: Python<'_>, chunk: &[u8]) -> PyResult<()> {
        let chunk = py.detach(|| EncodedChunk::from_bytes(chunk));
        let chunk = chunk.ok_or_else(|| request(py, "the encoded chunk is damaged"))?;
        self.with(py, |writer| writer.put_chunk(&chunk))
    }

    /// The level of Zstandard of a dataset, 0 for none, once its first chunk was written.
    fn level(&self, py: Python<'_>, dataset: usize) -> PyResult<Option<i32>> {
        let (id, _) = self.id(py, dataset)?;
        self.with(py, |writer| {
            let choice = writer.compression_choice(id);
            Ok(choice.map(|choice| match choice.compression {
                Compression::Zstd { level } => level,
                _ => 0,
            }))
        })
    }

    /// Removes the unfinished file.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    /// Finishes the file. Returns its length.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let finished = py.detach(|| {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
            writer.map(|writer| writer.finish().map(|written| written.bytes))
        });
        finished.ok_or_else(|| request(py, "the file is finished"))?.map_err(to_py)
    }
}

/// Encodes chunks in a process that does not write the file.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct TetEncoder {
    encoders: Vec<(ChunkEncoder, DType)>,
}

#[pymethods]
impl TetEncoder {
    /// The encoders of the datasets of a new file.
    #[new]
    fn new(py: Python<'_>, datasets: Vec<NewDataset>) -> PyResult<Self> {
        let mut layout = Layout::new();
        let ids = plan(py, &mut layout, &datasets, Vec::new(), None)?;
        let sink = Cursor::new(Vec::new());
        let mut writer = Writer::new(sink, layout, WriterOptions::new()).map_err(to_py)?;
        let encoders = ids.into_iter().map(|(id, dtype)| Ok((writer.chunk_encoder(id, None)?, dtype)));
        Ok(Self { encoders: encoders.collect::<Result<_, tercet::tet::Error>>().map_err(to_py)? })
    }

    /// Encodes one chunk, of the shape that it has in the array.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        dataset: usize,
        coords: Vec<u64>,
        shape: Vec<u64>,
        values: PyBuffer<u8>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (encoder, dtype) = self.encoders.get(dataset).ok_or_else(|| internal("no such dataset"))?;
        let view = TensorView::new(*dtype, &shape, bytes(py, &values)?)
            .map_err(|error| request(py, &error.to_string()))?;
        let chunk = py.detach(|| encoder.encode(&coords, view).map(|chunk| chunk.to_bytes()));
        Ok(PyBytes::new(py, &chunk.map_err(to_py)?))
    }
}
