//! Round trips of tables through `.tatami`: bit-exact for every type, from files written with many settings.

use std::io::Cursor;
use std::sync::Arc;

use crate::tables::{Bits, assert_same, in_parquet, table};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{TimestampNanosecondType, TimestampSecondType, UInt64Type};
use arrow_array::{ArrayRef, NullArray, PrimitiveArray, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;
use tercet_arrow::{
    ErrorKind, Format, Options, StringLayout, Table, TableReader, TableWriter, Timestamps, detect,
};
use tercet_core::source::Memory;
use tercet_tatami::format::Codec;
use tercet_tatami::{Expr, File, ReadOptions, Writer, WriterOptions};

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
    prop::collection::vec((prop::option::weighted(0.85, value), 1usize..4), 0..16).prop_map(|runs| {
        runs.into_iter().flat_map(|(bits, count)| std::iter::repeat_n(bits, count)).collect()
    })
}

fn source(bytes: Vec<u8>) -> Arc<Memory> {
    Arc::new(Memory::new("table", bytes))
}

fn to_tatami(rows: TableReader, options: WriterOptions) -> File {
    let table = rows.table().clone();
    let options = table
        .annotations()
        .into_iter()
        .fold(options, |options, (key, value)| options.with_metadata(key, value));
    let mut writer = Writer::new(Cursor::new(Vec::new()), table.schema().clone(), options).unwrap();
    for batch in rows {
        writer.append(&batch.unwrap()).unwrap();
    }
    File::from_source(source(writer.finish().unwrap().output), ReadOptions::new()).unwrap()
}

fn from_tatami(file: &File, format: Format) -> Vec<u8> {
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let table = Table::from_file(file, &all).unwrap();
    let mut writer = TableWriter::new(format, &"out".into(), &table, Vec::new()).unwrap();
    for batch in file.scan().with_batch_rows(37).batches() {
        writer.append(batch.unwrap().columns).unwrap();
    }
    let written = writer.finish().unwrap();
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

/// An Arrow file or stream of a table in several batches, some of them empty.
fn ipc(table: &RecordBatch, format: Format, cuts: &[usize], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let options = options.with_dictionary_handling(DictionaryHandling::Delta);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (table.num_rows() + 1)).collect();
    cuts.extend([0, table.num_rows()]);
    cuts.sort_unstable();
    let parts = cuts.windows(2).map(|ends| table.slice(ends[0], ends[1] - ends[0]));
    if format == Format::ArrowFile {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
        parts.for_each(|part| writer.write(&part).unwrap());
        return writer.into_inner().unwrap();
    }
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
    parts.for_each(|part| writer.write(&part).unwrap());
    writer.into_inner().unwrap()
}

/// Reads a file with the Arrow crates alone.
fn read_back(bytes: Vec<u8>, format: Format) -> (SchemaRef, Vec<RecordBatch>) {
    match format {
        Format::Parquet => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let schema = Arc::clone(reader.schema());
            (schema, reader.build().unwrap().collect::<Result<_, _>>().unwrap())
        }
        Format::ArrowFile => {
            let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None).unwrap();
            (reader.schema(), reader.collect::<Result<_, _>>().unwrap())
        }
        Format::ArrowStream => {
            let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None).unwrap();
            (reader.schema(), reader.collect::<Result<_, _>>().unwrap())
        }
    }
}

fn round_trip(
    bytes: Vec<u8>,
    format: Format,
    expected: &RecordBatch,
    batch_rows: Option<usize>,
    page_rows: u32,
) {
    assert_eq!(detect(&bytes[..8]), Some(format));
    let opened = TableReader::open(source(bytes), format, &Options::new(), batch_rows).unwrap();
    let options = WriterOptions::new().with_page_max_values(page_rows).with_row_group_max_rows(90);
    let tatami = to_tatami(opened, options);
    assert_eq!(tatami.rows(), expected.num_rows() as u64);
    for to in [Format::Parquet, Format::ArrowFile, Format::ArrowStream] {
        let (schema, found) = read_back(from_tatami(&tatami, to), to);
        let message = if to == Format::Parquet { in_parquet(expected) } else { expected.clone() };
        assert_same(&message, &schema, &found, &format!("{format:?} to {to:?}"));
    }
    let found: Vec<RecordBatch> =
        tercet_arrow::batches(&tatami.scan(), StringLayout::View).unwrap().collect::<Result<_, _>>().unwrap();
    if let Some(first) = found.first() {
        assert_same(expected, &first.schema(), &found, "views");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(300)))]

    #[test]
    fn random_tables_round_trip_bit_for_bit(
        rows in bits(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        cuts in prop::collection::vec(0usize..100, 0..4),
        codec in prop::sample::select(vec![Codec::None, Codec::Lz4, Codec::Zstd]),
        group_rows in 1u64..60,
        page_rows in 1u32..40,
    ) {
        // Random columns, in random order.
        let table = table(&rows);
        let mut columns: Vec<usize> = Vec::new();
        for pick in picks.iter().map(|pick| pick.index(table.num_columns())) {
            if !columns.contains(&pick) {
                columns.push(pick);
            }
        }
        let expected = table.project(&columns).unwrap();
        let bytes = ipc(&expected, Format::ArrowStream, &cuts, None);
        let opened = TableReader::open(source(bytes), Format::ArrowStream, &Options::new(), None).unwrap();
        let options = WriterOptions::new().with_codec(codec);
        let options = options.with_page_max_values(page_rows).with_row_group_max_rows(group_rows);
        let file = to_tatami(opened, options);
        let (schema, found) = read_back(from_tatami(&file, Format::ArrowStream), Format::ArrowStream);
        assert_same(&expected, &schema, &found, "a random table");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]

    #[test]
    fn parquet_round_trips_bit_for_bit(
        rows in bits(),
        compression in prop::sample::select(vec![
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::ZSTD(ZstdLevel::default()),
            Compression::LZ4_RAW,
        ]),
        (dictionary, v2) in any::<(bool, bool)>(),
        group_rows in 1usize..60,
        page_rows in 1u32..40,
        batch_rows in prop::option::of(1usize..40),
    ) {
        // Parquet has no dictionaries of numbers.
        let table = table(&rows);
        let expected = table.project(&positions(&table, &["coded_numbers"])).unwrap();
        let properties = properties(compression, dictionary, v2, group_rows);
        let mut parquet = ArrowWriter::try_new(Vec::new(), expected.schema(), Some(properties)).unwrap();
        parquet.write(&expected).unwrap();
        round_trip(parquet.into_inner().unwrap(), Format::Parquet, &expected, batch_rows, page_rows);
    }

    #[test]
    fn arrow_round_trips_bit_for_bit(
        rows in bits(),
        cuts in prop::collection::vec(0usize..100, 0..4),
        compression in prop::sample::select(vec![
            None,
            Some(CompressionType::LZ4_FRAME),
            Some(CompressionType::ZSTD),
        ]),
        is_file in any::<bool>(),
        page_rows in 1u32..40,
        batch_rows in prop::option::of(1usize..40),
    ) {
        let expected = table(&rows);
        let format = if is_file { Format::ArrowFile } else { Format::ArrowStream };
        round_trip(ipc(&expected, format, &cuts, compression), format, &expected, batch_rows, page_rows);
    }
}

fn positions(table: &RecordBatch, without: &[&str]) -> Vec<usize> {
    let fields = table.schema_ref().fields().iter().enumerate();
    fields.filter(|(_, field)| !without.contains(&field.name().as_str())).map(|(index, _)| index).collect()
}

#[test]
fn scans_return_record_batches() {
    let rows: Vec<Bits> = (0..500).map(|row| (row % 7 != 0).then_some(row)).collect();
    let expected = table(&rows);
    let mut writer = ArrowWriter::try_new(Vec::new(), expected.schema(), None).unwrap();
    writer.write(&expected).unwrap();
    let opened =
        TableReader::open(source(writer.into_inner().unwrap()), Format::Parquet, &Options::new(), None)
            .unwrap();
    let file = to_tatami(opened, WriterOptions::new());
    let scan = file.scan().columns(&["u64", "strings"]).unwrap();
    let scan = scan.filter(&Expr::parse("u64 between 100 and 200 and i8 is not null").unwrap()).unwrap();
    let found: Vec<RecordBatch> =
        tercet_arrow::batches(&scan, StringLayout::View).unwrap().collect::<Result<_, _>>().unwrap();
    let numbers: Vec<u64> = found
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    assert_eq!(numbers, (100..=200).filter(|row| row % 7 != 0).collect::<Vec<u64>>());
}

#[test]
fn null_columns_keep_their_type() {
    let nothing: ArrayRef = Arc::new(NullArray::new(5));
    let batch = RecordBatch::try_from_iter_with_nullable([("nothing", nothing, true)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let opened =
        TableReader::open(source(writer.into_inner().unwrap()), Format::Parquet, &Options::new(), None)
            .unwrap();
    let file = to_tatami(opened, WriterOptions::new());
    let found: Vec<RecordBatch> =
        tercet_arrow::batches(&file.scan(), StringLayout::View).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [batch]);
}

#[test]
fn sub_microsecond_timestamps_are_rejected_rounded_or_copied() {
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
        "times: column `at`, row 41: timestamp -1500 ns is finer than microseconds"
    );
    assert_eq!(columns(Timestamps::Floor).unwrap(), tercet_tatami::Values::Int64(vec![1, -2, 3]));
    assert_eq!(columns(Timestamps::Raw).unwrap(), tercet_tatami::Values::Int64(vec![1_000, -1_500, 3_000]));
    let late: ArrayRef = Arc::new(PrimitiveArray::<TimestampSecondType>::from(vec![i64::MAX]));
    let batch = RecordBatch::try_from_iter([("at", late)]).unwrap();
    let table = Table::from_arrow(&"times".into(), &batch.schema(), &Options::new()).unwrap();
    let error = table.columns(&batch, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Value { row: 0, .. }));
}

#[test]
fn unsupported_columns_are_listed_by_name() {
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
    let ErrorKind::UnsupportedTypes { columns } = error.kind() else { panic!("{error}") };
    let names: Vec<&str> = columns.iter().map(|refused| refused.column.as_str()).collect();
    assert_eq!(names, ["point", "nested", "span", "nothing"]);
    let is_words = |kind: &str| !kind.contains(['(', ')', '{', '"']);
    assert!(columns.iter().all(|refused| is_words(&refused.type_name)), "{columns:?}");
    let interop = Options::new().with_interop(true);
    let error = Table::from_arrow(&"odd".into(), &schema, &interop).unwrap_err();
    let ErrorKind::UnsupportedTypes { columns } = error.kind() else { panic!("{error}") };
    assert_eq!(columns.len(), 5);
}

#[test]
fn annotations_that_do_not_fit_are_rejected() {
    let schema =
        tercet_tatami::Schema::new(vec![tercet_tatami::Field::new("n", tercet_tatami::Type::Int32)]).unwrap();
    for (annotation, fits) in [
        ("date32", true),
        ("decimal32[9, 2]", true),
        ("date64", false),
        ("timestamp[s]", false),
        ("x", false),
    ] {
        let options = WriterOptions::new().with_metadata("arrow.type:n", annotation);
        let writer = Writer::new(Cursor::new(Vec::new()), schema.clone(), options).unwrap();
        let file = File::from_source(source(writer.finish().unwrap().output), ReadOptions::new()).unwrap();
        assert_eq!(Table::from_file(&file, &[0]).is_ok(), fits, "{annotation}");
    }
}
