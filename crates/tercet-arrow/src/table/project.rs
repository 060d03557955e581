//! Column projection of tables.

use std::sync::Arc;

use arrow_schema::{DataType, Schema as ArrowSchema};
use tercet_tatami::Schema;

use super::Table;
use crate::error::{Error, ErrorKind};
use crate::options::{Nested, Options};
use crate::read::flat_names;

impl Table {
    /// Columns of a schema with annotations as they are in a footer.
    pub fn from_annotated(
        name: &Arc<str>,
        schema: &Schema,
        annotations: &[(String, String)],
    ) -> Result<Self, Error> {
        Self::from_annotations(name, schema.fields().to_vec(), |key| {
            annotations.iter().find(|(found, _)| found == key).map(|(_, text)| text.as_str())
        })
    }

    /// The columns at some positions, in this order.
    pub fn project(&self, positions: &[usize]) -> Result<Self, Error> {
        let (mut fields, mut arrow_types) = (Vec::new(), Vec::new());
        for position in positions {
            fields.extend(self.schema.fields().get(*position).cloned());
            arrow_types.extend(self.arrow_types.get(*position).cloned());
        }
        let mut table = Self::new(&self.name, fields, arrow_types, self.conversion)?;
        table.metadata = self.metadata.clone();
        Ok(table)
    }
}

/// Positions of the columns to read, in file order; `None` for all.
pub(crate) fn chosen(
    name: &Arc<str>,
    schema: &ArrowSchema,
    options: &Options,
) -> Result<Option<Vec<usize>>, Error> {
    let Some(names) = &options.columns else { return Ok(None) };
    let is_chosen = |position: &usize| {
        let field = schema.field(*position);
        let has_members =
            options.nested == Some(Nested::Flatten) && matches!(field.data_type(), DataType::Struct(_));
        let is_in = |name: &String| {
            let rest = name.strip_prefix(field.name().as_str());
            rest.is_some_and(|rest| rest.is_empty() || has_members && rest.starts_with('.'))
        };
        names.iter().any(is_in)
    };
    let chosen: Vec<usize> = (0..schema.fields().len()).filter(is_chosen).collect();
    if chosen.is_empty() && !schema.fields().is_empty() {
        return Err(Error::new(
            Arc::clone(name),
            ErrorKind::NoSuchColumns { columns: flat_names(name, schema, options) },
        ));
    }
    Ok(Some(chosen))
}

/// The names of all columns.
pub(crate) fn names_of(schema: &ArrowSchema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}
