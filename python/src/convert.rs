//! Conversion of array files.

use std::path::Path;

use pyo3::prelude::*;
use tercet::convert::arrays::{self, ConvertOptions, OutputFormat, View, ViewOptions};
use tercet::core::source::Access;
use tercet::core::tensor::DType;
use tercet::core::{Limits, Location};
use tercet::tet::Compression;

use crate::error::{convert_to_py, internal, request, source_to_py};
use crate::job;

/// What is converted, and how it is stored.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct ConvertArgs {
    variables: Vec<String>,
    sel: Vec<(String, String)>,
    isel: Vec<(String, String)>,
    rename: Vec<(String, String)>,
    unpack: bool,
    dtypes: Vec<(Option<String>, String)>,
    chunks: Vec<(String, u64)>,
    max_error: Vec<(Option<String>, f64)>,
    zstd: Option<i32>,
    overwrite: bool,
    verify: bool,
    strict: bool,
    plan: bool,
}

/// Converts a file. Returns whether it was written, and what was kept as JSON.
#[pyfunction]
#[pyo3(signature = (input, output, args, progress = None))]
pub(crate) fn convert(
    py: Python<'_>,
    input: &str,
    output: &str,
    args: ConvertArgs,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(bool, String)> {
    let path = Path::new(output);
    let format = OutputFormat::from_path(path).ok_or_else(|| {
        let known = OutputFormat::EXTENSIONS;
        request(
            py,
            &format!("{output}: cannot infer the format from the file name; the extensions are {known}"),
        )
    })?;
    let input_path = Path::new(input);
    let source = if input_path.is_dir() {
        py.detach(|| arrays::open_path(input_path))
    } else if tercet::is_store_url(input) {
        py.detach(|| tercet::open_store_url(input, Limits::default()))
    } else {
        let location = Location::from(input);
        let bytes = py.detach(|| tercet::remote::open_location(&location, Access::default()));
        let bytes = bytes.map_err(|error| source_to_py(&error, input))?;
        py.detach(|| arrays::open_source(bytes))
    };
    let source = source.map_err(|error| convert_to_py(&error))?;
    let mut view = ViewOptions::default();
    view.variables = args.variables;
    view.labels = args.sel;
    view.positions = args.isel;
    view.renames = args.rename;
    view.unpack = args.unpack;
    for (name, dtype) in args.dtypes {
        let dtype: DType =
            dtype.parse().map_err(|_| request(py, &format!("unknown element type `{dtype}`")))?;
        view.dtypes.push((name, dtype));
    }
    let mut options = ConvertOptions::new();
    options.chunks = args.chunks;
    options.max_error = args.max_error;
    options.compression = match args.zstd {
        None => Compression::Auto,
        Some(0) => Compression::None,
        Some(level) => Compression::Zstd { level },
    };
    options.overwrite = args.overwrite;
    options.verify = args.verify;
    let done = job::run(py, progress.as_ref(), |progress| {
        let view = View::new(&*source, &view)?;
        let plan = arrays::plan_conversion(&view, format, &options)?;
        if args.plan || args.strict && !plan.fidelity.is_exact() {
            return Ok((false, plan));
        }
        arrays::convert(&view, path, format, &options, progress).map(|plan| (true, plan))
    })?;
    let (is_written, plan) = done.map_err(|error| convert_to_py(&error))?;
    Ok((is_written, serde_json::to_string(&plan.fidelity).map_err(internal)?))
}
