//! SZ3.

use tercet_tgm::precision::{Candidate, deviation};
use tercet_tgm::{DType, DataObjectDescriptor, EncodeOptions, Message};

use crate::descriptors::{field, message_of};

fn descriptor(elements: u64, mode: &str, bound: f64) -> DataObjectDescriptor {
    DataObjectDescriptor::new(DType::F64, [elements])
        .with_compression("sz3")
        .with_param("sz3_error_bound_mode", mode)
        .with_param("sz3_error_bound", bound)
}

#[test]
fn error_bounds_hold() {
    let values = field(DType::F64, 3000);
    for bound in [1e-6, 0.01, 1.0] {
        let message = message_of(&descriptor(3000, "abs", bound), &values, &EncodeOptions::new()).unwrap();
        let object = message.object(0).unwrap();
        let whole = object.decode().unwrap();
        let found = deviation(DType::F64, &values, whole.bytes());
        assert!(found.max <= bound, "{found:?}");
        let ranges = object.decode_ranges(&[7..17]).unwrap();
        assert_eq!(ranges.arrays[0].bytes(), &whole.bytes()[56..136]);
    }
}

#[test]
fn sz3_is_a_candidate_when_a_bound_is_given() {
    let values = field(DType::F64, 500);
    let plain = DataObjectDescriptor::new(DType::F64, [500]);
    let names: Vec<String> =
        Candidate::all(&plain, &values, Some(0.5)).iter().map(ToString::to_string).collect();
    assert!(names.contains(&"sz3 abs 0.5".to_owned()), "{names:?}");
}

#[test]
fn other_versions_are_rejected() {
    let values = field(DType::F64, 100);
    let message = message_of(&descriptor(100, "abs", 0.1), &values, &EncodeOptions::new()).unwrap();
    let object = message.object(0).unwrap();
    let payload = object.payload().unwrap();
    for (at, byte) in [(0, 0), (5, 9), (6, 4)] {
        let mut changed = payload.to_vec();
        changed[at] = byte;
        let objects = [tercet_tgm::PreEncoded { descriptor: object.descriptor(), payload: &changed }];
        let none = tercet_tgm::GlobalMetadata::default();
        let bytes = tercet_tgm::encode_pre_encoded(&none, &objects, &EncodeOptions::new()).unwrap();
        let message = Message::from_bytes("test", bytes).unwrap();
        assert!(message.object(0).unwrap().decode().is_err(), "byte {at}");
    }
}

#[test]
fn empty_arrays_cannot_be_compressed() {
    assert!(message_of(&descriptor(0, "abs", 0.1), &[], &EncodeOptions::new()).is_err());
}
