//! Exact conversion to float64.

use rayon::prelude::*;
use tercet::core::tensor::{Buffer, f16};
use tercet::tgm::DType;

/// Values per parallel task.
const PIECE: usize = 1 << 16;

/// Converted values.
pub(in crate::cmd::tgm) type Widened = Result<Buffer, String>;

/// Whether values of a dtype can be converted to float64.
pub(in crate::cmd::tgm) fn can_widen(dtype: DType) -> bool {
    !matches!(dtype, DType::F64 | DType::C64 | DType::C128 | DType::Bitmask)
}

/// Converts little-endian values to float64. A value that would be rounded is an error.
pub(in crate::cmd::tgm) fn widen(dtype: DType, values: &[u8]) -> Widened {
    match dtype {
        DType::F16 => convert(values, |b| Some(f16::from_le_bytes(b).to_f64())),
        DType::BF16 => {
            convert(values, |b| Some(f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))))
        }
        DType::F32 => convert(values, |b| Some(f64::from(f32::from_le_bytes(b)))),
        DType::I8 => convert(values, |b| Some(f64::from(i8::from_le_bytes(b)))),
        DType::I16 => convert(values, |b| Some(f64::from(i16::from_le_bytes(b)))),
        DType::I32 => convert(values, |b| Some(f64::from(i32::from_le_bytes(b)))),
        DType::I64 => convert(values, |b| exact(i64::from_le_bytes(b).into())),
        DType::U8 => convert(values, |b| Some(f64::from(u8::from_le_bytes(b)))),
        DType::U16 => convert(values, |b| Some(f64::from(u16::from_le_bytes(b)))),
        DType::U32 => convert(values, |b| Some(f64::from(u32::from_le_bytes(b)))),
        DType::U64 => convert(values, |b| exact(u64::from_le_bytes(b).into())),
        _ => Err(format!("{dtype} cannot be converted to float64")),
    }
}

/// The float64 of an integer, if exact.
fn exact(integer: i128) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "compared with the integer afterwards")]
    let float = integer as f64;
    #[expect(clippy::cast_possible_truncation, reason = "integers of 64 bits stay within 128")]
    let back = float as i128;
    (back == integer).then_some(float)
}

fn convert<const N: usize>(values: &[u8], number: impl Fn([u8; N]) -> Option<f64> + Sync) -> Widened {
    let (values, _) = values.as_chunks::<N>();
    let len = values.len().checked_mul(8).ok_or("too many values")?;
    let mut out = Buffer::zeroed(len).map_err(|error| error.to_string())?;
    let (places, _) = out.as_chunks_mut::<8>();
    let piece = |(from, to): (&[[u8; N]], &mut [[u8; 8]])| {
        from.iter().zip(to).position(|(bytes, place)| match number(*bytes) {
            Some(float) => {
                *place = float.to_le_bytes();
                false
            }
            None => true,
        })
    };
    let rounded = values
        .par_chunks(PIECE)
        .zip(places.par_chunks_mut(PIECE))
        .map(piece)
        .enumerate()
        .find_map_first(|(number, at)| at.map(|at| number * PIECE + at));
    match rounded {
        None => Ok(out),
        Some(at) => Err(format!("element {at} has no exact float64 value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(buffer: &[u8]) -> Vec<f64> {
        buffer.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn conversion_is_exact() {
        assert_eq!(floats(&widen(DType::F16, &[0, 0x3c, 0, 0xc4]).unwrap()), [1.0, -4.0]);
        assert_eq!(floats(&widen(DType::BF16, &[0x80, 0x3f, 0, 0xc0]).unwrap()), [1.0, -2.0]);
        assert_eq!(floats(&widen(DType::I8, &[0xff, 7]).unwrap()), [-1.0, 7.0]);
        let f32s: Vec<u8> = [0.1f32, -7.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(floats(&widen(DType::F32, &f32s).unwrap()), [f64::from(0.1f32), -7.5]);
        assert!(widen(DType::Bitmask, &[1]).is_err());
        assert!(floats(&widen(DType::U16, &[]).unwrap()).is_empty());
    }

    #[test]
    fn integers_that_would_be_rounded_are_rejected() {
        let bytes = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let fits = [i64::MIN, 1 << 60, -(1 << 53), 5];
        let widened = widen(DType::I64, &bytes(&fits)).unwrap();
        assert!(
            floats(&widened).iter().zip(fits).all(|(float, integer)| exact(integer.into()) == Some(*float))
        );
        let mut many = vec![3; 200_000];
        many[150_001] = (1 << 53) + 1;
        many[199_999] = i64::MAX;
        assert!(widen(DType::I64, &bytes(&many)).unwrap_err().starts_with("element 150001 "));
        assert!(widen(DType::U64, &u64::MAX.to_le_bytes()).is_err());
    }
}
