//! Tables through `.tatami` files and back: every bit, for every type, out of files that are written in many ways.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(clippy::too_many_lines, reason = "one column of every type")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "columns are cut out of the same bits"
)]

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryDictionaryBuilder, FixedSizeBinaryBuilder, FixedSizeListBuilder, Int32Builder, ListBuilder,
    StringBuilder, StringDictionaryBuilder,
};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DurationMillisecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, LargeStringArray, NullArray, PrimitiveArray, RecordBatch,
    StringArray, StringViewArray,
};
use arrow_buffer::i256;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;
use tercet_arrow::{Error, Format, Options, Rows, Sink, Table, Texts, Timestamps, detect};
use tercet_core::source::Memory;
use tercet_tatami::{Expr, File, OpenOptions, Writer, WriterOptions};

/// A value as bytes, by the slowest way there is; none for null.
fn dump(array: &ArrayRef, row: usize) -> Option<Vec<u8>> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => vec![u8::from(array.as_boolean().value(row))],
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes().to_vec(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes().to_vec(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes().to_vec(),
        DataType::Binary => array.as_binary::<i32>().value(row).to_vec(),
        DataType::LargeBinary => array.as_binary::<i64>().value(row).to_vec(),
        DataType::BinaryView => array.as_binary_view().value(row).to_vec(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row).to_vec(),
        DataType::Dictionary(..) => {
            let coded = array.as_any_dictionary();
            return dump(coded.values(), coded.normalized_keys()[row]);
        }
        DataType::List(_) => elements(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => elements(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => elements(&array.as_fixed_size_list().value(row)),
        other => {
            let width = other.primitive_width().unwrap_or_else(|| panic!("{other}"));
            let data = array.to_data();
            let start = (data.offset() + row) * width;
            data.buffers()[0][start..start + width].to_vec()
        }
    })
}

fn elements(values: &ArrayRef) -> Vec<u8> {
    let mut out = Vec::new();
    for row in 0..values.len() {
        match dump(values, row) {
            None => out.push(0),
            Some(bytes) => {
                out.push(1);
                out.extend(bytes.len().to_le_bytes());
                out.extend(bytes);
            }
        }
    }
    out
}

fn dumped(batches: &[RecordBatch], column: usize) -> Vec<Option<Vec<u8>>> {
    let rows = batches.iter().flat_map(|batch| {
        let array = batch.column(column);
        (0..array.len()).map(|row| dump(array, row))
    });
    rows.collect()
}

/// What makes a column: bits for each row, or null.
type Bits = Option<u64>;

fn primitive<T: ArrowPrimitiveType>(rows: &[Bits], make: impl Fn(u64) -> T::Native) -> PrimitiveArray<T> {
    rows.iter().map(|bits| bits.map(&make)).collect()
}

fn text(bits: u64) -> String {
    const WORDS: [&str; 6] = ["", "a", "straße", "日本", "a longer text than a view holds", "\u{1f600}\"\n,"];
    WORDS[(bits % 6) as usize].repeat((bits >> 8) as usize % 3 + 1)
}

fn bytes(bits: u64) -> Vec<u8> {
    bits.to_le_bytes()[..(bits % 9) as usize].to_vec()
}

/// A column of every type that has a place, out of the same bits.
fn table(rows: &[Bits]) -> RecordBatch {
    let whole = |bits: u64| i64::from_le_bytes(bits.to_le_bytes());
    let small = |bits: u64| whole(bits) % 1_000_000_000;
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut texts = ListBuilder::new(StringBuilder::new());
    let mut pairs = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut fixed = FixedSizeBinaryBuilder::new(3);
    let mut coded = StringDictionaryBuilder::<Int8Type>::new();
    let mut coded_bytes = BinaryDictionaryBuilder::<Int32Type>::new();
    for row in rows {
        let Some(bits) = row else {
            lists.append_null();
            texts.append_null();
            pairs.values().append_slice(&[7, 7]);
            pairs.append(false);
            fixed.append_null();
            coded.append_null();
            coded_bytes.append_null();
            continue;
        };
        for index in 0..bits % 4 {
            let is_null = (bits >> (8 + index)) & 1 == 1;
            lists.values().append_option((!is_null).then_some(small(*bits) as i32 + index as i32));
            texts.values().append_option((!is_null).then(|| text(bits >> index)));
        }
        lists.append(true);
        texts.append(true);
        pairs.values().append_option((bits & 1 == 0).then_some(small(*bits) as i32));
        pairs.values().append_value(1);
        pairs.append(true);
        fixed.append_value(&bits.to_le_bytes()[..3]).unwrap();
        coded.append_value(text(*bits % 6));
        coded_bytes.append_value(bytes(*bits % 100));
    }
    let options = |make: &dyn Fn(u64) -> String| rows.iter().map(|bits| bits.map(make)).collect::<Vec<_>>();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("bool", Arc::new(rows.iter().map(|bits| bits.map(|bits| bits & 1 == 1)).collect::<BooleanArray>())),
        ("i8", Arc::new(primitive::<Int8Type>(rows, |bits| bits as i8))),
        ("i16", Arc::new(primitive::<Int16Type>(rows, |bits| bits as i16))),
        ("i32", Arc::new(primitive::<Int32Type>(rows, |bits| bits as i32))),
        ("i64", Arc::new(primitive::<Int64Type>(rows, whole))),
        ("u8", Arc::new(primitive::<UInt8Type>(rows, |bits| bits as u8))),
        ("u16", Arc::new(primitive::<UInt16Type>(rows, |bits| bits as u16))),
        ("u32", Arc::new(primitive::<UInt32Type>(rows, |bits| bits as u32))),
        ("u64", Arc::new(primitive::<UInt64Type>(rows, |bits| bits))),
        ("f16", Arc::new(primitive::<Float16Type>(rows, |bits| half::f16::from_bits(bits as u16)))),
        ("f32", Arc::new(primitive::<Float32Type>(rows, |bits| f32::from_bits(bits as u32)))),
        ("f64", Arc::new(primitive::<Float64Type>(rows, f64::from_bits))),
        ("string", Arc::new(StringArray::from(options(&text)))),
        ("large", Arc::new(LargeStringArray::from(options(&text)))),
        ("view", Arc::new(StringViewArray::from_iter(options(&text)))),
        ("body", Arc::new(StringArray::from(options(&text)))),
        ("bytes", Arc::new(rows.iter().map(|bits| bits.map(bytes)).collect::<BinaryViewArray>())),
        ("fixed", Arc::new(fixed.finish())),
        ("coded", Arc::new(coded.finish())),
        ("coded_bytes", Arc::new(coded_bytes.finish())),
        ("date32", Arc::new(primitive::<Date32Type>(rows, |bits| bits as i32))),
        ("date64", Arc::new(primitive::<Date64Type>(rows, |bits| whole(bits) / 86_400_000 * 86_400_000))),
        ("time_s", Arc::new(primitive::<Time32SecondType>(rows, |bits| bits as i32 % 86_400))),
        ("time_ms", Arc::new(primitive::<Time32MillisecondType>(rows, |bits| bits as i32 % 86_400_000))),
        ("time_us", Arc::new(primitive::<Time64MicrosecondType>(rows, small))),
        ("time_ns", Arc::new(primitive::<Time64NanosecondType>(rows, small))),
        ("span", Arc::new(primitive::<DurationMillisecondType>(rows, whole))),
        ("at_s", Arc::new(primitive::<TimestampSecondType>(rows, small).with_timezone("+02:00"))),
        ("at_ms", Arc::new(primitive::<TimestampMillisecondType>(rows, small))),
        ("at_us", Arc::new(primitive::<TimestampMicrosecondType>(rows, whole).with_timezone("UTC"))),
        ("at_naive", Arc::new(primitive::<TimestampMicrosecondType>(rows, whole))),
        (
            "at_ns",
            Arc::new(
                primitive::<TimestampNanosecondType>(rows, |bits| whole(bits) / 1000 * 1000)
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        (
            "d9",
            Arc::new(
                primitive::<Decimal128Type>(rows, |bits| small(bits).into())
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            ),
        ),
        (
            "d18",
            Arc::new(
                primitive::<Decimal128Type>(rows, |bits| (whole(bits) / 10).into())
                    .with_precision_and_scale(18, 4)
                    .unwrap(),
            ),
        ),
        (
            "d38",
            Arc::new(
                primitive::<Decimal128Type>(rows, |bits| i128::from(whole(bits)) * 1_000_000_007)
                    .with_precision_and_scale(38, 10)
                    .unwrap(),
            ),
        ),
        (
            "d76",
            Arc::new(
                primitive::<Decimal256Type>(rows, |bits| i256::from_i128(i128::from(whole(bits)) << 60))
                    .with_precision_and_scale(76, 0)
                    .unwrap(),
            ),
        ),
        ("lists", Arc::new(lists.finish())),
        ("texts", Arc::new(texts.finish())),
        ("pairs", Arc::new(pairs.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn bits() -> impl Strategy<Value = Vec<Bits>> {
    let odd = prop::sample::select(vec![
        0,
        1,
        u64::MAX,
        1 << 63,
        0x7ff0_0000_0000_0001,
        0xfff8_0000_7f80_0001,
        0x7ff0_0000_0000_7c01,
        0x8000_0000_8000_8000,
    ]);
    let value = prop_oneof![3 => any::<u64>(), 2 => odd, 2 => 0u64..20];
    prop::collection::vec((prop::option::weighted(0.85, value), 1usize..5), 0..80).prop_map(|runs| {
        runs.into_iter().flat_map(|(bits, count)| std::iter::repeat_n(bits, count)).collect()
    })
}

fn source(bytes: Vec<u8>) -> Arc<Memory> {
    Arc::new(Memory::new("table", bytes))
}

fn to_tatami(rows: Rows, options: WriterOptions) -> File {
    let table = rows.table().clone();
    let options =
        table.notes().into_iter().fold(options, |options, (key, value)| options.with_metadata(key, value));
    let mut writer = Writer::create(Cursor::new(Vec::new()), table.schema().clone(), options).unwrap();
    for batch in rows {
        writer.append(&batch.unwrap()).unwrap();
    }
    File::from_source(source(writer.finish().unwrap().output), OpenOptions::new()).unwrap()
}

fn from_tatami(file: &File, format: Format) -> Vec<u8> {
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let table = Table::of_file(file, &all).unwrap();
    let mut sink = Sink::new(format, &"out".into(), &table, Vec::new()).unwrap();
    for batch in file.scan().with_batch_rows(37).batches() {
        sink.push(batch.unwrap().columns).unwrap();
    }
    let written = sink.finish().unwrap();
    assert_eq!(written.rows, file.rows());
    written.output
}

fn properties(compression: Compression, dictionary: bool, v2: bool, group_rows: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(dictionary)
        .set_writer_version(if v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(50)
        .set_write_batch_size(16)
        .build()
}

/// What a type is when only its packing may change.
fn plain(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => plain(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            DataType::List(Arc::new(arrow_schema::Field::new("element", plain(element.data_type()), true)))
        }
        other => other.clone(),
    }
}

/// The table as Parquet can tell it: times in seconds become milliseconds.
fn in_parquet(table: &RecordBatch) -> RecordBatch {
    let schema = table.schema();
    let columns = schema.fields().iter().zip(table.columns()).map(|(field, array)| {
        let array: ArrayRef = match array.data_type() {
            DataType::Timestamp(arrow_schema::TimeUnit::Second, zone) => {
                let millis =
                    array.as_primitive::<TimestampSecondType>().iter().map(|at| at.map(|at| at * 1000));
                Arc::new(
                    millis
                        .collect::<PrimitiveArray<TimestampMillisecondType>>()
                        .with_timezone_opt(zone.clone()),
                )
            }
            _ => Arc::clone(array),
        };
        (field.name().clone(), array, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn assert_same(expected: &RecordBatch, found: &[RecordBatch], what: &str) {
    if let Some(first) = found.first() {
        for (a, b) in expected.schema().fields().iter().zip(first.schema().fields()) {
            assert_eq!(a.name(), b.name());
            assert_eq!(plain(a.data_type()), plain(b.data_type()), "{what}: {}", a.name());
        }
    }
    for column in 0..expected.num_columns() {
        let name = expected.schema().field(column).name().clone();
        assert_eq!(dumped(std::slice::from_ref(expected), column), dumped(found, column), "{what}: {name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn parquet_and_arrow_come_back_bit_for_bit(
        rows in bits(),
        compression in prop::sample::select(vec![
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::ZSTD(ZstdLevel::default()),
            Compression::LZ4_RAW,
        ]),
        (dictionary, v2) in any::<(bool, bool)>(),
        group_rows in 1usize..200,
        page_rows in 1u32..100,
        batch_rows in prop::option::of(1usize..70),
    ) {
        let expected = table(&rows);
        let mut parquet =
            ArrowWriter::try_new(Vec::new(), expected.schema(), Some(properties(compression, dictionary, v2, group_rows))).unwrap();
        parquet.write(&expected).unwrap();
        let parquet = parquet.into_inner().unwrap();
        let mut file = FileWriter::try_new(Vec::new(), &expected.schema()).unwrap();
        let mut stream = StreamWriter::try_new(Vec::new(), &expected.schema()).unwrap();
        if expected.num_rows() > 0 {
            // Arrays that start in the middle of their buffers.
            let half = expected.num_rows() / 2;
            for part in [expected.slice(0, half), expected.slice(half, expected.num_rows() - half)] {
                stream.write(&part).unwrap();
            }
            file.write(&expected).unwrap();
        }
        for (bytes, format) in [
            (parquet, Format::Parquet),
            (file.into_inner().unwrap(), Format::ArrowFile),
            (stream.into_inner().unwrap(), Format::ArrowStream),
        ] {
            prop_assert_eq!(detect(&bytes[..8]), Some(format));
            let opened = Rows::open(source(bytes), format, &Options::new(), batch_rows).unwrap();
            let options = WriterOptions::new().with_page_max_values(page_rows).with_row_group_max_rows(90);
            let tatami = to_tatami(opened, options);
            prop_assert_eq!(tatami.rows(), rows.len() as u64);
            let back = from_tatami(&tatami, Format::Parquet);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(back)).unwrap().build().unwrap();
            assert_same(&in_parquet(&expected), &reader.collect::<Result<Vec<_>, _>>().unwrap(), &format!("{format:?} to Parquet"));
            let back = from_tatami(&tatami, Format::ArrowFile);
            let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(back), None).unwrap();
            assert_same(&expected, &reader.collect::<Result<Vec<_>, _>>().unwrap(), &format!("{format:?} to Arrow"));
            let back = from_tatami(&tatami, Format::ArrowStream);
            let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(back), None).unwrap();
            assert_same(&expected, &reader.collect::<Result<Vec<_>, _>>().unwrap(), &format!("{format:?} to a stream"));
            let views = tercet_arrow::batches(&tatami.scan(), Texts::Views).unwrap();
            assert_same(&expected, &views.collect::<Result<Vec<_>, _>>().unwrap(), "views");
        }
    }
}

#[test]
fn scans_answer_as_record_batches() {
    let rows: Vec<Bits> = (0..500).map(|row| (row % 7 != 0).then_some(row)).collect();
    let expected = table(&rows);
    let mut writer = ArrowWriter::try_new(Vec::new(), expected.schema(), None).unwrap();
    writer.write(&expected).unwrap();
    let opened =
        Rows::open(source(writer.into_inner().unwrap()), Format::Parquet, &Options::new(), None).unwrap();
    let file = to_tatami(opened, WriterOptions::new());
    let scan = file.scan().columns(&["u64", "texts"]).unwrap();
    let scan = scan.filter(&Expr::parse("u64 between 100 and 200 and i8 is not null").unwrap()).unwrap();
    let found: Vec<RecordBatch> =
        tercet_arrow::batches(&scan, Texts::Views).unwrap().collect::<Result<_, _>>().unwrap();
    let numbers: Vec<u64> = found
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    assert_eq!(numbers, (100..=200).filter(|row| row % 7 != 0).collect::<Vec<u64>>());
}

#[test]
fn a_column_without_values_keeps_its_type() {
    let nothing: ArrayRef = Arc::new(NullArray::new(5));
    let batch = RecordBatch::try_from_iter_with_nullable([("nothing", nothing, true)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let opened =
        Rows::open(source(writer.into_inner().unwrap()), Format::Parquet, &Options::new(), None).unwrap();
    let file = to_tatami(opened, WriterOptions::new());
    let found: Vec<RecordBatch> =
        tercet_arrow::batches(&file.scan(), Texts::Views).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [batch]);
}

#[test]
fn times_between_microseconds_are_refused_cut_or_copied() {
    let times: ArrayRef =
        Arc::new(PrimitiveArray::<TimestampNanosecondType>::from(vec![1_000, -1_500, 3_000]));
    let batch = RecordBatch::try_from_iter([("at", times)]).unwrap();
    let columns = |timestamps| {
        let options = Options::new().with_timestamps(timestamps);
        let table = Table::from_arrow(&"times".into(), &batch.schema(), &options).unwrap();
        table.columns(&batch, 40).map(|columns| columns[0].values.clone())
    };
    let error = columns(Timestamps::Exact).unwrap_err();
    assert_eq!(
        error.to_string(),
        "times: column `at`, row 41: the time -1500 ns is more exact than microseconds"
    );
    assert_eq!(columns(Timestamps::Floor).unwrap(), tercet_tatami::Values::Int64(vec![1, -2, 3]));
    assert_eq!(columns(Timestamps::Raw).unwrap(), tercet_tatami::Values::Int64(vec![1_000, -1_500, 3_000]));
    let late: ArrayRef = Arc::new(PrimitiveArray::<TimestampSecondType>::from(vec![i64::MAX]));
    let batch = RecordBatch::try_from_iter([("at", late)]).unwrap();
    let table = Table::from_arrow(&"times".into(), &batch.schema(), &Options::new()).unwrap();
    assert!(matches!(table.columns(&batch, 0), Err(Error::Value { row: 0, .. })));
}

#[test]
fn what_has_no_place_is_named_column_by_column() {
    use arrow_schema::{Field, IntervalUnit, Schema};
    let inner = Arc::new(Field::new("x", DataType::Int32, true));
    let list = DataType::List(Arc::clone(&inner));
    let schema = Schema::new(vec![
        Field::new("good", DataType::Int32, true),
        Field::new("point", DataType::Struct(vec![Arc::clone(&inner)].into()), true),
        Field::new("nested", DataType::List(Arc::new(Field::new("element", list.clone(), true))), true),
        Field::new("span", DataType::Interval(IntervalUnit::MonthDayNano), true),
        Field::new("nothing", DataType::FixedSizeBinary(0), true),
        Field::new("list", list, true),
    ]);
    let error = Table::from_arrow(&"odd".into(), &schema, &Options::new()).unwrap_err();
    let Error::Types { columns, .. } = &error else { panic!("{error}") };
    let names: Vec<&str> = columns.iter().map(|refused| refused.column.as_str()).collect();
    assert_eq!(names, ["point", "nested", "span", "nothing"]);
    let interop = Options::new().with_interop(true);
    let Err(Error::Types { columns, .. }) = Table::from_arrow(&"odd".into(), &schema, &interop) else {
        panic!("lists are refused for others")
    };
    assert_eq!(columns.len(), 5);
}

#[test]
fn notes_that_do_not_fit_are_refused() {
    let schema =
        tercet_tatami::Schema::new(vec![tercet_tatami::Field::new("n", tercet_tatami::Type::Int32)]).unwrap();
    for (note, fits) in [
        ("date32", true),
        ("decimal32[9, 2]", true),
        ("date64", false),
        ("timestamp[s]", false),
        ("x", false),
    ] {
        let options = WriterOptions::new().with_metadata("arrow.type:n", note);
        let writer = Writer::create(Cursor::new(Vec::new()), schema.clone(), options).unwrap();
        let file = File::from_source(source(writer.finish().unwrap().output), OpenOptions::new()).unwrap();
        assert_eq!(Table::of_file(&file, &[0]).is_ok(), fits, "{note}");
    }
}
