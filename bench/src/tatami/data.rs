//! The measured rows as Arrow batches: one batch per row group.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt16Array,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sha2::{Digest as _, Sha256};

use super::{GROUP_ROWS, Random};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A case: rows, and the roles of columns.
#[derive(Clone, Debug)]
pub struct Case {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    /// The sort key.
    pub key: Option<usize>,
    /// The blob column.
    pub blob: Option<usize>,
    /// Columns with bloom filters.
    pub bloom: Vec<usize>,
}

/// Creates the rows of `documents`, `lineitem`, `strings` or `wide`.
pub fn load(name: &str, input: &Path) -> Outcome<Case> {
    match name {
        "documents" => documents(input, 32_000),
        "lineitem" => lineitem(input),
        "strings" => strings(input),
        "wide" => wide(10_000, 1_000),
        _ => Err(format!("unknown case {name}").into()),
    }
}

/// Pages of a documentation, in the order of their URLs.
fn documents(root: &Path, most: usize) -> Outcome<Case> {
    let mut paths = Vec::new();
    pages_below(root, &mut paths)?;
    let url = |path: &Path| -> Outcome<String> {
        let below = path.strip_prefix(root)?.to_str().ok_or("a name that is no text")?;
        Ok(format!("https://doc.rust-lang.org/{below}"))
    };
    let mut pages: Vec<(String, PathBuf)> =
        paths.into_iter().map(|path| Ok((url(&path)?, path))).collect::<Outcome<_>>()?;
    pages.sort();
    pages.truncate(most);
    let bodies: Vec<Vec<u8>> = pages.iter().map(|(_, path)| std::fs::read(path)).collect::<Result<_, _>>()?;
    let mut random = Random(7);
    let times = pages.iter().map(|_| 1_700_000_000_000_000 + (random.draw() % 86_400_000_000) as i64);
    let digest = |body: &Vec<u8>| {
        Sha256::digest(body).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let columns: Vec<(Field, ArrayRef)> = vec![
        column("url", pages.iter().map(|(url, _)| Some(url)).collect::<StringArray>()),
        column("title", bodies.iter().map(|body| Some(title(body))).collect::<StringArray>()),
        column("body", bodies.iter().map(Some).collect::<BinaryArray>()),
        column("status", UInt16Array::from(vec![200; pages.len()])),
        column(
            "timestamp",
            times.collect::<Vec<i64>>().into_iter().map(Some).collect::<TimestampMicrosecondArray>(),
        ),
        column("digest", bodies.iter().map(|body| Some(digest(body))).collect::<StringArray>()),
    ];
    Ok(Case { key: Some(0), blob: Some(2), bloom: vec![5], ..case(columns)? })
}

fn pages_below(dir: &Path, out: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            pages_below(&path, out)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "html") {
            out.push(path);
        }
    }
    Ok(())
}

/// The text between the first `<title>` and its end.
fn title(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let start = text.find("<title>").map_or(0, |at| at + 7);
    let end = text[start..].find("</title>").map_or(start, |len| start + len);
    text[start..end].to_owned()
}

/// TPC-H: amounts become whole cents and dates whole days, which both formats store as integers.
fn lineitem(path: &Path) -> Outcome<Case> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path)?)?;
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.with_batch_size(1 << 16).build()?.collect::<Result<_, _>>()?;
    let whole = concat_batches(&schema, &batches)?;
    drop(batches);
    let columns = schema.fields().iter().zip(whole.columns()).map(|(field, array)| {
        let array: ArrayRef = match field.data_type() {
            DataType::Decimal128(15, 2) => {
                let cents = array.as_primitive::<Decimal128Type>().values().iter().map(|cents| *cents as i64);
                Arc::new(Int64Array::from_iter_values(cents))
            }
            DataType::Date32 => {
                Arc::new(Int32Array::from(array.as_primitive::<Date32Type>().values().to_vec()))
            }
            DataType::Utf8View => cast(array, &DataType::Utf8)?,
            _ => Arc::clone(array),
        };
        Ok(column_of(field.name(), array))
    });
    Ok(Case { key: Some(0), ..case(columns.collect::<Outcome<_>>()?)? })
}

/// One column: the lines of a file.
fn strings(path: &Path) -> Outcome<Case> {
    let text = std::fs::read_to_string(path)?;
    case(vec![column("text", text.lines().map(Some).collect::<StringArray>())])
}

/// Many columns of few rows.
fn wide(columns: usize, rows: usize) -> Outcome<Case> {
    let mut random = Random(11);
    case(
        (0..columns)
            .map(|index| {
                let values = (0..rows).map(|_| (random.draw() % 1_000_000) as i64);
                column(&format!("column_{index:05}"), Int64Array::from_iter_values(values))
            })
            .collect(),
    )
}

fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    column_of(name, Arc::new(array))
}

fn column_of(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    let kind = match array.data_type() {
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, None),
        kind => kind.clone(),
    };
    (Field::new(name, kind, false), array)
}

fn case(columns: Vec<(Field, ArrayRef)>) -> Outcome<Case> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let whole = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    let rows = whole.num_rows();
    let starts = (0..rows).step_by(GROUP_ROWS);
    let batches = starts.map(|start| whole.slice(start, GROUP_ROWS.min(rows - start))).collect();
    Ok(Case { schema, batches, key: None, blob: None, bloom: Vec::new() })
}
