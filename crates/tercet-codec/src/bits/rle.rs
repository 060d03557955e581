//! Run-length encoding of bits.
//!
//! A blob is the first bit as one byte, then the lengths of the alternating runs as unsigned LEB128. Runs are never
//! empty and add up to the number of bits; no bits make an empty blob.

use super::{check_room, count_of, split_count};
use crate::CodecError;

const CODEC: &str = "rle";

/// Maximum bytes of one run length; non-minimal LEB128 is accepted up to this length.
const MAX_LENGTH_BYTES: usize = 10;

/// Appends the runs of the first `n` of the packed `bits` to `out`; spare bits of the last byte are ignored.
pub fn encode(bits: &[u8], n: u64, out: &mut Vec<u8>) -> Result<(), CodecError> {
    check_room(CODEC, bits, n)?;
    let Some(first) = bits.first() else { return Ok(()) };
    out.push(first >> 7);
    let mut run_start = 0;
    // The bit before the word, as highest bit; the very first bit is not a change.
    let mut before = u64::from(first >> 7) << 63;
    let (words, rest) = bits.as_chunks::<8>();
    let mut last_word = [0; 8];
    last_word[..rest.len()].copy_from_slice(rest);
    let tail = (!rest.is_empty()).then_some(&last_word);
    for (word, base) in words.iter().chain(tail).zip((0..).step_by(64)) {
        let word = u64::from_be_bytes(*word);
        // A one wherever a bit differs from the one before it: a word inside a run costs one comparison.
        let mut changes = word ^ (word >> 1 | before);
        before = word << 63;
        if n - base < 64 {
            changes &= !(u64::MAX >> (n - base));
        }
        while changes != 0 {
            let at = base + u64::from(changes.leading_zeros());
            push_length(at - run_start, out);
            run_start = at;
            changes &= !(1 << changes.ilog2());
        }
    }
    push_length(n - run_start, out);
    Ok(())
}

/// Decodes exactly `n` bits into `bits`, which has the bytes for them; spare bits become zero.
pub fn decode(blob: &[u8], n: u64, bits: &mut [u8]) -> Result<(), CodecError> {
    check_room(CODEC, bits, n)?;
    bits.fill(0);
    let Some((&start, mut lengths)) = blob.split_first() else {
        return if n == 0 { Ok(()) } else { Err(wrong_length(n, 0)) };
    };
    let is_set = match start {
        0 => false,
        1 => true,
        other => return Err(failed(format!("the first bit is {other}"))),
    };
    if n == 0 {
        return Err(failed("bytes for zero bits".to_owned()));
    }
    // Each run marks only its end; one pass without a branch per run fills the bits between.
    if is_set {
        bits[0] = 0x80;
    }
    let mut at = 0;
    while !lengths.is_empty() {
        let run = take_length(&mut lengths)?;
        if run == 0 {
            return Err(failed(format!("an empty run at bit {at}")));
        }
        at = match run.checked_add(at) {
            Some(end) if end <= n => end,
            over => return Err(wrong_length(n, over.unwrap_or(u64::MAX))),
        };
        if at < n
            && let Some(byte) = usize::try_from(at / 8).ok().and_then(|byte| bits.get_mut(byte))
        {
            *byte ^= 0x80 >> (at % 8);
        }
    }
    fill_between_marks(bits);
    if let (Some(last), used @ 1..) = (bits.last_mut(), n % 8) {
        *last &= 0xff << (8 - used);
    }
    if at == n { Ok(()) } else { Err(wrong_length(n, at)) }
}

/// Turns marks into runs: each bit becomes the parity of all marks up to it.
fn fill_between_marks(bits: &mut [u8]) {
    // All ones while a run of ones continues from the previous word.
    let mut carry = 0;
    let mut fill = |mut word: u64| {
        for distance in [1, 2, 4, 8, 16, 32] {
            word ^= word >> distance;
        }
        word ^= carry;
        carry = 0_u64.wrapping_sub(word & 1);
        word
    };
    let (words, rest) = bits.as_chunks_mut();
    for word in words {
        *word = fill(u64::from_be_bytes(*word)).to_be_bytes();
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    rest.copy_from_slice(&fill(u64::from_be_bytes(last)).to_be_bytes()[..rest.len()]);
}

/// Appends all bits of `bytes`, including padding, after their count.
pub fn encode_counted(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let count = count_of(CODEC, bytes)?;
    out.extend_from_slice(&count.to_be_bytes());
    encode(bytes, u64::from(count), out)
}

/// Decodes a counted bitmap into `bytes`; the count may end anywhere in the last byte.
pub fn decode_counted(blob: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let (count, runs) = split_count(CODEC, blob, bytes)?;
    decode(runs, count, bytes)
}

fn push_length(mut length: u64, out: &mut Vec<u8>) {
    while length > 0x7f {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
}

fn take_length(lengths: &mut &[u8]) -> Result<u64, CodecError> {
    if let [short @ ..0x80, rest @ ..] = *lengths {
        *lengths = rest;
        return Ok(u64::from(*short));
    }
    let mut length = 0;
    for (at, &byte) in lengths.iter().take(MAX_LENGTH_BYTES).enumerate() {
        let part = u64::from(byte & 0x7f);
        let shift = 7 * at;
        if part << shift >> shift != part {
            return Err(failed("a run length of more than 64 bits".to_owned()));
        }
        length |= part << shift;
        if byte < 0x80 {
            *lengths = &lengths[at + 1..];
            return Ok(length);
        }
    }
    Err(failed(format!("an unterminated run length, {} bytes before the end", lengths.len())))
}

fn failed(detail: String) -> CodecError {
    CodecError::Decode { codec: CODEC, detail }
}

/// In bits, unlike the other codecs: a length that is off by one bit must be an error.
fn wrong_length(expected: u64, found: u64) -> CodecError {
    failed(format!("the runs hold {found} bits instead of {expected}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(bits: &[bool]) -> Vec<u8> {
        bits.chunks(8)
            .map(|eight| eight.iter().zip(0..).map(|(&bit, at)| u8::from(bit) << (7 - at)).sum())
            .collect()
    }

    fn encoded(bits: &[u8], n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        encode(bits, n, &mut out).unwrap();
        out
    }

    /// The definition, bit by bit.
    fn slow(bits: &[bool]) -> Vec<u8> {
        let mut out: Vec<u8> = bits.first().map(|&bit| u8::from(bit)).into_iter().collect();
        for run in bits.chunk_by(|a, b| a == b) {
            push_length(run.len() as u64, &mut out);
        }
        out
    }

    #[test]
    fn the_counted_form_includes_the_padding() {
        let mut out = Vec::new();
        encode_counted(&[0xb0, 0x40], &mut out).unwrap();
        assert_eq!(out, [0, 0, 0, 16, 1, 1, 1, 2, 5, 1, 6]);
        let mut back = [0xff; 2];
        decode_counted(&out, &mut back).unwrap();
        assert_eq!(back, [0xb0, 0x40]);
        // Another writer may count only the ten elements.
        decode_counted(&[0, 0, 0, 10, 1, 1, 1, 2, 5, 1], &mut back).unwrap();
        assert_eq!(back, [0xb0, 0x40]);
        assert!(decode_counted(&[0, 0, 0, 8, 0, 8], &mut back).is_err());
        assert!(decode_counted(&[0, 0, 0], &mut back).is_err());

        let mut nothing = Vec::new();
        encode_counted(&[], &mut nothing).unwrap();
        assert_eq!(nothing, [0; 4]);
        decode_counted(&nothing, &mut []).unwrap();
    }

    #[test]
    fn invalid_runs_are_rejected() {
        let mut bits = [0; 2];
        let refused: [&[u8]; 13] = [
            &[],
            &[0],
            &[2, 10],
            &[0, 9],
            &[0, 11],
            &[0, 5, 4],
            &[0, 5, 6],
            &[0, 0, 10],
            &[0, 10, 0],
            &[0, 0x8a],
            &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 10],
            &[0, 0x8a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
            &[0, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ];
        for blob in refused {
            assert!(decode(blob, 10, &mut bits).is_err(), "{blob:?}");
        }
        for blob in [&[0, 10][..], &[1, 10], &[0, 3, 7], &[0, 0x8a, 0x80, 0]] {
            decode(blob, 10, &mut bits).unwrap();
        }
        assert!(decode(&[0, 17], 17, &mut bits).is_err(), "too little room");
        assert!(decode(&[0, 8], 8, &mut bits).is_err(), "too much room");
        assert!(decode(&[0], 0, &mut []).is_err());
        decode(&[], 0, &mut []).unwrap();
    }

    #[test]
    fn damaged_blobs_never_panic() {
        let bits: Vec<u8> = (0..200_u8).map(|at| if at % 50 < 40 { 0 } else { at }).collect();
        let whole = encoded(&bits, 1600);
        let mut back = vec![0; 200];
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], 1600, &mut back).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            for flip in 1..=255 {
                let mut blob = whole.clone();
                blob[at] ^= flip;
                _ = decode(&blob, 1600, &mut back);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_equal_the_slow_rule(
            lengths in prop::collection::vec(prop_oneof![1usize..4, 1usize..300], 0..60),
            start in any::<bool>(),
            spare in any::<u8>(),
        ) {
            let bits: Vec<bool> = lengths.iter().enumerate()
                .flat_map(|(at, &length)| std::iter::repeat_n(start ^ (at % 2 == 1), length))
                .collect();
            let n = bits.len() as u64;
            let clean = packed(&bits);
            let mut dirty = clean.clone();
            if let (Some(last), used @ 1..) = (dirty.last_mut(), bits.len() % 8) {
                *last |= spare >> used;
            }
            let blob = encoded(&dirty, n);
            prop_assert_eq!(&blob, &slow(&bits));
            let mut back = vec![0xff; clean.len()];
            decode(&blob, n, &mut back).unwrap();
            prop_assert_eq!(back, clean);
        }
    }
}
