//! Differences of two files: arrays of any format, messages, tables.

use std::sync::Arc;

use serde::Serialize;
use tercet_core::{ByteSource, DType, Progress, ReadOptions};
use tercet_tatami::{Column, Schema};

use crate::arrays::{self, ArraySource, Header, Kind, Number, Variable, number_at, place_of, sink::slabs};
use crate::tables::{Rows, Table, TableError};
use crate::{Error, ErrorKind};

/// What counts as a difference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiffOptions {
    /// The relative tolerance of floats, as in NumPy: `|a - b| <= atol + rtol * |b|`.
    pub rtol: f64,
    /// The absolute tolerance of floats.
    pub atol: f64,
    /// How many different values are listed, for each variable or column.
    pub max_examples: usize,
    /// Compare attributes and other metadata.
    pub metadata: bool,
    /// The limits of what is read.
    pub read: ReadOptions,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { rtol: 0.0, atol: 0.0, max_examples: 5, metadata: true, read: ReadOptions::new() }
    }
}

impl DiffOptions {
    /// Exact comparison of everything.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The differences of two files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Diff {
    /// What was compared.
    pub compared: Compared,
    /// The differences; none if the files have the same contents.
    pub differences: Vec<Difference>,
}

/// The kind of contents that two files have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// Variables with dimensions and attributes.
    #[default]
    Arrays,
    /// Messages with objects and metadata.
    Messages,
    /// Columns and rows.
    Tables,
}

/// One difference.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// What differs.
    pub aspect: Aspect,
    /// The variable, column, message or attribute.
    pub name: String,
    /// What differs, in words.
    pub detail: String,
    /// The number of values that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The maximum absolute difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_abs: Option<f64>,
    /// The first elements or rows with different values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ValueDifference>,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// Names, types, shapes, dimensions, numbers of messages or rows.
    Structure,
    /// Attributes and metadata of messages.
    Metadata,
    /// Values.
    Values,
}

/// An element or row with different values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueDifference {
    /// The position, one index per axis; a row of a table.
    pub position: Vec<u64>,
    /// The value of the first file.
    pub left: String,
    /// The value of the second file.
    pub right: String,
}

impl Diff {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    fn add(&mut self, aspect: Aspect, name: impl Into<String>, detail: impl Into<String>) {
        let (name, detail) = (name.into(), detail.into());
        self.differences.push(Difference {
            aspect,
            name,
            detail,
            count: None,
            max_abs: None,
            examples: Vec::new(),
        });
    }
}

/// Compares two array files: structure, metadata, values. Their formats may differ.
pub fn diff_arrays(
    left: &dyn ArraySource,
    right: &dyn ArraySource,
    options: &DiffOptions,
    progress: &dyn Progress,
) -> Result<Diff, Error> {
    let mut diff = Diff { compared: Compared::Arrays, ..Diff::default() };
    let (a, b) = (left.header(), right.header());
    diff_dims(a, b, &mut diff);
    if options.metadata {
        diff_attrs("", &a.attrs, &b.attrs, &mut diff);
    }
    for (name, _) in a.unreadable.iter().chain(&b.unreadable) {
        diff.add(Aspect::Structure, name, "cannot be read");
    }
    for variable in &b.variables {
        if a.find(&variable.name).is_none() {
            diff.add(Aspect::Structure, &variable.name, "only in the second file");
        }
    }
    for (number, variable) in a.variables.iter().enumerate() {
        let Some(other) = b.find(&variable.name) else {
            diff.add(Aspect::Structure, &variable.name, "only in the first file");
            continue;
        };
        diff_variable((left, number), (right, other), options, progress, &mut diff)?;
    }
    Ok(diff)
}

fn diff_dims(a: &Header, b: &Header, diff: &mut Diff) {
    for dim in &a.dims {
        match b.dim(&dim.name) {
            None => diff.add(Aspect::Structure, &dim.name, "dimension only in the first file"),
            Some(other) if other.len != dim.len => {
                let detail = format!("dimension of length {} and {}", dim.len, other.len);
                diff.add(Aspect::Structure, &dim.name, detail);
            }
            Some(_) => {}
        }
    }
    for dim in b.dims.iter().filter(|dim| a.dim(&dim.name).is_none()) {
        diff.add(Aspect::Structure, &dim.name, "dimension only in the second file");
    }
}

fn diff_attrs(of: &str, a: &[arrays::Attr], b: &[arrays::Attr], diff: &mut Diff) {
    let named = |name: &str| if of.is_empty() { name.to_owned() } else { format!("{of}:{name}") };
    for attr in a {
        match b.iter().find(|other| other.name == attr.name) {
            None => diff.add(Aspect::Metadata, named(&attr.name), "attribute only in the first file"),
            Some(other) if other.value != attr.value => {
                let (left, right) = (typed_text(&attr.value), typed_text(&other.value));
                diff.add(Aspect::Metadata, named(&attr.name), format!("{left} and {right}"));
            }
            Some(_) => {}
        }
    }
    for attr in b.iter().filter(|attr| !a.iter().any(|other| other.name == attr.name)) {
        diff.add(Aspect::Metadata, named(&attr.name), "attribute only in the second file");
    }
}

fn typed_text(value: &arrays::AttrData) -> String {
    const SHOWN: usize = 80;
    let kind = match value {
        arrays::AttrData::Numbers(numbers) => numbers.dtype.short_name(),
        _ => "string",
    };
    let text = value.to_text();
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{kind} {short:?}{more}")
}

/// A variable of a source.
pub(crate) type Side<'s> = (&'s dyn ArraySource, usize);

fn diff_variable(
    left: Side<'_>,
    right: Side<'_>,
    options: &DiffOptions,
    progress: &dyn Progress,
    diff: &mut Diff,
) -> Result<(), Error> {
    let (a, b) = (&left.0.header().variables[left.1], &right.0.header().variables[right.1]);
    let is_text = |variable: &Variable| matches!(variable.kind, Kind::Char | Kind::String);
    if a.kind != b.kind {
        diff.add(Aspect::Structure, &a.name, format!("type {} and {}", a.kind, b.kind));
    }
    let both_text = is_text(a) && is_text(b);
    if a.dims != b.dims && !(both_text && a.kind != b.kind) {
        let detail = format!("dimensions {} and {}", a.dims.join(", "), b.dims.join(", "));
        diff.add(Aspect::Structure, &a.name, detail);
    }
    if options.metadata {
        diff_attrs(&a.name, &a.attrs, &b.attrs, diff);
    }
    if both_text && (a.kind == Kind::String || b.kind == Kind::String) {
        let (x, y) = (strings(left)?, strings(right)?);
        if x != y {
            let at = x.iter().zip(&y).position(|(x, y)| x != y).unwrap_or(x.len().min(y.len()));
            let text =
                |strings: &[String]| strings.get(at).map_or("missing".to_owned(), |text| format!("{text:?}"));
            let example = ValueDifference { position: vec![at as u64], left: text(&x), right: text(&y) };
            let count = x.iter().zip(&y).filter(|(x, y)| x != y).count() + x.len().abs_diff(y.len());
            diff.differences.push(Difference {
                aspect: Aspect::Values,
                name: a.name.clone(),
                detail: format!("{count} strings differ"),
                count: Some(count as u64),
                max_abs: None,
                examples: vec![example],
            });
        }
        return Ok(());
    }
    if a.shape != b.shape {
        diff.add(Aspect::Structure, &a.name, format!("shape {:?} and {:?}", a.shape, b.shape));
        return Ok(());
    }
    let (Some(from), Some(to)) = (a.dtype(), b.dtype()) else { return Ok(()) };
    let parts = if from == to { complex_parts(from) } else { 1 };
    let comparable = from == to || (complex_parts(from) == 1 && complex_parts(to) == 1);
    if !comparable {
        return Ok(());
    }
    let mut found = ValueComparison::default();
    for (start, extents) in slabs(&a.shape, a.item_size().max(b.item_size()), a.chunks.as_deref()) {
        progress.check().map_err(|cancelled| Error::new(left.0.name().into(), cancelled.into()))?;
        let elements: u64 = extents.iter().product();
        let buffer =
            |variable: &Variable| vec![0; usize::try_from(elements).unwrap_or(0) * variable.item_size()];
        let (mut x, mut y) = (buffer(a), buffer(b));
        left.0.read_box(left.1, &start, &extents, &mut x)?;
        right.0.read_box(right.1, &start, &extents, &mut y)?;
        if from != to || x != y {
            found.compare((element_type(from), element_type(to)), (&x, &y), options, |element| {
                place_of(&start, &extents, element / parts)
            });
        }
        progress.advance((x.len() + y.len()) as u64);
    }
    diff.differences.extend(found.difference(&a.name, a.elements()));
    Ok(())
}

/// Strings of a variable; those of characters without their padding.
pub(crate) fn strings((source, number): Side<'_>) -> Result<Vec<String>, Error> {
    let variable = &source.header().variables[number];
    if variable.kind == Kind::String {
        return source.read_strings(number);
    }
    let values = arrays::read_all(source, number)?;
    let width = variable.shape.last().and_then(|width| usize::try_from(*width).ok()).unwrap_or(1).max(1);
    let text = |bytes: &[u8]| {
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    Ok(values.bytes().chunks(width).map(text).collect())
}

fn complex_parts(dtype: DType) -> usize {
    if matches!(dtype, DType::C64 | DType::C128) { 2 } else { 1 }
}

fn element_type(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Different values of a variable.
#[derive(Default)]
struct ValueComparison {
    count: u64,
    max_abs: f64,
    examples: Vec<ValueDifference>,
}

impl ValueComparison {
    fn compare(
        &mut self,
        (from, to): (DType, DType),
        (x, y): (&[u8], &[u8]),
        options: &DiffOptions,
        place: impl Fn(usize) -> Vec<u64>,
    ) {
        let (size, other) = (from.size().unwrap_or(1), to.size().unwrap_or(1));
        for (element, (x, y)) in x.chunks_exact(size).zip(y.chunks_exact(other)).enumerate() {
            if from == to && x == y {
                continue;
            }
            let (Some(x), Some(y)) = (number_at(from, x), number_at(to, y)) else { continue };
            let Some(distance) = distance(x, y, options) else { continue };
            self.count += 1;
            self.max_abs = self.max_abs.max(distance);
            if self.examples.len() < options.max_examples {
                self.examples.push(ValueDifference {
                    position: place(element),
                    left: text(x),
                    right: text(y),
                });
            }
        }
    }

    fn difference(self, name: &str, elements: u64) -> Option<Difference> {
        (self.count > 0).then(|| Difference {
            aspect: Aspect::Values,
            name: name.to_owned(),
            detail: format!("{} of {elements} values differ by up to {}", self.count, self.max_abs),
            count: Some(self.count),
            max_abs: Some(self.max_abs),
            examples: self.examples,
        })
    }
}

fn text(number: Number) -> String {
    match number {
        Number::Int(value) => value.to_string(),
        Number::Float(value) => format!("{value:?}"),
    }
}

/// The distance of two values that differ; `None` within the tolerances. NaN equals NaN.
#[expect(clippy::float_cmp, reason = "equal values do not differ, also infinities")]
fn distance(x: Number, y: Number, options: &DiffOptions) -> Option<f64> {
    if let (Number::Int(x), Number::Int(y)) = (x, y) {
        #[expect(clippy::cast_precision_loss, reason = "the nearest float")]
        let distance = x.abs_diff(y) as f64;
        let allowed = options.atol + options.rtol * Number::Int(y).as_f64().abs();
        return (x != y && distance > allowed).then_some(distance);
    }
    let (x, y) = (x.as_f64(), y.as_f64());
    if x.is_nan() && y.is_nan() || x == y {
        return None;
    }
    let distance = (x - y).abs();
    if distance.is_nan() {
        return Some(f64::INFINITY);
    }
    let allowed = options.atol + options.rtol * y.abs();
    (distance.is_infinite() || distance > allowed).then_some(distance)
}

/// Compares two `.tgm` files message by message: metadata, descriptors and values. Time, UUID and encoder of a message are not
/// compared.
#[expect(clippy::many_single_char_names, reason = "pairs of the two sides")]
pub fn diff_messages(
    left: &tercet_tgm::File,
    right: &tercet_tgm::File,
    options: &DiffOptions,
    progress: &dyn Progress,
) -> Result<Diff, Error> {
    let mut diff = Diff { compared: Compared::Messages, ..Diff::default() };
    let (a, b) = (left.message_count()?, right.message_count()?);
    if a != b {
        diff.add(Aspect::Structure, "messages", format!("{a} and {b}"));
    }
    for number in 0..a.min(b) {
        progress.check().map_err(|cancelled| Error::new(left.name().clone(), cancelled.into()))?;
        let (x, y) = (left.message(number)?, right.message(number)?);
        let name = format!("message {number}");
        if options.metadata {
            let (p, q) = (x.metadata().without_reserved(), y.metadata().without_reserved());
            if p.to_cbor() != q.to_cbor() {
                diff_metadata(&name, &p, &q, &mut diff);
            }
        }
        let (m, n) = (x.object_count(), y.object_count());
        if m != n {
            diff.add(Aspect::Structure, &name, format!("{m} and {n} objects"));
        }
        for index in 0..m.min(n) {
            let (p, q) = (x.object(index)?, y.object(index)?);
            let name = format!("message {number} object {index}");
            let (d, e) = (p.descriptor(), q.descriptor());
            if (d.dtype, &d.shape) != (e.dtype, &e.shape) {
                let detail = format!("{} {:?} and {} {:?}", d.dtype, d.shape, e.dtype, e.shape);
                diff.add(Aspect::Structure, &name, detail);
                continue;
            }
            let (u, v) = (p.decode_to_vec()?, q.decode_to_vec()?);
            progress.advance((u.len() + v.len()) as u64);
            if u == v {
                continue;
            }
            let dtype = element_type(d.dtype);
            let mut found = ValueComparison::default();
            let parts = complex_parts(d.dtype);
            let start = vec![0; d.shape.len()];
            found.compare((dtype, dtype), (&u, &v), options, |element| {
                place_of(&start, &d.shape, element / parts)
            });
            if found.count == 0 && dtype == DType::Bitmask {
                diff.add(Aspect::Values, &name, "the bits differ");
            }
            let elements = d.shape.iter().fold(1, |product: u64, extent| product.saturating_mul(*extent));
            diff.differences.extend(found.difference(&name, elements));
        }
    }
    Ok(diff)
}

fn diff_metadata(
    name: &str,
    a: &tercet_tgm::GlobalMetadata,
    b: &tercet_tgm::GlobalMetadata,
    diff: &mut Diff,
) {
    let entries = a.base.len().max(b.base.len());
    let sections = (0..entries)
        .map(|entry| {
            let of = |metadata: &'_ tercet_tgm::GlobalMetadata| {
                metadata.base.get(entry).cloned().unwrap_or_default()
            };
            (format!("{name} object {entry}"), of(a), of(b))
        })
        .chain([(name.to_owned(), a.extra.clone(), b.extra.clone())]);
    for (name, a, b) in sections {
        for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
            let (x, y) = (a.get(key), b.get(key));
            let same = match (x, y) {
                (Some(x), Some(y)) => tercet_tgm::cbor::encode(x) == tercet_tgm::cbor::encode(y),
                _ => false,
            };
            if !same {
                let shown = |value: Option<&tercet_tgm::Value>| {
                    value.map_or("missing".to_owned(), tercet_tgm::Value::printed)
                };
                diff.add(Aspect::Metadata, format!("{name}:{key}"), format!("{} and {}", shown(x), shown(y)));
            }
        }
    }
}

/// Compares two tables: columns, types and rows, in order.
#[expect(clippy::many_single_char_names, reason = "pairs of the two sides")]
pub fn diff_tables(
    left: &mut Table,
    right: &mut Table,
    options: &DiffOptions,
    progress: &dyn Progress,
) -> Result<Diff, TableError> {
    let mut diff = Diff { compared: Compared::Tables, ..Diff::default() };
    let (a, b) = (left.schema().clone(), right.schema().clone());
    diff_schemas(&a, &b, &mut diff);
    let (x, y) = (whole(left, progress)?, whole(right, progress)?);
    let rows = |columns: &[Column]| columns.first().map_or(0, Column::len);
    let (m, n) = (rows(&x), rows(&y));
    if m != n {
        diff.add(Aspect::Structure, "rows", format!("{m} and {n}"));
    }
    for (field, column) in a.fields().iter().zip(&x) {
        let Some(other) = b.index_of(&field.name).and_then(|other| y.get(other)) else { continue };
        let mut found = ValueComparison::default();
        for row in 0..m.min(n) {
            if same_cell(column, other, row, options) {
                continue;
            }
            found.count += 1;
            if found.examples.len() < options.max_examples {
                let (left, right) = (cell(column, row), cell(other, row));
                found.examples.push(ValueDifference { position: vec![row as u64], left, right });
            }
        }
        if found.count > 0 {
            diff.differences.push(Difference {
                aspect: Aspect::Values,
                name: field.name.to_string(),
                detail: format!("{} of {} rows differ", found.count, m.min(n)),
                count: Some(found.count),
                max_abs: None,
                examples: found.examples,
            });
        }
    }
    Ok(diff)
}

fn diff_schemas(a: &Schema, b: &Schema, diff: &mut Diff) {
    for field in a.fields() {
        match b.index_of(&field.name).map(|other| &b.fields()[other]) {
            None => diff.add(Aspect::Structure, &*field.name, "column only in the first file"),
            Some(other) if (other.kind, other.scalar()) != (field.kind, field.scalar()) => {
                let detail = format!("type {:?} and {:?}", field.kind, other.kind);
                diff.add(Aspect::Structure, &*field.name, detail);
            }
            Some(_) => {}
        }
    }
    for field in b.fields().iter().filter(|field| a.index_of(&field.name).is_none()) {
        diff.add(Aspect::Structure, &*field.name, "column only in the second file");
    }
}

/// All rows of a table.
fn whole(table: &mut Table, progress: &dyn Progress) -> Result<Vec<Column>, TableError> {
    let mut columns: Option<Vec<Column>> = None;
    table.read(progress, &mut |_| {}, |rows: Rows| {
        match &mut columns {
            None => columns = Some(rows.columns),
            Some(columns) => {
                for (column, more) in columns.iter_mut().zip(&rows.columns) {
                    column.extend_from(more, 0, more.len());
                }
            }
        }
        Ok::<(), TableError>(())
    })?;
    Ok(columns.unwrap_or_default())
}

fn same_cell(a: &Column, b: &Column, row: usize, options: &DiffOptions) -> bool {
    use tercet_tatami::Scalar;
    if a.is_present(row) != b.is_present(row) {
        return false;
    }
    match (a.scalar(row), b.scalar(row)) {
        (Some(x), Some(y)) if x == y => true,
        (Some(x), Some(y)) => {
            let number = |scalar: &Scalar| {
                Some(match scalar {
                    Scalar::Int8(value) => Number::Int((*value).into()),
                    Scalar::Int16(value) => Number::Int((*value).into()),
                    Scalar::Int32(value) => Number::Int((*value).into()),
                    Scalar::Int64(value) => Number::Int((*value).into()),
                    Scalar::UInt8(value) => Number::Int((*value).into()),
                    Scalar::UInt16(value) => Number::Int((*value).into()),
                    Scalar::UInt32(value) => Number::Int((*value).into()),
                    Scalar::UInt64(value) => Number::Int((*value).into()),
                    Scalar::Float32(value) => Number::Float((*value).into()),
                    Scalar::Float64(value) => Number::Float(*value),
                    Scalar::Bool(_) | Scalar::Bytes(_) => return None,
                })
            };
            match (number(&x), number(&y)) {
                (Some(x), Some(y)) => distance(x, y, options).is_none(),
                _ => false,
            }
        }
        // Both are null, or lists.
        _ => cell(a, row) == cell(b, row),
    }
}

/// The text of a cell.
fn cell(column: &Column, row: usize) -> String {
    use tercet_tatami::Values;
    if !column.is_present(row) {
        return "null".to_owned();
    }
    match (&column.values, column.scalar(row)) {
        (_, Some(scalar)) => scalar.to_string(),
        (Values::List(lists), None) => {
            let items: Vec<String> = lists.range(row).map(|item| cell(&lists.elements, item)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => String::new(),
    }
}

/// Whether a file has the magic bytes of messages.
pub(crate) fn is_messages(source: &dyn ByteSource) -> bool {
    let head = source.read_at(tercet_core::Span::first(source.len().min(8)));
    head.is_ok_and(|head| head.starts_with(tercet_tgm::MAGIC))
}

/// Compares two files of any format: as messages if both are `.tgm` files, as tables if both are tables, else as arrays.
pub fn diff(
    left: &Arc<dyn ByteSource>,
    right: &Arc<dyn ByteSource>,
    options: &DiffOptions,
    progress: &dyn Progress,
) -> Result<Diff, DiffError> {
    if is_messages(&**left) && is_messages(&**right) {
        let open = |source: &Arc<dyn ByteSource>| {
            tercet_tgm::File::from_source(Arc::clone(source), options.read.into())
        };
        return Ok(diff_messages(
            &open(left).map_err(Error::from)?,
            &open(right).map_err(Error::from)?,
            options,
            progress,
        )?);
    }
    let open = |source: &Arc<dyn ByteSource>| arrays::open_source_with(Arc::clone(source), options.read);
    match (open(left), open(right)) {
        (Ok(left), Ok(right)) => Ok(diff_arrays(&*left, &*right, options, progress)?),
        (Err(error), _) | (_, Err(error)) if !matches!(error.kind(), ErrorKind::UnknownFormat) => {
            Err(error.into())
        }
        (Err(_), Err(_)) => {
            let open = |source: &Arc<dyn ByteSource>| open_table(source, options.read, progress);
            let (mut left, mut right) = (open(left)?, open(right)?);
            Ok(diff_tables(&mut left, &mut right, options, progress)?)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error.into()),
    }
}

/// Opens a table of any format.
pub(crate) fn open_table(
    source: &Arc<dyn ByteSource>,
    read: ReadOptions,
    progress: &dyn Progress,
) -> Result<Table, DiffError> {
    let options = crate::tables::TableOptions { read, ..crate::tables::TableOptions::new() };
    let found = crate::tables::detect(source).map_err(TableError::from)?;
    let format = found.format.ok_or_else(|| Error::new(source.name().clone(), ErrorKind::UnknownFormat))?;
    Ok(Table::open(&[Arc::clone(source)], format, &options, progress)?)
}

/// Error of a comparison: of an array file, or of a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// Of an array file or of messages.
    #[error(transparent)]
    Arrays(#[from] Error),
    /// Of a table.
    #[error(transparent)]
    Table(#[from] TableError),
}
