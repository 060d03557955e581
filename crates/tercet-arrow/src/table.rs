//! The columns of a table on both sides.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef, TimeUnit};
use tercet_tatami::{Column, Field, File, Schema, Type};

mod project;

pub(crate) use project::chosen;

use crate::error::{Error, Refused};
use crate::from_arrow::{self, Reading};
use crate::note;
use crate::options::Options;
use crate::to_arrow;

/// How texts and bytes lie in Arrow arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    /// As views into buffers: nothing is copied that is longer than twelve bytes.
    #[default]
    Views,
    /// One behind the other with offsets of 64 bits, which every program knows.
    Large,
}

/// The columns of a table: how they are kept in a `.tatami` file, and what they are in Arrow.
#[derive(Clone, Debug)]
pub struct Table {
    name: Arc<str>,
    schema: Schema,
    /// For each column what its values, or the elements of its lists, are in Arrow.
    kinds: Vec<DataType>,
    reading: Reading,
}

impl Table {
    /// The columns of an Arrow table, with the roles that the options give them. Types that have no place are refused, all
    /// of them at once.
    pub fn from_arrow(name: &Arc<str>, schema: &ArrowSchema, options: &Options) -> Result<Self, Error> {
        Self::from_arrow_refusing(name, schema, options, Vec::new())
    }

    /// The same; some columns are refused for reasons that Arrow does not see.
    pub(crate) fn from_arrow_refusing(
        name: &Arc<str>,
        schema: &ArrowSchema,
        options: &Options,
        mut refused: Vec<Refused>,
    ) -> Result<Self, Error> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        let mut kinds = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            if refused.iter().any(|known| known.column == *field.name()) {
                continue;
            }
            match kept(field, options) {
                Some((kept, kind)) => {
                    fields.push(kept);
                    kinds.push(kind);
                }
                None => refused.push(refusal(field)),
            }
        }
        if !refused.is_empty() {
            return Err(Error::Types { name: Arc::clone(name), columns: refused });
        }
        options.roles.apply(&mut fields)?;
        let reading = Reading { timestamps: options.timestamps };
        Self::new(name, fields, kinds, reading)
    }

    /// The columns of a `.tatami` file at some positions; its notes say what they were in Arrow.
    pub fn of_file(file: &File, columns: &[usize]) -> Result<Self, Error> {
        let notes = &file.footer().pairs;
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let field = file.schema().fields().get(*column);
            fields.extend(field.cloned());
        }
        Self::noted(file.name(), fields, |column| {
            let key = note::key(column);
            notes.iter().find(|(found, _)| *found == key).map(|(_, text)| text.as_str())
        })
    }

    /// Columns without notes.
    pub fn of_schema(name: &Arc<str>, schema: &Schema) -> Result<Self, Error> {
        Self::noted(name, schema.fields().to_vec(), |_| None)
    }

    fn noted<'a>(
        name: &Arc<str>,
        fields: Vec<Field>,
        note_of: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, Error> {
        let mut kinds = Vec::with_capacity(fields.len());
        for field in &fields {
            let kind = match note_of(&field.name) {
                None => natural(field.scalar()),
                Some(text) => {
                    note::parse(text).filter(|kind| holds(field.scalar(), kind)).ok_or_else(|| {
                        Error::Note {
                            name: Arc::clone(name),
                            column: field.name.to_string(),
                            kind: field.scalar(),
                            note: text.to_owned(),
                        }
                    })?
                }
            };
            kinds.push(kind);
        }
        Self::new(name, fields, kinds, Reading::default())
    }

    fn new(
        name: &Arc<str>,
        fields: Vec<Field>,
        kinds: Vec<DataType>,
        reading: Reading,
    ) -> Result<Self, Error> {
        let schema = Schema::new(fields).map_err(|error| Error::Schema { name: Arc::clone(name), error })?;
        Ok(Self { name: Arc::clone(name), schema, kinds, reading })
    }

    /// The name of the file that the table is from.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The columns of a `.tatami` file.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The same columns with other roles.
    pub fn with_schema(mut self, schema: Schema) -> Self {
        debug_assert_eq!(schema.len(), self.schema.len(), "roles do not change the number of columns");
        self.schema = schema;
        self
    }

    /// What the footer of a file has to say so that the types come back.
    pub fn notes(&self) -> Vec<(String, String)> {
        let columns = self.schema.fields().iter().zip(&self.kinds);
        let noted = columns.filter(|(field, kind)| natural(field.scalar()) != **kind && !self.is_raw(kind));
        noted.filter_map(|(field, kind)| Some((note::key(&field.name), note::text(kind)?))).collect()
    }

    /// Whether the numbers of a column are kept in a unit that the file does not tell.
    fn is_raw(&self, kind: &DataType) -> bool {
        matches!(kind, DataType::Timestamp(unit, _) if *unit != TimeUnit::Microsecond)
            && self.reading.timestamps == crate::Timestamps::Raw
    }

    /// The columns in Arrow.
    pub fn arrow_schema(&self, texts: Texts) -> SchemaRef {
        let fields = self.schema.fields().iter().zip(&self.kinds);
        let fields: Vec<FieldRef> = fields
            .map(|(field, kind)| {
                let kind = if self.is_raw(kind) { natural(Type::TimestampMicros) } else { kind.clone() };
                let scalar = laid_out(kind, texts);
                let whole = if field.kind == Type::List { listed(scalar) } else { scalar };
                Arc::new(ArrowField::new(&*field.name, whole, field.nullable))
            })
            .collect();
        Arc::new(ArrowSchema::new(fields))
    }

    /// The rows of an Arrow batch; `first_row` is the number of the first, for messages.
    pub fn columns(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<Column>, Error> {
        let mut columns = Vec::with_capacity(self.kinds.len());
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            let column = from_arrow::column(array, field, self.reading);
            let column = column.map_err(|(row, why)| Error::Value {
                name: Arc::clone(&self.name),
                column: field.name.to_string(),
                row: first_row + row as u64,
                why,
            })?;
            columns.push(column);
        }
        Ok(columns)
    }

    /// Rows as an Arrow batch of the columns of [`arrow_schema`](Self::arrow_schema).
    pub fn batch(
        &self,
        schema: &SchemaRef,
        columns: Vec<Column>,
        first_row: u64,
    ) -> Result<RecordBatch, Error> {
        let mut arrays = Vec::with_capacity(columns.len());
        for ((field, arrow), column) in self.schema.fields().iter().zip(schema.fields()).zip(columns) {
            let array = to_arrow::array(column, arrow.data_type()).map_err(|(row, why)| Error::Value {
                name: Arc::clone(&self.name),
                column: field.name.to_string(),
                row: first_row + row as u64,
                why,
            })?;
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::clone(schema), arrays)
            .map_err(|error| crate::error::from_arrow(&self.name, error))
    }
}

/// A column of an Arrow table in a file, and what its values or elements are.
fn kept(field: &ArrowField, options: &Options) -> Option<(Field, DataType)> {
    let element = match field.data_type() {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => Some(element),
        _ => None,
    };
    let (mut out, kind) = match element {
        Some(_) if options.interop => return None,
        Some(element) => {
            let (stored, kind) = stored(element.data_type())?;
            (Field::list(field.name().as_str(), stored), kind)
        }
        None => {
            let (stored, kind) = stored(field.data_type())?;
            (Field::new(field.name().as_str(), stored), kind)
        }
    };
    if field.is_nullable() || kind == DataType::Null {
        out = out.with_nulls();
    }
    Some((out, kind))
}

fn refusal(field: &ArrowField) -> Refused {
    const CHARS: usize = 100;
    let whole = field.data_type().to_string();
    let mut kind: String = whole.chars().take(CHARS).collect();
    if kind.len() < whole.len() {
        kind.push('…');
    }
    Refused { column: field.name().clone(), kind }
}

/// The type that keeps values of an Arrow type exactly, and that type without its packing.
fn stored(kind: &DataType) -> Option<(Type, DataType)> {
    let stored = match kind {
        DataType::Dictionary(_, values) => return stored(values),
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
        // What fits into 64 bits can be compared as a number.
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

/// Whether a column of a type can hold values of an Arrow type.
fn holds(column: Type, kind: &DataType) -> bool {
    match stored(kind) {
        Some((Type::String | Type::Bytes, _)) if column == Type::BlobRef => true,
        Some((stored, _)) => stored == column,
        None => false,
    }
}

/// What a column is in Arrow when nothing else is noted.
fn natural(kind: Type) -> DataType {
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

fn laid_out(kind: DataType, texts: Texts) -> DataType {
    match (kind, texts) {
        (DataType::Utf8View, Texts::Large) => DataType::LargeUtf8,
        (DataType::BinaryView, Texts::Large) => DataType::LargeBinary,
        (kind, _) => kind,
    }
}

/// Lists have offsets of 64 bits: no batch has too many elements.
fn listed(element: DataType) -> DataType {
    DataType::LargeList(Arc::new(ArrowField::new("element", element, true)))
}
