//! Tests of columns in a query: `price:[10 TO 20]`, `lang:de`.

use crate::error::ErrorKind;
use crate::file::File;
use crate::predicate::{Expr, Literal};
use crate::schema::{Schema, Type};
use crate::search::query::DocField;

/// A test of a column of the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct ColumnTest {
    pub(in crate::search) column: String,
    pub(super) test: ValueTest,
}

/// A test of a value, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueTest {
    /// Equal; of a list, an element is.
    Is(String),
    Prefix(String),
    /// A value exists.
    Exists,
    Range(Option<Bound>, Option<Bound>),
}

/// A bound of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) value: String,
    pub(super) is_inclusive: bool,
}

impl ColumnTest {
    /// The filter for the columns of a file, which has the column.
    pub(in crate::search) fn filter(&self, file: &File) -> Result<Expr, ErrorKind> {
        let schema = file.schema();
        let Some(index) = schema.index_of(&self.column) else { return Err(self.unknown(schema)) };
        let field = &schema.fields()[index];
        let is_decimal = file.logical_types()[index].is_some_and(crate::LogicalType::is_number);
        let is_text = matches!(field.scalar(), Type::String | Type::Bytes | Type::BlobRef)
            || file.logical_types()[index].is_some()
            || field.scalar() == Type::TimestampMicros;
        let literal = |value: &str| -> Result<Literal, ErrorKind> {
            if is_text && !is_decimal {
                return Ok(value.into());
            }
            let fault = |expected: &str| {
                let (value, column) =
                    (tercet_core::escape::name(value), tercet_core::escape::name(&self.column));
                let reason = format!("invalid value `{value}` for column `{column}`: expected {expected}");
                Err(ErrorKind::Query { reason: reason.into() })
            };
            if field.scalar() == Type::Bool {
                return value.parse().map(Literal::Bool).or_else(|_| fault("true or false"));
            }
            match value.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Literal::Number(value.to_owned())),
                _ => fault("a number"),
            }
        };
        let column = || Expr::col(&*self.column);
        Ok(match &self.test {
            ValueTest::Is(value) if field.kind == Type::List => column().contains(literal(value)?),
            ValueTest::Is(value) => column().eq(literal(value)?),
            ValueTest::Prefix(value) => column().prefix(literal(value)?),
            ValueTest::Exists => column().is_null().negate(),
            ValueTest::Range(low, high) => {
                let low = low.as_ref().map(|low| {
                    let value = literal(&low.value)?;
                    Ok::<_, ErrorKind>(if low.is_inclusive { column().ge(value) } else { column().gt(value) })
                });
                let high = high.as_ref().map(|high| {
                    let value = literal(&high.value)?;
                    Ok::<_, ErrorKind>(if high.is_inclusive {
                        column().le(value)
                    } else {
                        column().lt(value)
                    })
                });
                match (low.transpose()?, high.transpose()?) {
                    (Some(low), Some(high)) => low.and(high),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => column().is_null().negate(),
                }
            }
        })
    }

    /// The error for a column that no segment has.
    pub(in crate::search) fn unknown(&self, schema: &Schema) -> ErrorKind {
        let fields = DocField::ALL.map(DocField::name).join(", ");
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .skip(COLUMNS)
            .map(|field| tercet_core::escape::name(&field.name).into_owned())
            .collect();
        let columns =
            if columns.is_empty() { String::new() } else { format!("; columns: {}", columns.join(", ")) };
        let reason = format!(
            "unknown field `{}` (fields: {fields}{columns}); quote the term to search for it as text",
            tercet_core::escape::name(&self.column)
        );
        ErrorKind::Query { reason: reason.into() }
    }
}

/// The columns of every segment, which come first.
const COLUMNS: usize = 8;
