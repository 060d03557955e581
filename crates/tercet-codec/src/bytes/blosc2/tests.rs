use super::*;

fn settings(codec: Inner, level: u8, type_size: u32) -> Blosc2 {
    Blosc2 { codec, level, type_size, shuffle: Shuffle::Bytes }
}

#[test]
fn names_name_the_codec() {
    for inner in Inner::ALL {
        assert_eq!(Inner::parse(inner.name()), Some(inner));
    }
    assert_eq!(Inner::parse("snappy"), None);
}

#[test]
fn meaningless_settings_are_rejected() {
    for wrong in [settings(Inner::Lz4, 10, 8), settings(Inner::Lz4, 5, 0), settings(Inner::Lz4, 5, 1 << 31)] {
        assert!(matches!(wrong.check(), Err(CodecError::Parameter { .. })), "{wrong:?}");
        assert!(encode(&[1], &wrong, &mut Vec::new()).is_err(), "{wrong:?}");
    }
    settings(Inner::Zstd, 0, 1).check().unwrap();
    assert!(encode(&[], &settings(Inner::Lz4, 5, 8), &mut Vec::new()).is_err(), "nothing");
}

#[cfg(feature = "blosc2")]
mod built {
    use blosc2_pure_rs::schunk::Schunk;
    use blosc2_pure_rs::{CParams, DParams};
    use proptest::prelude::*;

    use super::*;

    /// Slowly rising numbers, some noise, some zeros.
    fn numbers(len: usize) -> Vec<u8> {
        let mut noise = 1_u32;
        let mut number = |at: usize| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if at % 3000 < 500 { 0 } else { (at as u64) * 3 + u64::from(noise >> 29) }
        };
        (0..len.div_ceil(8)).flat_map(|at| number(at).to_le_bytes()).take(len).collect()
    }

    fn frame_in(raw: &[u8], settings: Blosc2, chunk_bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        frame::append(raw, settings, chunk_bytes, &mut out).unwrap();
        out
    }

    fn decoded(stored: &[u8], len: usize) -> Vec<u8> {
        let mut raw = vec![0xee; len];
        decode(stored, &mut raw).unwrap();
        raw
    }

    /// The result of the Blosc2 library.
    fn slow_decode(stored: &[u8]) -> Vec<u8> {
        Schunk::from_contiguous_frame(stored).unwrap().decompress_all().unwrap()
    }

    #[test]
    fn the_library_reads_our_frames_and_we_read_its() {
        let raw = numbers(300_003);
        for inner in Inner::ALL {
            for (level, type_size, shuffle) in [
                (0, 8, Shuffle::Bytes),
                (1, 4, Shuffle::Bytes),
                (5, 8, Shuffle::Bytes),
                (6, 3, Shuffle::Bits),
            ] {
                let settings = Blosc2 { codec: inner, level, type_size, shuffle };
                for len in [1, 31, 40, 3000, raw.len()] {
                    let stored = frame_in(&raw[..len], settings, 131_072);
                    assert!(slow_decode(&stored) == raw[..len], "{settings:?} {len}");
                    assert!(decoded(&stored, len) == raw[..len], "{settings:?} {len}");
                }
                let parameters = CParams {
                    compcode: codec::number(inner),
                    clevel: level,
                    typesize: i32::try_from(type_size).unwrap(),
                    filters: pack::filter_slots(shuffle),
                    ..CParams::default()
                };
                let mut theirs = Schunk::new(parameters, DParams::default());
                for part in raw.chunks(131_072) {
                    theirs.append_buffer(part).unwrap();
                }
                assert!(decoded(&theirs.to_contiguous_frame(), raw.len()) == raw, "theirs {settings:?}");
            }
        }
    }

    #[test]
    fn chunks_that_are_not_stored_are_read() {
        let mut theirs = Schunk::new(CParams::default(), DParams::default());
        theirs.append_buffer(&numbers(8000)).unwrap();
        theirs.append_buffer(&[0; 8000]).unwrap();
        theirs.append_buffer(&numbers(800)).unwrap();
        let expected = [&numbers(8000)[..], &[0; 8000], &numbers(800)].concat();
        assert!(decoded(&theirs.to_contiguous_frame(), 16_800) == expected);
    }

    #[test]
    fn filters_are_undone_in_reverse_and_with_their_own_width() {
        let raw = numbers(70_000);
        for (filters, filters_meta) in
            [([1, 0, 0, 0, 0, 2], [0; 6]), ([2, 0, 1, 0, 0, 0], [0, 0, 4, 0, 0, 0]), ([0; 6], [0; 6])]
        {
            let parameters = CParams { filters, filters_meta, ..CParams::default() };
            let mut theirs = Schunk::new(parameters, DParams::default());
            theirs.append_buffer(&raw).unwrap();
            assert!(decoded(&theirs.to_contiguous_frame(), raw.len()) == raw, "{filters:?}");
        }
    }

    #[test]
    fn threads_change_nothing() {
        let raw = numbers(3_000_001);
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (one, three) = (pool(1), pool(3));
        for inner in [Inner::BloscLz, Inner::Lz4, Inner::Zstd] {
            let settings = settings(inner, 1, 8);
            let alone = one.install(|| frame_in(&raw, settings, CHUNK_BYTES));
            assert!(alone == three.install(|| frame_in(&raw, settings, CHUNK_BYTES)), "{inner:?}");
            assert!(one.install(|| decoded(&alone, raw.len())) == raw, "{inner:?}");
            assert!(three.install(|| decoded(&alone, raw.len())) == raw, "{inner:?}");
        }
        // Incompressible: both store the bytes.
        let noise: Vec<u8> =
            (0..2_000_000_u64).map(|at| at.wrapping_pow(7).to_be_bytes()[3] ^ at.to_le_bytes()[0]).collect();
        let settings = settings(Inner::Lz4, 1, 1);
        let alone = one.install(|| frame_in(&noise, settings, CHUNK_BYTES));
        assert!(alone == three.install(|| frame_in(&noise, settings, CHUNK_BYTES)));
        assert!(decoded(&alone, noise.len()) == noise);
    }

    #[test]
    fn ranges_begin_and_end_anywhere() {
        let raw = numbers(900_007);
        let stored = frame_in(&raw, settings(Inner::Lz4, 1, 8), 400_000);
        let total = raw.len() as u64;
        for (first, len) in [
            (0, 0),
            (0, 1),
            (0, 900_007),
            (399_999, 2),
            (262_143, 2),
            (7, 262_144),
            (100_000, 700_000),
            (900_006, 1),
        ] {
            let mut part = vec![0xee; len];
            decode_range(&stored, first as u64, &mut part, total).unwrap();
            assert!(part == raw[first..first + len], "{first} {len}");
        }
        assert!(decode_range(&stored, 900_007, &mut [0], total).is_err(), "past the end");
        assert!(decode_range(&stored, u64::MAX, &mut [0], total).is_err(), "far past the end");
        assert_eq!(
            decode_range(&stored, 0, &mut [0], total + 1),
            Err(CodecError::WrongLength { codec: "blosc2", expected: total + 1, found: total })
        );
    }

    #[test]
    fn declared_sizes_are_checked_first() {
        let raw = numbers(4000);
        let whole = frame_in(&raw, settings(Inner::Lz4, 5, 8), CHUNK_BYTES);
        let patched = |at: usize, bytes: &[u8]| {
            let mut stored = whole.clone();
            stored[at..at + bytes.len()].copy_from_slice(bytes);
            stored
        };
        let huge = (1_u64 << 62).to_be_bytes();
        let stored = patched(30, &huge);
        assert!(
            matches!(decode(&stored, &mut [0; 4000]), Err(CodecError::WrongLength { found, .. }) if found == 1 << 62)
        );
        // A frame that declares 2^62 bytes, and a caller that expects them; its chunks do not agree.
        assert!(decode_range(&stored, 1 << 61, &mut [0; 8], 1 << 62).is_err());
        for (at, bytes) in [
            (16, &[0xff; 8][..]), // frame bytes
            (39, &[0x7f; 8]),     // stored bytes
            (58, &[0, 0, 0, 0]),  // chunk bytes
            (58, &[0, 0, 0, 1]),  // one byte per chunk
            (11, &[0, 0, 0, 1]),  // header bytes
            (97 + 4, &[0xff; 4]), // raw bytes of the chunk
            (97 + 4, &[0xff, 0xff, 0xff, 0x7f]),
            (97 + 8, &[0, 0, 0, 0]), // block bytes
            (97 + 8, &[1, 0, 0, 0]),
            (97 + 12, &[0xff, 0xff, 0xff, 0x7f]), // stored bytes of the chunk
            (97, &[2]),                           // version
            (97 + 31, &[0x80]),                   // measurements
            (97 + 3, &[0]),                       // element bytes
            (97 + 21, &[3]),                      // delta filter
            (97 + 31, &[1]),                      // dictionary
            (97 + 30, &[1]),                      // blocks of varying length
            (97 + 32, &[0, 0, 0, 0]),             // the first block begins inside the header
            (97 + 32, &[0xff, 0xff, 0xff, 0x7f]),
        ] {
            assert!(decode(&patched(at, bytes), &mut [0; 4000]).is_err(), "{at}: {bytes:?}");
        }
        assert!(decode(&whole, &mut [0; 3999]).is_err());
        assert!(decode(&whole, &mut [0; 4001]).is_err());
        assert!(decode(&[&whole[..], b"x"].concat(), &mut [0; 4000]).is_err());
    }

    #[test]
    fn damaged_frames_never_panic() {
        let raw = numbers(2500);
        let mut back = vec![0; raw.len()];
        for inner in Inner::ALL {
            let whole = frame_in(&raw, settings(inner, 5, 4), 1000);
            for cut in 0..whole.len() {
                assert!(decode(&whole[..cut], &mut back).is_err(), "{inner:?} cut at {cut}");
            }
            for at in 0..whole.len() {
                for flip in [1, 0x10, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] ^= flip;
                    _ = decode(&damaged, &mut back);
                    _ = decode_range(&damaged, 1200, &mut back[..5], raw.len() as u64);
                }
            }
            decode(&whole, &mut back).unwrap();
            assert!(back == raw, "{inner:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trips(
            raw in prop::collection::vec(prop_oneof![3 => Just(0_u8), 2 => any::<u8>()], 1..5000),
            inner in prop::sample::select(&Inner::ALL[..]),
            level in 0_u8..8,
            type_size in 1_u32..20,
            is_bits in any::<bool>(),
            chunk_bytes in 20_usize..3000,
            ends in any::<[prop::sample::Index; 2]>(),
        ) {
            let shuffle = if is_bits { Shuffle::Bits } else { Shuffle::Bytes };
            let stored = frame_in(&raw, Blosc2 { codec: inner, level, type_size, shuffle }, chunk_bytes);
            prop_assert!(decoded(&stored, raw.len()) == raw);
            let [one, other] = ends.map(|end| end.index(raw.len()));
            let (first, last) = (one.min(other), one.max(other));
            let mut some = vec![0xee; last - first];
            decode_range(&stored, first as u64, &mut some, raw.len() as u64).unwrap();
            prop_assert!(some == raw[first..last]);
        }
    }
}
