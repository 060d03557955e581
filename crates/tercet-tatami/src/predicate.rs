//! Filter expressions (predicates) on rows.
//!
//! An [`Expr`] refers to columns by name; [`Expr::bind`] resolves them in a schema, checks the types of literals and returns a
//! [`Predicate`]. [`Expr::bind_with_types`] accepts literals of logical types. Null follows SQL three-valued logic: a comparison
//! with null is neither true nor false, and only rows for which the filter is true match. NaN equals nothing, not even itself,
//! and is neither less nor greater than any value.
//!
//! ```
//! use tercet_tatami::predicate::Expr;
//!
//! let parsed = Expr::parse(r#"status = 200 and not url prefix "https://a""#)?;
//! let built = Expr::col("status").eq(200).and(Expr::col("url").prefix("https://a").negate());
//! assert_eq!(parsed, built);
//! # Ok::<(), tercet_tatami::predicate::ParseError>(())
//! ```

mod absent;
mod bind;
mod logical;
mod mask;
mod matcher;
mod pair;
mod parse;
mod region;
mod rows;
mod suggest;
mod tokens;

pub(crate) use absent::Reduced;
pub use bind::BindError;
pub use mask::Mask;
pub use matcher::Matcher;
pub use pair::{ColumnPair, Operator};
pub use parse::{ParseError, ParsedFilter};
pub(crate) use region::{Summary, TriState};
pub(crate) use rows::{Leaf, RowTriState};

use serde::{Deserialize, Serialize};

use crate::scalar::Scalar;

/// A filter expression with column names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A comparison of one column.
    Comparison {
        /// The column.
        column: String,
        /// The comparison.
        test: Comparison<Literal>,
    },
    /// A comparison of two columns.
    Columns {
        /// The column on the left.
        left: String,
        /// The operator.
        operator: Operator,
        /// The column on the right.
        right: String,
    },
    /// Conjunction; not empty.
    And(Vec<Expr>),
    /// Disjunction; not empty.
    Or(Vec<Expr>),
    /// Negation.
    Not(Box<Expr>),
}

/// A literal, typed by the column that it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// True or false.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string, or a time or bytes in a string.
    Text(String),
    /// A typed value; must have the type of the column.
    Exact(Scalar),
}

/// A comparison with literals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the operators")]
pub enum Comparison<V> {
    Eq(V),
    Ne(V),
    Lt(V),
    Le(V),
    Gt(V),
    Ge(V),
    /// Inclusive range.
    Between(V, V),
    /// Equal to one of the values.
    In(Vec<V>),
    /// Strings or bytes with this prefix.
    Prefix(V),
    /// Strings or bytes with this suffix.
    EndsWith(V),
    /// Strings or bytes with this part.
    Substring(V),
    /// List with an equal element; of strings or bytes, the same as `Substring`.
    Contains(V),
    /// Strings or bytes that match a pattern with `%` for any bytes and `_` for one character.
    Like(V),
    /// The same, ignoring case.
    ILike(V),
    /// Strings or bytes that a regular expression matches anywhere.
    Regexp(V),
    /// A compiled pattern. Only bound filters have them; they are not serialized.
    #[serde(skip)]
    Matches(Matcher),
    IsNull,
}

/// A filter bound to columns and typed values.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// A comparison of one column, by position.
    Comparison {
        /// The column.
        column: usize,
        /// The comparison.
        test: Comparison<Scalar>,
        /// The number of the comparison in the filter, from the left. Plans refer to comparisons by number.
        number: usize,
    },
    /// A comparison of two columns.
    Columns(ColumnPair),
    /// Conjunction.
    And(Vec<Predicate>),
    /// Disjunction.
    Or(Vec<Predicate>),
    /// Negation.
    Not(Box<Predicate>),
}

impl Predicate {
    /// The filter with its comparisons numbered.
    fn numbered(mut self) -> Self {
        fn visit(predicate: &mut Predicate, next: &mut usize) {
            match predicate {
                Predicate::Comparison { number, .. } => {
                    *number = *next;
                    *next += 1;
                }
                Predicate::Columns(_) => {}
                Predicate::And(parts) | Predicate::Or(parts) => {
                    for part in parts {
                        visit(part, next);
                    }
                }
                Predicate::Not(part) => visit(part, next),
            }
        }
        visit(&mut self, &mut 0);
        self
    }

    /// The distinct columns of the filter, ascending.
    pub fn columns(&self) -> Vec<usize> {
        fn visit(predicate: &Predicate, out: &mut Vec<usize>) {
            match predicate {
                Predicate::Comparison { column, .. } => out.push(*column),
                Predicate::Columns(pair) => out.extend([pair.left, pair.right]),
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
        /// Less.
        lt => Lt;
        /// Less or equal.
        le => Le;
        /// Greater.
        gt => Gt;
        /// Greater or equal.
        ge => Ge;
        /// Starts with.
        prefix => Prefix;
        /// Ends with.
        ends_with => EndsWith;
        /// List contains this element, or string contains this part.
        contains => Contains;
        /// Matches a pattern with `%` and `_`.
        like => Like;
        /// Matches a pattern with `%` and `_`, ignoring case.
        ilike => ILike;
        /// Matches a regular expression.
        regexp => Regexp;
    }

    /// Between two values, inclusive.
    pub fn between(self, low: impl Into<Literal>, high: impl Into<Literal>) -> Expr {
        Expr::Comparison { column: self.0, test: Comparison::Between(low.into(), high.into()) }
    }

    /// Equal to one of the values.
    pub fn is_in<V: Into<Literal>>(self, values: impl IntoIterator<Item = V>) -> Expr {
        Expr::Comparison {
            column: self.0,
            test: Comparison::In(values.into_iter().map(Into::into).collect()),
        }
    }

    /// Compares with another column.
    pub fn compare(self, operator: Operator, other: impl Into<String>) -> Expr {
        Expr::Columns { left: self.0, operator, right: other.into() }
    }

    /// Null.
    pub fn is_null(self) -> Expr {
        Expr::Comparison { column: self.0, test: Comparison::IsNull }
    }
}

impl Expr {
    /// The distinct column names of the filter.
    pub fn columns(&self) -> Vec<&str> {
        let mut out = match self {
            Self::Comparison { column, .. } => vec![column.as_str()],
            Self::Columns { left, right, .. } => vec![left.as_str(), right.as_str()],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Not(part) => part.columns(),
        };
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Refers to a column.
    pub fn col(name: impl Into<String>) -> ColumnExpr {
        ColumnExpr(name.into())
    }

    /// Conjunction of two filters.
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut parts) => {
                parts.push(other);
                Self::And(parts)
            }
            first => Self::And(vec![first, other]),
        }
    }

    /// Disjunction of two filters.
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Or(mut parts) => {
                parts.push(other);
                Self::Or(parts)
            }
            first => Self::Or(vec![first, other]),
        }
    }

    /// Negation.
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
