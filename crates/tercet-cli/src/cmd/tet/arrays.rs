//! Array options shared by `create` and `append`.

use std::collections::BTreeSet;
use std::path::Path;

use tercet::convert::npy::{ElementConversion, Npy};
use tercet::convert::{self, chunking};
use tercet::core::{Class, Progress, Sink, escape};
use tercet::tet::{
    AttrValue, Compression, DatasetId, File, HistoryRow, Layout, LayoutError, MemoryBudget, Rounding,
    RoundingError, Writer, WriterOptions,
};

use crate::args::ProfileName;
use crate::failure::Failure;
use crate::input::{self, Input, must_be_npy};
use crate::named_file::{NamedFile, named_file};
use crate::remote;
use crate::render::parse_size;
use crate::ui::Ui;

pub(super) mod labels;
pub(super) mod scope;
pub(super) mod syntax;

use super::written::Storage;
use scope::Scoped;

/// The input arrays and their storage options.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Arrays")]
pub(crate) struct Arrays {
    /// Add the array in FILE as dataset NAME: `t2m=t2m.npy`. Repeatable; `-` reads standard input
    #[arg(long, value_name = "NAME=FILE", required = true, value_parser = named_file())]
    from: Vec<NamedFile>,
    /// Chunk shape: `1,721,1440` [default: 1 to 4 MiB of whole rows]
    #[arg(long, value_name = "[NAME:]N,N,…", value_parser = syntax::chunk)]
    chunk: Vec<String>,
    /// Compression: `none`, `zstd`, `zstd:LEVEL` with level -7 to 22, or `auto`: zstd:3 if it shrinks a sample of the values
    /// to 75 % or less, else none [default: auto; with --profile interop: none]
    #[arg(long, value_name = "[NAME:]CODEC[:LEVEL]", value_parser = syntax::compression)]
    compression: Vec<String>,
    /// Store raw chunks, which can be memory-mapped: short for `--compression none`
    #[arg(long, conflicts_with_all = ["compression", "zstd"])]
    raw: bool,
    /// Compress with zstd: short for `--compression zstd:LEVEL`
    #[arg(long, value_name = "[NAME:]LEVEL", num_args = 0..=1, default_missing_value = "3",
          allow_negative_numbers = true, value_parser = syntax::zstd)]
    zstd: Vec<String>,
    /// Round floats so that files become smaller: keep the fewest bits with an absolute error of at most E. Missing values,
    /// NaN and infinities are kept
    #[arg(long, value_name = "[NAME:]E", allow_negative_numbers = true, value_parser = syntax::max_error)]
    max_error: Vec<String>,
    /// Round floats to N mantissa bits: 0 to 10 for float16, to 23 for float32, to 52 for float64
    #[arg(long, value_name = "[NAME:]N", value_parser = syntax::keep_bits)]
    keep_bits: Vec<String>,
    /// Axis names, outermost first: `time,lat,lon`
    #[arg(long, value_name = "[NAME:]AXIS,…")]
    dims: Vec<String>,
    /// Set an attribute: `units=K`. Repeatable
    #[arg(long, value_name = "[NAME:]KEY=VALUE", value_parser = syntax::pair)]
    attr: Vec<(String, String)>,
    /// Read the labels of an axis from a file, one per line: `time=times.txt`. Axis by name or number
    #[arg(long, value_name = "[NAME:]AXIS=FILE", value_parser = named_file())]
    labels: Vec<NamedFile>,
    /// Maximum size of standard input, which is buffered in a temporary file
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_size)]
    max_stdin: u64,
}

/// Options of the whole file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "File")]
pub(crate) struct Whole {
    /// Cap the memory of readers beside the result: bytes (`512MiB`) or percent of memory (`25%`)
    #[arg(long, value_name = "SIZE|PERCENT%", value_parser = syntax::budget)]
    memory_budget: Option<MemoryBudget>,
    #[command(flatten)]
    style: Style,
}

/// Writer options.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Style {
    /// Output profile; `interop` writes the same bytes as the reference implementation, without checksums
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    profile: ProfileName,
    /// Omit chunk statistics, which let readers skip chunks
    #[arg(long)]
    no_statistics: bool,
    /// Omit checksums and statistics; damage cannot be detected
    #[arg(long)]
    no_checksums: bool,
}

/// Help text of the verbs with [`Arrays`].
pub(crate) const SCOPES: &str = "\
Array options apply to every array. Prefix a value with NAME: to apply it to one array: \
`--chunk t2m:1,721,1440 --attr t2m:units=K`; this overrides an option for all arrays. If an axis or key contains a \
colon, start it with a colon: `--attr :foaf:name=x`. Labels for all arrays are used by those that have the \
axis. Rounding for all arrays does not apply to those with the name of an axis, which hold its coordinates.";

impl Style {
    pub(crate) fn options(self) -> WriterOptions {
        match self.profile {
            ProfileName::Interop => WriterOptions::interop(),
            ProfileName::Native => WriterOptions::new()
                .with_checksums(!self.no_checksums)
                .with_statistics(!self.no_statistics && !self.no_checksums),
        }
    }

    /// The compression of arrays without an option.
    fn default_compression(self) -> Compression {
        match self.profile {
            // The output of the reference implementation.
            ProfileName::Interop => Compression::None,
            ProfileName::Native => Compression::Auto,
        }
    }

    /// Whether the file records its origin.
    pub(crate) fn records_origin(self) -> bool {
        self.profile == ProfileName::Native
    }
}

impl Whole {
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn apply(&self, layout: &mut Layout) -> Result<(), Failure> {
        match self.memory_budget {
            Some(budget) => Ok(layout.memory_budget(budget)?),
            None => Ok(()),
        }
    }
}

/// An open array with its options.
#[derive(Debug)]
pub(crate) struct Opened {
    name: String,
    npy: Npy,
    chunk: Vec<u64>,
    compression: Option<Compression>,
    rounding: Option<Rounding>,
    dims: Vec<String>,
    attrs: Vec<(String, String)>,
    labels: Vec<(String, Vec<String>)>,
}

impl Arrays {
    /// Opens every array and reads every label file. Nothing is written yet.
    pub(crate) fn open(&self, out: &mut Ui) -> Result<Vec<Opened>, Failure> {
        self.check_names()?;
        let names: Vec<&str> = self.from.iter().map(|from| from.name.as_str()).collect();
        let scoped = Scoped::parse(self, &names)?;
        // An array with the name of an axis holds its coordinates.
        let is_coordinate = |name: &str| scoped.all_dims().any(|axis| axis == name);
        let mut opened = Vec::with_capacity(self.from.len());
        for (number, from) in self.from.iter().enumerate() {
            let npy = self.open_npy(&from.path)?;
            note_widening(&npy, out)?;
            let chunk = match scoped.chunk(number) {
                Some(chunk) => chunk,
                None => chunking::default_chunk_shape(npy.shape(), npy.item_size()),
            };
            let dims = scoped.dims(number, &from.name, npy.shape().rank());
            opened.push(Opened {
                name: from.name.clone(),
                chunk,
                compression: if self.raw { Some(Compression::None) } else { scoped.compression(number) },
                rounding: scoped.rounding(number, is_coordinate(&from.name)),
                attrs: scoped.attrs(number),
                labels: scoped.labels(number, &dims, npy.shape().rank()),
                dims,
                npy,
            });
        }
        scoped.check_labels_used(&opened)?;
        Ok(opened)
    }

    /// Opens every array, without storage options.
    pub(crate) fn open_values(&self, out: &mut Ui) -> Result<Vec<(String, Npy)>, Failure> {
        self.check_names()?;
        let mut opened = Vec::with_capacity(self.from.len());
        for from in &self.from {
            let npy = self.open_npy(&from.path)?;
            note_widening(&npy, out)?;
            opened.push((from.name.clone(), npy));
        }
        Ok(opened)
    }

    /// The labels of the new positions of an axis.
    pub(crate) fn new_labels(&self, axis: &str) -> Result<Option<Vec<String>>, Failure> {
        if let Some(other) = self.labels.iter().find(|labels| labels.name != axis) {
            let (other, axis) = (escape::name(&other.name), escape::name(axis));
            let message = format!("labels of axis `{other}` are given, but `{axis}` grows");
            return Err(Failure::request(message));
        }
        match &self.labels[..] {
            [] => Ok(None),
            [labels] => Ok(Some(labels::read_or_split(&labels.path)?)),
            _ => Err(Failure::request("`--labels` is given more than once")),
        }
    }

    /// All input files: arrays and labels.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let arrays = self.from.iter().map(|from| from.path.as_path()).filter(|path| !is_stdin(path));
        arrays.chain(self.labels.iter().map(|file| file.path.as_path()))
    }

    fn check_names(&self) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.from.iter().find(|from| !seen.insert(&from.name)) {
            let name = escape::name(&twice.name);
            return Err(Failure::request(format!("duplicate dataset name `{name}`")));
        }
        if self.from.iter().filter(|from| is_stdin(&from.path)).count() > 1 {
            return Err(Failure::request("only one array can be read from standard input"));
        }
        Ok(())
    }

    fn open_npy(&self, path: &Path) -> Result<Npy, Failure> {
        if is_stdin(path) {
            let stdin = Input { path: path.to_owned(), max_stdin: self.max_stdin };
            return Ok(Npy::from_source(must_be_npy(stdin.source()?)?)?);
        }
        Ok(Npy::from_source(must_be_npy(input::open(path)?)?)?)
    }

    /// The input file names for the history, without directories.
    pub(crate) fn origin(&self) -> String {
        let plain = |from: &NamedFile| {
            remote::url_of(&from.path).map_or(from.path.clone(), |a| remote::redacted(a).into())
        };
        let name = |from: &NamedFile| match plain(from).file_name() {
            Some(name) if !is_stdin(&from.path) => name.to_string_lossy().into_owned(),
            _ => "standard input".to_owned(),
        };
        short_list(self.from.iter().map(name))
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn note_widening(npy: &Npy, out: &mut Ui) -> Result<(), Failure> {
    let what = match npy.conversion() {
        ElementConversion::Plain(_) => return Ok(()),
        ElementConversion::Bool => "bool stored as uint8",
        ElementConversion::Int8 => "int8 is not supported by .tet; stored as int16",
    };
    out.note(format_args!("note: {}: {what}", escape::name(npy.name())))
}

/// Names joined by commas, as many as fit in a history row.
pub(crate) fn short_list(names: impl ExactSizeIterator<Item = String>) -> String {
    /// A history row holds 1024 bytes; this leaves room for the count of the others.
    const ROOM: usize = 960;
    let total = names.len();
    let mut text = String::new();
    for (number, name) in names.enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        if text.len() + comma.len() + name.len() > ROOM {
            let cut = if number == 0 { &name[..name.floor_char_boundary(ROOM)] } else { "" };
            return format!("{text}{cut}{comma}… ({total} in all)");
        }
        text.push_str(comma);
        text.push_str(&name);
    }
    text
}

/// Adds the arrays to the layout.
pub(crate) fn plan(arrays: &[Opened], style: Style, layout: &mut Layout) -> Result<Vec<DatasetId>, Failure> {
    let mut ids = Vec::with_capacity(arrays.len());
    for array in arrays {
        let id = layout.dataset(&array.name, array.npy.dtype(), array.npy.shape(), &array.chunk)?;
        layout.compress(id, array.compression.unwrap_or(style.default_compression()))?;
        if !array.dims.is_empty() {
            layout.dims(id, array.dims.iter().map(String::as_str))?;
        }
        for (key, value) in &array.attrs {
            if AttrValue::must_be_number(key) {
                layout.set_attr(id, key, &value.as_str().into())?;
            } else {
                layout.attr(id, key, value)?;
            }
        }
        for (axis, labels) in &array.labels {
            layout.labels(id, axis, labels.clone())?;
        }
        // After the attributes: they name the missing values.
        if let Some(rounding) = array.rounding {
            layout.round(id, rounding).map_err(hint_to_name_arrays)?;
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Only some of the arrays may be floats.
fn hint_to_name_arrays(error: LayoutError) -> Failure {
    let integers = matches!(&error, LayoutError::Rounding { reason, .. }
        if matches!(**reason, RoundingError::Integers { .. }));
    let failure = Failure::from(error);
    if integers {
        failure.with_hint("name the arrays to round, like `--max-error t2m:0.01`")
    } else {
        failure
    }
}

/// Writes the values; returns how each array is stored.
pub(crate) fn store<S: Sink>(
    arrays: &[Opened],
    ids: &[DatasetId],
    writer: &mut Writer<S>,
    progress: &dyn Progress,
) -> Result<Vec<Storage>, Failure> {
    let mut stored = Vec::with_capacity(arrays.len());
    for (array, &id) in arrays.iter().zip(ids) {
        convert::store(&array.npy, writer, id, progress)?;
        let rounding = array.rounding.map(|rounding| (rounding, 0.0));
        stored.push(Storage { choice: writer.compression_choice(id), rounding });
    }
    Ok(stored)
}

/// Reads rounded arrays back and measures their errors. An error that is too large is a failure.
pub(crate) fn verify(
    arrays: &[Opened],
    stored: &mut [Storage],
    file: &File,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    for (array, storage) in arrays.iter().zip(stored) {
        let Some((rounding, error)) = &mut storage.rounding else { continue };
        *error = convert::max_abs_error(&array.npy, &file.dataset(&array.name)?, progress)?;
        check_error(file, &array.name, *rounding, *error)?;
    }
    Ok(())
}

/// Fails if an error is larger than its bound.
pub(crate) fn check_error(file: &File, name: &str, rounding: Rounding, error: f64) -> Result<(), Failure> {
    match rounding {
        Rounding::MaxError(bound) if error > bound => {
            let (path, name) = (escape::name(file.name()), escape::name(name));
            let message =
                format!("{path}: dataset `{name}` has an error of {error}, but {bound} is the maximum");
            Err(Failure::new(Class::Corrupt, message))
        }
        _ => Ok(()),
    }
}

/// Adds the roundings of arrays to a history row.
pub(crate) fn with_roundings(mut row: HistoryRow, arrays: &[Opened]) -> HistoryRow {
    let roundings = arrays.iter().filter_map(|array| Some((&array.name, array.rounding?)));
    let each = roundings.map(|(name, rounding)| format!("{name}: {rounding}"));
    let each: Vec<String> = each.collect();
    if !each.is_empty() {
        row = row.with_param("rounding", short_list(each.into_iter()));
    }
    row
}

/// The total size of all arrays.
pub(crate) fn total_bytes(arrays: &[Opened]) -> u64 {
    arrays.iter().fold(0, |sum, array| sum.saturating_add(array.npy.bytes()))
}

impl Opened {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
