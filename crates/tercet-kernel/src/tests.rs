//! Tests of every reduction against a naive version, over values split into pieces in every way.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]

mod exact;
mod models;

use proptest::prelude::*;
use tercet_core::ElementType;
use tercet_core::tensor::f16;

use self::models::{close, models};
use super::*;

/// A matrix of values. Each column is folded into one slot.
#[derive(Clone, Debug)]
struct Case {
    width: usize,
    rows: usize,
    style: u8,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let widths = prop::sample::select(vec![1usize, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50, 64, 70]);
    let rows = prop::sample::select(vec![0usize, 1, 2, 31, 33, 64, 65, 130, 300]);
    (widths, rows, 0u8..5, any::<u64>()).prop_map(|(width, rows, style, seed)| Case {
        width,
        rows,
        style,
        seed,
    })
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A scalar of an element type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn to_f64(self) -> f64 {
        match self {
            Self::Integer(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    fn is_nan(self) -> bool {
        self.to_f64().is_nan()
    }

    /// Reads a value from little-endian bytes.
    fn from_le_bytes(dtype: ElementType, bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match dtype {
            ElementType::F16 => Self::Float(f16::from_bits(word as u16).to_f64()),
            ElementType::F32 => Self::Float(f64::from(f32::from_bits(word as u32))),
            ElementType::F64 => Self::Float(f64::from_bits(word)),
            ElementType::I16 => Self::Integer(i128::from(word as u16 as i16)),
            ElementType::I32 => Self::Integer(i128::from(word as u32 as i32)),
            ElementType::I64 => Self::Integer(i128::from(word as i64)),
            _ => Self::Integer(i128::from(word)),
        }
    }
}

fn is_float(dtype: ElementType) -> bool {
    matches!(dtype, ElementType::F16 | ElementType::F32 | ElementType::F64)
}

fn float_bytes(dtype: ElementType, value: f64) -> Vec<u8> {
    match dtype {
        ElementType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        ElementType::F32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// Random values by style: small, arbitrary, mixed with NaN and infinities, nearly equal, or mostly NaN.
fn value(dtype: ElementType, style: u8, random: &mut Random) -> Vec<u8> {
    let bits = random.next();
    let size = dtype.size();
    let small = (bits % 17) as i64 - 8;
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][(bits >> 40) as usize % 4];
    let is_signed = matches!(dtype, ElementType::I16 | ElementType::I32 | ElementType::I64);
    let any = bits.to_le_bytes()[..size].to_vec();
    if !is_float(dtype) {
        let whole = match style {
            0 if is_signed => small,
            0 => small.abs(),
            3 if size < 8 => 100 + small,
            3 => i64::MAX - 8 + small,
            _ => return any,
        };
        return whole.to_le_bytes()[..size].to_vec();
    }
    match style {
        2 if bits >> 59 == 0 => float_bytes(dtype, special),
        1 | 2 => {
            // Keeps squares and sums from overflowing.
            let number = Number::from_le_bytes(dtype, &any).to_f64();
            let fits = number == 0.0 || (1e-100..1e100).contains(&number.abs());
            if fits { any } else { float_bytes(dtype, 1.5) }
        }
        3 => float_bytes(dtype, 1e3 + (bits % 1000) as f64 * 1e-3),
        4 if bits >> 62 != 0 => float_bytes(dtype, f64::NAN),
        _ => float_bytes(dtype, small as f64),
    }
}

/// Aligned values of a compute type.
struct Widened {
    words: Vec<u64>,
    bytes: usize,
}

impl Widened {
    fn new(dtype: ElementType, elements: &[u8], to: ComputeType) -> Self {
        let bytes = elements.len() / dtype.size() * to.size();
        let mut words = vec![0u64; bytes.div_ceil(8)];
        widen(dtype, elements, to, &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes]);
        Self { words, bytes }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice::<u64, u8>(&self.words)[..self.bytes]
    }
}

/// Statistics of values.
fn statistics(dtype: ElementType, elements: &[u8]) -> Statistics {
    let values: Vec<(Number, Value)> = elements
        .chunks(dtype.size())
        .map(|element| (Number::from_le_bytes(dtype, element), Value::from_element(dtype, element)))
        .collect();
    let mut numbers: Vec<&(Number, Value)> = values.iter().filter(|(value, _)| !value.is_nan()).collect();
    numbers.sort_by(|a, b| match (a.0, b.0) {
        (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
        (a, b) => a.to_f64().total_cmp(&b.to_f64()),
    });
    let ends = numbers.first().zip(numbers.last());
    let (min, max) = ends.map_or((Value::F64(0.0), Value::F64(0.0)), |(min, max)| (min.1, max.1));
    let end = |value: Option<&&(Number, Value)>| value.is_some_and(|value| value.0.to_f64().is_infinite());
    let infinite = u64::from(end(numbers.first())) + u64::from(end(numbers.last()));
    let whole = |value: &&(Number, Value)| if let Number::Integer(whole) = value.0 { whole } else { 0 };
    let floats: Vec<f64> = numbers.iter().map(|value| value.0.to_f64()).collect();
    Statistics {
        count: values.len() as u64,
        nan_count: (values.len() - numbers.len()) as u64,
        range: StatisticsRange {
            min,
            max,
            infinite,
            whole: numbers.iter().map(whole).sum(),
            sum: exact::sum_any(&floats),
        },
    }
}

/// Folds rows starting at `row` in a random way.
fn fill(
    accumulator: &mut dyn Accumulator,
    (dtype, elements): (ElementType, &[u8]),
    (at, width): (usize, usize),
    rows: std::ops::Range<usize>,
    way: usize,
) {
    let size = dtype.size();
    let compute = accumulator.compute();
    let row = |row: usize| &elements[row * width * size..(row + 1) * width * size];
    let column = |column: usize| -> Vec<u8> {
        rows.clone().flat_map(|number| row(number)[column * size..(column + 1) * size].to_vec()).collect()
    };
    match way {
        0 => {
            let widened: Vec<Widened> =
                rows.clone().map(|number| Widened::new(dtype, row(number), compute)).collect();
            let slices: Vec<&[u8]> = widened.iter().map(Widened::bytes).collect();
            let indices: Vec<u64> = rows.map(|row| row as u64).collect();
            if !slices.is_empty() {
                accumulator.rows(at, &slices, &indices);
            }
        }
        1 => {
            let turned: Vec<u8> = (0..width).flat_map(column).collect();
            let widened = Widened::new(dtype, &turned, compute);
            let (len, index) = (rows.len(), rows.start as u64);
            let runs = Runs { values: widened.bytes(), len, stride: len, count: width, index, index_step: 0 };
            accumulator.runs(at, &runs);
        }
        2 if accumulator.takes_statistics() => {
            for number in 0..width {
                accumulator.fold_statistics(at + number, &statistics(dtype, &column(number)));
            }
        }
        _ => {
            let all: Vec<u8> = rows.clone().flat_map(|number| row(number).to_vec()).collect();
            let slots: Vec<u32> =
                rows.clone().flat_map(|_| (at..at + width).map(|slot| slot as u32)).collect();
            let indices: Vec<u64> = rows.flat_map(|row| vec![row as u64; width]).collect();
            accumulator.scatter(&slots, Widened::new(dtype, &all, compute).bytes(), &indices);
        }
    }
}

/// Results of each column of a case, folded in pieces of all kinds.
fn folded(op: &Op, dtype: ElementType, case: &Case, elements: &[u8], random: &mut Random) -> Vec<f64> {
    let width = case.width;
    // Guard slots before and after, which must stay empty.
    let lead = random.below(3);
    let make = |slots: usize| op.accumulator(dtype, slots, &|slot| slot).unwrap();
    let mut all = make(lead + width + 1);
    let mut row = 0;
    while row < case.rows {
        let rows = row..(row + 1 + random.below(2 * case.rows)).min(case.rows);
        row = rows.end;
        let way = random.below(4);
        if random.below(2) == 0 {
            fill(&mut *all, (dtype, elements), (lead, width), rows, way);
        } else {
            let mut own = all.fresh(width + 2).unwrap();
            fill(&mut *own, (dtype, elements), (1, width), rows, way);
            own.settle();
            all.settle();
            all.merge(lead, &*own, 1, width);
        }
    }
    all.settle();
    assert_eq!((all.width(), all.slots()), (op.width(), lead + width + 1));
    let mut counts = vec![0; lead + width + 1];
    counts[lead..lead + width].fill(case.rows as u64);
    let mut results = vec![0.0; counts.len() * op.width()];
    all.finish(Counts::Each(&counts), &mut results);
    let mut empty = vec![0.0; op.width()];
    make(1).finish(Counts::Same(0), &mut empty);
    let (before, slots) = results.split_at(lead * op.width());
    let (slots, after) = slots.split_at(width * op.width());
    for slot in before.chunks(op.width()).chain([after]) {
        assert!(slot.iter().zip(&empty).all(|(a, b)| a.to_bits() == b.to_bits()), "{slot:?} is not empty");
    }
    all.clear();
    let mut cleared = vec![0.0; counts.len() * op.width()];
    all.finish(Counts::Same(0), &mut cleared);
    assert!(
        cleared
            .chunks(op.width())
            .all(|slot| slot.iter().zip(&empty).all(|(a, b)| a.to_bits() == b.to_bits()))
    );
    slots.to_vec()
}

fn check_case(dtype: ElementType, case: &Case) {
    let mut random = Random(case.seed);
    let style = if is_float(dtype) { case.style } else { case.style % 4 };
    let elements: Vec<u8> =
        (0..case.rows * case.width).flat_map(|_| value(dtype, style, &mut random)).collect();
    let numbers: Vec<Number> =
        elements.chunks(dtype.size()).map(|element| Number::from_le_bytes(dtype, element)).collect();
    for (op, model) in models(dtype) {
        let mut results = folded(&op, dtype, case, &elements, &mut random);
        // Sums that may have overflowed are infinite; they are computed again.
        if let Some(large) = op.for_large_sums(dtype)
            && results.iter().any(|found| found.is_infinite())
        {
            let again = folded(&large, dtype, case, &elements, &mut random);
            let infinite = results.iter_mut().zip(again).filter(|(found, _)| found.is_infinite());
            infinite.for_each(|(found, again)| *found = again);
        }
        for (column, found) in results.chunks(op.width()).enumerate() {
            let slot: Vec<Number> = (0..case.rows).map(|row| numbers[row * case.width + column]).collect();
            check_slot(&op, dtype, &slot, found, &model(&slot));
        }
    }
}

fn check_slot(op: &Op, dtype: ElementType, slot: &[Number], found: &[f64], wanted: &[(f64, f64)]) {
    assert_eq!(found.len(), wanted.len(), "{op:?}");
    for (&found, &(wanted, tolerance)) in found.iter().zip(wanted) {
        assert!(
            close(found, wanted, tolerance) && !(found == 0.0 && found.is_sign_negative()),
            "{op:?} of {} {dtype}: {found:e}, not {wanted:e} ± {tolerance:e}",
            slot.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(8)))]

    #[test]
    fn reductions_are_right_however_values_are_cut(case in cases()) {
        for dtype in ElementType::ALL {
            check_case(dtype, &case);
        }
    }

    #[test]
    fn long_runs_are_right(
        rows in prop::sample::select(vec![4097usize, 8192, 9001]),
        style in 0u8..5,
        seed in any::<u64>(),
    ) {
        for dtype in ElementType::ALL {
            check_case(dtype, &Case { width: 1, rows, style, seed });
        }
    }

    /// Rolling windows equal the reduction of their values.
    #[test]
    fn windows_are_merged_right(
        (outer, positions, inner) in (1usize..3, 1usize..40, 1usize..6),
        (size, step, front) in (1usize..30, 1usize..4, 0usize..8),
        (overlap, style, seed) in (any::<bool>(), 0u8..5, any::<u64>()),
    ) {
        let mut random = Random(seed);
        let windows: Vec<std::ops::Range<usize>> = (0..positions + front)
            .step_by(step)
            .map(|end| end.saturating_sub(front).min(positions)..(end + size).saturating_sub(front).min(positions))
            .collect();
        for dtype in [ElementType::F32, ElementType::F64, ElementType::I16, ElementType::I64] {
            let style = if is_float(dtype) { style } else { style % 4 };
            let count = outer * positions * inner;
            let elements: Vec<u8> = (0..count).flat_map(|_| value(dtype, style, &mut random)).collect();
            let numbers: Vec<Number> =
                elements.chunks(dtype.size()).map(|element| Number::from_le_bytes(dtype, element)).collect();
            for (op, model) in models(dtype) {
                if op.is_indexed() {
                    continue;
                }
                let mut slots = op.accumulator(dtype, count, &|slot| slot).unwrap();
                fill(&mut *slots, (dtype, &elements), (0, count), 0..1, 0);
                slots.settle();
                let roll = Roll { outer, positions, inner, size, overlap, windows: &windows };
                let width = op.width();
                let mut results = vec![f64::NAN; outer * windows.len() * inner * width];
                crate::roll(&*slots, &roll, |rolled, slots| {
                    let own = rolled.inner.len();
                    let counts: Vec<u64> = (0..rolled.outer.len() * windows.len() * own)
                        .map(|slot| windows[slot / own % windows.len()].len() as u64)
                        .collect();
                    let mut found = vec![0.0; counts.len() * width];
                    slots.finish(Counts::Each(&counts), &mut found);
                    for (line, found) in found.chunks(own * width).enumerate() {
                        let line = rolled.outer.start * windows.len() + line;
                        let at = (line * inner + rolled.inner.start) * width;
                        results[at..at + found.len()].copy_from_slice(found);
                    }
                    Ok::<(), tercet_core::tensor::OutOfMemory>(())
                })
                .unwrap();
                for (number, found) in results.chunks(op.width()).enumerate() {
                    let (line, i) = (number / inner, number % inner);
                    let window = windows[line % windows.len()].clone();
                    let at = |position| numbers[(line / windows.len() * positions + position) * inner + i];
                    let slot: Vec<Number> = window.map(at).collect();
                    let wanted = model(&slot);
                    // Infinities of both signs may be sums that overflowed: they are infinite, and computed again.
                    let is_repeated = op.for_large_sums(dtype).is_some() && found[0].is_infinite();
                    if !(is_repeated && wanted[0].0.is_nan()) {
                        check_slot(&op, dtype, &slot, found, &wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn words_convert_to_the_nearest_float(word in any::<u64>(), other in any::<u64>(), shift in 0u32..64) {
        let (word, other) = (word >> shift, other >> shift);
        prop_assert_eq!(word.to_f64(), word as f64);
        let (signed, pivot) = (word as i64, other as i64);
        prop_assert_eq!(signed.to_f64(), signed as f64);
        prop_assert_eq!(word.minus(other), (i128::from(word) - i128::from(other)) as f64);
        prop_assert_eq!(signed.minus(pivot), (i128::from(signed) - i128::from(pivot)) as f64);
    }
}

#[test]
fn elements_widen_exactly() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        let (single, wanted) = (from_half(half), half.to_f32_const());
        assert!(single.to_bits() == wanted.to_bits() || single.is_nan() && wanted.is_nan(), "{bits:#x}");
    }
    // Every second element, at an odd address.
    let bytes: Vec<u8> = [0u8].into_iter().chain((-4i16..6).flat_map(i16::to_le_bytes)).collect();
    let mut out = [0u64; 3];
    let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut out)[..20];
    gather(ElementType::I16, &bytes[1..], 2, ComputeType::F32, out);
    assert_eq!(bytemuck::cast_slice::<u8, f32>(out), [-4.0, -2.0, 0.0, 2.0, 4.0]);
}

/// However the values are cut, variances are on average at least as accurate as those of two passes in f64.
#[test]
fn variances_are_as_accurate_as_two_passes() {
    let mut random = Random(7);
    let (mut ours, mut theirs, mut count) = (0.0, 0.0, 0.0);
    for (rows, width, offset) in [3, 5, 12, 40, 100, 300]
        .into_iter()
        .flat_map(|rows| [(rows, 5, 0), (rows, 40, 1 << 34), (rows, 1, 1 << 20)])
    {
        for _ in 0..20 {
            let whole: Vec<i64> =
                (0..rows * width).map(|_| (random.next() >> 40) as i64 - (1 << 23) + offset).collect();
            let scale = random.below(40) as i32 - 20;
            let values: Vec<f64> = whole.iter().map(|&x| x as f64 * 2f64.powi(scale)).collect();
            let case = Case { width, rows, style: 0, seed: 0 };
            let op = Op::Moments { skip_nan: false };
            let found = folded(&op, ElementType::F64, &case, bytemuck::cast_slice(&values), &mut random);
            for (column, found) in found.chunks(3).enumerate() {
                let slot: Vec<i64> = whole.iter().skip(column).step_by(width).copied().collect();
                let floats: Vec<f64> = values.iter().skip(column).step_by(width).copied().collect();
                ours += exact::variance_error(found[2], &slot, scale);
                theirs += exact::variance_error(exact::two_passes(&floats), &slot, scale);
                count += 1.0;
            }
        }
    }
    let (ours, theirs) = (ours / count, theirs / count);
    assert!(ours <= theirs, "mean error {ours}, of two passes {theirs} (units of 2^-53)");
}

#[test]
fn covariances_are_as_accurate_as_two_passes() {
    let mut random = Random(8);
    let (mut ours, mut theirs) = (0.0, 0.0);
    for rows in [4usize, 33, 100, 1000, 5000] {
        for _ in 0..10 {
            let whole: Vec<i64> = (0..rows * 3).map(|_| (random.next() >> 40) as i64 + (1 << 30)).collect();
            let values: Vec<f64> = whole.iter().map(|&x| x as f64).collect();
            let mut total = Covariance::new(3);
            for part in values.chunks(3 * (1 + random.below(rows))) {
                total.merge(&Covariance::from_table(part.to_vec(), 3));
            }
            let found = total.covariances();
            for column in 0..3 {
                let slot: Vec<i64> = whole.iter().skip(column).step_by(3).copied().collect();
                let floats: Vec<f64> = values.iter().skip(column).step_by(3).copied().collect();
                ours += exact::variance_error(found[4 * column], &slot, 0);
                theirs += exact::variance_error(exact::two_passes(&floats), &slot, 0);
            }
        }
    }
    assert!(ours <= theirs, "error {ours}, of two passes {theirs}");
}

/// Results of a reduction of one run.
fn results_of<T: Compute>(op: &Op, dtype: ElementType, values: &[T]) -> Vec<f64> {
    let mut slots = op.accumulator(dtype, 1, &|slot| slot).unwrap();
    let (len, values) = (values.len(), bytemuck::cast_slice(values));
    slots.runs(0, &Runs { values, len, stride: len, count: 1, index: 0, index_step: 0 });
    slots.settle();
    let mut results = vec![0.0; op.width()];
    slots.finish(Counts::Same(len as u64), &mut results);
    results
}

#[test]
fn the_lowest_index_wins_in_any_order() {
    let mut values = vec![0.5f32; 200];
    (values[7], values[90], values[150]) = (2.0, 2.0, 2.0);
    let index_of = |slots: &mut dyn Accumulator, count: usize| {
        let mut results = vec![0.0; count];
        slots.finish(Counts::Same(0), &mut results);
        results
    };
    let run = |values: &[f32], index: u64, slots: &mut dyn Accumulator, at: usize| {
        let (len, values) = (values.len(), bytemuck::cast_slice(values));
        slots.runs(at, &Runs { values, len, stride: len, count: 1, index, index_step: 0 });
    };
    let make = |slots: usize| Op::ArgMax.accumulator(ElementType::F32, slots, &|slot| slot).unwrap();
    for first in [8, 91, 100] {
        let (mut slots, mut earlier) = (make(1), make(2));
        run(&values[first..], first as u64, &mut *slots, 0);
        run(&values[..first], 0, &mut *earlier, 1);
        slots.merge(0, &*earlier, 1, 1);
        assert_eq!(index_of(&mut *slots, 1), [7.0]);
        let mut slots = make(1);
        run(&values[first..], first as u64, &mut *slots, 0);
        run(&values[..first], 0, &mut *slots, 0);
        assert_eq!(index_of(&mut *slots, 1), [7.0]);
    }
    // Rows of 40 columns, in reverse order.
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    let row = |row: usize| &bytes[row * 160..(row + 1) * 160];
    let mut slots = make(40);
    slots.rows(0, &[row(1), row(2), row(3), row(4)], &[1, 2, 3, 4]);
    slots.rows(0, &[row(0)], &[0]);
    let found = index_of(&mut *slots, 40);
    assert_eq!((found[7], found[10], found[30], found[0]), (0.0, 2.0, 3.0, 0.0));
}

#[test]
fn means_of_whole_numbers_are_rounded_once() {
    // 2^53 + 1 is halfway between two floats; slightly more rounds up.
    let odd = (1i64 << 53) + 1;
    let mean = |values: &[i64]| results_of(&Op::Mean, ElementType::I64, values);
    assert_eq!(mean(&[odd, odd, odd]), [9_007_199_254_740_992.0]);
    assert_eq!(mean(&[odd, odd, odd + 1]), [9_007_199_254_740_994.0]);
    assert_eq!(mean(&[i64::MIN; 40]), [-9_223_372_036_854_775_808.0]);
    assert_eq!(results_of(&Op::Mean, ElementType::U64, &[u64::MAX; 40]), [18_446_744_073_709_551_615.0]);
    assert_eq!(results_of(&Op::Sum, ElementType::I64, &[i64::MAX, i64::MAX, i64::MIN, i64::MIN, 5]), [3.0]);
    assert_eq!(results_of(&Op::Mean, ElementType::U8, &[1.0f32, 0.0, 0.0]), [1.0 / 3.0]);
    assert_eq!(results_of(&Op::Mean, ElementType::I16, &[-1.0f32, 0.0, 0.0]), [-1.0 / 3.0]);
    // Sums of 32-bit integers beyond 2^53.
    let mut slots = Op::Sum.accumulator(ElementType::U32, 1, &|slot| slot).unwrap();
    let most = vec![f64::from(u32::MAX); 1 << 14];
    let (len, values) = (most.len(), bytemuck::cast_slice(&most));
    for _ in 0..257 {
        slots.runs(0, &Runs { values, len, stride: len, count: 1, index: 0, index_step: 0 });
    }
    slots.rows(0, &[&values[..8]], &[]);
    slots.settle();
    let mut sum = [0.0];
    slots.finish(Counts::Same(0), &mut sum);
    assert_eq!(sum[0], (i128::from(u32::MAX) * (257 * (1 << 14) + 1)) as f64);
}

#[test]
fn sums_of_floats_are_compensated() {
    // Plain addition of 1 to 1e16 loses the 1.
    let mut slots = Op::Sum.accumulator(ElementType::F64, 1, &|slot| slot).unwrap();
    slots.scatter(&[0; 5], bytemuck::cast_slice(&[1e16, 1.0, 1.0, 1.0, -1e16]), &[]);
    let mut sum = [0.0];
    slots.finish(Counts::Same(5), &mut sum);
    assert_eq!(sum, [3.0]);
    let sum = |values: &[f64]| results_of(&Op::Sum, ElementType::F64, values)[0];
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[f64::INFINITY, 1.0, f64::MAX]), f64::INFINITY);
    assert!(sum(&[f64::INFINITY, 1.0, f64::NEG_INFINITY]).is_nan());
    assert_eq!(sum(&[-0.0f64; 50]).to_bits(), 0);
}

/// Partial sums beyond f64 of values whose sum is not.
#[test]
fn large_sums_do_not_overflow_on_the_way() {
    let values = [1.5e308, 1.5e308, -1.5e308, f64::MAX, -1.0e308, -1.25e308];
    for count in [3, 6] {
        let values = &values[..count];
        let exact = exact::sum(values.iter().map(|x| x / 65_536.0)) * 65_536.0;
        assert!(exact.is_finite());
        for op in [Op::Sum, Op::Mean, Op::NanMean] {
            let large = op.for_large_sums(ElementType::F64).unwrap();
            let wanted = if op == Op::Sum { exact } else { exact / count as f64 };
            let [found] = results_of(&large, ElementType::F64, values)[..] else { panic!("one result") };
            assert!((found - wanted).abs() <= 1e-15 * wanted.abs(), "{op:?}: {found}, not {wanted}");
            assert_eq!(op.for_large_sums(ElementType::F32), None);
        }
    }
    let infinite = [f64::INFINITY, 1.0];
    assert_eq!(results_of(&Op::LargeSum, ElementType::F64, &infinite), [f64::INFINITY]);
}

#[test]
fn products_neither_overflow_nor_vanish_on_the_way() {
    let product = |values: &[f64]| results_of(&Op::Product, ElementType::F64, values)[0];
    let mut values = [1e300f64; 80];
    values[40..].fill(1e-300);
    assert!((product(&values) - 1.0).abs() < 1e-12);
    assert_eq!(product(&[f64::MIN_POSITIVE / 8.0, 8.0]), f64::MIN_POSITIVE);
    let tiny = f32::from_bits(1 << 9);
    assert_eq!(results_of(&Op::Product, ElementType::F32, &[tiny, 2f32.powi(-10), tiny]), [2f64.powi(-290)]);
    assert_eq!(product(&[5e-324, 0.5, 2.0]), 5e-324);
    assert_eq!(product(&[5e-324f64, 0.25]), 0.0);
    assert_eq!(product(&[-1e200f64, 1e200, 3.0]), f64::NEG_INFINITY);
    assert_eq!(product(&[f64::NEG_INFINITY, -2.0]), f64::INFINITY);
    assert!(product(&[0.0, f64::INFINITY, 1.0]).is_nan());
    assert_eq!(results_of(&Op::Product, ElementType::I32, &[-3.0f64, 0.0, 5.0])[0].to_bits(), 0);
    assert_eq!(results_of::<f32>(&Op::Product, ElementType::U8, &[]), [1.0]);
    let mut zeros = vec![1.0f32; 5000];
    (zeros[77], zeros[4999]) = (0.0, f32::NEG_INFINITY);
    assert!(results_of(&Op::Product, ElementType::F32, &zeros)[0].is_nan());
}

const MOMENTS: Op = Op::Moments { skip_nan: false };

#[test]
fn equal_values_have_no_variance() {
    for length in [1, 2, 3, 7, 31, 33, 1000, 4097, 10_000] {
        assert_eq!(results_of(&MOMENTS, ElementType::F64, &vec![0.1f64; length]), [length as f64, 0.1, 0.0]);
        assert_eq!(results_of(&MOMENTS, ElementType::U64, &vec![u64::MAX - 5; length])[2], 0.0);
    }
}

#[test]
fn variance_of_large_neighbours_is_exact() {
    for length in [2usize, 40, 5000] {
        let values: Vec<i64> = (0..length).map(|i| i64::MAX - i64::from(i % 2 == 1)).collect();
        assert_eq!(results_of(&MOMENTS, ElementType::I64, &values)[2], 0.25);
        // Minimum and maximum of the type, 2^64 apart.
        let values: Vec<i64> = (0..length).map(|i| if i % 2 == 0 { i64::MIN } else { i64::MAX }).collect();
        assert!((results_of(&MOMENTS, ElementType::I64, &values)[2] / 2f64.powi(126) - 1.0).abs() < 1e-12);
    }
    // An outlier comes first, so differences are initially relative to it.
    let mut values: Vec<f64> = (0..4000).map(|i| 1e9 + f64::from(i % 2)).collect();
    values[0] = 0.0;
    let wanted = 1e18 * 3999.0 / 4000.0 / 4000.0;
    assert!((results_of(&MOMENTS, ElementType::F64, &values)[2] / wanted - 1.0).abs() < 1e-8);
    assert!((results_of(&MOMENTS, ElementType::F64, &values[1..])[2] - 0.25).abs() < 1e-6);
}

/// The mean is 10^18 times the variance, and each row is merged separately.
#[test]
fn variance_far_from_zero_keeps_its_digits() {
    let mut random = Random(7);
    for (mean, deviation, tolerance) in [(3e5, 1e-2, 1e-12), (1e9, 1e-3, 1e-6)] {
        let values: Vec<f64> = (0..2000)
            .map(|_| mean + deviation * ((random.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5))
            .collect();
        let shifted: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let about = exact::sum(shifted.iter().copied()) / 2000.0;
        let wanted = exact::sum(shifted.iter().map(|value| (value - about) * (value - about))) / 2000.0;
        let mut slots = MOMENTS.accumulator(ElementType::F64, 1, &|slot| slot).unwrap();
        for value in &values {
            slots.rows(0, &[bytemuck::bytes_of(value)], &[]);
        }
        let mut by_rows = [0.0; 3];
        slots.finish(Counts::Same(2000), &mut by_rows);
        for found in [by_rows[2], results_of(&MOMENTS, ElementType::F64, &values)[2]] {
            assert!((found / wanted - 1.0).abs() < tolerance, "{found:e}, not {wanted:e}");
        }
    }
}

/// The mean of the first block has more digits than an f64.
#[test]
fn merged_blocks_far_from_zero_keep_their_digits() {
    let mut random = Random(11);
    let high = f64::from(i32::MAX);
    let values: Vec<f64> = (0..96).map(|_| high - (random.next() % 21) as f64).collect();
    let shifted = || values.iter().map(|value| value - high);
    let (sum, squares) = (shifted().sum::<f64>(), shifted().map(|value| value * value).sum::<f64>());
    let wanted = (96.0 * squares - sum * sum) / (96.0 * 96.0);
    for skip_nan in [false, true] {
        let op = Op::Moments { skip_nan };
        let mut slots = op.accumulator(ElementType::F64, 1, &|slot| slot).unwrap();
        for values in [&values[..51], &values[51..]] {
            let (len, values) = (values.len(), bytemuck::cast_slice(values));
            slots.runs(0, &Runs { values, len, stride: len, count: 1, index: 0, index_step: 0 });
        }
        let mut found = [0.0; 3];
        slots.finish(Counts::Same(96), &mut found);
        assert!((found[2] / wanted - 1.0).abs() < 1e-14, "{}, not {wanted}", found[2]);
    }
}

/// A skipped NaN is no value that the others are compared with.
#[test]
fn variance_of_huge_values_after_nan_is_finite() {
    for length in [2, 40, 5000] {
        let huge = f64::from_bits((1023 + 600) << 52);
        let mut values = vec![huge; length];
        values[0] = f64::NAN;
        let results = results_of(&Op::Moments { skip_nan: true }, ElementType::F64, &values);
        assert_eq!(results[1..], [huge, 0.0], "{length} values");
    }
}

#[test]
fn infinities_make_variance_nan_and_means_infinite() {
    for length in [1, 2, 40, 5000] {
        let mut values = vec![1.0f32; length];
        values[length / 2] = f32::INFINITY;
        let results = results_of(&Op::Moments { skip_nan: true }, ElementType::F32, &values);
        assert_eq!(results[..2], [length as f64, f64::INFINITY]);
        assert!(results[2].is_nan());
    }
}
