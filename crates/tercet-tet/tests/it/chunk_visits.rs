//! Every chunk is read and decoded once in each pass, for any layout and number of threads.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ElementType, Selection, Span, TensorView};
use tercet_testkit::counting::Counting;
use tercet_tet::{
    Compression, Computed, Dataset, File, Layout, Op, Query, ReadOptions, Reduce, RunOptions, Select, Syntax,
    Weights, Window, Writer, WriterOptions,
};

const SHAPE: [u64; 3] = [32, 64, 512];

/// Layouts with many bands, with few, with one, and with one chunk.
const CHUNKS: [[u64; 3]; 5] = [[1, 64, 512], [16, 16, 100], [32, 8, 512], [32, 64, 512], [3, 7, 512]];

fn write(chunks: [u64; 3], compression: Compression) -> (Vec<u8>, Vec<f32>) {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F32, SHAPE, chunks).unwrap();
    layout.compress(id, compression).unwrap();
    let values: Vec<f32> = (0..SHAPE.iter().product::<u64>()).map(|n| (n % 5000) as f32).collect();
    let options = WriterOptions::new().with_history(false);
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, options).unwrap();
    writer.array(id, TensorView::from_slice(&SHAPE, &values).unwrap()).unwrap();
    (writer.finish().unwrap().output, values)
}

/// How often the bytes of each chunk of a selection were read, and the bytes that were read outside of the chunks. Chunks
/// may be read in pieces, and several at once.
fn reads(source: &Counting<Memory>, dataset: &Dataset<'_>, selection: &Selection) -> (Vec<u64>, u64) {
    let read = source.spans();
    let touched = dataset.grid().unwrap().touched(selection);
    let spans = touched.iter().map(|coords| dataset.chunk_ref(&coords[..3]).unwrap().span);
    let mut chunks: BTreeMap<u64, (Span, u64)> = spans.map(|span| (span.end(), (span, 0))).collect();
    let mut other = 0;
    for span in read {
        other += span.len();
        for (chunk, bytes) in chunks.range_mut(span.start() + 1..).map(|(_, chunk)| chunk) {
            if chunk.start() >= span.end() {
                break;
            }
            let common = chunk.end().min(span.end()) - chunk.start().max(span.start());
            *bytes += common;
            other -= common;
        }
    }
    let times = |(chunk, bytes): (Span, u64)| {
        assert!(bytes.is_multiple_of(chunk.len()), "{bytes} bytes of {chunk:?}");
        bytes / chunk.len()
    };
    (chunks.into_values().map(times).collect(), other)
}

/// Calls `check` with every layout on one thread and on several; sources copy bytes if chunks are raw.
fn for_each_layout(check: impl Fn(&Counting<Memory>, &File, &[f32]) + Sync) {
    for chunks in CHUNKS {
        for (compression, copies) in [
            (Compression::None, true),
            (Compression::Zstd { level: 1 }, true),
            (Compression::Zstd { level: 1 }, false),
        ] {
            let (bytes, values) = write(chunks, compression);
            for threads in [1, 4] {
                let source = Counting::new(Memory::new("m", bytes.clone()));
                let source = Arc::new(if copies { source.with_copies() } else { source });
                let file =
                    File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| check(&source, &file, &values));
            }
        }
    }
}

#[test]
fn plain_reads_read_every_chunk_once() {
    for_each_layout(|source, file, values| {
        let dataset = &file.dataset("a").unwrap();
        for text in [":", "::3,5:50,::2", "7,:,:", ":,:,100:101", "31,63,511"] {
            let selection = dataset.selection(text).unwrap();
            source.reset();
            let tensor = dataset.read(&selection).unwrap();
            let (chunks, other) = reads(source, dataset, &selection);
            assert!(chunks.iter().all(|&count| count == 1), "{text} {:?}: {chunks:?}", dataset.chunk_shape());
            // Each lookup reads the rows of the index that share a checksum, at most.
            let index = (chunks.len() as u64 + 1) * (dataset.grid().unwrap().chunk_count() * 104 + 64);
            assert!(other <= index, "{text}: {other} bytes besides {} chunks", chunks.len());
            if text == ":" {
                assert_eq!(tensor.as_slice::<f32>(), Some(values));
            }
        }
    });
}

#[test]
fn transforms_read_every_chunk_once_in_each_pass() {
    for_each_layout(|source, file, values| {
        let dataset = &file.dataset("a").unwrap();
        let document = r#"{"dataset": "a", "transform": {"method": "minmax"}, "write": "ram"}"#;
        let query = Query::parse(document, Syntax::Json).unwrap();
        let options = RunOptions::new().with_statistics(false).with_preview(0);
        source.reset();
        let outcome = query.run(file, &options, &NoProgress).unwrap().outcome.unwrap();
        let selection = dataset.selection(":").unwrap();
        let (chunks, _) = reads(source, dataset, &selection);
        assert!(chunks.iter().all(|&count| count == 2), "{:?}: {chunks:?}", dataset.chunk_shape());
        let touched = dataset.grid().unwrap().touched(&selection);
        let stored: u64 =
            touched.iter().map(|coords| dataset.chunk_ref(&coords[..3]).unwrap().span.len()).sum();
        assert_eq!(outcome.execution.bytes_read, 2 * stored);
        let expected: Vec<f32> = values.iter().map(|&x| (f64::from(x) / 4999.0) as f32).collect();
        let Computed::Transformed(made) = outcome.computed else { panic!("{document}") };
        assert_eq!(made.tensor.unwrap().as_slice::<f32>(), Some(&expected[..]));
    });
}

/// Bytes of chunks that a source was asked for.
fn payload_bytes(source: &Counting<Memory>, payloads: &[Span]) -> u64 {
    let overlap = |span: &Span, payload: &Span| {
        span.end().min(payload.end()).saturating_sub(span.start().max(payload.start()))
    };
    source.spans().iter().flat_map(|span| payloads.iter().map(move |payload| overlap(span, payload))).sum()
}

/// Small budgets cut windows and strips into many tasks; the chunks are read once all the same, or twice where two
/// tasks share one.
#[test]
fn no_budget_makes_computations_read_more_than_twice() {
    let mut queries: Vec<String> = Vec::new();
    for axis in 0..3 {
        for op in ["mean", "std", "arg_max"] {
            queries.push(format!(r#""{op}": [{axis}]"#));
            for (size, step) in [(24, 1), (7, 5), (3, 9)] {
                let window =
                    format!(r#"{{"axis": {axis}, "size": {size}, "step": {step}, "mode": "rolling"}}"#);
                queries.push(format!(r#""{op}": [], "window": {window}"#));
            }
        }
        let window = format!(r#"{{"axis": {axis}, "size": 5, "mode": "rolling"}}"#);
        queries.push(format!(r#""median": [], "window": {window}"#));
    }
    let queries = &queries;
    let check = |chunks| {
        for (compression, remote) in
            [(Compression::None, false), (Compression::None, true), (Compression::Zstd { level: 1 }, false)]
        {
            let (bytes, _) = write(chunks, compression);
            let source = Counting::new(Memory::new("m", bytes)).with_copies();
            let source = Arc::new(if remote { source.with_remote() } else { source });
            let file =
                File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
            let dataset = &file.dataset("a").unwrap();
            let touched = dataset.grid().unwrap().touched(&dataset.selection(":").unwrap());
            let payloads: Vec<Span> =
                touched.iter().map(|coords| dataset.chunk_ref(&coords[..3]).unwrap().span).collect();
            let stored: u64 = payloads.iter().map(|span| span.len()).sum();
            for query in queries {
                let mut answers = Vec::new();
                // Chunks that are read whole are held whole: a window of their states must fit.
                let reads_parts = compression == Compression::None && !remote;
                let small = if reads_parts { 9 << 20 } else { 64 << 20 };
                for (budget, threads) in [(64 << 20, 2), (64 << 20, 1), (small, 2), (small, 5)] {
                    let text = format!(
                        r#"{{"dataset": "a", "execution": {{"memory_budget_bytes": {budget}}}, {query}}}"#
                    );
                    let parsed = Query::parse(&text, Syntax::Json).unwrap();
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    source.reset();
                    let options = RunOptions::new().with_statistics(false).with_preview(0);
                    let answer = pool.install(|| parsed.run(&file, &options, &NoProgress)).unwrap();
                    let read = payload_bytes(&source, &payloads);
                    assert!(
                        read <= 2 * stored,
                        "{text}, chunks {chunks:?}, {compression:?}: {read} bytes of {stored}"
                    );
                    let Some(Computed::Reduced(reduced)) = answer.outcome.map(|outcome| outcome.computed)
                    else {
                        panic!("{text}");
                    };
                    answers.push((budget, reduced[0].elements, reduced[0].tensor.bytes().to_vec()));
                }
                for pair in answers.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                    assert!(pair[0] == pair[1], "{query}: results depend on the number of threads");
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for chunks in CHUNKS {
            scope.spawn(move || check(chunks));
        }
    });
}

/// Every kind of operation, on all axes, each axis and each pair; and selections with steps.
fn operations() -> Vec<String> {
    let mut queries = vec![
        r#""histogram": {"bins": 16}"#.to_owned(),
        r#""median": []"#.to_owned(),
        r#""transform": {"method": "zscore"}, "write": "ram""#.to_owned(),
    ];
    for axes in ["[]", "[0]", "[1]", "[2]", "[0, 1]", "[0, 2]", "[1, 2]"] {
        for op in ["var", "any_nan", "arg_max"] {
            queries.push(format!(r#""{op}": {axes}"#));
        }
    }
    for axis in 0..3 {
        queries.push(format!(r#""median": [{axis}]"#));
        queries.push(format!(r#""quantile": {{"q": 0.9, "axis": {axis}}}"#));
        queries.push(format!(r#""mean": [], "window": {{"axis": {axis}, "size": 24, "mode": "rolling"}}"#));
        for method in ["zscore", "softmax"] {
            queries.push(format!(r#""transform": {{"method": "{method}", "axis": {axis}}}, "write": "ram""#));
        }
    }
    for selection in [r#""::3", "5:50", "::2""#, r#""7", "...""#, r#""...", "100:101""#, r#""...", "3::128""#]
    {
        for op in ["mean", "median"] {
            queries.push(format!(r#""{op}": [0], "selection": [{selection}]"#));
        }
    }
    queries
}

#[test]
fn no_operation_reads_or_decodes_a_chunk_more_than_twice() {
    let queries = &operations();
    let check = |chunks| {
        for (compression, remote) in
            [(Compression::None, false), (Compression::None, true), (Compression::Zstd { level: 1 }, false)]
        {
            let (bytes, _) = write(chunks, compression);
            let source = Counting::new(Memory::new("m", bytes)).with_copies();
            let source = Arc::new(if remote { source.with_remote() } else { source });
            let file =
                File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            for query in queries {
                let text = format!(
                    r#"{{"dataset": "a", "execution": {{"memory_budget_bytes": {}}}, {query}}}"#,
                    64 << 20
                );
                let parsed = Query::parse(&text, Syntax::Json).unwrap();
                let options = RunOptions::new().with_statistics(false).with_preview(0).with_reference(false);
                source.reset();
                let result = pool.install(|| parsed.run(&file, &options, &NoProgress)).unwrap();
                let planned = result.plan.as_ref().unwrap().chunks();
                let payloads: Vec<Span> = planned.iter().map(|chunk| chunk.stored.span).collect();
                let stored: u64 = payloads.iter().map(|span| span.len()).sum();
                let decoded: u64 = planned.iter().map(|chunk| chunk.stored.raw_len).sum();
                let read = payload_bytes(&source, &payloads);
                let how = &result.outcome.as_ref().unwrap().execution;
                let place = format!("{text}, chunks {chunks:?}, {compression:?}, remote {remote}");
                assert!(read <= 2 * stored, "{place}: {read} bytes read of {stored}");
                assert!(
                    how.bytes_read <= 2 * stored,
                    "{place}: {} bytes reported of {stored}",
                    how.bytes_read
                );
                if compression == Compression::None {
                    assert_eq!((how.chunks_decoded, how.bytes_decoded), (0, 0), "{place}");
                } else {
                    let most = 2 * planned.len() as u64;
                    assert!(
                        (1..=most).contains(&how.chunks_decoded),
                        "{place}: {} decoded",
                        how.chunks_decoded
                    );
                    assert!(how.bytes_decoded <= 2 * decoded, "{place}: {} of {decoded}", how.bytes_decoded);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for chunks in [CHUNKS[0], CHUNKS[1], CHUNKS[3]] {
            scope.spawn(move || check(chunks));
        }
    });
}

/// A matrix is computed from bands of observations; a chunk of several bands is decoded once.
#[test]
fn matrices_decode_every_chunk_once() {
    let (shape, chunks) = ([40_000, 64], [40_000, 64]);
    let values: Vec<f32> = (0..40_000u64 * 64).map(|n| (n * 31 % 1009) as f32).collect();
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F32, shape, chunks).unwrap();
    layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
    let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
    for axis in 0..2 {
        // The observations of the other axis are few: only one band.
        let selection = if axis == 0 { "" } else { r#", "selection": ["0:64", "..."]"# };
        let text = format!(r#"{{"dataset": "a", "covariance": [{axis}]{selection}}}"#);
        let query = Query::parse(&text, Syntax::Json).unwrap();
        let options = RunOptions::new().with_preview(0).with_reference(false);
        let how = query.run(&file, &options, &NoProgress).unwrap().outcome.unwrap().execution;
        assert_eq!((how.chunks_decoded, how.bytes_decoded), (1, 40_000 * 64 * 4), "{text}");
    }
}

/// A file with one dataset `a` in compressed chunks of 64 rows, with a fill value.
fn series(values: &[f64]) -> File {
    let shape = [values.len() as u64 / 16, 16];
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F64, shape, [64, 16]).unwrap();
    layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
    layout.attr(id, "_FillValue", "-999").unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(&shape, values).unwrap()).unwrap();
    File::from_bytes("m", writer.finish().unwrap().output).unwrap()
}

/// How often a reduction reads and decodes its chunks.
fn passes(reduce: Reduce<'_>) -> (u64, u64) {
    let request = reduce.request().unwrap();
    let plan = request.plan().unwrap();
    let chunks = plan.reads().chunks();
    let stored: u64 = chunks.iter().map(|chunk| chunk.stored.span.len()).sum();
    let how = request.run(&NoProgress).unwrap().execution;
    (how.bytes_read.div_ceil(stored), how.chunks_decoded.div_ceil(chunks.len() as u64))
}

/// Infinite values make sums infinite, as overflow does, and have no place in a histogram.
#[test]
fn infinite_and_missing_values_need_no_third_pass() {
    let value = |n: u32| match n % 500 {
        7 => f64::INFINITY,
        8 | 9 => -999.0,
        _ => f64::from(n % 1000),
    };
    let values: Vec<f64> = (0..16 * 640).map(value).collect();
    let file = series(&values);
    let all = file.dataset("a").unwrap().select().statistics(false);
    let window = || Window::rolling(0usize, 4);
    let check = |name: &str, most: u64, reduce: Reduce<'_>| {
        let (read, decoded) = passes(reduce);
        assert!(read <= most && decoded <= most, "{name}: read {read} times, decoded {decoded} times");
    };
    check("histogram", 2, all.reduce([Op::Histogram { bins: 8, range: None }]));
    check("sum", 2, all.reduce([Op::Sum]));
    check("sum and mean", 2, all.reduce([Op::Sum, Op::Mean, Op::Max]));
    for op in [Op::Sum, Op::Mean] {
        check("windows", 2, all.reduce([op]).over([0usize]).window(window()));
        check("windows with steps", 2, all.reduce([op]).over([0usize]).window(window().step(3)));
    }
    check("windows of maxima", 1, all.reduce([Op::Max]).over([0usize]).window(window()));
    let elements = |select: &Select<'_>| {
        let windows = select.reduce([Op::Max]).over([0usize]).window(window()).run().unwrap();
        (windows.elements, windows.skipped)
    };
    let missing = values.iter().filter(|value| **value == -999.0).count() as u64;
    assert_eq!(elements(&all), (values.len() as u64 - missing, missing));
    let raw = all.raw();
    check("minimum of present values", 1, raw.reduce([Op::Min]));
    check("index", 1, raw.reduce([Op::ArgMax, Op::Max]));
}

/// Temperatures share their leading bits, which a larger budget counts more of.
#[test]
fn medians_of_similar_values_need_two_passes() {
    let values: Vec<f64> = (0..1u64 << 20).map(|n| 280.0 + (n * 7919 % 30_011) as f64 / 1000.0).collect();
    let file = series(&values);
    let all = file.dataset("a").unwrap().select().statistics(false);
    assert_eq!(passes(all.clone().memory_budget(16 << 20).reduce([Op::Median])), (2, 2));
    let median = |budget: u64| {
        let found = all.clone().memory_budget(budget).reduce([Op::Median]).run().unwrap();
        found.tensor.to_vec::<f64>().unwrap()
    };
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let expected = f64::midpoint(sorted[(1 << 19) - 1], sorted[1 << 19]);
    for budget in [1, 16 << 20, 1 << 30] {
        assert_eq!(median(budget), [expected], "{budget}");
    }
}

/// Weighted results are computed in parts of complete chunks.
#[test]
fn weights_read_every_chunk_once() {
    for chunks in [CHUNKS[0], CHUNKS[1], CHUNKS[4]] {
        let (bytes, _) = write(chunks, Compression::Zstd { level: 1 });
        let file = File::from_bytes("m", bytes).unwrap();
        let all = file.dataset("a").unwrap().select().statistics(false).memory_budget(48 << 20);
        let weights = Weights::values(1usize, vec![0.5; 64]);
        assert_eq!(passes(all.reduce([Op::Mean]).over([1usize]).weights(weights)), (1, 1), "{chunks:?}");
    }
}
