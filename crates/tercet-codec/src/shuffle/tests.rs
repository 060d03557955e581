use proptest::prelude::*;

use super::blocks::Interleave;
use super::*;

/// Byte by byte.
fn slow_shuffle(raw: &[u8], size: usize) -> Vec<u8> {
    let count = raw.len() / size;
    let mut out = vec![0; raw.len()];
    for (at, &byte) in raw.iter().enumerate() {
        out[at % size * count + at / size] = byte;
    }
    out
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[2]).collect()
}

fn check(raw: &[u8], size: usize) {
    let expected = slow_shuffle(raw, size);
    let mut stored = vec![0xaa; raw.len()];
    shuffle(raw, size, &mut stored).unwrap();
    assert!(stored == expected, "{} bytes by {size}", raw.len());
    let mut back = vec![0xaa; raw.len()];
    unshuffle(&stored, size, &mut back).unwrap();
    assert!(back == raw, "{} bytes by {size}", raw.len());
}

#[test]
fn every_small_size_and_count_agrees_with_single_bytes() {
    for size in (1..=40).chain([63, 64, 65, 66, 71, 72, 73, 128, 130, 1000]) {
        for count in (0..=33).chain([47, 48, 49, 63, 64, 65, 100, 200]) {
            check(&noise(size * count), size);
        }
    }
}

#[test]
fn large_inputs_are_cut_and_joined() {
    for size in [1, 2, 3, 4, 5, 8, 12, 16, 24, 64, 65, 100, 1000] {
        check(&noise((WORTH_SPLITTING + 2 * PIECE) / size * size + 3 * size), size);
    }
    for size in [WORTH_SPLITTING / 3, WORTH_SPLITTING, WORTH_SPLITTING * 2] {
        check(&noise(WORTH_SPLITTING * 2 / size * size), size);
    }
    let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    threads.install(|| check(&noise(WORTH_SPLITTING + 8 * 777), 8));
    threads.install(|| check(&noise(WORTH_SPLITTING / 90 * 90 + 90), 90));
}

#[test]
fn both_kinds_of_vectors_agree() {
    fn through<V: Interleave, const S: usize>(raw: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let count = raw.len() / S;
        let mut stored = vec![0; raw.len()];
        let done = blocks::split::<V, S>(raw, &mut stored.chunks_mut(count).collect::<Vec<_>>());
        assert_eq!(done, count);
        let mut back = vec![0; raw.len()];
        assert_eq!(blocks::join::<V, S>(&Planes { stored: &stored, count, first: 0 }, &mut back), count);
        (stored, back)
    }
    fn agree<const S: usize>() {
        let raw = noise(S * 48);
        let expected = (slow_shuffle(&raw, S), raw.clone());
        assert_eq!(through::<[u8; 16], S>(&raw), expected);
        assert_eq!(through::<arch::Vector, S>(&raw), expected);
    }
    agree::<2>();
    agree::<4>();
    agree::<8>();
    agree::<16>();
    for size in [2, 3, 4, 8, 16] {
        let raw = noise(size * 100);
        let mut stored = vec![0; raw.len()];
        tiles::split(&raw, size, 0, &mut stored.chunks_mut(100).collect::<Vec<_>>());
        assert_eq!(stored, slow_shuffle(&raw, size));
        let mut back = vec![0; raw.len()];
        tiles::join(&Planes { stored: &stored, count: 100, first: 0 }, size, &mut back);
        assert_eq!(back, raw);
    }
}

#[test]
fn wrong_lengths_and_sizes_are_rejected() {
    let mut out = [0; 12];
    assert!(matches!(shuffle(&[0; 12], 0, &mut out), Err(CodecError::Parameter { .. })));
    assert!(matches!(shuffle(&[0; 12], 5, &mut out), Err(CodecError::Parameter { .. })));
    assert!(matches!(shuffle(&[0; 12], 13, &mut out), Err(CodecError::Parameter { .. })));
    assert!(matches!(
        shuffle(&[0; 8], 4, &mut out),
        Err(CodecError::WrongLength { expected: 8, found: 12, .. })
    ));
    assert!(matches!(unshuffle(&[0; 12], 0, &mut out), Err(CodecError::Parameter { .. })));
    assert!(matches!(unshuffle(&[0; 12], 5, &mut out), Err(CodecError::Parameter { .. })));
    assert!(matches!(unshuffle(&[0; 16], 4, &mut out), Err(CodecError::WrongLength { .. })));
    assert!(unshuffle_range(&[0; 16], 4, 1, &mut out).is_ok());
    for first in [2, 3, 4, 5, 1 << 40, u64::MAX] {
        assert!(unshuffle_range(&[0; 16], 4, first, &mut out).is_err(), "from {first}");
    }
    assert!(unshuffle_range(&[0; 16], 4, 1, &mut out[..11]).is_err());
    assert!(unshuffle_range(&[0; 16], 4, 4, &mut []).is_ok());
    shuffle(&[], 7, &mut []).unwrap();
    unshuffle(&[], 7, &mut []).unwrap();
}

proptest! {
    #[test]
    fn any_part_can_be_read(size in 1usize..70, count in 0usize..150, from in 0usize..150, wanted in 0usize..150) {
        let raw = noise(size * count);
        let (from, wanted) = (from.min(count), wanted.min(count - from.min(count)));
        let mut part = vec![0xaa; wanted * size];
        unshuffle_range(&slow_shuffle(&raw, size), size, from as u64, &mut part).unwrap();
        prop_assert_eq!(&part[..], &raw[from * size..][..wanted * size]);
    }
}
