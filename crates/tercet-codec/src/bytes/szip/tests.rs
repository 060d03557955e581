//! The fast implementations against the obvious one, and against another library.

mod damage;
mod samples;
mod slow;

use std::cell::Cell;

use proptest::prelude::*;
use rust_aec::{AecFlags, AecParams};

use self::samples::{Dice, KINDS, parameters, samples};
use super::*;

thread_local! {
    static PORTABLE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the portable kernel is selected on this thread.
pub(super) fn only_portable() -> bool {
    PORTABLE.get()
}

/// Runs `body` with the best kernel of this CPU and with the portable one.
fn with_both(mut body: impl FnMut()) {
    for portable in [false, true] {
        PORTABLE.set(portable);
        body();
    }
    PORTABLE.set(false);
}

fn encoded(raw: &[u8], szip: &Szip) -> (Vec<u8>, Vec<u64>) {
    let mut stored = Vec::new();
    let starts = encode(raw, szip, &mut stored).unwrap();
    (stored, starts)
}

fn decoded(
    stored: &[u8],
    szip: &Szip,
    offsets: Option<&[u64]>,
    len: usize,
) -> Result<(Vec<u8>, Decoded), CodecError> {
    // Poison: unwritten memory must not pass for a sample.
    let mut raw = vec![0xa5; len];
    let noticed = decode(stored, szip, offsets, &mut raw)?;
    Ok((raw, noticed))
}

/// The samples of a stream by the obvious decoder, if it is valid from the first bit to the last.
fn obvious(stored: &[u8], szip: &Szip, count: usize) -> Option<Vec<u8>> {
    let slow = slow::decode(stored, szip, count)?;
    let spare = stored.len() as u64 * 8 - slow.end;
    let zero = spare < 8 && (spare == 0 || bits::window(stored, slow.end) == 0);
    zero.then_some(slow.raw)
}

/// All properties of a few intervals of samples.
fn check(szip: &Szip, raw: &[u8]) {
    let count = raw.len() / szip.sample_bytes();
    let mut streams = Vec::new();
    with_both(|| {
        let (stored, starts) = encoded(raw, szip);
        let slow = slow::decode(&stored, szip, count).unwrap();
        assert_eq!(slow.raw, raw, "{szip:?}");
        assert_eq!(slow.starts, starts, "{szip:?}");
        assert_eq!(slow.end.div_ceil(8), stored.len() as u64, "{szip:?}");
        let (back, noticed) = decoded(&stored, szip, Some(&starts), raw.len()).unwrap();
        assert_eq!(back, raw, "{szip:?}");
        assert_eq!(noticed, Decoded { offsets_right: Some(true), padding_missing: false });
        let mut found = Vec::new();
        index(&stored, szip, count as u64, &mut found, u64::MAX).unwrap();
        assert_eq!(found, starts, "{szip:?}");
        streams.push(stored);
    });
    assert_eq!(streams[0], streams[1], "{szip:?}");
}

#[test]
fn test_vector() {
    let szip = Szip::new(8, 8, 2, 8).unwrap();
    let (stored, starts) = encoded(&[10, 12, 11, 15, 15, 15, 16, 14, 200, 3], &szip);
    assert_eq!(stored, [0x41, 0x46, 0x1d, 0x50, 0xe0, 0x20, 0x3f, 0xa3, 0x80, 0, 0, 0, 0]);
    assert_eq!(starts, [0]);
}

#[test]
fn streams_of_libaec() {
    let le16 = |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let le32 = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let cases: [(u32, u64, Vec<u8>, &[u8]); 4] = [
        // Pairs and a split of equal length.
        (8, 0, vec![1, 0, 0, 1, 0, 1, 0, 1], &[0x14, 0x92]),
        // A run to the end of a segment and one after it.
        (16, 8, le16(&[&[5; 560][..], &[9; 4]].concat()), &[0, 0, 0x28, 0x40, 0x04, 0x40, 0x3f, 0xc0]),
        (
            32,
            0,
            le32(&[&[0; 40][..], &[3, 1, 0, 0, 0, 0, 0, 0], &[0; 16], &[70_000; 8]].concat()),
            &[
                0x00, 0x10, 0x8b, 0xf8, 0x0c, 0x09, 0x24, 0x92, 0x48, 0xb8, 0x11, 0x70, 0x22, 0xe0, 0x45,
                0xc0, 0x8b, 0x81, 0x17, 0x02, 0x2e, 0x04, 0x5c, 0x00,
            ],
        ),
        // Signed, from minimum to maximum.
        (
            8,
            9,
            vec![253, 128, 127, 5, 0, 0, 255, 1, 90, 166, 30],
            &[0xff, 0xbf, 0x3f, 0xef, 0x41, 0x20, 0x00, 0x20, 0x98, 0x10, 0x21, 0xfc, 0xb3, 0xe0, 0, 0, 0],
        ),
    ];
    for (bits, flags, raw, stored) in cases {
        let szip = Szip::new(bits, 8, 128, flags).unwrap();
        assert_eq!(encoded(&raw, &szip).0, stored);
        assert_eq!(decoded(stored, &szip, None, raw.len()).unwrap().0, raw);
    }
}

#[test]
fn every_length() {
    let mut dice = Dice::new(1);
    for count in 0..=300 {
        for _ in 0..8 {
            let szip = parameters(&mut dice);
            let kind = dice.below(KINDS);
            check(&szip, &samples(&szip, count, kind, &mut dice));
        }
    }
}

#[test]
fn every_width_flag_and_block() {
    let mut dice = Dice::new(2);
    for bits in 1..=32 {
        for flags in 0..32 {
            let szip = Szip::new(bits, dice.pick(&[8, 16, 32, 64]), dice.pick(&[1, 2, 70]), flags);
            let Ok(szip) = szip else {
                assert!(flags >= 16 && bits > 4);
                continue;
            };
            let kind = dice.below(KINDS);
            let raw = samples(&szip, 200, kind, &mut dice);
            check(&szip, &raw);
        }
    }
}

#[test]
fn long_runs_of_zeros() {
    let mut dice = Dice::new(3);
    for rsi in [1, 5, 63, 64, 65, 128, 200, 4096] {
        for flags in [0, flags::PREPROCESS] {
            let szip = Szip::new(16, 8, rsi, flags).unwrap();
            for kind in [1, 3, 4] {
                check(&szip, &samples(&szip, 4000, kind, &mut dice));
            }
        }
    }
}

#[test]
fn another_decoder_agrees() {
    let mut dice = Dice::new(4);
    for _ in 0..400 {
        let szip = parameters(&mut dice);
        let count = 1 + dice.below(1000) as usize;
        let kind = dice.below(KINDS);
        let raw = samples(&szip, count, kind, &mut dice);
        let (stored, _) = encoded(&raw, &szip);
        // The other library does not sign-extend.
        let whole = szip.bits() as usize == 8 * szip.sample_bytes();
        if szip.has(flags::ANY_BLOCK) || (szip.has(flags::SIGNED) && !whole) {
            continue;
        }
        let three = AecFlags::DATA_3BYTE.bits();
        let flags = AecFlags::from_bits(szip.flags() as u32 | three).unwrap();
        let params = AecParams::new(szip.bits() as u8, szip.block() as u32, szip.rsi() as u32, flags);
        assert_eq!(rust_aec::decode(&stored, params, count).unwrap(), raw, "{szip:?}");
    }
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let mut dice = Dice::new(5);
    for (bits, block, rsi, flags) in [(24, 16, 40, 12), (16, 8, 1, 8), (8, 64, 30, 9), (32, 32, 70, 0)] {
        let szip = Szip::new(bits, block, rsi, flags).unwrap();
        for kind in [0, 2, 3, 5] {
            let count = 50_000 / szip.sample_bytes();
            let raw = samples(&szip, count, kind, &mut dice);
            let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let one = pool(1).install(|| encoded(&raw, &szip));
            let three = pool(3).install(|| encoded(&raw, &szip));
            assert!(one == three, "{szip:?} kind {kind}");
            let (stored, starts) = one;
            for offsets in [None, Some(&starts[..])] {
                let (back, noticed) =
                    pool(3).install(|| decoded(&stored, &szip, offsets, raw.len())).unwrap();
                assert!(back == raw, "{szip:?} kind {kind}");
                assert_eq!(noticed.offsets_right, offsets.map(|_| true));
            }
            let mut wrong = starts.clone();
            let index = wrong.len() / 2;
            wrong[index] += 1;
            let (back, noticed) =
                pool(3).install(|| decoded(&stored, &szip, Some(&wrong), raw.len())).unwrap();
            assert!(back == raw, "{szip:?} kind {kind}");
            assert_eq!(noticed.offsets_right, Some(false));
        }
    }
}

#[test]
fn threads_choose_the_same_of_equally_short_splits() {
    let plain = Szip::new(16, 8, 16, 0).unwrap();
    let mapped = Szip::new(16, 8, 16, flags::PREPROCESS).unwrap();
    // After the first block three splits are equally short for all others, so its choice lasts.
    check_threads(&plain, 5, |index| if index < 8 { 64 } else { 8 });
    check_threads(&plain, 3, |index| if index < 8 { 1 } else { 8 });
    // Splits 4 to 6 and 2 to 4 in turns.
    check_threads(&plain, 5, |index| if index < 8 { 1 << 12 } else { 32 >> (index / 8 % 2 * 2) });
    // The jump between intervals must not count.
    let ramp = |index| 256 + index % 128 * 4 + index / 128 % 2 * 30_000;
    check_threads(&mapped, 5, |index| if index < 8 { index * 32 } else { ramp(index) });
    check_threads(&mapped, 3, |index| if index < 8 { 284 } else { ramp(index) });
}

/// Compares one thread with several, and the option ID of the second interval with the expected one.
fn check_threads(szip: &Szip, id: u64, sample: impl Fn(u16) -> u16) {
    let raw: Vec<u8> = (0..30_000).flat_map(|index| sample(index).to_le_bytes()).collect();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (stored, starts) = pool(1).install(|| encoded(&raw, szip));
    assert_eq!(bits::window(&stored, starts[1]) >> 60, id);
    assert!(pool(3).install(|| encoded(&raw, szip)) == (stored, starts));
}

#[test]
fn intervals_decode_alone() {
    let mut dice = Dice::new(6);
    for _ in 0..60 {
        let szip = parameters(&mut dice);
        let count = dice.below(700) as usize;
        let kind = dice.below(KINDS);
        let raw = samples(&szip, count, kind, &mut dice);
        let (stored, starts) = encoded(&raw, &szip);
        let bytes = szip.sample_bytes();
        let interval = szip.interval_samples() as usize * bytes;
        with_both(|| {
            let mut known = Vec::new();
            for (first, &start) in starts.iter().enumerate().take(20) {
                index(&stored, &szip, count as u64, &mut known, first as u64).unwrap();
                assert_eq!(known, starts[..=first]);
                let left = &raw[first * interval..];
                for len in
                    [0, bytes, interval / 2 / bytes * bytes, interval, interval * 2 + bytes, left.len()]
                {
                    let len = len.min(left.len());
                    let mut part = vec![0x5a; len];
                    let end =
                        decode_from(&stored, &szip, count as u64, first as u64, start, &mut part).unwrap();
                    assert_eq!(part, left[..len], "{szip:?} interval {first}");
                    if len > 0 && len % interval == 0 && len < left.len() {
                        assert_eq!(end, starts[first + len / interval]);
                    }
                }
            }
        });
        let too_many = vec![0; raw.len() + bytes];
        assert!(decode_from(&stored, &szip, count as u64, 0, 0, &mut too_many.clone()).is_err());
    }
}

#[test]
fn existing_output_is_kept() {
    let szip = Szip::new(8, 8, 2, 8).unwrap();
    let mut out = vec![1, 2, 3];
    let starts = encode(&[7; 40], &szip, &mut out).unwrap();
    assert_eq!((&out[..3], starts[0]), (&[1, 2, 3][..], 0));
    assert_eq!(decoded(&out[3..], &szip, None, 40).unwrap().0, [7; 40]);
    let tight = Szip::new(7, 8, 2, 8).unwrap();
    assert!(encode(&[1, 2, 128], &tight, &mut out.clone()).is_err());
    let before = out.clone();
    assert!(encode(&[&[0; 4000][..], &[200]].concat(), &tight, &mut out).is_err());
    assert_eq!(out, before);
}

#[test]
fn parameters_are_judged() {
    for (bits, block, rsi, flags) in [
        (0, 8, 1, 0),
        (33, 8, 1, 0),
        (8, 10, 1, 0),
        (8, 0, 1, 64),
        (8, 7, 1, 64),
        (8, 8, 0, 0),
        (8, 8, 4097, 0),
        (5, 8, 1, 16),
    ] {
        assert!(matches!(Szip::new(bits, block, rsi, flags), Err(CodecError::Parameter { .. })));
    }
    let padded = Szip::new(8, 8, 1, 32).unwrap();
    assert!(padded.check_for_writing().is_err());
    assert!(encode(&[0], &padded, &mut Vec::new()).is_err());
    padded.without_padding().check_for_writing().unwrap();
    let three = Szip::new(17, 8, 2, 0).unwrap();
    assert_eq!((three.sample_bytes(), three.intervals(0), three.intervals(17)), (3, 0, 2));
    assert!(encode(&[0; 4], &three, &mut Vec::new()).is_err(), "not whole samples");
    assert!(decode(&[0; 4], &three, None, &mut [0; 4]).is_err(), "not whole samples");
}

/// The same stream with every interval padded to a byte.
fn padded(stored: &[u8], starts: &[u64], end: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(end);
        for first in (start..end).step_by(8) {
            let left = (end - first).min(8);
            let byte = bits::window(stored, first).to_be_bytes()[0];
            out.push(byte & !(0xffu16 >> left) as u8);
        }
    }
    out
}

#[test]
fn padding_is_found_out() {
    let mut dice = Dice::new(7);
    let (mut missing, mut doubtful) = (0, 0);
    for _ in 0..600 {
        let szip = parameters(&mut dice);
        let count = 1 + dice.below(600) as usize;
        let kind = dice.below(KINDS);
        let raw = samples(&szip, count, kind, &mut dice);
        let (stored, starts) = encoded(&raw, &szip);
        let promised = Szip { flags: szip.flags | flags::PAD_INTERVALS, ..szip };
        let end = slow::decode(&stored, &szip, count).unwrap().end;
        let whole = padded(&stored, &starts, end);
        let mut found = Vec::new();
        index(&whole, &promised, count as u64, &mut found, u64::MAX).unwrap();
        assert_eq!(slow::decode(&whole, &promised, count).unwrap().starts, found);
        if starts.len() > 1 && !starts[1].is_multiple_of(8) {
            let mut dirty = whole.clone();
            dirty[found[1] as usize / 8 - 1] ^= 1;
            assert!(index(&dirty, &promised, count as u64, &mut Vec::new(), 1).is_err(), "{szip:?}");
            let interval = szip.interval_samples() as usize * szip.sample_bytes();
            assert!(decode_from(&dirty, &promised, count as u64, 0, 0, &mut vec![0; interval]).is_err());
        }
        for (stream, starts, is_missing) in [(&whole, &found, false), (&stored, &starts, stored != whole)] {
            let with = obvious(stream, &promised, count);
            let without = obvious(stream, &szip, count);
            let both = with.is_some() && without.is_some() && with != without;
            doubtful += u32::from(both);
            missing += u32::from(is_missing);
            let alone = decoded(stream, &promised, None, raw.len());
            assert_eq!(alone.is_err(), both, "{szip:?}");
            let (back, noticed) = decoded(stream, &promised, Some(starts), raw.len()).unwrap();
            assert_eq!(back, raw, "{szip:?}");
            assert_eq!(noticed.offsets_right, Some(true));
            assert_eq!(noticed.padding_missing, is_missing, "{szip:?}");
        }
    }
    assert!(missing > 100 && doubtful > 0, "{missing} {doubtful}");
}

proptest! {
    #[test]
    fn round_trips(seed in any::<u64>(), count in 0usize..1500, kind in 0..KINDS) {
        let mut dice = Dice::new(seed);
        let szip = parameters(&mut dice);
        check(&szip, &samples(&szip, count, kind, &mut dice));
    }
}
