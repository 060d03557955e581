//! Conversions from and to the values of the `ciborium` crate.

use ::ciborium::Value as Foreign;
use ::ciborium::value::Integer;

use super::Value;
use crate::cbor;

/// An item that this crate cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an item of a kind that this build does not know")]
pub struct UnknownItem;

impl TryFrom<Foreign> for Value {
    type Error = UnknownItem;

    fn try_from(foreign: Foreign) -> Result<Self, UnknownItem> {
        Ok(match foreign {
            Foreign::Null => Self::Null,
            Foreign::Bool(bool) => Self::Bool(bool),
            Foreign::Integer(integer) => Self::Integer(integer.into()),
            Foreign::Float(float) => Self::Float(float),
            Foreign::Bytes(bytes) => Self::Bytes(bytes),
            Foreign::Text(text) => Self::Text(text),
            Foreign::Array(items) => {
                Self::Array(items.into_iter().map(Self::try_from).collect::<Result<_, _>>()?)
            }
            Foreign::Map(pairs) => {
                let pair =
                    |(key, value): (Foreign, Foreign)| Ok((Self::try_from(key)?, Self::try_from(value)?));
                Self::Map(pairs.into_iter().map(pair).collect::<Result<_, UnknownItem>>()?)
            }
            Foreign::Tag(tag, inner) => cbor::tagged(tag, Self::try_from(*inner)?),
            _ => return Err(UnknownItem),
        })
    }
}

impl From<Value> for Foreign {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(bool),
            Value::Integer(integer) => Integer::try_from(integer).map_or_else(
                |_| {
                    let (tag, magnitude) = cbor::bignum(integer);
                    Self::Tag(tag, Box::new(Self::Bytes(cbor::without_zeros(&magnitude).to_vec())))
                },
                Self::Integer,
            ),
            Value::Float(float) => Self::Float(float),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Text(text) => Self::Text(text),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Map(pairs) => {
                Self::Map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
            }
            Value::Tag(tag, inner) => Self::Tag(tag, Box::new(Self::from(*inner))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::tests::values;

    #[test]
    fn integers_outside_64_bits_become_bignums() {
        let wide = Value::Integer(i128::from(u64::MAX) + 1);
        let Foreign::Tag(2, bytes) = Foreign::from(wide.clone()) else { panic!("no bignum") };
        assert_eq!(*bytes, Foreign::Bytes(vec![1, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(Value::try_from(Foreign::Tag(2, bytes)), Ok(wide));
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same(value in values()) {
            let back = Value::try_from(Foreign::from(value.clone())).unwrap();
            prop_assert!(back.is_same(&value), "{back:?}");
        }
    }
}
