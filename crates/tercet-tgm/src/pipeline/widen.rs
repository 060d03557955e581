//! Exact conversion of values to float64.

use rayon::prelude::*;
use tercet_core::DType;
use tercet_core::tensor::{Buffer, OutOfMemory, f16};
use thiserror::Error;

/// The number of values per parallel task.
const PIECE: usize = 1 << 16;

/// The error of values that cannot be converted to float64.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WidenError {
    /// The element type cannot be converted.
    #[error("{dtype} cannot be converted to float64")]
    Unsupported {
        /// The element type.
        dtype: DType,
    },
    /// An integer that float64 cannot represent exactly.
    #[error("element {element} has no exact float64 value")]
    Inexact {
        /// The number of the first such element.
        element: u64,
    },
    /// The converted values do not fit into memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Whether [`widen_to_f64`] supports an element type: all real types other than float64.
pub fn can_widen_to_f64(dtype: DType) -> bool {
    !matches!(dtype, DType::F64 | DType::C64 | DType::C128 | DType::Bitmask)
}

/// Converts little-endian values to float64, as packing, `zfp` and `sz3` require. A value that would be rounded is an
/// error.
///
/// ```
/// use tercet_tgm::{DType, widen_to_f64};
///
/// assert_eq!(widen_to_f64(DType::U8, &[2]).unwrap()[..], 2f64.to_le_bytes());
/// assert!(widen_to_f64(DType::U64, &u64::MAX.to_le_bytes()).is_err());
/// ```
pub fn widen_to_f64(dtype: DType, values: &[u8]) -> Result<Buffer, WidenError> {
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
        DType::Bool | DType::U8 => convert(values, |b| Some(f64::from(u8::from_le_bytes(b)))),
        DType::U16 => convert(values, |b| Some(f64::from(u16::from_le_bytes(b)))),
        DType::U32 => convert(values, |b| Some(f64::from(u32::from_le_bytes(b)))),
        DType::U64 => convert(values, |b| exact(u64::from_le_bytes(b).into())),
        _ => Err(WidenError::Unsupported { dtype }),
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

fn convert<const N: usize>(
    values: &[u8],
    number: impl Fn([u8; N]) -> Option<f64> + Sync,
) -> Result<Buffer, WidenError> {
    let (values, _) = values.as_chunks::<N>();
    // An overflowing length is an allocation that fails.
    let mut out = Buffer::zeroed(values.len().saturating_mul(8))?;
    let (slots, _) = out.as_chunks_mut::<8>();
    let piece = |(from, to): (&[[u8; N]], &mut [[u8; 8]])| {
        from.iter().zip(to).position(|(bytes, slot)| match number(*bytes) {
            Some(float) => {
                *slot = float.to_le_bytes();
                false
            }
            None => true,
        })
    };
    let rounded = values
        .par_chunks(PIECE)
        .zip(slots.par_chunks_mut(PIECE))
        .map(piece)
        .enumerate()
        .find_map_first(|(number, at)| at.map(|at| number * PIECE + at));
    match rounded {
        None => Ok(out),
        Some(at) => Err(WidenError::Inexact { element: at as u64 }),
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
        assert_eq!(floats(&widen_to_f64(DType::F16, &[0, 0x3c, 0, 0xc4]).unwrap()), [1.0, -4.0]);
        assert_eq!(floats(&widen_to_f64(DType::BF16, &[0x80, 0x3f, 0, 0xc0]).unwrap()), [1.0, -2.0]);
        assert_eq!(floats(&widen_to_f64(DType::I8, &[0xff, 7]).unwrap()), [-1.0, 7.0]);
        let f32s: Vec<u8> = [0.1f32, -7.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(floats(&widen_to_f64(DType::F32, &f32s).unwrap()), [f64::from(0.1f32), -7.5]);
        assert!(widen_to_f64(DType::Bitmask, &[1]).is_err());
        assert!(floats(&widen_to_f64(DType::U16, &[]).unwrap()).is_empty());
    }

    #[test]
    fn integers_that_would_be_rounded_are_rejected() {
        let bytes = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let fits = [i64::MIN, 1 << 60, -(1 << 53), 5];
        let widened = widen_to_f64(DType::I64, &bytes(&fits)).unwrap();
        assert!(
            floats(&widened).iter().zip(fits).all(|(float, integer)| exact(integer.into()) == Some(*float))
        );
        let mut many = vec![3; 200_000];
        many[150_001] = (1 << 53) + 1;
        many[199_999] = i64::MAX;
        let error = widen_to_f64(DType::I64, &bytes(&many)).unwrap_err();
        assert_eq!(error, WidenError::Inexact { element: 150_001 });
        assert!(widen_to_f64(DType::U64, &u64::MAX.to_le_bytes()).is_err());
    }
}
