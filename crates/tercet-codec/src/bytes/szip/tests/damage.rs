//! Damaged streams and wrong offsets.

use super::samples::{Dice, KINDS, parameters, samples};
use super::*;

#[test]
fn every_wrong_offset_is_detected() {
    let mut dice = Dice::new(8);
    for _ in 0..20 {
        let szip = Szip { rsi: 2, ..parameters(&mut dice) };
        let kind = dice.below(KINDS);
        let raw = samples(&szip, 300, kind, &mut dice);
        let (stored, starts) = encoded(&raw, &szip);
        for index in 0..starts.len().min(20) {
            for wrong in [starts[index] ^ 1, starts[index] + 8, 0, u64::MAX, stored.len() as u64 * 8] {
                let mut offsets = starts.clone();
                offsets[index] = wrong;
                let (back, noticed) = decoded(&stored, &szip, Some(&offsets), raw.len()).unwrap();
                assert_eq!(back, raw);
                assert_eq!(noticed.offsets_right, Some(offsets == starts));
            }
        }
        for offsets in [&starts[1..], &[&starts[..], &[stored.len() as u64 * 8]].concat(), &[]] {
            let (back, noticed) = decoded(&stored, &szip, Some(offsets), raw.len()).unwrap();
            assert_eq!((back, noticed.offsets_right), (raw.clone(), Some(false)));
        }
    }
}

#[test]
fn wrong_offsets_do_not_mislead_threads() {
    let mut dice = Dice::new(9);
    let szip = Szip::new(16, 16, 64, 8).unwrap();
    let raw = samples(&szip, 25_000, 2, &mut dice);
    let (stored, starts) = encoded(&raw, &szip);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    for index in 0..starts.len() {
        let mut offsets = starts.clone();
        offsets[index] = dice.pick(&[0, 1, starts[index] + 1, starts[(index + 1) % starts.len()], u64::MAX]);
        let (back, noticed) = pool.install(|| decoded(&stored, &szip, Some(&offsets), raw.len())).unwrap();
        assert!(back == raw, "offset {index}");
        assert_eq!(noticed.offsets_right, Some(offsets == starts));
    }
}

#[test]
fn streams_must_end_with_their_samples() {
    let mut dice = Dice::new(10);
    for _ in 0..40 {
        let szip = parameters(&mut dice);
        let kind = dice.below(KINDS);
        let raw = samples(&szip, 100, kind, &mut dice);
        let (stored, _) = encoded(&raw, &szip);
        for cut in 0..stored.len() {
            assert!(decoded(&stored[..cut], &szip, None, raw.len()).is_err(), "{szip:?} cut at {cut}");
        }
        for tail in [0, 1, 0xff] {
            assert!(decoded(&[&stored[..], &[tail]].concat(), &szip, None, raw.len()).is_err());
        }
    }
    let szip = Szip::new(8, 8, 2, 8).unwrap();
    assert!(decode(&[], &szip, None, &mut [0]).is_err(), "no samples");
    assert!(decode(&[0], &szip, None, &mut []).is_err(), "nothing of something");
    assert_eq!(decode(&[], &szip, Some(&[]), &mut []).unwrap().offsets_right, Some(true));
    assert_eq!(encoded(&[], &szip), (vec![], vec![]));
}

#[test]
fn damaged_streams_decode_like_the_obvious_decoder() {
    let mut dice = Dice::new(11);
    let mut readable = 0;
    for _ in 0..60 {
        let szip = parameters(&mut dice);
        let count = 1 + dice.below(120) as usize;
        let kind = dice.below(KINDS);
        let raw = samples(&szip, count, kind, &mut dice);
        let (stored, _) = encoded(&raw, &szip);
        for byte in 0..stored.len().min(60) {
            let mut damaged = stored.clone();
            damaged[byte] ^= 1 << dice.below(8);
            let expected = obvious(&damaged, &szip, count);
            readable += u32::from(expected.is_some());
            with_both(|| {
                let found = decoded(&damaged, &szip, None, raw.len()).ok().map(|(raw, _)| raw);
                assert_eq!(found, expected, "{szip:?} byte {byte}");
                // Skipping must not panic either.
                let _ = index(&damaged, &szip, count as u64, &mut Vec::new(), u64::MAX);
                let _ = decode_from(&damaged, &szip, count as u64, 0, dice.below(2000), &mut raw.clone());
            });
        }
    }
    assert!(readable > 100, "{readable}");
}

/// Compares the start of noise: it seldom ends with its samples.
fn check_noise(seed: u64) -> bool {
    let mut dice = Dice::new(seed);
    let szip = parameters(&mut dice);
    let thin = dice.below(3);
    let byte = |dice: &mut Dice| (0..thin).fold(dice.next(), |byte, _| byte & dice.next()) as u8;
    let noise: Vec<u8> = (0..dice.below(90)).map(|_| byte(&mut dice)).collect();
    let count = 1 + dice.below(60);
    let expected = slow::decode(&noise, &szip, count as usize);
    with_both(|| {
        let mut raw = vec![0; count as usize * szip.sample_bytes()];
        let end = decode_from(&noise, &szip, count, 0, 0, &mut raw);
        assert_eq!(end.as_ref().ok(), expected.as_ref().map(|slow| &slow.end), "{szip:?} seed {seed}");
        if let Some(slow) = &expected {
            assert_eq!(raw, slow.raw, "{szip:?} seed {seed}");
            let mut found = Vec::new();
            index(&noise, &szip, count, &mut found, u64::MAX).unwrap();
            assert_eq!(found, slow.starts, "{szip:?} seed {seed}");
        }
    });
    expected.is_some()
}

#[test]
fn noise_decodes_like_the_obvious_decoder() {
    let readable = (0..10_000).filter(|&seed| check_noise(seed)).count();
    assert!(readable > 1000, "{readable}");
}
