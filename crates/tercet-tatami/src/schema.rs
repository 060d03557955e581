//! The schema: columns and their types.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tercet_core::escape;
use thiserror::Error;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Boolean.
    Bool,
    /// Signed 8-bit integer.
    Int8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Signed 64-bit integer.
    Int64,
    /// Unsigned 8-bit integer.
    UInt8,
    /// Unsigned 16-bit integer.
    UInt16,
    /// Unsigned 32-bit integer.
    UInt32,
    /// Unsigned 64-bit integer.
    UInt64,
    /// 32-bit IEEE 754 float.
    Float32,
    /// 64-bit IEEE 754 float.
    Float64,
    /// UTF-8 strings.
    String,
    /// Byte strings.
    Bytes,
    /// Timestamps in microseconds since 1970.
    TimestampMicros,
    /// Lists of the element type of the field.
    List,
    /// Large byte strings, stored in the blob region.
    BlobRef,
}

/// All types, in the order of their IDs.
pub const TYPES: [Type; 16] = [
    Type::Bool,
    Type::Int8,
    Type::Int16,
    Type::Int32,
    Type::Int64,
    Type::UInt8,
    Type::UInt16,
    Type::UInt32,
    Type::UInt64,
    Type::Float32,
    Type::Float64,
    Type::String,
    Type::Bytes,
    Type::TimestampMicros,
    Type::List,
    Type::BlobRef,
];

impl Type {
    /// The type of an ID.
    pub fn from_id(id: u8) -> Option<Self> {
        TYPES.get(usize::from(id)).copied()
    }

    /// Its ID.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Its name, as `inspect` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::TimestampMicros => "timestamp_micros",
            Self::List => "list",
            Self::BlobRef => "blobref",
        }
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        TYPES.into_iter().find(|kind| kind.name() == name)
    }

    /// The width of a fixed-width type in bytes; bools take one bit.
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::Int8 | Self::UInt8 => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Float32 => Some(4),
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::TimestampMicros => Some(8),
            Self::Bool | Self::String | Self::Bytes | Self::List | Self::BlobRef => None,
        }
    }

    /// The size of one value in memory: a view for strings, an end for lists.
    pub(crate) const fn memory_width(self) -> u64 {
        match self.width() {
            Some(width) => width as u64,
            None => match self {
                Self::Bool => 1,
                Self::List => size_of::<u64>() as u64,
                _ => size_of::<crate::column::View>() as u64,
            },
        }
    }

    /// Whether values are floats.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// Whether values are integers, including timestamps.
    pub const fn is_integer(self) -> bool {
        self.width().is_some() && !self.is_float()
    }

    /// Whether values are strings or bytes in the row groups.
    pub const fn is_bytes(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the format")]
pub struct Field {
    /// Its name.
    #[serde(serialize_with = "serialize_name")]
    pub name: Arc<str>,
    /// The type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// The element type of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<Type>,
    /// Whether rows may be null.
    pub nullable: bool,
    /// Whether the rows are sorted by this column.
    pub sort_key: bool,
    /// Hint to store the column in the blob region; only BLOBREF columns are.
    pub blob_separated: bool,
    /// Dictionary hint; no effect, because a dictionary is tried for every column.
    pub dictionary_hint: bool,
    /// Whether the column has bloom filters.
    pub bloom: bool,
}

fn serialize_name<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

/// Flags of a field in the schema section.
const NULLABLE: u8 = 0x01;
const SORT_KEY: u8 = 0x02;
const BLOB_SEPARATED: u8 = 0x04;
const DICTIONARY_HINT: u8 = 0x08;
const BLOOM: u8 = 0x10;

impl Field {
    /// A column without nulls.
    pub fn new(name: impl Into<Arc<str>>, kind: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            element: None,
            nullable: false,
            sort_key: false,
            blob_separated: kind == Type::BlobRef,
            dictionary_hint: false,
            bloom: false,
        }
    }

    /// A column of lists.
    pub fn list(name: impl Into<Arc<str>>, element: Type) -> Self {
        Self { element: Some(element), ..Self::new(name, Type::List) }
    }

    /// Makes the column nullable.
    pub fn with_nulls(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Makes the column the sort key.
    pub fn with_sort_key(mut self) -> Self {
        self.sort_key = true;
        self
    }

    /// Adds bloom filters.
    pub fn with_bloom(mut self) -> Self {
        self.bloom = true;
        self
    }

    /// Sets the dictionary hint.
    pub fn with_dictionary_hint(mut self) -> Self {
        self.dictionary_hint = true;
        self
    }

    /// The type of the values, or of the list elements.
    pub fn scalar(&self) -> Type {
        self.element.unwrap_or(self.kind)
    }

    /// A field from its stored form.
    pub(crate) fn from_wire(name: &str, kind: Type, flags: u8, element: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            element: (kind == Type::List).then_some(element),
            nullable: flags & NULLABLE != 0,
            sort_key: flags & SORT_KEY != 0,
            blob_separated: flags & BLOB_SEPARATED != 0,
            dictionary_hint: flags & DICTIONARY_HINT != 0,
            bloom: flags & BLOOM != 0,
        }
    }

    /// The flags byte.
    pub(crate) fn flags(&self) -> u8 {
        let bits = [
            (self.nullable, NULLABLE),
            (self.sort_key, SORT_KEY),
            (self.blob_separated, BLOB_SEPARATED),
            (self.dictionary_hint, DICTIONARY_HINT),
            (self.bloom, BLOOM),
        ];
        bits.into_iter().filter_map(|(set, bit)| set.then_some(bit)).fold(0, |all, bit| all | bit)
    }
}

/// The columns of a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<Field>,
    by_name: HashMap<Arc<str>, u32>,
}

impl Schema {
    /// Checks the columns.
    pub fn new(fields: Vec<Field>) -> Result<Self, SchemaError> {
        if fields.is_empty() {
            return Err(SchemaError::NoFields);
        }
        let mut by_name = HashMap::with_capacity(fields.len());
        let mut sort_key: Option<&Field> = None;
        for (index, field) in fields.iter().enumerate() {
            if field.name.is_empty() {
                return Err(SchemaError::NoName { index });
            }
            let id = u32::try_from(index).map_err(|_| SchemaError::TooMany { fields: fields.len() })?;
            if by_name.insert(Arc::clone(&field.name), id).is_some() {
                return Err(SchemaError::Duplicate { name: Arc::clone(&field.name) });
            }
            if let Some(first) = sort_key.filter(|_| field.sort_key) {
                let (first, second) = (Arc::clone(&first.name), Arc::clone(&field.name));
                return Err(SchemaError::SortKeys { first, second });
            }
            if field.sort_key {
                sort_key = Some(field);
            }
            if field.kind == Type::List {
                let name = Arc::clone(&field.name);
                if let None | Some(Type::List | Type::BlobRef) = field.element {
                    return Err(SchemaError::Element { name });
                }
                if field.sort_key || field.blob_separated {
                    return Err(SchemaError::ListRole { name });
                }
            }
        }
        Ok(Self { fields, by_name })
    }

    /// The columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Always false: a schema has at least one column.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The position of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|index| *index as usize)
    }

    /// The position of the sort key.
    pub fn sort_key(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.sort_key)
    }

    /// The first few names, for hints.
    pub(crate) fn some_names(&self) -> Box<str> {
        const MAX_NAMES: usize = 12;
        let mut names: Vec<String> = self
            .fields
            .iter()
            .take(MAX_NAMES)
            .map(|field| format!("`{}`", escape::name(&field.name)))
            .collect();
        if self.fields.len() > MAX_NAMES {
            names.push("…".to_owned());
        }
        names.join(", ").into()
    }
}

/// An invalid schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// No columns.
    #[error("schema has no fields")]
    NoFields,
    /// Too many columns.
    #[error("schema has too many fields: {fields}")]
    TooMany {
        /// Number of columns.
        fields: usize,
    },
    /// A column without a name.
    #[error("field {index} has no name")]
    NoName {
        /// Its position.
        index: usize,
    },
    /// Duplicate column name.
    #[error("duplicate field name `{}`", escape::name(name))]
    Duplicate {
        /// The name.
        name: Arc<str>,
    },
    /// More than one sort key.
    #[error(
        "both `{}` and `{}` are sort keys; only one is allowed",
        escape::name(first),
        escape::name(second)
    )]
    SortKeys {
        /// The first sort key.
        first: Arc<str>,
        /// The second sort key.
        second: Arc<str>,
    },
    /// Unsupported list element type.
    #[error("list `{}` has an unsupported element type", escape::name(name))]
    Element {
        /// The column.
        name: Arc<str>,
    },
    /// A list as a sort key or in the blob region.
    #[error("list `{}` cannot be a sort key or a blob column", escape::name(name))]
    ListRole {
        /// The column.
        name: Arc<str>,
    },
    /// A list column in the interop profile.
    #[error("list `{}` is not supported by the interop profile", escape::name(name))]
    ListInterop {
        /// The column.
        name: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_ids_are_stable() {
        for (index, kind) in TYPES.into_iter().enumerate() {
            assert_eq!(usize::from(kind.id()), index);
            assert_eq!(Type::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Type::from_id(16), None);
    }

    #[test]
    fn invalid_schemas_are_rejected() {
        let int = |name: &str| Field::new(name, Type::Int32);
        assert_eq!(Schema::new(vec![]), Err(SchemaError::NoFields));
        assert_eq!(Schema::new(vec![int("a"), int("")]), Err(SchemaError::NoName { index: 1 }));
        assert!(matches!(Schema::new(vec![int("a"), int("a")]), Err(SchemaError::Duplicate { .. })));
        let keys = vec![int("a").with_sort_key(), int("b").with_sort_key()];
        assert!(matches!(Schema::new(keys), Err(SchemaError::SortKeys { .. })));
        assert!(matches!(Schema::new(vec![Field::list("a", Type::List)]), Err(SchemaError::Element { .. })));
        let key = Field::list("a", Type::Int8).with_sort_key();
        assert!(matches!(Schema::new(vec![key]), Err(SchemaError::ListRole { .. })));
    }
}
