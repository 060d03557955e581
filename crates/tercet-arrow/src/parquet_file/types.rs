//! Mapping of Parquet logical types without Arrow type, and of Arrow types without Parquet type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::root_as_message;
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::annotation::PARQUET_LOGICAL_TYPE as LOGICAL_TYPE;
use crate::ipc;

/// Completes the fields that parquet returns: extension types of Parquet logical types, and time zones of timestamps whose unit
/// Parquet does not have.
pub(super) fn complete(fields: &Fields, metadata: &ParquetMetaData) -> Fields {
    let embedded = match embedded_schema(metadata) {
        Some(EmbeddedSchema::Valid(schema)) => Some(schema),
        _ => None,
    };
    let kinds = metadata.file_metadata().schema_descr().root_schema().get_fields();
    let fields = fields.iter().enumerate().map(|(index, field)| {
        let declared = embedded.as_ref().and_then(|schema| schema.field_with_name(field.name()).ok());
        let zoned = declared.map_or_else(
            || field.data_type().clone(),
            |declared| zoned(field.data_type(), declared.data_type()),
        );
        let field = field.as_ref().clone().with_data_type(zoned);
        match kinds.get(index).filter(|kind| kind.name() == field.name()) {
            Some(kind) => Arc::new(named(field, kind)),
            None => Arc::new(field),
        }
    });
    fields.collect()
}

/// The Arrow schema embedded in a file (`ARROW:schema`).
pub(super) enum EmbeddedSchema {
    Valid(Schema),
    Malformed,
}

/// Decodes the embedded Arrow schema; `None` if there is none.
pub(super) fn embedded_schema(metadata: &ParquetMetaData) -> Option<EmbeddedSchema> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    let text = pairs.iter().find(|pair| pair.key == ARROW_SCHEMA_META_KEY)?.value.as_deref()?;
    let schema = BASE64_STANDARD.decode(text).ok().and_then(|bytes| {
        let message = bytes.strip_prefix(&[0xff; 4]).and_then(|bytes| bytes.get(4..)).unwrap_or(&bytes);
        ipc::decode_schema(root_as_message(message).ok()?.header_as_schema()?).ok()
    });
    Some(schema.map_or(EmbeddedSchema::Malformed, EmbeddedSchema::Valid))
}

/// A type with the time zone of the Arrow schema. Parquet only knows whether there is one.
fn zoned(found: &DataType, declared: &DataType) -> DataType {
    match (found, declared) {
        (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, Some(zone))) => {
            DataType::Timestamp(*unit, Some(Arc::clone(zone)))
        }
        (DataType::List(found), DataType::List(declared)) => DataType::List(zoned_field(found, declared)),
        (DataType::LargeList(found), DataType::LargeList(declared)) => {
            DataType::LargeList(zoned_field(found, declared))
        }
        (DataType::FixedSizeList(found, len), DataType::FixedSizeList(declared, _)) => {
            DataType::FixedSizeList(zoned_field(found, declared), *len)
        }
        _ => found.clone(),
    }
}

fn zoned_field(found: &Field, declared: &Field) -> FieldRef {
    Arc::new(found.clone().with_data_type(zoned(found.data_type(), declared.data_type())))
}

/// A field with the extension type of its Parquet logical type.
fn named(field: Field, kind: &Type) -> Field {
    let element = |element: &FieldRef| match kind {
        // List elements are nested in groups of one field.
        Type::GroupType { fields, .. } => match fields.as_slice() {
            [inner] => Arc::new(named_leaf(element.as_ref().clone(), innermost(inner))),
            _ => Arc::clone(element),
        },
        Type::PrimitiveType { .. } => Arc::new(named_leaf(element.as_ref().clone(), kind)),
    };
    let data_type = match field.data_type() {
        DataType::List(inner) => DataType::List(element(inner)),
        DataType::LargeList(inner) => DataType::LargeList(element(inner)),
        DataType::FixedSizeList(inner, len) => DataType::FixedSizeList(element(inner), *len),
        _ => return named_leaf(field, kind),
    };
    field.with_data_type(data_type)
}

fn innermost(kind: &Type) -> &Type {
    match kind {
        Type::GroupType { fields, .. } if fields.len() == 1 => innermost(&fields[0]),
        kind => kind,
    }
}

fn named_leaf(field: Field, kind: &Type) -> Field {
    let info = kind.get_basic_info();
    let (key, name) = match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Uuid), _) => (EXTENSION_TYPE_NAME_KEY, "arrow.uuid"),
        (Some(LogicalType::Json), _) | (None, ConvertedType::JSON) => (EXTENSION_TYPE_NAME_KEY, "arrow.json"),
        (Some(LogicalType::Enum), _) | (None, ConvertedType::ENUM) => (LOGICAL_TYPE, "ENUM"),
        (Some(LogicalType::Bson), _) | (None, ConvertedType::BSON) => (LOGICAL_TYPE, "BSON"),
        _ => return field,
    };
    if !kind.is_primitive() || field.metadata().contains_key(key) {
        return field;
    }
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_owned(), name.to_owned());
    if key == EXTENSION_TYPE_NAME_KEY {
        metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), String::new());
    }
    field.with_metadata(metadata)
}

/// The schema for Parquet: seconds become milliseconds, because most readers would see plain integers; dictionaries only of
/// strings and bytes.
pub(crate) fn parquet_arrow_schema(schema: &SchemaRef) -> SchemaRef {
    fn kind(of: &DataType) -> DataType {
        match of {
            DataType::Timestamp(TimeUnit::Second, zone) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
            DataType::Dictionary(_, values) if !is_text(values) => kind(values),
            DataType::LargeList(element) => DataType::LargeList(field(element)),
            DataType::FixedSizeList(element, len) => DataType::FixedSizeList(field(element), *len),
            other => other.clone(),
        }
    }
    fn field(of: &Field) -> FieldRef {
        Arc::new(of.clone().with_data_type(kind(of.data_type())))
    }
    let fields: Fields = schema.fields().iter().map(|of| field(of)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::LargeUtf8 | DataType::LargeBinary)
}

/// The Parquet schema, with the logical types of Arrow extension types.
pub(crate) fn descriptor(schema: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let plain = ArrowSchemaConverter::new().with_coerce_types(true).convert(schema)?;
    let root = plain.root_schema();
    let kinds = root.get_fields().iter().zip(schema.fields());
    let kinds = kinds.map(|(kind, field)| match logical(field) {
        Some(logical) => replaced(kind, &logical),
        None => Arc::clone(kind),
    });
    let root = Type::group_type_builder(root.name()).with_fields(kinds.collect()).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

/// The Parquet logical type of the values, or of the list elements.
fn logical(field: &Field) -> Option<LogicalType> {
    if let DataType::LargeList(element) | DataType::FixedSizeList(element, _) = field.data_type() {
        return logical(element);
    }
    let kind = crate::arrow_type::value_type(field.data_type());
    let metadata: &HashMap<String, String> = field.metadata();
    let value = |key: &str| metadata.get(key).map(String::as_str);
    match (value(EXTENSION_TYPE_NAME_KEY), value(LOGICAL_TYPE)) {
        (Some("arrow.uuid"), _) if *kind == DataType::FixedSizeBinary(16) => Some(LogicalType::Uuid),
        (Some("arrow.json"), _) if *kind == DataType::LargeUtf8 => Some(LogicalType::Json),
        (_, Some("ENUM")) if is_text(kind) => Some(LogicalType::Enum),
        (_, Some("BSON")) if *kind == DataType::LargeBinary => Some(LogicalType::Bson),
        _ => None,
    }
}

/// A Parquet type with another logical type; unchanged if the combination is invalid.
fn replaced(kind: &TypePtr, logical: &LogicalType) -> TypePtr {
    let info = kind.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let built = match kind.as_ref() {
        Type::PrimitiveType { physical_type, type_length, .. } => {
            Type::primitive_type_builder(kind.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_logical_type(Some(logical.clone()))
                .with_id(id)
                .build()
        }
        Type::GroupType { fields, .. } => Type::group_type_builder(kind.name())
            .with_repetition(info.repetition())
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_fields(fields.iter().map(|inner| replaced(inner, logical)).collect())
            .with_id(id)
            .build(),
    };
    built.map_or_else(|_| Arc::clone(kind), Arc::new)
}
