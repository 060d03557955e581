//! The native module of the Python package: arguments and values, no logic.
//!
//! Every class is a handle of an open file. Work runs without the interpreter lock; results are buffers that NumPy
//! shares without a copy, JSON text, or Arrow streams. `python/tercet/` wraps them in the classes that users see.
#![expect(clippy::needless_pass_by_value, reason = "arguments of Python are values")]

mod arrow_stream;
mod buffer;
mod convert;
mod error;
mod ingest;
mod job;
mod source;
mod tatami;
mod tet;
mod tet_writer;
mod tgm;
mod tgm_compat;
mod value;

use std::sync::Arc;

use pyo3::prelude::*;
use tercet::core::ReadOptions;
use tercet::core::source::Access;
use tercet::{Container, SalvageOptions, VerifyOptions};

use crate::error::to_py;

/// How a file is opened.
fn options(verify: bool, mmap: bool, threads: Option<usize>) -> ReadOptions {
    let access = if mmap { Access::Mmap } else { Access::default() };
    let options = ReadOptions::new().with_verify(verify).with_access(access);
    match threads.and_then(std::num::NonZeroUsize::new) {
        Some(threads) => options.with_threads(Some(threads)),
        None => options,
    }
}

fn handle(py: Python<'_>, container: Container) -> PyResult<Py<PyAny>> {
    Ok(match container {
        Container::Tet(file) => Py::new(py, tet::Tet::new(file))?.into_any(),
        Container::Tgm(file) => Py::new(py, tgm::Tgm::new(file))?.into_any(),
        Container::Tatami(file) => Py::new(py, tatami::Tatami::new(file))?.into_any(),
        _ => return Err(error::internal("this container has no Python class")),
    })
}

/// Opens a file by path or URL.
#[pyfunction]
#[pyo3(signature = (location, *, verify = true, mmap = false, threads = None))]
fn open(
    py: Python<'_>,
    location: &str,
    verify: bool,
    mmap: bool,
    threads: Option<usize>,
) -> PyResult<Py<PyAny>> {
    let opened = py.detach(|| tercet::open_with(location, options(verify, mmap, threads)));
    handle(py, opened.map_err(to_py)?)
}

/// Opens a file in memory.
#[pyfunction]
#[pyo3(signature = (name, bytes))]
fn open_bytes(py: Python<'_>, name: &str, bytes: Vec<u8>) -> PyResult<Py<PyAny>> {
    let opened = py.detach(|| Container::from_bytes(name, bytes));
    handle(py, opened.map_err(to_py)?)
}

/// Opens a file that functions of Python read: `read([(start, length), …])` returns the bytes of each range.
#[pyfunction]
#[pyo3(signature = (name, len, read, *, verify = true, threads = None))]
fn open_source(
    py: Python<'_>,
    name: &str,
    len: u64,
    read: Py<PyAny>,
    verify: bool,
    threads: Option<usize>,
) -> PyResult<Py<PyAny>> {
    let source = Arc::new(source::PythonSource::new(name, len, read));
    let opened = py.detach(|| Container::from_source(source, options(verify, false, threads)));
    handle(py, opened.map_err(to_py)?)
}

/// The findings of a verification as JSON, and whether the file is valid.
#[pyfunction]
#[pyo3(signature = (location, progress = None))]
fn verify(py: Python<'_>, location: &str, progress: Option<Bound<'_, PyAny>>) -> PyResult<(bool, String)> {
    let report = job::run(py, progress.as_ref(), |progress| {
        tercet::verify(location, VerifyOptions::default(), progress)
    })?;
    let report = report.map_err(to_py)?;
    let findings = serde_json::to_string(report.findings()).map_err(error::internal)?;
    Ok((report.is_ok(), findings))
}

/// Copies the intact parts of a damaged file into a new one. Returns whether nothing was lost, and the report as JSON.
#[pyfunction]
#[pyo3(signature = (location, output, *, overwrite = false, fill = None, progress = None))]
fn salvage(
    py: Python<'_>,
    location: &str,
    output: &str,
    overwrite: bool,
    fill: Option<f64>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(bool, String)> {
    let mut options = SalvageOptions::new().with_overwrite(overwrite);
    options.fill = fill;
    let report =
        job::run(py, progress.as_ref(), |progress| tercet::salvage(location, output, options, progress))?;
    let report = report.map_err(to_py)?;
    Ok((report.is_complete(), serde_json::to_string(&report).map_err(error::internal)?))
}

/// The summary of a file as JSON.
fn summary(container: &Container) -> PyResult<String> {
    let summary = container.summary().map_err(to_py)?;
    serde_json::to_string(&summary).map_err(error::internal)
}

#[pymodule]
fn _lib(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(open_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(open_source, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(salvage, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_encode, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_decode, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_describe, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_scan, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_validate, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_validate_file, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_hash, module)?)?;
    module.add_function(wrap_pyfunction!(tgm_compat::tgm_packing, module)?)?;
    module.add_function(wrap_pyfunction!(tgm::write_tgm, module)?)?;
    module.add_function(wrap_pyfunction!(tatami::write_tatami, module)?)?;
    module.add_function(wrap_pyfunction!(ingest::create_tatami, module)?)?;
    module.add_class::<tet::Tet>()?;
    module.add_class::<tgm::Tgm>()?;
    module.add_class::<tgm::NativeMessage>()?;
    module.add_class::<tatami::Tatami>()?;
    module.add_class::<tatami::NativeScan>()?;
    module.add_class::<tet_writer::TetWriter>()?;
    module.add_class::<tet_writer::TetEncoder>()?;
    module.add_class::<tgm_compat::TgmEncoder>()?;
    module.add_class::<arrow_stream::NativeTable>()?;
    module.add_class::<buffer::Buffer>()
}
