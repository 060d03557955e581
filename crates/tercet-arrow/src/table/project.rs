//! Some columns of a table.

use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use tercet_tatami::Schema;

use super::Table;
use crate::error::Error;
use crate::options::Options;

impl Table {
    /// Columns with notes, each under the key of its column, as they stand in a footer.
    pub fn of_noted(name: &Arc<str>, schema: &Schema, notes: &[(String, String)]) -> Result<Self, Error> {
        Self::noted(name, schema.fields().to_vec(), |key| {
            notes.iter().find(|(found, _)| found == key).map(|(_, text)| text.as_str())
        })
    }

    /// The columns at some positions, in this order.
    pub fn project(&self, positions: &[usize]) -> Result<Self, Error> {
        let (mut fields, mut kinds) = (Vec::new(), Vec::new());
        for position in positions {
            fields.extend(self.schema.fields().get(*position).cloned());
            kinds.extend(self.kinds.get(*position).cloned());
        }
        let mut table = Self::new(&self.name, fields, kinds, self.reading)?;
        table.metadata = self.metadata.clone();
        Ok(table)
    }
}

/// The positions of the columns that are to be read, in the order of the file; none if all are.
pub(crate) fn chosen(
    name: &Arc<str>,
    schema: &ArrowSchema,
    options: &Options,
) -> Result<Option<Vec<usize>>, Error> {
    let Some(names) = &options.columns else { return Ok(None) };
    let is_chosen = |position: &usize| names.iter().any(|name| name == schema.field(*position).name());
    let chosen: Vec<usize> = (0..schema.fields().len()).filter(is_chosen).collect();
    if chosen.is_empty() && !schema.fields().is_empty() {
        return Err(Error::NoColumns { name: Arc::clone(name), columns: names_of(schema) });
    }
    Ok(Some(chosen))
}

/// The names of all columns.
pub(crate) fn names_of(schema: &ArrowSchema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}
