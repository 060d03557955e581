//! Tables of other files as `.tatami` files.

use std::sync::Arc;

use pyo3::prelude::*;
use tercet::convert::tables::{self, IngestError, IngestOptions, TableError};
use tercet::core::source::Access;
use tercet::core::{ByteSource, Location};
use tercet::tatami::WriterOptions;

use crate::error::{ingest_to_py, request, source_to_py};
use crate::job;

/// Writes files of one format, CSV, JSONL, Parquet, Arrow or `.tatami`, as one `.tatami` file. Returns the number of rows.
#[pyfunction]
#[pyo3(signature = (path, inputs, *, sort = None, blobs = Vec::new(), blooms = Vec::new(), overwrite = false, progress = None))]
#[expect(clippy::too_many_arguments, reason = "options of a table")]
pub(crate) fn create_tatami(
    py: Python<'_>,
    path: &str,
    inputs: Vec<String>,
    sort: Option<String>,
    blobs: Vec<String>,
    blooms: Vec<String>,
    overwrite: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let mut sources: Vec<Arc<dyn ByteSource>> = Vec::new();
    for input in &inputs {
        let location = Location::from(input.as_str());
        let source = py.detach(|| tercet::remote::open_location(&location, Access::default()));
        sources.push(source.map_err(|error| source_to_py(&error, input))?);
    }
    let Some(first) = sources.first() else { return Err(request(py, "no input files")) };
    let detected = py.detach(|| tables::detect(first));
    let detected =
        detected.map_err(|error| ingest_to_py(&IngestError::Table(TableError::from(error)), path))?;
    let Some(format) = detected.format else {
        return Err(request(py, &format!("{}: is no table of a known format", first.name())));
    };
    let options = IngestOptions::new()
        .with_writer(WriterOptions::new().with_overwrite(overwrite))
        .with_sort(sort)
        .with_blobs(blobs)
        .with_blooms(blooms);
    let written = job::run(py, progress.as_ref(), |progress| {
        tables::create(path, &sources, format, &options, progress, &mut drop)
    })?;
    Ok(written.map_err(|error| ingest_to_py(&error, path))?.rows)
}
