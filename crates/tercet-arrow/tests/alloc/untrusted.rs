//! Every truncation and every flipped byte of small Arrow and Parquet files: an error or rows, no panic, no abort, and bounded
//! memory.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, ListBuilder, StringDictionaryBuilder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Int64Array, LargeListViewArray, NullArray, RecordBatch,
    StringArray, StringViewArray,
};
use arrow_buffer::ScalarBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use tercet_arrow::{Error, ErrorKind, Format, Options, TableReader};
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, CommonError, Diagnostic as _, Limits, SourceError, Span};
use tercet_testkit::alloc::measure;
use tercet_testkit::damage;

const MIB: usize = 1 << 20;
/// Flipped bits: all, the lowest, a middle one, and the continuation bit of varints.
const MASKS: [u8; 4] = [0xff, 0x01, 0x10, 0x80];

fn table() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut fixed = FixedSizeBinaryBuilder::new(3);
    let mut coded = StringDictionaryBuilder::<Int8Type>::new();
    for row in 0..12 {
        if row == 5 {
            lists.append_null();
            fixed.append_null();
            coded.append_null();
            continue;
        }
        lists.values().append_slice(&[row, row + 1][..usize::try_from(row % 3).unwrap()]);
        lists.append(true);
        fixed.append_value([7, 8, 9]).unwrap();
        coded.append_value(["red", "green", "green"][usize::try_from(row % 3).unwrap()]);
    }
    let text = |row: i64| (row != 4).then(|| format!("the same text as in other rows, {row}"));
    let decimals = Decimal128Array::from_iter_values((0..12).map(|row| row * 10_i128.pow(30)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("numbers", Arc::new(Int64Array::from_iter_values(0..12))),
        ("flags", Arc::new((0..12).map(|row| (row != 3).then_some(row % 2 == 0)).collect::<BooleanArray>())),
        ("strings", Arc::new((0..12).map(text).collect::<StringArray>())),
        ("views", Arc::new((0..12).map(text).collect::<StringViewArray>())),
        ("coded", Arc::new(coded.finish())),
        ("fixed", Arc::new(fixed.finish())),
        ("lists", Arc::new(lists.finish())),
        ("decimals", Arc::new(decimals.with_precision_and_scale(38, 2).unwrap())),
        ("nothing", Arc::new(NullArray::new(12))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// A table that compresses well.
fn compressible() -> RecordBatch {
    let strings: StringArray = (0..40).map(|_| Some("again and again and again")).collect();
    let numbers = Int64Array::from_iter_values(std::iter::repeat_n(7, 40));
    RecordBatch::try_from_iter([("strings", Arc::new(strings) as ArrayRef), ("numbers", Arc::new(numbers))])
        .unwrap()
}

fn ipc(table: &RecordBatch, format: Format, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    if format == Format::ArrowFile {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
        writer.write(table).unwrap();
        return writer.into_inner().unwrap();
    }
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
    writer.write(table).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(table: &RecordBatch, set: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder) -> Vec<u8> {
    let properties = set(WriterProperties::builder()).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.into_inner().unwrap()
}

fn read(bytes: &[u8], format: Format) -> Result<usize, Error> {
    let source = Arc::new(Memory::new("damaged", bytes.to_vec()));
    let mut count = 0;
    for columns in TableReader::open(source, format, &Options::new(), None)? {
        count += columns?.first().map_or(0, tercet_tatami::Column::len);
        // Null rows need no bytes: a file may declare any number of them.
        if count > 1 << 20 {
            break;
        }
    }
    Ok(count)
}

fn bounded(bytes: &[u8], format: Format, what: &dyn std::fmt::Display) -> Result<usize, Error> {
    let (result, memory) = measure(|| read(bytes, format));
    let (largest, peak) = (memory.largest_bytes, memory.peak_bytes);
    assert!(largest <= 32 * MIB && peak <= 96 * MIB, "{what}: {largest} bytes at once, {peak} together");
    result
}

/// Tries every truncation and some bit flips of every byte.
fn damage(bytes: &[u8], format: Format, what: &str) {
    let whole = read(bytes, format).unwrap();
    for cut in damage::truncations(bytes) {
        let what = format!("{what} of {} bytes", cut.len());
        // A stream may end after any message.
        let is_valid = |rows: usize| format == Format::ArrowStream && rows <= whole;
        assert!(bounded(cut, format, &what).map_or(true, is_valid), "{what}");
    }
    let (mut errors, mut tried) = (0, 0);
    let mut copy = bytes.to_vec();
    for flip in damage::all_flips(bytes).filter(|flip| MASKS.contains(&flip.mask)) {
        copy[flip.offset] ^= flip.mask;
        tried += 1;
        errors += u32::from(bounded(&copy, format, &format_args!("{what}, {flip}")).is_err());
        copy[flip.offset] ^= flip.mask;
    }
    assert!(errors > 0 && errors < tried, "{what}: {errors} of {tried}");
}

#[test]
fn arrow_files() {
    damage(&ipc(&table(), Format::ArrowFile, None), Format::ArrowFile, "file");
}

#[test]
fn arrow_streams() {
    damage(&ipc(&table(), Format::ArrowStream, None), Format::ArrowStream, "stream");
}

#[test]
fn compressed_arrow_files_and_streams() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        for format in [Format::ArrowFile, Format::ArrowStream] {
            damage(&ipc(&compressible(), format, Some(codec)), format, &format!("{format:?}, {codec:?}"));
        }
    }
}

#[test]
fn parquet_files_with_dictionaries() {
    damage(&parquet(&table(), |set| set), Format::Parquet, "dictionaries");
}

#[test]
fn delta_encoded_parquet_files() {
    let table = table().project(&[0, 2, 6]).unwrap();
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let bytes = parquet(&table, |set| {
            set.set_dictionary_enabled(false).set_column_encoding(ColumnPath::from("strings"), encoding)
        });
        damage(&bytes, Format::Parquet, &encoding.to_string());
    }
}

#[test]
fn compressed_parquet_files() {
    let table = compressible();
    for compression in [
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let bytes = parquet(&table, |set| {
            let version = parquet::file::properties::WriterVersion::PARQUET_2_0;
            set.set_compression(compression).set_dictionary_enabled(false).set_writer_version(version)
        });
        damage(&bytes, Format::Parquet, &compression.to_string());
    }
}

#[test]
fn uncompressed_lengths_are_checked_against_compressed_bytes() {
    for (codec, declared, message) in [
        (CompressionType::LZ4_FRAME, 1_i64 << 60, "hold at most"),
        (CompressionType::LZ4_FRAME, 1 << 20, "hold at most"),
        (CompressionType::ZSTD, 1 << 60, "hold at most"),
        (CompressionType::ZSTD, -7, "declares -7 uncompressed bytes"),
    ] {
        for format in [Format::ArrowFile, Format::ArrowStream] {
            let bytes = ipc(&compressible(), format, Some(codec));
            // The strings have 40 times 25 bytes; the last offset is the same number.
            let at = bytes.windows(8).rposition(|part| part == 1000_i64.to_le_bytes()).unwrap();
            let error = read(&damage::patched(&bytes, at, &declared.to_le_bytes()), format).unwrap_err();
            let ErrorKind::Batch { index: 0, buffer: Some(2), span, .. } = error.kind() else {
                panic!("{error}")
            };
            assert_eq!((span.start(), span.len()), (at as u64, 8));
            let expected = format!("damaged: record batch 0, buffer 2 (bytes {at}..{}): ", at + 8);
            assert!(
                error.to_string().starts_with(&expected) && error.to_string().contains(message),
                "{error}"
            );
        }
    }
}

#[test]
fn limits_bound_batch_sizes() {
    let bytes = ipc(&compressible(), Format::ArrowFile, Some(CompressionType::ZSTD));
    let opened = |limit| {
        let options = Options::new().with_limits(Limits::small().with_chunk_bytes(limit));
        let source = Arc::new(Memory::new("limited", bytes.clone()));
        TableReader::open(source, Format::ArrowFile, &options, None).unwrap().collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(opened(10_000).unwrap().len(), 1);
    assert_eq!(opened(800).unwrap_err().class(), Class::Limit);
    let bytes = parquet(&compressible(), |set| set.set_dictionary_enabled(false));
    let options = Options::new().with_limits(Limits::small().with_chunk_bytes(300));
    let source = Arc::new(Memory::new("limited", bytes));
    let mut rows = TableReader::open(source, Format::Parquet, &options, None).unwrap();
    let error = rows.next().unwrap().unwrap_err();
    assert_eq!(error.class(), Class::Limit, "{error}");
}

#[test]
fn list_views_that_share_elements_are_read_in_small_batches() {
    let (rows, len) = (3_000_i64, 100_000_i64);
    let field = Arc::new(Field::new("element", DataType::Int64, true));
    let offsets = ScalarBuffer::from(vec![0_i64; 3_000]);
    let sizes = ScalarBuffer::from(vec![len; 3_000]);
    let elements = Arc::new(Int64Array::from_iter_values(0..len));
    let lists = LargeListViewArray::new(field, offsets, sizes, elements, None);
    let table = RecordBatch::try_from_iter([("lists", Arc::new(lists) as ArrayRef)]).unwrap();
    let bytes = ipc(&table, Format::ArrowStream, None);
    let (count, memory) = measure(|| {
        let source = Arc::new(Memory::new("shared", bytes));
        let rows = TableReader::open(source, Format::ArrowStream, &Options::new(), None).unwrap();
        // The first batches suffice: all of them together are gigabytes.
        rows.take(2).map(|columns| columns.unwrap()[0].len()).sum::<usize>()
    });
    assert!(count > 0 && i64::try_from(count).unwrap() < rows / 10, "{count} rows");
    assert!(memory.peak_bytes < 300 * MIB, "{memory:?}");
}

#[test]
fn parquet_footers_are_validated_before_allocation() {
    let with_end = |metadata: &[u8]| {
        let len = u32::try_from(metadata.len()).unwrap().to_le_bytes();
        [b"PAR1", metadata, &len, b"PAR1"].concat()
    };
    // A schema of one group, then 2^31 - 1 row groups.
    let root = [0x15, 2, 0x19, 0x1c, 0x48, 1, b'r', 0x15, 0, 0];
    let groups = [root.as_slice(), &[0x16, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0]].concat();
    // A group of 2^31 - 1 columns.
    let children = [0x15, 2, 0x19, 0x1c, 0x48, 1, b'r', 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    for (metadata, message) in [(groups.as_slice(), "truncated metadata"), (&children, "2147483647 columns")]
    {
        let error = bounded(&with_end(metadata), Format::Parquet, &message).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let none = bounded(&with_end(&[0; 4])[4..], Format::Parquet, &"short");
    assert_eq!(none.unwrap_err().class(), Class::Malformed);
}

#[test]
fn a_damaged_arrow_schema_falls_back_to_parquet_types() {
    let bytes = parquet(&table(), |set| set);
    let key = b"ARROW:schema";
    let at = bytes.windows(key.len()).rposition(|part| part == key).unwrap() + key.len();
    // The value is base64, after its field header and length.
    let len = bytes[at + 3..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    let value = at + 3..at + 3 + len.count();
    assert!(value.len() > 300);
    let opened = |bytes: Vec<u8>| {
        TableReader::open(Arc::new(Memory::new("types", bytes)), Format::Parquet, &Options::new(), None)
    };
    let mut warned = 0;
    for at in value.clone() {
        for mask in [0x01, 0x02, 0x10] {
            let rows = opened(damage::patched(&bytes, at, &[bytes[at] ^ mask])).unwrap();
            warned += rows.warnings().len();
            let rows = rows.map(|columns| columns.unwrap()[0].len()).sum::<usize>();
            assert_eq!(rows, 12, "byte {at} ^ {mask:#04x}");
        }
    }
    assert!(warned > value.len(), "{warned} of {}", value.len());
    let none = damage::patched(&bytes, value.start, &vec![b'A'; value.len()]);
    let rows = opened(none).unwrap();
    assert_eq!(rows.warnings(), ["malformed Arrow schema (`ARROW:schema`): using the Parquet types"]);
    assert!(opened(bytes).unwrap().warnings().is_empty());
}

/// A source that fails after some reads.
#[derive(Debug)]
struct Failing {
    inner: Memory,
    left: AtomicUsize,
}

impl ByteSource for Failing {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, SourceError> {
        let left = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        let error = || std::io::Error::other("the disk is gone");
        left.map_err(|_| SourceError::Read { span, error: error() })?;
        self.inner.read_at(span)
    }
}

#[test]
fn read_errors_are_not_reported_as_damage() {
    let table = compressible();
    for (bytes, format) in [
        (parquet(&table, |set| set), Format::Parquet),
        (ipc(&table, Format::ArrowFile, None), Format::ArrowFile),
        (ipc(&table, Format::ArrowStream, None), Format::ArrowStream),
    ] {
        let mut failures = 0;
        for left in 0.. {
            let inner = Memory::new("failing", bytes.clone());
            let source = Arc::new(Failing { inner, left: AtomicUsize::new(left) });
            let rows = TableReader::open(source, format, &Options::new(), None);
            match rows.and_then(Iterator::collect::<Result<Vec<_>, _>>) {
                Ok(_) => break,
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::Common(CommonError::Source(_))),
                    "{format:?}, {left}: {error}"
                ),
            }
            failures += 1;
        }
        assert!(failures > 2, "{format:?}: {failures}");
    }
}
