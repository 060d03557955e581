//! Sums of differences and of their squares.

use crate::exec::fold::lanes::Kernel;
use crate::exec::number::Number;

/// Squared differences are taken from a value of the block; how many times their true sum they may be before they are
/// taken again from the mean.
const CANCELLED: f64 = 64.0;

/// What one block of values has.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) number: f64,
    pub(super) mean: f64,
    pub(super) squares: f64,
    /// Whether too many digits cancelled out.
    pub(super) cancelled: bool,
}

impl Found {
    /// From the number of values and the sums of differences from `shift` and of their squares.
    #[inline(always)]
    pub(super) fn new(number: f64, shift: f64, sum: f64, squares: f64) -> Self {
        let mean = sum / number;
        let about_mean = squares - sum * mean;
        let cancelled = about_mean * CANCELLED < squares;
        let about_mean = if about_mean < 0.0 { 0.0 } else { about_mean };
        Self { number, mean: shift + mean, squares: about_mean, cancelled }
    }
}

/// Sums of differences from `pivot + shift`, and of their squares; counts values if NaN is skipped.
#[derive(Clone, Copy)]
pub(super) struct Spread<T, const N: usize, const SKIP: bool> {
    pub(super) pivot: [T; N],
    pub(super) shift: [f64; N],
}

impl<T: Number, const N: usize, const SKIP: bool> Kernel<T, N> for Spread<T, N, SKIP> {
    type Lanes = [[f64; N]; 3];
    #[inline(always)]
    fn start(&self) -> [[f64; N]; 3] {
        [[0.0; N]; 3]
    }
    #[inline(always)]
    fn step(&self, [sum, squares, number]: &mut [[f64; N]; 3], values: &[T; N]) {
        for lane in 0..N {
            let x = if T::WIDE { values[lane].minus(self.pivot[lane]) } else { values[lane].to_f64() };
            let difference = x - self.shift[lane];
            if SKIP {
                let skip = x.is_nan();
                let difference = if skip { 0.0 } else { difference };
                sum[lane] += difference;
                squares[lane] += difference * difference;
                number[lane] += if skip { 0.0 } else { 1.0 };
            } else {
                sum[lane] += difference;
                squares[lane] += difference * difference;
            }
        }
    }
}

impl<T: Number, const N: usize> Spread<T, N, false> {
    #[inline(always)]
    pub(super) fn skipping(self) -> Spread<T, N, true> {
        Spread { pivot: self.pivot, shift: self.shift }
    }
}

/// The moments of a few values, by their differences from `shift`.
#[inline(always)]
pub(super) fn about<T: Number>(values: &[T], pivot: T, shift: f64, skip_nan: bool) -> Found {
    let (mut number, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for &value in values {
        let x = if T::WIDE { value.minus(pivot) } else { value.to_f64() };
        if !(skip_nan && x.is_nan()) {
            number += 1.0;
            sum += x - shift;
            squares += (x - shift) * (x - shift);
        }
    }
    Found::new(number, shift, sum, squares)
}

/// What differences are taken from: a value itself, unless it is infinite or NaN.
#[inline(always)]
pub(super) fn shift<T: Number>(first: T, pivot: T) -> f64 {
    let first = if T::WIDE { first.minus(pivot) } else { first.to_f64() };
    if first.is_finite() { first } else { 0.0 }
}
