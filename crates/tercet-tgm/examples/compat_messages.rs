//! Messages in buffers with the names of the format's documentation: encode, decode, ranges, masks, pre-encoded payloads,
//! iterators, the metadata cursor, hashes.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::host_endian_bytes, reason = "descriptors have the byte order of this host")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap, reason = "example values are small")]
#![allow(clippy::panic, reason = "an example stops if its result is wrong")]

use std::collections::BTreeMap;

use ciborium::Value;
use tercet_tgm::compat::{
    ByteOrder, DataObjectDescriptor, DecodeOptions, Dtype, EncodeOptions, GlobalMetadata, MetaType, Result,
    TensogramError, compute_common, compute_hash, compute_packing_params, data_object_inline_hashes, decode,
    decode_descriptors, decode_metadata, decode_object, decode_range, decode_with_masks, encode,
    encode_pre_encoded, framing, messages, objects, objects_metadata, scan,
};

fn field(shape: &[u64]) -> DataObjectDescriptor {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    DataObjectDescriptor {
        obj_type: "ntensor".to_string(),
        ndim: shape.len() as u64,
        shape: shape.to_vec(),
        strides,
        dtype: Dtype::Float64,
        byte_order: ByteOrder::native(),
        encoding: "none".to_string(),
        filter: "none".to_string(),
        compression: "none".to_string(),
        params: BTreeMap::new(),
        masks: None,
    }
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|value| f64::from_ne_bytes(*value)).collect()
}

fn mars(param: &str, step: i64) -> Value {
    Value::Map(vec![
        (Value::Text("param".into()), Value::Text(param.into())),
        (Value::Text("step".into()), Value::Integer(step.into())),
    ])
}

/// Payloads that another program encoded, here those of a message.
fn payloads_as_stored(
    message: &[u8],
    (plain, packed): (&DataObjectDescriptor, &DataObjectDescriptor),
    data: &[u8],
    values: &[u8],
) -> Result<()> {
    // Packed and compressed by another program: here the payload of the message above, with its offsets of szip blocks.
    let stored = framing::decode_message(message)?;
    let (descriptor, payload, _) = &stored.objects[1];
    assert!(descriptor.params.contains_key("szip_block_offsets"));
    let again =
        encode_pre_encoded(&GlobalMetadata::default(), &[(descriptor, payload)], &EncodeOptions::default())?;
    assert_eq!(decode(&again, &DecodeOptions::default())?.1[0].1, values);

    // Threads do not change payloads.
    for threads in [0, 1, 8] {
        let options = EncodeOptions { threads, ..EncodeOptions::default() };
        let objects = [(plain, data), (packed, data)];
        let other = encode(&GlobalMetadata::default(), &objects, &options)?;
        let payloads = framing::decode_message(&other)?.objects;
        assert!(payloads.iter().zip(&stored.objects).all(|(one, other)| one.1 == other.1), "{threads}");
    }
    Ok(())
}

/// Metadata of any vocabulary.
fn any_keys(plain: &DataObjectDescriptor, data: &[u8]) -> Result<()> {
    // Any keys: the library stores them, applications give them their meaning.
    let product = Value::Map(vec![(Value::Text("name".into()), Value::Text("intensity".into()))]);
    let mut generic = GlobalMetadata::default();
    generic.base.push(BTreeMap::from([
        ("product".to_string(), product),
        ("run_id".to_string(), Value::Integer(42.into())),
    ]));
    let generic = decode_metadata(&encode(&generic, &[(plain, data)], &EncodeOptions::default())?)?;
    let Value::Map(entries) = &generic.base[0]["product"] else { panic!("a map was written") };
    assert_eq!(entries[0].1.as_text(), Some("intensity"));
    assert_eq!(generic.get("run_id").and_then(|value| value.as_u64()), Some(42));
    Ok(())
}

pub(crate) fn main() -> Result<()> {
    // Encode two objects with metadata.
    let values: Vec<f64> = (0..1000).map(|i| 250.0 + f64::from(i) * 0.25).collect();
    let mut metadata = GlobalMetadata {
        base: vec![
            BTreeMap::from([("mars".to_string(), mars("2t", 6))]),
            BTreeMap::from([("mars".to_string(), mars("msl", 6))]),
        ],
        ..Default::default()
    };
    metadata.extra.insert("centre".to_string(), Value::Text("ecmf".into()));
    let mut packed = field(&[10, 100]);
    packed.encoding = "simple_packing".to_string();
    packed.compression = "szip".to_string();
    packed.params = compute_packing_params(&values, 16, 0)?.to_params();
    for (key, value) in [("szip_rsi", 128), ("szip_block_size", 16), ("szip_flags", 8)] {
        packed.params.insert(key.to_string(), Value::Integer(value.into()));
    }
    let data = bytes(&values);
    let plain = field(&[10, 100]);
    let message = encode(&metadata, &[(&plain, &data), (&packed, &data)], &EncodeOptions::default())?;

    // Decode everything, one object, ranges.
    let (decoded, all) = decode(&message, &DecodeOptions::default())?;
    assert_eq!(all[0].1, data);
    assert_eq!(decoded.extra["centre"].as_text(), Some("ecmf"));
    let (_, descriptor, one) = decode_object(&message, 1, &DecodeOptions::default())?;
    assert_eq!(descriptor.compression, "szip");
    assert!(numbers(&one).iter().zip(&values).all(|(a, b)| (a - b).abs() < 0.01));
    let (_, parts) = decode_range(&message, 1, &[(10, 8), (990, 10)], &DecodeOptions::default())?;
    assert_eq!((parts[0].len(), &parts[1][..]), (64, &one[990 * 8..]));
    assert!(matches!(decode_object(&message, 9, &DecodeOptions::default()), Err(TensogramError::Object(_))));
    let wire = DecodeOptions { native_byte_order: false, threads: 2, ..DecodeOptions::default() };
    assert_eq!(decode(&message, &wire)?.1[0].1, data);
    println!("{} bytes, {} objects", message.len(), all.len());

    // Metadata without payloads; the cursor.
    let metadata = decode_metadata(&message)?;
    let (_, descriptors) = decode_descriptors(&message)?;
    assert_eq!(descriptors[0].shape, [10, 100]);
    let param = metadata.get("mars.param").map(|value| (value.value_type(), value.as_str()));
    assert_eq!(param, Some((MetaType::String, Some("2t"))));
    assert_eq!(metadata.get_at(1, "mars.param").and_then(|value| value.as_str()), Some("msl"));
    assert_eq!(metadata.get("mars.step").and_then(|value| value.as_i64()), Some(6));
    assert!(metadata.contains("centre") && !metadata.contains_at(0, "centre"));
    assert_eq!(metadata.extra_view().key_at(0), Some("centre"));
    let (common, rest) = compute_common(&metadata.base)?;
    assert!(common.is_empty() && rest.len() == 2);

    // Masks: NaN and infinities.
    let holes = bytes(&[1.0, f64::NAN, f64::INFINITY, 4.0]);
    let allow = EncodeOptions { allow_nan: true, allow_inf: true, ..EncodeOptions::default() };
    let masked = encode(&GlobalMetadata::default(), &[(&field(&[4]), &holes)], &allow)?;
    let (_, with_masks) = decode_with_masks(&masked, &DecodeOptions::default())?;
    assert_eq!(with_masks[0].masks.nan, Some(vec![false, true, false, false]));
    assert_eq!(with_masks[0].masks.pos_inf, Some(vec![false, false, true, false]));
    assert_eq!(numbers(&with_masks[0].payload), [1.0, 0.0, 0.0, 4.0]);
    assert!(numbers(&decode(&masked, &DecodeOptions::default())?.1[0].1)[1].is_nan());

    // A payload that another program packed, and a shuffled one.
    let mut ready = field(&[4]);
    ready.encoding = "simple_packing".to_string();
    ready.params = compute_packing_params(&[0.0, 1.0, 2.0, 3.0], 8, 0)?.to_params();
    ready.params.insert("sp_binary_scale_factor".to_string(), Value::Integer(0.into()));
    let pre = encode_pre_encoded(
        &GlobalMetadata::default(),
        &[(&ready, &[0, 1, 2, 3])],
        &EncodeOptions::default(),
    )?;
    assert_eq!(numbers(&decode(&pre, &DecodeOptions::default())?.1[0].1), [0.0, 1.0, 2.0, 3.0]);

    payloads_as_stored(&message, (&plain, &packed), &data, &one)?;
    any_keys(&plain, &data)?;

    // A stream of messages with other bytes around them.
    let noisy = [b"noise".as_slice(), &message, b"more noise", &message[..100], &pre].concat();
    let found: Vec<usize> = scan(&noisy).into_iter().map(|(_, len)| len).collect();
    assert_eq!(found, [message.len(), pre.len()]);

    // Iterators over a buffer.
    let buffer = [message.as_slice(), &masked, &pre].concat();
    assert_eq!(scan(&buffer).len(), 3);
    let lengths: Vec<usize> = messages(&buffer).map(<[u8]>::len).collect();
    assert_eq!(lengths, [message.len(), masked.len(), pre.len()]);
    for found in messages(&buffer) {
        for (object, descriptor) in objects(found, DecodeOptions::default())?.zip(objects_metadata(found)?) {
            assert_eq!(object?.0.shape, descriptor.shape);
        }
    }

    // Hashes: in the frames, of any bytes, and what damage looks like.
    assert!(data_object_inline_hashes(&message)?.iter().all(Option::is_some));
    println!("hash of the message {}", compute_hash(&message));
    let unhashed = EncodeOptions { hashing: false, ..EncodeOptions::default() };
    let unhashed = encode(&GlobalMetadata::default(), &[(&plain, &data)], &unhashed)?;
    assert_eq!(data_object_inline_hashes(&unhashed)?, [None]);
    assert_eq!(decode(&unhashed, &DecodeOptions::default())?.1[0].1, data);
    let mut damaged = message.clone();
    let at = message.windows(8).position(|window| window == &data[..8]).unwrap_or_default();
    damaged[at] ^= 1;
    match decode(&damaged, &DecodeOptions::default()) {
        Err(TensogramError::HashMismatch { expected, actual }) => {
            println!("damaged: expected {}, found {}", &expected[..16], &actual[..16]);
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}
