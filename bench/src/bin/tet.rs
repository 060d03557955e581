//! Reading and writing `.tet` files, timed in process. `bench/measure_tet.py` compares this with numpy and the reference.
//!
//! ```text
//! tet make DIR [--side 16384]            the files: rows.tet, tiles.tet, zstd.tet, and the array as plain.f32
//! tet chunks FILE N                      a file of N small chunks
//! tet read FILE --into|--new [--threads N] [--no-verify] [--pread] [--repeat K]
//! tet bare FILE [--threads N]            zstd alone on the same chunks
//! tet open FILE [--repeat K]             open and read one chunk
//! tet stats DTYPE                        statistics of a 1 MiB chunk
//! tet bounded-write FILE BYTES LIMIT     writes BYTES under a limit of anonymous memory
//! tet bounded-extract FILE OUT LIMIT     extracts the first dataset under such a limit
//! ```

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use tercet_bench::{field, flag, limit_data, number, on_threads, option, report};
use tercet_core::ElementType;
use tercet_core::progress::NoProgress;
use tercet_core::{DType, Selection};
use tercet_tet::{Access, Compression, Dataset, Error, File, Layout, ReadOptions, Writer, WriterOptions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", dir, ..] => make(Path::new(dir), number("--side", 16_384)),
        ["chunks", file, count, ..] => chunks(Path::new(file), count.parse()?),
        ["read", file, ..] => read(Path::new(file)),
        ["bare", file, ..] => bare(Path::new(file)),
        ["open", file, ..] => open(Path::new(file)),
        ["stats", dtype, ..] => {
            stats(dtype.parse::<DType>()?.element().ok_or("not an element type of .tet")?)
        }
        ["bounded-write", file, bytes, limit, ..] => {
            bounded_write(Path::new(file), bytes.parse()?, limit.parse()?)
        }
        ["bounded-extract", file, out, limit, ..] => {
            bounded_extract(Path::new(file), Path::new(out), limit.parse()?)
        }
        _ => Err("see the first lines of bench/src/bin/tet.rs".into()),
    }
}

fn make(dir: &Path, side: u64) -> Outcome {
    let write = |name: &str, chunk: [u64; 2], compression| -> Outcome {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::F32, [side, side], chunk)?;
        layout.compress(id, compression)?;
        let mut writer = Writer::create(dir.join(name), layout, WriterOptions::new().with_overwrite(true))?;
        let grid = writer.grid(id).clone();
        let fill = |coords: &[u64], out: &mut [u8]| {
            let (row, column) = (grid.window(0, coords[0]).0, grid.window(1, coords[1]).0);
            let width = grid.chunk_shape_at(coords)[1];
            for (n, slot) in out.chunks_exact_mut(4).enumerate() {
                let value = field(row + n as u64 / width, column + n as u64 % width);
                slot.copy_from_slice(&value.to_le_bytes());
            }
            Ok::<(), Error>(())
        };
        writer.fill(id, fill, &NoProgress)?;
        writer.finish()?;
        Ok(())
    };
    // 1 MiB chunks in all three.
    write("rows.tet", [(1 << 18) / side.max(1), side], Compression::None)?;
    write("tiles.tet", [512, 512], Compression::None)?;
    write("zstd.tet", [512, 512], Compression::Zstd { level: 3 })
}

fn chunks(path: &Path, count: u64) -> Outcome {
    let mut layout = Layout::new();
    let id = layout.dataset("a", DType::F32, [count, 64], [1, 64])?;
    let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(true))?;
    let fill = |coords: &[u64], out: &mut [u8]| {
        out.fill(coords[0] as u8);
        Ok::<(), Error>(())
    };
    writer.fill(id, fill, &NoProgress)?;
    writer.finish()?;
    Ok(())
}

fn open_file(path: &Path) -> Result<File, Error> {
    let access = if flag("--pread") { Access::Pread } else { Access::Mmap };
    File::open_with(path, ReadOptions::new().with_access(access).with_verify(!flag("--no-verify")))
}

fn read(path: &Path) -> Outcome {
    let file = open_file(path)?;
    let dataset = file.datasets().next().ok_or("no dataset")?;
    let selection = Selection::full(dataset.shape());
    let bytes = dataset.grid()?.bytes();
    let repeat = number("--repeat", 5);
    on_threads(number("--threads", 2), || {
        if flag("--new") {
            // The first read maps the file; numpy's map is warm as well.
            drop(dataset.read(&selection).expect("readable"));
            report(repeat, bytes, || drop(dataset.read(&selection).expect("readable")));
        } else {
            let mut buffer = vec![1; bytes as usize];
            dataset.read_into(&selection, &mut buffer, &NoProgress).expect("readable");
            report(repeat, bytes, || {
                dataset.read_into(&selection, &mut buffer, &NoProgress).expect("readable")
            });
        }
    });
    Ok(())
}

/// Decodes every chunk with zstd alone: no lookup, no checksum, no copy.
fn bare(path: &Path) -> Outcome {
    let file = open_file(path)?;
    let dataset = file.datasets().next().ok_or("no dataset")?;
    let stored = stored_chunks(&file, &dataset)?;
    let bytes = dataset.grid()?.bytes();
    on_threads(number("--threads", 2), || {
        report(number("--repeat", 5), bytes, || {
            stored.par_iter().for_each_init(
                || (zstd::bulk::Decompressor::new().expect("a decoder"), Vec::new()),
                |(decoder, raw), (stored, len)| {
                    raw.resize(*len, 0u8);
                    decoder.decompress_to_buffer(stored, &mut raw[..]).expect("decodable");
                },
            );
        });
    });
    Ok(())
}

fn stored_chunks(
    file: &File,
    dataset: &Dataset<'_>,
) -> Result<Vec<(Vec<u8>, usize)>, Box<dyn std::error::Error>> {
    let grid = dataset.grid()?;
    let map = std::fs::read(file.name())?;
    let mut chunks = Vec::new();
    for linear in 0..grid.chunk_count() {
        let place = dataset.chunk_ref(&grid.coords(linear)[..grid.rank()])?;
        let range = place.span.to_range().ok_or("too large")?;
        chunks.push((map[range].to_vec(), place.raw_len as usize));
    }
    Ok(chunks)
}

fn open(path: &Path) -> Outcome {
    let coords = [number("--tile", 17), 0];
    report(number("--repeat", 200), 0, || {
        let file = open_file(path).expect("readable");
        let chunk = file.datasets().next().expect("a dataset").chunk(&coords).expect("readable");
        std::hint::black_box(chunk.bytes()[0]);
    });
    Ok(())
}

fn stats(dtype: ElementType) -> Outcome {
    let words: Vec<u64> = (0..1u64 << 17).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let chunk: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    report(number("--repeat", 200), chunk.len() as u64, || {
        std::hint::black_box(tercet_tet::Stats::compute(dtype, std::hint::black_box(&chunk)));
    });
    Ok(())
}

fn bounded_write(path: &Path, bytes: u64, limit: u64) -> Outcome {
    limit_data(limit);
    let mut layout = Layout::new();
    let side = 512;
    let rows = bytes / (side * side * 4) * side;
    let id = layout.dataset("a", ElementType::F32, [rows, side], [side, side])?;
    layout.compress(id, compression())?;
    let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(true))?;
    let fill = |coords: &[u64], out: &mut [u8]| {
        for (n, slot) in out.chunks_exact_mut(4).enumerate() {
            let value = field(coords[0] * side + n as u64 / side, n as u64 % side);
            slot.copy_from_slice(&value.to_le_bytes());
        }
        Ok::<(), Error>(())
    };
    on_threads(2, || writer.fill(id, fill, &NoProgress))?;
    writer.finish()?;
    println!("{{\"ok\":true}}");
    Ok(())
}

fn compression() -> Compression {
    match option("--zstd") {
        Some(level) => Compression::Zstd { level: level.parse().unwrap_or(3) },
        None => Compression::None,
    }
}

fn bounded_extract(path: &Path, out: &Path, limit: u64) -> Outcome {
    limit_data(limit);
    let file = open_file(path)?;
    let dataset = file.datasets().next().ok_or("no dataset")?;
    let disk = Arc::new(tercet_core::publish::RealDisk);
    let mut atomic_file = tercet_core::publish::AtomicFile::create_on(disk, out)?;
    let export = dataset.export(&Selection::full(dataset.shape()))?;
    on_threads(2, || export.write_at(&mut atomic_file, 0, &NoProgress))?;
    atomic_file.publish()?;
    println!("{{\"ok\":true}}");
    Ok(())
}
