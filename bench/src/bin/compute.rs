//! Computations on `.tet` files, timed in process. `bench/measure_compute.py` compares this with numpy.
//!
//! ```text
//! compute make DIR [N [DTYPE…]]
//!                      the files of the table: N steps of 4 MiB (256: 1 GiB), and plain.DTYPE with the same values for numpy
//! compute serve        reads lines `{"file", "document", "threads", "verify", "mapped", "repeat"}` and answers each with
//!                      `{"wall": […], "cpu": […]}`; `"limit": "crc"`, `"copy"` or `"read"` times the bytes themselves
//! ```

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tercet_bench::{field, on_threads};
use tercet_core::ElementType;
use tercet_core::progress::NoProgress;
use tercet_core::source::Access;
use tercet_core::tensor::f16;
use tercet_tet::{Error, File, Layout, Query, ReadOptions, RunOptions, Syntax, Writer, WriterOptions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", dir] => make(Path::new(dir), 256, &[]),
        ["make", dir, steps, ref dtypes @ ..] => make(Path::new(dir), steps.parse()?, dtypes),
        ["serve"] => serve(),
        _ => Err("see the first lines of bench/src/bin/compute.rs".into()),
    }
}

/// Layouts of the f32 array; the other types have the first.
const LAYOUTS: [(&str, [u64; 3]); 3] =
    [("steps", [1, 1024, 1024]), ("tiles", [64, 128, 128]), ("columns", [256, 64, 64])];

fn make(dir: &Path, steps: u64, dtypes: &[&str]) -> Outcome {
    for dtype in [ElementType::F32, ElementType::F64, ElementType::I16, ElementType::F16] {
        if !dtypes.is_empty() && !dtypes.contains(&&*dtype.to_string()) {
            continue;
        }
        let layouts = if dtype == ElementType::F32 { &LAYOUTS[..] } else { &LAYOUTS[..1] };
        for &(name, [t, y, x]) in layouts {
            let x = if name == "steps" { 1024 * 4 / dtype.size() as u64 } else { x };
            write(&dir.join(format!("{dtype}-{name}.tet")), dtype, steps, [t, y, x])?;
        }
        let file = File::open(dir.join(format!("{dtype}-steps.tet")))?;
        std::fs::write(dir.join(format!("plain.{dtype}")), file.dataset("a")?.read_all()?.bytes())?;
    }
    tiny(&dir.join("tiny.tet"))
}

fn write(path: &Path, dtype: ElementType, steps: u64, chunk: [u64; 3]) -> Outcome {
    let shape = [steps, 1024, 1024 * 4 / dtype.size() as u64];
    let mut layout = Layout::new();
    let id = layout.dataset("a", dtype, shape, chunk)?;
    let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(true))?;
    let grid = writer.grid(id).clone();
    let fill = |coords: &[u64], out: &mut [u8]| {
        let [t, y, x] = [0, 1, 2].map(|axis| grid.window(axis, coords[axis]).0);
        let [_, rows, width] = [0, 1, 2].map(|axis| grid.chunk_shape_at(coords)[axis]);
        for (n, slot) in (0u64..).zip(out.chunks_exact_mut(dtype.size())) {
            let (t, y, x) = (t + n / width / rows, y + n / width % rows, x + n % width);
            // One field for each step.
            let value = field(t * 3 + y, x);
            match dtype {
                ElementType::F16 => slot.copy_from_slice(&f16::from_f32(value).to_le_bytes()),
                ElementType::F64 => slot.copy_from_slice(&f64::from(value).to_le_bytes()),
                ElementType::I16 => slot.copy_from_slice(&((value * 64.0) as i16).to_le_bytes()),
                _ => slot.copy_from_slice(&value.to_le_bytes()),
            }
        }
        Ok::<(), Error>(())
    };
    writer.fill(id, fill, &NoProgress)?;
    writer.finish()?;
    Ok(())
}

/// One million chunks of 64 bytes.
fn tiny(path: &Path) -> Outcome {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F32, [4000, 4000], [4, 4])?;
    let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(true))?;
    let fill = |coords: &[u64], out: &mut [u8]| {
        for (n, slot) in (0u64..).zip(out.chunks_exact_mut(4)) {
            slot.copy_from_slice(&field(coords[0] * 4 + n / 4, coords[1] * 4 + n % 4).to_le_bytes());
        }
        Ok::<(), Error>(())
    };
    writer.fill(id, fill, &NoProgress)?;
    writer.finish()?;
    Ok(())
}

fn serve() -> Outcome {
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let flag = |name: &str| request[name].as_bool().unwrap_or(true);
        let (verify, mapped) = (flag("verify"), flag("mapped"));
        let repeat = request["repeat"].as_u64().unwrap_or(1);
        let threads = request["threads"].as_u64().unwrap_or(2);
        let answer = if text("limit").is_empty() {
            let document = request["document"].to_string();
            let query = Query::parse(&document, Syntax::guess(&document))?;
            let statistics = request["statistics"].as_bool().unwrap_or(false);
            let options = RunOptions::new()
                .with_preview(0)
                .with_statistics(statistics)
                .with_parallel(Some(threads > 1));
            on_threads(threads, || {
                timed(repeat, || {
                    // A file remembers what it has verified: every run opens it again.
                    let file = reopened(text("file"), verify, mapped);
                    std::hint::black_box(query.run(&file, &options, &NoProgress).expect("an answer"));
                })
            })
        } else {
            limit(text("limit"), text("file"), repeat)?
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn reopened(path: &str, verify: bool, mapped: bool) -> File {
    let access = if mapped { Access::Mmap } else { Access::Pread };
    File::open_with(path, ReadOptions::new().with_verify(verify).with_access(access)).expect("the file opens")
}

/// Physical limits: the time that the bytes of a file take by themselves, on one thread.
fn limit(which: &str, path: &str, repeat: u64) -> Result<Value, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let mut copy = vec![0u8; if which == "copy" { bytes.len() } else { 0 }];
    Ok(timed(repeat, || match which {
        "copy" => copy.copy_from_slice(&bytes),
        "crc" => {
            std::hint::black_box(tercet_core::checksum::crc32c(&bytes));
        }
        _ => {
            let (words, _) = bytes.as_chunks::<64>();
            let mut sums = [0u64; 8];
            for word in words {
                for (sum, part) in sums.iter_mut().zip(word.as_chunks::<8>().0) {
                    *sum = sum.wrapping_add(u64::from_le_bytes(*part));
                }
            }
            std::hint::black_box(sums);
        }
    }))
}

fn timed(repeat: u64, mut work: impl FnMut()) -> Value {
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        let (start, before) = (Instant::now(), cpu_seconds());
        work();
        wall.push(start.elapsed().as_secs_f64());
        cpu.push(cpu_seconds() - before);
    }
    json!({"wall": wall, "cpu": cpu})
}

/// CPU seconds of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
