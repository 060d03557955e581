//! Zstandard.
//!
//! [`encode`] uses the streaming interface: its frames have neither content size nor checksum and are identical to those of
//! other streaming writers at the same level. [`encode_frame`] encodes a frame in one call, with both. [`decode`] accepts any
//! sequence of frames, including skippable ones, and writes at most the length of its output. A [`Dictionary`] does the same
//! for payloads that are too small to be compressed alone.

mod dictionary;
#[cfg(feature = "zstd")]
mod frame;
#[cfg(feature = "zstd")]
mod parts;

pub use dictionary::{Dictionary, RAW_ID, TRAINED_IDS, train};
#[cfg(feature = "zstd")]
pub use parts::decode_parts;

use crate::CodecError;

/// The default level.
pub const DEFAULT_LEVEL: i32 = 3;

/// The levels of libzstd, fastest first.
pub const LEVELS: std::ops::RangeInclusive<i32> = -7..=22;

/// Maximum match distance of [`encode_long_distance`]: the default limit of decoders.
pub const MAX_MATCH_DISTANCE: usize = 1 << 27;

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "zstd")
}

/// Compresses `raw` and appends it to `out`.
#[cfg(feature = "zstd")]
pub fn encode(raw: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
    use std::cell::RefCell;

    use ::zstd::stream::raw::{Encoder, InBuffer, Operation as _, OutBuffer};

    thread_local! {
        // Creating a compressor costs as much as compressing a small chunk: each thread caches one.
        static ENCODER: RefCell<Option<(i32, Encoder<'static>)>> = const { RefCell::new(None) };
    }
    let failed = |error: std::io::Error| CodecError::Encode { codec: "zstd", detail: error.to_string() };
    ENCODER.with_borrow_mut(|kept| {
        let mut encoder = match kept.take() {
            Some((kept_level, mut encoder)) if kept_level == level => {
                encoder.reinit().map_err(failed)?;
                encoder
            }
            _ => Encoder::new(level).map_err(failed)?,
        };
        let mut input = InBuffer::around(raw);
        // An empty frame is only ended.
        while input.pos() < raw.len() {
            // Feeding everything before ending the frame keeps it free of a content size.
            grow(out, input.src.len() - input.pos());
            let at = out.len();
            let mut output = OutBuffer::around_pos(out, at);
            encoder.run(&mut input, &mut output).map_err(failed)?;
        }
        loop {
            grow(out, 0);
            let at = out.len();
            let mut output = OutBuffer::around_pos(out, at);
            if encoder.finish(&mut output, true).map_err(failed)? == 0 {
                break;
            }
        }
        *kept = Some((level, encoder));
        Ok(())
    })
}

/// Reserves room for the compressed form of `left` more bytes.
#[cfg(feature = "zstd")]
fn grow(out: &mut Vec<u8>, left: usize) {
    let room = (left / 2).clamp(1 << 10, 1 << 20);
    if out.capacity() - out.len() < room {
        out.reserve(room);
    }
}

/// Appends one frame of `raw` with content size and checksum to `out`.
#[cfg(feature = "zstd")]
pub fn encode_frame(raw: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
    frame::encode(raw, frame::Rules::Level(level), out)
}

/// Appends one frame of `raw` with content size and checksum to `out`, with matches as far back as `raw` goes (up to
/// [`MAX_MATCH_DISTANCE`] bytes), regardless of the window of the level.
#[cfg(feature = "zstd")]
pub fn encode_long_distance(raw: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
    frame::encode(raw, frame::Rules::Far(level), out)
}

/// Decodes `stored` into exactly `raw.len()` bytes.
#[cfg(feature = "zstd")]
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    let expected = raw.len();
    decode_to(stored, raw, expected)
}

/// Replaces the content of `raw` by the `len` bytes of `stored`, without clearing the memory before. After an error `raw` is
/// empty.
#[cfg(feature = "zstd")]
pub fn decode_new(stored: &[u8], len: usize, raw: &mut Vec<u8>) -> Result<(), CodecError> {
    into_new(len, raw, |raw| decode_to(stored, raw, len))
}

/// Calls `decode` to fill a vector with room for `len` bytes; after an error it is empty.
#[cfg(feature = "zstd")]
fn into_new(
    len: usize,
    raw: &mut Vec<u8>,
    decode: impl FnOnce(&mut Vec<u8>) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    raw.clear();
    let bytes = len as u64;
    raw.try_reserve_exact(len).map_err(|_| CodecError::OutOfMemory { codec: "zstd", bytes })?;
    let done = decode(raw);
    if done.is_err() {
        raw.clear();
    }
    done
}

#[cfg(feature = "zstd")]
fn decode_to<B: ::zstd::zstd_safe::WriteBuf + ?Sized>(
    stored: &[u8],
    raw: &mut B,
    len: usize,
) -> Result<(), CodecError> {
    use std::cell::RefCell;

    use ::zstd::bulk::Decompressor;

    thread_local! {
        static DECODER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let failed = |detail: String| CodecError::Decode { codec: "zstd", detail };
    if stored.is_empty() {
        return Err(failed("no frame".to_owned()));
    }
    let found = DECODER.with_borrow_mut(|kept| {
        let mut decoder = match kept.take() {
            Some(decoder) => decoder,
            None => Decompressor::new()?,
        };
        let found = decoder.decompress_to_buffer(stored, raw)?;
        *kept = Some(decoder);
        std::io::Result::Ok(found)
    });
    match found {
        Ok(found) if found == len => Ok(()),
        Ok(found) => {
            let (expected, found) = (len as u64, found as u64);
            Err(CodecError::WrongLength { codec: "zstd", expected, found })
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Compresses `raw` and appends it to `out`.
#[cfg(not(feature = "zstd"))]
pub fn encode(_raw: &[u8], _level: i32, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

/// Appends one frame of `raw` with content size and checksum to `out`.
#[cfg(not(feature = "zstd"))]
pub fn encode_frame(_raw: &[u8], _level: i32, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

/// Appends one frame of `raw` with content size and checksum to `out`.
#[cfg(not(feature = "zstd"))]
pub fn encode_long_distance(_raw: &[u8], _level: i32, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

/// Replaces the content of `raw` by the `len` bytes of `stored`.
#[cfg(not(feature = "zstd"))]
pub fn decode_new(_stored: &[u8], _len: usize, _raw: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

/// Decodes `stored` part by part.
#[cfg(not(feature = "zstd"))]
pub fn decode_parts(
    _stored: &[u8],
    _each: impl FnMut(&[u8]) -> std::ops::ControlFlow<()>,
) -> Result<bool, CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

/// Decodes `stored` into exactly `raw.len()` bytes.
#[cfg(not(feature = "zstd"))]
pub fn decode(_stored: &[u8], _raw: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "zstd", feature: "zstd" })
}

#[cfg(test)]
#[cfg(feature = "zstd")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(raw, DEFAULT_LEVEL, &mut out).unwrap();
        out
    }

    #[test]
    fn frames_equal_the_streaming_encoder() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        for len in [0, 1, 16, 1000, 131_072, 131_073, text.len()] {
            let expected = ::zstd::stream::encode_all(&text[..len], DEFAULT_LEVEL).unwrap();
            assert_eq!(stored(&text[..len]), expected, "{len} bytes");
        }
    }

    #[test]
    fn several_frames_are_one_stream() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let parts = [&skippable[..], &stored(b"one"), &skippable, &stored(b"two"), &skippable].concat();
        let mut raw = [0; 6];
        decode(&parts, &mut raw).unwrap();
        assert_eq!(&raw, b"onetwo");
    }

    #[test]
    fn invalid_streams_are_rejected() {
        let whole = stored(&[7; 1000]);
        let mut raw = [0; 1000];
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], &mut raw).is_err(), "cut at {cut}");
        }
        assert!(decode(&[&whole[..], b"x"].concat(), &mut raw).is_err(), "trailing bytes");
        assert!(decode(&whole, &mut raw[..999]).is_err(), "too long");
        assert!(matches!(decode(&whole, &mut [0; 1001]), Err(CodecError::WrongLength { found: 1000, .. })));
        assert!(decode(&[], &mut []).is_err(), "empty");
        decode(&whole, &mut raw).unwrap();
        for capacity in [0, 10, 2000] {
            let mut new = Vec::with_capacity(capacity);
            new.extend_from_slice(b"before");
            decode_new(&whole, 1000, &mut new).unwrap();
            assert_eq!(new, raw);
            for len in [0, 999, 1001] {
                assert!(decode_new(&whole, len, &mut new).is_err(), "{len} bytes");
                assert!(new.is_empty());
            }
            assert!(decode_new(&whole[..9], 1000, &mut new).is_err());
        }
    }

    proptest! {
        #[test]
        fn round_trips(raw in prop::collection::vec(any::<u8>(), 0..5000), level in -3i32..8) {
            let mut out = vec![1, 2, 3];
            encode(&raw, level, &mut out).unwrap();
            prop_assert_eq!(&out[..3], &[1, 2, 3]);
            let mut back = vec![0; raw.len()];
            decode(&out[3..], &mut back).unwrap();
            prop_assert_eq!(back, raw);
        }
    }
}
