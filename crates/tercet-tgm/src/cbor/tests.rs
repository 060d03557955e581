use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::Budget;

use super::*;
use crate::value::Value;
use crate::value::tests::values;

fn unlimited() -> Budget {
    Budget::new("test", u64::MAX)
}

fn read(bytes: &[u8]) -> Result<Value, CborError> {
    let (value, len) = decode(bytes, &unlimited())?;
    assert_eq!(len, bytes.len());
    Ok(value)
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits: String = digits.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// The value with its maps sorted naively and every NaN equal.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Float(float) if float.is_nan() => Value::Float(f64::NAN),
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Tag(tag, inner) => Value::Tag(*tag, Box::new(canonical(inner))),
        Value::Map(pairs) => {
            let mut sorted: Vec<(Value, Value)> = Vec::new();
            for (key, value) in pairs {
                let (key, value) = (canonical(key), canonical(value));
                let smaller = |other: &&(Value, Value)| encode(&other.0) <= encode(&key);
                let at = sorted.iter().take_while(smaller).count();
                sorted.insert(at, (key, value));
            }
            Value::Map(sorted)
        }
        _ => value.clone(),
    }
}

fn has_duplicate(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_duplicate),
        Value::Tag(_, inner) => has_duplicate(inner),
        Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| encode(key)).collect();
            (1..keys.len()).any(|at| keys[..at].contains(&keys[at]))
                || pairs.iter().any(|(key, value)| has_duplicate(key) || has_duplicate(value))
        }
        _ => false,
    }
}

#[test]
fn canonical_forms_are_those_of_the_standard() {
    let wide = 1_i128 << 64;
    for (value, bytes) in [
        (Value::from(0), "00"),
        (Value::from(23), "17"),
        (Value::from(24), "1818"),
        (Value::from(256), "190100"),
        (Value::from(u64::MAX), "1bffffffffffffffff"),
        (Value::from(-1), "20"),
        (Value::Integer(-wide), "3bffffffffffffffff"),
        (Value::Integer(wide), "c249010000000000000000"),
        (Value::Integer(-wide - 1), "c349010000000000000000"),
        (Value::from(1.5), "f93e00"),
        (Value::from(100_000.0), "fa47c35000"),
        (Value::from(0.1), "fb3fb999999999999a"),
        (Value::from(f64::NAN), "f97e00"),
        (Value::from(f64::INFINITY), "f97c00"),
        (Value::from(-0.0), "f98000"),
        (Value::from(5.960_464_477_539_063e-8), "f90001"),
        (Value::Bytes(vec![1]), "4101"),
        (Value::from("ü"), "62c3bc"),
        (Value::Tag(2, Box::new(Value::Bytes(vec![0, 7]))), "07"),
        (Value::Map(vec![("aa".into(), 1.into()), ("b".into(), true.into())]), "a2 6162 f5 626161 01"),
    ] {
        assert_eq!(encode(&value), unhex(bytes), "{value:?}");
        verify_canonical_cbor(&unhex(bytes)).unwrap();
    }
}

#[test]
fn readers_are_lenient() {
    for (bytes, value) in [
        ("1b0000000000000005", Value::from(5)),
        ("f7", Value::Null),
        ("fa3fc00000", Value::from(1.5)),
        ("9f 01 9f ff ff", Value::from(vec![1.into(), Value::Array(vec![])])),
        ("7f 6161 60 6162 ff", Value::from("ab")),
        ("5f 4101 ff", Value::Bytes(vec![1])),
        ("c2 5f 4101 4100 ff", Value::from(256)),
        ("bf 6162 01 6161 02 ff", Value::Map(vec![("b".into(), 1.into()), ("a".into(), 2.into())])),
        ("a2 6161 01 6161 02", Value::Map(vec![("a".into(), 1.into()), ("a".into(), 2.into())])),
        ("c1 01", Value::Tag(1, Box::new(1.into()))),
        ("c3 40", Value::from(-1)),
        ("c2 50 7fffffffffffffffffffffffffffffff", Value::Integer(i128::MAX)),
        ("c3 50 7fffffffffffffffffffffffffffffff", Value::Integer(i128::MIN)),
        (
            "c2 50 80000000000000000000000000000000",
            Value::Tag(2, Box::new(Value::Bytes((0..16).map(|at| if at == 0 { 128 } else { 0 }).collect()))),
        ),
    ] {
        assert_eq!(read(&unhex(bytes)), Ok(value), "{bytes}");
    }
}

#[test]
fn errors_name_problem_and_position() {
    use CborErrorKind::{Chunk, NotUtf8, Reserved, Simple, Truncated, UnexpectedBreak};
    for (bytes, at, reason) in [
        ("", 0, Truncated { need: 1, have: 0 }),
        ("82 01", 0, Truncated { need: 3, have: 2 }),
        ("82 01 19 01", 2, Truncated { need: 3, have: 2 }),
        ("9f 01", 2, Truncated { need: 1, have: 0 }),
        ("81 62 61", 1, Truncated { need: 3, have: 2 }),
        ("5b ffffffffffffffff", 0, Truncated { need: u64::MAX, have: 9 }),
        ("bb ffffffffffffffff", 0, Truncated { need: u64::MAX, have: 9 }),
        ("81 61 ff", 1, NotUtf8),
        ("7f 61c3 61bc ff", 1, NotUtf8),
        ("81 e0", 1, Simple(0)),
        ("f8 ff", 0, Simple(255)),
        ("81 1c", 1, Reserved(0x1c)),
        ("1f", 0, Reserved(0x1f)),
        ("df", 0, Reserved(0xdf)),
        ("ff", 0, UnexpectedBreak),
        ("bf 01 ff", 2, UnexpectedBreak),
        ("81 ff", 1, UnexpectedBreak),
        ("c1 ff", 1, UnexpectedBreak),
        ("7f 4101 ff", 1, Chunk(0x41)),
        ("7f 7f ff ff", 1, Chunk(0x7f)),
    ] {
        let error = CborError::new(at, reason);
        assert_eq!(decode(&unhex(bytes), &unlimited()), Err(error.clone()), "{bytes}");
        assert_eq!(key_order(&unhex(bytes)), Err(error), "{bytes}");
    }
    assert_eq!(
        CborError::new(3, Truncated { need: 3, have: 2 }).to_string(),
        "an item needs 3 bytes, but only 2 are available at byte 3 of the CBOR"
    );
}

#[test]
fn what_follows_the_item_is_left_alone() {
    assert_eq!(decode(&[1, 0xff, 0xff], &unlimited()), Ok((Value::from(1), 1)));
}

#[test]
fn broken_rules_are_named() {
    use NonCanonical::{DuplicateKey, Indefinite, KeyOrder, LongArgument, LongBignum, LongFloat};
    for (bytes, at, rule, is_about_keys) in [
        ("81 1805", 1, LongArgument, false),
        ("7801 61", 0, LongArgument, false),
        ("9f ff", 0, Indefinite, false),
        ("fb 3ff8000000000000", 0, LongFloat, false),
        ("fa 7fc00000", 0, LongFloat, false),
        ("f9 fe00", 0, LongFloat, false),
        ("c2 4105", 0, LongBignum, false),
        ("c2 49 00ffffffffffffffff", 0, LongBignum, false),
        ("81 a2 6162 01 6161 02", 5, KeyOrder, true),
        ("a2 6161 01 6161 02", 4, DuplicateKey, true),
        ("a2 01 02 01 02", 3, DuplicateKey, true),
        ("a2 626161 01 6162 02", 5, KeyOrder, true),
        ("a1 a2 6162 01 6161 02 00", 5, KeyOrder, true),
    ] {
        let error = CborError::new(at, CborErrorKind::NotCanonical(rule));
        assert_eq!(verify_canonical_cbor(&unhex(bytes)), Err(error.clone()), "{bytes}");
        assert_eq!(key_order(&unhex(bytes)), if is_about_keys { Err(error) } else { Ok(()) }, "{bytes}");
        read(&unhex(bytes)).unwrap();
    }
    let error = CborError::new(1, CborErrorKind::Leftover(2));
    assert_eq!(verify_canonical_cbor(&[1, 2, 3]), Err(error));
    key_order(&[1, 2, 3]).unwrap();
}

#[test]
fn keys_are_compared_in_their_short_forms() {
    // 0x1805 is 5 and sorts after 4, but its own bytes would sort after 10.
    key_order(&unhex("a2 1805 00 0a 00")).unwrap();
    let error = key_order(&unhex("a2 05 00 1805 00")).unwrap_err();
    assert_eq!(error, CborError::new(3, CborErrorKind::NotCanonical(NonCanonical::DuplicateKey)));
    // A key in chunks.
    let error = key_order(&unhex("a2 6162 00 7f 6161 ff 00")).unwrap_err();
    assert_eq!(error, CborError::new(4, CborErrorKind::NotCanonical(NonCanonical::KeyOrder)));
}

#[test]
fn sorting_names_the_key_that_occurs_twice() {
    let mut value = Value::from(vec![Value::Map(vec![("a".into(), 1.into()), ("a".into(), 1.into())])]);
    let error = canonicalize(&mut value).unwrap_err();
    assert_eq!(error.reason, CborErrorKind::Duplicate("a".to_owned()));
    assert_eq!(error.to_string(), "the map key `a` is a duplicate");
}

/// `depth` nested containers of one kind.
fn nested(open: &str, depth: usize, close: &str) -> Vec<u8> {
    let mut bytes = unhex(open).repeat(depth);
    bytes.push(1);
    bytes.extend(unhex(close).repeat(depth));
    bytes
}

#[test]
fn depth_is_limited_and_fits_a_small_stack() {
    let walk = || {
        for (open, close) in
            [("81", ""), ("9f", "ff"), ("a100", ""), ("a1", "00"), ("bf00", "ff"), ("c6", "")]
        {
            let deepest = nested(open, 256, close);
            let value = read(&deepest).unwrap();
            canonicalize(&mut value.clone()).unwrap();
            verify_canonical_cbor(&encode(&value)).unwrap();
            key_order(&deepest).unwrap();
            let _ = value.to_json().to_string();
            let deeper = nested(open, 257, close);
            assert_eq!(decode(&deeper, &unlimited()).unwrap_err().reason, CborErrorKind::Depth);
            assert_eq!(key_order(&deeper).unwrap_err().reason, CborErrorKind::Depth);
            let far = nested(open, 100_000, close);
            assert_eq!(decode(&far, &unlimited()).unwrap_err().reason, CborErrorKind::Depth);
        }
        // A bignum is not a container.
        let mut bytes = unhex("81").repeat(256);
        bytes.extend(unhex("c24101"));
        read(&bytes).unwrap();
        assert_eq!(decode(&unhex("c2").repeat(300), &unlimited()).unwrap_err().reason, CborErrorKind::Depth);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(walk).unwrap().join().unwrap();
}

#[test]
fn memory_is_taken_from_the_budget() {
    let nulls: Vec<u8> = [0x9a, 0, 1, 0, 0].into_iter().chain(std::iter::repeat_n(0xf6, 0x1_0000)).collect();
    let items = (0x1_0001 * size_of::<Value>()) as u64;
    assert!(decode(&nulls, &Budget::new("metadata", items)).is_ok());
    let budget = Budget::new("metadata", items - 1);
    let error = decode(&nulls, &budget).unwrap_err();
    assert!(matches!(error.reason, CborErrorKind::Limit(exceeded) if exceeded.what == "metadata"));
    // The reservation of the failed decode is released.
    assert!(budget.reserve(items - 1).is_ok());
    let text = encode(&Value::from("x".repeat(1000)));
    assert!(decode(&text, &Budget::new("metadata", 1000)).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_canonical_and_reads_back(value in values()) {
        let bytes = encode(&value);
        let back = read(&bytes).unwrap();
        prop_assert!(back.is_same(&canonical(&value)), "{back:?}");
        prop_assert_eq!(encode(&back), bytes.clone());
        let is_unique = !has_duplicate(&value);
        prop_assert_eq!(verify_canonical_cbor(&bytes).is_ok(), is_unique);
        prop_assert_eq!(key_order(&bytes).is_ok(), is_unique);
    }

    #[test]
    fn sorting_in_place_is_the_slow_sort(value in values()) {
        let mut sorted = value.clone();
        prop_assert_eq!(canonicalize(&mut sorted).is_ok(), !has_duplicate(&value));
        if !has_duplicate(&value) {
            prop_assert_eq!(encode(&sorted), encode(&value));
            let mut slow = canonical(&value);
            canonicalize(&mut slow).unwrap();
            prop_assert!(slow.is_same(&canonical(&sorted)));
        }
    }

    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let found = decode(&bytes, &Budget::new("test", 1 << 20));
        match key_order(&bytes).map_err(|error| error.reason) {
            Ok(()) => prop_assert!(found.is_ok()),
            Err(CborErrorKind::NotCanonical(_)) => {}
            Err(_) => prop_assert!(found.is_err()),
        }
        if verify_canonical_cbor(&bytes).is_ok() {
            let (value, len) = found.unwrap();
            prop_assert_eq!(len, bytes.len());
            // The one item with two canonical forms: undefined reads as null.
            if !bytes.contains(&0xf7) {
                prop_assert_eq!(encode(&value), bytes);
            }
        }
    }

    #[test]
    fn a_cut_item_is_truncated(value in values(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&value);
        let reason = decode(&bytes[..cut.index(bytes.len())], &unlimited()).unwrap_err().reason;
        let is_truncated = matches!(reason, CborErrorKind::Truncated { need, have } if need > have);
        prop_assert!(is_truncated, "{:?}", reason);
    }
}
