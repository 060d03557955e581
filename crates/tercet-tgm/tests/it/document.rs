//! The format's documentation on internals as a checklist: every function, type, rule and behaviour that it names, in its
//! order. A name that is missing, or that has another type, does not compile.

#![allow(clippy::type_complexity, reason = "types are compared as the text writes them")]
#![allow(clippy::host_endian_bytes, reason = "decoded values have the byte order of the machine")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use ciborium::Value;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tgm::compat::{
    AggregateHashPolicy, ByteOrder, DataObjectDescriptor, DecodeOptions, DecodePhase, DecodedMessage, Dtype,
    END_MAGIC, EncodeOptions, FrameFlags, FrameType, GlobalMetadata, HashFrame, IndexFrame, MAGIC,
    MessageFlags, MessageParts, Result, StreamingEncoder, TensogramError, TensogramFile, WIRE_VERSION,
    assemble_message, build_hash_frame_cbor, build_index_frame, canonicalize, compute_hash,
    compute_message_flags, compute_object_offsets, compute_packing_params, decode, decode_metadata,
    decode_object, encode, encode_message, encode_pre_encoded, framing, scan, scan_file,
    verify_canonical_cbor,
};
use tercet_tgm::{Direction, ScanOptions, scan_source};

type Section = BTreeMap<String, Value>;
type Objects<'a> = [(&'a DataObjectDescriptor, &'a [u8])];

fn bytes_of(descriptor: &DataObjectDescriptor, values: &[u8], options: &EncodeOptions) -> Vec<u8> {
    encode(&GlobalMetadata::default(), &[(descriptor, values)], options).unwrap()
}

fn unhashed() -> EncodeOptions {
    EncodeOptions { hashing: false, ..EncodeOptions::default() }
}

fn doubles(count: u32) -> (DataObjectDescriptor, Vec<u8>) {
    let mut descriptor = DataObjectDescriptor::new(Dtype::Float64, [u64::from(count)]);
    descriptor.byte_order = ByteOrder::Little;
    (descriptor, (0..count).flat_map(|i| f64::from(i).sqrt().to_le_bytes()).collect())
}

fn with(mut descriptor: DataObjectDescriptor, params: &[(&str, Value)]) -> DataObjectDescriptor {
    descriptor.params.extend(params.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    descriptor
}

fn number(message: &[u8], at: usize, len: usize) -> u64 {
    message[at..at + len].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Type, flags, offset and length of each frame.
fn frames(message: &[u8]) -> Vec<(FrameType, u16, usize, usize)> {
    let (mut at, mut all) = (24, Vec::new());
    while at < message.len() - 24 {
        let len = number(message, at + 8, 8) as usize;
        let code = number(message, at + 2, 2) as u16;
        assert_eq!((&message[at..at + 2], &message[at + len - 4..at + len]), (&b"FR"[..], &b"ENDF"[..]));
        all.push((FrameType::from_code(code).unwrap(), number(message, at + 6, 2) as u16, at, len));
        at = (at + len).next_multiple_of(8);
    }
    all
}

fn frame(kind: FrameType, flags: u16, body: &[u8]) -> Vec<u8> {
    let tail = if kind == FrameType::NTensor { 0 } else { 8 };
    let len = 16 + body.len() + tail + 4;
    let mut out =
        [&b"FR"[..], &kind.code().to_be_bytes(), &1_u16.to_be_bytes(), &flags.to_be_bytes()].concat();
    out.extend((len as u64).to_be_bytes());
    out.extend(body);
    out.extend(vec![0; tail]);
    out.extend(b"ENDF");
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// A message of these frames, without hashes.
fn message_of(flags: MessageFlags, frames: &[Vec<u8>]) -> Vec<u8> {
    let body = frames.concat();
    let len = (body.len() + 48) as u64;
    let mut out = [&MAGIC[..], &WIRE_VERSION.to_be_bytes(), &flags.0.to_be_bytes(), &[0; 4]].concat();
    out.extend(len.to_be_bytes());
    out.extend(body);
    out.extend([&(len - 24).to_be_bytes()[..], &len.to_be_bytes(), END_MAGIC].concat());
    out
}

fn cbor_of<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut value = Value::serialized(value).unwrap();
    canonicalize(&mut value).unwrap();
    let mut bytes = Vec::new();
    ciborium::into_writer(&value, &mut bytes).unwrap();
    bytes
}

/// `TensogramError` is the error of all public functions that the text names, with these parameters and results.
#[test]
fn every_name_has_its_type() {
    let _: fn(&mut Value) -> Result<(), TensogramError> = canonicalize;
    let _: fn(&[u8]) -> Result<(), TensogramError> = verify_canonical_cbor;
    let _: fn(&GlobalMetadata, &Objects<'_>, &EncodeOptions) -> Result<Vec<u8>, TensogramError> =
        encode_message;
    let _: fn(&[u64]) -> Result<Vec<u8>, TensogramError> = build_hash_frame_cbor;
    let _: fn(u64, u64, &[u64]) -> Result<(Vec<u8>, Vec<u64>), TensogramError> = build_index_frame;
    let _: fn(u64, &[u64]) -> Result<Vec<u64>, TensogramError> = compute_object_offsets;
    let _: fn([FrameType; 1], bool) -> MessageFlags = compute_message_flags;
    let _: fn(&MessageParts<'_>, &mut Vec<u8>) -> Result<(), TensogramError> = assemble_message;
    let _: fn(&[u8]) -> Vec<(usize, usize)> = scan;
    let _: fn(&mut fs::File) -> Result<Vec<(usize, usize)>, TensogramError> = scan_file;
    let _: fn(&[u8], &DecodeOptions) -> Result<DecodedMessage, TensogramError> = decode;
    let _: fn(&[u8]) -> Result<GlobalMetadata, TensogramError> = decode_metadata;
    let _: fn(&'static str) -> Result<TensogramFile, TensogramError> = TensogramFile::open;
    let _: fn(&'static str) -> Result<TensogramFile, TensogramError> = TensogramFile::open_mmap;
    let _: fn(&TensogramFile) -> Result<usize, TensogramError> = TensogramFile::message_count;
    let _: fn(&TensogramFile, usize) -> Result<Vec<u8>, TensogramError> = TensogramFile::read_message;
    let _: fn(&TensogramFile, usize, &DecodeOptions) -> Result<DecodedMessage, TensogramError> =
        TensogramFile::decode_message;
    let _: fn(Vec<u8>, &GlobalMetadata, &EncodeOptions) -> Result<StreamingEncoder<Vec<u8>>, TensogramError> =
        StreamingEncoder::new;
    let _: fn(io::Error) -> TensogramError = TensogramError::from;
    // The maps of metadata.
    let GlobalMetadata { version: _, base, reserved, extra } = GlobalMetadata::default();
    let _: (Vec<BTreeMap<String, Value>>, BTreeMap<String, Value>, BTreeMap<String, Value>) =
        (base, reserved, extra);
    let _: BTreeMap<String, Value> = DataObjectDescriptor::new(Dtype::Uint8, [1]).params;
    // The frames of index and hashes.
    let _: (Vec<u8>, Vec<u8>) = (IndexFrame::default().to_cbor(), HashFrame::default().to_cbor());
}

/// Serialize with serde to a `ciborium::Value`, sort all maps, write: the order in which keys were stored does not matter.
#[test]
fn cbor_is_deterministic() {
    let keys = ["zz", "a", "step", "b", "longer key"];
    let map = |order: &[&str]| -> Value {
        Value::Map(order.iter().map(|key| (Value::from(*key), Value::from(key.len() as u64))).collect())
    };
    let mut reversed = keys;
    reversed.reverse();
    let one = [("nested".to_owned(), map(&keys))].into();
    let other = [("nested".to_owned(), map(&reversed))].into();
    let metadata = |extra: Section| GlobalMetadata { extra, ..GlobalMetadata::default() };
    assert_eq!(cbor_of(&metadata(one)), cbor_of(&metadata(other)));
    let encoded = cbor_of(&map(&keys));
    verify_canonical_cbor(&encoded).unwrap();
    let decoded: Value = ciborium::from_reader(&encoded[..]).unwrap();
    let sorted: Vec<_> = decoded.as_map().unwrap().iter().map(|(key, _)| key.as_text().unwrap()).collect();
    assert_eq!(sorted, ["a", "b", "zz", "step", "longer key"]);
    // Errors are returned.
    let mut duplicate = Value::Map(vec![(1.into(), Value::Null), (1.into(), Value::Null)]);
    assert!(matches!(canonicalize(&mut duplicate), Err(TensogramError::Metadata(_))));
    // Every structure of a message is canonical, and another order, a longer integer, a longer float and a trailing byte
    // are not.
    let (descriptor, values) = doubles(3);
    let message = bytes_of(&with(descriptor, &[("note", "x".into()), ("b", 1.into())]), &values, &unhashed());
    for (kind, _, at, len) in frames(&message) {
        let (start, end) = match kind {
            FrameType::NTensor => (at + number(&message, at + len - 20, 8) as usize, at + len - 20),
            _ => (at + 16, at + len - 12),
        };
        verify_canonical_cbor(&message[start..end]).unwrap();
    }
    let wrong: [&[u8]; 5] =
        [&[0xa2, 0x61, b'b', 0, 0x61, b'a', 0], &[0x18, 5], &[0xfa, 0, 0, 0, 0], &[0, 0], &[0x9f, 0xff]];
    for wrong in wrong {
        assert!(matches!(verify_canonical_cbor(wrong), Err(TensogramError::Metadata(_))), "{wrong:02x?}");
    }
}

/// `extra` is `_extra_` and `reserved` is `_reserved_`, in every format of serde, both ways.
#[test]
fn sections_have_their_names() {
    let section: Section = [("b".to_owned(), 2.into()), ("a".to_owned(), 1.into())].into();
    let metadata = GlobalMetadata {
        base: vec![section.clone()],
        reserved: section.clone(),
        extra: section.clone(),
        ..GlobalMetadata::default()
    };
    assert!(section.keys().eq(["a", "b"]));
    let json = serde_json::to_value(&metadata).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "base": [{"a": 1, "b": 2}], "_reserved_": {"a": 1, "b": 2}, "_extra_": {"a": 1, "b": 2},
        })
    );
    assert_eq!(serde_json::from_value::<GlobalMetadata>(json).unwrap(), metadata);
    let read: GlobalMetadata = ciborium::from_reader(&cbor_of(&metadata)[..]).unwrap();
    assert_eq!(read, metadata);
    let mut descriptor = with(DataObjectDescriptor::new(Dtype::Float32, [2, 3]), &[("units", "K".into())]);
    descriptor.compression = "zstd".to_owned();
    let read: DataObjectDescriptor = ciborium::from_reader(&cbor_of(&descriptor)[..]).unwrap();
    assert_eq!(read, descriptor);
    let json = serde_json::to_value(&descriptor).unwrap();
    assert_eq!((json["type"].as_str(), json["units"].as_str()), (Some("ntensor"), Some("K")));
    assert_eq!(serde_json::from_value::<DataObjectDescriptor>(json).unwrap(), descriptor);
}

/// Preamble: 24 bytes; the version is 3; flags; length 0 in a stream.
#[test]
fn the_preamble() {
    let (descriptor, values) = doubles(3);
    let message = bytes_of(&descriptor, &values, &EncodeOptions::default());
    assert_eq!((&message[..8], number(&message, 8, 2), number(&message, 12, 4)), (&b"TENSOGRM"[..], 3, 0));
    assert_eq!(number(&message, 16, 8), message.len() as u64);
    for version in [0, 1, 2, 4, 255] {
        let mut other = message.clone();
        other[9] = version;
        let error = decode(&other, &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, TensogramError::Framing(_)), "{version}: {error}");
    }
    let flags = |message: &[u8]| MessageFlags(number(message, 10, 2) as u16);
    assert_eq!(flags(&message).0, 0x95);
    assert_eq!(flags(&bytes_of(&descriptor, &values, &unhashed())).0, 0x05);
    let mut stream =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), &EncodeOptions::default()).unwrap();
    stream.write_object(&descriptor, &values).unwrap();
    let stream = stream.finish().unwrap();
    assert_eq!((flags(&stream).0, number(&stream, 16, 8)), (0xeb, 0));
    assert_eq!(decode(&stream, &DecodeOptions::default()).unwrap().1[0].1, values);
}

/// Frames: header of 16 bytes, tail with hash and `ENDF`. The version of a frame is independent of that of the message.
#[test]
fn frames_have_headers_and_tails() {
    let (descriptor, values) = doubles(3);
    let message = bytes_of(&descriptor, &values, &EncodeOptions::default());
    for (kind, _, at, len) in frames(&message) {
        let tail = if kind == FrameType::NTensor { 20 } else { 12 };
        let hash = number(&message, at + len - 12, 8);
        assert_eq!(compute_hash(&message[at + 16..at + len - tail]), format!("{hash:016x}"), "{kind:?}");
    }
    let mut plain = bytes_of(&descriptor, &values, &unhashed());
    for (kind, _, at, len) in frames(&plain.clone()) {
        assert_eq!(number(&plain, at + len - 12, 8), 0, "{kind:?}");
        plain[at + 4..at + 6].copy_from_slice(&77_u16.to_be_bytes());
    }
    assert_eq!(decode(&plain, &DecodeOptions::default()).unwrap().1[0].1, values);
}

/// `NTensorFrame`, type 9: payload, masks nan, inf+, inf−, descriptor, `cbor_offset`, hash, `ENDF`. A flag moves the
/// descriptor before the payload.
#[test]
fn data_object_frames() {
    assert_eq!(FrameType::NTensor.code(), 9);
    let (descriptor, _) = doubles(4);
    let special = [f64::NEG_INFINITY, f64::NAN, f64::INFINITY, 4.5];
    let values: Vec<u8> = special.iter().flat_map(|value| value.to_le_bytes()).collect();
    let allowed = EncodeOptions { allow_nan: true, allow_inf: true, ..EncodeOptions::default() };
    let message = bytes_of(&descriptor, &values, &allowed);
    let (_, flags, at, len) = *frames(&message).last().unwrap();
    assert!(FrameFlags(flags).contains(FrameFlags::DESCRIPTOR_AFTER));
    let cbor = &message[at + number(&message, at + len - 20, 8) as usize..at + len - 20];
    let stored: DataObjectDescriptor = ciborium::from_reader(cbor).unwrap();
    let masks = stored.masks.clone().unwrap();
    let mask = |mask: &Option<tercet_tgm::compat::MaskDescriptor>| {
        let mask = mask.as_ref().unwrap();
        message[at + 16 + mask.offset as usize..][..mask.length as usize].to_vec()
    };
    assert_eq!([mask(&masks.nan), mask(&masks.pos_inf), mask(&masks.neg_inf)], [[0x40], [0x20], [0x80]]);
    assert_eq!(
        (masks.nan.unwrap().offset, masks.pos_inf.unwrap().offset, masks.neg_inf.unwrap().offset),
        (32, 33, 34)
    );
    // No hash in the descriptor: the slot in the frame decides.
    assert!(!stored.params.contains_key("hash"));
    let mut changed = bytes_of(
        &descriptor,
        &values,
        &EncodeOptions { aggregate_hash: AggregateHashPolicy::None, ..allowed },
    );
    let (_, _, at, len) = *frames(&changed).last().unwrap();
    changed[at + len - 5] ^= 1;
    assert!(matches!(decode(&changed, &DecodeOptions::default()), Err(TensogramError::HashMismatch { .. })));
    // The descriptor before the payload.
    let (descriptor, values) = doubles(5);
    let cbor = cbor_of(&descriptor);
    let body = [&cbor[..], &values, &16_u64.to_be_bytes(), &[0; 8]].concat();
    let object = frame(FrameType::NTensor, 0, &body);
    let header = frame(FrameType::HeaderMetadata, 0, &[0xa0]);
    let message = message_of(MessageFlags::HEADER_METADATA, &[header, object]);
    let (_, objects) =
        decode(&message, &DecodeOptions { native_byte_order: false, ..DecodeOptions::default() }).unwrap();
    assert_eq!(objects[0], (descriptor, values));
}

/// Postamble: never zero, mirrored length; messages are found from both ends.
#[test]
fn the_postamble() {
    let (descriptor, values) = doubles(3);
    let message = bytes_of(&descriptor, &values, &EncodeOptions::default());
    let at = message.len() - 24;
    assert_eq!((number(&message, at, 8), number(&message, at + 8, 8)), (at as u64, message.len() as u64));
    assert_eq!(&message[at + 16..], END_MAGIC);
    let mut zero = message.clone();
    zero[at..at + 8].fill(0);
    assert!(matches!(decode(&zero, &DecodeOptions::default()), Err(TensogramError::Framing(_))));
    let sink = Cursor::new(Vec::new());
    let mut stream =
        StreamingEncoder::new(sink, &GlobalMetadata::default(), &EncodeOptions::default()).unwrap();
    stream.write_object(&descriptor, &values).unwrap();
    let stream = stream.finish_backfilled().unwrap().into_inner();
    let footer = frames(&stream).iter().find(|frame| frame.0 == FrameType::FooterMetadata).unwrap().2;
    let at = stream.len() - 24;
    assert_eq!((number(&stream, at, 8), number(&stream, at + 8, 8)), (footer as u64, stream.len() as u64));
    let file = Memory::new("m", [&message[..], &stream, &message, &stream].concat());
    let found = |direction| {
        scan_source(&file, ScanOptions::default().with_direction(direction), &NoProgress).unwrap().messages
    };
    let forward = found(Direction::Forward);
    assert_eq!(forward.len(), 4);
    assert_eq!((found(Direction::Backward), found(Direction::Bidirectional)), (forward.clone(), forward));
}

/// The size of the index changes the offsets in it.
#[test]
fn the_index_is_built_in_two_passes() {
    for count in (0..70).chain([255, 256, 284, 500, 842, 1100]) {
        let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
        let objects = vec![(&descriptor, &[7][..]); count];
        let message =
            encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::default()).unwrap();
        let all = frames(&message);
        let found: Vec<u64> =
            all.iter().filter(|frame| frame.0 == FrameType::NTensor).map(|frame| frame.2 as u64).collect();
        let lengths: Vec<u64> =
            all.iter().filter(|frame| frame.0 == FrameType::NTensor).map(|frame| frame.3 as u64).collect();
        assert_eq!(found.len(), count);
        let Some(index) = all.iter().find(|frame| frame.0 == FrameType::HeaderIndex) else {
            assert_eq!(count, 0);
            continue;
        };
        let between = found[0] - (index.2 + index.3).next_multiple_of(8) as u64;
        let (cbor, offsets) = build_index_frame(index.2 as u64, between, &lengths).unwrap();
        assert_eq!(
            (&cbor[..], &offsets),
            (&message[index.2 + 16..index.2 + index.3 - 12], &found),
            "{count}"
        );
        assert_eq!(compute_object_offsets(found[0], &lengths).unwrap(), found);
        assert!(found.iter().all(|offset| offset % 8 == 0));
        let hashes = all.iter().find(|frame| frame.0 == FrameType::HeaderHash).unwrap();
        let objects = all.iter().filter(|frame| frame.0 == FrameType::NTensor);
        let slots: Vec<u64> = objects.map(|frame| number(&message, frame.2 + frame.3 - 12, 8)).collect();
        assert_eq!(build_hash_frame_cbor(&slots).unwrap(), message[hashes.2 + 16..hashes.2 + hashes.3 - 12]);
        let kinds = all.iter().map(|frame| frame.0);
        assert_eq!(compute_message_flags(kinds, true).0, number(&message, 10, 2) as u16);
    }
    // Offsets that do not fit are an error.
    assert!(matches!(compute_object_offsets(8, &[u64::MAX, 9]), Err(TensogramError::Encoding(_))));
    assert!(matches!(build_index_frame(8, 0, &[u64::MAX - 8, 90]), Err(TensogramError::Encoding(_))));
}

/// `simple_packing`: most significant bit first, zeros at the end, `V = R + packed · 2^E / 10^D`.
#[test]
fn simple_packing_has_the_layout_of_grib() {
    let values: Vec<f64> = (0..11).map(|i| 250.0 + f64::from(i * i % 37) / 3.0).collect();
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for (bits, decimal) in [(1, 0), (5, 0), (7, 2), (12, -1), (13, 1), (24, 0), (33, 3)] {
        let packing = compute_packing_params(&values, bits, decimal).unwrap();
        assert_eq!(packing.reference_value.to_bits(), 250_f64.to_bits());
        let mut descriptor = DataObjectDescriptor::new(Dtype::Float64, [11]);
        descriptor.byte_order = ByteOrder::Little;
        descriptor.encoding = "simple_packing".to_owned();
        descriptor.params = packing.to_params();
        let message = bytes_of(&descriptor, &little, &EncodeOptions::default());
        let payload = framing::decode_message(&message).unwrap().objects[0].1;
        let bits = bits as usize;
        assert_eq!(payload.len(), (11 * bits).div_ceil(8));
        let bit = |at: usize| u64::from(payload[at / 8] >> (7 - at % 8) & 1);
        assert!((11 * bits..payload.len() * 8).all(|at| bit(at) == 0));
        let (_, _, found) = decode_object(&message, 0, &DecodeOptions::default()).unwrap();
        let step = f64::from(packing.binary_scale_factor).exp2() / 10_f64.powi(packing.decimal_scale_factor);
        for (element, found) in found.as_chunks().0.iter().enumerate() {
            let packed = (element * bits..(element + 1) * bits).fold(0, |number, at| number << 1 | bit(at));
            let expected = packing.reference_value + packed as f64 * step;
            let found = f64::from_ne_bytes(*found);
            assert!(
                (found - expected).abs() <= expected.abs() * 4.0 * f64::EPSILON,
                "{bits} bits, {element}"
            );
        }
    }
}

/// A reader that counts.
struct Counted<R> {
    inner: R,
    bytes: u64,
    reads: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.bytes += read as u64;
        self.reads += 1;
        Ok(read)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// `open` reads nothing; the first call that needs the messages scans the file, in preamble-sized chunks, once.
#[test]
fn files_are_scanned_when_needed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge.tgm");
    let path = path.to_str().unwrap();
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
    let all: Vec<Vec<u8>> =
        (0..1000).map(|step: u32| bytes_of(&descriptor, &[step as u8], &EncodeOptions::default())).collect();
    fs::write(path, all.concat()).unwrap();

    // No I/O here
    let file = TensogramFile::open(path).unwrap();
    // Streaming scan happens here (once)
    let count = file.message_count().unwrap();
    // O(1) seek + read
    let message = file.read_message(999).unwrap();
    assert_eq!((count, message), (1000, all[999].clone()));
    // The list is kept.
    fs::write(path, all[..10].concat()).unwrap();
    assert_eq!(file.message_count().unwrap(), 1000);
    assert!(file.read_message(999).is_err());

    let long = DataObjectDescriptor::new(Dtype::Uint8, [1 << 20]);
    let long = bytes_of(&long, &vec![1; 1 << 20], &unhashed());
    let mut reader = Counted { inner: Cursor::new(long.repeat(40)), bytes: 0, reads: 0 };
    let found = scan_file(&mut reader).unwrap();
    let expected: Vec<_> = (0..40).map(|message| (message * long.len(), long.len())).collect();
    assert_eq!(found, expected);
    assert!(reader.bytes < 40 * 128 + (64 << 10), "{} bytes in {} reads", reader.bytes, reader.reads);
}

/// The mapped file is scanned when it is opened; messages are copies.
#[test]
fn mapped_files_are_scanned_when_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge.tgm");
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
    let all: Vec<Vec<u8>> =
        (0..50).map(|step| bytes_of(&descriptor, &[step], &EncodeOptions::default())).collect();
    fs::write(&path, all.concat()).unwrap();
    let file = TensogramFile::open_mmap(&path).unwrap();
    let count = file.message_count().unwrap(); // already scanned during open_mmap
    let message = file.read_message(42).unwrap(); // copies from mmap, no seek
    drop(file);
    assert_eq!((count, message), (50, all[42].clone()));
    assert_eq!(scan(&all.concat()).len(), 50);
}

/// The async variants run on the blocking pool: other tasks go on.
#[cfg(feature = "async")]
#[test]
fn async_calls_do_not_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecast.tgm");
    let (descriptor, values) = doubles(1 << 18);
    let mut packed = descriptor;
    packed.encoding = "simple_packing".to_owned();
    packed.params = [("sp_bits_per_value".to_owned(), 24.into())].into();
    let message = bytes_of(&packed, &values, &EncodeOptions::default());
    fs::write(&path, &message).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let opts = DecodeOptions::default();
        let file = TensogramFile::open_async(&path).await.unwrap();
        assert_eq!(file.read_message_async(0).await.unwrap(), message);
        let done = std::cell::Cell::new(false);
        let decoding = async {
            let decoded = file.decode_message_async(0, &opts).await;
            done.set(true);
            decoded
        };
        let ticking = async {
            let mut ticks = 0_u64;
            while !done.get() {
                ticks += 1;
                tokio::task::yield_now().await;
            }
            ticks
        };
        let (decoded, ticks) = tokio::join!(decoding, ticking);
        let (_meta, objects) = decoded.unwrap();
        assert_eq!(objects.len(), 1);
        assert!(ticks > 0, "the only thread was blocked");
    });
}

/// Header frames, then data objects, then footer frames.
#[test]
fn frames_are_in_order() {
    assert!(DecodePhase::Header < DecodePhase::Body && DecodePhase::Body < DecodePhase::Footer);
    assert_eq!(DecodePhase::for_frame(FrameType::NTensor), DecodePhase::Body);
    let (descriptor, values) = doubles(2);
    let cbor = cbor_of(&descriptor);
    let offset = (16 + values.len() as u64).to_be_bytes();
    let object = frame(FrameType::NTensor, 1, &[&values[..], &cbor, &offset, &[0; 8]].concat());
    let header = frame(FrameType::HeaderMetadata, 0, &[0xa0]);
    let footer = frame(FrameType::FooterMetadata, 0, &[0xa0]);
    let decoded = |frames: &[&Vec<u8>]| {
        let frames: Vec<Vec<u8>> = frames.iter().map(|frame| (*frame).clone()).collect();
        let kinds = frames.iter().map(|frame| FrameType::from_code(number(frame, 2, 2) as u16).unwrap());
        let flags = compute_message_flags(kinds, false);
        decode(&message_of(flags, &frames), &DecodeOptions::default()).map(|(_, objects)| objects.len())
    };
    assert_eq!(decoded(&[&header, &object, &object]).unwrap(), 2);
    assert_eq!(decoded(&[&header]).unwrap(), 0);
    for wrong in [
        vec![&header, &object, &header],
        vec![&object, &header],
        vec![&header, &footer, &object],
        vec![&footer, &header],
    ] {
        let error = decoded(&wrong).unwrap_err();
        assert!(matches!(error, TensogramError::Framing(_)), "{error}");
    }
}

/// Every variant of the error hierarchy with every cause that the text lists. The text of an error of a file names the
/// file, the message and the object.
#[test]
#[expect(clippy::too_many_lines, reason = "one paragraph per variant, in the order of the text")]
fn the_error_hierarchy() {
    let (plain, values) = doubles(1000);
    let message = bytes_of(&plain, &values, &EncodeOptions::default());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("errors.tgm");
    // Message 1 of the file is the one with the error.
    let read = |bytes: &[u8]| {
        fs::write(&path, [&message[..], bytes].concat()).unwrap();
        let error =
            TensogramFile::open(&path).unwrap().decode_message(1, &DecodeOptions::default()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("errors.tgm") && text.contains("message 1"), "{text}");
        error
    };
    let changed = |at: usize, byte: u8| {
        let mut changed = message.clone();
        changed[at] = byte;
        changed
    };

    // Framing: invalid magic, truncated preamble, bad frame markers, missing postamble
    for wrong in
        [changed(0, b'X'), message[..20].to_vec(), changed(24, b'X'), message[..message.len() - 24].to_vec()]
    {
        let error = decode(&wrong, &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, TensogramError::Framing(_)), "{error}");
    }
    assert!(matches!(read(&changed(24, b'X')), TensogramError::Framing(_)));

    // Metadata: CBOR serialization/deserialization failure
    let mut broken = bytes_of(&plain, &values, &unhashed());
    broken[40] = 0xff;
    assert!(matches!(decode_metadata(&broken), Err(TensogramError::Metadata(_))));
    assert!(matches!(read(&broken), TensogramError::Metadata(_)));

    // Encoding: invalid encoding params, NaN in simple_packing
    let pipeline = |encoding: &str, filter: &str, compression: &str, params: &[(&str, Value)]| {
        let mut descriptor = with(plain.clone(), params);
        descriptor.encoding = encoding.to_owned();
        descriptor.filter = filter.to_owned();
        descriptor.compression = compression.to_owned();
        descriptor
    };
    let nan = [f64::NAN.to_le_bytes().to_vec(), values[8..].to_vec()].concat();
    let packed = pipeline("simple_packing", "none", "none", &[("sp_bits_per_value", 16.into())]);
    for (descriptor, values) in [
        (pipeline("simple_packing", "none", "none", &[("sp_bits_per_value", 65.into())]), &values),
        (pipeline("arithmetic", "none", "none", &[]), &values),
        (pipeline("none", "bitshuffle", "none", &[]), &values),
        (pipeline("none", "none", "gzip", &[]), &values),
        (pipeline("none", "shuffle", "none", &[("shuffle_element_size", 0.into())]), &values),
        (packed.clone(), &nan),
    ] {
        let error = encode(&GlobalMetadata::default(), &[(&descriptor, values)], &EncodeOptions::default());
        assert!(matches!(error, Err(TensogramError::Encoding(_))), "{error:?}");
    }
    let mut narrow = packed;
    narrow.dtype = Dtype::Float32;
    let error = encode(&GlobalMetadata::default(), &[(&narrow, &values[..4000])], &EncodeOptions::default());
    assert!(matches!(error, Err(TensogramError::Encoding(_))), "{error:?}");

    // Compression: compressor error (szip, zstd, lz4, blosc2, zfp, sz3)
    let szip = [("szip_rsi", 128.into()), ("szip_block_size", 16.into()), ("szip_flags", 8.into())];
    let packing =
        compute_packing_params(&(0..1000).map(|i| f64::from(i).sqrt()).collect::<Vec<_>>(), 16, 0).unwrap();
    for descriptor in [
        {
            let mut descriptor = pipeline("simple_packing", "none", "szip", &szip);
            descriptor.params.extend(packing.to_params());
            descriptor
        },
        pipeline("none", "none", "zstd", &[]),
        pipeline("none", "none", "lz4", &[]),
        pipeline("none", "none", "blosc2", &[]),
        pipeline(
            "none",
            "none",
            "zfp",
            &[("zfp_mode", "fixed_accuracy".into()), ("zfp_tolerance", 0.01.into())],
        ),
        pipeline(
            "none",
            "none",
            "sz3",
            &[("sz3_error_bound_mode", "abs".into()), ("sz3_error_bound", 0.01.into())],
        ),
    ] {
        let compressed = bytes_of(&descriptor, &values, &EncodeOptions::default());
        let (stored, payload, _) = &framing::decode_message(&compressed).unwrap().objects[0];
        let cut = &payload[..payload.len() / 2];
        // The payload of packed values is not a multiple of its samples either way.
        let damaged = tercet_tgm::PreEncoded { descriptor: &stored.try_into().unwrap(), payload: cut };
        let damaged = tercet_tgm::encode_pre_encoded(
            &tercet_tgm::GlobalMetadata::default(),
            &[damaged],
            &tercet_tgm::EncodeOptions::new(),
        );
        let Ok(damaged) = damaged else { panic!("{}: {damaged:?}", descriptor.compression) };
        let error = read(&damaged);
        assert!(matches!(error, TensogramError::Compression(_)), "{}: {error}", descriptor.compression);
        assert!(error.to_string().contains("object 0"), "{error}");
    }

    // Object: index out of range
    let file = TensogramFile::open(&path).unwrap();
    let error = file.decode_object(0, 1, &DecodeOptions::default()).unwrap_err();
    assert!(matches!(error, TensogramError::Object(_)) && error.to_string().contains("message 0"), "{error}");
    let error = file.read_message(2).unwrap_err();
    assert!(
        matches!(error, TensogramError::Object(_)) && error.to_string().contains("errors.tgm"),
        "{error}"
    );
    assert!(matches!(decode_object(&message, 1, &DecodeOptions::default()), Err(TensogramError::Object(_))));

    // Io: filesystem errors; `?` on any `std::io::Result`
    let error = TensogramFile::open("/nowhere/x.tgm").unwrap_err();
    assert!(matches!(&error, TensogramError::Io(error) if error.kind() == io::ErrorKind::NotFound));
    assert!(error.to_string().contains("/nowhere/x.tgm"), "{error}");
    let opened = || -> Result<fs::File> { Ok(fs::File::open("/nowhere/x.tgm")?) };
    assert!(matches!(opened(), Err(TensogramError::Io(_))));

    // HashMismatch { expected, actual }: payload integrity failure
    let at = message.windows(8).position(|window| window == &values[8..16]).unwrap();
    let error = read(&changed(at, message[at] ^ 1));
    assert!(error.to_string().contains("object 0"), "{error}");
    let TensogramError::HashMismatch { expected, actual } = error else { panic!("{error}") };
    assert!(expected[..16] != actual[..16] && actual.place().contains("object 0"));
    // Without hashes the same damage is not found, and pre-encoded payloads are stored unchanged.
    let opaque = encode_pre_encoded(&GlobalMetadata::default(), &[(&plain, &values)], &unhashed()).unwrap();
    assert_eq!(decode(&opaque, &DecodeOptions::default()).unwrap().1[0].1, values);
}

/// An append writes the message only: neither a new file, nor the bytes before it.
#[cfg(unix)]
#[test]
fn appends_do_not_write_the_file_again() {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tgm");
    let (descriptor, values) = doubles(3);
    let objects: &Objects<'_> = &[(&descriptor, &values)];
    let mut file = TensogramFile::create(&path).unwrap();
    file.append(&GlobalMetadata::default(), objects, &EncodeOptions::default()).unwrap();
    let open = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let first = open.metadata().unwrap();
    // A byte that an append in place leaves alone, whatever it is.
    let mut byte = [0];
    open.read_exact_at(&mut byte, 30).unwrap();
    open.write_all_at(&[byte[0] ^ 1], 30).unwrap();
    for _ in 0..50 {
        file.append(&GlobalMetadata::default(), objects, &EncodeOptions::default()).unwrap();
    }
    let last = fs::metadata(&path).unwrap();
    assert_eq!((last.ino(), last.len()), (first.ino(), 51 * first.len()));
    let mut changed = [0];
    open.read_exact_at(&mut changed, 30).unwrap();
    assert_eq!(changed[0], byte[0] ^ 1);
}
