//! Binds names to columns and literals to values.

use tercet_core::escape;
use thiserror::Error;

use super::pair::{ColumnPair, Operator};
use super::{Comparison, Expr, Literal, Predicate};
use super::{logical, matcher, suggest};
use crate::logical_type::{LogicalType, is_number};
use crate::scalar::Scalar;
use crate::schema::{Field, Schema, Type};

/// A filter that does not match the columns.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BindError {
    /// No such column.
    #[error("has no column `{}`", escape::name(column))]
    NoSuchColumn {
        /// The name.
        column: String,
        /// The first few column names.
        available: Box<str>,
        /// The most similar column name.
        nearest: Option<Box<str>>,
        /// Whether it is in the place of a value, where it may be a string without quotes.
        as_value: bool,
    },
    /// Two columns whose types cannot be compared.
    #[error(
        "cannot compare column `{}` ({left_type}) with column `{}` ({right_type})",
        escape::name(left),
        escape::name(right)
    )]
    Columns {
        /// The column on the left.
        left: String,
        /// Its type.
        left_type: Box<str>,
        /// The column on the right.
        right: String,
        /// Its type.
        right_type: Box<str>,
    },
    /// A pattern of `like`, `ilike` or `regexp` that is not valid.
    #[error("invalid `{operator}` pattern for column `{}`: {reason}", escape::name(column))]
    Pattern {
        /// The column.
        column: String,
        /// The operator.
        operator: &'static str,
        /// The reason.
        reason: String,
    },
    /// A literal that is not valid for the type of the column.
    #[error("invalid {kind} literal {value} for column `{}`", escape::name(column))]
    Value {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// The value.
        value: String,
    },
    /// A literal that is not valid for the logical type of the column.
    #[error(
        "invalid {logical_type} literal {value} for column `{}`, for example {}",
        escape::name(column),
        logical_type.example()
    )]
    LogicalType {
        /// The column.
        column: String,
        /// The logical type.
        logical_type: LogicalType,
        /// The value.
        value: String,
    },
    /// An operator that the column type does not support.
    #[error("column `{}` is {kind}, which does not support `{operator}`", escape::name(column))]
    Operator {
        /// The column.
        column: String,
        /// Its type.
        kind: Box<str>,
        /// The operator.
        operator: &'static str,
    },
    /// `and`, `or` or `in` with an empty list.
    #[error("empty list in `{operator}`")]
    Empty {
        /// The operator.
        operator: &'static str,
    },
}

impl Expr {
    /// Binds names to columns and literals to types. Logical types are ignored.
    pub fn bind(&self, schema: &Schema) -> Result<Predicate, BindError> {
        self.bind_with_types(schema, &[])
    }

    /// Binds with logical types: literals are decimals, dates and times.
    pub fn bind_with_types(
        &self,
        schema: &Schema,
        logical_types: &[Option<LogicalType>],
    ) -> Result<Predicate, BindError> {
        Binder::new(schema, logical_types).bind_filter(self)
    }
}

/// The part of a comparison that an error refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Column,
    Operator,
    Value(usize),
}

/// The state of binding.
pub(super) struct Binder<'a> {
    schema: &'a Schema,
    logical_types: &'a [Option<LogicalType>],
    /// The number of comparisons so far, including the failed one.
    pub(super) tests: usize,
    pub(super) part: Part,
}

impl<'a> Binder<'a> {
    pub(super) fn new(schema: &'a Schema, logical_types: &'a [Option<LogicalType>]) -> Self {
        Self { schema, logical_types, tests: 0, part: Part::Column }
    }

    /// Binds a whole filter.
    pub(super) fn bind_filter(&mut self, expr: &Expr) -> Result<Predicate, BindError> {
        self.bind(expr).map(Predicate::numbered)
    }

    fn bind(&mut self, expr: &Expr) -> Result<Predicate, BindError> {
        let mut all = |parts: &[Expr], operator| {
            if parts.is_empty() {
                return Err(BindError::Empty { operator });
            }
            parts.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match expr {
            Expr::And(parts) => Predicate::And(all(parts, "and")?),
            Expr::Or(parts) => Predicate::Or(all(parts, "or")?),
            Expr::Not(part) => Predicate::Not(Box::new(self.bind(part)?)),
            Expr::Comparison { column, test } => {
                self.tests += 1;
                self.part = Part::Column;
                let index = self.column(column)?;
                self.test(index, &self.schema.fields()[index], test)?
            }
            Expr::Columns { left, operator, right } => {
                self.tests += 1;
                self.part = Part::Column;
                let left = self.column(left)?;
                self.part = Part::Value(0);
                let right = self.column(right)?;
                self.part = Part::Operator;
                Predicate::Columns(self.pair(left, *operator, right)?)
            }
        })
    }

    fn column(&self, column: &str) -> Result<usize, BindError> {
        self.schema.index_of(column).ok_or_else(|| {
            let names = self.schema.fields().iter().map(|field| &*field.name);
            let nearest = suggest::closest(column, names).map(Into::into);
            let available = self.schema.some_names();
            let as_value = matches!(self.part, Part::Value(_));
            BindError::NoSuchColumn { column: column.to_owned(), available, nearest, as_value }
        })
    }

    fn pair(&self, left: usize, operator: Operator, right: usize) -> Result<ColumnPair, BindError> {
        let side = |column: usize| {
            let field = &self.schema.fields()[column];
            let natural = (field.kind == Type::TimestampMicros).then_some(LogicalType::UTC);
            let logical_type = self.logical_types.get(column).copied().flatten().or(natural);
            (column, field, logical_type.filter(|logical_type| !logical_type.is_text()))
        };
        let (one, other) = (side(left), side(right));
        ColumnPair::bind(one, operator, other).ok_or_else(|| {
            let name = |side: (usize, &Field, Option<LogicalType>)| -> Box<str> {
                side.2.map_or_else(|| side.1.kind.to_string(), |logical_type| logical_type.to_string()).into()
            };
            BindError::Columns {
                left: one.1.name.to_string(),
                left_type: name(one),
                right: other.1.name.to_string(),
                right_type: name(other),
            }
        })
    }

    fn test(
        &mut self,
        column: usize,
        field: &Field,
        test: &Comparison<Literal>,
    ) -> Result<Predicate, BindError> {
        let natural = (field.scalar() == Type::TimestampMicros).then_some(LogicalType::UTC);
        let logical_type = self.logical_types.get(column).copied().flatten().or(natural);
        let logical_type = logical_type.filter(|logical_type| !logical_type.is_text());
        let is_text = matches!(field.kind, Type::String | Type::Bytes | Type::BlobRef);
        let fits = match test {
            Comparison::IsNull => true,
            Comparison::Contains(_) if field.kind == Type::List => true,
            _ if field.kind == Type::List => false,
            Comparison::Prefix(_)
            | Comparison::EndsWith(_)
            | Comparison::Substring(_)
            | Comparison::Contains(_)
            | Comparison::Like(_)
            | Comparison::ILike(_)
            | Comparison::Regexp(_)
            | Comparison::Matches(_) => is_text && logical_type.is_none(),
            _ => true,
        };
        if !fits {
            self.part = Part::Operator;
            let kind = match logical_type {
                Some(logical_type) if field.kind != Type::List => logical_type.to_string(),
                _ => field.kind.to_string(),
            };
            let column = field.name.to_string();
            return Err(BindError::Operator { column, kind: kind.into(), operator: test.name() });
        }
        if matches!(test, Comparison::In(literals) if literals.is_empty()) {
            return Err(BindError::Empty { operator: "in" });
        }
        let uuids;
        let (test, logical_type) = if logical_type == Some(LogicalType::Uuid) {
            let mut at = 0;
            uuids = test.try_map(|literal| {
                self.part = Part::Value(at);
                at += 1;
                uuid(field, literal)
            })?;
            (&uuids, None)
        } else {
            (test, logical_type)
        };
        // Values of the stored type are compared as stored.
        let is_exact = |literal: &Literal| matches!(literal, Literal::Exact(_));
        let exact = test.literals().into_iter().position(is_exact);
        let is_order = matches!(
            test,
            Comparison::Lt(_)
                | Comparison::Le(_)
                | Comparison::Gt(_)
                | Comparison::Ge(_)
                | Comparison::Between(..)
        );
        if let (Some(at), Some(logical_type)) = (exact, logical_type.filter(|_| is_text && is_order)) {
            // Decimals stored as bytes do not sort like their bytes.
            self.part = Part::Value(at);
            let value = test.literals()[at].display();
            return Err(BindError::LogicalType { column: field.name.to_string(), logical_type, value });
        }
        let logical_type = logical_type.filter(|_| exact.is_none());
        let mut at = 0;
        let mut next = || {
            self.part = Part::Value(at);
            at += 1;
        };
        let Some(logical_type) = logical_type else {
            // A number that is no value of the column is between two values, or beyond all.
            let is_integer =
                field.scalar().is_integer() && !matches!(field.scalar(), Type::Bool | Type::TimestampMicros);
            let is_other = |literal: &&Literal| {
                matches!(literal, Literal::Number(text) if is_number(text)) && typed(field, literal).is_err()
            };
            if exact.is_none() && is_integer && test.literals().iter().any(is_other) {
                let test = test.try_map(|literal| {
                    next();
                    let bound = logical::locate_integer(field, literal);
                    bound.ok_or_else(|| invalid(field, literal))
                })?;
                return Ok(logical::bound(column, field, logical::INTEGER, test));
            }
            let test = test.try_map(|literal| {
                next();
                typed(field, literal)
            })?;
            let operator = test.name();
            let test = match test {
                Comparison::Contains(part) if is_text => Comparison::Substring(part),
                test => matcher::compile(test).map_err(|reason| {
                    let column = field.name.to_string();
                    BindError::Pattern { column, operator, reason }
                })?,
            };
            return Ok(Predicate::Comparison { column, test, number: 0 });
        };
        let test = test.try_map(|literal| {
            next();
            logical::locate(field, logical_type, literal)
        })?;
        Ok(logical::bound(column, field, logical_type, test))
    }
}

/// A literal as a value of the column, or of its elements.
fn typed(field: &Field, literal: &Literal) -> Result<Scalar, BindError> {
    let kind = field.scalar();
    let found = match literal {
        Literal::Exact(value) => Some(value.clone()).filter(|value| value.fits(kind)),
        Literal::Bool(value) => (kind == Type::Bool).then_some(Scalar::Bool(*value)),
        Literal::Number(text) => match kind {
            Type::String | Type::Bytes | Type::BlobRef | Type::Bool => None,
            // A number out of range would parse as infinity.
            _ => Scalar::parse(kind, text).filter(|value| !value.is_infinite() || !is_number(text)),
        },
        Literal::Text(text) => match kind {
            Type::String | Type::Bytes | Type::BlobRef => Scalar::parse(kind, text),
            Type::Float32 | Type::Float64 if matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
                Scalar::parse(kind, text)
            }
            _ => None,
        },
    };
    found.ok_or_else(|| invalid(field, literal))
}

/// A UUID as its bytes, which have the order of the text.
fn uuid(field: &Field, literal: &Literal) -> Result<Literal, BindError> {
    let logical_type = LogicalType::Uuid;
    let found = match literal {
        Literal::Exact(value) => Some(value.clone()),
        Literal::Text(text) => logical_type.read(Type::Bytes, text),
        _ => None,
    };
    found.map(Literal::Exact).ok_or_else(|| BindError::LogicalType {
        column: field.name.to_string(),
        logical_type,
        value: literal.display(),
    })
}

/// The error of a literal that is no value of the column.
fn invalid(field: &Field, literal: &Literal) -> BindError {
    BindError::Value { column: field.name.to_string(), kind: field.scalar(), value: literal.display() }
}

impl Literal {
    /// The literal for messages.
    pub(super) fn display(&self) -> String {
        match self {
            Self::Exact(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Number(text) => escape::name(text).to_string(),
            Self::Text(text) => format!("\"{}\"", escape::name(text)),
        }
    }
}

impl<V> Comparison<V> {
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
            Self::Prefix(_) => "starts_with",
            Self::EndsWith(_) => "ends_with",
            Self::Contains(_) | Self::Substring(_) => "contains",
            Self::Like(_) => "like",
            Self::ILike(_) => "ilike",
            Self::Regexp(_) => "regexp",
            Self::Matches(matcher) => matcher.operator(),
            Self::IsNull => "is null",
        }
    }

    /// The literals, from left to right.
    pub(crate) fn literals(&self) -> Vec<&V> {
        match self {
            Self::Eq(x)
            | Self::Ne(x)
            | Self::Lt(x)
            | Self::Le(x)
            | Self::Gt(x)
            | Self::Ge(x)
            | Self::Prefix(x)
            | Self::EndsWith(x)
            | Self::Substring(x)
            | Self::Contains(x)
            | Self::Like(x)
            | Self::ILike(x)
            | Self::Regexp(x) => vec![x],
            Self::Between(low, high) => vec![low, high],
            Self::In(values) => values.iter().collect(),
            Self::IsNull | Self::Matches(_) => Vec::new(),
        }
    }

    /// Maps the literals, from left to right.
    fn try_map<W, E>(&self, mut make: impl FnMut(&V) -> Result<W, E>) -> Result<Comparison<W>, E> {
        Ok(match self {
            Self::Eq(x) => Comparison::Eq(make(x)?),
            Self::Ne(x) => Comparison::Ne(make(x)?),
            Self::Lt(x) => Comparison::Lt(make(x)?),
            Self::Le(x) => Comparison::Le(make(x)?),
            Self::Gt(x) => Comparison::Gt(make(x)?),
            Self::Ge(x) => Comparison::Ge(make(x)?),
            Self::Between(low, high) => Comparison::Between(make(low)?, make(high)?),
            Self::In(values) => Comparison::In(values.iter().map(make).collect::<Result<_, _>>()?),
            Self::Prefix(x) => Comparison::Prefix(make(x)?),
            Self::EndsWith(x) => Comparison::EndsWith(make(x)?),
            Self::Substring(x) => Comparison::Substring(make(x)?),
            Self::Contains(x) => Comparison::Contains(make(x)?),
            Self::Like(x) => Comparison::Like(make(x)?),
            Self::ILike(x) => Comparison::ILike(make(x)?),
            Self::Regexp(x) => Comparison::Regexp(make(x)?),
            Self::Matches(matcher) => Comparison::Matches(matcher.clone()),
            Self::IsNull => Comparison::IsNull,
        })
    }
}
