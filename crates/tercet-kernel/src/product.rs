//! Products without intermediate overflow or underflow.

use tercet_core::tensor::OutOfMemory;

use crate::compute::Compute;
use crate::lanes::{Block, Kernel, Target, Tile, by_lanes};
use crate::typed::{TypedAccumulator, filled};

/// Exponent bits of an f64, and their position.
const EXPONENT: u64 = 0x7ff << DIGITS;
const DIGITS: u32 = 52;
const BIAS: i64 = 1023;

/// Magnitude limits: a group of values within them multiplies without overflow or loss.
const SMALL: f64 = f64::from_bits((1023 - 250) << DIGITS);
const LARGE: f64 = f64::from_bits((1023 + 250) << DIGITS);

/// Splits a float that is not subnormal into significand and exponent. Zero, infinities and NaN become the significand.
#[inline(always)]
fn split(x: f64) -> (f64, i64) {
    let bits = x.to_bits();
    let exponent = bits & EXPONENT;
    let is_plain = (exponent != 0) & (exponent != EXPONENT);
    let digits = f64::from_bits(bits & !EXPONENT | 1023 << DIGITS);
    let exponent = (exponent >> DIGITS).cast_signed() - BIAS;
    (if is_plain { digits } else { x }, if is_plain { exponent } else { 0 })
}

/// Splits any float into significand and exponent.
fn split_any(x: f64) -> (f64, i64) {
    if x.is_subnormal() {
        let (digits, exponent) = split(x * f64::from_bits(((1023 + 64) as u64) << DIGITS));
        (digits, exponent - 64)
    } else {
        split(x)
    }
}

#[inline(always)]
fn times(into: (&mut f64, &mut i64), by: (f64, i64)) {
    let (digits, exponent) = split(*into.0 * by.0);
    *into.0 = digits;
    *into.1 += by.1 + exponent;
}

/// Product of lanes: each is a significand below 2 times a power of two, so that significands cannot overflow.
#[inline(always)]
fn together<const N: usize>(lanes: &[f64; N]) -> (f64, i64) {
    let (mut digits, mut exponents) = ([1.0; N], [0; N]);
    for lane in 0..N {
        (digits[lane], exponents[lane]) = split(lanes[lane]);
    }
    let mut half = N / 2;
    while half > 0 {
        for lane in 0..half {
            digits[lane] *= digits[lane + half];
            exponents[lane] += exponents[lane + half];
        }
        half /= 2;
    }
    (digits[0], exponents[0])
}

/// Product of all values; 1 for no values.
///
/// Values are multiplied directly in small groups. Where values may span the full f64 range (`WIDE`), magnitudes are
/// tracked, and groups with extreme magnitudes are multiplied one by one.
#[derive(Debug)]
pub(crate) struct Product<T, const WIDE: bool> {
    /// Significand: magnitude in [1, 2); or 0, infinite or NaN, with any exponent.
    digits: Vec<f64>,
    exponent: Vec<i64>,
    value: std::marker::PhantomData<T>,
}

impl<T: Compute, const WIDE: bool> Product<T, WIDE> {
    /// Values that are multiplied before the exponent is split off: f32 magnitudes are at least 2^-149, integers are below 2^64.
    const GROUP: u32 = if WIDE {
        4
    } else if T::FLOAT && size_of::<T>() == 4 {
        6
    } else {
        15
    };

    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        let (digits, exponent) = (filled(1.0, slots)?, filled(0, slots)?);
        Ok(Self { digits, exponent, value: std::marker::PhantomData })
    }

    #[inline(always)]
    fn put(&mut self, at: usize, digits: f64, exponent: i64) {
        times((&mut self.digits[at], &mut self.exponent[at]), (digits, exponent));
    }

    #[cold]
    fn put_each(&mut self, at: usize, values: impl Iterator<Item = T>) {
        for value in values {
            let (digits, exponent) = split_any(value.to_f64());
            self.put(at, digits, exponent);
        }
    }
}

/// Products and their exponents; minimum and maximum magnitudes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products<const N: usize> {
    product: [f64; N],
    exponent: [i64; N],
    least: [f64; N],
    greatest: [f64; N],
}

impl<T: Compute, const WIDE: bool> Kernel<T> for Product<T, WIDE> {
    type Lanes<const N: usize> = Products<N>;
    const HEAVY: bool = true;
    const STEPS: usize = if WIDE { 1 } else { 24 } * Self::GROUP as usize;
    const ROWS: usize = if WIDE { Self::GROUP as usize } else { 16 };

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> Products<N> {
        Products { product: [1.0; N], exponent: [0; N], least: [1.0; N], greatest: [1.0; N] }
    }

    #[inline(always)]
    fn step<const N: usize>(lanes: &mut Products<N>, values: &[T; N], number: u32) {
        if !WIDE && number > 0 && number.is_multiple_of(Self::GROUP) {
            for lane in 0..N {
                let (digits, exponent) = split(lanes.product[lane]);
                lanes.product[lane] = digits;
                lanes.exponent[lane] += exponent;
            }
        }
        for lane in 0..N {
            let x = values[lane].to_f64();
            lanes.product[lane] *= x;
            if WIDE {
                let magnitude = x.abs();
                let least = lanes.least[lane];
                lanes.least[lane] = if magnitude < least { magnitude } else { least };
                // Selects the value that is not less, instead of the greater one: NaN is kept.
                let greatest = lanes.greatest[lane];
                lanes.greatest[lane] = if magnitude <= greatest { greatest } else { magnitude };
            }
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, lanes: &Products<N>, tile: &Tile<'_, T>) {
        let mut plain = true;
        if WIDE {
            for lane in 0..N {
                plain &= (lanes.least[lane] >= SMALL) & (lanes.greatest[lane] <= LARGE);
            }
        }
        if plain {
            let digits = self.digits[at..].first_chunk_mut::<N>();
            if let (Some(digits), Some(exponent)) = (digits, self.exponent[at..].first_chunk_mut::<N>()) {
                for lane in 0..N {
                    times(
                        (&mut digits[lane], &mut exponent[lane]),
                        (lanes.product[lane], lanes.exponent[lane]),
                    );
                }
            }
        } else {
            for lane in 0..N {
                self.put_each(at + lane, tile.column(lane));
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, lanes: &Products<N>, block: &Block<'_, T, N>) {
        let mut plain = true;
        for lane in 0..N {
            plain &= !WIDE | ((lanes.least[lane] >= SMALL) & (lanes.greatest[lane] <= LARGE));
        }
        if plain {
            let (digits, exponent) = together(&lanes.product);
            self.put(at, digits, exponent + lanes.exponent.iter().sum::<i64>());
            self.take_short(at, block.tail, 0);
        } else {
            self.put_each(at, block.values());
        }
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        for value in values {
            let (digits, exponent) = split_any(value.to_f64());
            self.put(at, digits, exponent);
        }
    }
}

impl<T: Compute, const WIDE: bool> TypedAccumulator for Product<T, WIDE> {
    type Value = T;
    type State = (f64, i64);

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        self.digits.fill(1.0);
        self.exponent.fill(0);
    }

    fn len(&self) -> usize {
        self.digits.len()
    }

    by_lanes!();

    #[inline]
    fn state(&self, slot: usize) -> (f64, i64) {
        (self.digits[slot], self.exponent[slot])
    }

    #[inline]
    fn join(&mut self, slot: usize, (digits, exponent): (f64, i64)) {
        self.put(slot, digits, exponent);
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        out[0] = join(self.digits[slot], self.exponent[slot]);
    }
}

/// significand · 2^exponent, rounded once; zero is positive.
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
