//! `.tatami` files compared with Parquet, timed in process, both sides in turn. `bench/measure_tatami.py` runs this.
//!
//! STEM is the path of files without extension: `STEM.tatami`, `STEM.parquet` (pages as chosen by arrow-rs), and
//! `STEM.same.parquet` (pages of as many rows as ours), which `--same` selects.
//!
//! ```text
//! tatami make CASE INPUT STEM [--page-rows N] [--run-bytes N]   the files, compared value by value; prints their sizes
//! tatami write CASE INPUT [--threads N]                         rows in memory to a file in memory
//! tatami scan STEM --columns A,B [--threads N] [--views]        whole columns, row group by row group
//! tatami find STEM --columns KEY [--count K]                    row numbers of K keys
//! tatami fetch STEM --columns KEY,A,B [--count K] [--filter]    rows of K keys
//! tatami take STEM --columns A,B [--count K] [--threads N]      K random rows
//! tatami open STEM --columns A                                  open and read one column
//! tatami bounded FILE BYTES LIMIT                               BYTES of rows under a limit of anonymous memory
//! ```

use std::hint::black_box;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::json;
use tercet_bench::tatami::{Key, Random, compare, data, peer, tercet};
use tercet_bench::{alternate, flag, limit_data, number, on_threads, option};
use tercet_tatami::{Column, Field, File, Scalar, Schema, Type, Values, Writer, WriterOptions};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", case, input, stem, ..] => make(case, Path::new(input), stem),
        ["write", case, input, ..] => write(case, Path::new(input)),
        ["scan", stem, ..] => scan(stem),
        ["find", stem, ..] => find(stem),
        ["fetch", stem, ..] => fetch(stem),
        ["take", stem, ..] => take(stem),
        ["open", stem, ..] => open(stem),
        ["bounded", file, bytes, limit, ..] => bounded(Path::new(file), bytes.parse()?, limit.parse()?),
        _ => Err("see the first lines of bench/src/bin/tatami.rs".into()),
    }
}

fn our_path(stem: &str) -> PathBuf {
    PathBuf::from(format!("{stem}.tatami"))
}

fn peer_path(stem: &str) -> PathBuf {
    PathBuf::from(if flag("--same") { format!("{stem}.same.parquet") } else { format!("{stem}.parquet") })
}

fn our_options() -> WriterOptions {
    tercet::options(page_rows(), number("--run-bytes", WriterOptions::new().blob_run_target_bytes))
}

fn page_rows() -> u32 {
    number("--page-rows", 65_536) as u32
}

/// The requested columns, by number.
fn wanted(file: &File) -> Vec<usize> {
    let names = option("--columns").expect("--columns takes names");
    names.split(',').map(|name| file.column_index(name).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn make(name: &str, input: &Path, stem: &str) -> Outcome {
    let case = data::load(name, input)?;
    let batches: Vec<Vec<Column>> = case.batches.iter().map(tercet::columns).collect();
    let written = tercet::write(tercet::schema(&case), &batches, our_options())?;
    std::fs::write(our_path(stem), &written)?;
    let plain = peer::write(&case, None, 1)?;
    let same_pages = peer::write(&case, Some(page_rows() as usize), 1)?;
    std::fs::write(format!("{stem}.parquet"), &plain)?;
    std::fs::write(format!("{stem}.same.parquet"), &same_pages)?;
    let file = tercet::open(&our_path(stem));
    for path in [format!("{stem}.parquet"), format!("{stem}.same.parquet")] {
        compare(&file, &peer::Peer::open(Path::new(&path), case.key, false)?)?;
    }
    let columns: serde_json::Map<String, serde_json::Value> = (0..case.schema.fields().len().min(64))
        .map(|column| {
            let chunks = file.footer().groups.iter().map(|group| group.chunks[column].stored_bytes);
            let blob = file.footer().blobs.iter().filter(|blob| blob.column == column as u64);
            let runs: u64 = blob.flat_map(|blob| &blob.runs).map(|run| run.stored_bytes).sum();
            (case.schema.field(column).name().clone(), json!(chunks.sum::<u64>() + runs))
        })
        .collect();
    println!(
        "{}",
        json!({
            "rows": file.rows(), "ours_bytes": written.len(), "peer_bytes": plain.len(),
            "peer_same_pages_bytes": same_pages.len(), "our_columns": columns,
            "in_memory_bytes": case.batches.iter().map(arrow::array::RecordBatch::get_array_memory_size).max(),
        })
    );
    Ok(())
}

/// Every value of both files.
fn compare(file: &File, peer: &peer::Peer) -> Outcome {
    assert_eq!(file.group_count(), peer.group_count(), "the number of row groups");
    let all: Vec<usize> = (0..file.schema().len()).collect();
    for group in 0..file.group_count() {
        let columns = file.read_group(group, &all)?;
        let batches = peer.scan(group, &all, 1 << 20)?.collect::<Result<Vec<_>, _>>()?;
        assert_eq!(batches.len(), 1, "a row group in one batch");
        compare::assert_same("whole files", &columns, batches[0].columns());
    }
    Ok(())
}

fn write(name: &str, input: &Path) -> Outcome {
    let case = data::load(name, input)?;
    let batches: Vec<Vec<Column>> = case.batches.iter().map(tercet::columns).collect();
    let threads = number("--threads", 1);
    on_threads(threads, || {
        alternate(
            number("--repeat", 3),
            || {
                let bytes = tercet::write(tercet::schema(&case), &batches, our_options()).expect("writable");
                black_box(bytes.len());
            },
            || {
                black_box(peer::write(&case, None, threads).expect("writable").len());
            },
        );
    });
    Ok(())
}

/// Whole columns: both sides decode all values of a row group, and all are read once.
fn scan(stem: &str) -> Outcome {
    let file = tercet::open(&our_path(stem));
    let columns = wanted(&file);
    let peer = peer::Peer::open(&peer_path(stem), None, flag("--views"))?;
    let batch_rows = number("--batch-rows", 8_192) as usize;
    let groups = file.group_count();
    let our_group = |group: usize| -> u64 {
        let columns = file.read_group(group, &columns).expect("readable");
        columns.iter().map(sum).fold(0, u64::wrapping_add)
    };
    let peer_group = |group: usize| -> u64 {
        let reader = peer.scan(group, &columns, batch_rows).expect("readable");
        reader.map(|batch| batch_sum(&batch.expect("readable"))).fold(0, u64::wrapping_add)
    };
    let parallel = number("--threads", 1) > 1;
    let all = |each: &(dyn Fn(usize) -> u64 + Sync)| -> u64 {
        if parallel {
            (0..groups).into_par_iter().map(each).reduce(|| 0, u64::wrapping_add)
        } else {
            (0..groups).map(each).fold(0, u64::wrapping_add)
        }
    };
    on_threads(number("--threads", 1), || {
        assert_eq!(all(&our_group), all(&peer_group), "the sums of both sides");
        let pass = |each: &(dyn Fn(usize) -> u64 + Sync)| {
            black_box(all(each));
        };
        alternate(number("--repeat", 9), || pass(&our_group), || pass(&peer_group));
    });
    Ok(())
}

/// A checksum of every value: the sum of numbers, or of the lengths of strings.
fn sum(column: &Column) -> u64 {
    match &column.values {
        Values::Int64(values) => values.iter().fold(0, |sum, value| sum.wrapping_add(*value as u64)),
        Values::Int32(values) => values.iter().fold(0, |sum, value| sum.wrapping_add(*value as u64)),
        Values::UInt16(values) => values.iter().fold(0, |sum, value| sum.wrapping_add(u64::from(*value))),
        Values::Bytes(strings) => strings.total_bytes(),
        other => panic!("no sum of {}", other.type_name()),
    }
}

fn batch_sum(batch: &arrow::array::RecordBatch) -> u64 {
    use arrow::array::AsArray as _;
    use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt16Type};
    let of = |array: &arrow::array::ArrayRef| match array.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .fold(0, |sum: u64, value| sum.wrapping_add(*value as u64)),
        DataType::Int32 => array
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .fold(0, |sum: u64, value| sum.wrapping_add(*value as u64)),
        DataType::UInt16 => array
            .as_primitive::<UInt16Type>()
            .values()
            .iter()
            .fold(0, |sum: u64, value| sum.wrapping_add(u64::from(*value))),
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            (offsets[offsets.len() - 1] - offsets[0]) as u64
        }
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        other => panic!("no sum of {other}"),
    };
    batch.columns().iter().map(of).fold(0, u64::wrapping_add)
}

/// Keys of random rows.
fn keys(file: &File, column: usize) -> Vec<Key> {
    let rows = Random(23).rows(number("--count", 200) as usize, file.rows());
    let found = file.take(&rows, &[column]).unwrap_or_else(|error| panic!("{error}"));
    (0..rows.len()).map(|row| tercet::key(&found[0], row)).collect()
}

fn find(stem: &str) -> Outcome {
    let file = tercet::open(&our_path(stem));
    let key_column = wanted(&file)[0];
    let peer = peer::Peer::open(&peer_path(stem), Some(key_column), false)?;
    let keys = keys(&file, key_column);
    let scalars: Vec<Scalar> = keys.iter().map(tercet::scalar).collect();
    for (key, scalar) in keys.iter().zip(&scalars) {
        let ours = file.lookup(scalar)?.map(|found| (found.group, found.row_in_group as usize));
        assert_eq!(ours, peer.find(key_column, key)?, "the row of {key:?}");
    }
    alternate(
        number("--repeat", 9),
        || {
            for key in &scalars {
                black_box(file.lookup(key).expect("readable"));
            }
        },
        || {
            for key in &keys {
                black_box(peer.find(key_column, key).expect("readable"));
            }
        },
    );
    Ok(())
}

fn fetch(stem: &str) -> Outcome {
    let file = tercet::open(&our_path(stem));
    let columns = wanted(&file);
    let (key_column, columns) = (columns[0], &columns[1..]);
    let peer = peer::Peer::open(&peer_path(stem), Some(key_column), false)?;
    let keys = keys(&file, key_column);
    let scalars: Vec<Scalar> = keys.iter().map(tercet::scalar).collect();
    let our_row = |key: &Scalar| {
        let found = file.lookup(key).expect("readable").expect("a key of the file");
        file.take(&[found.row], columns).expect("readable")
    };
    let filtered = flag("--filter");
    let peer_row = |key: &Key| {
        let row = if filtered {
            peer.fetch_filtered(key_column, key, columns)
        } else {
            peer.fetch(key_column, key, columns)
        };
        row.expect("readable").expect("a key of the file")
    };
    for (key, scalar) in keys.iter().zip(&scalars) {
        compare::assert_same("a row by its key", &our_row(scalar), peer_row(key).columns());
    }
    on_threads(number("--threads", 1), || {
        alternate(
            number("--repeat", 9),
            || scalars.iter().for_each(|key| drop(black_box(our_row(key)))),
            || keys.iter().for_each(|key| drop(black_box(peer_row(key)))),
        );
    });
    Ok(())
}

/// Random rows, different ones each time.
fn take(stem: &str) -> Outcome {
    let file = tercet::open(&our_path(stem));
    let columns = wanted(&file);
    let peer = peer::Peer::open(&peer_path(stem), None, false)?;
    let threads = number("--threads", 1);
    let (count, rows) = (number("--count", 100) as usize, file.rows());
    on_threads(threads, || {
        let mut random = Random(31);
        for _ in 0..3 {
            let rows = random.rows(count, rows);
            let ours = file.take(&rows, &columns).expect("readable");
            compare::assert_same(
                "rows",
                &ours,
                &peer.take(&rows, &columns, threads as usize).expect("readable"),
            );
        }
        let (mut left, mut right) = (Random(41), Random(41));
        alternate(
            number("--repeat", 15),
            || drop(black_box(file.take(&left.rows(count, rows), &columns).expect("readable"))),
            || {
                let rows = right.rows(count, rows);
                drop(black_box(peer.take(&rows, &columns, threads as usize).expect("readable")));
            },
        );
    });
    Ok(())
}

/// Nothing is cached: both sides read the metadata each time.
fn open(stem: &str) -> Outcome {
    let column = wanted(&tercet::open(&our_path(stem)))[0];
    let our_column = || tercet::open(&our_path(stem)).read_column(column).expect("readable");
    let path = peer_path(stem);
    let peer_column = || peer::read_column(&path, column).expect("readable");
    compare::assert_same("a column", &[our_column()], peer_column().columns());
    on_threads(number("--threads", 1), || {
        alternate(
            number("--repeat", 15),
            || drop(black_box(our_column())),
            || drop(black_box(peer_column())),
        );
    });
    Ok(())
}

/// Rows that are generated while they are written; those of the first and the last batch are read back.
fn bounded(path: &Path, bytes: u64, limit: u64) -> Outcome {
    limit_data(limit);
    let schema = Schema::new(vec![
        Field::new("id", Type::Int64).with_sort_key(),
        Field::new("name", Type::String),
        Field::new("score", Type::Float64),
        Field::new("body", Type::BlobRef),
    ])?;
    let mut writer = Writer::create(path, schema, WriterOptions::new().with_overwrite(true))?;
    let (mut made, mut rows) = (0, 0u64);
    let start = std::time::Instant::now();
    on_threads(number("--threads", 2), || -> Result<(), tercet_tatami::ErrorKind> {
        while made < bytes {
            let batch = made_rows(rows, 4_096);
            made += batch.iter().map(size).sum::<u64>();
            rows += 4_096;
            writer.append(&batch)?;
        }
        Ok(())
    })?;
    let written = writer.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    let file = tercet::open(path);
    assert_eq!(file.rows(), rows, "all rows");
    for first in [0, rows - 4_096] {
        let numbers: Vec<u64> = (first..first + 4_096).step_by(97).collect();
        let places: Vec<usize> = numbers.iter().map(|row| (row - first) as usize).collect();
        let expected: Vec<Column> =
            made_rows(first, 4_096).iter().map(|column| column.take(&places)).collect();
        assert!(file.take(&numbers, &[0, 1, 2, 3])? == expected, "the rows from {first} on");
    }
    println!(
        "{}",
        json!({"rows": rows, "raw_bytes": made, "file_bytes": written.bytes, "seconds": seconds, "limit": limit})
    );
    Ok(())
}

fn made_rows(first: u64, count: u64) -> Vec<Column> {
    const WORDS: [&str; 16] = [
        "river", "stone", "light", "paper", "seven", "north", "table", "green", "house", "glass", "field",
        "bread", "train", "cloud", "metal", "voice",
    ];
    let sentence = |seed: u64, words: u64| {
        let mut random = Random(seed);
        (0..words).map(|_| WORDS[(random.draw() % 16) as usize]).collect::<Vec<_>>().join(" ")
    };
    let rows = first..first + count;
    vec![
        Column::new(Values::Int64(rows.clone().map(|row| row as i64 * 3).collect())),
        Column::new(Values::Bytes(rows.clone().map(|row| sentence(row, 4)).collect())),
        Column::new(Values::Float64(rows.clone().map(|row| Random(row).draw() as f64 / 7.0).collect())),
        Column::new(Values::Bytes(rows.map(|row| sentence(row ^ 0xabcd, 200 + row % 512)).collect())),
    ]
}

fn size(column: &Column) -> u64 {
    match &column.values {
        Values::Bytes(strings) => strings.total_bytes(),
        _ => column.len() as u64 * 8,
    }
}
