#![cfg(any(unix, windows))]
#![expect(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "test values are small, and some results exact"
)]

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::Progress;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;

use super::*;
use crate::File;
use crate::exec::number::Number;
use crate::exec::testing::{self, layout, resolved};
use crate::query::operation::{Kind, Scalar};
use crate::query::resolved::{Filter, Positions, Resolved};

mod targets;

const METHODS: [Method; 9] = [
    Method::Center,
    Method::Zscore,
    Method::Scale,
    Method::Minmax,
    Method::L1,
    Method::L2,
    Method::Log1p,
    Method::Sqrt,
    Method::Softmax,
];

struct Settings<'s> {
    budget: u64,
    parallel: bool,
    preview: u64,
    file: Option<&'s Path>,
    progress: &'s dyn Progress,
}

const SETTINGS: Settings<'static> =
    Settings { budget: 1 << 30, parallel: true, preview: 0, file: None, progress: &NoProgress };

fn run(file: &File, resolved: &Resolved, settings: &Settings<'_>) -> Result<Transformed, ErrorKind> {
    let dataset = file.dataset("a").unwrap();
    let plan = testing::plan(&dataset, &resolved.selection);
    let mut job = testing::job(dataset, &plan, resolved, settings.budget, settings.progress);
    job.parallel = settings.parallel;
    let operation = resolved.operation.as_ref().unwrap();
    let Kind::Transform { method } = operation.kind else { unreachable!() };
    let outputs = Outputs::new(settings.file, &[], settings.preview)?;
    transform(&job, operation, method, &outputs)
}

/// Naive transform of one slot: the results of its values, and whether each division was impossible.
fn plain(method: Method, values: &[f64]) -> (Vec<f64>, Vec<bool>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let std = (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
    let numbers = || values.iter().copied().filter(|x| !x.is_nan());
    let min = numbers().fold(f64::NAN, f64::min);
    let max = numbers().fold(f64::NAN, f64::max);
    let total: f64 = numbers().map(|x| (x - max).exp()).sum();
    let divisor = match method {
        Method::Zscore | Method::Scale => Some(std),
        Method::Minmax => Some(max - min),
        Method::L1 => Some(values.iter().map(|x| x.abs()).sum()),
        Method::L2 => Some(values.iter().map(|x| x * x).sum::<f64>().sqrt()),
        Method::Softmax => Some(total),
        Method::Center | Method::Log1p | Method::Sqrt => None,
    };
    let impossible = divisor.is_some_and(|divisor| divisor == 0.0 || !divisor.is_finite());
    let one = |&x: &f64| {
        if !x.is_finite() {
            return (x, false);
        }
        if impossible {
            return (f64::NAN, true);
        }
        let d = divisor.unwrap_or(1.0);
        let y = match method {
            Method::Center => x - mean,
            Method::Zscore => (x - mean) / d,
            Method::Scale | Method::L1 | Method::L2 => x / d,
            Method::Minmax => (x - min) / d,
            Method::Log1p => (x - min).ln_1p(),
            Method::Sqrt => (x - min).sqrt(),
            Method::Softmax => (x - max).exp() / d,
        };
        (y, false)
    };
    values.iter().map(one).unzip()
}

/// Naive transform of a dense array: the result, and the indices of impossible divisions.
fn plain_all(
    method: Method,
    shape: &[u64],
    axes: &[usize],
    values: &[f64],
    counts: &[bool],
) -> (Vec<f64>, Vec<u64>) {
    let mut slots: std::collections::BTreeMap<Vec<u64>, Vec<usize>> = std::collections::BTreeMap::default();
    for n in 0..values.len() {
        let mut rest = n as u64;
        let mut kept = Vec::new();
        for axis in (0..shape.len()).rev() {
            if !axes.is_empty() && !axes.contains(&axis) {
                kept.push(rest % shape[axis]);
            }
            rest /= shape[axis];
        }
        slots.entry(kept).or_default().push(n);
    }
    let mut out = vec![f64::NAN; values.len()];
    let mut bad = Vec::new();
    for members in slots.values() {
        let members: Vec<usize> = members.iter().copied().filter(|&n| counts[n]).collect();
        let inputs: Vec<f64> = members.iter().map(|&n| values[n]).collect();
        let (results, impossible) = plain(method, &inputs);
        for ((n, result), impossible) in members.into_iter().zip(results).zip(impossible) {
            out[n] = result;
            if impossible {
                bad.push(n as u64);
            }
        }
    }
    bad.sort_unstable();
    (out, bad)
}

fn narrow<T: Number>(x: f64) -> T {
    match T::ELEMENT {
        ElementType::F16 => bytemuck::cast_slice::<f16, T>(&[tercet_testkit::floats::nearest_half(x)])[0],
        ElementType::F32 => bytemuck::cast_slice::<f32, T>(&[x as f32])[0],
        _ => bytemuck::cast_slice::<f64, T>(&[x])[0],
    }
}

#[derive(Clone, Debug)]
struct Case {
    dtype: ElementType,
    axes: Vec<(u64, u64, AxisSlice)>,
    reduced: Vec<usize>,
    seed: Vec<u16>,
    method: Method,
    zstd: bool,
    parallel: bool,
    budget: u64,
    filter: Option<f64>,
    labels: Option<(usize, Vec<bool>)>,
}

fn case() -> impl Strategy<Value = Case> {
    let axis = (1u64..7, 1u64..8, 0u64..7, 1u64..7, 1u64..3).prop_map(|(extent, chunk, start, len, step)| {
        let start = start % extent;
        (extent, chunk, AxisSlice { start, stop: (start + len).min(extent), step })
    });
    (
        prop::sample::select(vec![ElementType::F16, ElementType::F32, ElementType::F64]),
        prop::collection::vec(axis, 1..5),
        prop::collection::vec(any::<bool>(), 4),
        prop::collection::vec(any::<u16>(), 40),
        prop::sample::select(METHODS.to_vec()),
        (any::<bool>(), any::<bool>(), prop::sample::select(vec![64u64, 1 << 30])),
        prop::option::weighted(0.3, -2.0f64..2.0),
        prop::option::weighted(0.3, (0usize..4, prop::collection::vec(any::<bool>(), 8))),
    )
        .prop_map(|(dtype, axes, reduced, seed, method, (zstd, parallel, budget), filter, labels)| {
            let mut chosen: Vec<usize> = (0..axes.len()).filter(|&axis| reduced[axis]).collect();
            if chosen.len() == axes.len() {
                chosen.clear();
            }
            let labels = labels.map(|(axis, counts)| (axis % axes.len(), counts));
            Case { dtype, axes, reduced: chosen, seed, method, zstd, parallel, budget, filter, labels }
        })
}

/// Random numbers, including all special values.
fn number(seed: u16) -> f64 {
    match seed % 61 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3..9 => 0.0,
        9 => -0.0,
        n => (f64::from(seed) - 32768.0) / f64::from(n * 64),
    }
}

fn check<T: Number>(case: &Case) -> Result<(), TestCaseError> {
    let shape: Vec<u64> = case.axes.iter().map(|axis| axis.0).collect();
    let chunks: Vec<u64> = case.axes.iter().map(|axis| axis.1).collect();
    let slices: Vec<AxisSlice> = case.axes.iter().map(|axis| axis.2).collect();
    let selection = Selection::new(slices, &shape).unwrap();
    let count = shape.iter().product::<u64>() as usize;
    // Long ranges of ordinary numbers, so that not every slot has a special value.
    let values: Vec<T> = (0..count)
        .map(|n| {
            let seed = case.seed[n % case.seed.len()];
            let plain = (f64::from(seed) - 32768.0) / 512.0;
            narrow(if n % 97 < 40 { number(seed) } else { plain + n as f64 })
        })
        .collect();
    let file = File::from_bytes("m", layout(&shape, &chunks, &values, case.zstd)).unwrap();
    let dense: Vec<T> = file.dataset("a").unwrap().read(&selection).unwrap().to_vec().unwrap();
    let dense: Vec<f64> = dense.into_iter().map(Number::to_f64).collect();
    let selected = selection.shape();

    let mut resolved = resolved(&selection, &case.reduced, case.method);
    let mut counts = vec![true; dense.len()];
    if let Some(gt) = case.filter {
        resolved.filter = Some(Filter { gt: Some(Scalar::Float(gt)), ..Filter::default() });
        counts.iter_mut().zip(&dense).for_each(|(counts, &x)| *counts &= x > gt);
    }
    if let Some((axis, kept)) = &case.labels {
        let kept: Arc<[bool]> = kept[..selected[*axis] as usize].into();
        let below: u64 = selected[axis + 1..].iter().product();
        for (n, counts) in counts.iter_mut().enumerate() {
            *counts &= kept[(n as u64 / below % selected[*axis]) as usize];
        }
        resolved.positions = Some(Positions { axis: *axis, counts: kept });
    }
    let (expected, bad) = plain_all(case.method, &selected, &case.reduced, &dense, &counts);
    let settings = Settings { parallel: case.parallel, budget: case.budget, preview: 5, ..SETTINGS };
    let made = run(&file, &resolved, &settings).unwrap();
    let fits = dense.len() * size_of::<T>() <= case.budget as usize;
    prop_assert_eq!(made.file.is_none(), fits);
    prop_assert_eq!(made.tensor.is_some(), fits);
    let preview: Vec<T> = made.preview.unwrap().to_vec().unwrap();
    prop_assert_eq!(preview.len(), dense.len().min(5));
    let whole: Vec<T> = made.tensor.map_or(Vec::new(), |tensor| tensor.to_vec().unwrap());
    let found = whole.iter().zip(&expected).chain(preview.iter().zip(&expected));
    for (n, (found, expected)) in found.enumerate() {
        let (found, rounded) = (found.to_f64(), narrow::<T>(*expected).to_f64());
        // Sums of the naive version round differently; a rounded result may then be the adjacent value.
        let close = (found - rounded).abs() <= rounded.abs() * tolerance(T::ELEMENT) + 1e-12;
        let same = found == rounded || found.is_nan() && rounded.is_nan() || close;
        prop_assert!(same, "{:?} slot {n}: {found} instead of {rounded}", case.method);
    }
    prop_assert_eq!(made.div_by_zero, bad.len() as u64);
    prop_assert_eq!(made.div_by_zero_indices, bad[..bad.len().min(256)].to_vec());
    prop_assert_eq!(made.elements, counts.iter().filter(|&&counts| counts).count() as u64);
    Ok(())
}

fn tolerance(dtype: ElementType) -> f64 {
    match dtype {
        ElementType::F16 => 1.0 / 1024.0,
        ElementType::F32 => 1.5e-7,
        _ => 1e-11,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(400)))]
    #[test]
    fn every_transform_equals_the_plain_loop(case in case()) {
        match case.dtype {
            ElementType::F16 => check::<f16>(&case)?,
            ElementType::F32 => check::<f32>(&case)?,
            _ => check::<f64>(&case)?,
        }
    }
}
