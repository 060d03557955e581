//! Error bounds hold for any values.

use proptest::prelude::*;
use tercet_tgm::precision::{PRECISION, choose, deviation};
use tercet_tgm::{DTYPES, DType, DataObjectDescriptor, EncodeError, EncodeOptions, ErrorKind};

use crate::descriptors::{field, message_of, packed};

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
