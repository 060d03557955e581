//! Writing `.tet` files.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use tercet::core::TensorView;
use tercet::core::tensor::DType;
use tercet::tet::{Compression, Error, Layout, Rounding, Writer, WriterOptions};

use crate::error::{request, to_py};

/// A dataset to be written. Values are contiguous, row-major and little-endian.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NewDataset {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    values: PyBuffer<u8>,
    dims: Option<Vec<String>>,
    labels: Vec<(String, Vec<String>)>,
    attrs: Vec<(String, String)>,
    /// `auto`, `none`, or a level of Zstandard.
    zstd: Option<i32>,
    raw: bool,
    max_error: Option<f64>,
    keep_bits: Option<u32>,
}

/// Writes datasets to a new file. Returns its length.
#[pyfunction]
#[pyo3(signature = (path, datasets, *, overwrite = false))]
pub(crate) fn write_tet(
    py: Python<'_>,
    path: &str,
    datasets: Vec<NewDataset>,
    overwrite: bool,
) -> PyResult<u64> {
    let mut layout = Layout::new();
    let mut ids = Vec::with_capacity(datasets.len());
    let layout_error = |error: tercet::tet::LayoutError| request(py, &error.to_string());
    for dataset in &datasets {
        let dtype: DType = dataset
            .dtype
            .parse()
            .map_err(|_| request(py, &format!("unknown element type `{}`", dataset.dtype)))?;
        let id = layout
            .dataset(&dataset.name, dtype, dataset.shape.clone(), dataset.chunks.clone())
            .map_err(layout_error)?;
        if let Some(dims) = &dataset.dims {
            layout.dims(id, dims.iter().map(String::as_str)).map_err(layout_error)?;
        }
        for (axis, labels) in &dataset.labels {
            layout.labels(id, axis, labels.clone()).map_err(layout_error)?;
        }
        for (key, value) in &dataset.attrs {
            layout.attr(id, key, value).map_err(layout_error)?;
        }
        let compression = match dataset.zstd {
            Some(level) => Compression::Zstd { level },
            None if dataset.raw => Compression::None,
            None => Compression::Auto,
        };
        layout.compress(id, compression).map_err(layout_error)?;
        if let Some(bound) = dataset.max_error {
            layout.round(id, Rounding::MaxError(bound)).map_err(layout_error)?;
        } else if let Some(bits) = dataset.keep_bits {
            layout.round(id, Rounding::KeepBits(bits)).map_err(layout_error)?;
        }
        ids.push((id, dtype));
    }
    let views = datasets.iter().zip(ids).map(|(dataset, (id, dtype))| {
        let view = TensorView::new(dtype, &dataset.shape, bytes(py, &dataset.values)?)
            .map_err(|error| request(py, &format!("dataset `{}`: {error}", dataset.name)))?;
        Ok((id, view))
    });
    let views = views.collect::<PyResult<Vec<_>>>()?;
    let written = py.detach(|| -> Result<u64, Error> {
        let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(overwrite))?;
        for (id, view) in views {
            writer.array(id, view)?;
        }
        Ok(writer.finish()?.bytes)
    });
    written.map_err(to_py)
}

/// The bytes of a contiguous buffer.
#[expect(unsafe_code, reason = "buffers of Python are pointers")]
pub(crate) fn bytes<'b>(py: Python<'_>, buffer: &'b PyBuffer<u8>) -> PyResult<&'b [u8]> {
    if !buffer.is_c_contiguous() {
        return Err(request(py, "the array is not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is contiguous and has `len_bytes` bytes; `buffer` holds a view that keeps the memory and its
    // length until it is dropped. Callers pass arrays that only this call uses, as every function of NumPy assumes.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) })
}
