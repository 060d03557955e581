//! Small messages of every kind.

use std::io::Cursor;

use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, MaskMethod, Placement, Provenance, Stamp,
    StreamingEncoder, Value, encode_message,
};

/// A small message and its name.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn options() -> EncodeOptions {
    let stamp = Stamp::fixed(1_794_771_155, "976bf8a7-b57e-4bb9-b612-99ca8e251769");
    EncodeOptions::new().with_provenance(Provenance::Fixed(Box::new(stamp)))
}

fn metadata() -> GlobalMetadata {
    let mars = Value::Map(vec![("param".into(), "2t".into()), ("step".into(), 6.into())]);
    GlobalMetadata {
        base: vec![[("mars".to_owned(), mars), ("units".to_owned(), "K".into())].into()],
        extra: [("source".to_owned(), "test".into()), ("scale".to_owned(), Value::Float(0.25))].into(),
        ..GlobalMetadata::default()
    }
}

fn floats() -> (DataObjectDescriptor, Vec<u8>) {
    let payload =
        [1.5f32, -2.0, 3.25, 0.0, 1e9, -1e-9].iter().flat_map(|value| value.to_le_bytes()).collect();
    (DataObjectDescriptor::new(DType::F32, [2, 3]), payload)
}

/// Values that are not all finite, so that they have masks.
fn masked() -> (DataObjectDescriptor, Vec<u8>) {
    let values = [1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5];
    let payload = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    (DataObjectDescriptor::new(DType::F64, [6]).with_compression("zstd"), payload)
}

fn one_piece(options: &EncodeOptions, metadata: &GlobalMetadata, objects: usize) -> Vec<u8> {
    let (descriptor, payload) = floats();
    let objects: Vec<(&DataObjectDescriptor, &[u8])> =
        (0..objects).map(|_| (&descriptor, &payload[..])).collect();
    encode_message(metadata, &objects, options).expect("a sample")
}

fn stream(options: EncodeOptions, preceded: bool, with_length: bool) -> Vec<u8> {
    let (descriptor, payload) = floats();
    let sink = Cursor::new(Vec::new());
    let mut encoder = StreamingEncoder::new(sink, &metadata(), options).expect("a sample");
    for step in 0..2 {
        if preceded {
            encoder.write_preceder([("step".to_owned(), step.into())].into()).expect("a sample");
        }
        encoder.write_object(&descriptor, &payload).expect("a sample");
    }
    let sink = if with_length { encoder.finish_with_length() } else { encoder.finish() };
    sink.expect("a sample").into_inner()
}

/// Masked objects and one without masks.
fn with_masks(options: EncodeOptions, is_stream: bool) -> Vec<u8> {
    let options = options.with_allowed(true, true).with_masks(MaskMethod::Rle).with_small_mask_threshold(0);
    let ((some, values), (all, finite)) = (masked(), floats());
    let objects: [(&DataObjectDescriptor, &[u8]); 3] = [(&some, &values), (&all, &finite), (&some, &values)];
    if !is_stream {
        return encode_message(&GlobalMetadata::default(), &objects, &options).expect("a sample");
    }
    let mut encoder =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), options).expect("a sample");
    for (descriptor, values) in objects {
        encoder.write_object(descriptor, values).expect("a sample");
    }
    encoder.finish().expect("a sample")
}

/// Twelve messages of different kinds.
pub(crate) fn all() -> Vec<Sample> {
    let none = GlobalMetadata::default();
    let sample = |name, bytes| Sample { name, bytes };
    vec![
        sample("plain", one_piece(&options(), &none, 1)),
        sample("metadata", one_piece(&options(), &metadata(), 1)),
        sample("two objects", one_piece(&options(), &metadata(), 2)),
        sample("no object", one_piece(&options(), &none, 0)),
        sample("no hashes", one_piece(&options().with_hash(false), &metadata(), 1)),
        sample("lists on both sides", {
            one_piece(&options().with_hashes(Placement::Both).with_index(Placement::Both), &metadata(), 2)
        }),
        sample("no lists", {
            one_piece(&options().with_hashes(Placement::None).with_index(Placement::None), &none, 2)
        }),
        sample("stream", stream(options(), false, false)),
        sample("stream with preceders", stream(options(), true, false)),
        sample("stream with length", stream(options(), true, true)),
        sample("masks", with_masks(options(), false)),
        sample("stream with masks, no hashes", with_masks(options().with_hash(false), true)),
    ]
}
