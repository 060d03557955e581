//! Products that neither overflow nor vanish on the way.

use super::lanes::{self, Gather, Kernel, Panel, SHORT, Strand, Target, disjoint};
use super::{Block, Fold, Rows};
use crate::exec::number::Number;
use crate::exec::simd::{Work, vectorized};

/// The product of all values; 1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product;

/// Products of cells: digits · 2^exponent.
#[derive(Clone, Debug)]
pub(crate) struct ProductCells {
    /// At least 1 and below 2 but for the sign; or 0, infinite or NaN, whatever the exponent.
    digits: Vec<f64>,
    exponent: Vec<i64>,
}

const LANES: usize = 16;
/// The bits of an exponent, and where they begin.
const EXPONENT: u64 = 0x7ff << DIGITS;
const DIGITS: u32 = 52;
const BIAS: i64 = 1023;

/// The digits and the exponent of a float that is not subnormal. Zero, infinities and NaN are all digits.
#[inline(always)]
fn split(x: f64) -> (f64, i64) {
    let bits = x.to_bits();
    let exponent = bits & EXPONENT;
    let is_plain = (exponent != 0) & (exponent != EXPONENT);
    let digits = f64::from_bits(bits & !EXPONENT | 1023 << DIGITS);
    let exponent = (exponent >> DIGITS).cast_signed() - BIAS;
    (if is_plain { digits } else { x }, if is_plain { exponent } else { 0 })
}

/// The digits and the exponent of any float.
fn split_any(x: f64) -> (f64, i64) {
    if x.is_subnormal() {
        let (digits, exponent) = split(x * f64::from_bits(((1023 + 64) as u64) << DIGITS));
        (digits, exponent - 64)
    } else {
        split(x)
    }
}

/// Multiplies the values of each lane, unless they are subnormal, infinite or NaN.
#[derive(Clone, Copy)]
struct Multiply;

#[derive(Clone, Copy)]
struct Products<const N: usize> {
    digits: [f64; N],
    exponent: [i64; N],
    /// Not 0 if a value could not be multiplied this way.
    special: [u64; N],
}

impl<T: Number, const N: usize> Kernel<T, N> for Multiply {
    type Lanes = Products<N>;
    #[inline(always)]
    fn start(&self) -> Products<N> {
        Products { digits: [1.0; N], exponent: [0; N], special: [0; N] }
    }
    #[inline(always)]
    fn step(&self, lanes: &mut Products<N>, values: &[T; N]) {
        for lane in 0..N {
            let x = values[lane].to_f64();
            let bits = x.to_bits();
            let exponent = bits & EXPONENT;
            let digits = f64::from_bits(bits & !EXPONENT | 1023 << DIGITS);
            lanes.digits[lane] *= if x == 0.0 { x } else { digits };
            lanes.exponent[lane] += (exponent >> DIGITS).cast_signed() - BIAS;
            let subnormal = (exponent == 0) & (x != 0.0);
            lanes.special[lane] |= u64::from(subnormal | (exponent == EXPONENT));
        }
    }
}

impl ProductCells {
    /// Multiplies a cell by digits below 2^512, or 0, an infinity or NaN, times a power of two.
    #[inline(always)]
    fn put(&mut self, at: usize, digits: f64, exponent: i64) {
        times((&mut self.digits[at], &mut self.exponent[at]), (digits, exponent));
    }

    #[cold]
    fn put_specials<T: Number>(&mut self, at: usize, values: impl Iterator<Item = T>) {
        for value in values {
            let (digits, exponent) = split_any(value.to_f64());
            self.put(at, digits, exponent);
        }
    }

    #[inline]
    fn run<T: Number>(&mut self, at: usize, values: &[T]) {
        if !T::FLOAT && self.digits[at] == 0.0 {
            return;
        }
        let mut rest = values;
        if values.len() >= SHORT {
            rest = lanes::run::<T, _, LANES>(&mut Multiplier(self), at, values);
        }
        for value in rest {
            let (digits, exponent) = split_any(value.to_f64());
            self.put(at, digits, exponent);
        }
    }
}

#[inline(always)]
fn times(into: (&mut f64, &mut i64), by: (f64, i64)) {
    let (digits, exponent) = split(*into.0 * by.0);
    *into.0 = digits;
    *into.1 += by.1 + exponent;
}

/// Multiplies cells by lanes.
struct Multiplier<'a>(&'a mut ProductCells);

impl<T: Number, const N: usize> Gather<T, N> for Multiplier<'_> {
    type Kernel = Multiply;
    // Digits below 2 each: their product stays below 2^256.
    const STEPS: usize = 256;
    const NARROW: bool = false;

    #[inline(always)]
    fn kernel(&self, _: Target, _: &[T; N]) -> Multiply {
        Multiply
    }

    #[inline(always)]
    fn take(&mut self, at: usize, lanes: &Products<N>, groups: &[[T; N]], _: usize) {
        if lanes.special.iter().any(|&special| special != 0) {
            return self.0.put_specials(at, groups.as_flattened().iter().copied());
        }
        for lane in 0..N {
            self.0.put(at, lanes.digits[lane], lanes.exponent[lane]);
        }
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, lanes: &Products<N>, rows: &Rows<'_, T>, panel: Panel) {
        for lane in panel.skip..N {
            let cell = at + panel.column + lane;
            if lanes.special[lane] == 0 {
                self.0.put(cell, lanes.digits[lane], lanes.exponent[lane]);
            } else {
                let column = rows.values[panel.row * rows.stride + panel.column + lane..].iter();
                self.0.put_specials(cell, column.step_by(rows.stride.max(1)).take(panel.rows).copied());
            }
        }
    }

    #[inline(always)]
    fn take_strand(&mut self, _: usize, _: &Products<N>, _: &Strand<'_, T, N>) {}
}

/// Multiplies cell by cell.
struct Merge<'a> {
    into: (&'a mut [f64], &'a mut [i64]),
    later: (&'a [f64], &'a [i64]),
}

impl Work for Merge<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let into = self.into.0.iter_mut().zip(self.into.1);
        for (into, (&digits, &exponent)) in into.zip(self.later.0.iter().zip(self.later.1)) {
            times(into, (digits, exponent));
        }
    }
}

impl Merge<'_> {
    #[inline(always)]
    fn merge(self) {
        if self.later.0.len() < SHORT { self.work() } else { vectorized(self) }
    }
}

/// digits · 2^exponent, rounded once; a zero is positive.
fn join(digits: f64, exponent: i64) -> f64 {
    let power = |exponent: i64| f64::from_bits((exponent + BIAS).cast_unsigned() << DIGITS);
    if digits == 0.0 || !digits.is_finite() {
        return digits + 0.0;
    }
    match exponent {
        1024.. => digits * f64::INFINITY,
        -1022..1024 => digits * power(exponent),
        // Subnormal: the first product is exact.
        -1082..-1022 => digits * power(-1000) * power(exponent + 1000) + 0.0,
        _ => 0.0,
    }
}

impl Fold for Product {
    type Cells<T: Number> = ProductCells;

    fn cell_bytes<T: Number>(&self) -> usize {
        16
    }

    fn start<T: Number>(&self, block: &Block) -> ProductCells {
        ProductCells { digits: vec![1.0; block.len()], exponent: vec![0; block.len()] }
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut ProductCells, at: usize, values: &[T], _: u64) {
        cells.run(at, values);
    }

    fn rows<T: Number>(&self, cells: &mut ProductCells, at: usize, rows: &Rows<'_, T>) {
        let done = lanes::rows::<T, _, LANES>(&mut Multiplier(cells), at, rows);
        lanes::columns(rows, done, |column, _, values| cells.run(at + column, values));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut ProductCells, at: usize, value: T, _: u64) {
        cells.run(at, &[value]);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut ProductCells, usize),
        (later, from): (&ProductCells, usize),
        count: usize,
    ) {
        let (to, from) = (at..at + count, from..from + count);
        let into = (&mut into.digits[to.clone()], &mut into.exponent[to]);
        Merge { into, later: (&later.digits[from.clone()], &later.exponent[from]) }.merge();
    }

    fn merge_within<T: Number>(&self, cells: &mut ProductCells, at: usize, from: usize, count: usize) {
        let (digits, later_digits) = disjoint(&mut cells.digits, at, from, count);
        let (exponent, later_exponent) = disjoint(&mut cells.exponent, at, from, count);
        Merge { into: (digits, exponent), later: (later_digits, later_exponent) }.merge();
    }

    fn finish<T: Number>(&self, cells: ProductCells) -> Vec<f64> {
        cells
            .digits
            .into_iter()
            .zip(cells.exponent)
            .map(|(digits, exponent)| join(digits, exponent))
            .collect()
    }
}
