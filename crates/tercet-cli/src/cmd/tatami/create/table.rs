//! CSV and JSONL tables for other verbs.

use std::sync::Arc;

use tercet::core::ByteSource;
use tercet::tatami::{Column, Field, Schema};

use super::build::ValueParser;
use super::rows::{self, Form};
use super::schema::Declared;
use super::text::Lines;
use crate::failure::Failure;
use crate::ui::{Bar, Ui};

/// A CSV or JSONL table with a schema.
#[derive(Debug)]
pub(in crate::cmd::tatami) struct TextTable {
    source: Arc<dyn ByteSource>,
    form: Form,
    /// Whether the schema was declared.
    declared: Option<Vec<String>>,
    fields: Vec<Field>,
    /// Logical type annotations for the footer.
    annotations: Vec<(String, String)>,
}

impl TextTable {
    /// Opens CSV, if there is a delimiter, or JSONL, of which only some columns may be read. Without a declared schema it is
    /// inferred.
    pub(in crate::cmd::tatami) fn open(
        source: Arc<dyn ByteSource>,
        delimiter: Option<u8>,
        declared: Option<&Declared>,
        only: Option<Vec<String>>,
        out: &Ui,
    ) -> Result<Self, Failure> {
        let form = match delimiter {
            Some(delimiter) => Form::Csv { delimiter, has_header: true, nulls: Vec::new() },
            None => Form::Jsonl { only },
        };
        let fields = if let Some(declared) = declared {
            let is_there = |field: &Field| form.wants(&field.name);
            declared.fields().into_iter().filter(is_there).collect()
        } else {
            let bar = out.bar("inferring", source.len());
            rows::infer(&mut Lines::new(Arc::clone(&source)), &form, &bar)?
        };
        let annotations = declared.map_or_else(Vec::new, |declared| declared.annotations().to_vec());
        let declared = declared.map(|all| all.fields().iter().map(|field| field.name.to_string()).collect());
        Ok(Self { source, form, declared, fields, annotations })
    }

    /// All column names of the input. JSONL is read again for them.
    pub(in crate::cmd::tatami) fn names(&self, bar: &Bar) -> Result<Vec<String>, Failure> {
        match (&self.declared, &self.form) {
            (Some(declared), _) => Ok(declared.clone()),
            (None, Form::Jsonl { only: Some(_) }) => {
                rows::all_names(&mut Lines::new(Arc::clone(&self.source)), bar)
            }
            (None, _) => Ok(self.fields.iter().map(|field| field.name.to_string()).collect()),
        }
    }

    /// The logical type annotations as footer metadata.
    pub(in crate::cmd::tatami) fn annotations(&self) -> Vec<(String, String)> {
        self.annotations.clone()
    }

    /// The columns of the table.
    pub(in crate::cmd::tatami) fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    /// Reads all rows into a schema that differs from [`fields`](Self::fields) in roles only.
    pub(in crate::cmd::tatami) fn read(
        self,
        schema: &Schema,
        bar: &Bar,
        mut each: impl FnMut(Vec<Column>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Parsing depends on the type, not on the storage.
        let parsers = ValueParser::all(&self.fields, &self.annotations);
        let fields: Vec<(Field, ValueParser)> = schema.fields().iter().cloned().zip(parsers).collect();
        rows::read(&mut Lines::new(self.source), &self.form, &fields, bar, |batch| each(batch.columns))
    }
}
