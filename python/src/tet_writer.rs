//! Writing `.tet` files.

use std::io::Cursor;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tercet::core::TensorView;
use tercet::core::publish::AtomicFile;
use tercet::core::tensor::DType;
use tercet::tet::{
    ChunkEncoder, Compression, DatasetId, EncodedChunk, HistoryRow, Layout, LayoutError, Rewrite, Rounding,
    Writer, WriterOptions, unix_seconds,
};

use crate::buffer::bytes;
use crate::error::{internal, request, to_py};
use crate::job;

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
    attrs: Vec<(String, String)>,
    /// A level of Zstandard. Without one and `raw`, compression is chosen from a sample.
    zstd: Option<i32>,
    raw: bool,
    max_error: Option<f64>,
    keep_bits: Option<u32>,
}

/// Adds datasets to the layout of a file.
fn plan(
    py: Python<'_>,
    layout: &mut Layout,
    datasets: &[NewDataset],
    history: Vec<(String, String)>,
) -> PyResult<Vec<(DatasetId, DType)>> {
    let refuse = |error: LayoutError| request(py, &error.to_string());
    let mut ids = Vec::with_capacity(datasets.len());
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
        for (key, value) in &dataset.attrs {
            layout.attr(id, key, value).map_err(refuse)?;
        }
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
    #[pyo3(signature = (path, datasets, *, history = Vec::new(), overwrite = false, append = false))]
    fn new(
        py: Python<'_>,
        path: &str,
        datasets: Vec<NewDataset>,
        history: Vec<(String, String)>,
        overwrite: bool,
        append: bool,
    ) -> PyResult<Self> {
        let options = WriterOptions::new().with_overwrite(overwrite);
        let (writer, ids) = if append {
            let mut rewrite = py.detach(|| Rewrite::open(path)).map_err(to_py)?;
            let ids = plan(py, rewrite.layout(), &datasets, history)?;
            let row = HistoryRow::now("append", "tercet");
            let started = job::run(py, None, |progress| rewrite.start(row, options, progress))?;
            (started.map_err(to_py)?, ids)
        } else {
            let mut layout = Layout::new();
            if !history.is_empty() {
                layout.file_info("tercet", env!("CARGO_PKG_VERSION"), unix_seconds());
            }
            let ids = plan(py, &mut layout, &datasets, history)?;
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
        let ids = plan(py, &mut layout, &datasets, Vec::new())?;
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
