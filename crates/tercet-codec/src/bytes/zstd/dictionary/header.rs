//! Dictionary ID in frame headers.
//!
//! After four bytes of magic comes a descriptor: its low two bits give the length of the ID (0, 1, 2 or 4 bytes), bit 5 marks
//! a missing window byte. The ID follows the descriptor and the window byte.

use ::zstd::zstd_safe::{find_frame_compressed_size, get_error_name};

use super::RAW_ID;
use crate::CodecError;

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DESCRIPTOR: usize = FRAME_MAGIC.len();
const SINGLE_SEGMENT: u8 = 1 << 5;
const ID_BITS: u8 = 0b11;

/// A frame and the position of its dictionary ID; skippable frames have none.
struct Frame<'a> {
    bytes: &'a [u8],
    id: Option<(std::ops::Range<usize>, u32)>,
}

/// The frames of `stored`.
fn frames(mut stored: &[u8]) -> impl Iterator<Item = Result<Frame<'_>, CodecError>> {
    std::iter::from_fn(move || {
        if stored.is_empty() {
            return None;
        }
        let len = match find_frame_compressed_size(stored) {
            Ok(len) => len.clamp(1, stored.len()),
            Err(code) => {
                stored = &[];
                return Some(Err(failed(get_error_name(code).to_owned())));
            }
        };
        let (bytes, rest) = stored.split_at(len);
        stored = rest;
        Some(Ok(Frame { bytes, id: id_of(bytes) }))
    })
}

fn id_of(frame: &[u8]) -> Option<(std::ops::Range<usize>, u32)> {
    let &descriptor = frame.strip_prefix(&FRAME_MAGIC)?.first()?;
    let start = id_start(descriptor);
    let len = [0, 1, 2, 4][usize::from(descriptor & ID_BITS)];
    let mut id = [0; 4];
    id[..len].copy_from_slice(frame.get(start..start + len)?);
    Some((start..start + len, u32::from_le_bytes(id)))
}

fn id_start(descriptor: u8) -> usize {
    DESCRIPTOR + if descriptor & SINGLE_SEGMENT == 0 { 2 } else { 1 }
}

/// Inserts the ID of raw content into the frame that starts at `start` of `out` and has no ID.
pub(super) fn insert_raw_id(out: &mut Vec<u8>, start: usize) -> Result<(), CodecError> {
    match id_of(&out[start..]) {
        Some((range, 0)) if range.is_empty() => {
            out[start + DESCRIPTOR] |= 1;
            out.insert(start + range.start, u8::try_from(RAW_ID).unwrap_or(u8::MAX));
            Ok(())
        }
        _ => {
            let detail = "the frame has no room for a dictionary ID".to_owned();
            Err(CodecError::Encode { codec: "zstd", detail })
        }
    }
}

/// Appends the frames of `stored` to `out` without the ID of raw content. A frame without ID was encoded without dictionary or
/// omits it; another ID is rejected.
pub(super) fn remove_raw_id(stored: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    if stored.is_empty() {
        return Err(failed("no frame".to_owned()));
    }
    for frame in frames(stored) {
        let Frame { bytes, id } = frame?;
        match id {
            Some((range, RAW_ID)) => {
                let at = out.len() + DESCRIPTOR;
                out.extend_from_slice(&bytes[..range.start]);
                out[at] &= !ID_BITS;
                out.extend_from_slice(&bytes[range.end..]);
            }
            None => out.extend_from_slice(bytes),
            Some((range, 0)) if range.is_empty() => out.extend_from_slice(bytes),
            Some((_, other)) => return Err(other_dictionary(other, RAW_ID)),
        }
    }
    Ok(())
}

/// Rejects `stored` if one of its frames was not encoded with dictionary `id`.
pub(super) fn insist_on(stored: &[u8], id: u32) -> Result<(), CodecError> {
    if stored.is_empty() {
        return Err(failed("no frame".to_owned()));
    }
    for frame in frames(stored) {
        match frame?.id {
            Some((_, found)) if found != id => return Err(other_dictionary(found, id)),
            _ => {}
        }
    }
    Ok(())
}

fn other_dictionary(found: u32, wanted: u32) -> CodecError {
    let found = if found == 0 { "no dictionary".to_owned() } else { format!("dictionary {found}") };
    failed(format!("the frame has {found} instead of dictionary {wanted}"))
}

pub(super) fn failed(detail: String) -> CodecError {
    CodecError::Decode { codec: "zstd", detail }
}
