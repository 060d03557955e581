//! Damaged payloads: no panic, bounded memory, no wrong values without an error.

use tercet_testkit::{alloc, damage};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Message, PreEncoded, encode_pre_encoded,
};

use crate::descriptors::{field, message_of, pipelines};

/// Decodes a payload with its descriptor, without a hash to detect changes.
fn decode(descriptor: &DataObjectDescriptor, payload: &[u8]) -> Option<usize> {
    let objects = [PreEncoded { descriptor, payload }];
    let options = EncodeOptions::new().with_hash(false);
    let bytes = encode_pre_encoded(&GlobalMetadata::default(), &objects, &options).ok()?;
    let message = Message::from_bytes("test", bytes).unwrap();
    let object = message.object(0).ok()?;
    let _ = object.decode_ranges(&[3..9]);
    let _ = object.wrong_szip_offset();
    object.decode().ok().map(|array| array.bytes().len())
}

#[test]
fn damaged_payloads_are_errors_or_arrays() {
    let _exclusive = alloc::exclusive();
    for dtype in [DType::F64, DType::U16, DType::Bitmask] {
        let values = field(dtype, 40);
        for descriptor in pipelines(dtype, 40) {
            let bits = descriptor.params.get("sp_bits_per_value").and_then(tercet_tgm::Value::as_u64);
            if bits.is_some_and(|bits| ![0, 12, 24].contains(&bits)) {
                continue;
            }
            let message = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap();
            let object = message.object(0).unwrap();
            let (descriptor, payload) = (object.descriptor(), object.payload().unwrap());
            let check = |payload: &[u8]| {
                let (len, allocated) = alloc::measure(|| decode(descriptor, payload));
                assert!(len.is_none_or(|len| len == values.len()), "{descriptor:?}");
                assert!(allocated.peak_bytes < 64 << 20, "{}: {descriptor:?}", allocated.peak_bytes);
            };
            for cut in damage::truncations(&payload) {
                check(cut);
            }
            for (_, flipped) in damage::flips(&payload) {
                check(&flipped);
            }
            check(&[&payload[..], &[0; 9]].concat());
        }
    }
}

#[test]
fn truncated_payloads_never_decode() {
    let _exclusive = alloc::exclusive();
    for dtype in [DType::F64, DType::I32] {
        let values = field(dtype, 200);
        for descriptor in pipelines(dtype, 200) {
            let message = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap();
            let object = message.object(0).unwrap();
            let payload = object.payload().unwrap();
            if payload.is_empty() {
                continue;
            }
            // Half of it cannot hold all values.
            assert_eq!(decode(object.descriptor(), &payload[..payload.len() / 2]), None, "{descriptor:?}");
        }
    }
}
