//! The obvious version of every fold.

use super::super::arg::Arg;
use super::super::extreme::{Extreme, Range};
use super::super::moments::Moments;
use super::super::product::Product;
use super::super::softmax::SoftmaxTotal;
use super::super::sum::Sum;
use super::super::tally::Tally;
use super::super::{Fold, Number};
use super::{Case, Random, exact, folded};
use crate::query::operation::Scalar;

/// Whether two results are the same, or differ by no more than a tolerance.
pub(super) fn close(found: f64, wanted: f64, tolerance: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan() || (found - wanted).abs() <= tolerance
}

/// Folds the values of a case, for each column.
type Folded<'a, T> = &'a dyn Fn(&Case, &[T], &mut Random) -> Vec<f64>;
/// The wanted results of a cell, and how far each may be off.
type Wanted<'a, T> = &'a dyn Fn(&[T]) -> Vec<(f64, f64)>;
/// Compares a fold with its model; the last is its name.
type Check<'a, T> = dyn FnMut(Folded<'_, T>, Wanted<'_, T>, &str) + 'a;

/// Gives every fold and its model to `check`.
pub(super) fn check_all<T: Number>(check: &mut Check<'_, T>) {
    for sum in [Sum::Total, Sum::Mean, Sum::NanMean, Sum::NormL1, Sum::NormL2] {
        give(check, &sum, &|cell| vec![sum_of(sum, cell)], &format!("{sum:?}"));
    }
    let least = |cell: &[T]| best(cell, |a, b| a < b).map_or(f64::NAN, |at| cell[at].to_f64());
    let greatest = |cell: &[T]| best(cell, |a, b| a > b).map_or(f64::NAN, |at| cell[at].to_f64());
    give(check, &Extreme::Min, &|cell| vec![(least(cell), 0.0)], "min");
    give(check, &Extreme::Max, &|cell| vec![(greatest(cell), 0.0)], "max");
    give(check, &Range, &|cell| vec![(least(cell), 0.0), (greatest(cell), 0.0)], "range");
    let index = |at: Option<usize>| vec![(at.map_or(-1.0, |at| at as f64), 0.0)];
    give(check, &Arg::Min, &|cell| index(best(cell, |a, b| a < b)), "arg_min");
    give(check, &Arg::Max, &|cell| index(best(cell, |a, b| a > b)), "arg_max");
    tallies(check);
    give(check, &Product, &|cell| vec![product(cell)], "product");
    for skip_nan in [false, true] {
        give(check, &Moments { skip_nan }, &|cell| moments(cell, skip_nan), "moments");
    }
    give(check, &SoftmaxTotal, &softmax, "softmax");
}

fn give<T: Number, F: Fold>(check: &mut Check<'_, T>, fold: &F, wanted: Wanted<'_, T>, name: &str) {
    check(&|case, values, random| folded(fold, case, values, random), wanted, name);
}

fn floats<T: Number>(cell: &[T], skip_nan: bool) -> Vec<f64> {
    cell.iter().map(|x| x.to_f64()).filter(|x| !(skip_nan && x.is_nan())).collect()
}

fn sum_of<T: Number>(sum: Sum, cell: &[T]) -> (f64, f64) {
    let is_float = T::FLOAT || sum == Sum::NormL2 && T::WIDE;
    if !is_float {
        let whole = cell.iter().map(|x| x.to_i128());
        return match sum {
            Sum::Total => (whole.sum::<i128>() as f64, 0.0),
            Sum::NormL1 => (whole.map(i128::abs).sum::<i128>() as f64, 0.0),
            Sum::NormL2 => ((whole.map(|x| x * x).sum::<i128>() as f64).sqrt(), 0.0),
            Sum::Mean | Sum::NanMean => {
                let sum = whole.sum::<i128>();
                let mean = sum as f64 / cell.len() as f64;
                // Of two exact floats the quotient is the nearest.
                let is_nearest = sum.abs() < 1 << 53;
                (mean, if is_nearest { 0.0 } else { mean.abs() * 1e-15 })
            }
        };
    }
    let terms: Vec<f64> = match sum {
        Sum::NormL1 => floats(cell, false).into_iter().map(f64::abs).collect(),
        Sum::NormL2 => floats(cell, false).into_iter().map(|x| x * x).collect(),
        _ => floats(cell, sum == Sum::NanMean),
    };
    let total = exact::sum_any(&terms);
    let tolerance = 1e-12 * terms.iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum::<f64>();
    match sum {
        Sum::Total | Sum::NormL1 => (total, tolerance),
        Sum::NormL2 => (total.sqrt(), 1e-12 * total.sqrt()),
        Sum::Mean | Sum::NanMean => (total / terms.len() as f64, tolerance / terms.len() as f64),
    }
}

/// The first best value that is not NaN.
fn best<T: Number>(cell: &[T], is_better: impl Fn(T, T) -> bool) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (at, &x) in cell.iter().enumerate() {
        if !x.is_nan() && best.is_none_or(|best| is_better(x, cell[best])) {
            best = Some(at);
        }
    }
    best
}

fn tallies<T: Number>(check: &mut Check<'_, T>) {
    let count = |cell: &[T], is: &dyn Fn(T) -> bool| cell.iter().filter(|&&x| is(x)).count() as f64;
    let exact = |number: f64| vec![(number, 0.0)];
    give(check, &Tally::Count, &|cell| exact(cell.len() as f64), "count");
    give(check, &Tally::Nan, &|cell| exact(count(cell, &|x| x.is_nan())), "nan_count");
    give(check, &Tally::Infinite, &|cell| exact(count(cell, &|x| x.is_infinite())), "inf_count");
    // Only whether there are any is promised: statistics may count one value twice.
    let any = |number: f64, cell: &[T]| match (number, cell.len() as f64) {
        (0.0, _) => exact(0.0),
        (_, all) => vec![(all + 1.0, all + 0.5)],
    };
    let infinite = |cell: &[T]| any(count(cell, &|x| x.is_infinite()), cell);
    give(check, &Tally::AnyInfinite, &infinite, "any_inf");
    let not_finite = |cell: &[T]| any(count(cell, &|x| x.is_infinite() || x.is_nan()), cell);
    give(check, &Tally::AnyNotFinite, &not_finite, "all_finite");
    let floats = [0.1, f64::NAN, -0.0, 1.5, f64::INFINITY].map(Scalar::Float);
    for fill in [Scalar::Whole(0), Scalar::Whole(3), Scalar::Whole(-3)].into_iter().chain(floats) {
        let is_null = |x: T| match fill.to_f64() {
            fill if fill.is_nan() => x.is_nan(),
            fill if T::FLOAT => x == T::nearest_f64(fill),
            fill => x.to_f64() == fill,
        };
        give(check, &Tally::Null(fill), &|cell| exact(count(cell, &is_null)), "null_count");
    }
}

fn product<T: Number>(cell: &[T]) -> (f64, f64) {
    let (mut digits, mut exponent) = (1.0f64, 0i32);
    for x in cell {
        digits *= x.to_f64();
        while digits.is_finite() && digits.abs() >= 2.0 {
            digits /= 2.0;
            exponent += 1;
        }
        while digits != 0.0 && digits.abs() < 1.0 {
            digits *= 2.0;
            exponent -= 1;
        }
    }
    let mut product = digits;
    for _ in 0..exponent.unsigned_abs().min(3000) {
        product *= if exponent > 0 { 2.0 } else { 0.5 };
    }
    (product, product.abs() * 1e-15 * (1 + cell.len()) as f64 + f64::MIN_POSITIVE)
}

fn moments<T: Number>(cell: &[T], skip_nan: bool) -> Vec<(f64, f64)> {
    let x = floats(cell, skip_nan);
    let n = x.len() as f64;
    if x.is_empty() {
        return vec![(0.0, 0.0), (f64::NAN, 0.0), (f64::NAN, 0.0)];
    }
    let scale = x.iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum::<f64>() / n;
    if !T::FLOAT {
        let sum: i128 = cell.iter().map(|x| x.to_i128()).sum();
        let from_mean = cell.iter().map(|x| (x.to_i128() * cell.len() as i128 - sum) as f64 / n);
        let variance = exact::sum(from_mean.map(|x| x * x)) / n;
        return vec![(n, 0.0), (sum as f64 / n, 1e-12 * scale), (variance, 1e-12 * variance)];
    }
    let mean = exact::sum_any(&x) / n;
    let variance = if x.iter().all(|x| x.is_finite()) {
        let about = exact::sum(x.iter().map(|x| (x - mean) * (x - mean)));
        let off = exact::sum(x.iter().map(|x| x - mean));
        (about - off * off / n) / n
    } else {
        f64::NAN
    };
    vec![(n, 0.0), (mean, 1e-12 * scale), (variance, 1e-11 * variance + 1e-25 * scale * scale)]
}

fn softmax<T: Number>(cell: &[T]) -> Vec<(f64, f64)> {
    let x = floats(cell, true);
    let greatest = x.iter().copied().fold(f64::NAN, f64::max);
    let total: f64 = x.iter().filter(|x| x.is_finite()).map(|x| (x - greatest).exp()).sum();
    vec![(greatest, 0.0), (total, 1e-11 * total)]
}
