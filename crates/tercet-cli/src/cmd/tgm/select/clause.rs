//! `KEY=V1/V2,KEY<V`: comparisons as in ecCodes.

use std::cmp::Ordering;
use std::str::FromStr;

use tercet::tgm::Value;

use super::printed;
use crate::failure::Failure;
use crate::persona::is_reference;

/// Comparisons that all must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clauses(Vec<Clause>);

/// A comparison of the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clause {
    key: String,
    operator: Operator,
    /// The alternatives of `=` and `!=`.
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Operator {
    /// Longer ones first.
    const ALL: [(&'static str, Self); 7] = [
        ("!=", Self::Ne),
        ("<=", Self::Le),
        (">=", Self::Ge),
        ("==", Self::Eq),
        ("=", Self::Eq),
        ("<", Self::Lt),
        (">", Self::Gt),
    ];
}

impl FromStr for Clauses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_reference() {
            return Ok(Self(vec![Clause::parse_reference(text)?]));
        }
        text.split(',').map(Clause::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Clauses {
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|clause| clause.key.as_str())
    }

    /// Whether all comparisons hold. `exists` is whether another object of the message has the key.
    pub(super) fn holds(
        &self,
        value: &dyn Fn(&str) -> Result<Option<Value>, Failure>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<bool, Failure> {
        for clause in &self.0 {
            let holds = match value(&clause.key)? {
                Some(found) => clause.holds(&found),
                // An object without the key does not make its message match.
                None => clause.operator == Operator::Ne && !exists(&clause.key),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Clause {
    fn parse(text: &str) -> Result<Self, String> {
        let found =
            Operator::ALL.into_iter().filter_map(|(sign, operator)| Some((text.find(sign)?, sign, operator)));
        // The first operator counts; of two at the same place, the longer one.
        let Some((at, sign, operator)) = found.min_by_key(|(at, sign, _)| (*at, 2 - sign.len())) else {
            return Err(format!(
                "expected KEY=VALUE, KEY=V1/V2, KEY!=VALUE or KEY<VALUE, found `{text}`; for values with commas use `--where`"
            ));
        };
        let (key, values) = (text[..at].trim(), &text[at + sign.len()..]);
        let values: Vec<String> = match operator {
            Operator::Eq | Operator::Ne => values.split('/').map(str::to_owned).collect(),
            _ => vec![values.to_owned()],
        };
        Self::new(key, operator, values)
    }

    /// One comparison with `=` or `!=`, as in the reference implementation.
    fn parse_reference(text: &str) -> Result<Self, String> {
        let split = text.split_once("!=").map(|parts| (parts, Operator::Ne));
        let split = split.or_else(|| text.split_once('=').map(|parts| (parts, Operator::Eq)));
        let ((key, values), operator) = split.ok_or("expected KEY=VALUE, KEY=V1/V2 or KEY!=VALUE")?;
        Self::new(key, operator, values.split('/').map(str::to_owned).collect())
    }

    fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        if key.is_empty() {
            return Err("missing key before the operator".to_owned());
        }
        Ok(Self { key: key.to_owned(), operator, values })
    }

    /// Whether it holds for a value.
    fn holds(&self, found: &Value) -> bool {
        let any = |holds: &dyn Fn(&str) -> bool| self.values.iter().any(|value| holds(value));
        let ordered = |wanted: &[Ordering]| {
            any(&|value| order(found, value).is_some_and(|order| wanted.contains(&order)))
        };
        match self.operator {
            Operator::Eq => any(&|value| is_equal(found, value)),
            Operator::Ne => !any(&|value| is_equal(found, value)),
            Operator::Lt => ordered(&[Ordering::Less]),
            Operator::Le => ordered(&[Ordering::Less, Ordering::Equal]),
            Operator::Gt => ordered(&[Ordering::Greater]),
            Operator::Ge => ordered(&[Ordering::Greater, Ordering::Equal]),
        }
    }
}

/// Whether a value is printed like this, or is the same number.
fn is_equal(found: &Value, value: &str) -> bool {
    if printed(found) == value {
        return true;
    }
    !is_reference() && found.as_f64().is_some() && order(found, value) == Some(Ordering::Equal)
}

/// The order of numbers, or of strings.
fn order(found: &Value, value: &str) -> Option<Ordering> {
    if let (Value::Integer(found), Ok(value)) = (found, value.parse::<i128>()) {
        return Some(found.cmp(&value));
    }
    let numbers = match found {
        Value::Text(text) => text.parse::<f64>().ok(),
        other => other.as_f64(),
    };
    match (numbers, value.parse::<f64>().ok(), found) {
        (Some(found), Some(value), _) => found.partial_cmp(&value),
        (_, _, Value::Text(text)) => Some(text.as_str().cmp(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &str) -> Option<Value> {
        Some(match key {
            "param" => "2t".into(),
            "step" => 6.into(),
            "scale" => Value::from(1.0),
            "version" => 3.into(),
            "empty" => "".into(),
            "date" => "2026-04-01".into(),
            _ => return None,
        })
    }

    fn holds(text: &str) -> bool {
        text.parse::<Clauses>().unwrap().holds(&|key| Ok(value(key)), &|_| false).unwrap_or(false)
    }

    #[test]
    fn clauses_compare_values() {
        for clause in [
            "param=2t",
            "param=msl/2t",
            "step=6",
            "step=6.0",
            "step==6",
            "param==msl/2t",
            "step=6,param=2t",
            "step=0/6,param!=msl/z,scale=1",
            "step!=7/8",
            "missing!=anything",
            "empty=",
            "step<12",
            "step<=6",
            "step>=6",
            "step>5.5",
            "date>=2026-01-01",
            "date<2026-05",
        ] {
            assert!(holds(clause), "{clause}");
        }
        for clause in [
            "param=2",
            "param!=2t/msl",
            "missing=",
            "missing<1",
            "step=06x",
            "step=6,param=z",
            "step>6",
            "step<6",
            "param=6,step=6",
            "step<x",
        ] {
            assert!(!holds(clause), "{clause}");
        }
    }

    #[test]
    fn a_clause_needs_a_key_and_an_operator() {
        for wrong in ["", "param", "=2t", "!=2t", "step=6,name", "step=6,", "<3"] {
            assert!(wrong.parse::<Clauses>().is_err(), "{wrong}");
        }
        let parsed: Clauses = "a!=b=c".parse().unwrap();
        assert_eq!(
            parsed.0,
            [Clause { key: "a".into(), operator: Operator::Ne, values: vec!["b=c".into()] }]
        );
        let parsed: Clauses = "a=b!=c".parse().unwrap();
        assert_eq!(parsed.0[0].values, ["b!=c"]);
    }
}
