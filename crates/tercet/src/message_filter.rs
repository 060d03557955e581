//! Filters on the metadata of messages: the filter language of `.tatami` rows over typed values.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use tercet_tatami::Scalar;
use tercet_tatami::predicate::{Comparison, Expr, Literal, Operator, ParseError};
use tercet_tgm::{Field, Message, Value, is_pipeline_parameter};

/// A filter expression on the metadata of messages, such as `step >= 6 and name in ("t", "z")`.
///
/// The language is that of [`Expr`]. Numbers are compared with numbers and strings with strings; a comparison with
/// another type, or with a missing key, is unknown and does not match, also if it is negated. `is null` holds for a missing
/// key.
///
/// ```
/// use tercet::MessageFilter;
/// use tercet::tgm::Value;
///
/// let filter = MessageFilter::parse(r#"step >= 6 and name like "t%""#)?;
/// let found = filter.matches(|key| match key {
///     "step" => Ok::<_, ()>(Some(Value::from(12))),
///     _ => Ok(Some(Value::from("t2m"))),
/// });
/// assert_eq!(found, Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MessageFilter {
    text: String,
    node: Node,
    keys: Vec<String>,
    seen: Mutex<FilterState>,
}

/// What the filter met so far: the reasons why nothing matched.
#[derive(Clone, Debug, Default)]
struct FilterState {
    found: BTreeSet<String>,
    /// The types that a key has where another one is compared.
    mismatched: BTreeMap<String, &'static str>,
}

#[derive(Clone, Debug)]
enum Node {
    Test { key: String, test: Comparison<Literal>, pattern: Option<Comparison<Scalar>> },
    Keys { left: String, operator: Operator, right: String },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
}

/// A filter expression that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageFilterError {
    /// A syntax error.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    /// An invalid pattern.
    #[error("invalid pattern for `{key}`: {reason}")]
    Pattern {
        /// The key.
        key: String,
        /// The reason.
        reason: String,
    },
}

impl Clone for MessageFilter {
    fn clone(&self) -> Self {
        let Self { text, node, keys, .. } = self;
        Self { text: text.clone(), node: node.clone(), keys: keys.clone(), seen: Mutex::default() }
    }
}

impl MessageFilter {
    /// Parses a filter expression.
    pub fn parse(text: &str) -> Result<Self, MessageFilterError> {
        let expr = Expr::parse(text)?;
        let keys = expr.columns().into_iter().map(str::to_owned).collect();
        let node = Node::new(expr)?;
        Ok(Self { text: text.to_owned(), node, keys, seen: Mutex::default() })
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The distinct keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Whether the expression holds for values that `look_up` returns by key.
    pub fn matches<E>(&self, mut look_up: impl FnMut(&str) -> Result<Option<Value>, E>) -> Result<bool, E> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.node.evaluate(&mut look_up, &mut seen)? == Some(true))
    }

    /// The objects of a message for which the expression holds; `None` if there are none. A key is that of the object, else of the
    /// message, else a [`Field`] or pipeline parameter of the object. A message without objects matches by its own metadata, with no objects.
    pub fn matching_objects(&self, message: &Message) -> Result<Option<Vec<u64>>, tercet_tgm::Error> {
        let metadata = message.metadata();
        let count = message.object_count();
        if count == 0 {
            let holds =
                self.matches(|key| Ok::<_, tercet_tgm::Error>(metadata.get_for_objects(&[], key).cloned()))?;
            return Ok(holds.then(Vec::new));
        }
        let mut found = Vec::new();
        for index in 0..count {
            let mut stats = None;
            let value = |key: &str| -> Result<Option<Value>, tercet_tgm::Error> {
                if let Some(value) = metadata.get_for_objects(&[index], key) {
                    return Ok(Some(value.clone()));
                }
                let Some(field) = Field::from_name(key) else {
                    if !is_pipeline_parameter(key) {
                        return Ok(None);
                    }
                    return Ok(message.object(index)?.pipeline_parameter(key).cloned());
                };
                if field == Field::Message {
                    return Ok(Some(message.number().into()));
                }
                let object = message.object(index)?;
                if !field.is_statistic() {
                    return object.field(field).map(Some);
                }
                if stats.is_none() {
                    stats = Some(object.stats()?);
                }
                Ok(stats.as_ref().map(|stats| stats.get(field)))
            };
            if self.matches(value)? {
                found.push(index);
            }
        }
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    /// Why a filter that matched nothing did so, if a key was never found or has another type.
    pub fn why_nothing_matched(&self) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.keys.iter().find(|key| !seen.found.contains(*key)) {
            return Some(format!("no message has the key `{key}`; strings are written in quotes"));
        }
        let (key, kind) = seen.mismatched.iter().next()?;
        Some(format!("`{key}` is {kind}"))
    }
}

impl Node {
    fn new(expr: Expr) -> Result<Self, MessageFilterError> {
        let all = |parts: Vec<Expr>| parts.into_iter().map(Self::new).collect::<Result<Vec<_>, _>>();
        Ok(match expr {
            Expr::Comparison { column, test } => {
                let pattern = strings(&test).map(Comparison::compiled).transpose();
                let wrong = |reason| MessageFilterError::Pattern { key: column.clone(), reason };
                let pattern = pattern.map_err(wrong)?;
                Self::Test { key: column, test, pattern }
            }
            Expr::Columns { left, operator, right } => Self::Keys { left, operator, right },
            Expr::And(parts) => Self::And(all(parts)?),
            Expr::Or(parts) => Self::Or(all(parts)?),
            Expr::Not(part) => Self::Not(Box::new(Self::new(*part)?)),
        })
    }

    /// True, false, or unknown: SQL three-valued logic.
    fn evaluate<E>(
        &self,
        look_up: &mut dyn FnMut(&str) -> Result<Option<Value>, E>,
        seen: &mut FilterState,
    ) -> Result<Option<bool>, E> {
        match self {
            Self::And(parts) => fold(parts, false, look_up, seen),
            Self::Or(parts) => fold(parts, true, look_up, seen),
            Self::Not(part) => Ok(part.evaluate(look_up, seen)?.map(|found| !found)),
            Self::Keys { left, operator, right } => {
                let (left, right) = (find(left, look_up, seen)?, find(right, look_up, seen)?);
                Ok(left.zip(right).and_then(|(left, right)| compare_values(&left, *operator, &right)))
            }
            Self::Test { key, test, pattern } => {
                let value = find(key, look_up, seen)?;
                if matches!(test, Comparison::IsNull) {
                    return Ok(Some(value.is_none()));
                }
                let Some(value) = value else { return Ok(None) };
                let holds = holds(&value, test, pattern.as_ref());
                if holds.is_none() {
                    seen.mismatched.entry(key.clone()).or_insert(type_name(&value));
                }
                Ok(holds)
            }
        }
    }
}

/// The value of a key; null is missing.
fn find<E>(
    key: &str,
    look_up: &mut dyn FnMut(&str) -> Result<Option<Value>, E>,
    seen: &mut FilterState,
) -> Result<Option<Value>, E> {
    let value = look_up(key)?;
    if value.is_some() && !seen.found.contains(key) {
        seen.found.insert(key.to_owned());
    }
    Ok(value.filter(|value| *value != Value::Null))
}

/// Evaluates parts until one of them decides.
fn fold<E>(
    parts: &[Node],
    decides: bool,
    look_up: &mut dyn FnMut(&str) -> Result<Option<Value>, E>,
    seen: &mut FilterState,
) -> Result<Option<bool>, E> {
    let mut result = Some(!decides);
    for part in parts {
        match part.evaluate(look_up, seen)? {
            Some(found) if found == decides => return Ok(Some(decides)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The comparison with strings, if all its literals are strings.
fn strings(test: &Comparison<Literal>) -> Option<Comparison<Scalar>> {
    use Comparison as C;
    let text = |literal: &Literal| match literal {
        Literal::Text(text) => Some(Scalar::Bytes(text.clone().into_bytes())),
        Literal::Exact(scalar @ Scalar::Bytes(_)) => Some(scalar.clone()),
        _ => None,
    };
    Some(match test {
        C::Eq(value) => C::Eq(text(value)?),
        C::Ne(value) => C::Ne(text(value)?),
        C::Lt(value) => C::Lt(text(value)?),
        C::Le(value) => C::Le(text(value)?),
        C::Gt(value) => C::Gt(text(value)?),
        C::Ge(value) => C::Ge(text(value)?),
        C::Between(low, high) => C::Between(text(low)?, text(high)?),
        C::In(values) => C::In(values.iter().map(text).collect::<Option<_>>()?),
        C::Prefix(value) => C::Prefix(text(value)?),
        C::EndsWith(value) => C::EndsWith(text(value)?),
        C::Substring(value) => C::Substring(text(value)?),
        C::Contains(value) => C::Contains(text(value)?),
        C::Like(value) => C::Like(text(value)?),
        C::ILike(value) => C::ILike(text(value)?),
        C::Regexp(value) => C::Regexp(text(value)?),
        C::Matches(_) | C::IsNull => return None,
    })
}

/// Whether a comparison holds for a value; `None` if their types differ.
fn holds(value: &Value, test: &Comparison<Literal>, pattern: Option<&Comparison<Scalar>>) -> Option<bool> {
    use Comparison as C;
    match (value, pattern) {
        (Value::Text(text), Some(pattern)) => return pattern.holds_for_string(text),
        (Value::Array(items), _) => {
            let C::Contains(literal) = test else { return None };
            return Some(items.iter().any(|item| order(item, literal) == Some(Some(Ordering::Equal))));
        }
        _ => {}
    }
    let with = |literal: &Literal, operator: Operator| Some(operator.holds(order(value, literal)?));
    match test {
        C::Eq(literal) => with(literal, Operator::Eq),
        C::Ne(literal) => with(literal, Operator::Ne),
        C::Lt(literal) => with(literal, Operator::Lt),
        C::Le(literal) => with(literal, Operator::Le),
        C::Gt(literal) => with(literal, Operator::Gt),
        C::Ge(literal) => with(literal, Operator::Ge),
        C::Between(low, high) => Some(with(low, Operator::Ge)? && with(high, Operator::Le)?),
        C::In(literals) => {
            let known: Vec<bool> =
                literals.iter().filter_map(|literal| with(literal, Operator::Eq)).collect();
            if known.is_empty() && !literals.is_empty() { None } else { Some(known.contains(&true)) }
        }
        _ => None,
    }
}

/// The order of a value and a literal: `None` for different types, `Some(None)` for NaN.
#[expect(clippy::option_option, reason = "the outer option is the type, the inner one NaN")]
fn order(value: &Value, literal: &Literal) -> Option<Option<Ordering>> {
    match literal {
        Literal::Number(text) => match text.parse::<i128>() {
            Ok(integer) => numeric(value, &Value::Integer(integer)),
            Err(_) => numeric(value, &Value::Float(text.parse().ok()?)),
        },
        Literal::Text(text) => Some(Some(value.as_text()?.cmp(text))),
        Literal::Bool(bool) => Some(Some(value.as_bool()?.cmp(bool))),
        Literal::Exact(scalar) => match scalar {
            Scalar::Bool(bool) => Some(Some(value.as_bool()?.cmp(bool))),
            Scalar::Float32(float) => numeric(value, &Value::Float((*float).into())),
            Scalar::Float64(float) => numeric(value, &Value::Float(*float)),
            Scalar::Int8(integer) => numeric(value, &Value::from(*integer)),
            Scalar::Int16(integer) => numeric(value, &Value::from(*integer)),
            Scalar::Int32(integer) => numeric(value, &Value::from(*integer)),
            Scalar::Int64(integer) => numeric(value, &Value::from(*integer)),
            Scalar::UInt8(integer) => numeric(value, &Value::from(*integer)),
            Scalar::UInt16(integer) => numeric(value, &Value::from(*integer)),
            Scalar::UInt32(integer) => numeric(value, &Value::from(*integer)),
            Scalar::UInt64(integer) => numeric(value, &Value::from(*integer)),
            Scalar::Bytes(bytes) => Some(Some(value.as_text()?.as_bytes().cmp(bytes))),
        },
    }
}

/// The order of two numbers: integers exactly.
#[expect(clippy::option_option, reason = "the outer option is the type, the inner one NaN")]
fn numeric(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(Some(left.cmp(right))),
        (Value::Float(left), Value::Float(right)) => Some(left.partial_cmp(right)),
        (Value::Integer(left), Value::Float(right)) => Some(integer_and_float(*left, *right)),
        (Value::Float(left), Value::Integer(right)) => {
            Some(integer_and_float(*right, *left).map(Ordering::reverse))
        }
        _ => None,
    }
}

/// The exact order of an integer and a float.
fn integer_and_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates; floats outside i128 are beyond any integer"
    )]
    let floor = float.floor() as i128;
    let is_whole = float.fract() == 0.0;
    Some(match integer.cmp(&floor) {
        Ordering::Equal if !is_whole => Ordering::Less,
        order => order,
    })
}

fn compare_values(left: &Value, operator: Operator, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => numeric(left, right)?,
    };
    Some(operator.holds(order))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Bytes(_) => "a byte string",
        Value::Text(_) => "a string; strings are written in quotes",
        Value::Array(_) => "a list; use `contains`",
        Value::Map(_) => "a map; name one of its keys",
        Value::Tag(..) => "a tagged value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> bool {
        let filter = MessageFilter::parse(text).unwrap();
        filter.matches(|key| Ok::<_, ()>(value(key))).unwrap()
    }

    fn value(key: &str) -> Option<Value> {
        Some(match key {
            "step" => 6.into(),
            "big" => i128::from(u64::MAX).into(),
            "level" => Value::from(850.5),
            "name" => "t2m".into(),
            "date" => "2026-04-01".into(),
            "ok" => true.into(),
            "list" => vec![Value::from(1), Value::from("a")].into(),
            "nothing" => Value::Null,
            _ => return None,
        })
    }

    #[test]
    fn values_are_compared_by_type() {
        for text in [
            "step = 6",
            "step = 6.0",
            "step >= 6 and step < 7",
            "step between 0 and 12",
            "step in (0, 6)",
            "big = 18446744073709551615",
            "big > 18446744073709551614",
            "level > 850",
            "level < 851",
            "name = \"t2m\"",
            "name like \"t%\"",
            "name ilike \"T2_\"",
            "name regexp \"^t[0-9]\"",
            "name in (\"u\", \"t2m\")",
            "date >= \"2026-01-01\"",
            "ok = true",
            "list contains 1",
            "list contains \"a\"",
            "missing is null",
            "nothing is null",
            "not missing is not null",
            "missing = 1 or step = 6",
            "name != \"u\"",
        ] {
            assert!(found(text), "{text}");
        }
        for text in [
            "step = 7",
            "step = \"6\"",
            "not step = \"6\"",
            "name = 6",
            "not name = 6",
            "missing = 1",
            "missing != 1",
            "not missing = 1",
            "level between 850 and 850.25",
            "list = 1",
            "step is null",
            "big > 18446744073709551615",
        ] {
            assert!(!found(text), "{text}");
        }
    }

    #[test]
    fn the_reason_for_no_match_is_known() {
        let why = |text: &str| {
            let filter = MessageFilter::parse(text).unwrap();
            assert!(!filter.matches(|key| Ok::<_, ()>(value(key))).unwrap());
            filter.why_nothing_matched()
        };
        assert!(why("name = t").unwrap().contains("no message has the key `t`"));
        assert!(why("name = 6").unwrap().contains("`name` is a string"));
        assert_eq!(why("step = 7"), None);
    }

    #[test]
    fn wrong_patterns_are_errors() {
        assert!(MessageFilter::parse("name regexp \"(\"").is_err());
        assert!(MessageFilter::parse("name =").is_err());
    }
}
