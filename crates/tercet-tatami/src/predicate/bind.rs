//! From names and literals to columns and values.

use tercet_core::escape;
use thiserror::Error;

use super::{Expr, Literal, Predicate, Test};
use crate::scalar::Scalar;
use crate::schema::{Field, Schema, Type};

/// A condition that does not fit the columns.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BindError {
    /// There is no such column.
    #[error("has no column `{}`", escape::name(column))]
    NoSuchColumn {
        /// The name.
        column: String,
        /// Names there are, the first few.
        available: Box<str>,
    },
    /// A value that the column cannot hold.
    #[error("column `{}` is {kind}, and {value} is no such value", escape::name(column))]
    Value {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// The value.
        value: String,
    },
    /// A test that makes no sense for the type of the column.
    #[error("column `{}` is {kind}, which cannot be tested with `{operator}`", escape::name(column))]
    Operator {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// The test.
        operator: &'static str,
    },
    /// `and`, `or` or `in` of nothing.
    #[error("`{operator}` of nothing")]
    Empty {
        /// Which.
        operator: &'static str,
    },
}

impl Expr {
    /// Finds the columns in a schema and gives the values their types.
    pub fn bind(&self, schema: &Schema) -> Result<Predicate, BindError> {
        self.bind_counting(schema, &mut 0)
    }

    /// The same; `tests` is how many tests were looked at, the one that does not fit included.
    pub(super) fn bind_counting(&self, schema: &Schema, tests: &mut usize) -> Result<Predicate, BindError> {
        let mut all = |parts: &[Expr], operator| {
            if parts.is_empty() {
                return Err(BindError::Empty { operator });
            }
            parts.iter().map(|part| part.bind_counting(schema, tests)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match self {
            Self::And(parts) => Predicate::And(all(parts, "and")?),
            Self::Or(parts) => Predicate::Or(all(parts, "or")?),
            Self::Not(part) => Predicate::Not(Box::new(part.bind_counting(schema, tests)?)),
            Self::Test { column, test } => {
                *tests += 1;
                let Some(index) = schema.index_of(column) else {
                    return Err(BindError::NoSuchColumn {
                        column: column.clone(),
                        available: schema.some_names(),
                    });
                };
                Predicate::Test { column: index, test: bind_test(&schema.fields()[index], test)? }
            }
        })
    }
}

fn bind_test(field: &Field, test: &Test<Literal>) -> Result<Test<Scalar>, BindError> {
    let value = |literal: &Literal| typed(field, literal);
    let fits = match test {
        Test::IsNull => true,
        Test::Contains(_) => field.kind == Type::List,
        _ if field.kind == Type::List => false,
        Test::Prefix(_) => matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef),
        _ => true,
    };
    if !fits {
        let column = field.name.to_string();
        return Err(BindError::Operator { column, kind: field.kind, operator: test.name() });
    }
    Ok(match test {
        Test::Eq(literal) => Test::Eq(value(literal)?),
        Test::Ne(literal) => Test::Ne(value(literal)?),
        Test::Lt(literal) => Test::Lt(value(literal)?),
        Test::Le(literal) => Test::Le(value(literal)?),
        Test::Gt(literal) => Test::Gt(value(literal)?),
        Test::Ge(literal) => Test::Ge(value(literal)?),
        Test::Between(low, high) => Test::Between(value(low)?, value(high)?),
        Test::In(literals) if literals.is_empty() => return Err(BindError::Empty { operator: "in" }),
        Test::In(literals) => Test::In(literals.iter().map(value).collect::<Result<_, _>>()?),
        Test::Prefix(literal) => Test::Prefix(value(literal)?),
        Test::Contains(literal) => Test::Contains(value(literal)?),
        Test::IsNull => Test::IsNull,
    })
}

/// A literal as a value of the column, or of its elements.
fn typed(field: &Field, literal: &Literal) -> Result<Scalar, BindError> {
    let kind = field.scalar();
    let found = match literal {
        Literal::Exact(value) => Some(value.clone()).filter(|value| value.fits(kind)),
        Literal::Bool(value) => (kind == Type::Bool).then_some(Scalar::Bool(*value)),
        Literal::Number(text) => match kind {
            Type::String | Type::Bytes | Type::BlobRef | Type::Bool => None,
            _ => Scalar::parse(kind, text),
        },
        Literal::Text(text) => match kind {
            Type::String | Type::Bytes | Type::BlobRef => Scalar::parse(kind, text),
            Type::TimestampMicros => {
                text.parse::<jiff::Timestamp>().ok().map(|time| Scalar::Int64(time.as_microsecond()))
            }
            Type::Float32 | Type::Float64 if matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
                Scalar::parse(kind, text)
            }
            _ => None,
        },
    };
    found.ok_or_else(|| BindError::Value {
        column: field.name.to_string(),
        kind,
        value: match literal {
            Literal::Exact(value) => value.to_string(),
            Literal::Bool(value) => value.to_string(),
            Literal::Number(text) => escape::name(text).to_string(),
            Literal::Text(text) => format!("\"{}\"", escape::name(text)),
        },
    })
}

impl<V> Test<V> {
    /// The operator.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Eq(_) => "=",
            Self::Ne(_) => "!=",
            Self::Lt(_) => "<",
            Self::Le(_) => "<=",
            Self::Gt(_) => ">",
            Self::Ge(_) => ">=",
            Self::Between(..) => "between",
            Self::In(_) => "in",
            Self::Prefix(_) => "prefix",
            Self::Contains(_) => "contains",
            Self::IsNull => "is null",
        }
    }
}
