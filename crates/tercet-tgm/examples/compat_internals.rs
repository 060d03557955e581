//! The format's documentation on internals, line by line: names, layouts and rules, in its order.
#![allow(clippy::print_stdout, reason = "an example shows its results")]
#![allow(clippy::panic, reason = "an example stops if its result is wrong")]
#![allow(clippy::disallowed_methods, reason = "an example writes its own file")]
#![allow(clippy::float_cmp, reason = "packed values are exact here")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use ciborium::Value;
use tercet_tgm::compat::{
    ByteOrder, DataObjectDescriptor, DecodeOptions, DecodePhase, Dtype, END_MAGIC, EncodeOptions, FrameType,
    GlobalMetadata, HashFrame, IndexFrame, MAGIC, MessageFlags, MessageParts, ObjectParts, Result,
    StreamingEncoder, TensogramError, TensogramFile, assemble_message, build_hash_frame_cbor,
    build_index_frame, canonicalize, compute_hash, compute_message_flags, compute_object_offsets,
    compute_packing_params, decode, decode_metadata, decode_object, encode, encode_message, framing, scan,
    scan_file, verify_canonical_cbor,
};

/// A frame of a message: type, flags, offset and bytes.
struct Frame<'a> {
    kind: u16,
    flags: u16,
    at: usize,
    bytes: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The frames between preamble and postamble, each at a multiple of 8.
fn frames(message: &[u8]) -> Vec<Frame<'_>> {
    let (mut at, mut all) = (24, Vec::new());
    while at < message.len() - 24 {
        assert_eq!(&message[at..at + 2], b"FR");
        let len = usize::try_from(u64_at(message, at + 8)).unwrap_or(usize::MAX);
        let bytes = &message[at..at + len];
        assert!(bytes.ends_with(b"ENDF"));
        all.push(Frame { kind: u16_at(message, at + 2), flags: u16_at(message, at + 6), at, bytes });
        at = (at + len).next_multiple_of(8);
    }
    all
}

/// The CBOR of a frame with a tail of 12 bytes.
fn cbor<'a>(frame: &Frame<'a>) -> &'a [u8] {
    &frame.bytes[16..frame.bytes.len() - 12]
}

fn is<T: Debug>(result: Result<T>, variant: fn(&TensogramError) -> bool) {
    match result {
        Err(error) if variant(&error) => println!("{error}"),
        other => panic!("{other:?}"),
    }
}

/// Deterministic CBOR: serde to a `ciborium::Value`, sort all maps, write.
fn canonical_cbor() -> Result<()> {
    let mut metadata = GlobalMetadata::default();
    // `extra`, `reserved`, the entries of `base`, and `params` are `BTreeMap<String, ciborium::Value>`.
    let section: BTreeMap<String, Value> =
        [("long key".to_owned(), 1.into()), ("b".to_owned(), 2.into())].into();
    metadata.extra = section.clone();
    metadata.reserved = section.clone();
    metadata.base = vec![section.clone()];
    let mut descriptor = DataObjectDescriptor::new(Dtype::Uint8, [3]);
    descriptor.params = section;
    for value in [Value::serialized(&metadata), Value::serialized(&descriptor)] {
        let mut value = value.map_err(|error| TensogramError::Metadata(error.to_string()))?;
        let done: Result<()> = canonicalize(&mut value);
        done?;
        let mut bytes = Vec::new();
        ciborium::into_writer(&value, &mut bytes)
            .map_err(|error| TensogramError::Metadata(error.to_string()))?;
        verify_canonical_cbor(&bytes)?;
    }
    let names = serde_json::to_string(&metadata).unwrap_or_default();
    assert!(names.contains("\"_extra_\":") && names.contains("\"_reserved_\":"), "{names}");
    // Errors are returned: a duplicate key has no canonical form.
    let pair = || (Value::from(1), Value::Null);
    is(canonicalize(&mut Value::Map(vec![pair(), pair()])), |error| {
        matches!(error, TensogramError::Metadata(_))
    });
    is(verify_canonical_cbor(&[0xa2, 0x61, b'b', 0, 0x61, b'a', 0]), |error| {
        matches!(error, TensogramError::Metadata(_))
    });
    Ok(())
}

/// The wire format: preamble, frames, data object, postamble.
fn wire_format() -> Result<()> {
    let mut descriptor = DataObjectDescriptor::new(Dtype::Float64, [3]);
    descriptor.byte_order = ByteOrder::Little;
    let holes: Vec<u8> =
        [1.0, f64::NAN, f64::INFINITY].iter().flat_map(|value| value.to_le_bytes()).collect();
    let options = EncodeOptions { allow_nan: true, allow_inf: true, ..EncodeOptions::default() };
    let message = encode(&GlobalMetadata::default(), &[(&descriptor, &holes)], &options)?;
    // Preamble: magic, version 3, flags, reserved, total_length.
    assert_eq!((&message[..8], u16_at(&message, 8)), (&MAGIC[..], 3));
    assert_eq!(u64_at(&message, 16), message.len() as u64);
    let flags = MessageFlags(u16_at(&message, 10));
    for flag in [MessageFlags::HEADER_METADATA, MessageFlags::HEADER_INDEX, MessageFlags::HASHES_PRESENT] {
        assert!(flags.contains(flag));
    }
    let all = frames(&message);
    let kinds: Vec<_> = all.iter().map(|frame| FrameType::from_code(frame.kind)).collect();
    let expected =
        [FrameType::HeaderMetadata, FrameType::HeaderIndex, FrameType::HeaderHash, FrameType::NTensor];
    assert_eq!(kinds, expected.map(Some));
    assert_eq!(FrameType::NTensor.code(), 9);
    for frame in &all {
        // Tail: the hash of the body, `ENDF`. A data object has `cbor_offset` in front; its hash does not cover it.
        let (tail, is_object) = if frame.kind == 9 { (20, true) } else { (12, false) };
        let body = &frame.bytes[16..frame.bytes.len() - tail];
        let stored = u64_at(frame.bytes, frame.bytes.len() - 12);
        assert_eq!(compute_hash(body), format!("{stored:016x}"));
        if !is_object {
            verify_canonical_cbor(body)?;
            continue;
        }
        // Payload, masks, descriptor: a flag says that the descriptor is after the payload.
        assert_eq!(frame.flags & 1, 1);
        let cbor_offset = usize::try_from(u64_at(frame.bytes, frame.bytes.len() - 20)).unwrap_or_default();
        let cbor = &frame.bytes[cbor_offset..frame.bytes.len() - 20];
        verify_canonical_cbor(cbor)?;
        let stored: DataObjectDescriptor = ciborium::from_reader(cbor)
            .map_err(|error: ciborium::de::Error<io::Error>| TensogramError::Metadata(error.to_string()))?;
        let masks = stored.masks.unwrap_or_default();
        assert!(masks.nan.is_some() && masks.pos_inf.is_some() && masks.neg_inf.is_none());
        // The hash is in the frame only.
        assert!(!stored.params.contains_key("hash"));
    }
    // Without hashes the slot is zero.
    let plain = EncodeOptions { hashing: false, ..options };
    let unhashed = encode(&GlobalMetadata::default(), &[(&descriptor, &holes)], &plain)?;
    assert!(!MessageFlags(u16_at(&unhashed, 10)).contains(MessageFlags::HASHES_PRESENT));
    assert!(frames(&unhashed).iter().all(|frame| u64_at(frame.bytes, frame.bytes.len() - 12) == 0));
    // A stream has no length until it ends; its footer frames are found from the postamble.
    let stream =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), &EncodeOptions::default())?.finish()?;
    assert_eq!(u64_at(&stream, 16), 0);
    let footer = frames(&stream).iter().find(|frame| frame.kind == 7).map(|frame| frame.at as u64);
    assert_eq!(Some(u64_at(&stream, stream.len() - 24)), footer);
    // Postamble: first_footer_offset is never zero, total_length is mirrored, the end magic is last.
    let postamble = message.len() - 24;
    assert_eq!(u64_at(&message, postamble), postamble as u64);
    assert_eq!(
        (u64_at(&message, postamble + 8), &message[postamble + 16..]),
        (message.len() as u64, &END_MAGIC[..])
    );
    Ok(())
}

/// Two-pass index construction, and the five helpers of the encoder.
fn encoder() -> Result<()> {
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [200]);
    // The index of many objects is larger: the offsets are those of the message that contains it.
    for count in [1, 2, 23, 24, 300] {
        let objects = vec![(&descriptor, &[7; 200][..]); count];
        let message = encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::default())?;
        let all = frames(&message);
        let index: Vec<_> = all.iter().filter(|frame| frame.kind == 2).map(cbor).collect();
        let index: IndexFrame =
            IndexFrame::from_value(decoded(index[0])?).map_err(|error| metadata_error(&error))?;
        let found: Vec<u64> =
            all.iter().filter(|frame| frame.kind == 9).map(|frame| frame.at as u64).collect();
        assert_eq!(index.offsets, found);
        // compute_object_offsets(): 8-byte alignment.
        let first = found.first().copied().unwrap_or_default();
        assert_eq!(compute_object_offsets(first, &index.lengths)?, found);
        // build_index_frame(): the same bytes from what is before and after the index.
        let before = all.iter().find(|frame| frame.kind == 2).map_or(0, |frame| frame.at as u64);
        let hashes = all.iter().find(|frame| frame.kind == 3);
        let between = hashes.map_or(0, |frame| frame.bytes.len().next_multiple_of(8) as u64);
        let (again, offsets) = build_index_frame(before, between, &index.lengths)?;
        assert_eq!((again, &offsets), (index.to_cbor(), &found));
        // build_hash_frame_cbor()
        let hashes = hashes.map(cbor).unwrap_or_default();
        let slots = all.iter().filter(|frame| frame.kind == 9);
        let slots: Vec<u64> = slots.map(|frame| u64_at(frame.bytes, frame.bytes.len() - 12)).collect();
        assert_eq!(build_hash_frame_cbor(&slots)?, hashes);
        assert_eq!(
            HashFrame::from_value(decoded(hashes)?).map_err(|error| metadata_error(&error))?.hashes.len(),
            count
        );
        // compute_message_flags()
        let kinds = all.iter().filter_map(|frame| FrameType::from_code(frame.kind));
        assert_eq!(compute_message_flags(kinds, true), MessageFlags(u16_at(&message, 10)));
        // assemble_message() from the payloads as they are stored.
        let decoded = framing::decode_message(&message)?;
        let object = |frame: &Frame<'_>| {
            let payload = 16..u64_at(frame.bytes, frame.bytes.len() - 20).try_into().unwrap_or(usize::MAX);
            let cbor = frame.bytes[payload.end..frame.bytes.len() - 20].to_vec();
            ObjectParts { cbor, payload: frame.bytes[payload].to_vec().into() }
        };
        let parts = MessageParts {
            metadata: cbor(&all[0]).to_vec(),
            objects: all.iter().filter(|frame| frame.kind == 9).map(object).collect(),
            index: (true, false),
            hashes: (true, false),
            hash: true,
        };
        let mut assembled = Vec::new();
        assemble_message(&parts, &mut assembled)?;
        assert_eq!(assembled, message);
        assert!(
            decoded
                .objects
                .iter()
                .zip(&found)
                .all(|((_, payload, at), offset)| { *payload == [7; 200] && *at as u64 == *offset })
        );
    }
    Ok(())
}

fn decoded(cbor: &[u8]) -> Result<tercet_tgm::Value> {
    let budget = tercet_core::Budget::new("metadata", 1 << 20);
    tercet_tgm::cbor::decode(cbor, &budget).map(|(value, _)| value).map_err(TensogramError::from)
}

fn metadata_error(error: &tercet_tgm::MetadataError) -> TensogramError {
    TensogramError::Metadata(error.to_string())
}

/// `simple_packing`: most significant bit first, `V = R + packed × 2^E / 10^D`.
fn simple_packing() -> Result<()> {
    let values = [10.0, 10.5, 12.25, 41.0, 17.75];
    let packing = compute_packing_params(&values, 12, 1)?;
    let mut descriptor = DataObjectDescriptor::new(Dtype::Float64, [values.len() as u64]);
    descriptor.byte_order = ByteOrder::Little;
    descriptor.encoding = "simple_packing".into();
    descriptor.params = packing.to_params();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let message = encode(&GlobalMetadata::default(), &[(&descriptor, &bytes)], &EncodeOptions::default())?;
    let parts = framing::decode_message(&message)?;
    let payload = parts.objects[0].1;
    assert_eq!(payload.len(), (values.len() * 12).div_ceil(8));
    let bit = |at: usize| u64::from(payload[at / 8] >> (7 - at % 8) & 1);
    let packed =
        |element: usize| (element * 12..element * 12 + 12).fold(0, |number, at| number << 1 | bit(at));
    // The last byte is padded with zeros on the right.
    assert!((values.len() * 12..payload.len() * 8).all(|at| bit(at) == 0));
    let step = f64::from(packing.binary_scale_factor).exp2() / 10_f64.powi(packing.decimal_scale_factor);
    let (_, _, found) =
        decode_object(&message, 0, &DecodeOptions { native_byte_order: false, ..DecodeOptions::default() })?;
    let found: Vec<f64> = found.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value)).collect();
    for (element, (found, value)) in found.iter().zip(values).enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "12 bits")]
        let expected = packing.reference_value + packed(element) as f64 * step;
        assert!((found - expected).abs() < 1e-12 && (found - value).abs() <= step / 2.0 + 1e-12, "{element}");
    }
    assert_eq!(packing.reference_value, 10.0);
    Ok(())
}

/// Files are scanned when the message list is needed, once; mapped files when they are opened.
fn files() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("huge.tgm");
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
    let message =
        |step: u8| encode(&GlobalMetadata::default(), &[(&descriptor, &[step])], &EncodeOptions::default());
    let all: Vec<Vec<u8>> = (0..50).map(message).collect::<Result<_>>()?;
    std::fs::write(&path, b"")?;
    // No I/O: what is written after it was opened is found by the first call that needs the list …
    let file = TensogramFile::open(&path)?;
    assert!(file.message_count().is_ok_and(|count| count == 0));
    std::fs::write(&path, all.concat())?;
    let file = TensogramFile::open(&path)?;
    assert_eq!(file.message_count()?, 50);
    assert_eq!(file.read_message(42)?, all[42]);
    // … and the list is kept.
    std::fs::write(&path, [all.concat(), all[0].clone()].concat())?;
    assert_eq!((file.message_count()?, TensogramFile::open(&path)?.message_count()?), (50, 51));
    let spans = scan_file(&mut std::fs::File::open(&path)?)?;
    assert_eq!(spans, scan(&std::fs::read(&path)?));
    let mapped = TensogramFile::open_mmap(&path)?;
    assert_eq!((mapped.message_count()?, mapped.read_message(42)?), (51, all[42].clone()));
    #[cfg(feature = "async")]
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let opts = DecodeOptions::default();
        let file = TensogramFile::open_async(&path).await?;
        let (_meta, objects) = file.decode_message_async(0, &opts).await?;
        assert_eq!((objects.len(), file.read_message_async(42).await?), (1, all[42].clone()));
        Ok::<(), TensogramError>(())
    })?;
    Ok(())
}

/// One error type; every variant of the hierarchy.
fn errors() -> Result<()> {
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [4]);
    let message = encode(&GlobalMetadata::default(), &[(&descriptor, b"PLAY")], &EncodeOptions::default())?;
    let options = DecodeOptions::default();
    let framing = |error: &TensogramError| matches!(error, TensogramError::Framing(_));
    let changed = |at: usize, byte: u8| {
        let mut changed = message.clone();
        changed[at] = byte;
        changed
    };
    // Framing: invalid magic, truncated preamble, bad frame markers, missing postamble.
    is(decode(&changed(0, b'X'), &options), framing);
    is(decode(&message[..20], &options), framing);
    is(decode(&changed(24, b'X'), &options), framing);
    is(decode(&message[..message.len() - 24], &options), framing);
    // Frames out of order: the phase moves on only.
    assert!(DecodePhase::Header < DecodePhase::Body && DecodePhase::Body < DecodePhase::Footer);
    let all = frames(&message);
    let (header, object) = (&message[all[0].at..all[1].at], &message[all[3].at..message.len() - 24]);
    let mut swapped = message[..24].to_vec();
    swapped[10..12].copy_from_slice(&MessageFlags::HEADER_METADATA.0.to_be_bytes());
    swapped.extend([object, header].concat());
    let len = (swapped.len() + 24) as u64;
    swapped[16..24].copy_from_slice(&len.to_be_bytes());
    swapped.extend([&(len - 24).to_be_bytes()[..], &len.to_be_bytes(), END_MAGIC].concat());
    is(decode(&swapped, &options), framing);
    // Metadata: CBOR that does not parse.
    let unhashed = EncodeOptions { hashing: false, ..EncodeOptions::default() };
    let mut broken = encode(&GlobalMetadata::default(), &[(&descriptor, b"PLAY")], &unhashed)?;
    broken[40] = 0xff;
    is(decode_metadata(&broken), |error| matches!(error, TensogramError::Metadata(_)));
    // Encoding: NaN in simple_packing.
    let mut packed = DataObjectDescriptor::new(Dtype::Float64, [1]);
    packed.encoding = "simple_packing".into();
    packed.params.insert("sp_bits_per_value".to_owned(), 16.into());
    let nan = encode(
        &GlobalMetadata::default(),
        &[(&packed, &f64::NAN.to_bits().to_le_bytes())],
        &EncodeOptions::default(),
    );
    is(nan, |error| matches!(error, TensogramError::Encoding(_)));
    // Compression: bytes that are no zstd frame.
    let mut zstd = descriptor.clone();
    zstd.compression = "zstd".into();
    let bad = tercet_tgm::compat::encode_pre_encoded(
        &GlobalMetadata::default(),
        &[(&zstd, b"PLAY")],
        &EncodeOptions::default(),
    )?;
    is(decode(&bad, &options), |error| matches!(error, TensogramError::Compression(_)));
    // Object: an index out of range.
    is(decode_object(&message, 1, &options), |error| matches!(error, TensogramError::Object(_)));
    // Io wraps std::io::Error, also by `?`.
    is(TensogramFile::open("/nowhere/x.tgm"), |error| matches!(error, TensogramError::Io(_)));
    let read = || -> Result<Vec<u8>> { Ok(std::fs::read("/nowhere/x.tgm")?) };
    is(read(), |error| matches!(error, TensogramError::Io(error) if error.kind() == io::ErrorKind::NotFound));
    // HashMismatch { expected, actual }: the payload changed.
    let at = message.windows(4).position(|window| window == b"PLAY").unwrap_or_default();
    match decode(&changed(at, b'p'), &options) {
        Err(TensogramError::HashMismatch { expected, actual }) => {
            assert!(*expected != *actual && expected.len() == 16);
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

pub(crate) fn main() -> Result<()> {
    canonical_cbor()?;
    wire_format()?;
    encoder()?;
    simple_packing()?;
    files()?;
    errors()
}
