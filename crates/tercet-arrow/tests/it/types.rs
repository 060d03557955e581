//! Types that one of the formats does not have, converted through all of them.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Date64Type, Int8Type, Time32SecondType, TimestampMillisecondType};
use arrow_array::{
    Array as _, ArrayRef, BinaryArray, DictionaryArray, Int8Array, PrimitiveArray, RecordBatch, StringArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::basic::LogicalType;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use tercet_arrow::{Error, ErrorKind, Format, Options, Table, TableReader, TableWriter, ValueError};
use tercet_core::Diagnostic as _;
use tercet_core::source::Memory;
use tercet_tatami::{File, ReadOptions, Writer, WriterOptions};

fn tatami(bytes: Vec<u8>, format: Format) -> File {
    let source = Arc::new(Memory::new("table", bytes));
    let rows = TableReader::open(source, format, &Options::new(), None).unwrap();
    let annotations = rows.table().annotations().into_iter();
    let options =
        annotations.fold(WriterOptions::new(), |options, (key, text)| options.with_metadata(key, text));
    let schema = rows.table().schema().clone();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    rows.for_each(|columns| writer.append(&columns.unwrap()).unwrap());
    let bytes = writer.finish().unwrap().output;
    File::from_source(Arc::new(Memory::new("table.tatami", bytes)), ReadOptions::new()).unwrap()
}

fn written(file: &File, format: Format) -> Result<Vec<u8>, Error> {
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let mut writer = TableWriter::new(format, &"out".into(), &Table::from_file(file, &all)?, Vec::new())?;
    for batch in file.scan().batches() {
        writer.append(batch.unwrap().columns)?;
    }
    Ok(writer.finish()?.output)
}

fn stream(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(bytes: &[u8]) -> ParquetRecordBatchReaderBuilder<bytes::Bytes> {
    ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::copy_from_slice(bytes)).unwrap()
}

fn annotation(file: &File, key: &str) -> Option<String> {
    file.footer().pairs.iter().find(|(known, _)| known == key).map(|(_, text)| text.clone())
}

#[test]
fn parquet_logical_types_are_restored() {
    use tercet_tatami::{Expr, LogicalType as Logical};

    let message = "message schema {
        OPTIONAL FIXED_LEN_BYTE_ARRAY(16) id (UUID);
        OPTIONAL BYTE_ARRAY doc (JSON);
        OPTIONAL BYTE_ARRAY color (ENUM);
        OPTIONAL BYTE_ARRAY blob (BSON);
    }";
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
    let mut ids = FixedSizeBinaryBuilder::new(16);
    ids.append_value([7; 16]).unwrap();
    ids.append_null();
    let bytes = || -> ArrayRef { Arc::new(BinaryArray::from(vec![Some(&b"red"[..]), None])) };
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(ids.finish())),
        ("doc", Arc::new(StringArray::from(vec![Some("{}"), None]))),
        ("color", bytes()),
        ("blob", bytes()),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let options = ArrowWriterOptions::new().with_parquet_schema(schema).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let file = tatami(writer.into_inner().unwrap(), Format::Parquet);
    let uuid = r#"{"ARROW:extension:metadata":"","ARROW:extension:name":"arrow.uuid"}"#;
    assert_eq!(annotation(&file, "arrow.metadata:id").as_deref(), Some(uuid));
    let types: Vec<_> = ["id", "doc", "color", "blob"]
        .map(|name| annotation(&file, &format!("arrow.type:{name}")))
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(types, ["uuid", "json", "enum"]);
    let expected = [Some(Logical::Uuid), Some(Logical::Json), Some(Logical::Enum), None];
    assert_eq!(file.logical_types(), expected);
    let red = file.scan().filter(&Expr::parse("color = \"red\"").unwrap()).unwrap();
    assert_eq!(red.count().unwrap(), 1);
    let id = Expr::parse("id = \"07070707-0707-0707-0707-070707070707\"").unwrap();
    assert_eq!(file.scan().filter(&id).unwrap().count().unwrap(), 1);
    let back = written(&file, Format::Parquet).unwrap();
    let builder = parquet(&back);
    let kinds: Vec<_> =
        builder.parquet_schema().columns().iter().map(|column| column.logical_type_ref().cloned()).collect();
    let expected = [LogicalType::Uuid, LogicalType::Json, LogicalType::Enum, LogicalType::Bson].map(Some);
    assert_eq!(kinds, expected);
    let found = builder.build().unwrap().next().unwrap().unwrap();
    assert_eq!(found.column(0).as_fixed_size_binary().value(0), [7; 16]);
    assert!(found.columns().iter().all(|column| column.is_null(1)));
    // Once more, from the file just written.
    let again = written(&tatami(back.clone(), Format::Parquet), Format::Parquet).unwrap();
    assert_eq!(parquet(&again).parquet_schema(), parquet(&back).parquet_schema());
}

/// Columns that were declared, and have no Arrow metadata, get that of their type.
#[test]
fn declared_types_become_extension_types() {
    use tercet_tatami::{Column, Field, Schema, Strings, Values, Writer, WriterOptions};

    let schema = Schema::new(vec![
        Field::new("id", tercet_tatami::Type::Bytes),
        Field::new("doc", tercet_tatami::Type::String),
        Field::list("ids", tercet_tatami::Type::Bytes),
    ])
    .unwrap();
    let options = WriterOptions::new()
        .with_metadata("arrow.type:id", "uuid")
        .with_metadata("arrow.type:doc", "json")
        .with_metadata("arrow.type:ids", "fixed_list[1, uuid]");
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), schema, options).unwrap();
    let ids = || Column::new(Values::Bytes([[7_u8; 16]].iter().collect::<Strings>()));
    let lists = |ends| {
        let lists = tercet_tatami::Lists { ends, elements: ids() };
        Column::new(Values::List(Box::new(lists)))
    };
    let doc = || Column::new(Values::Bytes(["{}"].iter().collect::<Strings>()));
    let two = Column::new(Values::Bytes([[7_u8; 16]; 2].iter().collect::<Strings>()));
    let docs = Column::new(Values::Bytes(["{}"; 2].iter().collect::<Strings>()));
    let error = writer.append(&[two, docs, lists(vec![0, 1])]).unwrap_err();
    assert!(error.to_string().contains("0 elements in a column of lists of 1"), "{error}");
    writer.append(&[ids(), doc(), lists(vec![1])]).unwrap();
    let bytes = writer.finish().unwrap().output;
    let file = File::from_bytes("declared", bytes).unwrap();
    assert_eq!(file.annotations()[2].as_ref().and_then(|found| found.fixed_len), Some(1));
    let kinds = |bytes: &Vec<u8>| -> Vec<_> {
        let builder = parquet(bytes);
        let columns = builder.parquet_schema().columns().iter();
        columns.map(|column| column.logical_type_ref().cloned()).collect()
    };
    let back = written(&file, Format::Parquet).unwrap();
    assert_eq!(kinds(&back), [LogicalType::Uuid, LogicalType::Json, LogicalType::Uuid].map(Some));
    assert_eq!(tatami(back, Format::Parquet).logical_types(), file.logical_types());
}

#[test]
fn second_timestamps_keep_their_time_zone_in_parquet() {
    let times = PrimitiveArray::<TimestampMillisecondType>::from(vec![1000, -2000]).with_timezone("UTC");
    let batch = RecordBatch::try_from_iter([("at", Arc::new(times) as ArrayRef)]).unwrap();
    // As other writers do: milliseconds in Parquet, seconds in the Arrow schema.
    let kind = DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into()));
    let encoded = encode_arrow_schema(&Schema::new(vec![Field::new("at", kind, false)]));
    let pairs = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encoded)];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs)).build();
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true).with_properties(properties);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let file = tatami(writer.into_inner().unwrap(), Format::Parquet);
    assert_eq!(annotation(&file, "arrow.type:at").as_deref(), Some("timestamp[ms, Europe/Berlin]"));
    let found = parquet(&written(&file, Format::Parquet).unwrap()).build().unwrap().next().unwrap().unwrap();
    let berlin = DataType::Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into()));
    assert_eq!(found.column(0).data_type(), &berlin);
    assert_eq!(found.column(0).as_primitive::<TimestampMillisecondType>().values().to_vec(), [1000, -2000]);
}

#[test]
fn dates_and_times_have_parquet_logical_types() {
    const DAY: i64 = 86_400_000;
    let days: ArrayRef = Arc::new(PrimitiveArray::<Date64Type>::from(vec![0, -3 * DAY]));
    let clock: ArrayRef = Arc::new(PrimitiveArray::<Time32SecondType>::from(vec![0, 86_399]));
    let file = tatami(stream(vec![("day", days), ("clock", clock)]), Format::ArrowStream);
    let bytes = written(&file, Format::Parquet).unwrap();
    let builder = parquet(&bytes);
    let kinds: Vec<_> =
        builder.parquet_schema().columns().iter().map(|column| column.logical_type_ref().cloned()).collect();
    assert_eq!(kinds[0], Some(LogicalType::Date));
    assert!(matches!(kinds[1], Some(LogicalType::Time { .. })), "{kinds:?}");
    assert_eq!(builder.schema().field(0).data_type(), &DataType::Date64);
    let found = builder.build().unwrap().next().unwrap().unwrap();
    assert_eq!(found.column(0).as_primitive::<Date64Type>().values().to_vec(), [0, -3 * DAY]);

    let odd: ArrayRef = Arc::new(PrimitiveArray::<Date64Type>::from(vec![0, DAY + 1]));
    let file = tatami(stream(vec![("day", odd)]), Format::ArrowStream);
    assert!(written(&file, Format::ArrowFile).is_ok());
    let error = written(&file, Format::Parquet).unwrap_err();
    let message = "table.tatami: column `day`, row 1: 86400001 ms since 1970-01-01 is not a Parquet date";
    assert_eq!(error.to_string(), message);
}

#[test]
fn dictionaries_grow_and_are_replaced() {
    // Batches of 100 values each, together more than 8-bit keys can number.
    let batch = |from: usize| {
        let values: StringArray = (from..from + 100).map(|value| Some(format!("value {value}"))).collect();
        let keys = (0..100).chain(0..100).map(|key| (key % 7 != 3).then_some(key)).collect::<Int8Array>();
        let coded = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap();
        RecordBatch::try_from_iter_with_nullable([("coded", Arc::new(coded) as ArrayRef, true)]).unwrap()
    };
    let mut writer = StreamWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
    (0..3).for_each(|part| writer.write(&batch(part * 50)).unwrap());
    let file = tatami(writer.into_inner().unwrap(), Format::ArrowStream);
    assert_eq!(annotation(&file, "arrow.type:coded").as_deref(), Some("dictionary[int8]"));
    let strings = |batches: Vec<RecordBatch>| -> Vec<Option<String>> {
        let of = |batch: &RecordBatch| {
            let coded = batch.column(0).as_dictionary::<Int8Type>().clone();
            let values = coded.values().as_string::<i64>().clone();
            let key = |key: Option<usize>| key.map(|key| values.value(key).to_owned());
            coded.keys_iter().map(key).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of).collect()
    };
    let expected: Vec<Option<String>> = (0..3)
        .flat_map(|part| (0..100).chain(0..100).map(move |key| (part, key)))
        .map(|(part, key)| (key % 7 != 3).then(|| format!("value {}", part * 50 + key)))
        .collect();
    let back = written(&file, Format::ArrowStream).unwrap();
    let found = StreamReader::try_new(Cursor::new(back), None).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(strings(found), expected);
    let back = parquet(&written(&file, Format::Parquet).unwrap());
    assert_eq!(back.schema().field(0).data_type().to_string(), "Dictionary(Int8, LargeUtf8)");
    // The parquet crate decodes a dictionary page at once; our values stay strings until they are written.
    let bytes = written(&file, Format::Parquet).unwrap();
    let again = tatami(bytes, Format::Parquet);
    assert_eq!(again.rows(), 600);
    let error = written(&file, Format::ArrowFile).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Value { reason: ValueError::DictionaryKeyOverflow { max: 128, .. }, .. }
        ),
        "{error}"
    );
    assert!(error.hint().is_some());
}
