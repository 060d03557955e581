//! The native module of the Python package: arguments and values, no logic.
//!
//! Every class is a handle of an open file. Work runs without the interpreter lock; results are buffers that NumPy
//! shares without a copy, JSON text, or Arrow streams. `python/tercet/` wraps them in the classes that users see.
#![expect(clippy::needless_pass_by_value, reason = "arguments of Python are values")]

mod arrow_stream;
mod buffer;
mod error;
mod tatami;
mod tet;
mod tet_writer;
mod tgm;
mod value;

use pyo3::prelude::*;
use tercet::core::ReadOptions;
use tercet::core::source::Access;
use tercet::{Container, VerifyOptions};

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

/// The findings of a verification as JSON, and whether the file is valid.
#[pyfunction]
#[pyo3(signature = (location))]
fn verify(py: Python<'_>, location: &str) -> PyResult<(bool, String)> {
    let report =
        py.detach(|| tercet::verify(location, VerifyOptions::default(), &tercet::core::progress::NoProgress));
    let report = report.map_err(to_py)?;
    let findings = serde_json::to_string(report.findings()).map_err(error::internal)?;
    Ok((report.is_ok(), findings))
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
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(tet_writer::write_tet, module)?)?;
    module.add_function(wrap_pyfunction!(tgm::write_tgm, module)?)?;
    module.add_function(wrap_pyfunction!(tatami::write_tatami, module)?)?;
    module.add_class::<tet::Tet>()?;
    module.add_class::<tgm::Tgm>()?;
    module.add_class::<tatami::Tatami>()?;
    module.add_class::<buffer::Buffer>()
}
