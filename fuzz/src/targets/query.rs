//! Query documents.

use std::io::Cursor;
use std::sync::LazyLock;

use tercet_core::progress::NoProgress;
use tercet_core::{Diagnostic as _, ElementType, TensorView};
use tercet_tet::compat::Answer;
use tercet_tet::{Error, File, Layout, Query, RunOptions, Syntax, Writer, WriterOptions};

/// Elements of a preview.
const PREVIEW: u64 = 3;

/// One dataset of each element type, all with names, labels and a fill value, in chunks that do not divide the shape.
static FILE: LazyLock<File> = LazyLock::new(|| file().expect("a file can be made"));

fn file() -> Result<File, Box<dyn std::error::Error>> {
    const SHAPE: &[u64] = &[4, 3, 5];
    let mut layout = Layout::new();
    let mut arrays = Vec::new();
    for dtype in ElementType::ALL {
        let id = layout.dataset(&dtype.to_string(), dtype, SHAPE, [3, 1, 2])?;
        layout.dims(id, ["t", "y", "x"])?;
        layout.attr(id, "_FillValue", "2")?;
        layout.labels(id, "t", ["a", "b", "a", "c"].map(String::from).to_vec())?;
        arrays.push((id, dtype, SHAPE));
    }
    let table: &[u64] = &[6, 3];
    arrays.push((layout.dataset("table", ElementType::F64, table, [4, 2])?, ElementType::F64, table));
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new())?;
    for (id, dtype, shape) in arrays {
        let bytes = values(dtype, shape.iter().product());
        writer.array(id, TensorView::new(dtype, shape, &bytes)?)?;
    }
    Ok(File::from_bytes("memory", writer.finish()?.output)?)
}

/// Elements with one non-zero byte: numbers with few digits, so that every order of summation is exact.
fn values(dtype: ElementType, count: u64) -> Vec<u8> {
    const WHOLE: [u8; 5] = [2, 0, 7, 200, 1];
    // The sign and most of the exponent: 2 and −2 for every type, and others.
    const FLOAT: [u8; 5] = [0x40, 0, 0xc0, 0x41, 0x3e];
    let (numbers, at) = if dtype.is_float() { (FLOAT, dtype.size() - 1) } else { (WHOLE, 0) };
    let mut bytes = Vec::new();
    for (_, number) in (0..count).zip(numbers.into_iter().cycle()) {
        let start = bytes.len();
        bytes.resize(start + dtype.size(), 0);
        bytes[start + at] = number;
    }
    bytes
}

/// Parses a document, and runs its query in several ways: all must give the same result.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for syntax in [Syntax::Json, Syntax::Toml] {
        match Query::parse(text, syntax) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(query) => execute(&query),
        }
    }
}

fn execute(query: &Query) {
    let written = query.to_json().to_string();
    let again = Query::parse(&written, Syntax::Json).expect("the JSON of a query is a query");
    assert!(again == *query, "the JSON of a query is the same query");
    let options = RunOptions::new().with_preview(PREVIEW);
    if let Err(error) = query.plan(&FILE, &options) {
        return explain(&error);
    }
    // Result files are not written by this target; the keys that request them are parsed.
    if query.spill().is_some() || written.contains("\"write\"") {
        return;
    }
    let answers = [(true, false), (false, false), (true, true)].map(|(statistics, parallel)| {
        let options = options.clone().with_statistics(statistics).with_parallel(Some(parallel));
        match query.run(&FILE, &options, &NoProgress) {
            Ok(result) => Answer::new(&result).execution.map(|execution| format!("{:?}", execution.results)),
            Err(error) => {
                explain(&error);
                Some(error.to_string())
            }
        }
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "one query, several results: {answers:?}");
}

/// Formats an error, which must not fail itself.
fn explain(error: &Error) {
    assert!(!error.to_string().is_empty());
    let _ = (error.class(), error.span(), error.hint());
}
