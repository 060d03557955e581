//! A single LZ4 block: no frame, no length, no checksum. Empty input has no block.

use crate::CodecError;

/// Appends the block of `raw` to `out`; nothing if `raw` is empty.
pub fn encode(raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    if raw.is_empty() { Ok(()) } else { encode_with_prefix(&[], raw, out) }
}

/// Decodes the block `stored` into exactly `raw.len()` bytes.
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    if stored.is_empty() && raw.is_empty() { Ok(()) } else { decode_block(stored, raw) }
}

/// Appends `prefix` and the block of `raw`, which is not empty even if `raw` is.
#[cfg(feature = "lz4")]
pub(super) fn encode_with_prefix(prefix: &[u8], raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    use super::MAX_RAW_BYTES;
    use lz4_flex::block::{compress_into, get_maximum_output_size};

    if raw.len() as u64 > MAX_RAW_BYTES {
        return Err(CodecError::Encode {
            codec: "lz4",
            detail: format!("{} bytes are more than the {MAX_RAW_BYTES} that one block holds", raw.len()),
        });
    }
    // The bound is larger than the input while the block is mostly smaller: untouched zeroed memory costs nothing, whereas
    // growing `out` would write all of it.
    let mut stored = vec![0; prefix.len() + get_maximum_output_size(raw.len())];
    stored[..prefix.len()].copy_from_slice(prefix);
    let block_bytes = compress_into(raw, &mut stored[prefix.len()..])
        .map_err(|error| CodecError::Encode { codec: "lz4", detail: error.to_string() })?;
    stored.truncate(prefix.len() + block_bytes);
    if out.is_empty() && out.capacity() < stored.len() {
        stored.shrink_to_fit();
        *out = stored;
    } else {
        out.extend_from_slice(&stored);
    }
    Ok(())
}

/// Decodes a block, which is not empty even if `raw` is.
#[cfg(feature = "lz4")]
pub(super) fn decode_block(block: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    use lz4_flex::block::{DecompressError, decompress_into};

    let failed = |detail: String| CodecError::Decode { codec: "lz4", detail };
    let expected = raw.len() as u64;
    match decompress_into(block, raw) {
        Ok(found) if found as u64 == expected => Ok(()),
        Ok(found) => Err(CodecError::WrongLength { codec: "lz4", expected, found: found as u64 }),
        Err(DecompressError::OutputTooSmall { .. }) => {
            Err(failed(format!("the block decodes to more than {expected} bytes")))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(not(feature = "lz4"))]
pub(super) fn encode_with_prefix(_prefix: &[u8], _raw: &[u8], _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "lz4", feature: "lz4" })
}

#[cfg(not(feature = "lz4"))]
pub(super) fn decode_block(_block: &[u8], _raw: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "lz4", feature: "lz4" })
}

#[cfg(test)]
#[cfg(feature = "lz4")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(raw, &mut out).unwrap();
        out
    }

    #[test]
    fn a_known_block_is_read() {
        let block = [0x4f, 0x61, 0x62, 0x63, 0x64, 0x04, 0x00, 0x04, 0x50, 0x64, 0x61, 0x62, 0x63, 0x64];
        let mut raw = [0; 32];
        decode(&block, &mut raw).unwrap();
        assert_eq!(&raw, b"abcdabcdabcdabcdabcdabcdabcdabcd");
        // Another writer may encode differently; the block stays valid.
        let ours = stored(&raw);
        assert!(ours.len() < 18, "{} bytes", ours.len());
        decode(&ours, &mut raw).unwrap();
        assert_eq!(raw, *b"abcd".repeat(8));
    }

    #[test]
    fn no_bytes_are_no_block() {
        assert_eq!(stored(&[]), []);
        decode(&[], &mut []).unwrap();
        assert!(decode(&[], &mut [0]).is_err());
    }

    #[test]
    fn it_is_the_stream_without_its_length() {
        let raw: Vec<u8> = (0..3000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let mut with_length = Vec::new();
        super::super::encode(&raw, &mut with_length).unwrap();
        assert_eq!(stored(&raw), with_length[4..]);
    }

    #[test]
    fn invalid_blocks_are_rejected() {
        let text: Vec<u8> = (0..300u32).flat_map(|i| (i * i / 7).to_le_bytes()).collect();
        let mut whole = stored(&text);
        let mut raw = vec![0; text.len()];
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], &mut raw).is_err(), "cut at {cut}");
        }
        assert!(decode(&[&whole[..], b"x"].concat(), &mut raw).is_err(), "trailing bytes");
        assert!(decode(&whole, &mut raw[..text.len() - 1]).is_err(), "too long");
        assert!(decode(&whole, &mut []).is_err(), "too long for nothing");
        let error = decode(&whole, &mut vec![0; text.len() + 1]).unwrap_err();
        assert_eq!(error, CodecError::WrongLength { codec: "lz4", expected: 1201, found: 1200 });
        for at in 0..whole.len() {
            for flip in [1, 0x0f, 0x10, 0x80, 0xff] {
                whole[at] ^= flip;
                // Most flips are detected; those inside literals are left to the container's checksum.
                _ = decode(&whole, &mut raw);
                whole[at] ^= flip;
            }
        }
        decode(&whole, &mut raw).unwrap();
        assert_eq!(raw, text);
    }

    proptest! {
        #[test]
        fn round_trips(raw in prop::collection::vec(0u8..9, 0..5000)) {
            let mut out = vec![1, 2, 3];
            encode(&raw, &mut out).unwrap();
            prop_assert_eq!(&out[..3], &[1, 2, 3]);
            let mut back = vec![0; raw.len()];
            decode(&out[3..], &mut back).unwrap();
            prop_assert_eq!(back, raw);
        }
    }
}
