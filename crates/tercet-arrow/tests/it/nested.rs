//! Structs, maps and nested lists of files: as columns and as JSON text.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BinaryArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    LargeListArray, ListArray, MapArray, NullArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use tercet_arrow::{ErrorKind, Format, Nested, Options, TableReader};
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _};
use tercet_tatami::{Column, LogicalType, Type};

fn field(name: &str, array: &ArrayRef) -> Field {
    Field::new(name, array.data_type().clone(), true)
}

fn structs(members: Vec<(&str, ArrayRef)>, valid: &[bool]) -> ArrayRef {
    let fields: Fields = members.iter().map(|(name, array)| field(name, array)).collect();
    let arrays = members.into_iter().map(|(_, array)| array).collect();
    Arc::new(StructArray::new(fields, arrays, Some(NullBuffer::from(valid.to_vec()))))
}

fn lists(elements: ArrayRef, lengths: &[usize], valid: &[bool]) -> ArrayRef {
    let element = Arc::new(field("element", &elements));
    let nulls = Some(NullBuffer::from(valid.to_vec()));
    Arc::new(ListArray::new(element, OffsetBuffer::from_lengths(lengths.iter().copied()), elements, nulls))
}

/// Three rows: with values, null, and empty.
fn rows() -> RecordBatch {
    let ints = |values: Vec<Option<i32>>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let strings = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    // The members of a null struct have values.
    let inner = structs(vec![("c", strings(vec![Some("x\"y"), Some("hidden"), None]))], &[true, true, false]);
    let outer =
        structs(vec![("a", ints(vec![Some(1), Some(2), Some(3)])), ("b", inner)], &[true, false, true]);
    let entries = StructArray::new(
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int32, true)].into(),
        vec![strings(vec![Some("k"), Some("l")]), ints(vec![Some(1), None])],
        None,
    );
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let nulls = Some(NullBuffer::from(vec![true, false, true]));
    let map = MapArray::new(entry, OffsetBuffer::from_lengths([2, 0, 0]), entries, nulls, false);
    let inner = lists(ints(vec![Some(1), None, Some(3)]), &[2, 0, 0, 1], &[true, false, true, true]);
    let nested = lists(inner, &[4, 0, 0], &[true, false, true]);
    let decimals = Decimal128Array::from(vec![1250, -1]).with_precision_and_scale(30, 2).unwrap();
    let members = structs(
        vec![
            ("day", Arc::new(Date32Array::from(vec![19_723, 0])) as ArrayRef),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![1, 0]).with_timezone("UTC")) as ArrayRef),
            ("float", Arc::new(Float64Array::from(vec![0.5, f64::NAN])) as ArrayRef),
            ("bytes", Arc::new(BinaryArray::from(vec![&b"\0\x01"[..], b""])) as ArrayRef),
            ("price", Arc::new(decimals) as ArrayRef),
        ],
        &[true, true],
    );
    let members = lists(members, &[2, 0, 0], &[true, false, true]);
    let plain: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
    RecordBatch::try_from_iter_with_nullable([
        ("s", outer, true),
        ("m", Arc::new(map) as ArrayRef, true),
        ("ll", nested, true),
        ("ls", members, true),
        ("n", plain, false),
    ])
    .unwrap()
}

fn files(batch: &RecordBatch) -> Vec<(Format, Vec<u8>)> {
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(batch).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    file.write(batch).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(batch).unwrap();
    vec![
        (Format::Parquet, parquet.into_inner().unwrap()),
        (Format::ArrowFile, file.into_inner().unwrap()),
        (Format::ArrowStream, stream.into_inner().unwrap()),
    ]
}

fn open(format: Format, bytes: &[u8], options: &Options, rows: Option<usize>) -> TableReader {
    TableReader::open(Arc::new(Memory::new("nested", bytes.to_vec())), format, options, rows).unwrap()
}

/// The names of the columns and the values of each row.
fn read(reader: TableReader) -> (Vec<String>, Vec<Vec<String>>) {
    let fields = reader.table().schema().fields().to_vec();
    let value = |column: &Column, row: usize, kind: Type| match column.scalar(row) {
        Some(value) => match value.to_json(kind == Type::String) {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        },
        None => "null".to_owned(),
    };
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        for row in 0..batch[0].len() {
            rows.push(
                batch.iter().zip(&fields).map(|(column, field)| value(column, row, field.kind)).collect(),
            );
        }
    }
    (fields.iter().map(|field| field.name.to_string()).collect(), rows)
}

const MAP: &str = r#"{"k":1,"l":null}"#;
const LISTS: &str = "[[1,null],null,[],[3]]";
const STRUCTS: &str = concat!(
    r#"[{"day":"2024-01-01","at":"1970-01-01T00:00:00.000001Z","float":0.5,"bytes":"AAE=","price":12.50},"#,
    r#"{"day":"1970-01-01","at":"1970-01-01T00:00:00Z","float":"NaN","bytes":"","price":-0.01}]"#
);

#[test]
fn members_become_columns_and_the_rest_json() {
    let batch = rows();
    let flat = Options::new().with_nested(Some(Nested::Flatten));
    let json = Options::new().with_nested(Some(Nested::Json));
    for (format, bytes) in files(&batch) {
        for per_batch in [None, Some(1), Some(2)] {
            let (names, found) = read(open(format, &bytes, &flat, per_batch));
            assert_eq!(names, ["s.a", "s.b.c", "m", "ll", "ls", "n"], "{format:?}");
            assert_eq!(found[0], ["1", "x\"y", MAP, LISTS, STRUCTS, "7"], "{format:?}");
            assert_eq!(found[1], ["null", "null", "null", "null", "null", "8"], "{format:?}");
            assert_eq!(found[2], ["3", "null", "{}", "[]", "[]", "9"], "{format:?}");
            let (names, found) = read(open(format, &bytes, &json, per_batch));
            assert_eq!(names, ["s", "m", "ll", "ls", "n"], "{format:?}");
            let objects: Vec<&str> = found.iter().map(|row| row[0].as_str()).collect();
            assert_eq!(objects, [r#"{"a":1,"b":{"c":"x\"y"}}"#, "null", r#"{"a":3,"b":null}"#], "{format:?}");
        }
        let reader = open(format, &bytes, &flat, None);
        let fields = reader.table().schema().fields();
        assert!(fields[..5].iter().all(|field| field.nullable) && !fields[5].nullable);
        let types = LogicalType::for_fields(fields, &reader.table().annotations());
        assert_eq!(types[1..4], [None, Some(LogicalType::Json), Some(LogicalType::Json)]);
        assert_eq!(reader.names(), ["s.a", "s.b.c", "m", "ll", "ls", "n"]);
    }
}

#[test]
fn members_are_selected_by_their_path() {
    for (format, bytes) in files(&rows()) {
        for (wanted, names) in [
            (vec!["s.a"], vec!["s.a"]),
            (vec!["n", "s.b"], vec!["s.b.c", "n"]),
            (vec!["s"], vec!["s.a", "s.b.c"]),
            (vec!["m"], vec!["m"]),
        ] {
            let wanted = wanted.into_iter().map(str::to_owned).collect();
            let options = Options::new().with_nested(Some(Nested::Flatten)).with_columns(Some(wanted));
            assert_eq!(read(open(format, &bytes, &options, None)).0, names, "{format:?}");
        }
        let options =
            Options::new().with_nested(Some(Nested::Flatten)).with_columns(Some(vec!["s.none".to_owned()]));
        let source = Arc::new(Memory::new("nested", bytes.clone()));
        let error = TableReader::open(source, format, &options, None).unwrap_err();
        let ErrorKind::NoSuchColumns { columns } = error.kind() else { panic!("{error}") };
        assert_eq!(columns, &["s.a", "s.b.c", "m", "ll", "ls", "n"]);
        let source = Arc::new(Memory::new("nested", bytes));
        let error = TableReader::open(source, format, &Options::new(), None).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::UnsupportedTypes { columns } if columns.len() == 4),
            "{error}"
        );
    }
}

/// Nulls take no bytes in a file.
#[test]
fn elements_without_bytes_are_limited() {
    let count = 1 << 26;
    let inner = LargeListArray::new(
        Arc::new(Field::new("element", DataType::Null, true)),
        OffsetBuffer::from_lengths([count]),
        Arc::new(NullArray::new(count)),
        None,
    );
    let outer = lists(Arc::new(inner), &[1], &[true]);
    let batch = RecordBatch::try_from_iter_with_nullable([("ll", outer, true)]).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let bytes = stream.into_inner().unwrap();
    let options = Options::new().with_nested(Some(Nested::Flatten));
    let source = Arc::new(Memory::new("nested", bytes));
    // The reader may refuse the array itself.
    let error = match TableReader::open(source, Format::ArrowStream, &options, None) {
        Ok(mut reader) => reader.next().unwrap().unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error.class(), Class::Limit | Class::Malformed), "{error}");
}
