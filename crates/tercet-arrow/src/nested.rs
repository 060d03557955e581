//! Nested columns: members of structs as columns, other nested values as JSON text.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray, make_array};
use arrow_buffer::{ArrowNativeType as _, NullBuffer};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema};
use tercet_core::{Class, escape};
use tercet_tatami::logical_type::{ValueType, is_json};
use tercet_tatami::{Column, LogicalType, Scalar, Type};

use crate::annotation;
use crate::arrow_type::map_field;
use crate::error::{Error, ErrorKind};
use crate::from_arrow::{self, Conversion};
use crate::options::{Nested, Options};

/// Maximum depth of nested types.
const MAX_DEPTH: usize = 32;
/// Maximum list elements of a column in a batch: nulls take no bytes in the file.
const MAX_ELEMENTS: usize = 1 << 25;
/// Maximum bytes of the JSON text of a column in a batch.
const MAX_TEXT: usize = 256 << 20;

/// How the columns of a file become columns without structs.
#[derive(Debug)]
pub(crate) struct Flattened {
    name: Arc<str>,
    fields: Vec<FieldRef>,
    sources: Vec<Source>,
    conversion: Conversion,
}

/// Where a column is in the file: positions in the schema and in structs.
#[derive(Debug)]
struct Source {
    path: Vec<usize>,
    /// The nested field that is written as JSON.
    json: Option<FieldRef>,
}

impl Flattened {
    /// Plans the columns of a schema; `None` if none is nested, or nested columns are not read.
    pub(crate) fn new(name: &Arc<str>, schema: &ArrowSchema, options: &Options) -> Option<Self> {
        let nested = options.nested?;
        let conversion = Conversion { timestamps: options.timestamps };
        let mut out = Self { name: Arc::clone(name), fields: Vec::new(), sources: Vec::new(), conversion };
        for (at, field) in schema.fields().iter().enumerate() {
            out.add(field.name(), field, vec![at], field.is_nullable(), nested);
        }
        let is_nested = |source: &Source| source.json.is_some() || source.path.len() > 1;
        if !out.sources.iter().any(is_nested) {
            return None;
        }
        // Of a struct, some members may be selected.
        if let Some(names) = &options.columns {
            let is_wanted = |field: &FieldRef| {
                let is_in = |name: &String| {
                    field
                        .name()
                        .strip_prefix(name.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                names.iter().any(is_in)
            };
            let wanted: Vec<bool> = out.fields.iter().map(is_wanted).collect();
            let mut is_kept = wanted.iter();
            out.fields.retain(|_| *is_kept.next().unwrap_or(&true));
            let mut is_kept = wanted.iter();
            out.sources.retain(|_| *is_kept.next().unwrap_or(&true));
        }
        Some(out)
    }

    fn add(&mut self, name: &str, field: &FieldRef, path: Vec<usize>, is_nullable: bool, nested: Nested) {
        if let (DataType::Struct(members), Nested::Flatten) = (field.data_type(), nested)
            && !members.is_empty()
            && path.len() < MAX_DEPTH
        {
            for (at, member) in members.iter().enumerate() {
                let path = path.iter().copied().chain([at]).collect();
                let is_nullable = is_nullable || member.is_nullable();
                self.add(&format!("{name}.{}", member.name()), member, path, is_nullable, nested);
            }
            return;
        }
        let (out, json) = if is_storable(field) || !is_encodable(field, 0) {
            ((**field).clone().with_name(name).with_nullable(is_nullable), None)
        } else {
            let json = annotation::extension_metadata(&ValueType::Json);
            let metadata = json.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
            let text = ArrowField::new(name, DataType::Utf8, is_nullable).with_metadata(metadata);
            (text, Some(Arc::clone(field)))
        };
        self.fields.push(Arc::new(out));
        self.sources.push(Source { path, json });
    }

    /// The schema of the columns.
    pub(crate) fn schema(&self, schema: &ArrowSchema) -> ArrowSchema {
        ArrowSchema::new_with_metadata(self.fields.clone(), schema.metadata().clone())
    }

    /// The columns of a batch.
    pub(crate) fn arrays(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, Error> {
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (source, field) in self.sources.iter().zip(&self.fields) {
            let failed = |(class, message): (Class, String)| {
                let message = format!("column `{}`: {message}", escape::name(field.name()));
                Error::new(Arc::clone(&self.name), ErrorKind::Format { class, message })
            };
            let array = member(batch, &source.path).map_err(failed)?;
            arrays.push(match &source.json {
                None => array,
                Some(json) => self.json(&array, json).map_err(failed)?,
            });
        }
        Ok(arrays)
    }

    /// The JSON texts of a nested array.
    fn json(&self, array: &ArrayRef, field: &ArrowField) -> Result<ArrayRef, Failed> {
        let encoder = Encoder::new(array, field, self.conversion)?;
        let (mut texts, mut total) = (Vec::with_capacity(array.len()), 0);
        for row in 0..array.len() {
            if array.is_null(row) {
                texts.push(None);
                continue;
            }
            let mut text = String::new();
            encoder.write(row, MAX_TEXT - total, &mut text)?;
            total += text.len();
            texts.push(Some(text));
        }
        Ok(Arc::new(StringArray::from_iter(texts)))
    }
}

/// The class and message of an error.
type Failed = (Class, String);

fn malformed() -> Failed {
    (Class::Malformed, "the batch has another type than the schema".to_owned())
}

fn too_long() -> Failed {
    (Class::Limit, format!("the JSON text of a batch exceeds {} MiB", MAX_TEXT >> 20))
}

fn check_elements(count: usize) -> Result<(), Failed> {
    if count > MAX_ELEMENTS {
        return Err((Class::Limit, format!("more than {MAX_ELEMENTS} list elements in a batch")));
    }
    Ok(())
}

/// Whether a column can be stored as it is, except that some files have no lists.
fn is_storable(field: &ArrowField) -> bool {
    map_field(field, &Options::new()).is_some()
}

/// Whether nested values can be written as JSON.
fn is_encodable(field: &ArrowField, depth: usize) -> bool {
    let is_inner = |field: &FieldRef| is_encodable(field, depth + 1);
    depth < MAX_DEPTH
        && match field.data_type() {
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
                is_inner(element)
            }
            DataType::Struct(members) => members.iter().all(is_inner),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => pair.iter().all(is_inner),
                _ => false,
            },
            _ => is_storable(field),
        }
}

/// A column, or a member of structs, which is null if one of them is.
fn member(batch: &RecordBatch, path: &[usize]) -> Result<ArrayRef, Failed> {
    let (first, rest) = path.split_first().ok_or_else(malformed)?;
    let mut array = Arc::clone(batch.columns().get(*first).ok_or_else(malformed)?);
    let mut nulls: Option<NullBuffer> = None;
    for at in rest {
        let parent = array.as_struct_opt().ok_or_else(malformed)?;
        nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
        let member = Arc::clone(parent.columns().get(*at).ok_or_else(malformed)?);
        array = member;
    }
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(array) };
    if *array.data_type() == DataType::Null {
        return Ok(array);
    }
    let nulls = NullBuffer::union(Some(&nulls), array.nulls());
    let data = array.to_data().into_builder().nulls(nulls).build();
    Ok(make_array(data.map_err(|error| (Class::Malformed, error.to_string()))?))
}

/// Writes the values of a nested array as JSON.
enum Encoder {
    Scalars { column: Column, kind: Type, logical_type: Option<LogicalType> },
    Struct { nulls: Option<NullBuffer>, members: Vec<(String, Self)> },
    List { nulls: Option<NullBuffer>, ends: Vec<usize>, elements: Box<Self> },
    Map { nulls: Option<NullBuffer>, ends: Vec<usize>, keys: Box<Self>, values: Box<Self> },
}

impl Encoder {
    fn new(array: &ArrayRef, field: &ArrowField, conversion: Conversion) -> Result<Self, Failed> {
        let nulls = array.nulls().cloned();
        let list = |ends: Vec<usize>, values: &ArrayRef, element: &ArrowField| {
            // A slice of lists has all elements.
            let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
            check_elements(last - first)?;
            let values = values.slice(first, last - first);
            let ends = ends.iter().map(|end| end - first).collect();
            Ok(Self::List {
                nulls: nulls.clone(),
                ends,
                elements: Box::new(Self::new(&values, element, conversion)?),
            })
        };
        match field.data_type() {
            // Parquet files are read with lists of 64-bit offsets.
            DataType::List(element) | DataType::LargeList(element) => {
                let (ends, values): (Vec<usize>, _) = if let Some(lists) = array.as_list_opt::<i32>() {
                    (lists.value_offsets().iter().map(|end| end.as_usize()).collect(), lists.values())
                } else {
                    let lists = array.as_list_opt::<i64>().ok_or_else(malformed)?;
                    (lists.value_offsets().iter().map(|end| end.as_usize()).collect(), lists.values())
                };
                list(ends, values, element)
            }
            DataType::FixedSizeList(element, _) => {
                let lists = array.as_fixed_size_list_opt().ok_or_else(malformed)?;
                let len = usize::try_from(lists.value_length()).unwrap_or(0);
                list((0..=lists.len()).map(|row| row * len).collect(), lists.values(), element)
            }
            DataType::Struct(members) => {
                let array = array.as_struct_opt().ok_or_else(malformed)?;
                let members = members.iter().zip(array.columns()).map(|(member, array)| {
                    Ok((member.name().clone(), Self::new(array, member, conversion)?))
                });
                Ok(Self::Struct { nulls, members: members.collect::<Result<_, Failed>>()? })
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(pair) = entries.data_type() else { return Err(malformed()) };
                let [key, value] = &pair[..] else { return Err(malformed()) };
                let map = array.as_map_opt().ok_or_else(malformed)?;
                let ends: Vec<usize> = map.value_offsets().iter().map(|end| end.as_usize()).collect();
                let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
                check_elements(last - first)?;
                let part = |array: &ArrayRef| array.slice(first, last - first);
                Ok(Self::Map {
                    nulls,
                    ends: ends.iter().map(|end| end - first).collect(),
                    keys: Box::new(Self::new(&part(map.keys()), key, conversion)?),
                    values: Box::new(Self::new(&part(map.values()), value, conversion)?),
                })
            }
            _ => {
                let nullable = field.clone().with_nullable(true);
                let options = Options::new().with_timestamps(conversion.timestamps);
                let (stored, arrow_type) = map_field(&nullable, &options).ok_or_else(malformed)?;
                let column = from_arrow::column(array, &stored, conversion)
                    .map_err(|(_, reason)| (Class::Request, reason.to_string()))?;
                let key = LogicalType::key(&stored.name);
                let pairs: Vec<_> =
                    arrow_type.annotation(&stored).map(|text| (key, text)).into_iter().collect();
                let logical_type = LogicalType::for_field(&stored, &pairs);
                Ok(Self::Scalars { column, kind: stored.kind, logical_type })
            }
        }
    }

    /// Appends the value of a row, at most `most` bytes of text.
    fn write(&self, row: usize, most: usize, out: &mut String) -> Result<(), Failed> {
        if out.len() > most {
            return Err(too_long());
        }
        let is_null = |nulls: Option<&NullBuffer>| nulls.is_some_and(|nulls| nulls.is_null(row));
        match self {
            Self::Struct { nulls, .. } | Self::List { nulls, .. } | Self::Map { nulls, .. }
                if is_null(nulls.as_ref()) =>
            {
                out.push_str("null");
            }
            Self::Scalars { column, kind, logical_type } => match column.scalar(row) {
                Some(value) => out.push_str(&scalar(&value, *kind, *logical_type)),
                None => out.push_str("null"),
            },
            Self::Struct { members, .. } => {
                for (at, (name, member)) in members.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    out.push_str(&quoted(name));
                    out.push(':');
                    member.write(row, most, out)?;
                }
                out.push_str(if members.is_empty() { "{}" } else { "}" });
            }
            Self::List { ends, elements, .. } => {
                out.push('[');
                for at in ends[row]..ends[row + 1] {
                    if at > ends[row] {
                        out.push(',');
                    }
                    elements.write(at, most, out)?;
                }
                out.push(']');
            }
            Self::Map { ends, keys, values, .. } => {
                out.push('{');
                for at in ends[row]..ends[row + 1] {
                    if at > ends[row] {
                        out.push(',');
                    }
                    let mut key = String::new();
                    keys.write(at, most, &mut key)?;
                    // Keys of JSON are strings.
                    out.push_str(&if key.starts_with('"') { key } else { quoted(&key) });
                    out.push(':');
                    values.write(at, most, out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

/// A scalar as JSON, by its logical type. NaN and infinities are strings, bytes are base64.
fn scalar(value: &Scalar, kind: Type, logical_type: Option<LogicalType>) -> String {
    if let (Some(LogicalType::Json), Scalar::Bytes(bytes)) = (logical_type, value)
        && is_json(bytes)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return text.to_owned();
    }
    let natural = (kind == Type::TimestampMicros).then_some(LogicalType::UTC);
    if let Some(logical_type) = logical_type.or(natural)
        && let Some(text) = logical_type.format(value)
    {
        return if logical_type.is_number() { text } else { quoted(&text) };
    }
    value.to_json(kind == Type::String).to_string()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
