//! Widening: converts element types to compute types.

use tercet_core::ElementType;
use tercet_core::tensor::f16;

use crate::compute::{ComputeType, Value};
use crate::simd::{Work, vectorized};

/// Converts f16 to f32. The conversion of the `half` library branches on CPU features, which prevents vectorization.
#[inline(always)]
pub fn from_half(half: f16) -> f32 {
    /// Difference of the exponent biases of the two types, and the exponent of the smallest normal f16.
    const REBIAS: i32 = (127 - 15) << 23;
    const MIN_NORMAL: i32 = (127 - 14) << 23;
    let half = i32::from(half.to_bits().cast_signed());
    let body = (half & 0x7fff) << 13;
    let least = f32::from_bits(MIN_NORMAL.cast_unsigned());
    let subnormal = f32::from_bits((body + MIN_NORMAL).cast_unsigned()) - least;
    // Infinities and NaN have the maximum exponent in both types.
    let special = if body >= 31 << 23 { REBIAS } else { 0 };
    let normal = f32::from_bits((body + REBIAS + special).cast_unsigned());
    let magnitude = if body < 1 << 23 { subnormal } else { normal };
    f32::from_bits(magnitude.to_bits() | (half & i32::MIN).cast_unsigned())
}

/// Widens little-endian elements to values of a compute type that represents all of them.
///
/// `out` has the same number of values as `bytes` has elements; if the lengths differ, the shorter one applies.
pub fn widen(dtype: ElementType, bytes: &[u8], to: ComputeType, out: &mut [u8]) {
    gather(dtype, bytes, 1, to, out);
}

/// Widens every `stride`th little-endian element of `bytes`, starting with the first.
pub fn gather(dtype: ElementType, bytes: &[u8], stride: usize, to: ComputeType, out: &mut [u8]) {
    let stride = stride.max(1);
    match to {
        ComputeType::F32 => {
            let out = bytemuck::cast_slice_mut::<u8, f32>(out);
            match dtype {
                ElementType::U8 => each::<1, _>(bytes, stride, out, |[byte]| f32::from(byte)),
                ElementType::U16 => each(bytes, stride, out, |word| f32::from(u16::from_le_bytes(word))),
                ElementType::I16 => each(bytes, stride, out, |word| f32::from(i16::from_le_bytes(word))),
                ElementType::F16 => each(bytes, stride, out, |word| from_half(f16::from_le_bytes(word))),
                _ => each(bytes, stride, out, f32::from_le_bytes),
            }
        }
        ComputeType::F64 => {
            let out = bytemuck::cast_slice_mut::<u8, f64>(out);
            match dtype {
                ElementType::U32 => each(bytes, stride, out, |word| f64::from(u32::from_le_bytes(word))),
                ElementType::I32 => each(bytes, stride, out, |word| f64::from(i32::from_le_bytes(word))),
                _ => each(bytes, stride, out, f64::from_le_bytes),
            }
        }
        ComputeType::I64 => {
            let out = bytemuck::cast_slice_mut::<u8, i64>(out);
            match dtype {
                ElementType::I32 => each(bytes, stride, out, |word| i64::from(i32::from_le_bytes(word))),
                _ => each(bytes, stride, out, i64::from_le_bytes),
            }
        }
        ComputeType::U64 => {
            let out = bytemuck::cast_slice_mut::<u8, u64>(out);
            match dtype {
                ElementType::U32 => each(bytes, stride, out, |word| u64::from(u32::from_le_bytes(word))),
                _ => each(bytes, stride, out, u64::from_le_bytes),
            }
        }
    }
}

/// Converts every `stride`th element of `SIZE` bytes.
fn each<const SIZE: usize, C: Copy>(
    bytes: &[u8],
    stride: usize,
    out: &mut [C],
    convert: impl Fn([u8; SIZE]) -> C + Copy,
) {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    if stride == 1 {
        return vectorized(Convert { elements, out, with: convert });
    }
    for (out, element) in out.iter_mut().zip(elements.iter().step_by(stride)) {
        *out = convert(*element);
    }
}

struct Convert<'a, const SIZE: usize, C, F> {
    elements: &'a [[u8; SIZE]],
    out: &'a mut [C],
    with: F,
}

impl<const SIZE: usize, C: Copy, F: Fn([u8; SIZE]) -> C> Work for Convert<'_, SIZE, C, F> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for (out, element) in self.out.iter_mut().zip(self.elements) {
            *out = (self.with)(*element);
        }
    }
}

impl Value {
    /// Reads a little-endian element as a value of its compute type.
    pub fn from_element(dtype: ElementType, element: &[u8]) -> Self {
        Self::widened(dtype, element, ComputeType::for_dtype(dtype))
    }

    /// Reads a little-endian element as a value of the given compute type.
    pub fn widened(dtype: ElementType, element: &[u8], to: ComputeType) -> Self {
        let mut word = [0u64];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut word)[..to.size()];
        widen(dtype, element, to, bytes);
        match to {
            ComputeType::F32 => Self::F32(bytemuck::pod_read_unaligned(bytes)),
            ComputeType::F64 => Self::F64(bytemuck::pod_read_unaligned(bytes)),
            ComputeType::I64 => Self::I64(bytemuck::pod_read_unaligned(bytes)),
            ComputeType::U64 => Self::U64(bytemuck::pod_read_unaligned(bytes)),
        }
    }
}
