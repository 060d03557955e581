//! Rows of text for other verbs.

use std::sync::Arc;

use tercet::core::ByteSource;
use tercet::tatami::{Column, Field, Schema};

use super::build::Reading;
use super::rows::{self, Form};
use super::schema::Declared;
use super::text::Lines;
use crate::failure::Failure;
use crate::ui::{Bar, Ui};

/// CSV or JSONL whose columns are known.
#[derive(Debug)]
pub(in crate::cmd::tatami) struct TextTable {
    source: Arc<dyn ByteSource>,
    form: Form,
    /// All columns are known, also those that are not looked at.
    declared: Option<Vec<String>>,
    fields: Vec<Field>,
    /// What the footer has to say of columns whose types the format does not have.
    notes: Vec<(String, String)>,
}

impl TextTable {
    /// Opens CSV, if there is a delimiter, or JSONL, of which only some columns may be looked at. Columns that are not declared
    /// are found by looking at everything.
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
            let bar = out.bar("looking", source.len());
            rows::infer(&mut Lines::of(Arc::clone(&source)), &form, &bar)?
        };
        let notes = declared.map_or_else(Vec::new, |declared| declared.notes().to_vec());
        let declared = declared.map(|all| all.fields().iter().map(|field| field.name.to_string()).collect());
        Ok(Self { source, form, declared, fields, notes })
    }

    /// The names of all columns of the input. JSONL is read once more for them.
    pub(in crate::cmd::tatami) fn names(&self, bar: &Bar) -> Result<Vec<String>, Failure> {
        match (&self.declared, &self.form) {
            (Some(declared), _) => Ok(declared.clone()),
            (None, Form::Jsonl { only: Some(_) }) => {
                rows::all_names(&mut Lines::of(Arc::clone(&self.source)), bar)
            }
            (None, _) => Ok(self.fields.iter().map(|field| field.name.to_string()).collect()),
        }
    }

    /// Keys and values for the footer.
    pub(in crate::cmd::tatami) fn notes(&self) -> Vec<(String, String)> {
        self.notes.clone()
    }

    /// The columns.
    pub(in crate::cmd::tatami) fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    /// Hands over all rows, as columns of a schema that differs from [`fields`](Self::fields) in roles only.
    pub(in crate::cmd::tatami) fn read(
        self,
        schema: &Schema,
        bar: &Bar,
        mut each: impl FnMut(Vec<Column>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // How text is read depends on the type, not on where the values are stored.
        let readings = Reading::all(&self.fields, &self.notes);
        let fields: Vec<(Field, Reading)> = schema.fields().iter().cloned().zip(readings).collect();
        rows::read(&mut Lines::of(self.source), &self.form, &fields, bar, |batch| each(batch.columns))
    }
}
