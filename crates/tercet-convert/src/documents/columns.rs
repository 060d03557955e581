//! Columns for the fields of documents that are not ID, URL, title, body or anchor text.
//!
//! ```text
//! JSONL       all lines ─▶ kinds of values ─▶ bool, int64, uint64, float64, string, lists of these
//! other files their columns
//! ```
//!
//! Types are those of all values, so no value is changed: a field with strings and numbers is a string, one with dates only is a date.
//! Objects have a column for each of their members, named `object.member`.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};

use serde_json::{Map, Value};
use tercet_core::{Progress, escape};
use tercet_tatami::search::FieldValue;
use tercet_tatami::search::build::COLUMN_NAMES;
use tercet_tatami::{Field, LogicalType, Scalar, Type};

use super::MAX_BYTES;
use super::error::{Error, ErrorKind};
use super::fields::FieldNames;
use super::files::{DocumentFile, DocumentFormat, open};
use super::read::{Fatal as _, OnError};
use super::table;

/// Maximum columns: each takes memory while a segment is written.
const MAX_COLUMNS: usize = 1000;
/// Objects are not opened below this depth.
const MAX_DEPTH: usize = 8;
/// Integers up to this are exact as float64.
const EXACT: u64 = 1 << 53;
/// The column of the fingerprints of an update.
pub(super) const FINGERPRINT: &str = "fingerprint";

/// The columns of a segment for the other fields of documents.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Columns {
    /// The columns: nullable, in the order of their first value.
    pub fields: Vec<Field>,
    /// Annotations of logical types, as pairs of footer metadata.
    pub annotations: Vec<(String, String)>,
    /// Fields that have no column.
    pub dropped: Vec<Dropped>,
    logical_types: Vec<Option<LogicalType>>,
    /// The column of each field.
    by_field: HashMap<String, usize>,
}

/// A field without a column, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The field, or the file if its fields are unknown.
    pub name: String,
    /// The reason.
    pub reason: &'static str,
}

/// Fields that are found while files are read.
#[derive(Debug, Default)]
pub(super) struct Found {
    kinds: Vec<(String, Kind)>,
    by_field: HashMap<String, usize>,
    too_many: bool,
    /// Columns of types that a segment cannot store.
    unsupported: Vec<String>,
}

/// What is known about the values of a field.
#[derive(Debug)]
enum Kind {
    Json(Seen),
    Typed(Field, Option<(LogicalType, String)>),
    /// Values of different types.
    Mixed,
}

/// The kinds of JSON values.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each kind is seen or not")]
struct Seen {
    bool: bool,
    int: bool,
    negative: bool,
    /// Beyond int64, or not exact as float64.
    above: bool,
    inexact: bool,
    float: bool,
    text: bool,
    /// Strings that are dates, and others.
    date: bool,
    other_text: bool,
    /// Other JSON.
    nested: bool,
    list: Option<Box<Seen>>,
}

impl Columns {
    /// The columns for the fields of files, which are read for it.
    pub fn infer(
        files: &[DocumentFile],
        names: &FieldNames,
        skipped: &[String],
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut found = Found::default();
        let mut out = Self::default();
        for file in files {
            let done = match file.format {
                DocumentFormat::Jsonl if !file.is_regular() => {
                    let name = file.location().to_string();
                    out.dropped.push(Dropped { name, reason: "a pipe cannot be read twice" });
                    Ok(())
                }
                DocumentFormat::Jsonl => jsonl(file, names, &mut found, progress),
                format if format.is_table() => table::infer(file, names, &mut found),
                _ => Ok(()),
            };
            match done {
                // Reported when the documents are read.
                Err(error) if !error.is_fatal(file, Some(OnError::Skip)) => {}
                done => done?,
            }
        }
        out.resolve(found, skipped);
        Ok(out)
    }

    /// The fields are kept under their names, unless a column of documents has it.
    fn resolve(&mut self, found: Found, skipped: &[String]) {
        let is_taken = |columns: &[Field], name: &str| {
            COLUMN_NAMES.contains(&name)
                || name == FINGERPRINT
                || columns.iter().any(|field| *field.name == *name)
        };
        if found.too_many {
            let name = "further fields".to_owned();
            self.dropped.push(Dropped { name, reason: "a segment has at most 1000 columns for fields" });
        }
        for name in found.unsupported {
            if !skipped.contains(&name) {
                self.dropped.push(Dropped { name, reason: "a segment has no column of its type" });
            }
        }
        let mut names = Vec::with_capacity(found.kinds.len());
        for (name, kind) in found.kinds {
            if skipped.contains(&name) {
                continue;
            }
            if name.is_empty() {
                self.dropped.push(Dropped { name: "``".to_owned(), reason: "a column needs a name" });
                continue;
            }
            names.push((name, kind));
        }
        let originals: Vec<String> = names.iter().map(|(name, _)| name.clone()).collect();
        for (name, kind) in names {
            let mut column = name.clone();
            for number in 2.. {
                let is_other = column != name && originals.contains(&column);
                if !is_other && !is_taken(&self.fields, &column) {
                    break;
                }
                column = format!("{name}_{number}");
            }
            let (field, logical_type, annotation) = kind.column(&column);
            if let Some(annotation) = annotation {
                self.annotations.push((LogicalType::key(&column), annotation));
            }
            self.by_field.insert(name, self.fields.len());
            self.logical_types.push(logical_type);
            self.fields.push(field.with_nulls());
        }
    }

    /// Drops all columns for a reason.
    pub fn drop_all(&mut self, reason: &'static str) {
        let names = std::mem::take(&mut self.fields).into_iter().map(|field| field.name.to_string());
        self.dropped.extend(names.map(|name| Dropped { name, reason }));
        *self = Self { dropped: std::mem::take(&mut self.dropped), ..Self::default() };
    }

    /// Without columns.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same fields for the columns of an existing segment; `None` if it has no column for one of them, or another type.
    pub(super) fn in_order_of(&self, fields: &[Field], annotations: &[(String, String)]) -> Option<Self> {
        let mut position = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let at = fields.iter().position(|other| other.name == field.name)?;
            let is_same = (fields[at].kind, fields[at].element) == (field.kind, field.element);
            let key = LogicalType::key(&field.name);
            let of = |pairs: &[(String, String)]| pairs.iter().find(|pair| pair.0 == key).cloned();
            if !is_same || of(annotations) != of(&self.annotations) {
                return None;
            }
            position.push(at);
        }
        let mut logical_types = vec![None; fields.len()];
        for (at, known) in position.iter().zip(&self.logical_types) {
            logical_types[*at] = *known;
        }
        Some(Self {
            fields: fields.to_vec(),
            annotations: annotations.to_vec(),
            dropped: self.dropped.clone(),
            logical_types,
            by_field: self.by_field.iter().map(|(name, at)| (name.clone(), position[*at])).collect(),
        })
    }

    /// Adds a column that no field fills.
    pub(super) fn push_made(&mut self, field: Field) {
        self.fields.push(field);
        self.logical_types.push(None);
    }

    /// The position of the column of a field.
    pub(super) fn position(&self, field: &str) -> Option<usize> {
        self.by_field.get(field).copied()
    }

    /// The values of a JSON object without the fields of the document.
    pub(super) fn of_object(&self, object: &Map<String, Value>, names: &FieldNames) -> Vec<FieldValue> {
        let mut out = vec![FieldValue::Null; self.fields.len()];
        if self.fields.is_empty() {
            return out;
        }
        each_field(object, names, &mut |name, value| {
            if let Some(at) = self.position(name) {
                out[at] = match (value, self.logical_types[at]) {
                    (Value::String(text), Some(LogicalType::Date32)) => {
                        date_of(text).map_or_else(|| value_of(value, &self.fields[at]), Into::into)
                    }
                    _ => value_of(value, &self.fields[at]),
                };
            }
        });
        out
    }

    /// A value of a typed column.
    pub(super) fn of_scalar(&self, at: usize, value: Scalar, from: Option<LogicalType>) -> FieldValue {
        let field = &self.fields[at];
        if from == self.logical_types[at]
            && let Some(value) = widened(&value, field.kind)
        {
            return value.into();
        }
        let text = from.and_then(|from| from.format(&value)).map(String::into_bytes);
        Scalar::Bytes(text.unwrap_or_else(|| text_of(value))).into()
    }
}

/// A scalar as text.
fn text_of(value: Scalar) -> Vec<u8> {
    match value {
        Scalar::Bytes(bytes) if str::from_utf8(&bytes).is_ok() => bytes,
        other => other.to_json(false).to_string().trim_matches('"').as_bytes().to_vec(),
    }
}

/// The value as one of a type that has it exactly.
fn widened(value: &Scalar, kind: Type) -> Option<Scalar> {
    let number = match value {
        Scalar::Int8(value) => i64::from(*value),
        Scalar::Int16(value) => i64::from(*value),
        Scalar::Int32(value) => i64::from(*value),
        Scalar::Int64(value) => *value,
        Scalar::UInt8(value) => i64::from(*value),
        Scalar::UInt16(value) => i64::from(*value),
        Scalar::UInt32(value) => i64::from(*value),
        _ => 0,
    };
    let fits = match (value, kind) {
        (Scalar::Bool(_), Type::Bool)
        | (Scalar::Int8(_), Type::Int8)
        | (Scalar::Int16(_), Type::Int16)
        | (Scalar::Int32(_), Type::Int32)
        | (Scalar::Int64(_), Type::Int64 | Type::TimestampMicros)
        | (Scalar::UInt8(_), Type::UInt8)
        | (Scalar::UInt16(_), Type::UInt16)
        | (Scalar::UInt32(_), Type::UInt32)
        | (Scalar::UInt64(_), Type::UInt64)
        | (Scalar::Float32(_), Type::Float32)
        | (Scalar::Float64(_), Type::Float64)
        | (Scalar::Bytes(_), Type::Bytes | Type::BlobRef) => true,
        (Scalar::Bytes(bytes), Type::String) => str::from_utf8(bytes).is_ok(),
        (
            Scalar::Int8(_)
            | Scalar::Int16(_)
            | Scalar::Int32(_)
            | Scalar::UInt8(_)
            | Scalar::UInt16(_)
            | Scalar::UInt32(_),
            Type::Int64,
        ) => return Some(Scalar::Int64(number)),
        (Scalar::Float32(value), Type::Float64) => return Some(Scalar::Float64(f64::from(*value))),
        _ => false,
    };
    fits.then(|| value.clone())
}

impl Found {
    fn kind(&mut self, name: &str, new: impl FnOnce() -> Kind) -> Option<&mut Kind> {
        let at = match self.by_field.get(name) {
            Some(at) => *at,
            None if self.kinds.len() >= MAX_COLUMNS => {
                self.too_many = true;
                return None;
            }
            None => {
                self.by_field.insert(name.to_owned(), self.kinds.len());
                self.kinds.push((name.to_owned(), new()));
                self.kinds.len() - 1
            }
        };
        self.kinds.get_mut(at).map(|(_, kind)| kind)
    }

    fn see(&mut self, name: &str, value: &Value) {
        match self.kind(name, || Kind::Json(Seen::default())) {
            Some(Kind::Json(seen)) => seen.see(value),
            Some(kind @ Kind::Typed(..)) => {
                let mut seen = Seen::default();
                seen.see(value);
                kind.join(&Kind::Json(seen));
            }
            Some(Kind::Mixed) | None => {}
        }
    }

    /// Adds a column of a table.
    pub(super) fn column(&mut self, field: &Field, logical_type: Option<(LogicalType, &str)>) {
        let logical_type = || logical_type.map(|(known, annotation)| (known, annotation.to_owned()));
        let typed = || Kind::Typed(field.clone(), logical_type());
        let is_new = !self.by_field.contains_key(&*field.name);
        if let Some(kind) = self.kind(&field.name, typed).filter(|_| !is_new) {
            kind.join(&typed());
        }
    }
}

impl Found {
    /// Notes a column that cannot be stored.
    pub(super) fn unsupported(&mut self, name: String) {
        if !self.unsupported.contains(&name) {
            self.unsupported.push(name);
        }
    }
}

impl Kind {
    fn join(&mut self, other: &Self) {
        let (mine, _, my_annotation) = self.column("");
        let (theirs, _, their_annotation) = other.column("");
        let is_int = |field: &Field| {
            use Type::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
            matches!(field.kind, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32)
        };
        let is_float = |field: &Field| matches!(field.kind, Type::Float32 | Type::Float64);
        let is_same = (mine.kind, mine.element) == (theirs.kind, theirs.element);
        if is_same && my_annotation == their_annotation {
            return;
        }
        *self = if my_annotation.is_some() || their_annotation.is_some() {
            Self::Mixed
        } else if is_int(&mine) && is_int(&theirs) {
            Self::Typed(Field::new("", Type::Int64), None)
        } else if is_float(&mine) && is_float(&theirs) {
            Self::Typed(Field::new("", Type::Float64), None)
        } else {
            Self::Mixed
        };
    }

    /// The column, its logical type and its annotation.
    fn column(&self, name: &str) -> (Field, Option<LogicalType>, Option<String>) {
        match self {
            Self::Json(seen) if seen.is_date() => {
                let annotation = Some("date32".to_owned());
                (Field::new(name, Type::Int32), Some(LogicalType::Date32), annotation)
            }
            Self::Json(seen) => (seen.field(name), None, None),
            Self::Mixed => (Field::new(name, Type::String), None, None),
            Self::Typed(field, logical_type) => {
                let field = match field.kind {
                    Type::List => Field::list(name, field.scalar()),
                    kind => Field::new(name, kind),
                };
                (
                    field,
                    logical_type.as_ref().map(|known| known.0),
                    logical_type.as_ref().map(|known| known.1.clone()),
                )
            }
        }
    }
}

impl Seen {
    fn see(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.bool = true,
            Value::String(text) => {
                let is_date = date_of(text).is_some();
                self.text = true;
                self.date |= is_date;
                self.other_text |= !is_date;
            }
            Value::Object(_) => self.nested = true,
            Value::Array(elements) => {
                let element = self.list.get_or_insert_default();
                for value in elements {
                    element.see(value);
                }
            }
            Value::Number(number) => {
                if number.is_f64() {
                    self.float = true;
                } else {
                    self.int = true;
                    self.negative |= number.as_i64().is_some_and(|value| value < 0);
                    self.above |= number.as_i64().is_none();
                    let size = number.as_i64().map_or(u64::MAX, i64::unsigned_abs);
                    self.inexact |= size > EXACT;
                }
            }
        }
    }

    /// Whether all values are dates.
    fn is_date(&self) -> bool {
        let others = self.bool || self.int || self.float || self.nested || self.list.is_some();
        self.date && !self.other_text && !others
    }

    /// The type of all values; strings if they have several.
    fn kind(&self) -> Type {
        let numbers = self.int || self.float;
        match (self.bool, numbers, self.text || self.nested || self.list.is_some()) {
            (true, false, false) => Type::Bool,
            (false, true, false) if self.float => {
                if self.inexact {
                    Type::String
                } else {
                    Type::Float64
                }
            }
            (false, true, false) if !self.above => Type::Int64,
            (false, true, false) if !self.negative => Type::UInt64,
            _ => Type::String,
        }
    }

    fn field(&self, name: &str) -> Field {
        let others = self.bool || self.int || self.float || self.text || self.nested;
        match &self.list {
            Some(element) if !others && element.list.is_none() && !element.nested => {
                Field::list(name, element.kind())
            }
            _ => Field::new(name, self.kind()),
        }
    }
}

/// The date that a string is, in the form that dates are printed in: `2024-06-21`.
fn date_of(text: &str) -> Option<Scalar> {
    let [_, _, _, _, b'-', _, _, b'-', _, _] = text.as_bytes() else { return None };
    let date = LogicalType::Date32.read(Type::Int32, text)?;
    (LogicalType::Date32.format(&date)? == text).then_some(date)
}

/// The value of a field for its column.
fn value_of(value: &Value, field: &Field) -> FieldValue {
    match (value, field.kind) {
        (Value::Null, _) => FieldValue::Null,
        (Value::Array(elements), Type::List) => {
            let element = |value: &Value| match value {
                Value::Null => FieldValue::Null,
                value => scalar_of(value, field.scalar()).into(),
            };
            FieldValue::List(elements.iter().map(element).collect())
        }
        (value, kind) => scalar_of(value, kind).into(),
    }
}

fn scalar_of(value: &Value, kind: Type) -> Scalar {
    let typed = match kind {
        Type::Bool => value.as_bool().map(Scalar::Bool),
        Type::Int64 => value.as_i64().map(Scalar::Int64),
        Type::UInt64 => value.as_u64().map(Scalar::UInt64),
        Type::Float64 => value.as_f64().map(Scalar::Float64),
        _ => None,
    };
    typed.unwrap_or_else(|| match value {
        Value::String(text) => Scalar::Bytes(text.clone().into_bytes()),
        other => Scalar::Bytes(other.to_string().into_bytes()),
    })
}

/// Calls `each` with every field that is not part of the document; with the members of objects.
fn each_field(object: &Map<String, Value>, names: &FieldNames, each: &mut dyn FnMut(&str, &Value)) {
    let used = names.used(|name| object.get(name).is_some_and(|value| !value.is_null()));
    for (name, value) in object {
        if !used.contains(&Some(name.as_str())) {
            each_member(name, value, 0, each);
        }
    }
}

fn each_member(name: &str, value: &Value, depth: usize, each: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(members) if depth < MAX_DEPTH && !members.is_empty() => {
            for (member, value) in members {
                each_member(&format!("{name}.{member}"), value, depth + 1, each);
            }
        }
        Value::Null => {}
        value => each(name, value),
    }
}

/// Finds the fields of a JSONL file. Lines that are not objects are reported when the documents are read.
fn jsonl(
    file: &DocumentFile,
    names: &FieldNames,
    found: &mut Found,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let failed = |kind| Error::new(file.location(), kind);
    let input = open(&file.path).map_err(|error| failed(ErrorKind::Open(error)))?;
    let mut lines = BufReader::with_capacity(1 << 18, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = lines.by_ref().take(MAX_BYTES);
        let len = limited.read_until(b'\n', &mut line).map_err(|error| failed(ErrorKind::Read(error)))?;
        if len == 0 {
            return Ok(());
        }
        progress.check().map_err(|cancelled| failed(ErrorKind::Cancelled(cancelled)))?;
        let bare = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if let Ok(object) = serde_json::from_slice::<Map<String, Value>>(bare) {
            each_field(&object, names, &mut |name, value| found.see(name, value));
        }
    }
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", escape::name(&self.name), self.reason)
    }
}
