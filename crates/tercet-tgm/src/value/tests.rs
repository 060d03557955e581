use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Any value a reader can produce.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i128>().prop_map(Value::Integer),
        any::<i64>().prop_map(Value::from),
        (-300_i64..300).prop_map(Value::from),
        any::<f64>().prop_map(Value::Float),
        any::<f32>().prop_map(|float| Value::Float(f64::from(float))),
        (-2000_i16..2000).prop_map(|quarter| Value::Float(f64::from(quarter) / 4.0)),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-f64::INFINITY)].prop_map(Value::Float),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,30}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((inner.clone(), inner.clone()), 0..6).prop_map(Value::Map),
            vec(("[a-c]{0,3}".prop_map(Value::Text), inner.clone()), 0..6).prop_map(Value::Map),
            (4_u64.., inner).prop_map(|(tag, inner)| Value::Tag(tag, Box::new(inner))),
        ]
    })
}

#[test]
fn numbers_are_read_when_exact() {
    assert_eq!(Value::from(1_i64 << 53).as_f64(), Some(9_007_199_254_740_992.0));
    assert_eq!(Value::from((1_i64 << 53) + 1).as_f64(), None);
    assert_eq!(Value::Integer(i128::MIN).as_f64(), None);
    assert_eq!(Value::from(-1).as_u64(), None);
    assert_eq!(Value::from(u64::MAX).as_u64(), Some(u64::MAX));
}

#[test]
fn the_last_of_repeated_keys_counts() {
    let map = Value::Map(vec![("a".into(), 1.into()), (2.into(), 3.into()), ("a".into(), 4.into())]);
    assert_eq!(map.get("a"), Some(&Value::from(4)));
    assert_eq!(map.get("b"), None);
    assert_eq!(map.to_json(), json!({ "$map": [["a", 1], [2, 3], ["a", 4]] }));
}

#[test]
fn printed_floats_have_no_exponent() {
    for (float, printed) in
        [(1.5, "1.5"), (1.0, "1"), (-0.0, "-0"), (1e21, "1000000000000000000000"), (1e-7, "0.0000001")]
    {
        assert_eq!(Value::from(float).printed(), printed);
    }
    assert_eq!(Value::Integer(-(1 << 70)).printed(), "-1180591620717411303424");
    assert_eq!(Value::Bytes(vec![0, 255]).printed(), r#"{"$bytes":"00ff"}"#);
}

#[test]
fn json_has_a_form_for_everything() {
    let map = Value::Map(vec![
        ("nan".into(), f64::NAN.into()),
        ("inf".into(), f64::NEG_INFINITY.into()),
        ("wide".into(), Value::Integer(1 << 70)),
        ("tag".into(), Value::Tag(7, Box::new("x".into()))),
        ("map".into(), Value::Map(vec![("$float".into(), "nan".into())])),
    ]);
    let expected = json!({
        "nan": { "$float": "nan" },
        "inf": { "$float": "-inf" },
        "wide": "1180591620717411303424",
        "tag": { "$tag": 7, "value": "x" },
        "map": { "$map": [["$float", "nan"]] },
    });
    assert_eq!(map.to_json(), expected);
    assert_eq!(serde_json::to_value(&map).unwrap(), expected);
    // Objects that only look special stay maps.
    let odd = json!({ "$bytes": "0" });
    assert!(Value::from_json(&odd).as_map().is_some());
}

/// Whether JSON preserves it: no wide integers, no NaN with a payload, no duplicate string keys.
fn is_kept_by_json(value: &Value) -> bool {
    match value {
        Value::Integer(integer) => i64::try_from(*integer).is_ok(),
        Value::Float(float) => !float.is_nan() || float.to_bits() == f64::NAN.to_bits(),
        Value::Array(items) => items.iter().all(is_kept_by_json),
        Value::Map(pairs) => {
            let mut keys: Vec<_> = pairs.iter().filter_map(|(key, _)| key.as_text()).collect();
            keys.sort_unstable();
            keys.windows(2).all(|pair| pair[0] != pair[1])
                && pairs.iter().all(|(key, value)| is_kept_by_json(key) && is_kept_by_json(value))
        }
        Value::Tag(_, inner) => is_kept_by_json(inner),
        _ => true,
    }
}

proptest! {
    #[test]
    fn json_there_and_back_is_the_same(value in values()) {
        prop_assume!(is_kept_by_json(&value));
        let back = Value::from_json(&value.to_json());
        prop_assert!(back.is_same(&value), "{back:?}");
    }

    #[test]
    fn printed_floats_read_back(float in any::<f64>()) {
        prop_assert_eq!(Value::Float(float).printed().parse::<f64>().unwrap().to_bits(), float.to_bits());
        prop_assert!(!Value::Float(float).printed().contains('e'));
    }
}
