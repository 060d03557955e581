//! Filtered scans compared with Parquet by arrow-rs, timed in process, both sides in turn. `bench/measure_scan.py` runs this, and DuckDB.
//!
//! STEM is the argument of `tatami make lineitem`: `STEM.tatami` and `STEM.parquet` have the same rows in row groups of the same size.
//!
//! ```text
//! scan rows STEM --column C --low A --high B --columns A,B [--threads N] [--repeat N]   open, rows with A <= C <= B
//! scan count STEM --column C --low A --high B [--threads N] [--by-values]              open, how many they are
//! ```

use std::hint::black_box;
use std::path::{Path, PathBuf};

use tercet_bench::tatami::{filter, tercet};
use tercet_bench::{alternate, flag, number, on_threads, option};
use tercet_tatami::{Column, Expr, Values};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["rows", stem, ..] => rows(stem),
        ["count", stem, ..] => count(stem),
        _ => Err("see the first lines of bench/src/bin/scan.rs".into()),
    }
}

struct ScanCase {
    ours: PathBuf,
    peer: PathBuf,
    filter_expr: Expr,
    wanted: filter::Wanted,
}

fn scan_case(stem: &str) -> ScanCase {
    let ours = PathBuf::from(format!("{stem}.tatami"));
    let peer = PathBuf::from(format!("{stem}.parquet"));
    let column = option("--column").expect("--column takes a name");
    let (low, high) = (number("--low", 0) as i64, number("--high", 0) as i64);
    let filter_expr = Expr::col(&column).between(low, high);
    let column = tercet::open(&ours).column_index(&column).expect("a column of the file");
    ScanCase { ours, peer, filter_expr, wanted: filter::Wanted { column, low, high } }
}

/// The matching rows, as batches of columns.
fn our_rows(path: &Path, filter_expr: &Expr, columns: &[usize]) -> Vec<Vec<Column>> {
    let scan = tercet::open(path).scan().column_positions(columns).expect("columns of the file");
    let scan = scan.filter(filter_expr).expect("a valid filter");
    scan.batches().map(|batch| batch.expect("readable").columns).collect()
}

fn rows(stem: &str) -> Outcome {
    let ScanCase { ours: our_path, peer: peer_path, filter_expr, wanted } = scan_case(stem);
    let names = option("--columns").expect("--columns takes names");
    let file = tercet::open(&our_path);
    let columns: Vec<usize> =
        names.split(',').map(|name| file.column_index(name).expect("a column of the file")).collect();
    let mut sorted = columns.clone();
    sorted.sort_unstable();
    on_threads(number("--threads", 1), || {
        let found = our_rows(&our_path, &filter_expr, &sorted);
        let peers = filter::rows(&peer_path, wanted, &sorted).expect("readable");
        assert_eq!(sum(&found), filter::sum(&peers), "both sides give the same rows");
        let rows: usize = found.iter().map(|batch| batch[0].len()).sum();
        eprintln!("{rows} of {} rows", file.rows());
        alternate(
            number("--repeat", 21),
            || drop(black_box(our_rows(&our_path, &filter_expr, &sorted))),
            || drop(black_box(filter::rows(&peer_path, wanted, &sorted).expect("readable"))),
        );
    });
    Ok(())
}

fn count(stem: &str) -> Outcome {
    let ScanCase { ours: our_path, peer: peer_path, filter_expr, wanted } = scan_case(stem);
    let ours = || {
        tercet::open(&our_path)
            .scan()
            .filter(&filter_expr)
            .expect("a valid filter")
            .count()
            .expect("readable")
    };
    let peer = || {
        if flag("--by-values") {
            filter::count_by_values(&peer_path, wanted)
        } else {
            filter::count(&peer_path, wanted)
        }
    };
    on_threads(number("--threads", 1), || {
        assert_eq!(ours(), peer().expect("readable"), "both sides count the same");
        eprintln!("{} rows", ours());
        alternate(
            number("--repeat", 21),
            || {
                black_box(ours());
            },
            || {
                black_box(peer().expect("readable"));
            },
        );
    });
    Ok(())
}

fn sum(batches: &[Vec<Column>]) -> i128 {
    let numbers = batches.iter().flatten().map(|column| match &column.values {
        Values::Int64(values) => values.iter().map(|value| i128::from(*value)).sum(),
        Values::Int32(values) => values.iter().map(|value| i128::from(*value)).sum(),
        Values::Bytes(values) => values.iter().map(|text| text.len() as i128).sum::<i128>(),
        other => other.len() as i128,
    });
    numbers.sum()
}
