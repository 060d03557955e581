//! Errors as Python exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tercet::core::{Class, CommonError, Diagnostic, Hint, Region, SourceError, escape};
use tercet::{ErrorKind, tatami, tet, tgm};

/// Converts an error of the library to an exception of `tercet._errors`, which has the classes and their attributes.
pub(crate) fn to_py(error: impl Into<tercet::Error>) -> PyErr {
    let error = error.into();
    let site = match error.kind() {
        ErrorKind::Tet(error) => tet_site(error),
        ErrorKind::Tgm(error) => tgm_site(error),
        ErrorKind::Tatami(error) => tatami_site(error),
        _ => None,
    };
    Python::attach(|py| exception_at(py, &error, error.location(), site).unwrap_or_else(|failed| failed))
}

/// The region of a file that an error is about, and the field if it is known.
type Site = Option<(String, Option<&'static str>)>;

fn tet_site(error: &tet::ErrorKind) -> Site {
    match error {
        tet::ErrorKind::Common(error) => site(error),
        tet::ErrorKind::StaleIntegrityBlock { region, .. } => Some((region.to_string(), None)),
        tet::ErrorKind::Chunk { dataset, coords, .. } | tet::ErrorKind::MissingChunk { dataset, coords } => {
            Some((format!("dataset `{}`, chunk {coords:?}", escape::name(dataset)), None))
        }
        _ => None,
    }
}

fn tgm_site(error: &tgm::ErrorKind) -> Site {
    match error {
        tgm::ErrorKind::Common(error) => site(error),
        tgm::ErrorKind::Cbor { region, .. }
        | tgm::ErrorKind::Metadata { region, .. }
        | tgm::ErrorKind::MissingHash { region, .. }
        | tgm::ErrorKind::Contradiction { region, .. }
        | tgm::ErrorKind::PayloadLength { region, .. }
        | tgm::ErrorKind::Pipeline { region, .. } => Some((region.to_string(), None)),
        _ => None,
    }
}

fn tatami_site(error: &tatami::ErrorKind) -> Site {
    match error {
        tatami::ErrorKind::Common(error) => site(error),
        tatami::ErrorKind::Codec { region, .. } => Some((region.to_string(), None)),
        _ => None,
    }
}

fn site<R: Region>(error: &CommonError<R>) -> Site {
    match error {
        CommonError::Malformed(malformed) => {
            Some((malformed.site.region.to_string(), Some(malformed.site.field)))
        }
        CommonError::Checksum { region, .. } => Some((region.to_string(), None)),
        _ => None,
    }
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
    exception_at(py, error, location, None)
}

fn exception_at(py: Python<'_>, error: &dyn Diagnostic, location: &str, site: Site) -> PyResult<PyErr> {
    let class = match error.class() {
        _ if error.is_cancelled() => "Cancelled",
        _ if error.is_not_found() => "NotFoundError",
        _ if error.hint() == Some(Hint::Overwrite) => "ExistsError",
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
    let made = errors.getattr("make")?.call1((class, message, location, span, site))?;
    Ok(PyErr::from_value(made))
}

/// An error of this module itself.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// An invalid argument.
pub(crate) fn request(py: Python<'_>, message: &str) -> PyErr {
    plain(py, "RequestError", message, "")
}

/// Work on a file was stopped by a signal or by a callback.
pub(crate) fn cancelled(py: Python<'_>, location: &str) -> PyErr {
    plain(py, "Cancelled", "interrupted", location)
}

fn plain(py: Python<'_>, class: &str, message: &str, location: &str) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let errors = py.import("tercet._errors")?;
        let span: Option<(u64, u64)> = None;
        Ok(PyErr::from_value(errors.getattr("make")?.call1((class, message, location, span))?))
    };
    make().unwrap_or_else(|failed| failed)
}
