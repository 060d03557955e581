//! NaN and infinities in masks.

use proptest::prelude::*;
use tercet_core::{Class, Diagnostic as _};
use tercet_tgm::{
    ByteOrder, DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind, MaskKind, MaskMethod,
    Message, PipelineError, ReadOptions,
};

use crate::descriptors::{doubles, message_of, packed, shuffled};

const METHODS: [MaskMethod; 6] = [
    MaskMethod::None,
    MaskMethod::Rle,
    MaskMethod::Roaring,
    MaskMethod::Lz4,
    MaskMethod::Zstd { level: Some(7) },
    MaskMethod::Blosc2 { codec: tercet_codec::bytes::blosc2::Inner::Zstd, level: 3 },
];

fn allowed() -> EncodeOptions {
    EncodeOptions::new().with_allowed(true, true).with_small_mask_threshold(0)
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Values of which some are not finite.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1000.0..1000.0f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]

    #[test]
    fn non_finite_values_round_trip(values in prop::collection::vec(value(), 0..400), big in any::<bool>()) {
        for method in METHODS {
            let mut descriptor = DataObjectDescriptor::new(DType::F64, [values.len() as u64]);
            let mut raw = bytes_of(&values);
            if big {
                descriptor.byte_order = Some(ByteOrder::Big);
                raw.chunks_exact_mut(8).for_each(<[u8]>::reverse);
            }
            for descriptor in [descriptor.clone(), shuffled(descriptor, 8).with_compression("zstd")] {
                let message = message_of(&descriptor, &raw, &allowed().with_masks(method)).unwrap();
                let object = message.object(0).unwrap();
                let found = doubles(object.decode().unwrap().bytes());
                prop_assert!(found.iter().zip(&values).all(|(a, b)| same(*a, *b)), "{found:?} {values:?}");
                let (zeros, masks) = object.decode_with_masks().unwrap();
                for (at, (zero, value)) in doubles(zeros.bytes()).iter().zip(&values).enumerate() {
                    let expected = if value.is_finite() { *value } else { 0.0 };
                    prop_assert_eq!(zero.to_bits(), expected.to_bits());
                    for (kind, bits) in &masks {
                        let is = match kind {
                            MaskKind::Nan => value.is_nan(),
                            MaskKind::PosInf => *value == f64::INFINITY,
                            MaskKind::NegInf => *value == f64::NEG_INFINITY,
                        };
                        prop_assert_eq!(bits[at / 8] >> (7 - at % 8) & 1 == 1, is);
                    }
                }
                // Only values that occur have a mask.
                let kinds = [f64::is_nan, |v| v == f64::INFINITY, |v| v == f64::NEG_INFINITY];
                let expected = kinds.iter().filter(|is: &&fn(f64) -> bool| values.iter().any(|v| is(*v))).count();
                prop_assert_eq!(masks.len(), expected);
            }
        }
    }

    #[test]
    fn packing_ignores_masked_values(values in prop::collection::vec(value(), 1..300), bits in 1u32..40) {
        let descriptor = packed(bits)(DataObjectDescriptor::new(DType::F64, [values.len() as u64]));
        let message = message_of(&descriptor, &bytes_of(&values), &allowed()).unwrap();
        let object = message.object(0).unwrap();
        let found = doubles(object.decode().unwrap().bytes());
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let range = finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min);
        let step = if finite().count() == 0 { 0.0 } else { range * 2.0 / (f64::exp2(bits.into()) - 1.0) + 1e-9 };
        for (a, b) in found.iter().zip(&values) {
            prop_assert!(same(*a, *b) || (a - b).abs() <= step, "{a} {b} {step}");
        }
    }
}

#[test]
fn the_first_disallowed_value_is_named() {
    let values = [1.0, 2.0, f64::NEG_INFINITY, f64::NAN, f64::INFINITY];
    let plain = DataObjectDescriptor::new(DType::F64, [5]);
    let refused = |descriptor: &DataObjectDescriptor, nan, inf| {
        let options = EncodeOptions::new().with_allowed(nan, inf);
        let error = message_of(descriptor, &bytes_of(&values), &options).unwrap_err();
        assert_eq!(error.class(), Class::Request);
        assert!(error.hint().is_some(), "{error}");
        match error.into_kind() {
            ErrorKind::Encode(EncodeError::Pipeline { error, .. }) => match *error {
                PipelineError::NonFinite { index, what } => (index, what.to_string()),
                other => panic!("{other}"),
            },
            other => panic!("{other}"),
        }
    };
    for descriptor in
        [plain.clone(), plain.clone().with_compression("zstd"), packed(16)(plain.clone()), packed(0)(plain)]
    {
        assert_eq!(refused(&descriptor, false, false), (2, "-Inf".to_owned()));
        assert_eq!(refused(&descriptor, true, false), (2, "-Inf".to_owned()));
        assert_eq!(refused(&descriptor, false, true), (3, "NaN".to_owned()));
    }
}

#[test]
fn finite_arrays_get_no_mask() {
    let values = bytes_of(&[1.0, -0.0, 3.0]);
    let descriptor = DataObjectDescriptor::new(DType::F64, [3]);
    let with = message_of(&descriptor, &values, &allowed()).unwrap();
    let without = message_of(&descriptor, &values, &EncodeOptions::new()).unwrap();
    assert_eq!(with.bytes().unwrap(), without.bytes().unwrap());
}

#[test]
fn small_masks_are_not_compressed() {
    let method = |elements: usize, threshold: u64| {
        let mut values = vec![0.5; elements];
        values[elements / 2] = f64::NAN;
        let descriptor = DataObjectDescriptor::new(DType::F64, [elements as u64]);
        let options = EncodeOptions::new().with_allowed(true, false).with_small_mask_threshold(threshold);
        let message = message_of(&descriptor, &bytes_of(&values), &options).unwrap();
        let masks = message.object(0).unwrap().descriptor().masks.clone().unwrap();
        masks.get("nan").unwrap().get("method").unwrap().as_text().unwrap().to_owned()
    };
    assert_eq!(method(1024, 128), "none");
    assert_eq!(method(1025, 128), "roaring");
    assert_eq!(method(8, 0), "roaring");
}

#[test]
fn complex_and_half_floats_have_one_mask_bit_per_element() {
    let nan = f32::NAN.to_le_bytes();
    let one = 1f32.to_le_bytes();
    let inf = f32::NEG_INFINITY.to_le_bytes();
    let values = [one, one, inf, nan, one, inf, one, one].concat();
    let descriptor = DataObjectDescriptor::new(DType::C64, [4]);
    let message = message_of(&descriptor, &values, &allowed()).unwrap();
    let object = message.object(0).unwrap();
    let (zeros, masks) = object.decode_with_masks().unwrap();
    assert_eq!(zeros.bytes()[8..24], [0; 16]);
    assert_eq!(masks, [(MaskKind::Nan, vec![0b0100_0000]), (MaskKind::NegInf, vec![0b0010_0000])]);
    let back = object.decode().unwrap();
    let parts: Vec<f32> = back.bytes().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert!(parts[2].is_nan() && parts[3].is_nan());
    assert_eq!(parts[4..6], [f32::NEG_INFINITY; 2]);
    for (dtype, nan) in [(DType::F16, 0xfe01u16), (DType::BF16, 0xffc1)] {
        let values: Vec<u8> = [0x3c00, nan, 0x0001].iter().flat_map(|v: &u16| v.to_le_bytes()).collect();
        let message = message_of(&DataObjectDescriptor::new(dtype, [3]), &values, &allowed()).unwrap();
        let back = message.object(0).unwrap().decode().unwrap();
        let canonical: u16 = if dtype == DType::F16 { 0x7e00 } else { 0x7fc0 };
        assert_eq!(back.bytes()[2..4], canonical.to_le_bytes());
        assert_eq!(back.bytes()[4..], values[4..]);
    }
}

#[test]
fn mask_restoration_can_be_skipped() {
    let values = bytes_of(&[1.0, f64::NAN, 2.0]);
    let message = message_of(&DataObjectDescriptor::new(DType::F64, [3]), &values, &allowed()).unwrap();
    let options = ReadOptions::new().with_restore_non_finite(false);
    let message = Message::from_bytes_with("test", message.bytes().unwrap(), options).unwrap();
    assert_eq!(doubles(message.object(0).unwrap().decode().unwrap().bytes()), [1.0, 0.0, 2.0]);
    let ranges = message.object(0).unwrap().decode_ranges(&[1..3]).unwrap();
    assert_eq!(doubles(ranges.arrays[0].bytes()), [0.0, 2.0]);
}
