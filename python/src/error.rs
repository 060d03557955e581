//! Errors as Python exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tercet::core::{Class, Diagnostic, SourceError};

/// Converts an error of the library to an exception of `tercet._errors`, which has the classes and their attributes.
pub(crate) fn to_py(error: impl Into<tercet::Error>) -> PyErr {
    let error = error.into();
    Python::attach(|py| exception(py, &error, error.location()).unwrap_or_else(|failed| failed))
}

/// Converts an error of Arrow tables.
pub(crate) fn arrow_to_py(error: &tercet::arrow::Error) -> PyErr {
    Python::attach(|py| exception(py, error, error.location()).unwrap_or_else(|failed| failed))
}

/// Converts an error of a file that cannot be opened.
pub(crate) fn source_to_py(error: &SourceError, location: &str) -> PyErr {
    Python::attach(|py| exception(py, error, location).unwrap_or_else(|failed| failed))
}

/// Converts an error of a conversion.
pub(crate) fn convert_to_py(error: &tercet::convert::Error) -> PyErr {
    Python::attach(|py| exception(py, error, error.location()).unwrap_or_else(|failed| failed))
}

/// Converts an error of a table that is written as a file.
pub(crate) fn ingest_to_py(error: &tercet::convert::tables::IngestError, location: &str) -> PyErr {
    Python::attach(|py| exception(py, error, location).unwrap_or_else(|failed| failed))
}

fn exception(py: Python<'_>, error: &dyn Diagnostic, location: &str) -> PyResult<PyErr> {
    let class = match error.class() {
        _ if error.is_cancelled() => "Cancelled",
        _ if error.is_not_found() => "NotFoundError",
        Class::Io => "TercetOSError",
        Class::Malformed => "MalformedError",
        Class::Corrupt => "CorruptError",
        Class::Limit => "LimitError",
        Class::Unsupported => "UnsupportedError",
        Class::Request => "RequestError",
    };
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    let span = error.span().map(|span| (span.start(), span.end()));
    let errors = py.import("tercet._errors")?;
    let made = errors.getattr("make")?.call1((class, message, location, span))?;
    Ok(PyErr::from_value(made))
}

/// An error of this module itself.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// An invalid argument.
pub(crate) fn request(py: Python<'_>, message: &str) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let errors = py.import("tercet._errors")?;
        let span: Option<(u64, u64)> = None;
        Ok(PyErr::from_value(errors.getattr("make")?.call1(("RequestError", message, "", span))?))
    };
    make().unwrap_or_else(|failed| failed)
}
