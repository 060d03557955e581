//! Column mapping between Arrow and `.tatami`.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use tercet_tatami::{Column, Field, File, Schema};

mod project;

pub(crate) use project::{chosen, names_of};

use crate::annotation;
use crate::arrow_type::{ArrowType, Metadata, default_arrow_type, map_field, unsupported};
use crate::dictionary::Dictionary;
use crate::error::{Error, ErrorKind, UnsupportedColumn, ValueError};
use crate::from_arrow::{self, Conversion};
use crate::options::Options;
use crate::to_arrow;

/// Layout of strings and bytes in Arrow arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringLayout {
    /// View arrays: values of more than 12 bytes are not copied.
    #[default]
    View,
    /// Contiguous values with 64-bit offsets, which every program supports.
    LargeUtf8,
}

/// The columns of a table: their stored types and their Arrow types.
#[derive(Clone, Debug)]
pub struct Table {
    name: Arc<str>,
    schema: Schema,
    /// The Arrow type of each column.
    arrow_types: Vec<ArrowType>,
    metadata: Metadata,
    conversion: Conversion,
}

impl Table {
    /// Maps the columns of an Arrow schema, with the roles of the options. Unsupported types are an error that lists all of
    /// them.
    pub fn from_arrow(name: &Arc<str>, schema: &ArrowSchema, options: &Options) -> Result<Self, Error> {
        Self::from_arrow_rejecting(name, schema, options, Vec::new())
    }

    /// The same with columns that are rejected for reasons invisible in the Arrow schema.
    pub(crate) fn from_arrow_rejecting(
        name: &Arc<str>,
        schema: &ArrowSchema,
        options: &Options,
        mut unsupported_columns: Vec<UnsupportedColumn>,
    ) -> Result<Self, Error> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        let mut arrow_types = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            if unsupported_columns.iter().any(|known| known.column == *field.name()) {
                continue;
            }
            match map_field(field, options) {
                Some((stored, arrow_type)) => {
                    fields.push(stored);
                    arrow_types.push(arrow_type);
                }
                None => unsupported_columns.push(unsupported(field)),
            }
        }
        if !unsupported_columns.is_empty() {
            let kind = ErrorKind::UnsupportedTypes { columns: unsupported_columns };
            return Err(Error::new(Arc::clone(name), kind));
        }
        options.column_options.apply(name, &mut fields)?;
        let conversion = Conversion { timestamps: options.timestamps };
        let mut table = Self::new(name, fields, arrow_types, conversion)?;
        table.metadata = schema.metadata().clone().into_iter().collect();
        Ok(table)
    }

    /// Columns of a `.tatami` file at some positions; annotations in the footer restore their Arrow types.
    pub fn from_file(file: &File, columns: &[usize]) -> Result<Self, Error> {
        let annotations = &file.footer().pairs;
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let field = file.schema().fields().get(*column);
            fields.extend(field.cloned());
        }
        Self::from_annotations(file.name(), fields, |key| {
            annotations.iter().find(|(found, _)| found == key).map(|(_, text)| text.as_str())
        })
    }

    /// Columns of a schema without annotations.
    pub fn from_schema(name: &Arc<str>, schema: &Schema) -> Result<Self, Error> {
        Self::from_annotations(name, schema.fields().to_vec(), |_| None)
    }

    fn from_annotations<'a>(
        name: &Arc<str>,
        fields: Vec<Field>,
        annotation_for: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, Error> {
        let metadata =
            |key: &str| annotation_for(key).and_then(annotation::parse_metadata).unwrap_or_default();
        let mut arrow_types = Vec::with_capacity(fields.len());
        for field in &fields {
            let mut arrow_type = match annotation_for(&annotation::type_key(&field.name)) {
                None => ArrowType::new(default_arrow_type(field.scalar())),
                Some(text) => ArrowType::from_annotation(text, field).ok_or_else(|| {
                    let kind = ErrorKind::Annotation {
                        column: field.name.to_string(),
                        kind: field.scalar(),
                        annotation: text.to_owned(),
                    };
                    Error::new(Arc::clone(name), kind)
                })?,
            };
            arrow_type.metadata.extend(metadata(&annotation::metadata_key(&field.name)));
            arrow_type.element_metadata.extend(metadata(&annotation::element_key(&field.name)));
            arrow_types.push(arrow_type);
        }
        let mut table = Self::new(name, fields, arrow_types, Conversion::default())?;
        table.metadata = metadata(annotation::METADATA);
        Ok(table)
    }

    fn new(
        name: &Arc<str>,
        fields: Vec<Field>,
        arrow_types: Vec<ArrowType>,
        conversion: Conversion,
    ) -> Result<Self, Error> {
        let schema = Schema::new(fields).map_err(|error| Error::new(Arc::clone(name), error.into()))?;
        Ok(Self { name: Arc::clone(name), schema, arrow_types, metadata: Metadata::new(), conversion })
    }

    /// The name of the file.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The `.tatami` schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Replaces the schema; only column roles may differ.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        debug_assert_eq!(schema.len(), self.schema.len(), "roles do not change the number of columns");
        self.schema = schema;
        self
    }

    /// The annotations that restore the Arrow types; write them to the footer of the file.
    pub fn annotations(&self) -> Vec<(String, String)> {
        let mut annotations = Vec::new();
        for (field, arrow_type) in self.schema.fields().iter().zip(&self.arrow_types) {
            annotations
                .extend(arrow_type.annotation(field).map(|text| (annotation::type_key(&field.name), text)));
            let kept = [
                (annotation::metadata_key(&field.name), &arrow_type.metadata),
                (annotation::element_key(&field.name), &arrow_type.element_metadata),
            ];
            annotations
                .extend(kept.into_iter().filter_map(|(key, kept)| Some((key, annotation::metadata(kept)?))));
        }
        annotations
            .extend(annotation::metadata(&self.metadata).map(|text| (annotation::METADATA.to_owned(), text)));
        annotations
    }

    /// The Arrow schema.
    pub fn arrow_schema(&self, layout: StringLayout) -> SchemaRef {
        let fields = self.schema.fields().iter().zip(&self.arrow_types);
        let fields: Vec<FieldRef> =
            fields.map(|(field, arrow_type)| arrow_type.field(field, layout)).collect();
        let metadata = self.metadata.clone().into_iter().collect();
        Arc::new(ArrowSchema::new_with_metadata(fields, metadata))
    }

    /// Converts a record batch; `first_row` is the number of its first row, for error messages.
    pub fn columns(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<Column>, Error> {
        self.columns_of(batch.columns(), first_row)
    }

    /// Converts the arrays of a batch.
    pub(crate) fn columns_of(&self, arrays: &[ArrayRef], first_row: u64) -> Result<Vec<Column>, Error> {
        let mut columns = Vec::with_capacity(self.arrow_types.len());
        for (field, array) in self.schema.fields().iter().zip(arrays) {
            let column = from_arrow::column(array, field, self.conversion);
            let column = column
                .map_err(|(row, reason)| self.value_error(&field.name, first_row + row as u64, reason))?;
            columns.push(column);
        }
        Ok(columns)
    }

    fn value_error(&self, column: &str, row: u64, reason: ValueError) -> Error {
        Error::new(Arc::clone(&self.name), ErrorKind::Value { column: column.to_owned(), row, reason })
    }

    /// Converts columns to a record batch of the schema of [`arrow_schema`](Self::arrow_schema).
    pub fn batch(
        &self,
        schema: &SchemaRef,
        columns: Vec<Column>,
        first_row: u64,
    ) -> Result<RecordBatch, Error> {
        let mut dictionaries = vec![Dictionary::default(); columns.len()];
        self.batch_with(schema, columns, first_row, &mut dictionaries)
    }

    /// The same with dictionaries that continue from batch to batch.
    pub(crate) fn batch_with(
        &self,
        schema: &SchemaRef,
        columns: Vec<Column>,
        first_row: u64,
        dictionaries: &mut [Dictionary],
    ) -> Result<RecordBatch, Error> {
        let mut arrays = Vec::with_capacity(columns.len());
        let fields = self.schema.fields().iter().zip(schema.fields());
        for ((field, arrow), (column, dictionary)) in fields.zip(columns.into_iter().zip(dictionaries)) {
            let array = to_arrow::array(column, arrow.data_type(), dictionary);
            let array = array
                .map_err(|(row, reason)| self.value_error(&field.name, first_row + row as u64, reason))?;
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::clone(schema), arrays)
            .map_err(|error| crate::error::from_arrow(&self.name, error))
    }
}
