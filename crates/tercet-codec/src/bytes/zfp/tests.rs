use super::*;

#[test]
fn meaningless_parameters_are_rejected() {
    for mode in [
        Zfp::FixedRate(0.0),
        Zfp::FixedRate(-1.0),
        Zfp::FixedRate(f64::NAN),
        Zfp::FixedRate(f64::INFINITY),
        Zfp::FixedRate(5000.0),
        Zfp::FixedAccuracy(0.0),
        Zfp::FixedAccuracy(-1e-3),
        Zfp::FixedAccuracy(f64::NAN),
        Zfp::FixedAccuracy(f64::INFINITY),
    ] {
        assert!(matches!(mode.check(), Err(CodecError::Parameter { .. })), "{mode:?}");
        assert!(encode(&[], &mode, &mut Vec::new()).is_err(), "{mode:?}");
        assert!(decode(&[], &mode, &mut []).is_err(), "{mode:?}");
    }
    for mode in
        [Zfp::FixedRate(1e-9), Zfp::FixedRate(4164.0), Zfp::FixedPrecision(0), Zfp::FixedAccuracy(1e-300)]
    {
        mode.check().unwrap();
    }
}

#[cfg(feature = "zfp")]
mod built {
    use proptest::prelude::*;
    use zfp_rs::{
        ZfpBitStream, ZfpConfig, ZfpDimensionality, ZfpField, ZfpFieldMut, ZfpScalarType, ZfpStreamAlignment,
    };

    use super::*;

    const MODES: [Zfp; 6] = [
        Zfp::FixedRate(16.0),
        Zfp::FixedRate(9.3),
        Zfp::FixedRate(0.5),
        Zfp::FixedPrecision(20),
        Zfp::FixedPrecision(0),
        Zfp::FixedAccuracy(1e-3),
    ];

    fn wave(n: u32) -> Vec<f64> {
        (0..n).map(|at| (f64::from(at) * 0.37).sin() * f64::from(at % 7)).collect()
    }

    fn bytes(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn stored(values: &[f64], mode: Zfp) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&bytes(values), &mode, &mut out).unwrap();
        out
    }

    fn decoded(stored: &[u8], mode: Zfp, n: usize) -> Vec<u8> {
        let mut values = vec![0xee; n * 8];
        decode(stored, &mode, &mut values).unwrap();
        values
    }

    /// The library's own path over a whole field, on one thread.
    fn slow(values: &[f64], mode: Zfp) -> (Vec<u8>, Vec<f64>) {
        let config = match mode {
            Zfp::FixedRate(rate) => {
                let unaligned = ZfpStreamAlignment::Unaligned;
                ZfpConfig::fixed_rate(rate, ZfpScalarType::F64, ZfpDimensionality::D1, unaligned).unwrap()
            }
            Zfp::FixedPrecision(planes) => ZfpConfig::fixed_precision(planes),
            Zfp::FixedAccuracy(tolerance) => ZfpConfig::fixed_accuracy(tolerance),
        };
        let mut stream = ZfpBitStream::new(values.len() * 12 + 64).unwrap();
        stream.compress(&config, &ZfpField::new(values, [values.len()]).unwrap()).unwrap();
        let bytes = stream.as_bytes().to_vec();
        let mut back = vec![0.0; values.len()];
        stream.rewind();
        stream.decompress(&config, &mut ZfpFieldMut::new(&mut back, [values.len()]).unwrap()).unwrap();
        (bytes, back)
    }

    #[test]
    fn streams_equal_the_library() {
        for mode in MODES {
            for n in [1, 2, 3, 4, 5, 63, 64, 255, 1001] {
                let values = wave(n);
                let (expected, back) = slow(&values, mode);
                let found = stored(&values, mode);
                assert_eq!(found, expected, "{mode:?} {n}");
                assert_eq!(decoded(&found, mode, values.len()), bytes(&back), "{mode:?} {n}");
            }
            assert!(stored(&[], mode).is_empty());
            decode(&[], &mode, &mut []).unwrap();
        }
    }

    #[test]
    fn threads_change_nothing() {
        let values = wave(300_003);
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (one, three) = (pool(1), pool(3));
        for mode in [Zfp::FixedRate(9.3), Zfp::FixedPrecision(12), Zfp::FixedAccuracy(1e-2)] {
            let alone = one.install(|| stored(&values, mode));
            assert!(alone == three.install(|| stored(&values, mode)), "{mode:?}");
            let back = one.install(|| decoded(&alone, mode, values.len()));
            assert!(back == three.install(|| decoded(&alone, mode, values.len())), "{mode:?}");
            // Ranges that start and end inside blocks and pieces.
            for (first, len) in [(0, 1), (3, 70_000), (65_533, 10), (65_537, 131_075), (200_001, 100_002)] {
                let mut part = vec![0xee; len * 8];
                three.install(|| decode_range(&alone, &mode, 300_003, first as u64, &mut part)).unwrap();
                assert!(part == back[first * 8..(first + len) * 8], "{mode:?} {first} {len}");
            }
        }
    }

    #[test]
    fn bytes_may_be_unaligned() {
        let values = wave(101);
        for mode in MODES {
            let expected = stored(&values, mode);
            let shifted = [&[0][..], &bytes(&values)].concat();
            let mut out = vec![1, 2, 3];
            encode(&shifted[1..], &mode, &mut out).unwrap();
            assert_eq!(out[3..], expected);
            let mut back = vec![0; 809];
            decode(&out[3..], &mode, &mut back[1..]).unwrap();
            assert_eq!(back[1..], decoded(&expected, mode, 101));
        }
    }

    #[test]
    fn unrepresentable_values_are_named() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in [0, 4, 2000] {
                let mut values = wave(2001);
                values[at] = bad;
                let error = encode(&bytes(&values), &Zfp::FixedRate(8.0), &mut Vec::new()).unwrap_err();
                assert!(error.to_string().contains(&format!("value {at} is")), "{error}");
            }
        }
        assert!(encode(&[0; 9], &Zfp::FixedRate(8.0), &mut Vec::new()).is_err(), "not whole values");
    }

    #[test]
    fn short_and_long_streams_are_rejected() {
        let values = wave(403);
        for mode in MODES {
            let whole = stored(&values, mode);
            let mut back = vec![0; 403 * 8];
            // Bits that no value needs may be missing; none that a value needs.
            for cut in 0..whole.len() - 7 {
                assert!(decode(&whole[..cut], &mode, &mut back).is_err(), "{mode:?} cut at {cut}");
            }
            let expected = decoded(&whole, mode, 403);
            for cut in whole.len() - 7..whole.len() {
                if decode(&whole[..cut], &mode, &mut back).is_ok() {
                    assert_eq!(back, expected, "{mode:?} cut at {cut}");
                }
            }
            let longer = [&whole[..], &[0; 5000]].concat();
            assert!(decode(&longer, &mode, &mut back).is_err(), "{mode:?} too long");
            assert!(decode_range(&whole, &mode, 403, 400, &mut [0; 32]).is_err(), "past the end");
            assert!(decode_range(&whole, &mode, u64::MAX, u64::MAX, &mut [0; 8]).is_err(), "past all ends");
            for total in [1 << 40, u64::MAX] {
                // Each block takes a bit: this must be detected without decoding them.
                assert!(decode_range(&whole, &mode, total, total - 1, &mut [0; 8]).is_err(), "too few bits");
            }
            decode_range(&whole, &mode, 403, 403, &mut []).unwrap();
        }
    }

    #[test]
    fn damaged_streams_never_panic() {
        let values = wave(40);
        let mut back = vec![0; 40 * 8];
        for mode in MODES {
            let whole = stored(&values, mode);
            for at in 0..whole.len() {
                for flip in [1, 0x10, 0x80, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] ^= flip;
                    _ = decode(&damaged, &mode, &mut back);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn ranges_are_parts_of_the_whole(n in 1u32..600, ends in any::<[prop::sample::Index; 2]>(), at in 0usize..6) {
            let whole = stored(&wave(n), MODES[at]);
            let back = decoded(&whole, MODES[at], n as usize);
            let [one, other] = ends.map(|end| end.index(n as usize));
            let (first, last) = (one.min(other), one.max(other));
            let mut part = vec![0xee; (last - first + 1) * 8];
            decode_range(&whole, &MODES[at], n.into(), first as u64, &mut part).unwrap();
            prop_assert_eq!(&part[..], &back[first * 8..(last + 1) * 8]);
        }
    }
}
