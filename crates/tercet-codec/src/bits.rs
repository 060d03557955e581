//! Bitmap codecs. Bits are packed: the first element is the highest bit of the first byte.
//!
//! Each codec has two forms. `encode` and `decode` are given the number of bits; the `_counted` pair stores it first as a
//! big-endian `u32` and counts whole bytes, including padding.

pub mod rle;
pub mod roaring;

use crate::CodecError;

/// Number of bytes of `n` packed bits.
pub const fn packed_bytes(n: u64) -> u64 {
    n.div_ceil(8)
}

/// Rejects `bits` that are not exactly the bytes of `n` bits.
fn check_room(codec: &'static str, bits: &[u8], n: u64) -> Result<(), CodecError> {
    let (expected, found) = (packed_bytes(n), bits.len() as u64);
    if expected == found { Ok(()) } else { Err(CodecError::WrongLength { codec, expected, found }) }
}

/// The count stored before `bytes`, in bits.
fn count_of(codec: &'static str, bytes: &[u8]) -> Result<u32, CodecError> {
    let count = (bytes.len() as u64).checked_mul(8).and_then(|bits| u32::try_from(bits).ok());
    count.ok_or_else(|| CodecError::Encode {
        codec,
        detail: format!("{} bytes are too many bits", bytes.len()),
    })
}

/// Splits the count from the bitmap after it; the count must fill `bytes` up to its last byte.
fn split_count<'a>(codec: &'static str, blob: &'a [u8], bytes: &[u8]) -> Result<(u64, &'a [u8]), CodecError> {
    let Some((count, set)) = blob.split_first_chunk::<4>() else {
        return Err(CodecError::Decode {
            codec,
            detail: format!("{} bytes cannot hold the count", blob.len()),
        });
    };
    let count = u64::from(u32::from_be_bytes(*count));
    let (expected, found) = (bytes.len() as u64, packed_bytes(count));
    if found == expected { Ok((count, set)) } else { Err(CodecError::WrongLength { codec, expected, found }) }
}
