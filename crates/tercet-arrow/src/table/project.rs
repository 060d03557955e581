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
pub(crate) fn chosen(schema: &ArrowSchema, options: &Options) -> Option<Vec<usize>> {
    let names = options.columns.as_ref()?;
    let is_chosen = |position: &usize| names.iter().any(|name| name == schema.field(*position).name());
    Some((0..schema.fields().len()).filter(is_chosen).collect())
}
