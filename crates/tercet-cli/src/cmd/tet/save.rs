//! Results as files.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use tercet::convert::{ResultFormat, write_results, write_selection};
use tercet::core::num::counted;
use tercet::core::{Shape, escape};
use tercet::tet::{ResultValues, Results, Select};

use crate::args::ForceArgs;
use crate::failure::Failure;
use crate::output::{Output, Spool, atomic_file, deliver, display_path, is_stdout, json_path};
use crate::render::human_size;
use crate::ui::Ui;

/// `-o`, `--as` and `--force` of verbs that store results.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SaveArgs {
    /// Write the result to a file or URL: *.npy, *.tet, *.csv or *.json
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the output file [default: by its extension]
    #[arg(long = "as", value_name = "FORMAT", requires = "output")]
    pub(crate) format: Option<FileFormat>,
    #[command(flatten)]
    pub(crate) force: ForceArgs,
}

/// The formats of result files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// NumPy .npy file
    Npy,
    /// .tet file with dimensions, coordinates and attributes
    Tet,
    /// Comma-separated values, one row per value
    Csv,
    /// JSON
    Json,
    /// Values only: row-major, little-endian
    Raw,
}

impl From<FileFormat> for ResultFormat {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Npy => Self::Npy,
            FileFormat::Tet => Self::Tet,
            FileFormat::Csv => Self::Csv,
            FileFormat::Json => Self::Json,
            FileFormat::Raw => Self::Raw,
        }
    }
}

/// The format of an output: the given one, or that of the file extension.
pub(crate) fn infer(given: Option<FileFormat>, path: &Path) -> Result<ResultFormat, Failure> {
    if let Some(format) = given {
        return Ok(format.into());
    }
    if is_stdout(path) {
        let failure = Failure::request("standard output has no file extension");
        return Err(failure.with_hint("give the format with `--as`, or print JSON with `--json`"));
    }
    ResultFormat::from_path(path).map_err(|error| {
        let failure = Failure::request(format!("{}: {error}", display_path(path))).with_location(path);
        failure.with_hint("change the extension, or give the format with `--as`")
    })
}

/// An opened output.
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) output: Output,
    pub(crate) format: ResultFormat,
    force: bool,
}

impl SaveArgs {
    /// Opens the output, if there is one: before anything is computed.
    pub(crate) fn open(&self, input: Option<&Path>, out: &mut Ui) -> Result<Option<Target>, Failure> {
        let Some(path) = &self.output else { return Ok(None) };
        let target = Target::open(path, infer(self.format, path)?, self.force.force)?;
        if let Some(input) = input {
            target.output.must_not_be(input)?;
        }
        target.output.reserve_stdout(out)?;
        Ok(Some(target))
    }
}

impl Target {
    /// Opens an output.
    pub(crate) fn open(path: &Path, format: ResultFormat, force: bool) -> Result<Self, Failure> {
        let is_text = matches!(format, ResultFormat::Csv | ResultFormat::Json);
        let output = if is_text { Output::open_for_text(path, force) } else { Output::open(path, force) }?;
        Ok(Self { path: path.to_owned(), output, format, force })
    }
}

/// A stored result.
#[derive(Serialize)]
struct SavedJson<T> {
    path: String,
    bytes: u64,
    result: T,
}

impl Target {
    /// Writes the results, and prints what was written.
    pub(crate) fn save(self, results: &Results, out: &mut Ui) -> Result<(), Failure> {
        let name = display_path(&self.path);
        let bytes = match self.output {
            Output::Path(path) => {
                let file = atomic_file(&path, self.force)?;
                file_size(&write_results(results, self.format, file, &name)?)
            }
            output => deliver(write_results(results, self.format, Spool::new()?, &name)?, output, out)?,
        };
        report(&self.path, results, bytes, out)
    }

    /// Writes a selection of any size, and prints what was written.
    pub(crate) fn save_selection(
        self,
        select: &Select<'_>,
        decode: bool,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let (name, format) = (display_path(&self.path), self.format);
        let size = select.value_type(decode)?.size();
        let bar = out.bar("extracting", Shape::new(select.shape()).bytes(size).unwrap_or(u64::MAX));
        let (results, bytes) = match self.output {
            Output::Path(path) => {
                let file = atomic_file(&path, self.force)?;
                let (path, results) = write_selection(select, decode, format, file, &name, &bar)?;
                drop(bar);
                (results, file_size(&path))
            }
            output => {
                let (file, results) = write_selection(select, decode, format, Spool::new()?, &name, &bar)?;
                drop(bar);
                (results, deliver(file, output, out)?)
            }
        };
        warn(&results, out)?;
        report(&self.path, &results, bytes, out)
    }
}

fn file_size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Prints what was written.
fn report(path: &Path, results: &Results, bytes: u64, out: &mut Ui) -> Result<(), Failure> {
    if is_stdout(path) {
        return Ok(());
    }
    if out.is_json() {
        let path = json_path(path);
        return out.json(&SavedJson { path, bytes, result: results.summary() });
    }
    let name = display_path(path);
    out.summary(format_args!("{name}: {}, {}", describe(results), human_size(bytes)))
}

/// Prints the warnings of results, on standard error.
pub(crate) fn warn(results: &Results, out: &mut Ui) -> Result<(), Failure> {
    results.warnings.iter().try_for_each(|warning| out.note(escape::name(warning)))
}

/// Prints how results were computed, on standard error.
pub(crate) fn explain(results: &Results, out: &mut Ui) -> Result<(), Failure> {
    let steps = results.execution.iter().flat_map(|execution| &execution.steps);
    steps.into_iter().try_for_each(|step| out.note(format_args!("explain: {}", escape::name(step))))
}

/// The results in one line: operations, dataset, element type, shape, and what was skipped.
pub(crate) fn describe(results: &Results) -> String {
    let names: Vec<&str> =
        results.arrays.iter().filter(|array| array.op.is_some()).map(|it| it.name.as_str()).collect();
    let dataset = escape::name(&results.dataset);
    let mut text = if names.is_empty() {
        let kind = if results.is_decoded { "decoded" } else { "stored" };
        format!("{kind} values of `{dataset}`")
    } else {
        format!("{} of `{dataset}`", names.join(", "))
    };
    if let Some(array) = results.arrays.first() {
        let extents: Vec<String> = array.shape().iter().map(u64::to_string).collect();
        let shape = if extents.is_empty() { "1 value".to_owned() } else { extents.join("×") };
        let dtype = match &array.values {
            ResultValues::Numbers(tensor) => format!("{} ", tensor.dtype()),
            ResultValues::Unread(dtype) => format!("{dtype} "),
            _ => String::new(),
        };
        text = format!("{text}, {dtype}{shape}");
    }
    if results.skipped > 0 {
        let skipped = if names.is_empty() { "" } else { " skipped" };
        text = format!("{text}, {}{skipped}", counted(results.skipped, "missing value"));
    }
    text
}
