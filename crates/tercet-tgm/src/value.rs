//! Metadata values: the CBOR data model in memory.

use std::collections::BTreeMap;

mod ciborium;
pub use ciborium::UnknownItem;
mod json;
#[cfg(test)]
pub(crate) mod tests;

/// One CBOR item.
///
/// Maps keep their pairs in file order, including duplicate keys; [`get`](Self::get) returns the last one.
/// Values are compared structurally: NaN is not equal to itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null` or `undefined`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer. It is encoded as a bignum if it does not fit into 64 bits.
    Integer(i128),
    /// A floating-point number of any width.
    Float(f64),
    /// A byte string.
    Bytes(Vec<u8>),
    /// A text string.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// A map.
    Map(Vec<(Value, Value)>),
    /// A tag and its item.
    Tag(u64, Box<Value>),
}

/// The largest magnitude up to which every integer is exact in `f64`.
const EXACT_IN_F64: u128 = 1 << 53;

impl Value {
    /// The string, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn as_i128(&self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The integer, if this is one that fits into `u64`.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|integer| integer.try_into().ok())
    }

    /// The number: a float, or an integer of magnitude up to 2^53, which is exact.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(float) => Some(*float),
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            Self::Integer(integer) if integer.unsigned_abs() <= EXACT_IN_F64 => Some(*integer as f64),
            _ => None,
        }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs, if this is a map.
    pub fn as_map(&self) -> Option<&[(Value, Value)]> {
        match self {
            Self::Map(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// The value of a string key, if this is a map that has it. The last of duplicate keys is used.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.iter().rev().find(|(found, _)| found.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// The printed form, which `where` expressions compare.
    ///
    /// Strings are printed unchanged, integers in decimal, floats with the fewest digits that parse to the same value and
    /// without an exponent (`1` for 1.0), then `true`, `false` and `null`. Everything else is printed as compact
    /// [`to_json`](Self::to_json).
    ///
    /// ```
    /// use tercet_tgm::Value;
    ///
    /// assert_eq!(Value::from(1.0).printed(), "1");
    /// assert_eq!(Value::from("2t").printed(), "2t");
    /// assert_eq!(Value::from(vec![Value::Null, Value::from(7)]).printed(), "[null,7]");
    /// ```
    pub fn printed(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(bool) => bool.to_string(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => float.to_string(),
            Self::Text(text) => text.clone(),
            _ => self.to_json().to_string(),
        }
    }

    /// The type, with an article.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bytes(_) => "a byte string",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Tag(..) => "a tagged item",
        }
    }

    /// The item without tags.
    pub(crate) fn untagged(&self) -> &Self {
        let mut value = self;
        while let Self::Tag(_, inner) = value {
            value = inner;
        }
        value
    }

    /// The item without tags.
    pub(crate) fn into_untagged(self) -> Self {
        let mut value = self;
        while let Self::Tag(_, inner) = value {
            value = *inner;
        }
        value
    }

    /// Removes all but the last of duplicate keys in every map.
    pub(crate) fn keep_last_of_keys(&mut self) {
        match self {
            Self::Array(items) => items.iter_mut().for_each(Self::keep_last_of_keys),
            Self::Tag(_, inner) => inner.keep_last_of_keys(),
            Self::Map(pairs) => {
                let mut seen = std::collections::BTreeSet::new();
                let mut last: Vec<_> = std::mem::take(pairs)
                    .into_iter()
                    .rev()
                    .filter(|(key, _)| seen.insert(crate::cbor::encode(key)))
                    .collect();
                last.reverse();
                for (_, value) in &mut last {
                    value.keep_last_of_keys();
                }
                *pairs = last;
            }
            _ => {}
        }
    }

    /// Whether both are the same item: floats are compared bit by bit, maps in order.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0.is_same(&b.0) && a.1.is_same(&b.1))
            }
            (Self::Tag(a, inner_a), Self::Tag(b, inner_b)) => a == b && inner_a.is_same(inner_b),
            _ => self == other,
        }
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

macro_rules! from_integers {
    ($($type:ty)*) => {$(
        impl From<$type> for Value {
            fn from(integer: $type) -> Self {
                Self::Integer(i128::from(integer))
            }
        }
    )*};
}

from_integers!(u8 u16 u32 u64 i8 i16 i32 i64 i128);

impl From<usize> for Value {
    fn from(integer: usize) -> Self {
        Self::Integer(integer as i128)
    }
}

impl From<f64> for Value {
    fn from(float: f64) -> Self {
        Self::Float(float)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<BTreeMap<String, Value>> for Value {
    fn from(entries: BTreeMap<String, Value>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (Self::Text(key), value)).collect())
    }
}
