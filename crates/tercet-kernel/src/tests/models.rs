//! Naive version of every reduction.

use tercet_core::ElementType;

use super::{Number, exact, is_float};
use crate::{Op, Outliers, Value};

/// Expected results of a slot, each with its tolerance.
pub(super) type Model = Box<dyn Fn(&[Number]) -> Vec<(f64, f64)>>;

/// Whether two results are equal within a tolerance.
pub(super) fn close(found: f64, wanted: f64, tolerance: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan() || (found - wanted).abs() <= tolerance
}

/// Every reduction and its model.
pub(super) fn models(dtype: ElementType) -> Vec<(Op, Model)> {
    let mut models: Vec<(Op, Model)> = Vec::new();
    for op in [Op::Sum, Op::Mean, Op::NanMean, Op::NormL1, Op::NormL2] {
        let own = op.clone();
        models.push((op, Box::new(move |slot| vec![sum(&own, dtype, slot)])));
    }
    let number = |at: Option<usize>, slot: &[Number]| at.map_or(f64::NAN, |at| slot[at].to_f64() + 0.0);
    let index = |at: Option<usize>| vec![(at.map_or(-1.0, |at| at as f64), 0.0)];
    models.push((Op::Min, Box::new(move |slot| vec![(number(best(slot, false), slot), 0.0)])));
    models.push((Op::Max, Box::new(move |slot| vec![(number(best(slot, true), slot), 0.0)])));
    let rest = |whole: Option<Number>| match whole {
        Some(Number::Integer(whole)) => vec![((whole - whole as f64 as i128) as f64, 0.0)],
        Some(_) => vec![(0.0, 0.0)],
        None => vec![(f64::NAN, 0.0)],
    };
    models.push((Op::MinRest, Box::new(move |slot| rest(best(slot, false).map(|at| slot[at])))));
    models.push((Op::MaxRest, Box::new(move |slot| rest(best(slot, true).map(|at| slot[at])))));
    let total = move |slot: &[Number]| {
        let whole = |number: &Number| match number {
            Number::Integer(whole) => Some(*whole),
            Number::Float(_) => None,
        };
        let total: Option<i128> = slot.iter().map(whole).sum();
        rest(Some(total.map_or(Number::Float(0.0), Number::Integer)))
    };
    models.push((Op::SumRest, Box::new(total)));
    let range = move |slot: &[Number]| {
        vec![(number(best(slot, false), slot), 0.0), (number(best(slot, true), slot), 0.0)]
    };
    models.push((Op::Range, Box::new(range)));
    let finite = move |slot: &[Number]| {
        range(&slot.iter().copied().filter(|value| value.to_f64().is_finite()).collect::<Vec<_>>())
    };
    models.push((Op::FiniteRange, Box::new(finite)));
    models.push((Op::ArgMin, Box::new(move |slot| index(best(slot, false)))));
    models.push((Op::ArgMax, Box::new(move |slot| index(best(slot, true)))));
    models.push((Op::Count, Box::new(|slot| vec![(slot.len() as f64, 0.0)])));
    models.push((Op::NanCount, Box::new(|slot| count(slot, f64::is_nan))));
    models.push((Op::InfCount { any: false }, Box::new(|slot| count(slot, f64::is_infinite))));
    // Only zero versus nonzero is guaranteed: statistics may count one value twice.
    let any = |number: f64, slot: &[Number]| match (number, slot.len() as f64) {
        (0.0, _) => vec![(0.0, 0.0)],
        (_, all) => vec![(all + 1.0, all + 0.5)],
    };
    let infinite = move |slot: &[Number]| any(count(slot, f64::is_infinite)[0].0, slot);
    models.push((Op::InfCount { any: true }, Box::new(infinite)));
    let not_finite = move |slot: &[Number]| any(count(slot, |value| !value.is_finite())[0].0, slot);
    models.push((Op::AnyNotFinite, Box::new(not_finite)));
    for fill in [0.0, 3.0, -3.0, f64::NAN, 1.5, f64::INFINITY] {
        let value = match crate::ComputeType::for_dtype(dtype) {
            crate::ComputeType::F32 => Value::F32(fill as f32),
            crate::ComputeType::F64 => Value::F64(fill),
            crate::ComputeType::I64 => Value::I64(fill as i64),
            crate::ComputeType::U64 => Value::U64(fill as u64),
        };
        let is_null = move |number: Number| match (value, number) {
            (Value::I64(value), Number::Integer(number)) => i128::from(value) == number,
            (Value::U64(value), Number::Integer(number)) => i128::from(value) == number,
            (_, number) => number.to_f64() == fill || number.is_nan() && fill.is_nan(),
        };
        let nulls = move |slot: &[Number]| vec![(slot.iter().filter(|&&x| is_null(x)).count() as f64, 0.0)];
        models.push((Op::EqualCount(Some(value)), Box::new(nulls)));
    }
    models.push((Op::EqualCount(None), Box::new(|_| vec![(0.0, 0.0)])));
    models.push((Op::Product, Box::new(|slot| vec![product(slot)])));
    for skip_nan in [false, true] {
        models.push((Op::Moments { skip_nan }, Box::new(move |slot| moments(dtype, slot, skip_nan))));
    }
    models.push((Op::SoftmaxTotal, Box::new(softmax)));
    let ranges: std::sync::Arc<[[f64; 2]]> = std::sync::Arc::from([[-4.0, 8.0]]);
    models.push((
        Op::Histogram { bins: 6, ranges: std::sync::Arc::clone(&ranges), outliers: Outliers::InEndBins },
        Box::new(histogram),
    ));
    models.push((
        Op::Histogram { bins: 6, ranges, outliers: Outliers::Separate },
        Box::new(histogram_with_outliers),
    ));
    models
}

/// Index of the first minimum or maximum that is not NaN.
fn best(slot: &[Number], max: bool) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (at, &value) in slot.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let is_better = best.is_none_or(|best| {
            let order = match (value, slot[best]) {
                (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
                (a, b) => a.to_f64().partial_cmp(&b.to_f64()).unwrap(),
            };
            if max { order.is_gt() } else { order.is_lt() }
        });
        if is_better {
            best = Some(at);
        }
    }
    best
}

fn count(slot: &[Number], is: impl Fn(f64) -> bool) -> Vec<(f64, f64)> {
    vec![(slot.iter().filter(|value| is(value.to_f64())).count() as f64, 0.0)]
}

fn floats(slot: &[Number], skip_nan: bool) -> Vec<f64> {
    slot.iter().map(|x| x.to_f64()).filter(|x| !(skip_nan && x.is_nan())).collect()
}

fn wholes(slot: &[Number]) -> impl Iterator<Item = i128> {
    slot.iter().map(|x| if let Number::Integer(whole) = x { *whole } else { 0 })
}

fn sum(op: &Op, dtype: ElementType, slot: &[Number]) -> (f64, f64) {
    let is_wide = matches!(dtype, ElementType::I64 | ElementType::U64);
    let is_exact = !(is_float(dtype) || is_wide && *op == Op::NormL2);
    if is_exact {
        return match op {
            Op::Sum => (wholes(slot).sum::<i128>() as f64, 0.0),
            Op::NormL1 => (wholes(slot).map(i128::abs).sum::<i128>() as f64, 0.0),
            Op::NormL2 => ((wholes(slot).map(|x| x * x).sum::<i128>() as f64).sqrt(), 0.0),
            _ => {
                let sum = wholes(slot).sum::<i128>();
                let mean = sum as f64 / slot.len() as f64;
                // The quotient of two exact floats is correctly rounded.
                let is_nearest = sum.abs() < 1 << 53;
                (mean, if is_nearest { 0.0 } else { mean.abs() * 1e-15 })
            }
        };
    }
    let terms: Vec<f64> = match op {
        Op::NormL1 => floats(slot, false).into_iter().map(f64::abs).collect(),
        Op::NormL2 => floats(slot, false).into_iter().map(|x| x * x).collect(),
        _ => floats(slot, *op == Op::NanMean),
    };
    let magnitude = exact::sum(terms.iter().filter(|x| x.is_finite()).map(|x| x.abs()));
    let (total, off) = (exact::sum_any(&terms), 1e-12 * magnitude);
    match op {
        Op::Mean | Op::NanMean => (total / terms.len() as f64, off / terms.len() as f64),
        Op::NormL2 => (total.sqrt(), 1e-12 * total.sqrt()),
        _ => (total, off),
    }
}

fn product(slot: &[Number]) -> (f64, f64) {
    let (mut digits, mut exponent) = (1.0f64, 0i32);
    for x in slot {
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
    (product, product.abs() * 1e-15 * (1 + slot.len()) as f64 + f64::MIN_POSITIVE)
}

fn moments(dtype: ElementType, slot: &[Number], skip_nan: bool) -> Vec<(f64, f64)> {
    let x = floats(slot, skip_nan);
    let n = x.len() as f64;
    if x.is_empty() {
        return vec![(0.0, 0.0), (f64::NAN, 0.0), (f64::NAN, 0.0)];
    }
    let scale = x.iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum::<f64>() / n;
    if !is_float(dtype) {
        let sum: i128 = wholes(slot).sum();
        let from_mean = wholes(slot).map(|x| (x * slot.len() as i128 - sum) as f64 / n);
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

fn softmax(slot: &[Number]) -> Vec<(f64, f64)> {
    let x = floats(slot, true);
    let greatest = x.iter().copied().fold(f64::NAN, f64::max);
    if greatest.is_infinite() {
        return vec![(greatest, 0.0), (0.0, 0.0)];
    }
    let total: f64 = x.iter().filter(|x| x.is_finite()).map(|x| (x - greatest).exp()).sum();
    vec![(greatest + 0.0, 0.0), (total, 1e-11 * total)]
}

fn histogram(slot: &[Number]) -> Vec<(f64, f64)> {
    let mut counts = vec![(0.0, 0.0); 6];
    for x in floats(slot, true) {
        let bin = ((x + 4.0) * 0.5).floor();
        counts[(bin.max(0.0) as usize).min(5)].0 += 1.0;
    }
    counts
}

fn histogram_with_outliers(slot: &[Number]) -> Vec<(f64, f64)> {
    let mut counts = vec![(0.0, 0.0); 8];
    for x in floats(slot, true) {
        let number = match x {
            x if x < -4.0 => 6,
            x if x > 8.0 => 7,
            // By the edges: the sum x + 4 would be rounded.
            x => (0..6).rev().find(|bin| x >= -4.0 + 2.0 * f64::from(*bin)).unwrap_or(0) as usize,
        };
        counts[number].0 += 1.0;
    }
    counts
}
