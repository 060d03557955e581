//! LZ4 blocks with a length prefix.
//!
//! A stream is the number of raw bytes as a little-endian `u32`, then one LZ4 block (not the LZ4 frame format). The
//! prefix is an upper bound: some writers round it up, so [`decode`] accepts a larger one as long as the block decodes to
//! exactly the expected length. [`block`] is the block alone.

pub mod block;

use crate::CodecError;

/// Maximum raw bytes of one stream: its length field has 32 bits.
pub const MAX_RAW_BYTES: u64 = u32::MAX as u64;

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "lz4")
}

/// Compresses `raw` and appends it to `out`.
pub fn encode(raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    // Longer input is rejected by the block encoder.
    let len = u32::try_from(raw.len()).unwrap_or(u32::MAX);
    block::encode_with_prefix(&len.to_le_bytes(), raw, out)
}

/// Decodes `stored` into exactly `raw.len()` bytes.
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    let Some((prefix, block)) = stored.split_first_chunk::<PREFIX_BYTES>() else {
        let detail = format!("{} bytes cannot hold the length", stored.len());
        return Err(CodecError::Decode { codec: "lz4", detail });
    };
    let expected = raw.len() as u64;
    let bound = u64::from(u32::from_le_bytes(*prefix));
    if bound < expected {
        return Err(CodecError::WrongLength { codec: "lz4", expected, found: bound });
    }
    block::decode_block(block, raw)
}

const PREFIX_BYTES: usize = 4;

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

    fn with_prefix(stored: &[u8], prefix: u32) -> Vec<u8> {
        [&prefix.to_le_bytes(), &stored[PREFIX_BYTES..]].concat()
    }

    #[test]
    fn nothing_is_five_bytes() {
        assert_eq!(stored(&[]), [0; 5]);
        decode(&[0; 5], &mut []).unwrap();
        assert!(decode(&[0; 4], &mut []).is_err(), "the block is missing");
    }

    #[test]
    fn the_length_is_a_bound() {
        let whole = stored(&[7; 1000]);
        let mut raw = [0; 1000];
        for prefix in [1000, 1001, u32::MAX] {
            raw.fill(0);
            decode(&with_prefix(&whole, prefix), &mut raw).unwrap();
            assert_eq!(raw, [7; 1000]);
        }
        assert_eq!(
            decode(&with_prefix(&whole, 999), &mut raw),
            Err(CodecError::WrongLength { codec: "lz4", expected: 1000, found: 999 })
        );
    }

    #[test]
    fn invalid_streams_are_rejected() {
        let text: Vec<u8> = (0..1000u32).flat_map(|i| (i * i / 7).to_le_bytes()).collect();
        let whole = stored(&text);
        let mut raw = vec![0; text.len()];
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], &mut raw).is_err(), "cut at {cut}");
        }
        assert!(decode(&[&whole[..], b"x"].concat(), &mut raw).is_err(), "trailing bytes");
        assert!(decode(&whole, &mut raw[..text.len() - 1]).is_err(), "too long");
        let longer = with_prefix(&whole, u32::MAX);
        assert!(matches!(
            decode(&longer, &mut vec![0; text.len() + 1]),
            Err(CodecError::WrongLength { found: 4000, .. })
        ));
        decode(&whole, &mut raw).unwrap();
        assert_eq!(raw, text);
    }

    #[test]
    fn flipped_bytes_never_panic() {
        let text: Vec<u8> = (0..300u32).flat_map(|i| (i / 5).to_le_bytes()).collect();
        let mut whole = stored(&text);
        let mut raw = vec![0; text.len()];
        for at in 0..whole.len() {
            for flip in [1, 0x0f, 0x10, 0x80, 0xff] {
                whole[at] ^= flip;
                // Most flips are detected; those inside literals are left to the container's hash.
                _ = decode(&whole, &mut raw);
                whole[at] ^= flip;
            }
        }
        decode(&whole, &mut raw).unwrap();
    }

    proptest! {
        #[test]
        fn round_trips(raw in prop::collection::vec(0u8..9, 0..5000)) {
            let mut out = vec![1, 2, 3];
            encode(&raw, &mut out).unwrap();
            prop_assert_eq!(&out[..3], &[1, 2, 3]);
            prop_assert_eq!(&out[3..], stored(&raw));
            let mut back = vec![0; raw.len()];
            decode(&out[3..], &mut back).unwrap();
            prop_assert_eq!(back, raw);
        }
    }
}
