//! Self-tests with known results.

use std::borrow::Cow;

use serde::Serialize;
use tercet::core::checksum::xxh3;
use tercet::core::{CommonError, Shape};
use tercet::tgm::{
    ByteOrder, DTYPES, DType, DataObjectDescriptor, Decoder, EncodeOptions, Error, ErrorKind, Event,
    GlobalMetadata, Message, StreamingEncoder, Value, cbor, encode_message, scan, verify_canonical_cbor,
};

use super::pipelines;

/// The source name in error messages.
pub(super) const NAME: &str = "self-test";

/// A test and its result.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: Cow<'static, str>,
    pub(super) outcome: Outcome,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Ok,
    Failed,
    /// A required feature is not built in.
    Skipped,
}

/// The result of a test function; the error is a message.
pub(super) type Tested = Result<(), String>;

/// Runs all tests.
pub(super) fn run() -> Vec<Row> {
    let mut rows: Vec<Row> = DTYPES
        .into_iter()
        .flat_map(|dtype| [ByteOrder::Little, ByteOrder::Big].map(|order| (dtype, order)))
        .map(|(dtype, order)| row(format!("encode/decode  {dtype}, {order}"), round_trip(dtype, order)))
        .collect();
    rows.push(row("hash           xxh3 of known bytes", known_hash()));
    rows.push(row("hash           a flipped bit is detected", damage_is_detected()));
    rows.push(row("stream         written and read in pieces", streaming()));
    rows.push(row("scan           messages between other bytes", scanning()));
    rows.push(row("metadata       canonical CBOR", canonical()));
    rows.extend(pipelines::run());
    rows
}

pub(super) fn row(name: impl Into<Cow<'static, str>>, tested: Tested) -> Row {
    let outcome = if tested.is_ok() { Outcome::Ok } else { Outcome::Failed };
    Row { name: name.into(), outcome, failed: tested.err() }
}

/// A skipped test.
pub(super) fn skipped(name: impl Into<Cow<'static, str>>) -> Row {
    Row { name: name.into(), outcome: Outcome::Skipped, failed: None }
}

pub(super) fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Tested {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}

pub(super) fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Six elements whose bytes are all different, little-endian.
fn payload(dtype: DType) -> Vec<u8> {
    let len = dtype.byte_len(6).and_then(|len| u8::try_from(len).ok()).unwrap_or_default();
    if dtype == DType::Bitmask { vec![0b1011_0100] } else { (1..=len).collect() }
}

fn round_trip(dtype: DType, order: ByteOrder) -> Tested {
    let little = payload(dtype);
    let mut stored = little.clone();
    if order == ByteOrder::Big {
        stored.chunks_exact_mut(dtype.swap_unit()).for_each(<[u8]>::reverse);
    }
    let mut descriptor = DataObjectDescriptor::new(dtype, [2, 3]);
    descriptor.byte_order = Some(order);
    let message = message(&descriptor, &stored)?;
    let message = Message::from_bytes(NAME, message).map_err(error_text)?;
    let array = message.object(0).and_then(|object| object.decode()).map_err(error_text)?;
    same(array.shape(), &Shape::new(descriptor.shape))?;
    same(&array.bytes(), &&*little)
}

fn message(descriptor: &DataObjectDescriptor, payload: &[u8]) -> Result<Vec<u8>, String> {
    encode_message(&metadata(), &[(descriptor, payload)], &EncodeOptions::new()).map_err(error_text)
}

fn metadata() -> GlobalMetadata {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("purpose".to_owned(), NAME.into());
    metadata
}

fn known_hash() -> Tested {
    let bytes: Vec<u8> = (0..5).flat_map(|_| 0..=u8::MAX).collect();
    same(&format!("{:016x}", xxh3(&bytes)), &"4844b009e164352e".to_owned())
}

fn damage_is_detected() -> Tested {
    let descriptor = DataObjectDescriptor::new(DType::U8, [64]);
    let mut bytes = message(&descriptor, &[0xa5; 64])?;
    let at = bytes.windows(64).position(|part| part == [0xa5; 64]).ok_or("payload not found")?;
    bytes[at + 32] ^= 1;
    let message = Message::from_bytes(NAME, bytes).map_err(error_text)?;
    match message.object(0).and_then(|object| object.decode()) {
        Err(error) if matches!(error.kind(), ErrorKind::Common(CommonError::Checksum { .. })) => Ok(()),
        Err(error) => Err(error_text(error)),
        Ok(_) => Err("damaged bytes were decoded".to_owned()),
    }
}

fn streaming() -> Tested {
    let descriptor = DataObjectDescriptor::new(DType::I16, [3]);
    let write = || {
        let mut encoder = StreamingEncoder::new(Vec::new(), &metadata(), EncodeOptions::new())?;
        encoder.write_preceder([("step".to_owned(), 6.into())].into())?;
        encoder.write_object(&descriptor, &[1, 0, 2, 0, 3, 0])?;
        encoder.finish()
    };
    let bytes = write().map_err(|error: Error| error_text(error))?;
    let mut decoder = Decoder::new();
    let mut seen = Vec::new();
    for piece in bytes.chunks(7) {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().map_err(error_text)? {
            match event {
                Event::Object(object) => seen.push(object.payload().to_vec()),
                Event::End { metadata, .. } => {
                    let step = metadata.get_in_object(0, "step");
                    same(&step, &Some(&Value::from(6)))?;
                }
                _ => {}
            }
        }
    }
    decoder.finish().map_err(error_text)?;
    same(&seen, &vec![vec![1, 0, 2, 0, 3, 0]])
}

fn scanning() -> Tested {
    let message = message(&DataObjectDescriptor::new(DType::U8, [2]), &[7, 8])?;
    let bytes = [b"junk TENSOG".as_slice(), &message, b"more", &message, b"TENSOGRM"].concat();
    let found: Vec<String> = scan(&bytes).into_iter().map(|span| span.to_string()).collect();
    let (first, len) = (11, message.len());
    let second = first + len + 4;
    same(&found, &vec![format!("{first}..{}", first + len), format!("{second}..{}", second + len)])
}

fn canonical() -> Tested {
    let pair = |key: &str, value: Value| (Value::from(key), value);
    let value = Value::Map(vec![pair("bb", 1.5.into()), pair("a", 24.into()), pair("b", Value::Null)]);
    let bytes = cbor::encode(&value);
    same(&&*bytes, &b"\xa3\x61a\x18\x18\x61b\xf6\x62bb\xf9\x3e\x00".as_slice())?;
    verify_canonical_cbor(&bytes).map_err(error_text)?;
    match verify_canonical_cbor(b"\xa1\x61a\x18\x05") {
        Ok(()) => Err("a non-canonical integer was accepted".to_owned()),
        Err(_) => Ok(()),
    }
}
