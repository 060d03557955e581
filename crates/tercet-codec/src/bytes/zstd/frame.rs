//! One-shot encoding of a frame.

use std::cell::RefCell;
use std::io::Cursor;

use ::zstd::zstd_safe::{CCtx, CDict, CParameter, SafeResult, compress_bound, get_error_name};

use crate::CodecError;

/// Appends one frame of `raw` to `out`, with a digested dictionary or a level.
pub(super) fn encode(raw: &[u8], rules: Rules<'_>, out: &mut Vec<u8>) -> Result<(), CodecError> {
    thread_local! {
        // Creating a compressor costs as much as compressing a small page: each thread caches one.
        static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    }
    ENCODER.with_borrow_mut(|kept| {
        // Taken from the cache while in use: after an error it is dropped, so it never refers to a freed dictionary.
        let mut encoder = match kept.take() {
            Some(encoder) => encoder,
            None => new_encoder()?,
        };
        match rules {
            Rules::Level(level) => set_level(&mut encoder, level)?,
            Rules::Far(level) => {
                set_level(&mut encoder, level)?;
                set_window(&mut encoder, window_log(raw.len()))?;
            }
            Rules::Prepared(dictionary) => {
                encoder.ref_cdict(dictionary).map_err(failed)?;
            }
        }
        compress(&mut encoder, raw, out)?;
        match rules {
            Rules::Level(_) => {}
            // 0 is the default of the level.
            Rules::Far(_) => set_window(&mut encoder, 0)?,
            Rules::Prepared(_) => {
                encoder.disable_dictionary().map_err(failed)?;
            }
        }
        *kept = Some(encoder);
        Ok(())
    })
}

/// Parameters of a frame.
#[derive(Clone, Copy)]
pub(super) enum Rules<'a> {
    Level(i32),
    /// A level with an unlimited match distance.
    Far(i32),
    /// A dictionary digested for a level.
    Prepared(&'a CDict<'static>),
}

/// Appends one frame of `raw` whose matches may be in `prefix`, which is raw content regardless of its bytes.
pub(super) fn encode_with_prefix(
    prefix: &[u8],
    raw: &[u8],
    level: i32,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    // Not the cached one: it must not outlive the prefix.
    let mut encoder: CCtx<'_> = new_encoder()?;
    set_level(&mut encoder, level)?;
    encoder.ref_prefix(prefix).map_err(failed)?;
    compress(&mut encoder, raw, out)
}

fn new_encoder() -> Result<CCtx<'static>, CodecError> {
    let mut encoder = CCtx::try_create().ok_or(CodecError::OutOfMemory { codec: "zstd", bytes: 0 })?;
    encoder.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
    Ok(encoder)
}

fn set_level(encoder: &mut CCtx<'_>, level: i32) -> Result<(), CodecError> {
    encoder.set_parameter(CParameter::CompressionLevel(level)).map(drop).map_err(failed)
}

fn set_window(encoder: &mut CCtx<'_>, log: u32) -> Result<(), CodecError> {
    encoder.set_parameter(CParameter::WindowLog(log)).map(drop).map_err(failed)
}

/// The window log that covers `len` bytes; 0 where that of every level does.
fn window_log(len: usize) -> u32 {
    // Levels from 1 on have at least this window.
    const MIN_BYTES: usize = 1 << 19;
    let covered = len.min(super::MAX_MATCH_DISTANCE).next_power_of_two();
    if covered <= MIN_BYTES { 0 } else { covered.trailing_zeros() }
}

fn compress(encoder: &mut CCtx<'_>, raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let bound = compress_bound(raw.len());
    out.try_reserve(bound).map_err(|_| CodecError::OutOfMemory { codec: "zstd", bytes: bound as u64 })?;
    let mut end = Cursor::new(out);
    end.set_position(end.get_ref().len() as u64);
    let result: SafeResult = encoder.compress2(&mut end, raw);
    result.map(drop).map_err(failed)
}

fn failed(code: usize) -> CodecError {
    CodecError::Encode { codec: "zstd", detail: get_error_name(code).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::{decode, encode_frame};
    use super::*;

    #[test]
    fn frames_carry_size_and_checksum() {
        let raw = [0x02, 0x03, 0x72, 0x65, 0x64, 0x04, 0x62, 0x6c, 0x75, 0x65];
        let header = [0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x0a, 0x51, 0x00, 0x00];
        let frame = [&header[..], &raw, &[0x1e, 0xf5, 0x36, 0xd6]].concat();
        let mut out = vec![9];
        encode_frame(&raw, 3, &mut out).unwrap();
        assert_eq!(out, [&[9], &frame[..]].concat());
        let mut back = [0; 10];
        decode(&frame, &mut back).unwrap();
        assert_eq!(back, raw);
        let mut damaged = frame.clone();
        damaged[12] ^= 1;
        assert!(decode(&damaged, &mut back).is_err(), "the checksum is looked at");
    }

    #[test]
    fn frames_do_not_depend_on_what_was_made_before() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        let frame = |raw: &[u8], level| {
            let mut out = Vec::new();
            encode_frame(raw, level, &mut out).unwrap();
            out
        };
        let fresh = std::thread::scope(|scope| scope.spawn(|| frame(&text, 3)).join().unwrap());
        frame(b"something else", 19);
        frame(&[], -3);
        assert_eq!(frame(&text, 3), fresh);
        assert_eq!(frame(&[], 3).len(), 13);
        decode(&frame(&[], 3), &mut []).unwrap();
    }

    #[test]
    fn a_prefix_is_content_and_nothing_else() {
        // Incompressible bytes, after the magic of a trained dictionary.
        let noise = (0..500u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[2]);
        let prefix: Vec<u8> = [0x37, 0xa4, 0x30, 0xec].into_iter().chain(noise).collect();
        let mut out = Vec::new();
        // A copy: libzstd ignores a prefix at the address of the payload.
        encode_with_prefix(&prefix, &prefix.clone(), 3, &mut out).unwrap();
        assert!(out.len() < 30, "{} bytes: found in the prefix", out.len());
    }
}
