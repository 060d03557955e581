use serde_json::json;
use tercet_core::Budget;

use super::*;

fn value(json: &serde_json::Value) -> Value {
    Value::from_json(json)
}

fn read(json: &serde_json::Value) -> Result<GlobalMetadata, MetadataError> {
    GlobalMetadata::from_value(value(json))
}

fn message(json: &serde_json::Value) -> String {
    read(json).unwrap_err().to_string()
}

#[test]
fn an_empty_map_is_valid() {
    let metadata = read(&json!({})).unwrap();
    assert_eq!(metadata, GlobalMetadata::default());
    assert_eq!(metadata.to_cbor(), [0xa0]);
}

#[test]
fn stray_keys_go_into_extra() {
    let metadata = read(
        &json!({ "version": 3, "base": [{}, { "a": 1 }], "_extra_": { "b": 2 }, "_reserved_": { "c": 3 } }),
    )
    .unwrap();
    assert_eq!(
        serde_json::to_value(&metadata).unwrap(),
        json!({ "base": [{}, { "a": 1 }], "extra": { "b": 2, "version": 3 }, "reserved": { "c": 3 } })
    );
    let bytes = metadata.to_cbor();
    cbor::verify_canonical_cbor(&bytes).unwrap();
    let (back, _) = cbor::decode(&bytes, &Budget::new("test", 1 << 20)).unwrap();
    assert_eq!(GlobalMetadata::from_value(back), Ok(metadata));
}

#[test]
fn sections_come_in_canonical_order() {
    let metadata = read(&json!({ "_reserved_": { "c": 1 }, "x": 2, "base": [{}] })).unwrap();
    let Value::Map(pairs) = metadata.to_value() else { panic!("no map") };
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.printed()).collect();
    assert_eq!(keys, ["base", "_extra_", "_reserved_"]);
}

#[test]
fn errors_name_key_found_and_allowed() {
    for (json, expected) in [
        (json!([1]), "the map is an array, but must be a map"),
        (json!({ "$map": [[1, 2]] }), "the map has an integer as a key, but all keys must be strings"),
        (json!({ "$tag": 9, "value": {} }), "the map is a tagged item, but must be a map"),
        (json!({ "base": null }), "key `base` is null, but must be an array"),
        (json!({ "base": [{}, null] }), "key `base[1]` is null, but must be a map"),
        (
            json!({ "base": [{ "$map": [[true, 2]] }] }),
            "key `base[0]` has a boolean as a key, but all keys must be strings",
        ),
        (json!({ "_extra_": null }), "key `_extra_` is null, but must be a map"),
        (json!({ "_reserved_": 1.5 }), "key `_reserved_` is a float, but must be a map"),
        (json!({ "k": 1, "_extra_": { "k": 1 } }), "key `k` is also in `_extra_`"),
    ] {
        assert_eq!(message(&json), expected);
    }
}

#[test]
fn deeper_maps_may_have_any_keys() {
    let metadata =
        read(&json!({ "base": [{ "a": { "$map": [[1, 2]] } }], "b": { "$map": [[null, 2]] } })).unwrap();
    assert_eq!(metadata.base.len(), 1);
    assert_eq!(metadata.extra.len(), 1);
}

#[test]
fn a_preceder_has_one_entry() {
    let body = json!({ "base": [{ "_reserved_": 1, "a": 2 }], "_extra_": { "b": 3 }, "c": 4 });
    let entry = preceder_entry(value(&body)).unwrap();
    assert_eq!(Value::from(entry.clone()).to_json(), json!({ "a": 2 }));
    assert_eq!(preceder_to_value(&entry).to_json(), json!({ "base": [{ "a": 2 }] }));
    for (body, found) in [(json!({}), 0), (json!({ "base": [] }), 0), (json!({ "base": [{}, {}, {}] }), 3)] {
        let error = preceder_entry(value(&body)).unwrap_err();
        assert_eq!(error.key, "base");
        assert_eq!(error.reason, MetadataErrorKind::Entries { found, allowed: "exactly 1" });
    }
}

#[test]
fn preceders_replace_values() {
    let mut metadata = read(&json!({ "base": [{ "a": { "x": 1 }, "b": 1 }] })).unwrap();
    let entry = preceder_entry(value(&json!({ "base": [{ "a": { "y": 2 } }] }))).unwrap();
    metadata.merge_preceder(0, entry.clone());
    metadata.merge_preceder(2, entry);
    let expected = json!([{ "a": { "y": 2 }, "b": 1 }, {}, { "a": { "y": 2 } }]);
    assert_eq!(serde_json::to_value(&metadata.base).unwrap(), expected);
}

#[test]
fn paths_walk_objects_first_and_extra_last() {
    let metadata = read(&json!({
        "base": [{ "_reserved_": { "t": 1 } }, { "mars": { "param": "2t", "n": null }, "list": [{ "x": 1 }] }, { "mars": 5, "late": 6 }],
        "_extra_": { "mars": { "param": "no", "class": "od" }, "_reserved_": { "u": 7 }, "late": 0 },
    }))
    .unwrap();
    let get = |path| metadata.get(path).map(Value::printed);
    assert_eq!(get("mars.param").as_deref(), Some("2t"));
    assert_eq!(get("mars.n").as_deref(), Some("null"));
    assert_eq!(get("mars.class").as_deref(), Some("od"));
    assert_eq!(get("late").as_deref(), Some("6"));
    assert_eq!(get("extra.late").as_deref(), Some("0"));
    assert_eq!(get("_extra_.mars.param").as_deref(), Some("no"));
    assert_eq!(get("extra.list"), None);
    assert_eq!(get("list.x"), None);
    assert_eq!(get("list.0"), None);
    assert_eq!(get("_reserved_.t"), None);
    assert_eq!(get("mars.param.x"), None);
    assert_eq!(get(""), None);
    assert_eq!(metadata.get_in_object(2, "mars"), Some(&Value::from(5)));
    assert_eq!(metadata.get_in_object(2, "mars.param"), None);
    assert_eq!(metadata.get_in_object(0, "late"), None);
    assert_eq!(metadata.get_in_object(9, "late"), None);
}

#[test]
fn common_keys_are_equal_in_every_entry() {
    let nan = json!({ "$float": "nan" });
    let metadata = read(&json!({ "base": [
        { "_reserved_": 1, "same": nan, "list": [1], "sign": 0.0, "kind": 1, "some": 1 },
        { "_reserved_": 1, "same": nan, "list": [1], "sign": -0.0, "kind": 1.0 },
    ] }))
    .unwrap();
    let (common, rest) = metadata.common();
    assert_eq!(common.keys().collect::<Vec<_>>(), ["list", "same"]);
    assert_eq!(rest[0].keys().collect::<Vec<_>>(), ["_reserved_", "kind", "sign", "some"]);
    assert_eq!(rest[1].keys().collect::<Vec<_>>(), ["_reserved_", "kind", "sign"]);
    assert_eq!(GlobalMetadata::default().common(), (Entry::new(), Vec::new()));
}

#[test]
fn tags_in_front_of_sections_are_ignored() {
    let metadata =
        read(&json!({ "base": { "$tag": 9, "value": [{ "$tag": 8, "value": { "a": 1 } }] } })).unwrap();
    assert_eq!(metadata.get("a"), Some(&Value::from(1)));
}
