use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::source::{File, Memory};
use tercet_core::{Class, Diagnostic, ElementType};
use tercet_testkit::damage;

use super::*;

/// A file with this dictionary, padded like NumPy does.
pub(super) fn file(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    versioned(1, &format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"), values)
}

fn versioned(major: u8, dictionary: &str, values: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([major, 0]);
    let text = format!("{dictionary}  \n");
    if major == 1 {
        out.extend((text.len() as u16).to_le_bytes());
    } else {
        out.extend((text.len() as u32).to_le_bytes());
    }
    out.extend(text.bytes());
    out.extend(values);
    out
}

fn open(bytes: Vec<u8>) -> Result<Npy, Error> {
    Npy::from_source(Arc::new(Memory::new("a.npy", bytes)))
}

fn all(npy: &Npy) -> Vec<u8> {
    let mut out = vec![0; npy.bytes() as usize];
    npy.read_box(&vec![0; npy.shape().rank()], npy.shape(), &mut out).unwrap();
    out
}

/// NumPy 2.4 output of `np.arange(6, dtype='<f4').reshape(2, 3)`.
const FLOATS: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                          \n\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@";
/// NumPy 2.4 output of `np.asfortranarray(np.arange(6, dtype='>i2').reshape(2, 3))`.
const FORTRAN: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }                                                           \n\x00\x00\x00\x03\x00\x01\x00\x04\x00\x02\x00\x05";
/// NumPy 2.4 output of `np.array([True, False])`.
const BOOLS: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }                                                            \n\x01\x00";
/// NumPy 2.4 output of `np.array([-1, 2], dtype='i1')`.
const BYTES: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }                                                            \n\xff\x02";
/// NumPy 2.4 header of an array of eight axes of `u1`.
const EIGHT_AXES: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1), }                                        \n";
/// NumPy 2.4 output of `np.array(1.5)`.
pub(super) const SCALAR: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (), }                                                              \n\x00\x00\x00\x00\x00\x00\xf8?";
/// NumPy 2.4 output of `np.zeros((3, 0), 'c16')`.
pub(super) const EMPTY: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '<c16', 'fortran_order': False, 'shape': (3, 0), }                                                         \n";

#[test]
fn files_of_numpy_are_read() {
    let npy = open(FLOATS.to_vec()).unwrap();
    assert_eq!((npy.dtype(), &npy.shape()[..], npy.is_fortran()), (DType::F32, &[2, 3][..], false));
    assert_eq!(all(&npy), (0u8..6).flat_map(|i| f32::from(i).to_le_bytes()).collect::<Vec<_>>());

    let npy = open(FORTRAN.to_vec()).unwrap();
    assert_eq!((npy.dtype(), npy.descr(), npy.is_fortran()), (DType::I16, ">i2", true));
    assert_eq!(all(&npy), (0i16..6).flat_map(i16::to_le_bytes).collect::<Vec<_>>());

    let npy = open(BOOLS.to_vec()).unwrap();
    assert_eq!((npy.dtype(), npy.conversion(), all(&npy)), (DType::U8, ElementConversion::Bool, vec![1, 0]));

    let npy = open(BYTES.to_vec()).unwrap();
    assert_eq!((npy.dtype(), npy.conversion()), (DType::I16, ElementConversion::Int8));
    assert_eq!(all(&npy), [-1i16, 2].map(i16::to_le_bytes).concat());
}

#[test]
fn headers_are_what_numpy_writes() {
    assert_eq!(header(ElementType::F32, &[2, 3]).unwrap(), FLOATS[..128]);
    assert_eq!(header(ElementType::U8, &[1; 8]).unwrap(), EIGHT_AXES);
    assert_eq!(header(DType::F64, &[]).unwrap(), SCALAR[..128]);
    assert_eq!(header(DType::C128, &[3, 0]).unwrap(), EMPTY);
    let long = header(ElementType::U64, &[u64::MAX; 8]).unwrap();
    assert_eq!((long.len() % 64, long.last()), (0, Some(&b'\n')));
    // Too long for version 1.0.
    let long = header(ElementType::U8, &vec![1; 40_000]).unwrap();
    assert_eq!((long.len() % 64, &long[6..8]), (0, &[2, 0][..]));
    assert_eq!(long.len(), 12 + u32::from_le_bytes(long[8..12].try_into().unwrap()) as usize);
}

#[test]
fn any_value_but_zero_is_true() {
    let npy = open(file("'|b1'", false, "(4,)", &[0, 1, 2, 255])).unwrap();
    assert_eq!(all(&npy), [0, 1, 1, 1]);
}

#[test]
fn keys_come_in_any_order_and_with_any_spacing() {
    for dictionary in [
        "{'shape':(2,),'fortran_order':False,'descr':'<u2'}",
        "{ \"descr\" : '<u2' ,\n 'shape' : ( 2 , ) , 'fortran_order' : False , }",
        "{'descr': u'<u2', 'fortran_order': False, 'shape': (2L,)}",
    ] {
        for major in [1, 2, 3] {
            let npy = open(versioned(major, dictionary, &[1, 0, 2, 0])).unwrap();
            assert_eq!((npy.dtype(), all(&npy)), (DType::U16, vec![1, 0, 2, 0]), "{dictionary}");
        }
    }
}

#[test]
fn unsupported_dtypes_are_refused_by_name() {
    let cases = [
        ("'|O'", UnsupportedDtype::Object),
        ("[('x', '<f4'), (('t', 'y'), '<i2', (2,))]", UnsupportedDtype::Structured),
        ("('<f4', (2,))", UnsupportedDtype::Subarray),
        ("'|S5'", UnsupportedDtype::Bytes),
        ("'<U5'", UnsupportedDtype::Text),
        ("'|V3'", UnsupportedDtype::Void),
        ("'<c8'", UnsupportedDtype::Complex),
        ("'<c16'", UnsupportedDtype::Complex),
        ("'<M8[ns]'", UnsupportedDtype::DateTime),
        ("'<m8[s]'", UnsupportedDtype::TimeDelta),
        ("'<f16'", UnsupportedDtype::LongDouble),
        ("'<c32'", UnsupportedDtype::LongComplex),
        ("'=f4'", UnsupportedDtype::NativeOrder),
        ("'f4'", UnsupportedDtype::NativeOrder),
        ("'<f3'", UnsupportedDtype::Unknown),
        ("''", UnsupportedDtype::Unknown),
        ("'é'", UnsupportedDtype::Unknown),
    ];
    for (descr, expected) in cases {
        let error = open(file(descr, false, "(1,)", &[0; 8])).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::UnsupportedDtype { kind, .. } if *kind == expected),
            "{descr}: {error}"
        );
        assert_eq!(error.class(), Class::Unsupported);
    }
    let structured = open(file(cases[1].0, false, "(1,)", &[])).unwrap_err();
    assert_eq!(structured.to_string(), "a.npy: holds structured records (dtype `[x, y]`), not plain numbers");
    assert_eq!(structured.hint().unwrap().to_string(), "save each field as a separate array");
}

#[test]
fn unsupported_shapes_are_rejected() {
    let refused = |shape: &str| open(file("'|u1'", false, shape, &[0])).unwrap_err();
    for (shape, message) in [
        ("()", "a.npy: is a scalar; expected 1 to 8 axes (shape [])"),
        ("(3, 0)", "a.npy: is empty: axis 1 has extent 0 (shape [3, 0])"),
        (
            "(1, 1, 1, 1, 1, 1, 1, 1, 1)",
            "a.npy: has 9 axes, but at most 8 are allowed (shape [1, 1, 1, 1, 1, 1, 1, 1, 1])",
        ),
    ] {
        assert_eq!(
            (refused(shape).to_string().as_str(), refused(shape).class()),
            (message, Class::Unsupported)
        );
    }
    assert_eq!(refused("(18446744073709551615, 2)").class(), Class::Malformed);
    // Declares more than the file has, and more than memory: an error, without allocation.
    assert_eq!(refused("(18446744073709551000,)").class(), Class::Malformed);
    assert_eq!(refused("(1)").class(), Class::Malformed);
    assert_eq!(refused("(-1,)").class(), Class::Malformed);
}

#[test]
fn the_length_must_be_right() {
    let error = open(file("'<u2'", false, "(2,)", &[1, 2, 3])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.npy: malformed npy data › values (bytes 70..73)\n  needs 4 bytes, but only 3 are available"
    );
    let error = open(file("'<u2'", false, "(2,)", &[1, 2, 3, 4, 5])).unwrap_err();
    assert_eq!(error.to_string(), "a.npy: malformed npy data › values (bytes 74..75)\n  1 trailing byte");
    assert!(error.hint().unwrap().to_string().contains("several arrays"));
}

#[test]
fn errors_name_the_broken_part_of_a_header() {
    let message = |bytes: Vec<u8>| open(bytes).unwrap_err().to_string();
    assert!(message(b"PK\x03\x04....".to_vec()).contains("npy preamble › magic"));
    assert!(message(Vec::new()).contains("needs 6 bytes, but only 0"));
    let mut newer = FLOATS.to_vec();
    newer[6] = 4;
    assert_eq!(message(newer), "a.npy: unknown npy format version 4.0");
    for (dictionary, part) in [
        ("{'descr': '<f4', 'fortran_order': False}", "shape"),
        ("{'descr': '<f4', 'shape': (1,)}", "fortran_order"),
        ("{'shape': (1,), 'fortran_order': False}", "descr"),
        ("{'descr': 1, 'shape': (1,), 'fortran_order': False}", "descr"),
        ("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), 'fortran_order': False}", "duplicate"),
        ("{'descr': '<f4', 'shape': (1,), 'fortran_order': 0}", "neither `True` nor `False`"),
        ("{'descr': '<f4', 'shape': [1], 'fortran_order': False}", "not a tuple"),
        ("{'descr': '<f4', 'shape': ('1',), 'fortran_order': False}", "not an integer"),
        ("{'descr': '<f4', 'shape': (1,), 'fortran_order': False, 'x': 1}", "a key that is not"),
        ("{'descr': '<f4', 'shape': (eval('1'),), 'fortran_order': False}", "a literal, not a name"),
    ] {
        let error = open(versioned(1, dictionary, &[0; 4])).unwrap_err();
        assert!(error.to_string().contains(part), "{dictionary}: {error}");
        assert_eq!(error.class(), Class::Malformed);
    }
    let mut huge = b"\x93NUMPY\x02\x00".to_vec();
    huge.extend(u32::MAX.to_le_bytes());
    assert_eq!(open(huge).unwrap_err().class(), Class::Limit);
    let mut not_utf8 = versioned(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &[0; 4]);
    not_utf8[20] = 0xff;
    assert!(message(not_utf8).contains("is not valid UTF-8"));
}

#[test]
fn damaged_files_are_errors_or_arrays_of_the_right_size() {
    let structured = file("[('x', '<f4'), ('y', '|O')]", true, "(2, 3)", &[0; 8]);
    for good in [FLOATS, FORTRAN, BOOLS, BYTES, &structured] {
        for cut in damage::truncations(good) {
            assert!(open(cut.to_vec()).is_err(), "{} bytes", cut.len());
        }
        damage::for_each_flip(good, |_, bytes| {
            if let Ok(npy) = open(bytes.to_vec()) {
                let size = all(&npy).len() as u64;
                assert_eq!(Some(size), npy.shape().bytes(npy.item_size()));
            }
        });
    }
}

#[test]
fn boxes_outside_the_array_are_refused() {
    let npy = open(FLOATS.to_vec()).unwrap();
    let mut out = [0; 8];
    for (start, extents) in [
        (&[0, 2][..], &[1, 2][..]),
        (&[2, 0], &[1, 2]),
        (&[0], &[2]),
        (&[0, 0, 0], &[1, 2, 1]),
        (&[u64::MAX, 0], &[1, 2]),
    ] {
        assert_eq!(npy.read_box(start, extents, &mut out).unwrap_err().class(), Class::Request);
    }
    assert_eq!(npy.read_box(&[0, 0], &[1, 3], &mut out).unwrap_err().class(), Class::Request);
    npy.read_box(&[2, 3], &[0, 0], &mut []).unwrap();
    npy.read_box(&[1, 1], &[1, 2], &mut out).unwrap();
    assert_eq!(out, [4f32, 5.].map(f32::to_le_bytes).concat()[..]);
}

const DESCRS: [(&str, usize); 12] = [
    ("f2", 2),
    ("f4", 4),
    ("f8", 8),
    ("i1", 1),
    ("i2", 2),
    ("i4", 4),
    ("i8", 8),
    ("u1", 1),
    ("u2", 2),
    ("u4", 4),
    ("u8", 8),
    ("b1", 1),
];

/// The obvious version: element by element, by definition.
fn naive(
    values: &[u8],
    (kind, size): (&str, usize),
    big: bool,
    fortran: bool,
    shape: &[u64],
    low: &[u64],
    extents: &[u64],
) -> Vec<u8> {
    let mut out = Vec::new();
    let total: u64 = extents.iter().product();
    for linear in 0..total {
        let mut rest = linear;
        let mut position = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            position[axis] = low[axis] + rest % extents[axis];
            rest /= extents[axis];
        }
        let axes: Vec<usize> =
            if fortran { (0..shape.len()).rev().collect() } else { (0..shape.len()).collect() };
        let index = axes.iter().fold(0, |index, &axis| index * shape[axis] + position[axis]) as usize;
        let mut element = values[index * size..(index + 1) * size].to_vec();
        if big {
            element.reverse();
        }
        match kind {
            "i1" => out.extend(i16::from(element[0].cast_signed()).to_le_bytes()),
            "b1" => out.push(u8::from(element[0] != 0)),
            _ => out.extend(element),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(200)))]

    #[test]
    fn every_box_is_what_its_definition_says(
        axes in prop::collection::vec((1u64..7, any::<u64>(), any::<u64>()), 1..=4),
        ones in 0usize..=4,
        which in 0..DESCRS.len(),
        big: bool,
        fortran: bool,
        seed: u8,
    ) {
        let shape: Vec<u64> = axes.iter().map(|a| a.0).chain(vec![1; ones]).collect();
        let low: Vec<u64> = axes.iter().map(|a| a.1 % a.0).chain(vec![0; ones]).collect();
        let extents: Vec<u64> =
            axes.iter().map(|a| 1 + a.2 % (a.0 - a.1 % a.0)).chain(vec![1; ones]).collect();
        let (kind, size) = DESCRS[which];
        let count = shape.iter().product::<u64>() as usize;
        let values: Vec<u8> = (0..count * size).map(|i| (i * 37) as u8 ^ seed).collect();
        let order = if size == 1 { '|' } else if big { '>' } else { '<' };
        let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ") + ",";
        let bytes = file(&format!("'{order}{kind}'"), fortran, &format!("({text})"), &values);

        let expected = naive(&values, (kind, size), big && size > 1, fortran, &shape, &low, &extents);
        let mut out = vec![0xaa; expected.len()];
        let npy = open(bytes.clone()).unwrap();
        npy.read_box(&low, &extents, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);

        // The same through positional reads.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write(&path, &bytes);
        let read = Npy::from_source(Arc::new(File::open(&path).unwrap())).unwrap();
        out.fill(0xaa);
        read.read_box(&low, &extents, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
    }

    #[test]
    fn what_is_written_is_read(shape in prop::collection::vec(1u64..5, 1..=8), which in 0..10usize) {
        let dtype = ElementType::ALL[which];
        let count = shape.iter().product::<u64>() as usize * dtype.size();
        let values: Vec<u8> = (0..count).map(|i| i as u8).collect();
        let mut bytes = header(dtype, &shape).unwrap();
        prop_assert_eq!(bytes.len() % 64, 0);
        bytes.extend(&values);
        let npy = open(bytes).unwrap();
        prop_assert_eq!((npy.dtype(), &npy.shape()[..]), (DType::from(dtype), &shape[..]));
        prop_assert_eq!(all(&npy), values);
    }

    #[test]
    fn any_bytes_are_an_error_or_an_array(tail in prop::collection::vec(any::<u8>(), 0..200), major in 1u8..4) {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([major, 0]);
        bytes.extend(tail);
        let _ = open(bytes);
    }
}

/// Large enough that a sparse box is read in pieces.
#[test]
fn sparse_boxes_are_fetched_in_pieces() {
    let shape = [300u64, 20, 50];
    let values: Vec<u8> = (0..300 * 20 * 50 * 4).map(|i: u32| (i / 4 % 251) as u8).collect();
    for fortran in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write(&path, &file("'>u4'", fortran, "(300, 20, 50)", &values));
        let npy = Npy::from_source(Arc::new(File::open(&path).unwrap())).unwrap();
        for (low, extents) in [([0, 0, 0], [300, 1, 1]), ([5, 3, 7], [1, 17, 40]), ([0, 0, 49], [300, 20, 1])]
        {
            let mut out = vec![0; extents.iter().product::<u64>() as usize * 4];
            npy.read_box(&low, &extents, &mut out).unwrap();
            assert_eq!(out, naive(&values, ("u4", 4), true, fortran, &shape, &low, &extents));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tests make their own input")]
pub(super) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
