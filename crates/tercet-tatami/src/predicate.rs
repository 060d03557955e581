//! Filter expressions (predicates) on rows.
//!
//! An [`Expr`] names columns; [`Expr::bind`] finds them in a schema and checks the types of values, which gives a
//! [`Predicate`]. [`Expr::bind_with_types`] takes literals of logical types. Logic has three values: a comparison with a null
//! row is neither true nor false, and only rows for which the filter is true match. NaN equals nothing, itself included, and is
//! neither less nor greater.
//!
//! ```
//! use tercet_tatami::predicate::Expr;
//!
//! let by_text = Expr::parse(r#"status = 200 and not url prefix "https://a""#)?;
//! let by_hand = Expr::col("status").eq(200).and(Expr::col("url").prefix("https://a").negate());
//! assert_eq!(by_text, by_hand);
//! # Ok::<(), tercet_tatami::predicate::ParseError>(())
//! ```

mod bind;
mod logical;
mod mask;
mod parse;
mod region;
mod rows;
mod tokens;

pub use bind::BindError;
pub use mask::Mask;
pub use parse::{ParseError, ParsedFilter};
pub(crate) use region::{Summary, TriState};

use crate::scalar::Scalar;

/// A filter expression with column names.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A test of one column.
    Comparison {
        /// The column.
        column: String,
        /// The comparison.
        test: Comparison<Literal>,
    },
    /// All of them; at least one.
    And(Vec<Expr>),
    /// One of them; at least one.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
}

/// A value that gets its type from the column it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// True or false.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string, or a time or bytes written as a string.
    Text(String),
    /// A value of a certain type, which must be that of the column.
    Exact(Scalar),
}

/// A comparison with literals.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the operators")]
pub enum Comparison<V> {
    Eq(V),
    Ne(V),
    Lt(V),
    Le(V),
    Gt(V),
    Ge(V),
    /// Both ends included.
    Between(V, V),
    /// Equal to one of them.
    In(Vec<V>),
    /// Strings or bytes with this prefix.
    Prefix(V),
    /// A list with such an element.
    Contains(V),
    IsNull,
}

/// A filter that is bound to columns and typed values.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// A test of one column, by its position.
    Comparison {
        /// The column.
        column: usize,
        /// The comparison.
        test: Comparison<Scalar>,
    },
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// The opposite.
    Not(Box<Predicate>),
}

impl Predicate {
    /// The columns of the filter, each once, in order.
    pub fn columns(&self) -> Vec<usize> {
        fn visit(predicate: &Predicate, out: &mut Vec<usize>) {
            match predicate {
                Predicate::Comparison { column, .. } => out.push(*column),
                Predicate::And(parts) | Predicate::Or(parts) => {
                    for part in parts {
                        visit(part, out);
                    }
                }
                Predicate::Not(part) => visit(part, out),
            }
        }
        let mut out = Vec::new();
        visit(self, &mut out);
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// A column in a filter under construction.
#[derive(Clone, Debug)]
pub struct ColumnExpr(String);

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $test:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, value: impl Into<Literal>) -> Expr {
            Expr::Comparison { column: self.0, test: Comparison::$test(value.into()) }
        }
    )*};
}

impl ColumnExpr {
    comparisons! {
        /// Equal.
        eq => Eq;
        /// Not equal.
        ne => Ne;
        /// Smaller.
        lt => Lt;
        /// Smaller or equal.
        le => Le;
        /// Larger.
        gt => Gt;
        /// Larger or equal.
        ge => Ge;
        /// Starts with.
        prefix => Prefix;
        /// A list with this element.
        contains => Contains;
    }

    /// Between two values, both included.
    pub fn between(self, low: impl Into<Literal>, high: impl Into<Literal>) -> Expr {
        Expr::Comparison { column: self.0, test: Comparison::Between(low.into(), high.into()) }
    }

    /// One of some values.
    pub fn is_in<V: Into<Literal>>(self, values: impl IntoIterator<Item = V>) -> Expr {
        Expr::Comparison {
            column: self.0,
            test: Comparison::In(values.into_iter().map(Into::into).collect()),
        }
    }

    /// Null.
    pub fn is_null(self) -> Expr {
        Expr::Comparison { column: self.0, test: Comparison::IsNull }
    }
}

impl Expr {
    /// The names of the columns of the filter, each once.
    pub fn columns(&self) -> Vec<&str> {
        let mut out = match self {
            Self::Comparison { column, .. } => vec![column.as_str()],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Not(part) => part.columns(),
        };
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Starts a test of a column.
    pub fn col(name: impl Into<String>) -> ColumnExpr {
        ColumnExpr(name.into())
    }

    /// Both.
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut parts) => {
                parts.push(other);
                Self::And(parts)
            }
            first => Self::And(vec![first, other]),
        }
    }

    /// Either.
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Or(mut parts) => {
                parts.push(other);
                Self::Or(parts)
            }
            first => Self::Or(vec![first, other]),
        }
    }

    /// The opposite.
    pub fn negate(self) -> Self {
        Self::Not(Box::new(self))
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Literal {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Literal {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Scalar> for Literal {
    fn from(value: Scalar) -> Self {
        Self::Exact(value)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Literal {
            fn from(value: $number) -> Self {
                Self::Number(value.to_string())
            }
        }
    )*};
}
numbers!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
