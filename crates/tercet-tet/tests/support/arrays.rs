//! Random arrays, and naive implementations of their operations.

use proptest::prelude::*;
use tercet_core::tensor::{AxisSlice, f16};
use tercet_core::{ElementType, Scalar as _, Selection, TensorView, with_element};
use tercet_tet::{Compression, Range, Stats};

/// An array in memory and its storage layout.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) dtype: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) compression: Compression,
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    pub(crate) fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, &self.shape, &self.bytes).expect("bytes for every element")
    }

    /// The elements of a selection, one by one.
    pub(crate) fn naive(&self, axes: &[AxisSlice]) -> Vec<u8> {
        let size = self.dtype.size();
        let counts: Vec<u64> = axes.iter().map(|slice| slice.count()).collect();
        let mut out = Vec::new();
        for mut number in 0..counts.iter().product::<u64>() {
            let mut position = vec![0; axes.len()];
            for axis in (0..axes.len()).rev() {
                position[axis] = axes[axis].start + number % counts[axis] * axes[axis].step;
                number /= counts[axis];
            }
            let element =
                position.iter().zip(&self.shape).fold(0, |at, (p, extent)| at * extent + p) as usize;
            out.extend(&self.bytes[element * size..(element + 1) * size]);
        }
        out
    }

    /// Every chunk: its coordinates and its extent.
    pub(crate) fn chunks(&self) -> Vec<(Vec<u64>, Vec<AxisSlice>)> {
        let mut chunks = vec![(Vec::new(), Vec::new())];
        for (&extent, &chunk) in self.shape.iter().zip(&self.chunk_shape) {
            let windows = (0..extent.div_ceil(chunk)).map(|c| {
                (
                    c,
                    AxisSlice {
                        start: c * chunk,
                        stop: (c * chunk).saturating_add(chunk).min(extent),
                        step: 1,
                    },
                )
            });
            let windows: Vec<_> = windows.collect();
            let with = |(coords, axes): &(Vec<u64>, Vec<AxisSlice>)| {
                let (coords, axes) = (coords.clone(), axes.clone());
                windows
                    .clone()
                    .into_iter()
                    .map(move |(c, window)| ([&coords[..], &[c]].concat(), [&axes[..], &[window]].concat()))
            };
            chunks = chunks.iter().flat_map(with).collect();
        }
        chunks
    }

    /// A selection of this array, from numbers of any size.
    pub(crate) fn selection(&self, numbers: &[(u64, u64, u64)]) -> Selection {
        let axes = self.shape.iter().zip(numbers).map(|(&extent, &(start, len, step))| {
            let start = start % extent;
            AxisSlice { start, stop: start + 1 + len % (extent - start), step: step.max(1) }
        });
        Selection::new(axes.collect(), &self.shape).expect("inside the array")
    }
}

/// The statistics of a chunk, element by element.
pub(crate) fn naive_stats(dtype: ElementType, bytes: &[u8]) -> Stats {
    with_element!(dtype, |T| {
        let elements = bytes.chunks_exact(size_of::<T>());
        let values: Vec<T> = elements.map(|e| bytemuck::pod_read_unaligned::<T>(e).swap_le()).collect();
        let count = values.len() as u64;
        let (numbers, range) = (values.iter().map(|&value| Number::from(value)), dtype);
        if !range.is_float() {
            let whole: Vec<i128> = numbers.map(|number| number.whole).collect();
            let (min, max) = (*whole.iter().min().unwrap(), *whole.iter().max().unwrap());
            let sum = whole.iter().sum();
            let range = if dtype.name().starts_with('i') {
                Range::Signed { min: min.try_into().unwrap(), max: max.try_into().unwrap(), sum }
            } else {
                Range::Unsigned { min: min.try_into().unwrap(), max: max.try_into().unwrap(), sum }
            };
            return Stats { count, nan_count: 0, range };
        }
        let floats: Vec<f64> = numbers.map(|number| number.float).collect();
        let there: Vec<f64> = floats.iter().copied().filter(|float| !float.is_nan()).collect();
        let least = |better: fn(f64, f64) -> bool| {
            there.iter().copied().reduce(|a, b| if better(b, a) { b } else { a }).unwrap_or(f64::NAN) + 0.0
        };
        let range =
            Range::Float { min: least(|b, a| b < a), max: least(|b, a| b > a), sum: there.iter().sum() };
        Stats { count, nan_count: (floats.len() - there.len()) as u64, range }
    })
}

/// An element as an integer or as a float.
struct Number {
    whole: i128,
    float: f64,
}

macro_rules! numbers {
    ($($whole:ty),*; $($float:ty),*) => {
        $(impl From<$whole> for Number {
            fn from(value: $whole) -> Self { Self { whole: value.into(), float: f64::NAN } }
        })*
        $(impl From<$float> for Number {
            fn from(value: $float) -> Self { Self { whole: 0, float: value.into() } }
        })*
    };
}
numbers!(u8, u16, u32, u64, i16, i32, i64; f16, f32, f64);

/// Asserts that statistics are correct: sums of floats within rounding, all else exactly.
pub(crate) fn assert_stats(found: Stats, expected: Stats, dtype: ElementType, bytes: &[u8]) {
    assert_eq!((found.count, found.nan_count), (expected.count, expected.nan_count));
    match (found.range, expected.range) {
        (Range::Float { min, max, sum }, Range::Float { min: low, max: high, sum: total }) => {
            assert_eq!((min.to_bits(), max.to_bits()), (low.to_bits(), high.to_bits()));
            let size = dtype.size();
            let magnitude = |element: &[u8]| match naive_stats(dtype, element).range {
                Range::Float { sum, .. } => sum.abs(),
                _ => 0.0,
            };
            let magnitudes: Vec<f64> = bytes.chunks_exact(size).map(magnitude).collect();
            if magnitudes.iter().any(|magnitude| magnitude.is_infinite()) {
                assert!(
                    sum.to_bits() == total.to_bits() || (sum.is_nan() && total.is_nan()),
                    "{sum} {total}"
                );
                return;
            }
            let tolerance = 1e-9 * magnitudes.iter().sum::<f64>();
            // Finite sums may overflow on the way.
            assert!((sum - total).abs() <= tolerance || tolerance.is_infinite(), "{sum} {total}");
        }
        (found, expected) => assert_eq!(found, expected),
    }
}

/// Arrays of every element type and rank, with chunks of every kind: whole, clipped, larger than the array.
pub(crate) fn any_array(name: &'static str) -> impl Strategy<Value = Array> {
    let axes = (1usize..=8).prop_flat_map(|rank| {
        // At most about 3000 elements, for any rank.
        let extent = [3000u64, 50, 14, 7, 5, 4, 3, 3][rank - 1];
        prop::collection::vec((1..=extent, 1..=extent + 2), rank)
    });
    let compression =
        prop_oneof![Just(Compression::None), (-3i32..6).prop_map(|level| Compression::Zstd { level })];
    (axes, prop::sample::select(&ElementType::ALL[..]), compression, any::<u64>(), any::<bool>()).prop_map(
        move |(axes, dtype, compression, seed, rough)| {
            let (shape, mut chunk_shape): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            // Not more than a few hundred chunks.
            while shape.iter().zip(&chunk_shape).map(|(s, c)| s.div_ceil(*c)).product::<u64>() > 300 {
                for chunk in &mut chunk_shape {
                    *chunk *= 2;
                }
            }
            let elements = shape.iter().product::<u64>() as usize;
            let bytes = numbers(dtype, elements, seed, rough);
            Array { name: name.to_owned(), dtype, shape, chunk_shape, compression, bytes }
        },
    )
}

/// Random bit patterns (with NaN, infinities and extremes), or small integers.
fn numbers(dtype: ElementType, elements: usize, seed: u64, rough: bool) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    if rough {
        return (0..elements * dtype.size()).map(|_| next().to_le_bytes()[3]).collect();
    }
    let small = (0..elements).map(|_| (next() >> 20) % 100);
    match dtype {
        ElementType::F16 => small.flat_map(|n| f16::from_f64(n as f64 - 50.0).to_le_bytes()).collect(),
        ElementType::F32 => small.flat_map(|n| (n as f32 / 8.0 - 5.0).to_le_bytes()).collect(),
        ElementType::F64 => small.flat_map(|n| (n as f64 / 8.0 - 5.0).to_le_bytes()).collect(),
        _ => small.flat_map(|n| n.to_le_bytes()[..dtype.size()].to_vec()).collect(),
    }
}
