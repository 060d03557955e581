//! Transforms of rows: computed in f64, rounded once to the element type.

use std::marker::PhantomData;

use half::slice::HalfFloatSliceExt as _;
use tercet_core::tensor::f16;

use crate::simd::{Work, vectorized};

/// Computes a transformed value from an input and two statistics of its slot.
trait Apply: Copy + Send + Sync + 'static {
    fn apply(x: f64, shift: f64, divisor: f64) -> f64;
}

/// x − shift
#[derive(Clone, Copy)]
struct Shift;
/// (x − shift) / divisor
#[derive(Clone, Copy)]
struct Divide;
/// ln(1 + (x − shift))
#[derive(Clone, Copy)]
struct Ln1p;
/// √(x − shift)
#[derive(Clone, Copy)]
struct Sqrt;
/// exp(x − shift) / divisor
#[derive(Clone, Copy)]
struct Softmax;

impl Apply for Shift {
    #[inline(always)]
    fn apply(x: f64, shift: f64, _: f64) -> f64 {
        x - shift
    }
}

impl Apply for Divide {
    #[inline(always)]
    fn apply(x: f64, shift: f64, divisor: f64) -> f64 {
        (x - shift) / divisor
    }
}

impl Apply for Ln1p {
    #[inline(always)]
    fn apply(x: f64, shift: f64, _: f64) -> f64 {
        (x - shift).ln_1p()
    }
}

impl Apply for Sqrt {
    #[inline(always)]
    fn apply(x: f64, shift: f64, _: f64) -> f64 {
        (x - shift).sqrt()
    }
}

impl Apply for Softmax {
    #[inline(always)]
    fn apply(x: f64, shift: f64, divisor: f64) -> f64 {
        exp(x - shift) / divisor
    }
}

/// Exponential of a number that is not large, to about one unit in the last place. Unlike the standard library's
/// version it is plain arithmetic, which compilers vectorize; the result is the same on every machine.
#[inline(always)]
fn exp(y: f64) -> f64 {
    /// Rounding constant: added to a small number, it leaves the nearest integer in the last bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    /// ln 2 in two parts: products of the first with small integers are exact.
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    /// Coefficients 1/n!, highest first.
    const TERMS: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // Smaller arguments also yield zero; larger ones do not occur.
    let y = if y > -746.0 { y } else { -746.0 };
    let y = if y < 709.0 { y } else { 709.0 };
    let n = (y * std::f64::consts::LOG2_E + MAGIC) - MAGIC;
    let rest = (y - n * LN_2[0]) - n * LN_2[1];
    let mut sum = 0.0;
    for term in TERMS {
        sum = sum * rest + term;
    }
    // 2ⁿ from its bits. If 2ⁿ is not a normal number, the result is scaled up and then down again.
    let is_tiny = y < -690.0;
    let lift = if is_tiny { 200.0 } else { 0.0 };
    let power = f64::from_bits((n + lift + MAGIC).to_bits().wrapping_add(1023) << 52);
    let lower = if is_tiny { f64::from_bits((1023 - 200) << 52) } else { 1.0 };
    sum * power * lower
}

/// Statistics of the slots of one row.
#[derive(Clone, Copy)]
enum RowSlots<'a> {
    /// All values belong to one slot.
    One { shift: f64, divisor: f64 },
    /// Each value belongs to a separate slot.
    Each { shift: &'a [f64], divisor: &'a [f64] },
}

/// Rows of values that are processed one after the other; all strides are in elements.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// Number of rows.
    pub rows: usize,
    /// Number of values of a row.
    pub width: usize,
    /// Stride from one row of the input to the next.
    pub from_row: usize,
    /// Stride from one row of the output to the next.
    pub to_row: usize,
    /// Stride of slots from one row to the next.
    pub slot_row: usize,
    /// Stride of slots from one value to the next: 0 or 1.
    pub slot_column: usize,
}

/// Statistics of all slots.
#[derive(Clone, Copy, Debug)]
pub struct SlotNumbers<'a> {
    /// Subtracted from each value.
    pub shift: &'a [f64],
    /// Divisor of each difference.
    pub divisor: &'a [f64],
}

/// The operation on rows of values: input and output, and the slot of the first value.
pub type PlaneKernel<T> = fn((&[T], &mut [T]), Plane, SlotNumbers<'_>, usize);

/// The formula of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// x − shift
    Shift,
    /// (x − shift) / divisor
    Divide,
    /// ln(1 + (x − shift))
    Ln1p,
    /// √(x − shift)
    Sqrt,
    /// exp(x − shift) / divisor
    Softmax,
}

/// An element type that can be transformed.
pub trait Real: Copy + Sized + 'static {
    /// The kernel of a formula. It is computed in f64 and rounded once; values that are not finite are copied, bit for
    /// bit.
    fn kernel(formula: Formula) -> PlaneKernel<Self>;
}

/// Transforms rows of an element type.
trait Rounded: Real {
    /// Transforms a row. Non-finite values are copied, bit for bit.
    fn row<F: Apply>(from: &[Self], to: &mut [Self], slots: RowSlots<'_>);
}

macro_rules! kernels {
    ($($type:ty)*) => {$(
        impl Real for $type {
            fn kernel(formula: Formula) -> PlaneKernel<Self> {
                match formula {
                    Formula::Shift => plane::<Self, Shift>,
                    Formula::Divide => plane::<Self, Divide>,
                    Formula::Ln1p => plane::<Self, Ln1p>,
                    Formula::Sqrt => plane::<Self, Sqrt>,
                    Formula::Softmax => plane::<Self, Softmax>,
                }
            }
        }
    )*};
}

kernels! { f16 f32 f64 }

/// Transforms the rows of a plane; `slot` is the slot of the first value.
fn plane<T: Rounded, F: Apply>(
    (from, to): (&[T], &mut [T]),
    plane: Plane,
    numbers: SlotNumbers<'_>,
    slot: usize,
) {
    vectorized(Rows { from, to, plane, numbers, slot, formula: PhantomData::<F> });
}

/// SIMD work of [`plane`]. A closure would be called, not inlined, and so be compiled without the instruction set.
struct Rows<'r, T, F> {
    from: &'r [T],
    to: &'r mut [T],
    plane: Plane,
    numbers: SlotNumbers<'r>,
    slot: usize,
    formula: PhantomData<F>,
}

impl<T: Rounded, F: Apply> Work for Rows<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn work(self) {
        let plane = self.plane;
        for row in 0..plane.rows {
            let from = &self.from[row * plane.from_row..][..plane.width];
            let to = &mut self.to[row * plane.to_row..][..plane.width];
            T::row::<F>(from, to, RowSlots::new(self.numbers, self.slot + row * plane.slot_row, plane));
        }
    }
}

impl<'a> RowSlots<'a> {
    #[inline(always)]
    fn new(numbers: SlotNumbers<'a>, slot: usize, plane: Plane) -> Self {
        if plane.slot_column == 0 {
            return Self::One { shift: numbers.shift[slot], divisor: numbers.divisor[slot] };
        }
        let slots = slot..slot + plane.width;
        Self::Each { shift: &numbers.shift[slots.clone()], divisor: &numbers.divisor[slots] }
    }
}

macro_rules! wide_floats {
    ($($type:ty, $round:expr;)*) => {$(
        impl Rounded for $type {
            #[inline(always)]
            fn row<F: Apply>(from: &[Self], to: &mut [Self], slots: RowSlots<'_>) {
                match slots {
                    RowSlots::One { shift, divisor } => {
                        for (to, &x) in to.iter_mut().zip(from) {
                            let y = $round(F::apply(f64::from(x), shift, divisor));
                            *to = if x.is_finite() { y } else { x };
                        }
                    }
                    RowSlots::Each { shift, divisor } => {
                        let slots = shift.iter().zip(divisor);
                        for ((to, &x), (&shift, &divisor)) in to.iter_mut().zip(from).zip(slots) {
                            let y = $round(F::apply(f64::from(x), shift, divisor));
                            *to = if x.is_finite() { y } else { x };
                        }
                    }
                }
            }
        }
    )*};
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn to_f32(x: f64) -> f32 {
    x as f32
}

wide_floats! {
    f32, to_f32;
    f64, |x: f64| x;
}

/// Number of f16 values converted at a time.
const HALVES: usize = 256;

impl Rounded for f16 {
    #[inline(always)]
    fn row<F: Apply>(from: &[Self], to: &mut [Self], slots: RowSlots<'_>) {
        let mut wide = [0f32; HALVES];
        for (number, (from, to)) in from.chunks(HALVES).zip(to.chunks_mut(HALVES)).enumerate() {
            let wide = &mut wide[..from.len()];
            from.convert_to_f32_slice(wide); // in hardware if supported
            match slots {
                RowSlots::One { shift, divisor } => {
                    for x in &mut *wide {
                        *x = to_odd_f32(F::apply(f64::from(*x), shift, divisor));
                    }
                }
                RowSlots::Each { shift, divisor } => {
                    let at = number * HALVES..number * HALVES + from.len();
                    for (x, (&shift, &divisor)) in
                        wide.iter_mut().zip(shift[at.clone()].iter().zip(&divisor[at]))
                    {
                        *x = to_odd_f32(F::apply(f64::from(*x), shift, divisor));
                    }
                }
            }
            to.convert_from_f32_slice(wide);
            for (to, &x) in to.iter_mut().zip(from) {
                *to = if x.is_finite() { *to } else { x };
            }
        }
    }
}

/// Rounds to f32 so that rounding the result to f16 equals rounding the number directly (round to odd): towards zero,
/// and odd if any bits were lost.
#[inline(always)]
fn to_odd_f32(x: f64) -> f32 {
    const LOST: u64 = (1 << 29) - 1;
    let bits = x.to_bits();
    let odd = u64::from(bits & LOST != 0) << 29;
    // Exact, except for numbers that become infinite or zero as f16 anyway.
    to_f32(f64::from_bits(bits & !LOST | odd))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tercet_testkit::floats::nearest_half;

    use super::*;

    proptest! {
        #[test]
        fn halves_are_rounded_once(x in any::<f64>(), near in any::<u16>(), off in -3i64..4) {
            // Numbers near f16 values and near the midpoints between two of them.
            let half = f16::from_bits(near);
            let next = f16::from_bits(near.wrapping_add(1));
            let middle = f64::midpoint(f64::from(half), f64::from(next));
            let close = |x: f64| f64::from_bits(x.to_bits().wrapping_add_signed(off));
            for x in [x, x.signum() * (x.abs() % 70_000.0), close(f64::from(half)), close(middle)] {
                let expected = nearest_half(x);
                let found = f16::from_f32_const(to_odd_f32(x));
                prop_assert!(expected == found || expected.is_nan() && found.is_nan(), "{x:e}: {expected} {found}");
            }
        }
    }

    proptest! {
        #[test]
        fn exponentials_are_those_of_the_library(y in -750.0..1.0f64, small in -1.0..1.0f64) {
            for y in [y, small, small * 1e-9, -y.abs() / 1000.0] {
                let (found, expected) = (exp(y), y.exp());
                prop_assert!((found - expected).abs() <= 4.5e-16 * expected + 5e-324, "{y:e}: {found:e} {expected:e}");
            }
        }
    }

    #[test]
    fn exponentials_at_the_ends() {
        let bits = |numbers: [f64; 4]| numbers.map(f64::to_bits);
        let ends = [0.0, -0.0, -746.0, f64::NEG_INFINITY].map(exp);
        assert_eq!(bits(ends), bits([1.0, 1.0, 0.0, 0.0]));
        assert!(exp(-744.4) > 0.0);
    }

    #[test]
    fn what_is_not_finite_stays_bit_for_bit() {
        let values = [f32::NAN, f32::from_bits(0x7f80_0001), f32::INFINITY, f32::NEG_INFINITY];
        let mut out = [0.0; 4];
        f32::row::<Softmax>(&values, &mut out, RowSlots::One { shift: 1.0, divisor: 2.0 });
        assert_eq!(values.map(f32::to_bits), out.map(f32::to_bits));
        let values = [0x7e00, 0x7c01, 0x7c00, 0xfc00].map(f16::from_bits);
        let mut out = [f16::ZERO; 4];
        f16::row::<Shift>(&values, &mut out, RowSlots::Each { shift: &[1.0; 4], divisor: &[1.0; 4] });
        assert_eq!(values.map(f16::to_bits), out.map(f16::to_bits));
    }
}
