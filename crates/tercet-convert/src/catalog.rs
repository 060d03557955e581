//! Catalogs: a `.tatami` table with a row for each dataset, message object and table of many files.
//!
//! ```text
//! files ──▶ rows: pointer, metadata as typed columns, statistics, text ──▶ catalog.tatami ──▶ find ──▶ pointer ──▶ values
//! ```
//!
//! | column | contents |
//! |---|---|
//! | `pointer` | where the data are: `runs/a.tgm#3.0` (message and object), `era5.tet#t2m`, `cities.tatami` |
//! | `file`, `format`, `kind` | the file, its format; `dataset`, `object` or `table` |
//! | `name`, `dtype`, `shape`, `bytes` | the array |
//! | `min`, `max`, `mean`, `missing` | statistics of the values, after `scale_factor` and `add_offset`, without missing values |
//! | `text` | names, metadata values and paths in lower case, for searches |
//! | `file_size`, `file_modified` | the state of the file (nanoseconds since 1970), for updates |
//! | `problem` | what could not be read of the file, in all of its rows |
//! | others | metadata: the last component of a key (`mars.step` is `step`), or attributes |
//!
//! Pointers are relative to the directory of the catalog. [`Pointer::resolve`] refuses to leave it.
//!
//! The text of a large catalog is indexed as a search segment, `catalog.tatami.idx`. Without it, or if it belongs to other rows, a search
//! builds it in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::{ByteSource, DType, Progress, ReadOptions};
use tercet_tatami::predicate::Mask;
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Document, Query, QueryError, Ranking, SearchOptions, Segment, SegmentBuilder,
    SegmentOptions,
};
use tercet_tatami::{Bitmap, Column, Expr, Field, File, Scalar, Schema, Type, Values, Writer, WriterOptions};
use tercet_tgm::Value;

use crate::arrays::sink::slabs;
use crate::arrays::source::refused;
use crate::arrays::{self, ArraySource, AttrData, Kind, Number, Variable, View, ViewOptions, number_at};
use crate::formats::tgm::{last_component, object_keys, object_name};
use crate::{Error, ErrorKind};

/// The key of the footer that marks a catalog.
const MARK: &str = "tercet.catalog";
/// The version of the columns.
const VERSION: &str = "1";

/// Columns that every catalog has, in order.
const COLUMNS: [(&str, Type); 18] = [
    ("pointer", Type::String),
    ("file", Type::String),
    ("format", Type::String),
    ("kind", Type::String),
    ("name", Type::String),
    ("dtype", Type::String),
    ("shape", Type::String),
    ("bytes", Type::Int64),
    ("message", Type::Int64),
    ("object", Type::Int64),
    ("min", Type::Float64),
    ("max", Type::Float64),
    ("mean", Type::Float64),
    ("missing", Type::Int64),
    ("text", Type::String),
    ("file_size", Type::Int64),
    ("file_modified", Type::Int64),
    ("problem", Type::String),
];

/// The key of the footer with the hash of the searchable rows, of a catalog and of its index.
const FINGERPRINT: &str = "tercet.catalog.fingerprint";
/// Catalogs with fewer rows are indexed in memory when they are searched.
const INDEXED_ROWS: usize = 4096;
/// The longest description of what could not be read of a file.
const MAX_PROBLEM: usize = 1000;

/// Metadata columns of a catalog; rarer keys are part of the text only.
const MAX_COLUMNS: usize = 400;
/// The longest metadata value that is a cell.
const MAX_CELL: usize = 4096;
/// Extensions of files that are looked for in directories.
const EXTENSIONS: [&str; 21] = [
    "tet", "tgm", "tatami", "nc", "nc3", "nc4", "nc5", "cdf", "h5", "hdf5", "he5", "hdf", "zarr", "npy",
    "npz", "grib", "grib1", "grib2", "grb", "grb2", "zip",
];

/// Options of a catalog.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogOptions {
    /// Replace an existing file.
    pub overwrite: bool,
    /// Keep the rows of files that have not changed since the catalog was written.
    pub refresh: bool,
    /// Read all values for statistics.
    pub statistics: bool,
    /// The directory that pointers are relative to; that of the catalog if `None`.
    pub base: Option<PathBuf>,
    /// The limits of what is read.
    pub read: ReadOptions,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self { overwrite: false, refresh: false, statistics: true, base: None, read: ReadOptions::new() }
    }
}

impl CatalogOptions {
    /// The defaults: a new file, with statistics.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a catalog contains.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CatalogReport {
    /// Rows of the catalog.
    pub rows: u64,
    /// Files that were read.
    pub read: u64,
    /// Files whose rows were kept.
    pub unchanged: u64,
    /// Files that no longer exist.
    pub removed: u64,
    /// Parts that could not be read: a path, and the reason.
    pub problems: Vec<(String, String)>,
}

/// A value of a metadata column.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A row: cells by column.
type Row = BTreeMap<String, Cell>;

/// Writes a catalog of files and directories.
pub fn build_catalog(
    inputs: &[PathBuf],
    output: &Path,
    options: &CatalogOptions,
    progress: &dyn Progress,
) -> Result<CatalogReport, Error> {
    let name = output.to_string_lossy().into_owned();
    let fail = |error: std::io::Error| Error::new(name.as_str().into(), ErrorKind::from(error));
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(fail)?;
    let own = parent.join(output.file_name().unwrap_or_default());
    let base = match &options.base {
        Some(base) => base.canonicalize().map_err(fail)?,
        None => parent,
    };
    let mut report = CatalogReport::default();
    let mut known: HashMap<String, Vec<Row>> = HashMap::new();
    if options.refresh && output.exists() {
        for row in old_rows(output)? {
            if let Some(Cell::Text(file)) = row.get("file") {
                known.entry(file.clone()).or_default().push(row);
            }
        }
    }
    let mut files = Vec::new();
    for input in inputs {
        collect(input, true, &mut files, &mut report).map_err(|error| {
            Error::new(
                input.to_string_lossy().into(),
                ErrorKind::Source(tercet_core::SourceError::Open(error)),
            )
        })?;
    }
    files.sort();
    files.dedup();
    let mut seen = HashSet::new();
    let mut kept: Vec<Row> = Vec::new();
    let mut changed: Vec<(PathBuf, String, State)> = Vec::new();
    for path in files {
        let Ok(real) = path.canonicalize() else {
            report.problems.push((path.to_string_lossy().into_owned(), "cannot be opened".to_owned()));
            continue;
        };
        if real == own {
            continue;
        }
        let Some(shown) = relative(&real, &base) else {
            report.problems.push((path.to_string_lossy().into_owned(), "the path is not UTF-8".to_owned()));
            continue;
        };
        if !seen.insert(shown.clone()) {
            continue;
        }
        let state = State::new(&real);
        match known.remove(&shown) {
            // What was damaged before is read and reported again.
            Some(rows) if rows.iter().all(|row| state.is_that_of(row) && !row.contains_key("problem")) => {
                report.unchanged += 1;
                kept.extend(rows);
            }
            _ => changed.push((path, shown, state)),
        }
    }
    report.removed = known.keys().filter(|file| !seen.contains(*file)).count() as u64;
    report.read = changed.len() as u64;
    let rows: Vec<Found> = changed
        .par_iter()
        .map(|(path, shown, state)| {
            progress.check().map_err(|cancelled| Error::new(name.as_str().into(), cancelled.into()))?;
            let found = rows_of(path, shown, state, options);
            progress.advance(state.size);
            Ok(found)
        })
        .collect::<Result<_, Error>>()?;
    for (rows, problems) in rows {
        kept.extend(rows);
        report.problems.extend(problems);
    }
    let text = |row: &Row, column: &str| match row.get(column) {
        Some(Cell::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let number = |row: &Row, column: &str| match row.get(column) {
        Some(Cell::Int(number)) => *number,
        _ => -1,
    };
    kept.sort_by_cached_key(|row| {
        (text(row, "file"), number(row, "message"), number(row, "object"), text(row, "pointer"))
    });
    report.rows = kept.len() as u64;
    write(&kept, output, options.overwrite || options.refresh)?;
    Ok(report)
}

/// The path of a file below a directory, or its absolute path.
fn relative(real: &Path, base: &Path) -> Option<String> {
    let path = real.strip_prefix(base).unwrap_or(real);
    path.to_str().map(str::to_owned)
}

/// Starts of files with other extensions, or without one, that a catalog has nevertheless. Text has none.
const STARTS: [&[u8]; 9] = [
    b"TETR",
    tercet_tgm::MAGIC.as_slice(),
    b"TAT1",
    b"CDF\x01",
    b"CDF\x02",
    b"CDF\x05",
    b"\x89HDF\r\n\x1a\n",
    b"\x93NUMPY",
    b"GRIB",
];

/// Whether a file has the start of a container. Indexes beside files are not containers.
fn has_known_start(path: &Path) -> std::io::Result<bool> {
    use std::io::Read as _;

    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("idx")) {
        return Ok(false);
    }
    let mut start = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "a few bytes of a file that may be of any format")]
    std::fs::File::open(path)?.take(8).read_to_end(&mut start)?;
    Ok(STARTS.iter().any(|known| start.starts_with(known)))
}

/// Lists files. Those of directories are chosen by their extension or their first bytes; links in directories are not followed.
fn collect(
    path: &Path,
    is_given: bool,
    files: &mut Vec<PathBuf>,
    report: &mut CatalogReport,
) -> std::io::Result<()> {
    let metadata = if is_given { std::fs::metadata(path)? } else { std::fs::symlink_metadata(path)? };
    let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if !is_given && is_hidden {
        return Ok(());
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let is_known = extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()));
    if metadata.is_dir() {
        if crate::formats::zarr::is_store(path) {
            files.push(path.to_owned());
            return Ok(());
        }
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        entries.sort();
        for entry in entries {
            if let Err(error) = collect(&entry, false, files, report) {
                report.problems.push((entry.to_string_lossy().into_owned(), error.to_string()));
            }
        }
    } else if is_given && !metadata.is_file() {
        let problem = "neither a file nor a directory: a catalog refers to files by their paths";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, problem));
    } else if metadata.is_file() && (is_given || is_known || has_known_start(path)?) {
        files.push(path.to_owned());
    }
    Ok(())
}

/// The state of a file.
#[derive(Clone, Copy, Debug)]
struct State {
    size: u64,
    modified: i64,
}

impl State {
    /// The length and the last change of a file, or of all files of a store.
    fn new(path: &Path) -> Self {
        let mut state = Self { size: 0, modified: 0 };
        let mut waiting = vec![path.to_owned()];
        let mut is_given = true;
        while let Some(path) = waiting.pop() {
            // Links in stores are not followed.
            let metadata = if is_given { std::fs::metadata(&path) } else { std::fs::symlink_metadata(&path) };
            is_given = false;
            let Ok(metadata) = metadata else { continue };
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified = modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
            state.modified = state.modified.max(modified);
            if metadata.is_dir() {
                // A store changes with any of its files; a removed one changes its directory.
                let entries = std::fs::read_dir(&path).into_iter().flatten();
                waiting.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
            } else {
                state.size = state.size.saturating_add(metadata.len());
            }
        }
        state
    }

    fn cells(self) -> [(&'static str, Cell); 2] {
        let size = i64::try_from(self.size).unwrap_or(i64::MAX);
        [("file_size", Cell::Int(size)), ("file_modified", Cell::Int(self.modified))]
    }

    fn is_that_of(self, row: &Row) -> bool {
        self.cells().iter().all(|(column, cell)| row.get(*column) == Some(cell))
    }
}

type Found = (Vec<Row>, Vec<(String, String)>);

/// The rows of a file, and what could not be read.
fn rows_of(path: &Path, shown: &str, state: &State, options: &CatalogOptions) -> Found {
    let mut found = (Vec::new(), Vec::new());
    if let Err(error) = add_rows(path, shown, options, &mut found) {
        found.1.push((shown.to_owned(), error.kind().to_string()));
    }
    let problems: Vec<&str> = found.1.iter().map(|(_, reason)| reason.as_str()).collect();
    let problem: String = problems.join("; ").chars().take(MAX_PROBLEM).collect();
    for row in &mut found.0 {
        row.extend(state.cells().map(|(column, cell)| (column.to_owned(), cell)));
        row.extend((!problem.is_empty()).then(|| ("problem".to_owned(), Cell::Text(problem.clone()))));
    }
    found
}

fn add_rows(path: &Path, shown: &str, options: &CatalogOptions, found: &mut Found) -> Result<(), Error> {
    if path.is_dir() {
        array_rows(&*arrays::open_path_with(path, options.read)?, shown, options, found);
        return Ok(());
    }
    let location = tercet_core::Location::Path(path.to_owned());
    let source = tercet_core::source::open_location(&location, tercet_core::source::Access::Pread)
        .map_err(|error| Error::new(shown.into(), error.into()))?;
    if crate::diff::is_messages(&*source) {
        let reading = tercet_tgm::ReadOptions::from(options.read).with_allow_gaps(true);
        return message_rows(&tercet_tgm::File::from_source(source, reading)?, shown, options, found);
    }
    match arrays::open_source_with(source.clone(), options.read) {
        Err(error) if matches!(error.kind(), ErrorKind::UnknownFormat) => {
            table_row(&File::from_source(source, tercet_tatami::ReadOptions::new())?, shown, found);
            Ok(())
        }
        Err(error) => Err(error),
        Ok(source) => {
            array_rows(&*source, shown, options, found);
            Ok(())
        }
    }
}

/// A row with the columns that all kinds of rows have.
fn row(shown: &str, fragment: &str, format: &str, kind: &str, name: &str) -> Row {
    let mut row = Row::new();
    let pointer =
        Pointer { file: shown.to_owned(), part: (!fragment.is_empty()).then(|| fragment.to_owned()) };
    for (column, text) in [
        ("pointer", pointer.to_string().as_str()),
        ("file", shown),
        ("format", format),
        ("kind", kind),
        ("name", name),
    ] {
        row.insert(column.to_owned(), Cell::Text(text.to_owned()));
    }
    row
}

fn array_cells(row: &mut Row, dtype: &str, shape: &[u64], bytes: u64) {
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    row.insert("dtype".to_owned(), Cell::Text(dtype.to_owned()));
    row.insert("shape".to_owned(), Cell::Text(format!("[{}]", shape.join(", "))));
    row.insert("bytes".to_owned(), Cell::Int(i64::try_from(bytes).unwrap_or(i64::MAX)));
}

/// The searchable text of a row: all strings and numbers of it, and `more`.
fn set_text(row: &mut Row, more: &[String]) {
    let mut words: Vec<String> = Vec::new();
    for (column, cell) in row.iter() {
        let is_number = matches!(cell, Cell::Int(_) | Cell::Float(_));
        if matches!(column.as_str(), "pointer" | "shape" | "kind" | "dtype") || is_number {
            continue;
        }
        words.push(cell.text());
    }
    words.extend(more.iter().cloned());
    let text = words.join(" ").to_lowercase();
    row.insert("text".to_owned(), Cell::Text(text.chars().take(1 << 16).collect()));
}

/// Adds a metadata cell under a name that the row does not have yet.
fn add_cell(row: &mut Row, short: &str, full: &str, cell: Cell) {
    if matches!(&cell, Cell::Text(text) if text.len() > MAX_CELL) {
        return;
    }
    let is_free = |row: &Row, name: &str| {
        !name.is_empty() && !row.contains_key(name) && !COLUMNS.iter().any(|(column, _)| *column == name)
    };
    for name in [short.to_owned(), full.to_owned(), format!("{full}_")] {
        if is_free(row, &name) {
            row.insert(name, cell);
            return;
        }
    }
}

fn message_rows(
    file: &tercet_tgm::File,
    shown: &str,
    options: &CatalogOptions,
    found: &mut Found,
) -> Result<(), Error> {
    for gap in file.gaps()? {
        found.1.push((
            shown.to_owned(),
            format!("bytes {}..{} are not a message", gap.span.start(), gap.span.end()),
        ));
    }
    let rows: Vec<Found> = (0..file.message_count()?)
        .into_par_iter()
        .map(|number| {
            let mut found = (Vec::new(), Vec::new());
            let message = match file.message(number) {
                Ok(message) => message,
                Err(error) => {
                    found.1.push((shown.to_owned(), format!("message {number}: {}", error.kind())));
                    return found;
                }
            };
            for index in 0..message.object_count() {
                match object_row(&message, number, index, shown, options) {
                    Ok(row) => found.0.push(row),
                    Err(error) => {
                        found.1.push((
                            shown.to_owned(),
                            format!("message {number} object {index}: {}", error.kind()),
                        ));
                    }
                }
            }
            found
        })
        .collect();
    for (rows, problems) in rows {
        found.0.extend(rows);
        found.1.extend(problems);
    }
    Ok(())
}

fn object_row(
    message: &tercet_tgm::Message,
    number: u64,
    index: u64,
    shown: &str,
    options: &CatalogOptions,
) -> Result<Row, Error> {
    let object = message.object(index)?;
    let descriptor = object.descriptor();
    let metadata = message.metadata();
    let name = object_name(metadata, index);
    let mut row = row(shown, &format!("{number}.{index}"), "tgm", "object", &name);
    array_cells(&mut row, descriptor.dtype.name(), &descriptor.shape, object.decoded_len()?);
    for (column, number) in [("message", number), ("object", index)] {
        row.insert(column.to_owned(), Cell::Int(i64::try_from(number).unwrap_or(i64::MAX)));
    }
    let keys = object_keys(metadata, index);
    for (key, value) in &keys {
        let cell = match value {
            Value::Bool(value) => Cell::Bool(*value),
            Value::Integer(value) => {
                i64::try_from(*value).map_or_else(|_| Cell::Text(value.to_string()), Cell::Int)
            }
            Value::Float(value) => Cell::Float(*value),
            Value::Null => continue,
            other => Cell::Text(other.printed()),
        };
        let short = last_component(key);
        if !(short == "name" && cell == Cell::Text(name.clone())) {
            add_cell(&mut row, &short, key, cell);
        }
    }
    if options.statistics && descriptor.dtype.size().is_some() && descriptor.dtype != DType::Bitmask {
        let mut statistics = Statistics::default();
        statistics.add(descriptor.dtype, &object.decode_to_vec()?, &[]);
        statistics.cells(&mut row);
    }
    let words: Vec<String> =
        keys.iter().map(|(key, value)| format!("{key}={}", short_text(&value.printed()))).collect();
    set_text(&mut row, &words);
    Ok(row)
}

fn short_text(text: &str) -> String {
    text.chars().take(200).collect()
}

fn array_rows(source: &dyn ArraySource, shown: &str, options: &CatalogOptions, found: &mut Found) {
    let header = source.header();
    for (name, reason) in &header.unreadable {
        found.1.push((shown.to_owned(), format!("{name}: {reason}")));
    }
    let shared: Vec<String> = header
        .attrs
        .iter()
        .map(|attr| format!("{}={}", attr.name, short_text(&attr.value.to_text())))
        .collect();
    for (number, variable) in header.variables.iter().enumerate() {
        let mut row = row(shown, &variable.name, &header.format, "dataset", &variable.name);
        array_cells(&mut row, &variable.kind.to_string(), &variable.shape, variable.bytes());
        for attr in &variable.attrs {
            let cell = match &attr.value {
                AttrData::Text(text) => Cell::Text(text.clone()),
                AttrData::Numbers(numbers) if numbers.len() == 1 => match numbers.first() {
                    Some(Number::Int(value)) => {
                        i64::try_from(value).map_or_else(|_| Cell::Text(value.to_string()), Cell::Int)
                    }
                    Some(Number::Float(value)) => Cell::Float(value),
                    None => continue,
                },
                other => Cell::Text(other.to_text()),
            };
            if attr.name != crate::formats::tgm::RECORD {
                add_cell(&mut row, &attr.name, &attr.name, cell);
            }
        }
        if options.statistics && matches!(variable.kind, Kind::Number(_)) {
            match statistics(source, number, variable) {
                Ok(statistics) => statistics.cells(&mut row),
                Err(error) => {
                    found.1.push((shown.to_owned(), format!("{}: {}", variable.name, error.kind())));
                }
            }
        }
        let mut words = shared.clone();
        words.push(variable.dims.join(" "));
        set_text(&mut row, &words);
        found.0.push(row);
    }
}

fn table_row(file: &File, shown: &str, found: &mut Found) {
    let name =
        Path::new(shown).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut row = row(shown, "", "tatami", "table", &name);
    let columns: Vec<String> = file.schema().fields().iter().map(|field| field.name.to_string()).collect();
    row.insert("shape".to_owned(), Cell::Text(format!("[{}, {}]", file.rows(), columns.len())));
    row.insert("rows".to_owned(), Cell::Int(i64::try_from(file.rows()).unwrap_or(i64::MAX)));
    row.insert("columns".to_owned(), Cell::Text(columns.join(" ").chars().take(MAX_CELL / 4).collect()));
    set_text(&mut row, &columns);
    found.0.push(row);
}

/// Statistics of values without missing ones.
#[derive(Debug, Default)]
struct Statistics {
    min: Option<f64>,
    max: Option<f64>,
    sum: f64,
    count: u64,
    missing: u64,
    is_number: bool,
}

impl Statistics {
    fn add(&mut self, dtype: DType, bytes: &[u8], missing: &[f64]) {
        for element in bytes.chunks_exact(dtype.size().unwrap_or(1)) {
            let Some(value) = number_at(dtype, element).map(Number::as_f64) else { return };
            self.is_number = true;
            if value.is_nan() || missing.contains(&value) {
                self.missing += 1;
                continue;
            }
            self.min = Some(self.min.map_or(value, |min| min.min(value)));
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
            self.sum += value;
            self.count += 1;
        }
    }

    fn cells(&self, row: &mut Row) {
        if !self.is_number {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "the nearest float")]
        let mean = (self.count > 0).then(|| self.sum / self.count as f64);
        for (column, value) in [("min", self.min), ("max", self.max), ("mean", mean)] {
            row.extend(value.map(|value| (column.to_owned(), Cell::Float(value))));
        }
        row.insert("missing".to_owned(), Cell::Int(i64::try_from(self.missing).unwrap_or(i64::MAX)));
    }
}

/// The statistics of a variable, of decoded values.
fn statistics(source: &dyn ArraySource, number: usize, variable: &Variable) -> Result<Statistics, Error> {
    let is_packed = variable.attr("scale_factor").is_some() || variable.attr("add_offset").is_some();
    if is_packed {
        let variables = vec![variable.name.clone()];
        let options = ViewOptions { variables, unpack: true, ..ViewOptions::default() };
        let view = View::new(source, &options)?;
        if let Some(decoded) = view.header().find(&variable.name) {
            return accumulate(&view, decoded, &[]);
        }
    }
    let mut missing: Vec<f64> = Vec::new();
    for key in ["_FillValue", "missing_value"] {
        if let Some(AttrData::Numbers(numbers)) = variable.attr(key) {
            missing.extend(numbers.iter().map(Number::as_f64));
        }
    }
    accumulate(source, number, &missing)
}

fn accumulate(source: &dyn ArraySource, number: usize, missing: &[f64]) -> Result<Statistics, Error> {
    let variable = &source.header().variables[number];
    let (size, dtype) = (variable.item_size(), variable.dtype().unwrap_or(DType::U8));
    let mut statistics = Statistics::default();
    for (start, extents) in slabs(&variable.shape, size, variable.chunks.as_deref()) {
        let elements: u64 = extents.iter().product();
        let mut bytes = vec![0; usize::try_from(elements).unwrap_or(0) * size];
        source.read_box(number, &start, &extents, &mut bytes)?;
        statistics.add(dtype, &bytes, missing);
    }
    Ok(statistics)
}

/// The type of a metadata column: the narrowest that holds all cells.
fn column_type(cells: &[Option<&Cell>]) -> Type {
    let all = |test: fn(&Cell) -> bool| cells.iter().flatten().all(|cell| test(cell));
    if all(|cell| matches!(cell, Cell::Int(_))) {
        Type::Int64
    } else if all(|cell| matches!(cell, Cell::Bool(_))) {
        Type::Bool
    } else if all(|cell| {
        matches!(cell, Cell::Float(_)) || matches!(cell, Cell::Int(value) if value.unsigned_abs() <= 1 << 53)
    }) {
        Type::Float64
    } else {
        Type::String
    }
}

fn column(kind: Type, cells: &[Option<&Cell>]) -> Column {
    let mut validity = Bitmap::default();
    for cell in cells {
        validity.push(cell.is_some());
    }
    #[expect(clippy::cast_precision_loss, reason = "integers beyond 2^53 are strings")]
    let float = |cell: Option<&Cell>| match cell {
        Some(Cell::Float(value)) => *value,
        Some(Cell::Int(value)) => *value as f64,
        _ => 0.0,
    };
    let values = match kind {
        Type::Int64 => Values::Int64(
            cells.iter().map(|cell| if let Some(Cell::Int(value)) = cell { *value } else { 0 }).collect(),
        ),
        Type::Bool => Values::Bool(cells.iter().map(|cell| matches!(cell, Some(Cell::Bool(true)))).collect()),
        Type::Float64 => Values::Float64(cells.iter().copied().map(float).collect()),
        _ => Values::Bytes(cells.iter().map(|cell| cell.map(Cell::text).unwrap_or_default()).collect()),
    };
    Column::new(values).with_validity(validity)
}

fn write(rows: &[Row], output: &Path, overwrite: bool) -> Result<(), Error> {
    let fail = |detail: String| refused(&output.to_string_lossy(), detail);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in rows.iter().flat_map(BTreeMap::keys) {
        *counts.entry(name).or_default() += 1;
    }
    let mut others: Vec<(&str, usize)> =
        counts.into_iter().filter(|(name, _)| !COLUMNS.iter().any(|(column, _)| column == name)).collect();
    others.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    others.truncate(MAX_COLUMNS);
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let names = COLUMNS
        .iter()
        .map(|(name, kind)| (*name, Some(*kind)))
        .chain(others.iter().map(|(name, _)| (*name, None)));
    for (name, kind) in names {
        let cells: Vec<Option<&Cell>> = rows.iter().map(|row| row.get(name)).collect();
        let kind = kind.unwrap_or_else(|| column_type(&cells));
        fields.push(Field::new(name, kind).with_nulls());
        columns.push(column(kind, &cells));
    }
    let schema = Schema::new(fields).map_err(|error| fail(error.to_string()))?;
    let fingerprint = fingerprint(rows);
    if rows.len() >= INDEXED_ROWS {
        write_index(rows, output, &fingerprint)?;
    }
    let options = WriterOptions::new().with_overwrite(overwrite).with_metadata(MARK, VERSION);
    let mut writer = Writer::create(output, schema, options.with_metadata(FINGERPRINT, fingerprint))?;
    if !rows.is_empty() {
        writer.append(&columns)?;
    }
    writer.finish()?;
    Ok(())
}

fn text_of<'r>(row: &'r Row, column: &str) -> &'r str {
    match row.get(column) {
        Some(Cell::Text(text)) => text,
        _ => "",
    }
}

/// A hash of what an index contains.
fn fingerprint(rows: &[Row]) -> String {
    let mut hasher = blake3::Hasher::new();
    for row in rows {
        for column in INDEXED {
            let text = text_of(row, column);
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.finalize().to_string()
}

/// The columns that are searched, as URL, title and body of documents.
const INDEXED: [&str; 3] = ["pointer", "name", "text"];

/// The path of the index of a catalog.
fn index_path(catalog: &Path) -> PathBuf {
    let mut path = catalog.as_os_str().to_owned();
    path.push(".idx");
    path.into()
}

/// Options of an index: whole words without stems, because short names of parameters are not words.
fn index_options(fingerprint: &str) -> SegmentOptions {
    let writer = WriterOptions::new().with_overwrite(true).with_metadata(FINGERPRINT, fingerprint);
    SegmentOptions::new().with_writer(writer).with_analyzer(AnalyzerChoice::Fixed(Analyzer::STANDARD))
}

/// Writes the index of a catalog beside it.
fn write_index(rows: &[Row], output: &Path, fingerprint: &str) -> Result<(), Error> {
    let mut builder = SegmentBuilder::create(index_path(output), index_options(fingerprint))?;
    for (number, row) in rows.iter().enumerate() {
        let [pointer, name, text] = INDEXED.map(|column| text_of(row, column));
        let id = number.to_string();
        builder.add(&Document::new(pointer, name).with_id(&id).with_body(text.as_bytes()))?;
    }
    builder.finish()?;
    Ok(())
}

/// The index of a catalog: its file, if that belongs to these rows, or one in memory.
fn index(catalog: &File) -> Result<Segment, Error> {
    let pair = |file: &File| file.footer().pairs.iter().find(|(key, _)| key == FINGERPRINT).cloned();
    let expected = pair(catalog);
    if let (Some(path), Some(expected)) = (catalog.path(), &expected)
        && let Ok(file) = File::open(index_path(path))
        && pair(&file).as_ref() == Some(expected)
        && file.rows() == catalog.rows()
        && let Some(segment) = file.segment()?
    {
        return Ok(segment);
    }
    let positions = INDEXED.iter().map(|name| catalog.column_index(name)).collect::<Result<Vec<_>, _>>()?;
    let columns = catalog.read_columns(&positions)?;
    let mut builder = SegmentBuilder::new(std::io::Cursor::new(Vec::new()), index_options(""))?;
    for row in 0..usize::try_from(catalog.rows()).unwrap_or(0) {
        let text = |column: &Column| match column.scalar(row) {
            Some(Scalar::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        let [pointer, name, body] = [0, 1, 2].map(|column| columns.get(column).map(text).unwrap_or_default());
        let id = row.to_string();
        builder.add(&Document::new(&pointer, &name).with_id(&id).with_body(body.as_bytes()))?;
    }
    let built = File::from_bytes(catalog.name(), builder.finish()?.written.output)?;
    built.segment()?.ok_or_else(|| refused(catalog.name(), "the index of its text cannot be read"))
}

/// Opens a catalog.
pub fn open_catalog(path: &Path) -> Result<File, Error> {
    let file = File::open(path)?;
    if !file.footer().pairs.iter().any(|(key, _)| key == MARK) {
        return Err(refused(&path.to_string_lossy(), "is not a catalog of `tercet catalog`"));
    }
    Ok(file)
}

fn old_rows(path: &Path) -> Result<Vec<Row>, Error> {
    let file = open_catalog(path)?;
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let columns = file.read_columns(&all)?;
    let rows = usize::try_from(file.rows()).unwrap_or(0);
    Ok((0..rows).map(|row| cells(file.schema(), &columns, row)).collect())
}

/// The cells of a row that are not null.
fn cells(schema: &Schema, columns: &[Column], row: usize) -> Row {
    let cell = |(field, column): (&Field, &Column)| {
        let cell = match column.scalar(row)? {
            Scalar::Bool(value) => Cell::Bool(value),
            Scalar::Int64(value) => Cell::Int(value),
            Scalar::Float64(value) => Cell::Float(value),
            Scalar::Bytes(bytes) => Cell::Text(String::from_utf8_lossy(&bytes).into_owned()),
            _ => return None,
        };
        Some((field.name.to_string(), cell))
    };
    schema.fields().iter().zip(columns).filter_map(cell).collect()
}

/// What is looked for in a catalog.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FindOptions {
    /// A search query over the texts of rows; without one, all rows.
    pub query: Option<Query>,
    /// A filter over the columns.
    pub filter: Option<Expr>,
    /// The most rows; `None` for all.
    pub limit: Option<u64>,
}

impl FindOptions {
    /// Parses a search query. All of its words must occur, unless it has signs, quotes, parentheses or operators: then it is a
    /// [`Query`].
    pub fn new(text: &str) -> Result<Self, QueryError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Ok(Self::default());
        }
        let is_operator = |word: &&str| word.starts_with(['+', '-']) || ["AND", "OR", "NOT"].contains(word);
        let is_query = text.contains(['"', '(', ')']) || words.iter().any(is_operator);
        let query = if is_query {
            Query::parse(text)?
        } else {
            let all: Vec<String> = words.iter().map(|word| format!("+{word}")).collect();
            Query::parse(&all.join(" ")).or_else(|_| Query::parse(text))?
        };
        Ok(Self { query: Some(query), ..Self::default() })
    }
}

/// A row of a catalog: values by column, without nulls.
pub type CatalogRow = serde_json::Map<String, serde_json::Value>;

/// Finds rows of a catalog: those of a query by descending score, with a `score`; else in the order of the catalog.
pub fn find(catalog: &File, options: &FindOptions) -> Result<Vec<CatalogRow>, Error> {
    if let Some(query) = &options.query {
        return ranked(catalog, query, options);
    }
    let mut scan = catalog.scan();
    if let Some(filter) = &options.filter {
        scan = scan.filter(filter)?;
    }
    if let Some(limit) = options.limit {
        scan = scan.limit(limit);
    }
    let mut rows = Vec::new();
    for batch in scan.batches() {
        let batch = batch?;
        for row in 0..batch.rows.len() {
            rows.push(found_row(catalog, &batch.columns, row));
        }
    }
    Ok(rows)
}

fn found_row(catalog: &File, columns: &[Column], row: usize) -> CatalogRow {
    let json = |cell: Cell| match cell {
        Cell::Bool(value) => value.into(),
        Cell::Int(value) => value.into(),
        Cell::Float(value) => value.into(),
        Cell::Text(text) => text.into(),
    };
    let found = cells(catalog.schema(), columns, row);
    found.into_iter().map(|(column, cell)| (column, json(cell))).collect()
}

/// The rows of a query, by descending score.
fn ranked(catalog: &File, query: &Query, options: &FindOptions) -> Result<Vec<CatalogRow>, Error> {
    let segment = index(catalog)?;
    let rows = usize::try_from(catalog.rows()).unwrap_or(usize::MAX);
    let mut mask = None;
    if let Some(filter) = &options.filter {
        let mut passes = vec![false; rows];
        for batch in catalog.scan().columns(&["pointer"])?.filter(filter)?.batches() {
            for row in batch?.rows {
                if let Some(passes) = usize::try_from(row).ok().and_then(|row| passes.get_mut(row)) {
                    *passes = true;
                }
            }
        }
        mask = Some(Mask::from_fn(rows, |row| passes[row]));
    }
    let k = options.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(rows).min(rows);
    let search = SearchOptions::new(k).with_ranking(Ranking::Relevance).with_filter(mask.as_ref());
    let hits = segment.find(query, &search)?.hits;
    let numbers: Vec<u64> = hits.iter().map(|hit| hit.document.into()).collect();
    let all: Vec<usize> = (0..catalog.schema().len()).collect();
    let columns = catalog.take(&numbers, &all)?;
    let found = hits.iter().enumerate().map(|(number, hit)| {
        let mut row = found_row(catalog, &columns, number);
        row.insert("score".to_owned(), hit.score.into());
        row
    });
    Ok(found.collect())
}

/// Where data are: a file, and a part of it. A `#` or `%` in a name is written as `%23` or `%25`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The path of the file, relative to the directory of the catalog.
    pub file: String,
    /// A dataset, or `MESSAGE.OBJECT`; `None` for the whole file.
    pub part: Option<String>,
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let escaped = |text: &str| text.replace('%', "%25").replace('#', "%23");
        f.write_str(&escaped(&self.file))?;
        match &self.part {
            Some(part) => write!(f, "#{}", escaped(part)),
            None => Ok(()),
        }
    }
}

impl Pointer {
    /// Parses the text of a pointer.
    pub fn parse(text: &str) -> Self {
        let plain = |text: &str| text.replace("%23", "#").replace("%25", "%");
        match text.split_once('#') {
            Some((file, part)) => Self { file: plain(file), part: Some(plain(part)) },
            None => Self { file: plain(text), part: None },
        }
    }

    /// The path of the file below a directory. Absolute paths, `..`, symbolic links that leave the directory and URLs are refused,
    /// unless `allow_outside`.
    pub fn resolve(&self, base: &Path, allow_outside: bool) -> Result<PathBuf, Error> {
        let outside = |why: &str| {
            let detail =
                format!("the pointer {why}; pointers outside of `{}` must be allowed", base.display());
            Err(refused(&self.file, detail))
        };
        if self.file.contains("://") {
            return if allow_outside { Ok(PathBuf::from(&self.file)) } else { outside("is a URL") };
        }
        let path = base.join(&self.file);
        if allow_outside {
            return Ok(path);
        }
        let relative = Path::new(&self.file);
        if relative.components().any(|part| matches!(part, Component::ParentDir)) {
            return outside("contains `..`");
        }
        if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return outside("is an absolute path");
        }
        let fail = |error: std::io::Error| {
            Error::new(
                path.to_string_lossy().into(),
                ErrorKind::Source(tercet_core::SourceError::Open(error)),
            )
        };
        let (real, top) = (path.canonicalize().map_err(fail)?, base.canonicalize().map_err(fail)?);
        if real.starts_with(&top) { Ok(path) } else { outside("leads outside through a symbolic link") }
    }

    /// Opens the data of a pointer as a source of one variable; coordinates of a dataset come with it.
    pub fn open(&self, path: &Path) -> Result<Box<dyn ArraySource>, Error> {
        if path.is_dir() {
            return self.with_part(arrays::open_path(path)?);
        }
        let location = tercet_core::Location::Path(path.to_owned());
        let source = tercet_core::source::open_location(&location, tercet_core::source::Access::Pread);
        self.open_source(source.map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?)
    }

    /// Opens the data of a pointer in a source of bytes.
    pub fn open_source(&self, source: Arc<dyn ByteSource>) -> Result<Box<dyn ArraySource>, Error> {
        if let Some(part) = self.part.as_ref().filter(|_| crate::diff::is_messages(&*source)) {
            let numbers = part.split_once('.').and_then(|(m, o)| Some((m.parse().ok()?, o.parse().ok()?)));
            let (message, object) = numbers.ok_or_else(|| {
                refused(source.name(), format!("`#{part}` is not a message and an object, as in `#3.0`"))
            })?;
            let reading = tercet_tgm::ReadOptions::new().with_allow_gaps(true);
            let file = tercet_tgm::File::from_source(source, reading)?;
            return Ok(Box::new(crate::formats::tgm::ObjectSource::open(&file, message, object)?));
        }
        self.with_part(arrays::open_source(source)?)
    }

    /// Checks that an open source has the part of the pointer.
    pub fn with_part(&self, source: Box<dyn ArraySource>) -> Result<Box<dyn ArraySource>, Error> {
        match self.part.as_ref().filter(|part| source.header().find(part).is_none()) {
            Some(part) => Err(refused(source.name(), format!("there is no variable `{part}`"))),
            None => Ok(source),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests {
    use super::*;

    fn rows(count: usize) -> Vec<Row> {
        let row = |number: usize| {
            let mut row = row(&format!("a/{number}.tet"), "t", "tet", "dataset", "t");
            let kind = if number % 100 == 7 { "gust of wind gust" } else { "wind" };
            row.insert("step".to_owned(), Cell::Int(i64::try_from(number % 10).unwrap()));
            set_text(&mut row, &[format!("{kind} level={number}")]);
            row
        };
        (0..count).map(row).collect()
    }

    fn pointers(catalog: &File, text: &str, filter: Option<&str>, limit: Option<u64>) -> Vec<String> {
        let mut options = FindOptions::new(text).unwrap();
        options.filter = filter.map(|filter| Expr::parse(filter).unwrap());
        options.limit = limit;
        let found = find(catalog, &options).unwrap();
        found.into_iter().map(|row| row["pointer"].as_str().unwrap().to_owned()).collect()
    }

    /// A file beside the catalog and an index in memory find the same rows in the same order.
    #[test]
    fn an_index_is_used_if_it_belongs_to_the_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.tatami");
        write(&rows(INDEXED_ROWS), &path, false).unwrap();
        let index = index_path(&path);
        assert!(index.exists());
        let catalog = open_catalog(&path).unwrap();
        let queries = [
            ("gust", None, None),
            ("gust wind", Some("step = 7"), Some(5)),
            ("wind -gust", None, Some(30)),
            ("level=107", None, None),
            ("\"gust of\" OR level=3", None, None),
            ("gus*", None, Some(3)),
        ];
        let all = |catalog: &File| -> Vec<Vec<String>> {
            queries.iter().map(|(text, filter, limit)| pointers(catalog, text, *filter, *limit)).collect()
        };
        let expected = all(&catalog);
        assert_eq!(expected[0].len(), 41);
        assert_eq!(expected[1].len(), 5);
        assert_eq!(expected[3], ["a/107.tet#t"]);
        assert_eq!(expected[5].len(), 3);
        assert!(expected[2].iter().all(|pointer| !pointer.contains("07.tet")));
        // Damage of the index does not change the result, nor does an index of other rows.
        let bytes = std::fs::read(&index).unwrap();
        std::fs::write(&index, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(all(&catalog), expected);
        let other = directory.path().join("d.tatami");
        write(&rows(INDEXED_ROWS + 1), &other, false).unwrap();
        std::fs::copy(index_path(&other), &index).unwrap();
        assert_eq!(all(&catalog), expected);
        std::fs::remove_file(&index).unwrap();
        assert_eq!(all(&catalog), expected);
        assert!(FindOptions::new("\"open").is_err());
        assert!(find(&catalog, &FindOptions::new("nothing").unwrap()).unwrap().is_empty());
    }

    #[test]
    fn more_relevant_rows_are_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.tatami");
        write(&rows(100), &path, false).unwrap();
        assert!(!index_path(&path).exists());
        let found = pointers(&open_catalog(&path).unwrap(), "wind OR gust", None, Some(1));
        assert_eq!(found, ["a/7.tet#t"]);
    }
}
