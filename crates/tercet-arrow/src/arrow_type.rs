//! The Arrow type of a column, as opposed to the type it is stored in.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, TimeUnit};
use tercet_tatami::logical_type::{Annotation, ValueType};
use tercet_tatami::{Field, Type};

use crate::annotation;
use crate::error::UnsupportedColumn;
use crate::options::{Options, Timestamps};
use crate::table::StringLayout;

/// Key-value metadata of Arrow fields and schemas.
pub(crate) type Metadata = BTreeMap<String, String>;

/// The Arrow type and metadata of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrowType {
    /// The type of the values, or of the list elements, without string layout.
    pub(crate) value: DataType,
    /// Whether the dictionary is ordered.
    pub(crate) is_ordered: bool,
    /// The length of fixed-size lists.
    pub(crate) len: Option<i32>,
    pub(crate) metadata: Metadata,
    pub(crate) element_metadata: Metadata,
}

impl ArrowType {
    /// A type without metadata.
    pub(crate) fn new(value: DataType) -> Self {
        let (metadata, element_metadata) = (Metadata::new(), Metadata::new());
        Self { value, is_ordered: false, len: None, metadata, element_metadata }
    }

    /// The annotation that restores the type; `None` if the stored type implies it.
    pub(crate) fn annotation(&self, column: &Field) -> Option<String> {
        let default_arrow_type = default_arrow_type(column.scalar());
        let plain = |value: &DataType| {
            if *value == default_arrow_type { None } else { annotation::value_type(value) }
        };
        let mut out = Annotation { fixed_len: self.len, ..Annotation::default() };
        match &self.value {
            DataType::Dictionary(key, value) => {
                out.dictionary = annotation::dictionary_key(self.is_ordered, key);
                out.value = plain(value);
            }
            value => out.value = self.extension(column).or_else(|| plain(value)),
        }
        (out != Annotation::default()).then(|| out.to_string())
    }

    /// UUID, JSON or enum, by the metadata of the values.
    fn extension(&self, column: &Field) -> Option<ValueType> {
        let metadata = if column.kind == Type::List { &self.element_metadata } else { &self.metadata };
        annotation::extension(metadata, &self.value)
    }

    /// Parses an annotation; `None` if it does not fit the stored type.
    pub(crate) fn from_annotation(text: &str, column: &Field) -> Option<Self> {
        let default_arrow_type = default_arrow_type(column.scalar());
        let Annotation { fixed_len: len, dictionary, value } = Annotation::parse(text)?;
        if len.is_some() && column.kind != Type::List {
            return None;
        }
        let extension = value.as_ref().and_then(annotation::extension_metadata);
        let value = match value {
            // Parquet files without Arrow schema have the names of enumerations as bytes.
            Some(ValueType::Enum) if column.scalar() == Type::Bytes => DataType::BinaryView,
            value => value.map_or(default_arrow_type, |value| annotation::arrow_type(&value)),
        };
        let (is_ordered, value) = match dictionary {
            None => (false, value),
            Some(key) => {
                let kind = annotation::key_type(key)?;
                (key.is_ordered, DataType::Dictionary(Box::new(kind), Box::new(value)))
            }
        };
        let mut out = Self { is_ordered, len, ..Self::new(value) };
        if let Some((key, name)) = extension {
            let metadata =
                if column.kind == Type::List { &mut out.element_metadata } else { &mut out.metadata };
            metadata.insert(key.to_owned(), name.to_owned());
        }
        can_store(column.scalar(), &out.value).then_some(out)
    }

    /// The Arrow field of a column.
    pub(crate) fn field(&self, column: &Field, layout: StringLayout) -> FieldRef {
        let value = with_layout(&self.value, layout);
        let ordered = |field: ArrowField| field.with_dict_is_ordered(self.is_ordered);
        let full = if column.kind == Type::List {
            let element = ordered(ArrowField::new("element", value, true));
            let element =
                Arc::new(element.with_metadata(self.element_metadata.clone().into_iter().collect()));
            match self.len {
                Some(len) => DataType::FixedSizeList(element, len),
                // 64-bit offsets: a batch cannot have too many elements.
                None => DataType::LargeList(element),
            }
        } else {
            value
        };
        let field = ordered(ArrowField::new(&*column.name, full, column.nullable));
        Arc::new(field.with_metadata(self.metadata.clone().into_iter().collect()))
    }
}

/// Maps an Arrow field to a stored field and its Arrow type; `None` if it is unsupported.
pub(crate) fn map_field(field: &ArrowField, options: &Options) -> Option<(Field, ArrowType)> {
    let element = match field.data_type() {
        DataType::FixedSizeList(_, ..0) => return None,
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => Some(element),
        _ => None,
    };
    let inner = element.map_or(field, |element| element);
    let (stored, mut value) = storage_type(inner.data_type())?;
    if options.timestamps == Timestamps::Raw
        && matches!(value_type(&value), DataType::Timestamp(unit, _) if *unit != TimeUnit::Microsecond)
    {
        // Raw numbers lose their unit: the file has no annotation for it.
        value = default_arrow_type(Type::TimestampMicros);
    }
    let mut kind = ArrowType::new(value);
    kind.is_ordered = inner.dict_is_ordered().unwrap_or(false);
    kind.metadata = field.metadata().clone().into_iter().collect();
    let mut out = match element {
        Some(_) if options.interop => return None,
        Some(element) => {
            kind.element_metadata = element.metadata().clone().into_iter().collect();
            Field::list(field.name().as_str(), stored)
        }
        None => Field::new(field.name().as_str(), stored),
    };
    // A list length of zero cannot be restored from the number of elements.
    if let DataType::FixedSizeList(_, len @ 1..) = field.data_type() {
        kind.len = Some(*len);
    }
    if field.is_nullable() || kind.value == DataType::Null {
        out = out.with_nulls();
    }
    Some((out, kind))
}

/// An unsupported column, for messages.
pub(crate) fn unsupported(field: &ArrowField) -> UnsupportedColumn {
    const CHARS: usize = 100;
    let full = describe(field.data_type());
    let mut type_name: String = full.chars().take(CHARS).collect();
    if type_name.len() < full.len() {
        type_name.push('…');
    }
    UnsupportedColumn { column: field.name().clone(), type_name }
}

/// Describes a type for messages.
fn describe(kind: &DataType) -> String {
    match kind {
        DataType::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("struct of {}", names.join(", "))
        }
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => format!("list of {}", describe(element.data_type())),
        DataType::FixedSizeList(element, len) => format!("list of {len} {}", describe(element.data_type())),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::RunEndEncoded(_, values) => format!("runs of {}", describe(values.data_type())),
        DataType::Dictionary(_, values) => format!("dictionary of {}", describe(values)),
        DataType::Boolean => "bool".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes".to_owned(),
        // The names of numeric types only differ in case.
        kind => annotation::value_type(kind)
            .map_or_else(|| kind.to_string().to_lowercase(), |value| value.to_string()),
    }
}

/// The type of the values of a dictionary; other types are returned as they are.
pub(crate) fn value_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// The stored type that holds an Arrow type exactly, and the Arrow type without string layout.
fn storage_type(kind: &DataType) -> Option<(Type, DataType)> {
    let stored = match kind {
        DataType::Dictionary(key, values) => {
            let (stored, values) = storage_type(values)?;
            let is_dictionary = matches!(values, DataType::Dictionary(..) | DataType::Null);
            let coded = || DataType::Dictionary(key.clone(), Box::new(values.clone()));
            return Some((stored, if is_dictionary { values } else { coded() }));
        }
        DataType::Boolean => Type::Bool,
        DataType::Int8 => Type::Int8,
        DataType::Int16 => Type::Int16,
        DataType::Int32
        | DataType::Date32
        | DataType::Time32(TimeUnit::Second | TimeUnit::Millisecond)
        | DataType::Decimal32(..)
        | DataType::Decimal128(..=9, _)
        | DataType::Decimal256(..=9, _)
        | DataType::Null => Type::Int32,
        // Decimals of up to 64 bits are stored as integers, so that filters can compare them.
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)
        | DataType::Duration(_)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..=18, _)
        | DataType::Decimal256(..=18, _) => Type::Int64,
        DataType::UInt8 => Type::UInt8,
        DataType::UInt16 => Type::UInt16,
        DataType::UInt32 => Type::UInt32,
        DataType::UInt64 => Type::UInt64,
        DataType::Float16 | DataType::Float32 => Type::Float32,
        DataType::Float64 => Type::Float64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            return Some((Type::String, DataType::Utf8View));
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            return Some((Type::Bytes, DataType::BinaryView));
        }
        DataType::FixedSizeBinary(1..) | DataType::Decimal128(..) | DataType::Decimal256(..) => Type::Bytes,
        DataType::Timestamp(..) => Type::TimestampMicros,
        _ => return None,
    };
    Some((stored, kind.clone()))
}

/// Whether a stored type can hold an Arrow type.
fn can_store(column: Type, kind: &DataType) -> bool {
    match storage_type(kind) {
        Some((Type::String | Type::Bytes, _)) if column == Type::BlobRef => true,
        Some((stored, _)) => stored == column,
        None => false,
    }
}

/// The Arrow type of a stored type without annotation.
pub(crate) fn default_arrow_type(kind: Type) -> DataType {
    match kind {
        Type::Bool => DataType::Boolean,
        Type::Int8 => DataType::Int8,
        Type::Int16 => DataType::Int16,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::UInt8 => DataType::UInt8,
        Type::UInt16 => DataType::UInt16,
        Type::UInt32 => DataType::UInt32,
        Type::UInt64 => DataType::UInt64,
        Type::Float32 => DataType::Float32,
        Type::Float64 => DataType::Float64,
        Type::String => DataType::Utf8View,
        Type::Bytes | Type::BlobRef | Type::List => DataType::BinaryView,
        Type::TimestampMicros => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    }
}

fn with_layout(kind: &DataType, layout: StringLayout) -> DataType {
    match (kind, layout) {
        (DataType::Utf8View, StringLayout::LargeUtf8) => DataType::LargeUtf8,
        (DataType::BinaryView, StringLayout::LargeUtf8) => DataType::LargeBinary,
        // Few programs support dictionaries of views.
        (DataType::Dictionary(key, values), _) => {
            DataType::Dictionary(key.clone(), Box::new(with_layout(values, StringLayout::LargeUtf8)))
        }
        (kind, _) => kind.clone(),
    }
}
