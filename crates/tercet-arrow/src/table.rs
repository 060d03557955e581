//! The columns of a table on both sides.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use tercet_tatami::{Column, Field, File, Schema};

mod project;

pub(crate) use project::{chosen, names_of};

use crate::dictionary::Dictionary;
use crate::error::{Error, Refused};
use crate::from_arrow::{self, Reading};
use crate::kind::{Kind, Metadata, kept, natural, refusal};
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
    /// For each column what it is in Arrow.
    kinds: Vec<Kind>,
    metadata: Metadata,
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
        let mut table = Self::new(name, fields, kinds, reading)?;
        table.metadata = schema.metadata().clone().into_iter().collect();
        Ok(table)
    }

    /// The columns of a `.tatami` file at some positions; its notes say what they were in Arrow.
    pub fn of_file(file: &File, columns: &[usize]) -> Result<Self, Error> {
        let notes = &file.footer().pairs;
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let field = file.schema().fields().get(*column);
            fields.extend(field.cloned());
        }
        Self::noted(file.name(), fields, |key| {
            notes.iter().find(|(found, _)| found == key).map(|(_, text)| text.as_str())
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
        let metadata = |key: &str| note_of(key).and_then(note::parse_metadata).unwrap_or_default();
        let mut kinds = Vec::with_capacity(fields.len());
        for field in &fields {
            let mut kind = match note_of(&note::type_key(&field.name)) {
                None => Kind::of(natural(field.scalar())),
                Some(text) => Kind::noted(text, field).ok_or_else(|| Error::Note {
                    name: Arc::clone(name),
                    column: field.name.to_string(),
                    kind: field.scalar(),
                    note: text.to_owned(),
                })?,
            };
            kind.metadata = metadata(&note::metadata_key(&field.name));
            kind.element_metadata = metadata(&note::element_key(&field.name));
            kinds.push(kind);
        }
        let mut table = Self::new(name, fields, kinds, Reading::default())?;
        table.metadata = metadata(note::METADATA);
        Ok(table)
    }

    fn new(name: &Arc<str>, fields: Vec<Field>, kinds: Vec<Kind>, reading: Reading) -> Result<Self, Error> {
        let schema = Schema::new(fields).map_err(|error| Error::Schema { name: Arc::clone(name), error })?;
        Ok(Self { name: Arc::clone(name), schema, kinds, metadata: Metadata::new(), reading })
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
        let mut notes = Vec::new();
        for (field, kind) in self.schema.fields().iter().zip(&self.kinds) {
            notes.extend(kind.note(field).map(|text| (note::type_key(&field.name), text)));
            let kept = [
                (note::metadata_key(&field.name), &kind.metadata),
                (note::element_key(&field.name), &kind.element_metadata),
            ];
            notes.extend(kept.into_iter().filter_map(|(key, kept)| Some((key, note::metadata(kept)?))));
        }
        notes.extend(note::metadata(&self.metadata).map(|text| (note::METADATA.to_owned(), text)));
        notes
    }

    /// The columns in Arrow.
    pub fn arrow_schema(&self, texts: Texts) -> SchemaRef {
        let fields = self.schema.fields().iter().zip(&self.kinds);
        let fields: Vec<FieldRef> = fields.map(|(field, kind)| kind.field(field, texts)).collect();
        let metadata = self.metadata.clone().into_iter().collect();
        Arc::new(ArrowSchema::new_with_metadata(fields, metadata))
    }

    /// The rows of an Arrow batch; `first_row` is the number of the first, for messages.
    pub fn columns(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<Column>, Error> {
        let mut columns = Vec::with_capacity(self.kinds.len());
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            let column = from_arrow::column(array, field, self.reading);
            let column = column.map_err(|(row, reason)| Error::Value {
                name: Arc::clone(&self.name),
                column: field.name.to_string(),
                row: first_row + row as u64,
                reason,
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
        let mut dictionaries = vec![Dictionary::default(); columns.len()];
        self.batch_with(schema, columns, first_row, &mut dictionaries)
    }

    /// The same with dictionaries that go on from batch to batch.
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
            let array = array.map_err(|(row, reason)| Error::Value {
                name: Arc::clone(&self.name),
                column: field.name.to_string(),
                row: first_row + row as u64,
                reason,
            })?;
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::clone(schema), arrays)
            .map_err(|error| crate::error::from_arrow(&self.name, error))
    }
}
