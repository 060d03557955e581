//! Result files: [`Results`] of a computation as `.npy`, `.tet`, `.csv`, `.json` or raw values.

mod csv;
mod tet;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use tercet_core::{DType, Progress, Sink, TensorView};
use tercet_tet::{AxisPositions, CoordinateValues, ResultArray, ResultValues, Results, Select};

use crate::{Error, ErrorKind, npy};

/// The format of a result file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultFormat {
    /// A NumPy `.npy` file: one array.
    Npy,
    /// A `.tet` file with dimensions, coordinates, attributes and history.
    Tet,
    /// Comma-separated values: one row for each value, with its coordinates.
    Csv,
    /// The JSON of [`Results`].
    Json,
    /// Values only: row-major, little-endian.
    Raw,
}

/// A file extension that is not that of a result file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownExtension {
    /// The extension; `None` without one.
    pub extension: Option<String>,
}

impl fmt::Display for UnknownExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.extension {
            Some(extension) => write!(f, "cannot write .{} files", tercet_core::escape::name(extension))?,
            None => write!(f, "cannot infer the format from a name without an extension")?,
        }
        write!(f, "; the extensions are .npy, .tet, .csv and .json, and .bin, .raw or .dat for raw values")
    }
}

impl std::error::Error for UnknownExtension {}

impl ResultFormat {
    /// The format of a file extension.
    ///
    /// ```
    /// use tercet_convert::ResultFormat;
    ///
    /// assert_eq!(ResultFormat::from_path("mean.csv".as_ref()), Ok(ResultFormat::Csv));
    /// assert!(ResultFormat::from_path("mean.nc".as_ref()).is_err());
    /// ```
    pub fn from_path(path: &Path) -> Result<Self, UnknownExtension> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("tet") => Ok(Self::Tet),
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("bin" | "raw" | "dat") => Ok(Self::Raw),
            _ => Err(UnknownExtension { extension }),
        }
    }

    /// The extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Tet => "tet",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Raw => "bin",
        }
    }
}

/// Writes results to a sink. `name` is that of the output, for errors.
pub fn write_results<S: Sink>(
    results: &Results,
    format: ResultFormat,
    mut sink: S,
    name: &str,
) -> Result<S::Output, Error> {
    let io = |error: std::io::Error| io_error(name, error);
    match format {
        ResultFormat::Tet => return tet::write(results, None, sink, name),
        ResultFormat::Csv => csv::write(results, None, &mut sink, name)?,
        ResultFormat::Json => {
            serde_json::to_writer_pretty(&mut sink, results).map_err(|error| io(error.into()))?;
            sink.write_all(b"\n").map_err(io)?;
        }
        ResultFormat::Npy | ResultFormat::Raw => {
            let array = only_array(results, format, name)?;
            let shape = array.shape();
            let put = |values: TensorView<'_>, sink: &mut S| {
                if format == ResultFormat::Npy {
                    let header = npy::header(values.dtype(), &shape);
                    let header = header.ok_or_else(|| {
                        refused(name, format!("{} is not supported by NumPy", values.dtype()))
                    })?;
                    sink.write_all(&header).map_err(io)?;
                }
                sink.write_all(values.bytes()).map_err(io)
            };
            match &array.values {
                ResultValues::Numbers(tensor) => put(tensor.view(), &mut sink)?,
                ResultValues::Flags(tensor) => {
                    let view = TensorView::new(DType::Bool, tensor.shape(), tensor.bytes());
                    put(view.unwrap_or(tensor.view()), &mut sink)?;
                }
                ResultValues::Positions(axes) => {
                    let [axis] = &axes[..] else { return Err(refused(name, several_axes(array, format))) };
                    match numbers_at(axis) {
                        Some(numbers) => put(view_of(&shape, &numbers, name)?, &mut sink)?,
                        None => put(view_of(&shape, &positions_at(axis), name)?, &mut sink)?,
                    }
                }
                other => return Err(refused(name, format!("cannot write {other:?}"))),
            }
        }
    }
    sink.finish().map_err(io)
}

/// Writes a selection to a sink, as stored or decoded by the CF conventions: it may be larger than memory. `name` is that of
/// the output, for errors.
///
/// Returns the output and the names of the selection.
pub fn write_selection<S: Sink>(
    select: &Select<'_>,
    decode: bool,
    format: ResultFormat,
    mut sink: S,
    name: &str,
    progress: &dyn Progress,
) -> Result<(S::Output, Results), Error> {
    let io = |error: std::io::Error| io_error(name, error);
    let mut results = select.lazy_results(decode)?;
    if format == ResultFormat::Tet {
        let decoded = if decode { Some(select.value_type(true)?) } else { None };
        let missing = AtomicU64::new(0);
        let values = tet::Selected { select, decoded, progress, missing: &missing };
        let output = tet::write(&results, Some(values), sink, name)?;
        results.skipped = missing.into_inner();
        return Ok((output, results));
    }
    match format {
        ResultFormat::Csv | ResultFormat::Json => {
            let values = select.lazy_values(decode, progress)?;
            let written = if format == ResultFormat::Csv {
                csv::write(&results, Some(&values), &mut sink, name)
            } else {
                let json = serde_json::to_writer_pretty(&mut sink, &results.with_values(&values));
                json.map_err(|error| io(error.into()))
            };
            let missing = values.missing();
            // The cause of a failed output may be the input.
            values.finish()?;
            written?;
            results.skipped = missing;
            if format == ResultFormat::Json {
                sink.write_all(b"\n").map_err(io)?;
            }
        }
        ResultFormat::Npy | ResultFormat::Raw | ResultFormat::Tet => {
            if format == ResultFormat::Npy {
                let (dtype, shape) = (select.value_type(decode)?, select.shape());
                let header = npy::header(dtype, &shape);
                let header =
                    header.ok_or_else(|| refused(name, format!("{dtype} is not supported by NumPy")))?;
                sink.write_all(&header).map_err(io)?;
            }
            results.skipped = select.write_values(decode, &mut sink, progress)?;
        }
    }
    Ok((sink.finish().map_err(io)?, results))
}

/// Writes results to a new file, in the format of its extension. The file appears when it is complete; an existing one
/// is an error unless `overwrite` is set.
#[cfg(any(unix, windows))]
pub fn save_results(results: &Results, path: impl AsRef<Path>, overwrite: bool) -> Result<(), Error> {
    use tercet_core::publish::AtomicFile;

    let path = path.as_ref();
    let name = path.to_string_lossy();
    let format = ResultFormat::from_path(path).map_err(|error| refused(&name, error.to_string()))?;
    let file = if overwrite { AtomicFile::create(path) } else { AtomicFile::create_new(path) };
    let file = file.map_err(|error| tercet_tet::Error::new(name.as_ref().into(), error.into()))?;
    write_results(results, format, file, &name).map(drop)
}

fn io_error(name: &str, error: std::io::Error) -> Error {
    tercet_tet::Error::new(name.into(), error.into()).into()
}

fn refused(name: &str, detail: String) -> Error {
    Error::new(name.into(), ErrorKind::Refused(detail.into()))
}

/// The array of a format that holds one.
fn only_array<'r>(results: &'r Results, format: ResultFormat, name: &str) -> Result<&'r ResultArray, Error> {
    match &results.arrays[..] {
        [array] => Ok(array),
        arrays => {
            let (count, extension) = (arrays.len(), format.extension());
            Err(refused(name, format!("a .{extension} file holds one array, not {count}; write a .tet file")))
        }
    }
}

fn several_axes(array: &ResultArray, format: ResultFormat) -> String {
    let extension = format.extension();
    format!(
        "{} over several axes has several coordinates for each result, and a .{extension} file holds one array; \
         write a .tet, .csv or .json file",
        array.name
    )
}

/// The coordinates of minima or maxima, if they are numbers.
fn numbers_at(axis: &AxisPositions) -> Option<Vec<f64>> {
    let CoordinateValues::Numbers(numbers) = &axis.coordinates.values else { return None };
    if !axis.has_coordinates {
        return None;
    }
    let number =
        |result| axis.index(result).and_then(|index| numbers.get(index)).copied().unwrap_or(f64::NAN);
    Some((0..axis.indices.len()).map(number).collect())
}

type Attributes = Vec<(&'static str, String)>;

/// The times of minima or maxima as numbers, with the attributes `units` and `calendar`, if the coordinates are times.
fn times_at(axis: &AxisPositions) -> Option<(Vec<f64>, Attributes)> {
    let (seconds, units, calendar) = axis.coordinates.epoch_seconds()?;
    let second =
        |result| axis.index(result).and_then(|index| seconds.get(index)).copied().unwrap_or(f64::NAN);
    let attrs = vec![("units", units.to_owned()), ("calendar", calendar.name().to_owned())];
    Some(((0..axis.indices.len()).map(second).collect(), attrs))
}

/// The positions of minima or maxima in the dataset, or in the selection if its coordinates are not numbers.
fn positions_at(axis: &AxisPositions) -> Vec<i64> {
    let CoordinateValues::Numbers(numbers) = &axis.coordinates.values else { return axis.indices.clone() };
    #[expect(clippy::cast_possible_truncation, reason = "positions are whole numbers")]
    let position = |result| match axis.index(result).and_then(|index| numbers.get(index)) {
        Some(number) => *number as i64,
        None => -1,
    };
    (0..axis.indices.len()).map(position).collect()
}

fn view_of<'v, T: tercet_core::Scalar>(
    shape: &'v [u64],
    values: &'v [T],
    name: &str,
) -> Result<TensorView<'v>, Error> {
    TensorView::from_slice(shape, values).map_err(|error| refused(name, error.to_string()))
}
