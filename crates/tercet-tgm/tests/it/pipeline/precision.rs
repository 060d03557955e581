//! Error bounds hold for any values.

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_tgm::precision::{PRECISION, advise, choose, deviation, measure};
use tercet_tgm::{DTYPES, DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind, MaskMethod};

use crate::descriptors::{field, message_of, packed, shuffled};

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]

    #[test]
    fn error_bounds_hold(
        values in prop::collection::vec(prop_oneof![
            4 => -1e3..1e3f64,
            1 => any::<f64>(),
            1 => Just(f64::NAN),
            1 => (-300..300i32).prop_map(|e| 10f64.powi(e)),
        ], 0..300),
        bound in prop_oneof![Just(0.0), (-12..12i32).prop_map(|e| 10f64.powi(e)), 1e-9..1e9f64],
    ) {
        let raw = bytes_of(&values);
        let descriptor = DataObjectDescriptor::new(DType::F64, [values.len() as u64]);
        let options = EncodeOptions::new().with_allowed(true, true).with_max_error(Some(bound));
        let message = message_of(&descriptor, &raw, &options).unwrap();
        let array = message.object(0).unwrap().decode().unwrap();
        let found = deviation(DType::F64, &raw, array.bytes());
        prop_assert!(found.max <= bound, "{found:?}");
        let record = &message.metadata().base[0][PRECISION];
        prop_assert_eq!(record.get("max_error").unwrap().as_f64(), Some(bound));
        prop_assert_eq!(record.get("measured").unwrap().as_f64(), Some(found.max));
    }
}

#[test]
fn a_wider_bound_is_never_larger() {
    let values = field(DType::F64, 5000);
    let descriptor = DataObjectDescriptor::new(DType::F64, [5000]);
    let size = |bound| {
        let chosen = choose(&descriptor, &values, bound, &EncodeOptions::new()).unwrap();
        assert!(chosen.error <= bound);
        chosen.trial.len()
    };
    let sizes: Vec<u64> = [0.0, 1e-6, 1e-3, 0.1, 10.0].map(size).to_vec();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert!(sizes[3] * 6 < sizes[0], "{sizes:?}");
}

#[test]
fn a_given_pipeline_is_measured() {
    let values = field(DType::F64, 1000);
    let descriptor = packed(8)(DataObjectDescriptor::new(DType::F64, [1000]));
    let options = |bound| EncodeOptions::new().with_max_error(Some(bound));
    assert!(message_of(&descriptor, &values, &options(0.5)).is_ok());
    let error = message_of(&descriptor, &values, &options(1e-6)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::Inexact { .. })), "{error}");
    for bound in [-1.0, f64::NAN, f64::INFINITY] {
        let error = message_of(&descriptor, &values, &options(bound)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::Bound { .. })), "{error}");
    }
}

#[test]
fn other_types_are_unchanged() {
    for dtype in DTYPES {
        let values = field(dtype, 300);
        let descriptor = DataObjectDescriptor::new(dtype, [300]);
        let chosen = choose(&descriptor, &values, 0.5, &EncodeOptions::new()).unwrap();
        assert_eq!(chosen.trial.descriptor.dtype, dtype);
        if dtype != DType::F64 {
            assert_eq!(chosen.trial.decode().unwrap(), values, "{dtype}");
        }
    }
}

/// The smallest of all levels, with and without shuffle.
#[test]
fn higher_levels_are_tried() {
    let values: Vec<u8> = (0..20_000_u32).flat_map(|n| (n / 7 * 13 % 4001).to_le_bytes()).collect();
    let descriptor = DataObjectDescriptor::new(DType::U32, [20_000]);
    let len = |descriptor: &DataObjectDescriptor| {
        measure(descriptor, &values, &EncodeOptions::new()).unwrap().trial.len()
    };
    let chosen = choose(&descriptor, &values, 0.0, &EncodeOptions::new()).unwrap();
    let mut sizes = Vec::new();
    for filtered in [descriptor.clone(), shuffled(descriptor.clone(), 4)] {
        for level in [3, 9, 19] {
            let zstd = filtered.clone().with_compression("zstd").with_param("zstd_level", level);
            sizes.push((len(&zstd), level));
        }
        let blosc2 = descriptor.clone().with_compression("blosc2").with_param("blosc2_codec", "zstd");
        for level in [5, 9] {
            sizes.push((len(&blosc2.clone().with_param("blosc2_clevel", level)), level));
        }
    }
    let smallest = sizes.iter().min().unwrap();
    assert!(chosen.trial.len() <= smallest.0, "{} {sizes:?}", chosen.trial.len());
    let default = sizes.iter().filter(|(_, level)| [3, 5].contains(level)).min().unwrap();
    assert!(smallest.0 < default.0, "the example needs a higher level: {sizes:?}");
    assert_eq!(chosen.trial.decode().unwrap(), values);
}

/// Masks are a part of the object: the shortest form is searched, unless one is given.
#[test]
fn the_shortest_mask_is_chosen() {
    let dense = |n: usize| n % 5 < 2;
    let block = |n: usize| n / 1000 % 3 == 1;
    let scattered = |n: usize| n * n % 97 == 1;
    let small = |method| EncodeOptions::new().with_allowed(true, true).with_masks(method);
    for is_nan in [&dense as &dyn Fn(usize) -> bool, &block, &scattered] {
        let value = |n: usize| if is_nan(n) { f64::NAN } else { 1.5 };
        let raw = bytes_of(&(0..40_000).map(value).collect::<Vec<_>>());
        let descriptor = DataObjectDescriptor::new(DType::F64, [40_000]);
        let len = |options: &EncodeOptions| {
            let chosen = choose(&descriptor, &raw, 0.01, options).unwrap();
            assert!(deviation(DType::F64, &raw, &chosen.trial.decode().unwrap()).is_exact);
            chosen.trial.len()
        };
        let methods = [
            MaskMethod::None,
            MaskMethod::Rle,
            MaskMethod::Roaring,
            MaskMethod::Lz4,
            MaskMethod::Zstd { level: None },
        ];
        let given = methods.map(|method| len(&small(method)));
        let found = len(&EncodeOptions::new().with_allowed(true, true));
        assert!(given.iter().all(|len| found <= *len) && found < given[2], "{found} {given:?}");
        // Without a bound the mask is as before.
        let plain = |options: &EncodeOptions| measure(&descriptor, &raw, options).unwrap().trial.stored;
        assert_eq!(plain(&EncodeOptions::new().with_allowed(true, true)), plain(&small(MaskMethod::Roaring)));
    }
}

/// A large array is judged by a sample: what is measured is what `choose` tries.
#[test]
fn advice_on_a_large_array_is_what_is_chosen() {
    let count: u64 = 5 << 19;
    let values: Vec<u8> = (0..count).flat_map(|n| ((n / 3 % 1009 * 7) as u16).to_le_bytes()).collect();
    let descriptor = DataObjectDescriptor::new(DType::U16, [count]);
    let chosen = choose(&descriptor, &values, 0.0, &EncodeOptions::new()).unwrap();
    let advice = advise(&descriptor, &values, None, &EncodeOptions::new(), &NoProgress).unwrap();
    let advised = advice.chosen().unwrap();
    assert_eq!(advised.name, chosen.candidate.to_string());
    assert_eq!(advised.measured.unwrap().bytes, chosen.trial.len());
    let estimated = || advice.candidates.iter().filter(|candidate| candidate.measured.is_none());
    assert!(estimated().count() >= 4, "{advice:?}");
    // A sample is representative here.
    assert!(estimated().all(|other| other.estimated_bytes > Some(chosen.trial.len() / 2)), "{advice:?}");
}
