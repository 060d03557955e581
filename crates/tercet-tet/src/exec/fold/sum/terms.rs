//! What is added up, and how.

use crate::exec::fold::lanes::Kernel;
use crate::exec::number::{Addend, Number};
use crate::exec::simd::{Work, vectorized};

/// What is made of a value before it is added.
pub(super) trait Term: Copy {
    type Of<T: Number>: Addend;
    fn of<T: Number>(value: T) -> Self::Of<T>;
    /// Likewise for a float, whatever it is.
    fn careful(value: f64) -> f64;
}

#[derive(Clone, Copy)]
pub(super) struct Plain;
#[derive(Clone, Copy)]
pub(super) struct Magnitude;
#[derive(Clone, Copy)]
pub(super) struct Square;

impl Term for Plain {
    type Of<T: Number> = T::Plain;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Plain {
        value.plain()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value
    }
}

impl Term for Magnitude {
    type Of<T: Number> = T::Magnitude;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Magnitude {
        value.magnitude()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value.abs()
    }
}

impl Term for Square {
    type Of<T: Number> = T::Square;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Square {
        value.square()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value * value
    }
}

pub(super) type Lane<T, M> = <<M as Term>::Of<T> as Addend>::Lane;

/// Adds up terms.
#[derive(Clone, Copy)]
pub(super) struct Add<M>(pub(super) M);

/// The lower and upper parts of sums.
pub(super) type Sums<T, M, const N: usize> = [[Lane<T, M>; N]; 2];

impl<T: Number, M: Term, const N: usize> Kernel<T, N> for Add<M> {
    type Lanes = Sums<T, M, N>;
    #[inline(always)]
    fn start(&self) -> Self::Lanes {
        [[Lane::<T, M>::default(); N]; 2]
    }
    #[inline(always)]
    fn step(&self, [low, high]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let term = M::of(values[lane]);
            low[lane] += term.low();
            if M::Of::<T>::SPLIT {
                high[lane] += term.high();
            }
        }
    }
}

/// Adds up floats as they are, without those that are NaN if so wanted, and counts them.
#[derive(Clone, Copy)]
pub(super) struct AddFloats<M> {
    pub(super) term: std::marker::PhantomData<M>,
    pub(super) skip_nan: bool,
}

impl<T: Number, M: Term, const N: usize> Kernel<T, N> for AddFloats<M> {
    type Lanes = [[f64; N]; 2];
    #[inline(always)]
    fn start(&self) -> Self::Lanes {
        [[0.0; N]; 2]
    }
    #[inline(always)]
    fn step(&self, [sum, numbers]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let value = values[lane].to_f64();
            let skip = self.skip_nan & value.is_nan();
            sum[lane] += if skip { 0.0 } else { M::careful(value) };
            numbers[lane] += if skip { 0.0 } else { 1.0 };
        }
    }
}

/// Whether addends are wrong for some of the values.
#[inline(always)]
pub(super) fn is_irregular<T: Number>(values: &[T]) -> bool {
    T::HALF && vectorized(Peak(values)) >= T::IRREGULAR
}

/// The greatest of what tells whether addends are wrong.
struct Peak<'a, T>(&'a [T]);

impl<T: Number> Work for Peak<'_, T> {
    type Output = u16;
    #[inline(always)]
    fn work(self) -> u16 {
        let mut peak = 0;
        for value in self.0 {
            peak = value.peak().max(peak);
        }
        peak
    }
}
