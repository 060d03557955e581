//! The maximum difference between decoded and original values.

use rayon::prelude::*;
use tercet_core::tensor::f16;

use tercet_core::DType;

/// The maximum difference between two arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The maximum difference, rounded up. Infinite if a non-finite value was lost, added or changed.
    pub max: f64,
    /// The first element with that difference; if all differences are zero, the first element with changed bits.
    pub at: Option<u64>,
    /// Whether all bits are equal, except for NaN: zeros keep their sign.
    pub is_exact: bool,
}

impl Deviation {
    /// Whether it is within a bound. A bound of 0 requires identical bits.
    pub(super) fn holds(self, bound: f64) -> bool {
        self.max <= bound && (bound > 0.0 || self.is_exact)
    }
}

/// No difference at all.
const EXACT: Deviation = Deviation { max: 0.0, at: None, is_exact: true };

/// The number of values per parallel task.
const PIECE: usize = 1 << 16;

/// Compares two arrays of one type, little-endian. NaN equals NaN. Arrays of different lengths differ infinitely.
pub fn deviation(dtype: DType, original: &[u8], decoded: &[u8]) -> Deviation {
    if original.len() != decoded.len() {
        return Deviation { max: f64::INFINITY, at: None, is_exact: false };
    }
    match dtype {
        DType::F16 => compare(original, decoded, 1, |b| f16::from_le_bytes(b).to_f64()),
        DType::BF16 => compare(original, decoded, 1, |b| {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
        }),
        DType::F32 => compare(original, decoded, 1, |b| f64::from(f32::from_le_bytes(b))),
        DType::F64 => compare(original, decoded, 1, f64::from_le_bytes),
        DType::C64 => compare(original, decoded, 2, |b| f64::from(f32::from_le_bytes(b))),
        DType::C128 => compare(original, decoded, 2, f64::from_le_bytes),
        DType::I8 => compare(original, decoded, 1, |b| f64::from(i8::from_le_bytes(b))),
        DType::I16 => compare(original, decoded, 1, |b| f64::from(i16::from_le_bytes(b))),
        DType::I32 => compare(original, decoded, 1, |b| f64::from(i32::from_le_bytes(b))),
        DType::U16 => compare(original, decoded, 1, |b| f64::from(u16::from_le_bytes(b))),
        DType::U32 => compare(original, decoded, 1, |b| f64::from(u32::from_le_bytes(b))),
        DType::U8 => compare(original, decoded, 1, |b| f64::from(u8::from_le_bytes(b))),
        // Types that f64 cannot represent are only compared for equality.
        DType::I64 | DType::U64 => same(original, decoded, 8),
        _ => same(original, decoded, 1),
    }
}

/// The maximum difference of `parts` numbers of `N` bytes per element.
fn compare<const N: usize>(
    original: &[u8],
    decoded: &[u8],
    parts: usize,
    number: impl Fn([u8; N]) -> f64 + Sync,
) -> Deviation {
    let ((original, _), (decoded, _)) = (original.as_chunks::<N>(), decoded.as_chunks::<N>());
    let piece = |at: usize, original: &[[u8; N]], decoded: &[[u8; N]]| {
        let mut piece = EXACT;
        for (i, (a, b)) in original.iter().zip(decoded).enumerate() {
            // Equal bytes need no arithmetic.
            if a != b {
                let (a, b) = (number(*a), number(*b));
                let found = difference(a, b);
                let is_first = piece.is_exact && !(a.is_nan() && b.is_nan());
                piece.is_exact &= !is_first;
                if is_first || found > piece.max {
                    let element = ((at * PIECE + i) / parts) as u64;
                    piece = Deviation { max: found, at: Some(element), is_exact: false };
                }
            }
        }
        piece
    };
    let larger = |a: Deviation, b: Deviation| {
        let is_exact = a.is_exact && b.is_exact;
        let larger = if a.max < b.max || a.is_exact { b } else { a };
        Deviation { is_exact, ..larger }
    };
    let pieces = original.par_chunks(PIECE).zip(decoded.par_chunks(PIECE)).enumerate();
    let pieces = pieces.map(|(at, (original, decoded))| piece(at, original, decoded));
    // In order: the first of equal differences is used.
    pieces.collect::<Vec<_>>().into_iter().fold(EXACT, larger)
}

/// The difference of two numbers, rounded up.
#[expect(clippy::float_cmp, reason = "equal numbers do not differ")]
fn difference(a: f64, b: f64) -> f64 {
    if a == b || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    let rounded = high - low;
    if !rounded.is_finite() {
        return f64::INFINITY;
    }
    // The exact rounding error.
    let part = rounded - high;
    let rest = (high - (rounded - part)) + (-low - part);
    if rest > 0.0 { rounded.next_up() } else { rounded }
}

fn same(original: &[u8], decoded: &[u8], bytes: usize) -> Deviation {
    let at = original.iter().zip(decoded).position(|(a, b)| a != b).map(|at| (at / bytes) as u64);
    Deviation { max: if at.is_some() { f64::INFINITY } else { 0.0 }, at, is_exact: at.is_none() }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these differences are exact")]
mod tests {
    use super::*;

    fn deviation_of(original: &[f64], decoded: &[f64]) -> Deviation {
        let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        deviation(DType::F64, &bytes(original), &bytes(decoded))
    }

    #[test]
    fn the_first_largest_counts() {
        let found = deviation_of(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.5, 3.0, 3.5]);
        assert_eq!(found, Deviation { max: 0.5, at: Some(1), is_exact: false });
        assert_eq!(deviation_of(&[1.0], &[1.0]), EXACT);
        assert_eq!(
            deviation_of(&[1.0, 0.0], &[1.0, -0.0]),
            Deviation { max: 0.0, at: Some(1), is_exact: false }
        );
        let far = vec![0.0; 3 * PIECE];
        for changed in [0, PIECE, 2 * PIECE + 5] {
            let mut near = far.clone();
            near[changed] = -0.0;
            let at = Some(changed as u64);
            assert_eq!(deviation_of(&far, &near), Deviation { max: 0.0, at, is_exact: false });
            near[3 * PIECE - 1] = 2.0;
            assert_eq!(deviation_of(&far, &near).at, Some(3 * PIECE as u64 - 1));
        }
    }

    #[test]
    fn non_finite_values_must_be_kept() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!(deviation_of(&[nan, inf, -inf], &[-nan, inf, -inf]), EXACT);
        for (a, b) in [(nan, 0.0), (0.0, nan), (inf, -inf), (inf, f64::MAX), (1.0, inf)] {
            assert_eq!(deviation_of(&[a], &[b]).max, inf, "{a} {b}");
        }
        assert_eq!(deviation_of(&[f64::MAX], &[-f64::MAX]).max, inf, "overflow");
    }

    #[test]
    fn differences_are_never_rounded_down() {
        // 1e16 - 0.3 is not a double; the nearest one is below the true difference.
        let (high, low) = (1e16, 0.3);
        assert!(difference(high, -low) > high, "{}", difference(high, -low));
        assert_eq!(difference(1.0, 0.5), 0.5);
        let tiny = f64::from_bits(1);
        assert!(difference(1.0, -tiny) > 1.0);
    }

    #[test]
    fn integers_and_bits_are_compared_too() {
        assert_eq!(deviation(DType::I16, &[1, 0, 5, 0], &[1, 0, 2, 0]).max, 3.0);
        assert_eq!(deviation(DType::U64, &[0; 16], &[0; 16]).max, 0.0);
        let mut other = [0; 16];
        other[9] = 1;
        let found = deviation(DType::U64, &[0; 16], &other);
        assert_eq!(found, Deviation { max: f64::INFINITY, at: Some(1), is_exact: false });
        assert_eq!(deviation(DType::U8, &[0; 2], &[0; 3]).max, f64::INFINITY);
    }
}
