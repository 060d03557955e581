//! CPU seconds of queries on generated arrays.
//!
//! `measure make DIR` writes arrays in several layouts; `measure run FILE QUERY [REPEAT] [THREADS]` runs a query and
//! prints the least CPU time and wall time of a repetition. CPU time is taken of all threads, since machines are shared.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use tercet_core::progress::NoProgress;
use tercet_core::{ElementType, TensorView};
use tercet_tet::{File, Layout, Query, RunOptions, Syntax, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", folder] => make(Path::new(folder)),
        ["run", file, query] => run(file, query, 3, None),
        ["run", file, query, repeat] => run(file, query, repeat.parse()?, None),
        ["run", file, query, repeat, threads] => run(file, query, repeat.parse()?, Some(threads.parse()?)),
        _ => Err("usage: measure make DIR | measure run FILE QUERY [REPEAT] [THREADS]".into()),
    }
}

/// Nanoseconds that all threads of this process have run.
#[expect(clippy::disallowed_methods, reason = "the kernel's own files")]
fn cpu() -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(sum)
}

#[expect(clippy::cast_precision_loss, reason = "times")]
fn run(file: &str, query: &str, repeat: usize, threads: Option<usize>) -> Result<(), Box<dyn Error>> {
    if let Some(threads) = threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let query = Query::parse(query, Syntax::Json)?;
    let how = RunOptions::new().with_preview(0).with_statistics(false);
    let how = how.with_parallel(Some(threads != Some(1)));
    let (mut best, mut wall) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..repeat {
        let options = tercet_tet::ReadOptions::new().with_access(tercet_core::source::Access::Mmap);
        let file = File::open_with(file, options)?;
        let (start, before) = (Instant::now(), cpu()?);
        let answer = query.run(&file, &how, &NoProgress)?;
        best = best.min((cpu()? - before) as f64 * 1e-9);
        wall = wall.min(start.elapsed().as_secs_f64());
        drop(answer);
    }
    println!("{best:.4} {wall:.4}");
    Ok(())
}

/// A generator of numbers that is the same everywhere.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "any numbers do")]
fn make(folder: &Path) -> Result<(), Box<dyn Error>> {
    let shape = [256u64, 1024, 1024];
    let mut seed = 1;
    let values: Vec<f32> = (0..256 << 20).map(|_| 280.0 + (next(&mut seed) % 4000) as f32 * 0.01).collect();
    for (name, chunks) in [("rows", [1, 1024, 1024]), ("tiles", [64, 128, 128]), ("columns", [256, 64, 64])] {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::F32, &shape, &chunks)?;
        let path = folder.join(format!("{name}.tet"));
        let mut writer = Writer::create(&path, layout, WriterOptions::new())?;
        writer.array(id, TensorView::from_slice(&shape, &values)?)?;
        writer.finish()?;
    }
    let small: Vec<i16> = values.iter().map(|value| (*value * 10.0) as i16).collect();
    let halves: Vec<tercet_core::tensor::f16> =
        values.iter().map(|value| tercet_core::tensor::f16::from_f32(*value)).collect();
    let wide: Vec<f64> = values[..128 << 20].iter().map(|value| f64::from(*value)).collect();
    for (name, dtype, view) in [
        ("i16", ElementType::I16, TensorView::from_slice(&shape, &small)?),
        ("f16", ElementType::F16, TensorView::from_slice(&shape, &halves)?),
        ("f64", ElementType::F64, TensorView::from_slice(&[128, 1024, 1024], &wide)?),
    ] {
        let mut layout = Layout::new();
        let id = layout.dataset("a", dtype, view.shape(), &[64, 128, 128])?;
        let path = folder.join(format!("{name}.tet"));
        let mut writer = Writer::create(&path, layout, WriterOptions::new())?;
        writer.array(id, view)?;
        writer.finish()?;
    }
    Ok(())
}
