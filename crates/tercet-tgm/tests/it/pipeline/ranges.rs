//! Ranges equal slices of the complete object, without unnecessary work.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, Diagnostic as _, Span};
use tercet_testkit::counting::Counting;
use tercet_tgm::compat::{MessageParts, ObjectParts, assemble_message};
use tercet_tgm::{
    DTYPES, DType, DataObjectDescriptor, EncodeOptions, Entry, File, GlobalMetadata, Message, PreEncoded,
    ReadOptions, Value, encode_message, encode_pre_encoded,
};

use crate::descriptors::{field, message_of, packed, pipelines, szip, zfp};

/// The elements of a range, sliced from all elements.
fn cut(dtype: DType, all: &[u8], range: &Range<u64>) -> Vec<u8> {
    if dtype != DType::Bitmask {
        let width = dtype.bits() as usize / 8;
        return all[range.start as usize * width..range.end as usize * width].to_vec();
    }
    let bit = |at: u64| at < range.end && all[at as usize / 8] >> (7 - at % 8) & 1 == 1;
    let byte = |at: u64| (0..8).fold(0, |byte, i| byte << 1 | u8::from(bit(range.start + 8 * at + i)));
    (0..(range.end - range.start).div_ceil(8)).map(byte).collect()
}

#[test]
fn ranges_equal_slices_of_the_decoded_object() {
    for dtype in DTYPES {
        let values = field(dtype, 700);
        for descriptor in pipelines(dtype, 700) {
            let message = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap();
            let object = message.object(0).unwrap();
            let whole = object.decode().unwrap();
            let ranges = [0..700, 0..0, 700..700, 0..1, 699..700, 13..14, 255..257, 100..400, 511..640];
            let found = object.decode_ranges(&ranges).unwrap_or_else(|e| panic!("{descriptor:?}: {e}"));
            assert!(found.verified, "{descriptor:?}");
            for (array, range) in found.arrays.iter().zip(&ranges) {
                assert_eq!(array.bytes(), cut(dtype, whole.bytes(), range), "{range:?} {descriptor:?}");
                assert_eq!(array.shape()[..], [range.end - range.start]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn random_ranges_equal_slices_of_the_decoded_object(
        elements in 1u64..3000,
        which in any::<prop::sample::Index>(),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        verify in any::<bool>(),
    ) {
        let all = pipelines(DType::F64, elements);
        let descriptor = which.get(&all);
        let mut values = field(DType::F64, elements as usize);
        // Some values are not finite.
        for at in (0..elements as usize).step_by(97) {
            values[8 * at..8 * at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
        }
        let options = EncodeOptions::new().with_allowed(true, true);
        let made = encode_message(&GlobalMetadata::default(), &[(descriptor, &values)], &options).unwrap();
        let message = Message::from_bytes_with("test", made, ReadOptions::new().with_verify(verify)).unwrap();
        let object = message.object(0).unwrap();
        let whole = object.decode().unwrap();
        let (a, b) = (ends.0.index(elements as usize + 1) as u64, ends.1.index(elements as usize + 1) as u64);
        let range = a.min(b)..a.max(b);
        let found = object.decode_ranges(std::slice::from_ref(&range)).unwrap();
        prop_assert_eq!(found.arrays[0].bytes(), cut(DType::F64, whole.bytes(), &range));
        prop_assert_eq!(found.verified, verify);
    }
}

#[test]
fn out_of_bounds_ranges_are_rejected() {
    let descriptor = DataObjectDescriptor::new(DType::U8, [10]);
    let message = message_of(&descriptor, &[1; 10], &EncodeOptions::new()).unwrap();
    let object = message.object(0).unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "what a caller may get wrong")]
    for range in [0..11, 11..11, 5..3, 0..u64::MAX] {
        let error = object.decode_ranges(std::slice::from_ref(&range)).unwrap_err();
        assert_eq!(error.class(), Class::Request, "{range:?} {error}");
    }
    assert!(object.decode_ranges(&[]).unwrap().arrays.is_empty());
}

#[test]
fn damage_is_detected_once_and_cached() {
    let values = field(DType::F64, 400_000);
    let descriptor = packed(16)(DataObjectDescriptor::new(DType::F64, [400_000]));
    let bytes =
        encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new()).unwrap();
    let at = bytes.windows(2).position(|pair| pair == b"FR").unwrap();
    let source = Counting::new(Memory::new("test", bytes.clone())).with_copies().shared();
    let file = File::from_source(source.clone(), ReadOptions::new()).unwrap();
    let read = |file: &File| {
        let message = file.message(0).unwrap();
        let found = message.object(0).unwrap().decode_ranges(&[7..17]).unwrap();
        (found.verified, found.arrays[0].bytes().to_vec())
    };
    let first = read(&file);
    assert!(first.0);
    assert!(source.bytes() > 800_000, "the whole object was compared: {}", source.bytes());
    source.reset();
    assert_eq!(read(&file), first);
    assert!(source.bytes() < 256 << 10, "only what is needed: {}", source.bytes());
    // Far from the range.
    let mut damaged = bytes;
    let len = damaged.len();
    assert!(at < 100);
    damaged[len / 2] ^= 1;
    let message = Message::from_bytes("test", damaged.clone()).unwrap();
    let error = message.object(0).unwrap().decode_ranges(&[7..17]).unwrap_err();
    assert_eq!(error.class(), Class::Corrupt);
    let trusting = Message::from_bytes_with("test", damaged, ReadOptions::new().with_verify(false)).unwrap();
    let found = trusting.object(0).unwrap().decode_ranges(&[7..17]).unwrap();
    assert!(!found.verified);
    assert_eq!(found.arrays[0].bytes(), first.1);
}

/// Bytes from a remote file.
#[derive(Debug)]
struct Remote(Counting<Memory>);

impl ByteSource for Remote {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, tercet_core::SourceError> {
        self.0.read_at(span)
    }
    fn is_remote(&self) -> bool {
        true
    }
}

#[test]
fn remote_ranges_fetch_little_and_report_it() {
    let elements = 200_000;
    let values = field(DType::F64, elements as usize);
    let plain = DataObjectDescriptor::new(DType::F64, [elements]);
    let pipelines = [
        plain.clone(),
        packed(13)(plain.clone()),
        szip(packed(24)(plain.clone()), 8, 16, 8),
        zfp(plain, "fixed_rate", "zfp_rate", 16.0),
    ];
    for descriptor in pipelines {
        let made =
            encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &EncodeOptions::new());
        let source = Arc::new(Remote(Counting::new(Memory::new("far", made.unwrap()))));
        let file = File::from_source(source.clone(), ReadOptions::new()).unwrap();
        let message = file.message(0).unwrap();
        let object = message.object(0).unwrap();
        source.0.reset();
        let found = object.decode_ranges(&[100_000..100_010]).unwrap();
        assert!(!found.verified);
        assert!(source.0.bytes() < 8 << 10, "{}: {descriptor:?}", source.0.bytes());
        let whole = object.decode().unwrap();
        assert_eq!(found.arrays[0].bytes(), cut(DType::F64, whole.bytes(), &(100_000..100_010)));
        object.verify().unwrap();
        assert!(object.decode_ranges(&[100_000..100_010]).unwrap().verified);
    }
}

/// A message without provenance, with the given descriptor.
fn by_others(descriptor: &DataObjectDescriptor, payload: &[u8]) -> Vec<u8> {
    let metadata = GlobalMetadata { base: vec![Entry::new()], ..GlobalMetadata::default() };
    let parts = MessageParts {
        metadata: metadata.to_cbor(),
        objects: vec![ObjectParts { cbor: descriptor.to_cbor(), payload: payload.into() }],
        index: (true, false),
        hashes: (true, false),
        hash: true,
    };
    let mut bytes = Vec::new();
    assemble_message(&parts, &mut bytes).unwrap();
    bytes
}

#[test]
fn tercet_szip_offsets_are_trusted() {
    let elements = 400_000;
    let values = field(DType::F64, elements as usize);
    let descriptor = szip(packed(24)(DataObjectDescriptor::new(DType::F64, [elements])), 128, 16, 8);
    for (ours, bytes) in [true, false].into_iter().map(|ours| {
        let options = EncodeOptions::new();
        let options = if ours { options } else { options.with_provenance(tercet_tgm::Provenance::Off) };
        let made = encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options);
        (ours, made.unwrap())
    }) {
        let source = Counting::new(Memory::new("test", bytes)).with_copies().shared();
        let file = File::from_source(source.clone(), ReadOptions::new()).unwrap();
        let message = file.message(0).unwrap();
        let object = message.object(0).unwrap();
        object.verify().unwrap();
        source.reset();
        let found = object.decode_ranges(&[200_000..200_010]).unwrap();
        let payload = object.payload_span().len();
        assert_eq!(source.bytes() < payload / 10, ours, "{} of {payload} bytes", source.bytes());
        source.reset();
        let again = object.decode_ranges(&[200_000..200_010]).unwrap();
        assert!(source.bytes() < payload / 10, "found once: {}", source.bytes());
        assert_eq!(found.arrays[0].bytes(), again.arrays[0].bytes());
        let whole = object.decode().unwrap();
        assert_eq!(found.arrays[0].bytes(), cut(DType::F64, whole.bytes(), &(200_000..200_010)));
    }
}

#[test]
fn wrong_szip_offsets_are_detected_and_ignored() {
    let elements = 5000;
    let values = field(DType::F64, elements as usize);
    let descriptor = szip(packed(24)(DataObjectDescriptor::new(DType::F64, [elements])), 4, 16, 8);
    let right = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap();
    let right = right.object(0).unwrap();
    let whole = right.decode().unwrap();
    assert_eq!(right.wrong_szip_offset().unwrap(), None);
    let payload = right.payload().unwrap();
    let offsets: Vec<u64> = right.descriptor().params["szip_block_offsets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offset| offset.as_u64().unwrap())
        .collect();
    assert_eq!(offsets.len(), 79);
    for (entry, change) in [(1, 1), (40, 17), (77, 1), (78, 3)] {
        let mut wrong = offsets.clone();
        wrong[entry] += change;
        let mut descriptor = right.descriptor().clone();
        let list = Value::Array(wrong.iter().map(|offset| (*offset).into()).collect());
        descriptor.params.insert("szip_block_offsets".to_owned(), list);
        let objects = [PreEncoded { descriptor: &descriptor, payload: &payload }];
        let refused = encode_pre_encoded(&GlobalMetadata::default(), &objects, &EncodeOptions::new());
        assert!(refused.is_err(), "we do not write them");
        let bytes = by_others(&descriptor, &payload);
        for verify in [true, false] {
            let options = ReadOptions::new().with_verify(verify);
            let message = Message::from_bytes_with("test", bytes.clone(), options).unwrap();
            let object = message.object(0).unwrap();
            assert_eq!(object.decode().unwrap().bytes(), whole.bytes());
            for start in (0..elements - 70).step_by(61) {
                let range = start..start + 70;
                let found = object.decode_ranges(std::slice::from_ref(&range)).unwrap();
                assert_eq!(found.arrays[0].bytes(), cut(DType::F64, whole.bytes(), &range), "{range:?}");
            }
            let result = object.wrong_szip_offset().unwrap().unwrap().to_string();
            assert!(result.contains(&format!("szip_block_offsets[{entry}]")), "{result}");
        }
    }
}
