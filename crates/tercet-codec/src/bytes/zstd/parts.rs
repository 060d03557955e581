//! Partial decoding from the start of a payload.

use std::cell::RefCell;
use std::ops::ControlFlow;

use ::zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use crate::CodecError;

/// Maximum bytes of a block, and so of a part.
const PART_BYTES: usize = 128 << 10;

/// Frames with a larger window are rejected: they need more memory than is cached.
const MAX_WINDOW_LOG: u32 = 24;

/// A decoder and the memory of a part.
struct Decoder {
    context: DCtx<'static>,
    part: Vec<u8>,
}

/// Decodes `stored` part by part, in order, until `each` has enough. Returns whether it stopped early: then the bytes after
/// the last part, including the frame checksum, were not checked.
pub fn decode_parts(
    stored: &[u8],
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<bool, CodecError> {
    thread_local! {
        static DECODER: RefCell<Option<Decoder>> = const { RefCell::new(None) };
    }
    let failed = |detail: &str| CodecError::Decode { codec: "zstd", detail: detail.to_owned() };
    let failed_with = |code: usize| failed(get_error_name(code));
    // Taken from the cache while in use, so that `each` may decode, too.
    let mut decoder = match DECODER.take() {
        Some(decoder) => decoder,
        None => new_decoder()?,
    };
    decoder.context.reset(ResetDirective::SessionOnly).map_err(failed_with)?;
    let mut input = InBuffer::around(stored);
    let mut broke_off = false;
    let hint = loop {
        decoder.part.clear();
        let before = input.pos();
        let mut output = OutBuffer::around(&mut decoder.part);
        let hint = match decoder.context.decompress_stream(&mut output, &mut input) {
            Ok(hint) => hint,
            Err(code) => return Err(failed_with(code)),
        };
        if !decoder.part.is_empty() && each(&decoder.part).is_break() {
            broke_off = true;
            break hint;
        }
        if input.pos() == stored.len() && (hint == 0 || decoder.part.len() < PART_BYTES) {
            break hint;
        }
        if input.pos() == before && decoder.part.is_empty() {
            return Err(failed("no progress"));
        }
    };
    DECODER.set(Some(decoder));
    if hint != 0 && !broke_off {
        return Err(failed("incomplete frame"));
    }
    Ok(broke_off)
}

fn new_decoder() -> Result<Decoder, CodecError> {
    let no_memory = || CodecError::OutOfMemory { codec: "zstd", bytes: PART_BYTES as u64 };
    let mut context = DCtx::try_create().ok_or_else(no_memory)?;
    context
        .set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))
        .map_err(|code| CodecError::Decode { codec: "zstd", detail: get_error_name(code).to_owned() })?;
    let mut part = Vec::new();
    part.try_reserve_exact(PART_BYTES).map_err(|_| no_memory())?;
    Ok(Decoder { context, part })
}

#[cfg(test)]
mod tests {
    use super::super::{encode, encode_frame, encode_long_distance};
    use super::*;

    fn text(len: usize) -> Vec<u8> {
        (0..)
            .flat_map(|i: u32| format!("{} ", i.wrapping_mul(2_654_435_761) >> 20).into_bytes())
            .take(len)
            .collect()
    }

    /// The concatenated parts, until there are `enough` bytes.
    fn beginning(stored: &[u8], enough: usize) -> Result<(Vec<u8>, bool), CodecError> {
        let mut out = Vec::new();
        let broke_off = decode_parts(stored, |part| {
            out.extend_from_slice(part);
            if out.len() >= enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((out, broke_off))
    }

    #[test]
    fn parts_are_the_beginning() {
        for len in [0, 1, 1000, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3_000_000] {
            let raw = text(len);
            let (mut one, mut far, mut streamed) = (Vec::new(), Vec::new(), Vec::new());
            encode_frame(&raw, 3, &mut one).unwrap();
            encode_long_distance(&raw, 3, &mut far).unwrap();
            encode(&raw, 3, &mut streamed).unwrap();
            for stored in [one, far, streamed] {
                assert!(beginning(&stored, usize::MAX).unwrap() == (raw.clone(), false), "{len} bytes");
                for enough in [1, 10, 200_000, len / 2 + 1, len] {
                    let (some, broke_off) = beginning(&stored, enough).unwrap();
                    assert!(raw.starts_with(&some));
                    assert_eq!(broke_off, len > 0 && enough <= len);
                    assert!(some.len() >= enough.min(len) && some.len() < enough.saturating_add(PART_BYTES));
                }
            }
        }
    }

    #[test]
    fn several_frames_are_one_stream() {
        let mut stored = Vec::new();
        encode(b"one", 3, &mut stored).unwrap();
        encode_frame(b"two", 3, &mut stored).unwrap();
        assert_eq!(beginning(&stored, usize::MAX).unwrap(), (b"onetwo".to_vec(), false));
    }

    #[test]
    fn invalid_streams_are_rejected() {
        let raw = text(300_000);
        let mut stored = Vec::new();
        encode_frame(&raw, 3, &mut stored).unwrap();
        for cut in [0, 3, 9, 1000, stored.len() / 2, stored.len() - 1] {
            assert!(beginning(&stored[..cut], usize::MAX).is_err(), "cut at {cut}");
        }
        let last = stored.len() - 1;
        stored[last] ^= 1;
        assert!(beginning(&stored, usize::MAX).is_err(), "the checksum is looked at");
        assert!(beginning(&stored, 1000).unwrap().1, "but not by those who need no more");
        stored[0] ^= 1;
        assert!(beginning(&stored, 1).is_err());
    }
}
