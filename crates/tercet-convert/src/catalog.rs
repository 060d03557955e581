//! Catalogues: a `.tatami` table with a row for each dataset, message object and table of many files.
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
//! | others | metadata: the last component of a key (`mars.step` is `step`), or attributes |
//!
//! Pointers are relative to the directory of the catalogue. [`Pointer::resolve`] refuses to leave it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::{DType, Progress};
use tercet_tatami::predicate::{Comparison, Literal};
use tercet_tatami::{Bitmap, Column, Expr, Field, File, Scalar, Schema, Type, Values, Writer, WriterOptions};
use tercet_tgm::Value;

use crate::arrays::sink::slabs;
use crate::arrays::source::{malformed, refused};
use crate::arrays::{self, ArraySource, AttrData, Kind, Number, Variable, View, ViewOptions, number_at};
use crate::formats::tgm::{last_component, object_keys, object_name};
use crate::{Error, ErrorKind};

/// The key of the footer that marks a catalogue.
const MARK: &str = "tercet.catalog";
/// The version of the columns.
const VERSION: &str = "1";

/// Columns that every catalogue has, in order.
const COLUMNS: [(&str, Type); 17] = [
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
];

/// Metadata columns of a catalogue; rarer keys are part of the text only.
const MAX_COLUMNS: usize = 400;
/// The longest metadata value that is a cell.
const MAX_CELL: usize = 4096;
/// Extensions of files that are looked for in directories.
const EXTENSIONS: [&str; 21] = [
    "tet", "tgm", "tatami", "nc", "nc3", "nc4", "nc5", "cdf", "h5", "hdf5", "he5", "hdf", "zarr", "npy",
    "npz", "grib", "grib1", "grib2", "grb", "grb2", "zip",
];

/// Options of a catalogue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogOptions {
    /// Replace an existing file.
    pub overwrite: bool,
    /// Keep the rows of files that have not changed since the catalogue was written.
    pub refresh: bool,
    /// Read all values for statistics.
    pub statistics: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self { overwrite: false, refresh: false, statistics: true }
    }
}

impl CatalogOptions {
    /// The defaults: a new file, with statistics.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a catalogue contains.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CatalogReport {
    /// Rows of the catalogue.
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

/// Writes a catalogue of files and directories.
pub fn build_catalog(
    inputs: &[PathBuf],
    output: &Path,
    options: &CatalogOptions,
    progress: &dyn Progress,
) -> Result<CatalogReport, Error> {
    let name = output.to_string_lossy().into_owned();
    let fail = |error: std::io::Error| Error::new(name.as_str().into(), ErrorKind::from(error));
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let base = parent.canonicalize().map_err(fail)?;
    let own = base.join(output.file_name().unwrap_or_default());
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
            Some(rows) if rows.iter().all(|row| state.is_that_of(row)) => {
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

/// Lists files. Those of directories are chosen by their extension; links in directories are not followed.
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
    } else if metadata.is_file() && (is_given || is_known) {
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
    fn new(path: &Path) -> Self {
        // The metadata file of a store is written last.
        let file = if path.is_dir() { path.join("zarr.json") } else { path.to_owned() };
        let metadata = std::fs::metadata(&file).or_else(|_| std::fs::metadata(path));
        let Ok(metadata) = metadata else { return Self { size: 0, modified: 0 } };
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        Self { size: metadata.len(), modified }
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
    for row in &mut found.0 {
        row.extend(state.cells().map(|(column, cell)| (column.to_owned(), cell)));
    }
    found
}

fn add_rows(path: &Path, shown: &str, options: &CatalogOptions, found: &mut Found) -> Result<(), Error> {
    if path.is_dir() {
        array_rows(&*arrays::open_path(path)?, shown, options, found);
        return Ok(());
    }
    let location = tercet_core::Location::Path(path.to_owned());
    let source = tercet_core::source::open_location(&location, tercet_core::source::Access::Pread)
        .map_err(|error| Error::new(shown.into(), error.into()))?;
    if crate::diff::is_messages(&*source) {
        let reading = tercet_tgm::ReadOptions::new().with_allow_gaps(true);
        return message_rows(&tercet_tgm::File::from_source(source, reading)?, shown, options, found);
    }
    match arrays::open_source(source.clone()) {
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
    let options = WriterOptions::new().with_overwrite(overwrite).with_metadata(MARK, VERSION);
    let mut writer = Writer::create(output, schema, options)?;
    if !rows.is_empty() {
        writer.append(&columns)?;
    }
    writer.finish()?;
    Ok(())
}

/// Opens a catalogue.
pub fn open_catalog(path: &Path) -> Result<File, Error> {
    let file = File::open(path)?;
    if !file.footer().pairs.iter().any(|(key, _)| key == MARK) {
        return Err(refused(&path.to_string_lossy(), "is not a catalogue of `tercet catalog`"));
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

/// What is looked for in a catalogue.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FindOptions {
    /// Terms that the text of a row contains, without case; all of them.
    pub terms: Vec<String>,
    /// A filter over the columns.
    pub filter: Option<Expr>,
    /// The most rows; `None` for all.
    pub limit: Option<u64>,
}

impl FindOptions {
    /// The terms of a text, separated by spaces.
    pub fn new(text: &str) -> Self {
        Self { terms: text.split_whitespace().map(str::to_lowercase).collect(), ..Self::default() }
    }
}

/// A row of a catalogue: values by column, without nulls.
pub type FoundRow = serde_json::Map<String, serde_json::Value>;

/// Finds rows of a catalogue, in its order.
pub fn find(catalog: &File, options: &FindOptions) -> Result<Vec<FoundRow>, Error> {
    let term = |term: &String| Expr::Comparison {
        column: "text".to_owned(),
        test: Comparison::Substring(Literal::Text(term.clone())),
    };
    let filters = options.terms.iter().map(term).chain(options.filter.clone());
    let mut scan = catalog.scan();
    if let Some(filter) = filters.reduce(Expr::and) {
        scan = scan.filter(&filter)?;
    }
    if let Some(limit) = options.limit {
        scan = scan.limit(limit);
    }
    let mut rows = Vec::new();
    for batch in scan.batches() {
        let batch = batch?;
        for row in 0..batch.rows.len() {
            let json = |cell: Cell| match cell {
                Cell::Bool(value) => value.into(),
                Cell::Int(value) => value.into(),
                Cell::Float(value) => value.into(),
                Cell::Text(text) => text.into(),
            };
            let found = cells(catalog.schema(), &batch.columns, row);
            rows.push(found.into_iter().map(|(column, cell)| (column, json(cell))).collect());
        }
    }
    Ok(rows)
}

/// Where data are: a file, and a part of it. A `#` or `%` in a name is written as `%23` or `%25`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The path of the file, relative to the directory of the catalogue.
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
        let name = path.to_string_lossy();
        let Some(part) = &self.part else { return arrays::open_path(path) };
        let location = tercet_core::Location::Path(path.to_owned());
        if !path.is_dir() {
            let source = tercet_core::source::open_location(&location, tercet_core::source::Access::Pread)
                .map_err(|error| Error::new(name.as_ref().into(), error.into()))?;
            if crate::diff::is_messages(&*source) {
                let numbers =
                    part.split_once('.').and_then(|(m, o)| Some((m.parse().ok()?, o.parse().ok()?)));
                let (message, object) = numbers.ok_or_else(|| {
                    refused(&name, format!("`#{part}` is not a message and an object, as in `#3.0`"))
                })?;
                let reading = tercet_tgm::ReadOptions::new().with_allow_gaps(true);
                let file = tercet_tgm::File::from_source(source, reading)?;
                return Ok(Box::new(crate::formats::tgm::ObjectSource::open(&file, message, object)?));
            }
        }
        let source = arrays::open_path(path)?;
        if source.header().find(part).is_none() {
            return Err(malformed(&name, format!("there is no variable `{part}`")));
        }
        Ok(source)
    }
}
