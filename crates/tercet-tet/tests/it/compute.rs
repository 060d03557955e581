//! Typed computations: they equal the results of queries, have names and labels, and read chunks a bounded number of
//! times.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _, ElementType, Tensor, TensorView};
use tercet_testkit::counting::Counting;
use tercet_tet::compat::{Answer, Value};
use tercet_tet::{
    Comparison, Compression, Computed, File, Group, Layout, Method, Op, Query, ReadOptions, RunOptions,
    Scalar, Syntax, Window, Writer, WriterOptions,
};

const SHAPE: [u64; 3] = [12, 6, 10];

fn value(position: u64) -> f32 {
    (position * 7919 % 251) as f32 * 0.5 - 30.0
}

fn write(chunks: &[u64; 3], compression: Compression) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("t", ElementType::F32, SHAPE, chunks).unwrap();
    layout.compress(id, compression).unwrap();
    layout.dims(id, ["time", "lat", "lon"]).unwrap();
    let months = (0..12).map(|n| format!("2020-{:02}", n / 3 + 1)).collect();
    layout.labels(id, "time", months).unwrap();
    layout.labels(id, "lat", (0..6).map(|n| format!("{}", 60 - 10 * n)).collect()).unwrap();
    let values: Vec<f32> = (0..SHAPE.iter().product()).map(value).collect();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&SHAPE, &values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn file() -> File {
    File::from_bytes("m", write(&[5, 4, 3], Compression::Zstd { level: 1 })).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.as_slice().unwrap().to_vec()
}

/// Numbers in the result of a query.
fn answer(file: &File, query: &str, name: &str) -> Vec<f64> {
    let query = Query::parse(query, Syntax::Json).unwrap();
    let result = query.run(file, &RunOptions::new(), &NoProgress).unwrap();
    match Answer::new(&result).execution.unwrap().get(name) {
        Some(Value::Numbers(numbers)) => numbers.to_vec(),
        Some(Value::Number(number)) => vec![*number],
        other => panic!("{other:?}"),
    }
}

fn at(time: u64, lat: u64, lon: u64) -> f64 {
    f64::from(value((time * 6 + lat) * 10 + lon))
}

#[test]
fn parts_are_selected_by_position_and_label() {
    let file = file();
    let all = file.dataset("t").unwrap().select();
    let part =
        all.clone().sel("lat", 50.0..=20.0).unwrap().isel("time", 3..9).unwrap().isel(2usize, 4).unwrap();
    assert_eq!(part.selection().unwrap().shape()[..], [6, 4, 1]);
    let map = part.mean(["time"]).run().unwrap();
    let wanted: Vec<f64> = (1..5).map(|lat| (3..9).map(|time| at(time, lat, 4)).sum::<f64>() / 6.0).collect();
    assert!(numbers(&map.tensor).iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12));
    assert_eq!(map.tensor.shape()[..], [4]);
    let labels = ["50", "40", "30", "20"].map(str::to_owned);
    assert_eq!(
        (map.dims[0].name.as_deref(), map.dims[0].labels.as_deref()),
        (Some("lat"), Some(&labels[..]))
    );
    assert_eq!(map.elements, 24);
    // Adjacent positions with the same label are selected together.
    assert_eq!(all.clone().sel("time", "2020-03").unwrap().selection().unwrap().shape()[0], 3);
    assert_eq!(all.clone().step("lon", 3).unwrap().read().unwrap().shape()[..], [12, 6, 4]);
    for error in [
        all.clone().sel("lat", 55).unwrap_err(),
        all.clone().sel("lon", 5).unwrap_err(),
        all.clone().isel("time", 5..14).unwrap_err(),
        all.reduce([Op::Quantile { q: 1.5 }]).run().unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.contains("cannot compute") || error.contains("has no axis `"), "{error}");
    }
    for error in [all.clone().isel("level", 0).unwrap_err(), all.mean(["lot"]).run().unwrap_err()] {
        assert!(error.to_string().contains("has no axis `l"), "{error}");
        assert!(error.kind().hint().is_some(), "{error}");
    }
}

#[test]
fn several_operations_share_a_visit() {
    let bytes = write(&[5, 4, 3], Compression::None);
    let source = Counting::new(Memory::new("m", bytes)).with_copies().shared();
    let file = File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
    let part = file.dataset("t").unwrap().select().statistics(false);
    let ops = [Op::Mean, Op::Max, Op::Std, Op::ArgMin, Op::Median];
    let all = part.reduce(ops).over(["lat", "lon"]).run_all().unwrap();
    for (result, name) in
        all.iter().zip(["mean", "max", "std", "", "median"]).filter(|(_, name)| !name.is_empty())
    {
        let query = format!(r#"{{"dataset": "t", "{name}": ["lat", "lon"]}}"#);
        // An indexed reduction changes the order of additions.
        let wanted = answer(&file, &query, &format!("operation_reduced_{name}"));
        let found = numbers(&result.tensor);
        assert!(
            found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12),
            "{name}: {found:?}, not {wanted:?}"
        );
    }
    let single = part.arg_min(["lat", "lon"]).run().unwrap();
    assert_eq!(all[3].tensor.as_slice::<i64>(), single.tensor.as_slice::<i64>());
    source.reset();
    part.reduce([Op::Mean, Op::Max, Op::Std]).over(["lat", "lon"]).run_all().unwrap();
    let payload = SHAPE.iter().product::<u64>() * 4;
    let read: u64 = source.spans().iter().map(|span| span.len()).filter(|len| *len >= 48).sum();
    assert!(read <= payload * 3 / 2, "{read} of {payload} bytes");
}

#[test]
fn groups_windows_and_filters_match_queries() {
    let file = file();
    let part = file.dataset("t").unwrap().select();
    let season = part.mean(["lat", "lon"]).group_by(Group::labels("time", str::to_owned)).run().unwrap();
    let names = (1..5).map(|month| format!("2020-0{month}")).collect::<Vec<_>>();
    assert_eq!(season.dims[0].labels, Some(names));
    let query = r#"{"dataset": "t", "mean": [], "group_by": {"axes": ["time"], "by": "labels"}}"#;
    assert_eq!(numbers(&season.tensor), answer(&file, query, "operation_reduced_mean"));

    let rolling = part.mean(["time"]).window(Window::rolling("time", 4)).run().unwrap();
    let query =
        r#"{"dataset": "t", "mean": ["time"], "window": {"axis": "time", "size": 4, "mode": "rolling"}}"#;
    assert_eq!(numbers(&rolling.tensor), answer(&file, query, "operation_reduced_mean"));
    assert_eq!(rolling.tensor.shape()[..], [9, 6, 10]);
    let bins = part.max(["time"]).window(Window::bins("time", 5)).run().unwrap();
    let query = r#"{"dataset": "t", "max": ["time"], "window": {"axis": "time", "size": 5, "mode": "bins"}}"#;
    assert_eq!(numbers(&bins.tensor), answer(&file, query, "operation_reduced_max"));

    let above = part.clone().filter(Comparison::Gt(Scalar::Whole(10)));
    let query = r#"{"dataset": "t", "sum": ["lat"], "filter": {"gt": 10}}"#;
    assert_eq!(
        numbers(&above.sum(["lat"]).run().unwrap().tensor),
        answer(&file, query, "operation_reduced_sum")
    );
    let spring = part.clone().with_labels("time", |label| label == "2020-02").unwrap();
    assert_eq!(spring.count(["time"]).run().unwrap().elements, 3 * 60);
    let read = above.read().unwrap();
    let values: Vec<f32> = read.as_slice().unwrap().to_vec();
    assert!(values.iter().all(|value| value.is_nan() || *value > 10.0));
    let histogram = part.reduce([Op::Histogram { bins: 5, range: None }]).run().unwrap();
    let query = r#"{"dataset": "t", "histogram": {"bins": 5}}"#;
    assert_eq!(numbers(&histogram.tensor), answer(&file, query, "operation_histogram_counts"));
    assert_eq!(histogram.edges.map(|edges| edges.len()), Some(6));
}

/// Only indices are relative to their window, and only they are −1 without a value.
#[test]
fn windows_share_a_visit() {
    let file = file();
    let part = file.dataset("t").unwrap().select().filter(Comparison::Gt(Scalar::Whole(40)));
    for window in [Window::rolling("time", 3).step(2), Window::bins("time", 5)] {
        let window = window.min_count(2);
        let reduce = |ops: &[Op]| part.reduce(ops.to_vec()).over(["time"]).window(window.clone());
        let ops = [Op::Max, Op::ArgMax, Op::Std, Op::Count, Op::ArgMin];
        let all = reduce(&ops).run_all().unwrap();
        for (together, op) in all.iter().zip(ops) {
            let alone = reduce(&[op]).run().unwrap();
            assert_eq!(together.tensor.bytes(), alone.tensor.bytes(), "{op:?}");
        }
        assert!(numbers(&all[0].tensor).iter().any(|value| value.is_nan()));
        assert!(all[1].tensor.as_slice::<i64>().unwrap().contains(&-1));
    }
}

/// Counts and flags of no values are those of an empty array: 0, and true for `all_finite`.
#[test]
fn windows_without_values_have_counts_and_flags() {
    let values = [1.0, f64::NAN, f64::INFINITY, 2.0, -1.0, -2.0];
    let file = table(&values, 1);
    let part = file.dataset("t").unwrap().select().filter(Comparison::Gt(Scalar::Whole(0)));
    let ops = [Op::AllFinite, Op::AnyNan, Op::AnyInf, Op::NanCount, Op::InfCount, Op::Count, Op::Sum];
    for window in [Window::rolling(0, 2).step(2), Window::bins(0, 2)] {
        let found = part.reduce(ops).over([0]).window(window).run_all().unwrap();
        let expected = [
            // The values are 1, then inf and 2, then none.
            [1.0, 0.0, 1.0],
            [0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [1.0, 2.0, 0.0],
        ];
        for ((found, expected), op) in found.iter().zip(expected).zip(ops) {
            assert_eq!(numbers(&found.tensor), expected, "{op:?}");
        }
        assert!(numbers(&found[6].tensor)[2].is_nan());
    }
}

fn table(values: &[f64], columns: u64) -> File {
    let shape = [values.len() as u64 / columns, columns];
    let mut layout = Layout::new();
    let id = layout.dataset("t", ElementType::F64, shape, [2, columns]).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&shape, values).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

/// A small budget merges the moments of few observations at a time.
#[test]
fn covariances_far_from_zero_keep_their_digits() {
    let noise: Vec<f64> = (0..60u64).map(|n| f64::from(value(n * 17))).collect();
    let far: Vec<f64> = noise.iter().map(|value| 4e9 + value).collect();
    let query = |budget: u64| {
        let execution = format!(r#""execution": {{"memory_budget_bytes": {budget}}}"#);
        format!(r#"{{"dataset": "t", "covariance": [0], {execution}}}"#)
    };
    let wanted = answer(&table(&noise, 3), &query(1 << 20), "operation_covariance");
    for budget in [1, 100, 1 << 20] {
        let found = answer(&table(&far, 3), &query(budget), "operation_covariance");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 * wanted[0];
        assert!(found.iter().zip(&wanted).all(near), "{budget}: {found:?}, not {wanted:?}");
    }
    let one = answer(
        &table(&[f64::MAX; 2], 2),
        &query(1).replace("covariance", "correlation"),
        "operation_correlation",
    );
    assert_eq!(one, [1.0, 0.0, 0.0, 1.0]);
}

/// No computation reads or decodes a chunk more than twice.
#[test]
fn no_chunk_is_read_more_than_twice() {
    for (chunks, compression) in [
        ([1, 6, 10], Compression::None),
        ([12, 1, 10], Compression::Zstd { level: 1 }),
        ([5, 4, 3], Compression::None),
        ([12, 6, 10], Compression::Zstd { level: 1 }),
    ] {
        let source = Counting::new(Memory::new("m", write(&chunks, compression))).with_copies().shared();
        let file = File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
        let payloads: Vec<tercet_core::Span> = (0..file.chunk_count())
            .map(|row| {
                let row = file.row(row).unwrap();
                tercet_core::Span::at(row.payload_offset, row.stored_byte_len).unwrap()
            })
            .collect();
        let mut queries = vec![r#""histogram": {"bins": 7}"#.to_owned(), r#""median": []"#.to_owned()];
        for axis in ["time", "lat", "lon"] {
            for op in ["mean", "max", "std", "arg_max", "product", "median"] {
                queries.push(format!(r#""{op}": ["{axis}"]"#));
                let window = format!(r#"{{"axis": "{axis}", "size": 3, "mode": "rolling"}}"#);
                queries.push(format!(r#""{op}": ["{axis}"], "window": {window}"#));
            }
            queries.push(format!(r#""transform": {{"method": "zscore", "axis": ["{axis}"]}}"#));
        }
        for query in queries {
            let text = format!(r#"{{"dataset": "t", {query}}}"#);
            let query = Query::parse(&text, Syntax::Json).unwrap();
            source.reset();
            query.run(&file, &RunOptions::new().with_preview(0), &NoProgress).unwrap();
            let spans = source.spans();
            for payload in &payloads {
                let reads = spans.iter().filter(|span| span.start() == payload.start()).count();
                assert!(reads <= 2, "{text}, chunks of {chunks:?}: {reads} reads of the chunk at {payload}");
            }
        }
    }
}

/// Rows longer than the buffer of filtered values.
#[test]
fn filters_apply_to_long_rows() {
    const WIDTH: u64 = 10_007;
    let shape = [3, WIDTH];
    let values: Vec<f32> = (0..3 * WIDTH).map(value).collect();
    for chunks in [[1, WIDTH], [2, 5000], [3, WIDTH]] {
        let mut layout = Layout::new();
        let id = layout.dataset("t", ElementType::F32, shape, chunks).unwrap();
        layout.dims(id, ["row", "column"]).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
        let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
        let part = file.dataset("t").unwrap().select().filter(Comparison::Gt(Scalar::Float(10.0)));
        let passes = |value: &&f32| **value > 10.0;
        let rows: Vec<f64> = values
            .chunks(WIDTH as usize)
            .map(|row| row.iter().filter(passes).map(|value| f64::from(*value)).sum())
            .collect();
        assert_eq!(
            numbers(&part.reduce([Op::Sum]).over(["column"]).run().unwrap().tensor),
            rows,
            "{chunks:?}"
        );
        let columns: Vec<f64> = (0..WIDTH as usize)
            .map(|column| {
                let column = values.iter().skip(column).step_by(WIDTH as usize);
                column.filter(passes).map(|value| f64::from(*value)).sum()
            })
            .collect();
        assert_eq!(
            numbers(&part.reduce([Op::Sum]).over(["row"]).run().unwrap().tensor),
            columns,
            "{chunks:?}"
        );
    }
}

#[test]
fn transforms_match_queries_and_name_their_statistics() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.tet");
    std::fs::write(&path, write(&[5, 4, 3], Compression::Zstd { level: 1 })).unwrap();
    let file = File::open(&path).unwrap();
    let select = file.dataset("t").unwrap().select().isel("time", 2..8).unwrap();
    let made = select.transform(Method::Zscore).over(["time"]).in_memory().run().unwrap();
    let query = r#"{"dataset": "t", "selection": [{"start": 2, "stop": 8}, {}, {}],
        "transform": {"method": "zscore", "axes": ["time"]}, "write": {"target": "ram"}}"#;
    let query = Query::parse(query, Syntax::Json).unwrap();
    let result = query.run(&file, &RunOptions::new(), &NoProgress).unwrap();
    let Some(Computed::Transformed(same)) = result.outcome.as_ref().map(|outcome| &outcome.computed) else {
        panic!("{result:?}");
    };
    assert_eq!(made.tensor.as_ref().unwrap().bytes(), same.tensor.as_ref().unwrap().bytes());
    let answer = Answer::new(&result).execution.unwrap();
    assert_eq!(made.dims.iter().map(|dim| dim.len).collect::<Vec<_>>(), [6, 6, 10]);
    assert_eq!(
        made.statistics.iter().map(|(op, of)| (*op, of.len())).collect::<Vec<_>>(),
        [(Op::Mean, 60), (Op::Std, 60)]
    );
    assert_eq!(
        Some(&Value::Numbers(made.statistics[1].1.as_slice().into())),
        answer.get("operation_reduced_std")
    );
    // The answer has all six, empty if they were not needed.
    assert_eq!(answer.get("operation_reduced_min"), Some(&Value::Numbers(Vec::new().into())));
    assert!(made.execution.to_string().contains("stored bytes read"), "{}", made.execution);

    let raw = directory.path().join("out/z.bin");
    let written =
        select.transform(Method::Zscore).over(["time"]).raw_output(&raw).run().unwrap().file.unwrap();
    assert_eq!(std::fs::read(written.path.unwrap()).unwrap(), made.tensor.as_ref().unwrap().bytes());
    let tet = directory.path().join("z.tet");
    select.transform(Method::Zscore).over(["time"]).tet_output(&tet).run().unwrap();
    let result = File::open(&tet).unwrap();
    let result = result.dataset("t-zscore").unwrap();
    assert_eq!(result.read_all().unwrap().bytes(), made.tensor.unwrap().bytes());
    assert_eq!(result.labels(0).unwrap().len(), 6);
    // Less than a chunk, which must be held anyway, but more than the budget.
    let step = select.isel("time", 0).unwrap().memory_budget(8);
    let error = step.transform(Method::L2).in_memory().run().unwrap_err();
    assert!(error.to_string().contains("memory budget"), "{error}");
}

#[test]
fn selections_are_written_and_planned() {
    let directory = tempfile::tempdir().unwrap();
    let file = file();
    let select = file.dataset("t").unwrap().select().slices("2:8:2,1").unwrap();
    let raw = directory.path().join("part.bin");
    let written = select.write_raw(&raw).unwrap();
    assert_eq!((written.bytes, std::fs::read(&raw).unwrap()), (120, select.read().unwrap().bytes().to_vec()));
    assert!(select.clone().slices("0").is_err());
    let plan = select.mean(["time"]).plan().unwrap();
    assert_eq!(plan.reads().chunks().len(), 8);
    assert_eq!(
        plan.to_string().lines().next(),
        Some("the selection is 30 elements (120 bytes) in 8 of 24 chunks")
    );
    assert_eq!(plan.to_string().lines().count(), plan.steps().len());
}

#[test]
fn results_have_counts_and_filters_combine() {
    let file = file();
    let whole = |number| Scalar::Whole(number);
    let select = file.dataset("t").unwrap().select();
    let between = select
        .clone()
        .filter(Comparison::Gt(whole(-10)))
        .filter(Comparison::Gt(whole(10)))
        .filter(Comparison::Gt(whole(0)))
        .filter(Comparison::Le(Scalar::Float(40.5)));
    for op in [Op::Mean, Op::Median, Op::ArgMax] {
        let result = between.reduce([op]).over(["time", "lon"]).with_counts().run().unwrap();
        let counts = result.counts.unwrap();
        let counts = counts.as_slice::<u64>().unwrap();
        let expected = |lat: u64| {
            let values = (0..12).flat_map(|time| (0..10).map(move |lon| at(time, lat, lon)));
            values.filter(|value| *value > 10.0 && *value <= 40.5).count() as u64
        };
        assert_eq!(counts, (0..6).map(expected).collect::<Vec<_>>());
        assert_eq!(counts.iter().sum::<u64>(), result.elements);
    }
    let conflict = select.clone().filter(Comparison::Ne(whole(1))).filter(Comparison::Ne(whole(2)));
    for error in [conflict.read().unwrap_err(), conflict.mean(["time"]).run().unwrap_err()] {
        assert!(error.to_string().contains("not equal to 1 and not equal to 2"), "{error}");
    }
    assert!(
        select
            .clone()
            .filter(Comparison::Eq(whole(1)))
            .filter(Comparison::Eq(Scalar::Float(1.0)))
            .read()
            .is_ok()
    );
    let both = select.clone().with_labels("lat", |label| label > "20").unwrap();
    let both = both.with_labels("lat", |label| label < "60").unwrap();
    assert_eq!(both.count(["time", "lat", "lon"]).run().unwrap().elements, 3 * 120);
    assert!(both.with_labels("time", |_| true).is_err());
}

#[test]
fn windows_are_padded_as_in_queries() {
    let file = file();
    let select = file.dataset("t").unwrap().select();
    for (window, written) in [
        (Window::rolling("time", 4).pad_start(Scalar::Whole(0)), r#""mode": "rolling", "pad": "0""#),
        (
            Window::rolling("time", 4).pad_end(Scalar::Float(f64::NAN)).min_count(3),
            r#""mode": "rolling", "pad": "nan", "align": "end", "min_count": 3"#,
        ),
        (Window::bins("time", 5), r#""mode": "bins""#),
        (Window::bins("time", 5).align_end(), r#""mode": "bins", "align": "end""#),
        (Window::bins("time", 5).pad_end(Scalar::Whole(0)), r#""mode": "bins", "pad": "0""#),
    ] {
        let size = if written.contains("bins") { 5 } else { 4 };
        let query = format!(
            r#"{{"dataset": "t", "mean": [], "window": {{"axis": "time", "size": {size}, {written}}}}}"#
        );
        let found = numbers(&select.mean(["time"]).window(window).run().unwrap().tensor);
        let wanted = answer(&file, &query, "operation_reduced_mean");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&wanted), "{query}");
    }
}

#[test]
fn documents_are_lowered_to_requests() {
    let file = file();
    let query = r#"{"dataset": "t", "max": [], "group_by": {"axes": ["time"], "by": "labels"}}"#;
    let request = Query::parse(query, Syntax::Json).unwrap().request(&file).unwrap();
    assert_eq!(request.dims()[0].labels.as_ref().unwrap().len(), 4);
    let Computed::Reduced(results) = request.run(&NoProgress).unwrap().computed else {
        panic!("no reduction")
    };
    let select = file.dataset("t").unwrap().select();
    let typed = select.max(["lat", "lon"]).group_by(Group::labels("time", str::to_owned)).run().unwrap();
    assert_eq!((results[0].tensor.bytes(), &results[0].dims), (typed.tensor.bytes(), &typed.dims));
    let error = Query::parse(r#"{"dataset": "u"}"#, Syntax::Json).unwrap().request(&file).unwrap_err();
    assert_eq!(error.class(), Class::Request, "{error}");
}

/// A step beyond the array selects its first position.
#[test]
fn steps_beyond_the_array_are_read() {
    let file = file();
    let select = file.dataset("t").unwrap().select().step("time", u64::MAX / 4).unwrap();
    let select = select.step("lon", u64::MAX / 3).unwrap();
    let wanted: Vec<f32> = (0..6).map(|lat| value(lat * 10)).collect();
    assert_eq!(select.read().unwrap().as_slice::<f32>(), Some(&wanted[..]));
    let zscore = select.transform(Method::Center).in_memory().run().unwrap();
    assert_eq!(zscore.tensor.unwrap().shape()[..], [1, 6, 1]);
}

/// A path is not changed to one that can be written as text.
#[cfg(unix)]
#[test]
fn paths_that_are_not_text_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(std::ffi::OsStr::from_bytes(b"\xff.bin"));
    let file = file();
    let select = file.dataset("t").unwrap().select();
    let errors = [
        select.write_raw(&path).unwrap_err(),
        select.transform(Method::Center).raw_output(&path).run().unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Rows narrower than the lanes: several are folded side by side, the rest is transposed.
#[test]
fn many_narrow_rows_are_reduced() {
    type Naive = fn(&[f64]) -> f64;
    const ROWS: u64 = 700;
    let number = |position: u64| (position * 7919 % 199) as f64;
    let ops: [(Op, Naive); 8] = [
        (Op::Sum, |column| column.iter().sum()),
        (Op::Mean, |column| column.iter().sum::<f64>() / ROWS as f64),
        (Op::Min, |column| column.iter().copied().fold(f64::INFINITY, f64::min)),
        (Op::Max, |column| column.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        (Op::Std, |column| {
            let mean = column.iter().sum::<f64>() / column.len() as f64;
            (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / column.len() as f64).sqrt()
        }),
        (Op::NormL1, |column| column.iter().sum()),
        (Op::NormL2, |column| column.iter().map(|x| x * x).sum::<f64>().sqrt()),
        (Op::NanCount, |_| 0.0),
    ];
    for dtype in [ElementType::U8, ElementType::I16, ElementType::I64, ElementType::F32, ElementType::F64] {
        let encode = |x: f64| match dtype {
            ElementType::U8 => vec![x as u8],
            ElementType::I16 => (x as i16).to_le_bytes().to_vec(),
            ElementType::I64 => (x as i64).to_le_bytes().to_vec(),
            ElementType::F32 => (x as f32).to_le_bytes().to_vec(),
            _ => x.to_le_bytes().to_vec(),
        };
        for width in 1..20u64 {
            let shape = [ROWS, width];
            let bytes: Vec<u8> = (0..ROWS * width).flat_map(|position| encode(number(position))).collect();
            let columns: Vec<Vec<f64>> = (0..width)
                .map(|column| (0..ROWS).map(|row| number(row * width + column)).collect())
                .collect();
            // One chunk, and chunks whose rows do not divide evenly.
            for chunks in [shape, [333, width]] {
                let mut layout = Layout::new();
                let id = layout.dataset("t", dtype, shape, chunks).unwrap();
                let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
                writer.array(id, TensorView::new(dtype, &shape, &bytes).unwrap()).unwrap();
                let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
                let select = file.dataset("t").unwrap().select();
                for (op, of) in ops {
                    let found = numbers(&select.reduce([op]).over([0usize]).run().unwrap().tensor);
                    let wanted: Vec<f64> = columns.iter().map(|column| of(column)).collect();
                    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs();
                    assert!(
                        found.len() == wanted.len() && found.iter().zip(&wanted).all(is_close),
                        "{op:?} of {dtype}, {width} columns, chunks of {chunks:?}: {found:?}, not {wanted:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn read_plans_are_printed() {
    let file = File::from_bytes("m", write(&[6, 6, 10], Compression::None)).unwrap();
    let select = file.dataset("t").unwrap().select().step("time", 5).unwrap();
    let plan = select.plan().unwrap();
    let first = plan.reads().chunks()[0].stored.span;
    let text = plan.reads().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..2],
        ["selection 0:12:5,0:6,0:10: 180 elements, 720 bytes", "2 chunks, 2880 stored bytes"]
    );
    assert_eq!(lines[2], format!("  chunk [0, 0, 0]: row 0, bytes {first}, raw"));
    assert_eq!(lines.len(), 4, "{text}");
    let pruned =
        file.dataset("t").unwrap().select().filter(Comparison::Gt(Scalar::Whole(1000))).plan().unwrap();
    assert!(pruned.reads().to_string().ends_with("\n2 chunks pruned by statistics"), "{}", pruned.reads());
    let many = File::from_bytes("m", write(&[1, 1, 10], Compression::None)).unwrap();
    let text = many.dataset("t").unwrap().select().plan().unwrap().reads().to_string();
    assert!(text.ends_with("\n  … and 40 more"), "{text}");
}

/// A square array whose first axis has a coordinate dataset and whose second axis has labels.
fn square() -> File {
    let mut layout = Layout::new();
    let v = layout.dataset("v", ElementType::F64, [3, 3], [3, 3]).unwrap();
    layout.dims(v, ["lat", "station"]).unwrap();
    layout.labels(v, "station", ["a", "b", "c"].map(str::to_owned).to_vec()).unwrap();
    let lat = layout.dataset("lat", ElementType::F64, [3], [3]).unwrap();
    layout.dims(lat, ["lat"]).unwrap();
    let bare = layout.dataset("bare", ElementType::F64, [3, 3], [3, 3]).unwrap();
    layout.dims(bare, ["row", "station"]).unwrap();
    layout.labels(bare, "station", ["a", "b", "c"].map(str::to_owned).to_vec()).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values: Vec<f64> = (0..9).map(f64::from).collect();
    for id in [v, bare] {
        writer.array(id, TensorView::from_slice(&[3, 3], &values).unwrap()).unwrap();
    }
    writer.array(lat, TensorView::from_slice(&[3], &[60.0, 50.0, 40.0]).unwrap()).unwrap();
    File::from_bytes("square", writer.finish().unwrap().output).unwrap()
}

#[test]
fn labels_of_one_axis_are_not_those_of_another() {
    let file = square();
    let v = file.dataset("v").unwrap();
    assert_eq!(v.labels(0), None);
    assert_eq!(v.labels(1).unwrap(), ["a", "b", "c"]);
    let part = v.select().sel("lat", 50.0).unwrap().sel("station", "b").unwrap();
    assert_eq!(numbers(&part.read().unwrap()), [4.0]);
    let means = v.select().mean(["station"]).run().unwrap();
    assert_eq!(means.dims[0].coordinates.as_ref().unwrap().text(1), "50");
    assert!(v.select().sel("lat", "b").is_err());
    // An axis without coordinates has positions only.
    let bare = file.dataset("bare").unwrap();
    assert!(bare.coordinates(0).unwrap().is_none());
    assert!(bare.select().sel("row", "b").is_err());
    // Queries keep the rule of the format: the only labels of this length.
    let query = r#"{"dataset": "v", "selection": [{"start_label": "b", "stop_label": "c"}, {}], "sum": []}"#;
    assert_eq!(answer(&file, query, "operation_sum"), [12.0]);
}

#[test]
fn a_part_of_a_time_keeps_its_axis() {
    let mut layout = Layout::new();
    let id = layout.dataset("m", ElementType::F64, [3, 2], [3, 2]).unwrap();
    layout.dims(id, ["time", "x"]).unwrap();
    let months = ["2024-01-01", "2024-02-01", "2024-03-01"].map(str::to_owned);
    layout.labels(id, "time", months.to_vec()).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    let values: Vec<f64> = (0..6).map(f64::from).collect();
    writer.array(id, TensorView::from_slice(&[3, 2], &values).unwrap()).unwrap();
    let file = File::from_bytes("months", writer.finish().unwrap().output).unwrap();
    let shape = |label: &str| file.dataset("m").unwrap().select().sel("time", label).unwrap().shape();
    assert_eq!(shape("2024-02"), [1, 2]);
    assert_eq!(shape("2024-02-01"), [2]);
    assert_eq!(shape("2024"), [3, 2]);
}
