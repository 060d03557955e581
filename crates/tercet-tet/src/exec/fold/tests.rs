//! Every fold against an obvious version, over values cut into pieces in every way.
#![expect(clippy::cast_precision_loss, reason = "test values are small")]

mod exact;
mod models;

use bytemuck::{cast_slice, pod_read_unaligned};
use proptest::prelude::*;
use tercet_core::{ElementType, with_element};

use self::models::{check_all, close};
use super::arg::Arg;
use super::moments::Moments;
use super::product::Product;
use super::sum::Sum;
use super::*;

/// A matrix of values whose rows are folded into a cell for each column.
#[derive(Clone, Debug)]
struct Case {
    width: usize,
    rows: usize,
    gap: usize,
    style: u8,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let widths = prop::sample::select(vec![1usize, 2, 3, 15, 16, 17, 31, 32, 33, 50, 64, 70]);
    let rows = prop::sample::select(vec![0usize, 1, 2, 31, 33, 64, 65, 130, 300]);
    let gaps = prop::sample::select(vec![0usize, 0, 1, 5]);
    (widths, rows, gaps, 0u8..5, any::<u64>()).prop_map(|(width, rows, gap, style, seed)| Case {
        width,
        rows,
        gap,
        style,
        seed,
    })
}

/// A generator of numbers that is the same everywhere.
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

/// Values that are small, arbitrary, sprinkled with NaN and infinities, all nearly the same, or mostly NaN.
fn value<T: Number>(style: u8, random: &mut Random) -> T {
    let bits = random.next();
    let small = i128::from(bits % 17) - 8;
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][(bits >> 40) as usize % 4];
    let any = || {
        let any: T = pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()]);
        // So that neither squares nor sums overflow.
        let fits = !T::FLOAT || any.to_f64() == 0.0 || (1e-100..1e100).contains(&any.to_f64().abs());
        if fits { any } else { T::nearest_f64(1.5) }
    };
    match style {
        0 => T::nearest_i128(small).unwrap_or_else(|| T::nearest_i128(small.abs()).unwrap()),
        2 if T::FLOAT && bits >> 59 == 0 => T::nearest_f64(special),
        1 | 2 => any(),
        3 if T::FLOAT => T::nearest_f64(1e3 + (bits % 1000) as f64 * 1e-3),
        3 if size_of::<T>() < 8 => T::nearest_i128(100 + small).unwrap(),
        3 => T::nearest_i128(i128::from(i64::MAX) - 8 + small).unwrap(),
        _ if bits >> 62 != 0 => T::nearest_f64(f64::NAN),
        _ => T::nearest_f64(small as f64),
    }
}

fn block(cells: usize) -> Block {
    Block { axes: vec![(0, cells as u64)], output: vec![cells as u64] }
}

/// Folds the rows of a matrix, in pieces of all kinds.
fn folded<T: Number, F: Fold>(fold: &F, case: &Case, values: &[T], random: &mut Random) -> Vec<f64> {
    let (width, stride) = (case.width, case.width + case.gap);
    // Cells before and after, which must stay empty.
    let lead = random.below(3);
    let mut all = fold.start::<T>(&block(lead + width + 1));
    let mut row = 0;
    while row < case.rows {
        let count = (1 + random.below(2 * case.rows)).min(case.rows - row);
        let piece =
            Rows { values: &values[row * stride..], width, stride, count, index: row as u64, index_step: 1 };
        let (own_at, way) = (random.below(2) * width, random.below(4));
        let mut own = fold.start::<T>(&block(2 * width));
        match random.below(3) {
            0 => fill(fold, &mut all, lead, &piece, way),
            1 => {
                fill(fold, &mut own, own_at, &piece, way);
                fold.merge::<T>((&mut all, lead), (&own, own_at), width);
            }
            _ => {
                // In two steps, as windows do: into empty cells of the same block first.
                fill(fold, &mut own, own_at, &piece, way);
                fold.merge_within::<T>(&mut own, width - own_at, own_at, width);
                fold.merge::<T>((&mut all, lead), (&own, width - own_at), width);
            }
        }
        row += count;
    }
    let results = fold.finish::<T>(all);
    assert_eq!(results.len(), (lead + width + 1) * fold.width());
    let empty = fold.finish::<T>(fold.start::<T>(&block(1)));
    let (before, cells) = results.split_at(lead * fold.width());
    let (cells, after) = cells.split_at(width * fold.width());
    for cell in before.chunks(fold.width()).chain([after]) {
        assert!(cell.iter().zip(&empty).all(|(a, b)| a.to_bits() == b.to_bits()), "{cell:?} is not empty");
    }
    cells.to_vec()
}

/// Folds rows in one of the ways that there are.
fn fill<T: Number, F: Fold>(fold: &F, cells: &mut F::Cells<T>, at: usize, rows: &Rows<'_, T>, way: usize) {
    if way == 3 || way == 1 && rows.count * rows.width > 2000 || way == 2 && !fold.takes_stats() {
        return fold.rows(cells, at, rows);
    }
    for column in 0..rows.width {
        let values: Vec<T> = (0..rows.count).map(|row| rows.row(row)[column]).collect();
        match way {
            0 => fold.run(cells, at + column, &values, rows.index),
            1 => {
                for (&value, index) in values.iter().zip(rows.index..) {
                    fold.one(cells, at + column, value, index);
                }
            }
            _ => fold.absorb::<T>(cells, at + column, &Stats::compute(T::ELEMENT, cast_slice(&values))),
        }
    }
}

fn check_case<T: Number>(case: &Case) {
    let mut random = Random(case.seed);
    let stride = case.width + case.gap;
    let style = if T::FLOAT { case.style } else { case.style % 4 };
    let values: Vec<T> = (0..case.rows * stride).map(|_| value(style, &mut random)).collect();
    check_all::<T>(&mut |fold, model, name| {
        let results = fold(case, &values, &mut random);
        for (column, found) in results.chunks(results.len() / case.width).enumerate() {
            let cell: Vec<T> = (0..case.rows).map(|row| values[row * stride + column]).collect();
            let wanted = model(&cell);
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (&found, &(wanted, tolerance)) in found.iter().zip(&wanted) {
                assert!(
                    close(found, wanted, tolerance) && !(found == 0.0 && found.is_sign_negative()),
                    "{name} of {}, column {column}: {found:e}, not {wanted:e} ± {tolerance:e}",
                    T::ELEMENT
                );
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(10)))]

    #[test]
    fn folds_are_right_however_values_are_cut(case in cases()) {
        for dtype in ElementType::ALL {
            with_element!(dtype, |T| check_case::<T>(&case));
        }
    }

    #[test]
    fn long_runs_are_right(
        rows in prop::sample::select(vec![4097usize, 8192, 9001]),
        style in 0u8..5,
        seed in any::<u64>(),
    ) {
        for dtype in ElementType::ALL {
            with_element!(dtype, |T| check_case::<T>(&Case { width: 1, rows, gap: 0, style, seed }));
        }
    }

    #[test]
    fn many_narrow_rows_are_right(width in 1usize..20, style in 0u8..5, seed in any::<u64>()) {
        for dtype in ElementType::ALL {
            with_element!(dtype, |T| check_case::<T>(&Case { width, rows: 700, gap: 0, style, seed }));
        }
    }
}

/// The results of a fold of one run.
fn of<T: Number, F: Fold>(fold: &F, values: &[T]) -> Vec<f64> {
    let mut cells = fold.start::<T>(&block(1));
    fold.run(&mut cells, 0, values, 0);
    fold.finish::<T>(cells)
}

#[test]
fn the_lowest_index_wins_in_any_order() {
    let fold = Arg::Max;
    let mut values = vec![0.5f32; 200];
    (values[7], values[90], values[150]) = (2.0, 2.0, 2.0);
    for first in [8, 91, 100] {
        let (mut cells, mut earlier) = (fold.start::<f32>(&block(1)), fold.start::<f32>(&block(2)));
        fold.run(&mut cells, 0, &values[first..], first as u64);
        fold.run(&mut earlier, 1, &values[..first], 0);
        fold.merge::<f32>((&mut cells, 0), (&earlier, 1), 1);
        assert_eq!(fold.finish::<f32>(cells), [7.0]);
        let mut cells = fold.start::<f32>(&block(1));
        fold.run(&mut cells, 0, &values[first..], first as u64);
        fold.run(&mut cells, 0, &values[..first], 0);
        assert_eq!(fold.finish::<f32>(cells), [7.0]);
    }
    // Rows of 40 columns, the later ones first.
    let rows = |from: usize, count| Rows {
        values: &values[from * 40..],
        width: 40,
        stride: 40,
        count,
        index: from as u64,
        index_step: 1,
    };
    let mut cells = fold.start::<f32>(&block(40));
    fold.rows(&mut cells, 0, &rows(1, 4));
    fold.rows(&mut cells, 0, &rows(0, 1));
    let found = fold.finish::<f32>(cells);
    assert_eq!((found[7], found[10], found[30], found[0]), (0.0, 2.0, 3.0, 0.0));
}

#[test]
fn means_of_whole_numbers_are_rounded_once() {
    // 2^53 + 1 lies in the middle of two floats; a little more is nearer to the upper one.
    let odd = (1i64 << 53) + 1;
    assert_eq!(of(&Sum::Mean, &[odd, odd, odd]), [9_007_199_254_740_992.0]);
    assert_eq!(of(&Sum::Mean, &[odd, odd, odd + 1]), [9_007_199_254_740_994.0]);
    assert_eq!(of(&Sum::Mean, &[i64::MIN; 40]), [-9_223_372_036_854_775_808.0]);
    assert_eq!(of(&Sum::Mean, &[u64::MAX; 40]), [18_446_744_073_709_551_615.0]);
    assert_eq!(of(&Sum::Total, &[i64::MAX, i64::MAX, i64::MIN, i64::MIN, 5]), [3.0]);
    assert_eq!(of(&Sum::Mean, &[1u8, 0, 0]), [1.0 / 3.0]);
    assert_eq!(of(&Sum::Mean, &[-1i16, 0, 0]), [-1.0 / 3.0]);
}

#[test]
fn sums_of_floats_are_compensated() {
    // 1 is lost in plain addition to 1e16.
    let fold = Sum::Total;
    let mut cells = fold.start::<f64>(&block(1));
    for value in [1e16, 1.0, 1.0, 1.0, -1e16] {
        fold.one(&mut cells, 0, value, 0);
    }
    assert_eq!(fold.finish::<f64>(cells), [3.0]);
    assert_eq!(of(&fold, &[f64::MAX, f64::MAX]), [f64::INFINITY]);
    assert_eq!(of(&fold, &[f64::INFINITY, 1.0, f64::MAX]), [f64::INFINITY]);
    assert!(of(&fold, &[f64::INFINITY, 1.0, f64::NEG_INFINITY])[0].is_nan());
    assert_eq!(of(&fold, &[-0.0f64; 50])[0].to_bits(), 0);
}

#[test]
fn products_neither_overflow_nor_vanish_on_the_way() {
    let mut values = [1e300f64; 80];
    values[40..].fill(1e-300);
    assert!((of(&Product, &values)[0] - 1.0).abs() < 1e-12);
    assert_eq!(of(&Product, &[f64::MIN_POSITIVE / 8.0, 8.0]), [f64::MIN_POSITIVE]);
    let tiny = f32::from_bits(1 << 9);
    assert_eq!(of(&Product, &[tiny, 2f32.powi(-10), tiny]), [2f64.powi(-290)]);
    assert_eq!(of(&Product, &[5e-324, 0.5, 2.0]), [5e-324]);
    assert_eq!(of(&Product, &[5e-324f64, 0.25]), [0.0]);
    assert_eq!(of(&Product, &[-1e200f64, 1e200, 3.0]), [f64::NEG_INFINITY]);
    assert_eq!(of(&Product, &[f64::NEG_INFINITY, -2.0]), [f64::INFINITY]);
    assert!(of(&Product, &[0.0, f64::INFINITY, 1.0])[0].is_nan());
    assert_eq!(of(&Product, &[-3i32, 0, 5])[0].to_bits(), 0);
    assert_eq!(of::<u8, _>(&Product, &[]), [1.0]);
    let mut zeros = vec![1.0f32; 5000];
    (zeros[77], zeros[4999]) = (0.0, f32::NEG_INFINITY);
    assert!(of(&Product, &zeros)[0].is_nan());
}

#[test]
fn equal_values_have_no_variance() {
    for length in [1, 2, 3, 7, 31, 33, 1000, 4097, 10_000] {
        let values = vec![0.1f64; length];
        assert_eq!(of(&Moments { skip_nan: false }, &values), [length as f64, 0.1, 0.0]);
        let values = vec![u64::MAX - 5; length];
        assert_eq!(of(&Moments { skip_nan: false }, &values)[2], 0.0);
    }
}

#[test]
fn variance_of_large_neighbours_is_exact() {
    let fold = Moments { skip_nan: false };
    for length in [2usize, 40, 5000] {
        let values: Vec<i64> = (0..length).map(|i| i64::MAX - i64::from(i % 2 == 1)).collect();
        assert_eq!(of(&fold, &values)[2], 0.25);
        // The ends of the type, 2^64 apart.
        let values: Vec<i64> = (0..length).map(|i| if i % 2 == 0 { i64::MIN } else { i64::MAX }).collect();
        assert!((of(&fold, &values)[2] / 2f64.powi(126) - 1.0).abs() < 1e-12);
    }
    // An outlier comes first, so that differences are first taken from it.
    let mut values: Vec<f64> = (0..4000).map(|i| 1e9 + f64::from(i % 2)).collect();
    values[0] = 0.0;
    let wanted = 1e18 * 3999.0 / 4000.0 / 4000.0;
    assert!((of(&fold, &values)[2] / wanted - 1.0).abs() < 1e-8);
    assert!((of(&fold, &values[1..])[2] - 0.25).abs() < 1e-6);
}

#[test]
fn infinities_make_variance_nan_and_means_infinite() {
    for length in [1, 2, 40, 5000] {
        let mut values = vec![1.0f32; length];
        values[length / 2] = f32::INFINITY;
        let results = of(&Moments { skip_nan: true }, &values);
        assert_eq!(results[..2], [length as f64, f64::INFINITY]);
        assert!(results[2].is_nan());
    }
}
