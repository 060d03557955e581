use ciborium::Value;

use super::*;

fn one(descriptor: &DataObjectDescriptor, values: &[u8]) -> Result<Vec<u8>> {
    encode(&GlobalMetadata::default(), &[(descriptor, values)], &EncodeOptions::default())
}

#[test]
fn files_and_buffers_are_scanned_equally() {
    let one = one(&DataObjectDescriptor::new(Dtype::Int16, [2]), &[1, 0, 2, 0]).unwrap();
    let two = [b"junk".as_slice(), &one, b"more junk", &one].concat();
    let found = scan(&two);
    assert_eq!(found, [(4, one.len()), (13 + one.len(), one.len())]);
    assert_eq!(scan_file(&mut std::io::Cursor::new(&two)).unwrap(), found);
    let (metadata, objects) = decode(&one, &DecodeOptions::default()).unwrap();
    assert_eq!((metadata.base.len(), &*objects[0].1), (1, &[1, 0, 2, 0][..]));
}

#[test]
fn damage_is_a_hash_mismatch_with_its_place() {
    let mut message = one(&DataObjectDescriptor::new(Dtype::Uint8, [4]), b"PLAY").unwrap();
    let at = message.windows(4).position(|window| window == b"PLAY").unwrap();
    message[at] ^= 1;
    let error = decode(&message, &DecodeOptions::default()).unwrap_err();
    let text = error.to_string();
    let TensogramError::HashMismatch { expected, actual } = error else { panic!("{text}") };
    assert!(expected[..16] != actual[..16] && expected.len() == 16);
    assert!(text.starts_with("buffer: message 0 › object 0"), "{text}");
    assert!(decode(&message, &DecodeOptions { verify_hash: false, ..DecodeOptions::default() }).is_ok());
}

#[test]
fn missing_files_are_named() {
    let error = TensogramFile::open("/nowhere/x.tgm").unwrap_err();
    assert!(error.to_string().contains("/nowhere/x.tgm"), "{error}");
    let TensogramError::Io(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

/// The variants of the documentation.
#[test]
fn invalid_pipelines_are_encoding_errors() {
    let values: Vec<u8> = (0..16).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let mut plain = DataObjectDescriptor::new(Dtype::Float64, [16]);
    plain.byte_order = ByteOrder::Little;
    let mut wide = plain.clone();
    wide.encoding = "simple_packing".to_owned();
    wide.params.insert("sp_bits_per_value".to_owned(), 65.into());
    let mut unknown = plain.clone();
    unknown.encoding = "arithmetic".to_owned();
    let mut shuffled = plain.clone();
    shuffled.filter = "shuffle".to_owned();
    shuffled.params.insert("shuffle_element_size".to_owned(), 0.into());
    let mut compression = plain.clone();
    compression.compression = "gzip".to_owned();
    for descriptor in [&wide, &unknown, &shuffled, &compression] {
        let error = one(descriptor, &values).unwrap_err();
        assert!(matches!(error, TensogramError::Encoding(_)), "{error}");
    }
    let mut nan = values.clone();
    nan[..8].copy_from_slice(&f64::NAN.to_le_bytes());
    wide.params.insert("sp_bits_per_value".to_owned(), 16.into());
    assert!(matches!(one(&wide, &nan).unwrap_err(), TensogramError::Encoding(_)));
    let mut wrong = plain.clone();
    wrong.ndim = 2;
    assert!(matches!(one(&wrong, &values).unwrap_err(), TensogramError::Metadata(_)));
}

#[cfg(feature = "zfp")]
#[test]
fn cut_streams_are_compression_errors() {
    let values: Vec<u8> = (0..1024).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect();
    let mut plain = DataObjectDescriptor::new(Dtype::Float64, [1024]);
    plain.byte_order = ByteOrder::Little;
    for (compression, params) in [
        ("zfp", vec![("zfp_mode", Value::from("fixed_rate")), ("zfp_rate", Value::from(16.0))]),
        ("zfp", vec![("zfp_mode", "fixed_accuracy".into()), ("zfp_tolerance", 0.01.into())]),
        ("zstd", vec![]),
        ("lz4", vec![]),
    ] {
        let mut descriptor = plain.clone();
        descriptor.compression = compression.to_owned();
        descriptor.params = params.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let message = one(&descriptor, &values).unwrap();
        let ours = crate::Message::from_bytes("whole", message).unwrap();
        let payload = ours.object(0).unwrap().payload().unwrap();
        let stored = ours.object(0).unwrap().descriptor().clone().try_into().unwrap();
        let cut = [(&stored, &payload[..payload.len() / 2])];
        let parts = MessageParts {
            metadata: ciborium_bytes(&GlobalMetadata::default()),
            objects: vec![ObjectParts {
                cbor: crate::DataObjectDescriptor::try_from(cut[0].0).unwrap().to_cbor(),
                payload: cut[0].1.into(),
            }],
            index: (false, false),
            hashes: (false, false),
            hash: true,
        };
        let mut message = Vec::new();
        assemble_message(&parts, &mut message).unwrap();
        let error = decode(&message, &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, TensogramError::Compression(_)), "{compression}: {error}");
    }
}

fn ciborium_bytes(metadata: &GlobalMetadata) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(metadata, &mut bytes).unwrap();
    bytes
}

#[test]
fn serde_uses_the_names_of_the_wire() {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("centre".to_owned(), "ecmf".into());
    metadata.reserved.insert("time".to_owned(), "now".into());
    metadata.base.push([("step".to_owned(), 6.into())].into());
    let json = serde_json::to_value(&metadata).unwrap();
    assert_eq!(
        json,
        serde_json::json!({ "_extra_": { "centre": "ecmf" }, "_reserved_": { "time": "now" }, "base": [{ "step": 6 }] })
    );
    assert_eq!(serde_json::from_value::<GlobalMetadata>(json).unwrap(), metadata);
    let stray: GlobalMetadata = serde_json::from_str(r#"{"centre": "ecmf"}"#).unwrap();
    assert_eq!(stray.extra["centre"].as_text(), Some("ecmf"));
    let twice = serde_json::from_str::<GlobalMetadata>(r#"{"a": 1, "_extra_": {"a": 2}}"#);
    assert!(twice.unwrap_err().to_string().contains("`a`"));

    let mut descriptor = DataObjectDescriptor::new(Dtype::Bfloat16, [2, 3]);
    descriptor.params.insert("zstd_level".to_owned(), 7.into());
    let json = serde_json::to_value(&descriptor).unwrap();
    assert_eq!((&json["type"], &json["dtype"]), (&"ntensor".into(), &"bfloat16".into()));
    assert_eq!(json["zstd_level"], 7);
    assert_eq!(serde_json::from_value::<DataObjectDescriptor>(json).unwrap(), descriptor);
    let value = Value::serialized(&descriptor).unwrap();
    assert_eq!(value.deserialized::<DataObjectDescriptor>().unwrap(), descriptor);
}

#[test]
fn deep_values_are_an_error() {
    let mut value = Value::Null;
    for _ in 0..1000 {
        value = Value::Array(vec![value]);
    }
    assert!(matches!(canonicalize(&mut value), Err(TensogramError::Metadata(_))));
    let pair = |key: i32| (Value::from(key), Value::Null);
    assert!(canonicalize(&mut Value::Map(vec![pair(1), pair(1)])).is_err());
    let mut map = Value::Map(vec![(Value::from("aa"), Value::Null), (Value::from("b"), Value::Null)]);
    canonicalize(&mut map).unwrap();
    assert_eq!(map.as_map().unwrap()[0].0.as_text(), Some("b"));
}
