//! Conversions from and to the values of the `ciborium` crate.

use ::ciborium::Value as CiboriumValue;
use ::ciborium::value::Integer;

use super::Value;
use crate::cbor;

/// An item that this crate cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of CBOR item")]
pub struct UnknownItem;

impl TryFrom<CiboriumValue> for Value {
    type Error = UnknownItem;

    fn try_from(value: CiboriumValue) -> Result<Self, UnknownItem> {
        Ok(match value {
            CiboriumValue::Null => Self::Null,
            CiboriumValue::Bool(bool) => Self::Bool(bool),
            CiboriumValue::Integer(integer) => Self::Integer(integer.into()),
            CiboriumValue::Float(float) => Self::Float(float),
            CiboriumValue::Bytes(bytes) => Self::Bytes(bytes),
            CiboriumValue::Text(text) => Self::Text(text),
            CiboriumValue::Array(items) => {
                Self::Array(items.into_iter().map(Self::try_from).collect::<Result<_, _>>()?)
            }
            CiboriumValue::Map(pairs) => {
                let pair = |(key, value): (CiboriumValue, CiboriumValue)| {
                    Ok((Self::try_from(key)?, Self::try_from(value)?))
                };
                Self::Map(pairs.into_iter().map(pair).collect::<Result<_, UnknownItem>>()?)
            }
            CiboriumValue::Tag(tag, inner) => cbor::tagged(tag, Self::try_from(*inner)?),
            _ => return Err(UnknownItem),
        })
    }
}

impl From<Value> for CiboriumValue {
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
        let CiboriumValue::Tag(2, bytes) = CiboriumValue::from(wide.clone()) else { panic!("no bignum") };
        assert_eq!(*bytes, CiboriumValue::Bytes(vec![1, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(Value::try_from(CiboriumValue::Tag(2, bytes)), Ok(wide));
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same(value in values()) {
            let back = Value::try_from(CiboriumValue::from(value.clone())).unwrap();
            prop_assert!(back.is_same(&value), "{back:?}");
        }
    }
}
