//! Roaring bitmaps in their portable serialization.
//!
//! Positions are stored per 65,536 as an array, as runs or as a bitmap, whichever is smallest. [`decode`] accepts any mix
//! of the three and allocates nothing.

#[cfg(feature = "roaring")]
mod portable;

use crate::CodecError;

#[cfg(feature = "roaring")]
const CODEC: &str = "roaring";

/// Maximum number of bits.
pub const MAX_BITS: u64 = u32::MAX as u64;

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "roaring")
}

/// Encodes the first `n` of the packed `bits` and appends them to `out`; spare bits are ignored.
#[cfg(feature = "roaring")]
pub fn encode(bits: &[u8], n: u64, out: &mut Vec<u8>) -> Result<(), CodecError> {
    super::check_room(CODEC, bits, n)?;
    if n > MAX_BITS {
        return Err(CodecError::Encode {
            codec: CODEC,
            detail: format!("{n} bits are more than {MAX_BITS}"),
        });
    }
    let mut set = bitmap(bits, n);
    set.optimize();
    set.serialize_into(out).map_err(|error| CodecError::Encode { codec: CODEC, detail: error.to_string() })
}

/// The bitmap of packed bits: the library expects the first position in the lowest bit.
#[cfg(feature = "roaring")]
fn bitmap(bits: &[u8], n: u64) -> ::roaring::RoaringBitmap {
    let mut reversed: Vec<u8> = bits.iter().map(|byte| byte.reverse_bits()).collect();
    if let (Some(last), used @ 1..) = (reversed.last_mut(), n % 8) {
        *last &= !(0xff << used);
    }
    ::roaring::RoaringBitmap::from_lsb0_bytes(0, &reversed)
}

/// Decodes positions below `n` into `bits`, which has the bytes for them; trailing bytes are ignored.
#[cfg(feature = "roaring")]
pub fn decode(blob: &[u8], n: u64, bits: &mut [u8]) -> Result<(), CodecError> {
    super::check_room(CODEC, bits, n)?;
    let failed = |detail: String| CodecError::Decode { codec: CODEC, detail };
    if n > MAX_BITS {
        return Err(failed(format!("{n} bits are more than {MAX_BITS}")));
    }
    let n = usize::try_from(n).map_err(|_| failed(format!("{n} bits")))?;
    bits.fill(0);
    portable::read(blob, n, bits).map_err(failed)
}

/// Appends all bits of `bytes`, including padding, after their count.
#[cfg(feature = "roaring")]
pub fn encode_counted(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let count = super::count_of(CODEC, bytes)?;
    out.extend_from_slice(&count.to_be_bytes());
    encode(bytes, u64::from(count), out)
}

/// Decodes a counted bitmap into `bytes`; the count may end anywhere in the last byte.
#[cfg(feature = "roaring")]
pub fn decode_counted(blob: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let (count, set) = super::split_count(CODEC, blob, bytes)?;
    decode(set, count, bytes)
}

/// Encodes the first `n` of the packed `bits` and appends them to `out`; spare bits are ignored.
#[cfg(not(feature = "roaring"))]
pub fn encode(_bits: &[u8], _n: u64, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "roaring", feature: "roaring" })
}

/// Decodes positions below `n` into `bits`, which has the bytes for them; trailing bytes are ignored.
#[cfg(not(feature = "roaring"))]
pub fn decode(_blob: &[u8], _n: u64, _bits: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "roaring", feature: "roaring" })
}

/// Appends all bits of `bytes`, including padding, after their count.
#[cfg(not(feature = "roaring"))]
pub fn encode_counted(_bytes: &[u8], _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "roaring", feature: "roaring" })
}

/// Decodes a counted bitmap into `bytes`; the count may end anywhere in the last byte.
#[cfg(not(feature = "roaring"))]
pub fn decode_counted(_blob: &[u8], _bytes: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: "roaring", feature: "roaring" })
}

#[cfg(test)]
#[cfg(feature = "roaring")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bits: &[u8], n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        encode(bits, n, &mut out).unwrap();
        out
    }

    fn is_set(bits: &[u8], at: usize) -> bool {
        bits[at / 8] >> (7 - at % 8) & 1 == 1
    }

    /// The bitmap, position by position.
    fn slow(bits: &[u8], n: u32) -> Vec<u8> {
        let mut set: ::roaring::RoaringBitmap = (0..n).filter(|&at| is_set(bits, at as usize)).collect();
        set.optimize();
        let mut out = Vec::new();
        set.serialize_into(&mut out).unwrap();
        out
    }

    #[test]
    fn the_counted_form_includes_the_padding() {
        let mut out = Vec::new();
        encode_counted(&[0xb0, 0x40], &mut out).unwrap();
        let portable = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0x10, 0, 0, 0, 0, 0, 2, 0, 3, 0, 9, 0];
        assert_eq!(out, [&[0, 0, 0, 16][..], &portable].concat());
        let mut back = [0xff; 2];
        decode_counted(&out, &mut back).unwrap();
        assert_eq!(back, [0xb0, 0x40]);
        out[3] = 10;
        decode_counted(&out, &mut back).unwrap();
        out[3] = 9;
        assert!(decode_counted(&out, &mut back).is_err(), "position 9 of 9 bits");
        out[3] = 8;
        assert!(decode_counted(&out, &mut back).is_err(), "one byte for two");
    }

    #[test]
    fn positions_stay_inside() {
        let blob = encoded(&[0, 1], 16);
        let mut bits = [0; 2];
        decode(&blob, 16, &mut bits).unwrap();
        assert_eq!(bits, [0, 1]);
        assert!(decode(&blob, 15, &mut bits).is_err());
        decode(&[&blob[..], b"junk"].concat(), 16, &mut bits).unwrap();
        assert!(decode(&blob, 17, &mut bits).is_err(), "too little room");
        assert_eq!(encoded(&[0, 1], 15), encoded(&[0, 0], 16), "spare bits are not positions");
        decode(&encoded(&[], 0), 0, &mut []).unwrap();
    }

    #[test]
    fn all_containers_round_trip() {
        // An array, runs, a bitmap, an empty range, and a full range that ends inside a byte.
        let n = 5 * 65_536 - 3;
        let mut bits = vec![0_u8; 40_960];
        for at in (0..8192).step_by(700) {
            bits[at] = 0x11;
        }
        bits[9000..9500].fill(0xff);
        for (at, byte) in bits[16_384..24_576].iter_mut().enumerate() {
            *byte = (at * at % 251).to_le_bytes()[0];
        }
        bits[32_768..].fill(0xff);
        bits[40_959] = 0xf8;
        let blob = encoded(&bits, n);
        assert_eq!(blob, slow(&bits, u32::try_from(n).unwrap()));
        let mut back = vec![0xff; bits.len()];
        decode(&blob, n, &mut back).unwrap();
        assert_eq!(back, bits);
        for cut in (0..blob.len()).step_by(97) {
            assert!(decode(&blob[..cut], n, &mut back).is_err(), "cut at {cut}");
        }
    }

    /// The result of the library for the same bytes, if it fits.
    fn slow_decode(blob: &[u8], n: u32) -> Option<Vec<u8>> {
        let set = ::roaring::RoaringBitmap::deserialize_from(blob).ok()?;
        let mut bits = vec![0; n.div_ceil(8) as usize];
        for at in set {
            if at >= n {
                return None;
            }
            bits[at as usize / 8] |= 0x80 >> (at % 8);
        }
        Some(bits)
    }

    #[test]
    fn damaged_blobs_are_read_as_the_library_reads_them() {
        let mut bits = vec![0_u8; 50_000];
        bits[100] = 0x5a;
        bits[9000..9100].fill(0xff);
        bits[20_000] = 1;
        for (at, byte) in bits[24_576..25_600].iter_mut().enumerate() {
            *byte = (at * at % 251).to_le_bytes()[0] | 0x55;
        }
        for n in [240_000, 399_990] {
            let len = usize::try_from(n).unwrap().div_ceil(8);
            let whole = encoded(&bits[..len], n);
            let mut back = vec![0; len];
            for cut in 0..whole.len() {
                assert!(decode(&whole[..cut], n, &mut back).is_err(), "cut at {cut}");
            }
            for at in (0..300).chain((300..whole.len()).step_by(371)).filter(|&at| at < whole.len()) {
                for flip in [1, 2, 0x10, 0x80, 0xff] {
                    let mut blob = whole.clone();
                    blob[at] ^= flip;
                    let found = decode(&blob, n, &mut back).ok().map(|()| &back);
                    let expected = slow_decode(&blob, u32::try_from(n).unwrap());
                    assert!(found == expected.as_ref(), "byte {at} ^ {flip:#x}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn sets_equal_the_slow_rule(bits in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 1..3000), spare in 0u32..8) {
            let n = u32::try_from(bits.len()).unwrap() * 8 - spare;
            let blob = encoded(&bits, n.into());
            prop_assert_eq!(&blob, &slow(&bits, n));
            let mut back = vec![0xff; bits.len()];
            decode(&blob, n.into(), &mut back).unwrap();
            prop_assert!((0..n as usize).all(|at| is_set(&bits, at) == is_set(&back, at)));
        }
    }
}
