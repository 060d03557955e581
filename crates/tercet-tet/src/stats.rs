//! [`Stats`]: count, NaN count, min, max and sum of a chunk, as the integrity block stores them.

use tercet_core::tensor::f16;
use tercet_core::{Element, ElementType, Scalar as _, with_element};

/// The statistics of a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The number of elements.
    pub count: u64,
    /// The number of NaN elements.
    pub nan_count: u64,
    /// Min, max and sum of the elements that are not NaN.
    pub range: Range,
}

/// Min, max and sum, by kind of element type.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Range {
    Signed { min: i64, max: i64, sum: i128 },
    Unsigned { min: u64, max: u64, sum: i128 },
    Float { min: f64, max: f64, sum: f64 },
}

/// The bits of a NaN.
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

impl Stats {
    /// Computes the statistics of the little-endian bytes of a chunk.
    pub fn compute(dtype: ElementType, chunk: &[u8]) -> Self {
        with_element!(dtype, |T| compute_typed::<T>(chunk))
    }

    /// Encodes the 48 bytes of a statistics row.
    pub fn encode(&self) -> [u8; 48] {
        let mut out = [0; 48];
        out[0..8].copy_from_slice(&self.count.to_le_bytes());
        out[8..16].copy_from_slice(&self.nan_count.to_le_bytes());
        let (min, max) = match self.range {
            Range::Signed { min, max, sum } => {
                out[32..].copy_from_slice(&sum.to_le_bytes());
                (min.to_le_bytes(), max.to_le_bytes())
            }
            Range::Unsigned { min, max, sum } => {
                out[32..].copy_from_slice(&sum.to_le_bytes());
                (min.to_le_bytes(), max.to_le_bytes())
            }
            Range::Float { min, max, sum } => {
                out[32..40].copy_from_slice(&sum.to_le_bytes());
                (min.to_le_bytes(), max.to_le_bytes())
            }
        };
        out[16..24].copy_from_slice(&min);
        out[24..32].copy_from_slice(&max);
        out
    }

    /// Decodes a statistics row.
    pub fn decode(dtype: ElementType, bytes: &[u8; 48]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            word
        };
        let mut sum = [0; 16];
        sum.copy_from_slice(&bytes[32..]);
        let range = match dtype {
            ElementType::I16 | ElementType::I32 | ElementType::I64 => Range::Signed {
                min: i64::from_le_bytes(word(16)),
                max: i64::from_le_bytes(word(24)),
                sum: i128::from_le_bytes(sum),
            },
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => Range::Unsigned {
                min: u64::from_le_bytes(word(16)),
                max: u64::from_le_bytes(word(24)),
                sum: i128::from_le_bytes(sum),
            },
            ElementType::F16 | ElementType::F32 | ElementType::F64 => Range::Float {
                min: f64::from_le_bytes(word(16)),
                max: f64::from_le_bytes(word(24)),
                sum: f64::from_le_bytes(word(32)),
            },
        };
        Self { count: u64::from_le_bytes(word(0)), nan_count: u64::from_le_bytes(word(8)), range }
    }

    /// The statistics of two parts of a chunk together.
    #[cfg(any(unix, windows))]
    pub(crate) fn join(&self, other: &Self) -> Self {
        let range = match (self.range, other.range) {
            (Range::Float { min, max, sum }, Range::Float { min: min2, max: max2, sum: sum2 }) => {
                let known = |number: f64| if number.is_nan() { NAN } else { number };
                // Min and max are NaN only if every element is.
                Range::Float { min: known(min.min(min2)), max: known(max.max(max2)), sum: known(sum + sum2) }
            }
            (Range::Signed { min, max, sum }, Range::Signed { min: min2, max: max2, sum: sum2 }) => {
                Range::Signed { min: min.min(min2), max: max.max(max2), sum: sum + sum2 }
            }
            (Range::Unsigned { min, max, sum }, Range::Unsigned { min: min2, max: max2, sum: sum2 }) => {
                Range::Unsigned { min: min.min(min2), max: max.max(max2), sum: sum + sum2 }
            }
            // Parts of a chunk have one type.
            (range, _) => range,
        };
        Self { count: self.count + other.count, nan_count: self.nan_count + other.nan_count, range }
    }

    /// Whether two statistics of the same chunk agree. Float sums may differ by the order of addition, within a
    /// tolerance relative to `magnitude`, the sum of absolute values.
    pub(crate) fn agrees(&self, other: &Self, magnitude: f64) -> bool {
        let (Range::Float { min, max, sum }, Range::Float { min: min2, max: max2, sum: sum2 }) =
            (self.range, other.range)
        else {
            return self == other;
        };
        let exact = |a: f64, b: f64| a.to_bits() == b.to_bits();
        self.count == other.count
            && self.nan_count == other.nan_count
            && exact(min, min2)
            && exact(max, max2)
            && (exact(sum, sum2) || (sum - sum2).abs() <= 1e-9 * magnitude)
    }
}

/// The sum of absolute values of the elements that are not NaN.
pub(crate) fn magnitude(dtype: ElementType, chunk: &[u8]) -> f64 {
    with_element!(dtype, |T| {
        let values = chunk.chunks_exact(size_of::<T>());
        values
            .map(|bytes| bytemuck::pod_read_unaligned::<T>(bytes).swap_le().to_f64().abs())
            .filter(|value| !value.is_nan())
            .sum()
    })
}

fn compute_typed<T: Measured>(chunk: &[u8]) -> Stats {
    let mut total = T::Accumulator::default();
    match bytemuck::try_cast_slice::<u8, T>(chunk) {
        Ok(values) if cfg!(target_endian = "little") => total.add(values),
        // Unaligned, or big-endian host: copied block by block.
        _ => {
            let mut piece = [T::zeroed(); BLOCK];
            for bytes in chunk.chunks(size_of_val(&piece)) {
                let len = bytes.len() / size_of::<T>();
                bytemuck::cast_slice_mut::<T, u8>(&mut piece)[..bytes.len()].copy_from_slice(bytes);
                piece[..len].iter_mut().for_each(|value| *value = value.swap_le());
                total.add(&piece[..len]);
            }
        }
    }
    total.finish()
}

/// An element type with its accumulator.
trait Measured: Element {
    type Accumulator: Accumulate<Self>;
    fn to_f64(self) -> f64;
}

trait Accumulate<T>: Default {
    fn add(&mut self, values: &[T]);
    fn finish(self) -> Stats;
}

/// Independent partial sums: without a chain of dependent additions the compiler can use
/// SIMD registers.
const LANES: usize = 16;
/// Elements summed without compensation: few enough that rounding stays far below the tolerance.
const BLOCK: usize = 4096;

/// Count, NaN count, range and compensated sum of floats.
struct FloatTotal {
    count: u64,
    nan_count: u64,
    min: f64,
    max: f64,
    sum: f64,
    lost: f64,
    infinities: f64,
}

impl Default for FloatTotal {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { count: 0, nan_count: 0, min, max, sum: 0.0, lost: 0.0, infinities: 0.0 }
    }
}

impl FloatTotal {
    /// Adds a block of at most `BLOCK` values.
    fn add_block(&mut self, values: impl ExactSizeIterator<Item = [f64; LANES]>, rest: &[f64]) {
        let mut min = [f64::INFINITY; LANES];
        let mut max = [f64::NEG_INFINITY; LANES];
        let mut sum = [0.0; LANES];
        let mut numbers = [0u64; LANES];
        let total = values.len() * LANES + rest.len();
        for lanes in values {
            for lane in 0..LANES {
                let x = lanes[lane];
                let is_number = !x.is_nan();
                // Branch-free: NaN changes nothing.
                min[lane] = if x < min[lane] { x } else { min[lane] };
                max[lane] = if x > max[lane] { x } else { max[lane] };
                sum[lane] += if is_number { x } else { 0.0 };
                numbers[lane] += u64::from(is_number);
            }
        }
        for &x in rest {
            if !x.is_nan() {
                min[0] = min[0].min(x);
                max[0] = max[0].max(x);
                sum[0] += x;
                numbers[0] += 1;
            }
        }
        self.count += total as u64;
        self.nan_count += total as u64 - numbers.iter().sum::<u64>();
        self.min = min.into_iter().fold(self.min, f64::min);
        self.max = max.into_iter().fold(self.max, f64::max);
        for partial in sum {
            self.add_sum(partial);
        }
    }

    /// Neumaier's compensated addition. Infinities are summed separately: they would make the compensation NaN.
    fn add_sum(&mut self, x: f64) {
        let next = self.sum + x;
        if next.is_finite() {
            self.lost +=
                if self.sum.abs() >= x.abs() { (self.sum - next) + x } else { (x - next) + self.sum };
            self.sum = next;
        } else if x.is_finite() {
            // The sum of finite values overflows.
            self.infinities += next;
        } else {
            self.infinities += x;
        }
    }

    fn finish(self) -> Stats {
        // Adding +0.0 turns a negative zero into a positive one.
        let (min, max) =
            if self.nan_count == self.count { (NAN, NAN) } else { (self.min + 0.0, self.max + 0.0) };
        let sum = if self.infinities == 0.0 { self.sum + self.lost + 0.0 } else { self.infinities };
        let sum = if sum.is_nan() { NAN } else { sum };
        Stats { count: self.count, nan_count: self.nan_count, range: Range::Float { min, max, sum } }
    }
}

macro_rules! measured_floats {
    ($($type:ty, $widen:expr;)*) => {$(
        impl Measured for $type {
            type Accumulator = FloatTotal;
            #[inline]
            fn to_f64(self) -> f64 {
                $widen(self)
            }
        }
        impl Accumulate<$type> for FloatTotal {
            fn add(&mut self, values: &[$type]) {
                for block in values.chunks(BLOCK) {
                    let (lanes, rest) = block.as_chunks::<LANES>();
                    let rest: Vec<f64> = rest.iter().map(|&x| $widen(x)).collect();
                    self.add_block(lanes.iter().map(|lane| lane.map($widen)), &rest);
                }
            }
            fn finish(self) -> Stats {
                self.finish()
            }
        }
    )*};
}

measured_floats! {
    f32, f64::from;
    f64, |x: f64| x;
}

impl Measured for f16 {
    type Accumulator = FloatTotal;
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Accumulate<f16> for FloatTotal {
    fn add(&mut self, values: &[f16]) {
        use half::slice::HalfFloatSliceExt as _;
        let mut wide = [0f32; BLOCK];
        for block in values.chunks(BLOCK) {
            let wide = &mut wide[..block.len()];
            block.convert_to_f32_slice(wide); // in hardware where available
            Accumulate::<f32>::add(self, wide);
        }
    }
    fn finish(self) -> Stats {
        self.finish()
    }
}

/// Count, range and exact sum of integers.
struct IntTotal<T, W> {
    count: u64,
    range: Option<(T, T)>,
    sum: i128,
    wide: std::marker::PhantomData<W>,
}

impl<T, W> Default for IntTotal<T, W> {
    fn default() -> Self {
        Self { count: 0, range: None, sum: 0, wide: std::marker::PhantomData }
    }
}

macro_rules! measured_integers {
    // A block of `BLOCK` elements cannot overflow its `$wide` sum.
    ($($type:ty, $wide:ty, $range:ident, $word:ty;)*) => {$(
        impl Measured for $type {
            type Accumulator = IntTotal<$type, $wide>;
            #[expect(clippy::allow_attributes, reason = "not every type loses digits")]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "a magnitude, not a value")]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
        impl Accumulate<$type> for IntTotal<$type, $wide> {
            fn add(&mut self, values: &[$type]) {
                for block in values.chunks(BLOCK) {
                    let (mut min, mut max) = self.range.unwrap_or((block[0], block[0]));
                    let mut sum: $wide = 0;
                    for &x in block {
                        min = min.min(x);
                        max = max.max(x);
                        sum += <$wide>::from(x);
                    }
                    self.range = Some((min, max));
                    self.sum += i128::from(sum);
                }
                self.count += values.len() as u64;
            }
            fn finish(self) -> Stats {
                let (min, max) = self.range.unwrap_or((0, 0));
                let range = Range::$range { min: <$word>::from(min), max: <$word>::from(max), sum: self.sum };
                Stats { count: self.count, nan_count: 0, range }
            }
        }
    )*};
}

measured_integers! {
    i16, i32, Signed, i64;
    i32, i64, Signed, i64;
    i64, i128, Signed, i64;
    u8, u32, Unsigned, u64;
    u16, u32, Unsigned, u64;
    u32, u64, Unsigned, u64;
    u64, i128, Unsigned, u64;
}

#[cfg(test)]
mod tests;
