//! The memory budget is a cap: computations stay within it, beside their result.

use std::path::Path;

use tercet_core::{DType, TensorView};
use tercet_testkit::alloc::{exclusive, measure};
use tercet_tet::{Compression, File, Layout, Method, Op, Weights, Window, Writer, WriterOptions};

const MIB: u64 = 1 << 20;
const SHAPE: [u64; 3] = [48, 256, 256];
/// 80 MiB, more than the smallest budget.
const LARGE: [u64; 3] = [80, 512, 512];

/// Memory beside states and chunks: the plan, the metadata and the catalog.
const SLACK: u64 = MIB;

fn write(path: &Path, shape: [u64; 3], chunks: [u64; 3], compression: Compression) {
    let count = shape.iter().product::<u64>();
    let values: Vec<f32> = (0..count).map(|n| f32::from((n * 7919 % 10_007) as u16) * 0.5 - 2000.0).collect();
    let mut layout = Layout::new();
    let id = layout.dataset("t", DType::F32, shape, chunks).unwrap();
    layout.compress(id, compression).unwrap();
    let mut writer = Writer::create(path, layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn computations_stay_within_their_budget() {
    let _exclusive = exclusive();
    let directory = tempfile::tempdir().unwrap();
    // Every thread has at least 1 MiB.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (number, (chunks, compression)) in [
        ([1, 256, 256], Compression::None),
        ([16, 64, 64], Compression::None),
        ([16, 64, 64], Compression::Zstd { level: 1 }),
        ([48, 64, 64], Compression::Zstd { level: 1 }),
    ]
    .into_iter()
    .enumerate()
    {
        let path = directory.path().join(format!("{number}.tet"));
        write(&path, SHAPE, chunks, compression);
        let file = File::open(&path).unwrap();
        for budget in [4 * MIB, 12 * MIB] {
            let select = file.dataset("t").unwrap().select().statistics(false).memory_budget(budget);
            let check = |name: &str, result: u64, run: &(dyn Fn() + Sync)| {
                let ((), stats) = measure(|| pool.install(run));
                let peak = stats.peak_bytes as u64;
                assert!(
                    peak <= budget + result + SLACK,
                    "{name}, chunks of {chunks:?}, {compression:?}: {peak} bytes, result {result}, budget {budget}"
                );
            };
            // Numbers of each slot that the driver computes.
            for (op, width) in [
                (Op::Mean, 1),
                (Op::Max, 1),
                (Op::Std, 4),
                (Op::Product, 1),
                (Op::ArgMax, 2),
                (Op::Median, 1),
                (Op::Quantile { q: 0.3 }, 1),
                (Op::Histogram { bins: 10, range: None }, 12),
            ] {
                for axes in [&[0usize][..], &[1], &[2], &[0, 1], &[1, 2], &[]] {
                    let kept = |axis: &usize| !axes.is_empty() && !axes.contains(axis);
                    let slots: u64 = (0..3).filter(kept).map(|axis| SHAPE[axis]).product();
                    let run = || drop(select.reduce([op]).over(axes.iter().copied()).run().unwrap());
                    check(&format!("{op:?} over {axes:?}"), slots * 8 * width, &run);
                }
            }
            for (axis, extent) in SHAPE.into_iter().enumerate() {
                let windows = (extent - 12).div_ceil(6) + 1;
                let slots = SHAPE.iter().product::<u64>() / extent * windows;
                let window = || Window::rolling(axis, 12).step(6);
                let run = || drop(select.mean([axis]).window(window()).run().unwrap());
                check(&format!("windows of axis {axis}"), slots * 8, &run);
            }
            let weights = || Weights::values(1usize, vec![0.5; 256]);
            let run = || drop(select.reduce([Op::Std]).over([1usize]).weights(weights()).run().unwrap());
            check("weighted deviations", 48 * 256 * 8, &run);
            let output = directory.path().join("z.bin");
            let select = select.overwrite(true);
            let run =
                || drop(select.transform(Method::Zscore).over([0usize]).raw_output(&output).run().unwrap());
            check("zscore", 256 * 256 * 8 * 8, &run);
            let run = || drop(select.write_raw(&output).unwrap());
            check("spill", 0, &run);
        }
    }
}

/// Every thread has a band of observations.
#[test]
fn matrices_stay_within_their_budget() {
    let _exclusive = exclusive();
    let directory = tempfile::tempdir().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let shape = [100_000u64, 32];
    let values: Vec<f32> = (0..3_200_000u64).map(|n| f32::from((n * 7919 % 10_007) as u16)).collect();
    for (chunk, compression) in [(8192, Compression::None), (8192, Compression::Zstd { level: 1 })] {
        let path = directory.path().join("table.tet");
        let mut layout = Layout::new();
        let id = layout.dataset("t", DType::F32, shape, [chunk, 32]).unwrap();
        layout.compress(id, compression).unwrap();
        let mut writer = Writer::create(&path, layout, WriterOptions::new().with_overwrite(true)).unwrap();
        writer.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
        writer.finish().unwrap();
        let file = File::open(&path).unwrap();
        for budget in [4 * MIB, 12 * MIB] {
            let select = file.dataset("t").unwrap().select().statistics(false).memory_budget(budget);
            for op in [Op::Covariance, Op::Correlation] {
                let run = || drop(select.reduce([op]).over([0usize]).run().unwrap());
                let ((), stats) = measure(|| pool.install(run));
                let peak = stats.peak_bytes as u64;
                assert!(
                    peak <= budget + SLACK,
                    "{op:?}, chunks of {chunk} rows, {compression:?}: {peak} bytes, budget {budget}"
                );
            }
        }
    }
}

/// The budgets of small, of usual and of large machines.
#[test]
fn large_computations_stay_within_their_budget() {
    let _exclusive = exclusive();
    let directory = tempfile::tempdir().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let output = directory.path().join("z.bin");
    let [steps, rows, columns] = LARGE;
    for (chunks, compression, budgets) in [
        ([1, 512, 512], Compression::None, [64 * MIB, 2048 * MIB]),
        ([32, 128, 128], Compression::Zstd { level: 1 }, [64 * MIB, 256 * MIB]),
    ] {
        let path = directory.path().join(format!("{}.tet", chunks[0]));
        write(&path, LARGE, chunks, compression);
        let file = File::open(&path).unwrap();
        for budget in budgets {
            let select = file.dataset("t").unwrap().select().statistics(false).memory_budget(budget);
            let select = select.overwrite(true);
            let check = |name: &str, result: u64, run: &(dyn Fn() + Sync)| {
                let ((), stats) = measure(|| pool.install(run));
                let peak = stats.peak_bytes as u64;
                assert!(
                    peak <= budget + result + SLACK,
                    "{name}, chunks of {chunks:?}, {compression:?}: {peak} bytes, result {result}, budget {budget}"
                );
            };
            let map = rows * columns * 8;
            let reduce = |op: Op, axes: &[usize]| {
                drop(select.reduce([op]).over(axes.iter().copied()).run().unwrap());
            };
            check("mean", map, &|| reduce(Op::Mean, &[0]));
            check("mean over rows", steps * rows * 8, &|| reduce(Op::Mean, &[2]));
            check("var", map * 4, &|| reduce(Op::Var, &[0]));
            check("median", map, &|| reduce(Op::Median, &[0]));
            check("histogram", 4096, &|| reduce(Op::Histogram { bins: 64, range: None }, &[]));
            let windows = (steps - 24) / 24 + 1;
            let window = || Window::rolling(0usize, 24).step(24);
            check("windows", windows * map, &|| drop(select.mean([0usize]).window(window()).run().unwrap()));
            let zscore = || select.transform(Method::Zscore).over([0usize]).raw_output(&output).run();
            check("zscore", map * 8, &|| drop(zscore().unwrap()));
            check("spill", 0, &|| drop(select.write_raw(&output).unwrap()));
        }
    }
}
