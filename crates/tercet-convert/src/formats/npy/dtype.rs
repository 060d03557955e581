//! NumPy type strings of element types.

use tercet_core::DType;

/// The element types of NumPy: all of [`DType`] but `bfloat16` and `bitmask`.
pub const DTYPES: [DType; 14] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// The NumPy type string of an element type, little-endian: `<f4`, `|u1`, … `None` for types that NumPy does not have.
///
/// ```
/// use tercet_convert::npy::type_string;
/// use tercet_core::DType;
///
/// assert_eq!(type_string(DType::F32), Some("<f4"));
/// assert_eq!(type_string(DType::BF16), None);
/// ```
pub const fn type_string(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        _ => return None,
    })
}

/// Parses a type code without byte order: `f4`, `b1`, ….
pub(super) fn parse(code: &str) -> Option<DType> {
    match code {
        "?" => Some(DType::Bool),
        _ => DTYPES.into_iter().find(|&dtype| type_string(dtype).is_some_and(|name| &name[1..] == code)),
    }
}

/// Converts elements of a file in place: to little-endian numbers, and to bools of 0 and 1.
pub(super) fn convert(dtype: DType, is_big_endian: bool, out: &mut [u8]) {
    match dtype {
        DType::Bool => out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
        _ if is_big_endian => swap(dtype.swap_unit(), out),
        _ => {}
    }
}

fn swap(unit: usize, out: &mut [u8]) {
    // With a constant size each loop is vectorized.
    fn each<const N: usize>(out: &mut [u8]) {
        out.as_chunks_mut::<N>().0.iter_mut().for_each(|element| element.reverse());
    }
    match unit {
        2 => each::<2>(out),
        4 => each::<4>(out),
        8 => each::<8>(out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_numpy_type_has_a_type_string() {
        for dtype in DType::ALL {
            assert_eq!(type_string(dtype).is_some(), DTYPES.contains(&dtype), "{dtype}");
        }
    }

    #[test]
    fn type_strings_contain_the_size() {
        for dtype in DTYPES {
            let (order, code) = type_string(dtype).unwrap().split_at(1);
            let size = dtype.size().unwrap();
            assert_eq!(code[1..].parse(), Ok(size), "{code}");
            assert_eq!(order == "|", size == 1, "{code}");
            assert_eq!(parse(code), Some(dtype));
        }
        assert_eq!(parse("?"), Some(DType::Bool));
        assert_eq!(parse("f3"), None);
    }

    #[test]
    fn both_parts_of_complex_numbers_are_swapped() {
        let mut bytes: Vec<u8> = (0..16).collect();
        convert(DType::C128, true, &mut bytes);
        assert_eq!(bytes, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]);
        convert(DType::C64, true, &mut bytes[..8]);
        assert_eq!(bytes[..8], [4, 5, 6, 7, 0, 1, 2, 3]);
    }
}
