//! Values of the further columns of documents.

use crate::column::{Bitmap, Column, Values};
use crate::scalar::Scalar;
use crate::schema::{Field, Type};

/// The value of a further column in a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FieldValue {
    /// No value.
    #[default]
    Null,
    /// A value of the type of the column.
    Scalar(Scalar),
    /// The elements of a list.
    List(Vec<FieldValue>),
}

impl From<Scalar> for FieldValue {
    fn from(value: Scalar) -> Self {
        Self::Scalar(value)
    }
}

/// The further columns of a block of documents.
#[derive(Debug, Default)]
pub(super) struct ValueColumns {
    columns: Vec<Column>,
}

/// A value that does not fit the type of its column: the position of the column.
pub(super) struct Misfit(pub(super) usize);

impl ValueColumns {
    /// Appends the values of a document; without values, all are null. Returns their size.
    pub(super) fn push(&mut self, fields: &[Field], values: &[FieldValue]) -> Result<usize, Misfit> {
        if self.columns.is_empty() {
            self.columns = fields.iter().map(Column::empty).collect();
        }
        let mut bytes = 0;
        for (at, column) in self.columns.iter_mut().enumerate() {
            let value = values.get(at).unwrap_or(&FieldValue::Null);
            bytes += push(column, value).ok_or(Misfit(at))?;
        }
        Ok(bytes)
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        self.columns
    }
}

/// Appends a value; `None` if it has another type.
fn push(column: &mut Column, value: &FieldValue) -> Option<usize> {
    let before = column.len();
    let bytes = match (&mut column.values, value) {
        (values, FieldValue::Null) => {
            values.push_zeros(1);
            column.validity.get_or_insert_with(|| Bitmap::filled(before, true)).push(false);
            return Some(1);
        }
        (values, FieldValue::Scalar(value)) => push_scalar(values, value)?,
        (Values::List(lists), FieldValue::List(elements)) => {
            let mut bytes = 8;
            for element in elements {
                bytes += push(&mut lists.elements, element)?;
            }
            lists.ends.push(lists.elements.len() as u64);
            bytes
        }
        (_, FieldValue::List(_)) => return None,
    };
    if let Some(validity) = &mut column.validity {
        validity.push(true);
    }
    Some(bytes)
}

fn push_scalar(values: &mut Values, value: &Scalar) -> Option<usize> {
    macro_rules! fixed {
        ($($kind:ident),*) => {
            match (values, value) {
                $((Values::$kind(values), Scalar::$kind(value)) => values.push(*value),)*
                (Values::Bytes(values), Scalar::Bytes(value)) => {
                    values.push(value);
                    return Some(value.len() + 16);
                }
                _ => return None,
            }
        };
    }
    fixed!(Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64);
    Some(8)
}

/// Adds the further columns to those of documents. All of them must be nullable, without a sort key.
pub(super) fn with_fields(mut columns: Vec<Field>, fields: &[Field]) -> Vec<Field> {
    for field in fields {
        let field = match field.kind {
            Type::List => Field::list(std::sync::Arc::clone(&field.name), field.scalar()),
            kind => Field::new(std::sync::Arc::clone(&field.name), kind),
        };
        columns.push(field.with_nulls());
    }
    columns
}
