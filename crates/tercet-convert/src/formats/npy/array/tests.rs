use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::source::{File, Memory, Mmap};
use tercet_core::{Class, Diagnostic};
use tercet_testkit::damage;

use super::super::tests::{EMPTY, SCALAR, file, write};
use super::super::{DTYPES, type_string};
use super::*;

fn open(bytes: Vec<u8>) -> Result<Array, Error> {
    Array::from_source(Arc::new(Memory::new("a.npy", bytes)))
}

fn all(array: &Array) -> Vec<u8> {
    let mut out = vec![0xaa; array.bytes() as usize];
    array.read_all(&mut out).unwrap();
    out
}

/// A shape as Python writes it.
fn tuple(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(|extent| format!("{extent},")).collect();
    format!("({})", extents.join(" "))
}

#[test]
fn arrays_without_axes_and_without_values_are_read() {
    let scalar = open(SCALAR.to_vec()).unwrap();
    assert_eq!(
        (scalar.dtype(), scalar.shape().rank(), all(&scalar)),
        (DType::F64, 0, 1.5f64.to_le_bytes().to_vec())
    );
    let empty = open(EMPTY.to_vec()).unwrap();
    assert_eq!((empty.dtype(), &empty.shape()[..], empty.bytes()), (DType::C128, &[3, 0][..], 0));
    assert_eq!((all(&empty), empty.in_place()), (vec![], Some(&[][..])));
    // An extent of 0 makes the others irrelevant.
    let huge = open(file("'>f8'", true, "(18446744073709551615, 0, 18446744073709551615)", &[])).unwrap();
    assert!(all(&huge).is_empty());
    huge.read_box(&[7, 0, 7], &[u64::MAX - 7, 0, 1], &mut []).unwrap();
    let outside = huge.read_box(&[8, 0, 7], &[u64::MAX - 7, 0, 1], &mut []).unwrap_err();
    assert_eq!(outside.class(), Class::Request);
}

#[test]
fn axes_are_counted() {
    let with = |rank: usize| open(file("'|i1'", false, &tuple(&vec![1; rank]), &[7]));
    assert_eq!(all(&with(MAX_RANK).unwrap()), [7]);
    let error = with(MAX_RANK + 1).unwrap_err();
    assert_eq!(error.class(), Class::Unsupported);
    assert!(error.to_string().starts_with("a.npy: has 65 axes, but at most 64 are allowed"), "{error}");
}

#[test]
fn only_mapped_native_values_are_in_place() {
    let values: Vec<u8> = (0..12).collect();
    let given = |descr, fortran, shape| {
        let array = open(file(descr, fortran, shape, &values)).unwrap();
        let place = array.in_place().map(<[u8]>::to_vec);
        assert!(place.is_none_or(|place| place == all(&array)), "{descr} {shape}");
        array.in_place().is_some()
    };
    assert!(given("'<u2'", false, "(2, 3)") && given("'|i1'", false, "(3, 4)"));
    assert!(given("'<u2'", true, "(1, 6, 1)") && given("'>u1'", true, "(12,)"));
    assert!(
        !given("'<u2'", true, "(2, 3)") && !given("'>u2'", false, "(6,)") && !given("'|b1'", false, "(12,)")
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    write(&path, &file("'<u2'", false, "(2, 3)", &values));
    let mapped = Array::from_source(Arc::new(Mmap::open(&path).unwrap())).unwrap();
    assert_eq!(mapped.in_place(), Some(&values[..]));
    let read = Array::from_source(Arc::new(File::open(&path).unwrap())).unwrap();
    assert_eq!((read.in_place(), all(&read)), (None, values));
}

#[test]
fn damaged_files_are_errors_or_arrays_of_the_right_size() {
    let complex = file("'>c8'", true, "(2, 1, 2)", &[1; 32]);
    for good in [SCALAR, EMPTY, &complex] {
        for cut in damage::truncations(good) {
            assert!(open(cut.to_vec()).is_err(), "{} bytes", cut.len());
        }
        damage::for_each_flip(good, |_, bytes| {
            if let Ok(array) = open(bytes.to_vec()) {
                let elements = array.shape().iter().product::<u64>();
                assert_eq!(all(&array).len() as u64, elements * array.dtype().size().unwrap() as u64);
            }
        });
    }
}

/// The obvious version: element by element, by definition.
fn naive(values: &[u8], dtype: DType, big: bool, fortran: bool, shape: &[u64]) -> Vec<u8> {
    let size = dtype.size().unwrap();
    let mut out = Vec::new();
    for linear in 0..shape.iter().product::<u64>() {
        let mut rest = linear;
        let mut position = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            position[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        let axes: Vec<usize> =
            if fortran { (0..shape.len()).rev().collect() } else { (0..shape.len()).collect() };
        let index = axes.iter().fold(0, |index, &axis| index * shape[axis] + position[axis]) as usize;
        let number = &values[index * size..(index + 1) * size];
        let parts = if matches!(dtype, DType::C64 | DType::C128) { 2 } else { 1 };
        for part in number.chunks(size / parts) {
            match (dtype, big) {
                (DType::Bool, _) => out.push(u8::from(part[0] != 0)),
                (_, true) => out.extend(part.iter().rev()),
                (_, false) => out.extend(part),
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(300)))]

    #[test]
    fn arrays_match_the_definition(
        shape in prop::collection::vec(0u64..5, 0..=5),
        which in 0..DTYPES.len(),
        big: bool,
        fortran: bool,
        seed: u8,
    ) {
        let dtype = DTYPES[which];
        let count = shape.iter().product::<u64>() as usize;
        let values: Vec<u8> = (0..count * dtype.size().unwrap()).map(|i| (i * 37) as u8 ^ seed).collect();
        let order = if big { '>' } else { '<' };
        let descr = format!("'{order}{}'", &type_string(dtype).unwrap()[1..]);
        let bytes = file(&descr, fortran, &tuple(&shape), &values);
        let expected = naive(&values, dtype, big, fortran, &shape);

        let array = open(bytes.clone()).unwrap();
        prop_assert_eq!((array.dtype(), &array.shape()[..]), (dtype, &shape[..]));
        prop_assert_eq!(all(&array), &expected[..]);
        prop_assert!(array.in_place().is_none_or(|place| place == expected));

        // The same through positional reads.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write(&path, &bytes);
        prop_assert_eq!(all(&Array::from_source(Arc::new(File::open(&path).unwrap())).unwrap()), expected);
    }

    #[test]
    fn written_arrays_are_read(shape in prop::collection::vec(0u64..4, 0..=6), which in 0..DTYPES.len()) {
        let dtype = DTYPES[which];
        let count = shape.iter().product::<u64>() as usize * dtype.size().unwrap();
        let values: Vec<u8> = (0..count).map(|i| (i % 2) as u8).collect();
        let mut bytes = super::super::header(dtype, &shape).unwrap();
        prop_assert_eq!(bytes.len() % 64, 0);
        bytes.extend(&values);
        let array = open(bytes).unwrap();
        prop_assert_eq!((array.dtype(), &array.shape()[..]), (dtype, &shape[..]));
        prop_assert_eq!(all(&array), values);
    }
}
