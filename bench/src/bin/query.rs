//! Queries of `.tet` files, timed in process. `bench/measure_query.py` compares this with numpy and the reference.
//!
//! ```text
//! query make DIR SIDE                    SIDE × SIDE of f32: raw.tet (rows), tiles.tet (512×512), zstd.tet
//! query dtypes DIR BYTES                 f64.tet, i32.tet, f16.tet, u8.tet: BYTES of each, raw, 1 MiB rows
//! query run FILE DOCUMENT [--threads N] [--no-verify] [--stats] [--repeat K] [--limit BYTES]
//! ```

use std::path::Path;

use tercet_bench::{field, flag, number, on_threads, option, report};
use tercet_core::ElementType;
use tercet_core::progress::NoProgress;
use tercet_tet::{
    Compression, Error, File, Layout, Query, ReadOptions, RunOptions, Syntax, Writer, WriterOptions,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", dir, side, ..] => make(Path::new(dir), side.parse()?),
        ["dtypes", dir, bytes, ..] => dtypes(Path::new(dir), bytes.parse()?),
        ["run", file, document, ..] => run(Path::new(file), document),
        _ => Err("see the first lines of bench/src/bin/query.rs".into()),
    }
}

fn make(dir: &Path, side: u64) -> Outcome {
    let all = [
        ("raw.tet", [(1 << 18) / side, side], Compression::None),
        ("tiles.tet", [512, 512], Compression::None),
        ("zstd.tet", [512, 512], Compression::Zstd { level: 3 }),
    ];
    for (name, chunk, compression) in all {
        write(&dir.join(name), ElementType::F32, [side, side], chunk, compression)?;
    }
    Ok(())
}

fn dtypes(dir: &Path, bytes: u64) -> Outcome {
    for dtype in [ElementType::F32, ElementType::F64, ElementType::I32, ElementType::F16, ElementType::U8] {
        let width = 1 << 12;
        let rows = bytes / width / dtype.size() as u64;
        let chunk = (1 << 20) / width / dtype.size() as u64;
        write(&dir.join(format!("{dtype}.tet")), dtype, [rows, width], [chunk, width], Compression::None)?;
    }
    Ok(())
}

fn write(
    path: &Path,
    dtype: ElementType,
    shape: [u64; 2],
    chunk: [u64; 2],
    compression: Compression,
) -> Outcome {
    let mut layout = Layout::new();
    let id = layout.dataset("a", dtype, shape, chunk)?;
    layout.compress(id, compression)?;
    let mut writer = Writer::create(path, layout, WriterOptions::new().with_overwrite(true))?;
    let grid = writer.grid(id).clone();
    let fill = |coords: &[u64], out: &mut [u8]| {
        let (row, column) = (grid.window(0, coords[0]).0, grid.window(1, coords[1]).0);
        let width = grid.chunk_shape_at(coords)[1];
        for (n, slot) in out.chunks_exact_mut(dtype.size()).enumerate() {
            let value = field(row + n as u64 / width, column + n as u64 % width);
            match dtype {
                ElementType::F16 => {
                    slot.copy_from_slice(&tercet_core::tensor::f16::from_f32(value).to_le_bytes())
                }
                ElementType::F32 => slot.copy_from_slice(&value.to_le_bytes()),
                ElementType::F64 => slot.copy_from_slice(&f64::from(value).to_le_bytes()),
                ElementType::I32 => slot.copy_from_slice(&((value * 100.0) as i32).to_le_bytes()),
                _ => slot.fill(value as u8),
            }
        }
        Ok::<(), Error>(())
    };
    writer.fill(id, fill, &NoProgress)?;
    writer.finish()?;
    Ok(())
}

fn run(path: &Path, document: &str) -> Outcome {
    let query = Query::parse(document, Syntax::guess(document))?;
    let file: File = File::open_with(path, ReadOptions::new().with_verify(!flag("--no-verify")))?;
    let dataset = file.dataset(query.dataset())?;
    let bytes = dataset.grid()?.bytes();
    let threads = number("--threads", 2);
    if let Some(limit) = option("--limit") {
        tercet_bench::limit_data(limit.parse()?);
    }
    let options =
        RunOptions::new().with_preview(0).with_statistics(flag("--stats")).with_parallel(Some(threads > 1));
    on_threads(threads, || {
        // The first run maps the file; numpy's map is warm as well.
        let answer = query.run(&file, &options, &NoProgress).expect("an answer");
        let read = answer.outcome.map_or(0, |outcome| outcome.execution.bytes_read);
        eprintln!("read {read} of {bytes} bytes");
        report(number("--repeat", 5), bytes, || {
            std::hint::black_box(query.run(&file, &options, &NoProgress).expect("an answer"));
        });
    });
    Ok(())
}
