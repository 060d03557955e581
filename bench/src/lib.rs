//! Shared by the benchmark programs: data, clocks, output.

#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "tatami")]
pub mod tatami;

use std::time::Instant;

use serde_json::{Value, json};

/// A smooth field with noise in its low digits, like measured data: `values[row][column]`.
pub fn field(row: u64, column: u64) -> f32 {
    let (y, x) = (row as f32 * 0.002, column as f32 * 0.003);
    let smooth = 280.0 + 15.0 * y.sin() + 8.0 * (x + y * 0.5).cos();
    let noise = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ column.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)) >> 58;
    // Quantized to 1/64, so that a compressor has something to find.
    ((smooth + noise as f32 / 64.0) * 64.0).round() / 64.0
}

/// The argument after `--name`.
pub fn option(name: &str) -> Option<String> {
    let mut args = std::env::args();
    args.find(|arg| arg == name)?;
    args.next()
}

/// A number after `--name`, or a default.
pub fn number(name: &str, default: u64) -> u64 {
    option(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} takes a number")))
}

/// Whether `--name` is given.
pub fn flag(name: &str) -> bool {
    std::env::args().any(|arg| arg == name)
}

/// Runs a function several times and prints the seconds of each run, as one line of JSON.
pub fn report(repeat: u64, bytes: u64, mut work: impl FnMut()) -> Value {
    let mut seconds = Vec::new();
    for _ in 0..repeat {
        let start = Instant::now();
        work();
        seconds.push(start.elapsed().as_secs_f64());
    }
    let result = json!({"seconds": seconds, "bytes": bytes});
    println!("{result}");
    result
}

/// Runs two sides in turn, so that both see the same machine, and prints the seconds of each run. For a profile, `--side ours`
/// or `--side peer` runs one side only.
pub fn alternate(repeat: u64, mut ours: impl FnMut(), mut peer: impl FnMut()) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let side = option("--side");
    for _ in 0..repeat {
        let sides = [("ours", &mut left, &mut ours as &mut dyn FnMut()), ("peer", &mut right, &mut peer)];
        for (name, seconds, work) in sides {
            if side.as_ref().is_some_and(|side| side != name) {
                continue;
            }
            let start = Instant::now();
            work();
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    println!("{}", json!({"ours": left, "peer": right}));
}

/// A thread pool of this size for everything inside `work`.
pub fn on_threads<R: Send>(threads: u64, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build().expect("a thread pool");
    pool.install(work)
}

/// Limits anonymous memory of this process: `malloc` and private maps.
pub fn limit_data(bytes: u64) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Data, limit).expect("a limit may be lowered");
}
