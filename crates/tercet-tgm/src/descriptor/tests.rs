use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(json: &serde_json::Value) -> Result<DataObjectDescriptor, MetadataError> {
    DataObjectDescriptor::from_value(Value::from_json(json))
}

fn valid() -> serde_json::Value {
    json!({
        "type": "ntensor", "ndim": 2, "shape": [4, 3], "strides": [3, 1], "dtype": "float32",
        "byte_order": "big", "encoding": "none", "filter": "none", "compression": "none",
    })
}

fn with(key: &str, value: serde_json::Value) -> serde_json::Value {
    let mut json = valid();
    json[key] = value;
    json
}

#[test]
fn a_new_descriptor_is_valid_and_canonical() {
    let descriptor = DataObjectDescriptor::new(DType::F32, [4, 3]);
    descriptor.check_for_writing().unwrap();
    assert!(descriptor.is_plain());
    assert_eq!(descriptor.to_value().to_json()["strides"], json!([3, 1]));
    cbor::verify_canonical_cbor(&descriptor.to_cbor()).unwrap();
    assert_eq!(DataObjectDescriptor::from_value(descriptor.to_value()), Ok(descriptor.clone()));
    let tensor = descriptor.tensor_entry();
    assert_eq!(
        tensor.to_json(),
        json!({ "ndim": 2, "dtype": "float32", "shape": [4, 3], "strides": [3, 1] })
    );
    cbor::verify_canonical_cbor(&cbor::encode(&tensor)).unwrap();
}

#[test]
fn unknown_keys_and_strings_are_kept() {
    let mut json = with("compression", json!("future"));
    json["xyz"] = json!([1]);
    let descriptor = read(&json).unwrap();
    assert_eq!(descriptor.params["xyz"].to_json(), json!([1]));
    assert_eq!(descriptor.compression, "future");
    assert!(!descriptor.is_plain());
    assert_eq!(DataObjectDescriptor::from_value(descriptor.to_value()), Ok(descriptor));
}

#[test]
fn errors_name_key_found_and_allowed() {
    for (json, expected) in [
        (json!([]), "the map is an array, but must be a map"),
        (json!({ "$map": [[1, 2]] }), "the map has an integer as a key, but all keys must be strings"),
        (with("ndim", json!(-1)), "key `ndim` is -1, but must be 0 to 2^64 - 1"),
        (
            with("ndim", json!({ "$tag": 9, "value": 1 })),
            "key `ndim` is a tagged item, but must be an unsigned integer",
        ),
        (with("shape", json!([4, 3.0])), "key `shape[1]` is a float, but must be an unsigned integer"),
        (with("strides", json!([-1])), "key `strides[0]` is -1, but must be 0 to 2^64 - 1"),
        (with("shape", json!(4)), "key `shape` is an integer, but must be an array"),
        (with("byte_order", json!(null)), "key `byte_order` is null, but must be a string"),
        (with("byte_order", json!("native")), "key `byte_order` is `native`, but must be `big` or `little`"),
        (with("masks", json!([])), "key `masks` is an array, but must be a map or null"),
        (with("filter", json!(null)), "key `filter` is null, but must be a string"),
    ] {
        assert_eq!(read(&json).unwrap_err().to_string(), expected);
    }
    // Short names and `bool` are types of other formats.
    for name in ["Float32", "float32 ", "f32", "bool", ""] {
        let error = read(&with("dtype", json!(name))).unwrap_err();
        assert!(matches!(error.reason, MetadataErrorKind::Unknown { found, .. } if found == name), "{name}");
    }
    for key in ["type", "ndim", "shape", "strides", "dtype", "encoding", "filter", "compression"] {
        let mut json = valid();
        json.as_object_mut().unwrap().remove(key);
        assert_eq!(read(&json), Err(MetadataError::new(key, MetadataErrorKind::Missing)));
    }
}

#[test]
fn tags_in_front_of_strings_arrays_and_the_descriptor_are_ignored() {
    let json = with("shape", json!({ "$tag": 9, "value": [4, 3] }));
    let json = json!({ "$tag": 8, "value": json });
    assert_eq!(read(&json), read(&valid()));
    assert_eq!(read(&with("filter", json!({ "$tag": 9, "value": "none" }))), read(&valid()));
}

#[test]
fn an_absent_byte_order_is_little_and_stays_absent() {
    let mut json = valid();
    json.as_object_mut().unwrap().remove("byte_order");
    let descriptor = read(&json).unwrap();
    assert_eq!(descriptor.stored_order(), ByteOrder::Little);
    assert_eq!(descriptor.to_value().get("byte_order"), None);
    assert_eq!(read(&valid()).unwrap().stored_order(), ByteOrder::Big);
}

#[test]
fn dimensions_are_not_compared_on_reading() {
    let descriptor = read(&with("ndim", json!(7))).unwrap();
    let error = descriptor.check_for_writing().unwrap_err();
    assert_eq!(error.to_string(), "key `ndim` is 7, but must be 2 (the length of `shape`)");
}

#[test]
fn writers_keep_more_rules() {
    let check = |change: fn(&mut DataObjectDescriptor)| {
        let mut descriptor = DataObjectDescriptor::new(DType::U8, [2]);
        change(&mut descriptor);
        descriptor.check_for_writing().unwrap_err().to_string()
    };
    assert_eq!(check(|d| d.obj_type.clear()), "key `type` is ``, but must be a string that is not empty");
    assert_eq!(check(|d| d.strides.clear()), "key `strides` is 0, but must be 1 (as many as `shape` has)");
    assert_eq!(
        check(|d| d.encoding.push('x')),
        "key `encoding` is `nonex`, but must be `none` or `simple_packing`"
    );
    assert_eq!(check(|d| d.filter.clear()), "key `filter` is ``, but must be `none` or `shuffle`");
    assert!(check(|d| "gzip".clone_into(&mut d.compression)).starts_with("key `compression` is `gzip`"));
    assert_eq!(check(|d| drop(d.params.insert("shape".into(), 1.into()))), "key `shape` is also in `params`");
}

#[test]
fn counts_and_strides_have_no_overflow() {
    let descriptor = |shape: &[u64]| DataObjectDescriptor::new(DType::U8, shape);
    assert_eq!(descriptor(&[]).elements(), Some(1));
    assert_eq!(descriptor(&[3, 0]).elements(), Some(0));
    assert_eq!(descriptor(&[3, 0]).strides, [0, 1]);
    assert_eq!(descriptor(&[4, 3]).strides, [3, 1]);
    assert_eq!(descriptor(&[1 << 40, 1 << 40]).elements(), None);
    let error = descriptor(&[1 << 40, 1 << 40]).check_for_writing().unwrap_err();
    assert_eq!(error.to_string(), "key `shape` has a product that overflows 64 bits");
}

#[test]
fn the_payload_ends_at_the_first_mask() {
    let payload = |masks: serde_json::Value| read(&with("masks", masks)).unwrap().payload_len_in(100);
    assert_eq!(payload(json!(null)), Ok(100));
    assert_eq!(payload(json!({})), Ok(100));
    assert_eq!(payload(json!({ "nan": null, "future": { "offset": 1 } })), Ok(100));
    let mask = |offset: u64, length: u64| json!({ "method": "rle", "offset": offset, "length": length });
    assert_eq!(payload(json!({ "nan": mask(90, 10), "inf-": mask(80, 3) })), Ok(80));
    let error = payload(json!({ "inf+": mask(90, 11) })).unwrap_err();
    assert_eq!(
        error.to_string(),
        "key `masks.inf+` spans 11 bytes at offset 90, but the payload region has 100"
    );
    assert!(payload(json!({ "inf+": mask(u64::MAX, 2) })).is_err());
    for (masks, key) in [
        (json!({ "nan": 1 }), "masks.nan"),
        (json!({ "nan": {} }), "masks.nan.offset"),
        (json!({ "nan": { "offset": 1 } }), "masks.nan.length"),
        (json!({ "nan": { "offset": -1, "length": 1 } }), "masks.nan.offset"),
    ] {
        assert_eq!(payload(masks).unwrap_err().key, key);
    }
}

#[test]
fn masks_make_an_object_not_plain() {
    assert!(!read(&with("masks", json!({ "nan": {} }))).unwrap().is_plain());
    assert!(read(&with("masks", json!({ "nan": null }))).unwrap().is_plain());
    assert!(read(&with("masks", json!({}))).unwrap().is_plain());
}

proptest! {
    #[test]
    fn strides_step_over_the_inner_dimensions(shape in proptest::collection::vec(0_u64..9, 0..6)) {
        let strides = DataObjectDescriptor::row_major_strides(&shape);
        for (at, stride) in strides.iter().enumerate() {
            prop_assert_eq!(*stride, shape[at + 1..].iter().product::<u64>());
        }
    }
}
