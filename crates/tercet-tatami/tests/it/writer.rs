//! Expected bytes, and rejected batches.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::slice;

use crate::pages::Bytes;
use tercet_core::{CommonError, Sink};
use tercet_tatami::format::{Codec, Encoding, Kind, page_flags, requires};
use tercet_tatami::{
    BatchError, Bitmap, Column, Error, ErrorKind, Field, Lists, OptionsError, Provenance, Schema,
    SchemaError, Type, Values, Writer, WriterOptions,
};

fn writer(fields: Vec<Field>, options: WriterOptions) -> Writer<Cursor<Vec<u8>>> {
    Writer::new(Cursor::new(Vec::new()), Schema::new(fields).unwrap(), options).unwrap()
}

fn write(fields: Vec<Field>, columns: &[Column], options: WriterOptions) -> Bytes {
    let mut writer = writer(fields, options);
    writer.append(columns).unwrap();
    Bytes::new(writer.finish().unwrap().output)
}

fn strings(values: &[&str]) -> Column {
    Column::new(Values::Bytes(values.iter().collect()))
}

fn ints(values: &[i32]) -> Column {
    Column::new(Values::Int32(values.to_vec()))
}

fn none(options: WriterOptions) -> WriterOptions {
    options.with_codec(Codec::None)
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn contains(bytes: &[u8], part: &str) -> bool {
    let part = unhex(part);
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn three_integers_have_the_expected_bytes() {
    let made = write(vec![Field::new("n", Type::Int32)], &[ints(&[7, 8, 9])], WriterOptions::interop());
    assert_eq!(&made.bytes[..16], unhex("54 41 54 31 01 00 01 00 00 00 01 02 00 00 00 00"));
    let page = made.record(64);
    assert_eq!(page.payload.unwrap(), unhex("02 07 24"));
    assert_eq!((page.header.encoding, page.header.codec), (Encoding::BitpackFor, Codec::Zstd));
    assert!(!page.header.marked);
    assert!(contains(&made.bytes, "01 06 01 01 6e 03 00 00"), "schema");
    assert!(contains(&made.bytes, "03 02 01 04 07 00 00 00 04 09 00 00 00"), "encoding, codec, zone");
    assert!(contains(&made.bytes, "c3 a8 01 04 01 00 03 00"), "requires nothing, offers two things");
}

#[test]
fn nulls_are_stored_in_a_bitmap() {
    let fields = vec![Field::new("s", Type::String).with_nulls()];
    let column = strings(&["hi", "", ""]).with_validity([true, false, true].into_iter().collect());
    let made = write(fields, &[column], none(WriterOptions::interop()));
    let head = "00 00 00 02 03 00 00 00 05 00 00 00 05 00 00 00 01 00 00 00 00 00 00 00 69 bf 1b 32";
    assert_eq!(&made.bytes[64..92], unhex(head));
    assert_eq!(&made.bytes[96..101], unhex("05 02 68 69 00"));
    assert!(contains(&made.bytes, "00 40 05 05 03 01 01 00 00 01 00 02 68 69"), "chunk");
}

#[test]
fn sort_keys_have_a_page_index() {
    let fields = vec![Field::new("k", Type::UInt16).with_sort_key()];
    let column = Column::new(Values::UInt16(vec![5, 6, 300]));
    let options = none(WriterOptions::interop()).with_page_max_values(2);
    let made = write(fields, &[column], options);
    assert_eq!(&made.bytes[8..10], [1, 0], "sorted");
    assert_eq!(made.record(0x40).stored, unhex("01 05 02"));
    let second = made.record(0x63);
    assert_eq!((second.stored, second.header.first_row), (unhex("2c 01"), 2));
    let index = made.record(0x85);
    assert_eq!(index.header.kind, Kind::Index);
    assert_eq!(index.header.payload_crc.to_le_bytes(), [0xcd, 0x7f, 0xec, 0x3f]);
    assert_eq!(index.stored, unhex("02 00 40 01 02 05 00 02 06 00 02 63 01 02 2c 01 02 2c 01"));
    assert!(contains(&made.bytes, "00 03 78 01 02 05 00 02 2c 01 01"), "group");
    let chunk = "00 40 05 05 03 00 02 03 00 05 02 05 00 02 2c 01 85 01";
    assert!(contains(&made.bytes, chunk));
    assert_eq!(made.file.footer().pairs[1], ("tatami.sort_key".to_owned(), "k".to_owned()));
}

#[test]
fn a_complete_file_has_the_expected_bytes() {
    let options = none(WriterOptions::new()).with_inline_bounds(false).with_provenance(Provenance::Off);
    let made =
        write(vec![Field::new("s", Type::String)], &[strings(&["red", "blue", "red", "red"])], options);
    let expected = [
        "54 41 54 31 01 00 01 00 04 00 01 02 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
        "04 00 00 00 00 00 00 00 9b 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 03 e0 bd f9",
        "00 02 80 00 04 00 00 00 04 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 77 20 3f 6e ee a4 9e 20",
        "03 01 00 02",
        "01 02 02 00 01 00 00 00 0a 00 00 00 17 00 00 00 00 00 00 00 00 00 00 00 43 17 cc 7a d8 4e fb 1a",
        "28 b5 2f fd 24 0a 51 00 00 02 03 72 65 64 04 62 6c 75 65 1e f5 36 d6",
        "00 01 06 01 01 73 0b 00 00",
        "02 19 01 00 04 24 00 01 00 40 04 04 04 00 01 02 00 01 04 62 6c 75 65 03 72 65 64",
        "04 03 01 64 0a",
        "06 14 01 0e 74 61 74 61 6d 69 2e 76 65 72 73 69 6f 6e 03 31 2e 31 07 03 04 0e 1b",
        "c3 a8 01 07 01 01 03 01 00 01 01",
        "4f 00 00 00 03 69 3c 4a 54 41 54 31",
    ];
    assert_eq!(made.bytes, unhex(&expected.concat()));
}

#[test]
fn lists_are_lengths_and_elements() {
    let elements = Column::new(Values::Int32(vec![7, 8, 9, 0]))
        .with_validity([true, true, true, false].into_iter().collect());
    let lists = Lists { ends: vec![2, 2, 2, 4], elements };
    let column = Column::new(Values::List(Box::new(lists)))
        .with_validity([true, false, true, true].into_iter().collect());
    let options = none(WriterOptions::new());
    let made = write(vec![Field::list("l", Type::Int32).with_nulls()], &[column], options);
    let page = made.record(64);
    // The lengths 2, 0, 2 packed, four elements, one of them null; then the numbers.
    assert_eq!(page.payload.unwrap(), unhex("0d 03 03 02 00 22 04 01 07 02 07 24"));
    let bounds = "50 2a 4d 18 0b 00 00 00 03 04 07 00 00 00 04 09 00 00 00";
    assert_eq!(&page.stored[..19], unhex(bounds));
    assert!(page.header.marked && page.header.has(page_flags::BOUNDS));
    assert_eq!(made.file.footer().features.as_ref().unwrap().requires, requires::LIST | requires::BOUNDS);
}

#[test]
fn elements_of_null_rows_are_omitted() {
    let lists = Lists { ends: vec![1, 3, 4], elements: ints(&[7, 100, 200, 8]) };
    let column =
        Column::new(Values::List(Box::new(lists))).with_validity([true, false, true].into_iter().collect());
    let field = Field::list("l", Type::Int32).with_nulls().with_bloom();
    let made = write(vec![field], &[column], none(WriterOptions::new()));
    let zone = made.file.footer().groups[0].chunks[0].zone.clone().unwrap();
    assert_eq!((&zone.min[..], &zone.max[..]), (&[7, 0, 0, 0][..], &[8, 0, 0, 0][..]));
    let back = made.file.read_column(0).unwrap();
    let Values::List(lists) = &back.values else { panic!("{back:?}") };
    assert_eq!(lists.elements.values, Values::Int32(vec![7, 8]));
}

#[test]
fn floats_are_packed_split_or_raw() {
    let options = none(WriterOptions::new());
    let field = || vec![Field::new("f", Type::Float32)];
    let made = write(field(), &[Column::new(Values::Float32(vec![1.5; 9]))], options);
    let page = made.record(64);
    assert_eq!(page.payload.unwrap(), unhex("1e 13 00 00 c0 3f"));
    assert_eq!((page.header.encoding, page.header.marked), (Encoding::Rle, true));
    // Both signs use all bits, but the high bytes have few distinct values.
    let waves: Vec<f32> = (0..20_000u16).map(|at| (f32::from(at) * 0.7).sin() * 100.0).collect();
    let made = write(field(), &[Column::new(Values::Float32(waves.clone()))], WriterOptions::new());
    let page = made.record(64);
    assert!(page.header.has(page_flags::SPLIT) && page.header.marked, "{:?}", page.header);
    let payload = page.payload.unwrap();
    assert_eq!(payload[..3], waves[..3].iter().map(|value| value.to_le_bytes()[0]).collect::<Vec<_>>());
    assert_eq!(made.file.footer().features.as_ref().unwrap().requires, requires::FLOAT);
    assert_eq!(made.file.read_column(0).unwrap().values, Values::Float32(waves));
}

#[test]
fn nan_is_not_a_statistic() {
    let column = || Column::new(Values::Float64(vec![f64::NAN, 2.0, f64::NAN, -1.0]));
    for options in [WriterOptions::new(), WriterOptions::interop()] {
        let made = write(vec![Field::new("f", Type::Float64)], &[column()], options);
        let zone = made.file.footer().groups[0].chunks[0].zone.clone().unwrap();
        assert_eq!(&zone.min[..], (-1.0f64).to_le_bytes());
        assert_eq!(&zone.max[..], 2.0f64.to_le_bytes());
    }
    let nothing = Column::new(Values::Float64(vec![f64::NAN; 3]));
    let made = write(vec![Field::new("f", Type::Float64)], &[nothing], WriterOptions::new());
    assert_eq!(made.file.footer().groups[0].chunks[0].zone, None);
    assert!(!made.record(64).header.has(page_flags::BOUNDS));
}

#[test]
fn incompressible_pages_are_stored_raw() {
    let mut noise = 1u64;
    let mut next = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise
    };
    let values: Vec<u64> = (0..5000).map(|_| next()).collect();
    let column = || Column::new(Values::UInt64(values.clone()));
    for codec in [Codec::Zstd, Codec::Lz4] {
        let options = WriterOptions::new().with_codec(codec);
        let made = write(vec![Field::new("n", Type::UInt64)], &[column()], options.clone());
        let page = made.record(64).header;
        assert_eq!((page.codec, page.marked), (Codec::None, true), "bounds precede uncompressed values");
        assert_eq!(made.file.footer().features.as_ref().unwrap().requires, requires::BOUNDS);
        let bare = write(vec![Field::new("n", Type::UInt64)], &[column()], options.with_inline_bounds(false));
        assert_eq!((bare.record(64).header.codec, bare.record(64).header.marked), (Codec::None, false));
        assert_eq!(bare.file.footer().features.as_ref().unwrap().requires, 0);
    }
    let made = write(vec![Field::new("n", Type::UInt64)], &[column()], WriterOptions::interop());
    assert_eq!(made.record(64).header.codec, Codec::Zstd);
}

#[test]
fn groups_end_by_rows_and_bytes() {
    let column = || strings(&["aaaa", "bbbb", "cccc", "dddd", "eeee"]);
    let rows = |options: WriterOptions, appends: usize| -> Vec<u64> {
        let mut writer = writer(vec![Field::new("s", Type::String)], options);
        (0..appends).for_each(|_| writer.append(&[column()]).unwrap());
        let made = Bytes::new(writer.finish().unwrap().output);
        made.file.footer().groups.iter().map(|group| group.rows).collect()
    };
    assert_eq!(rows(WriterOptions::new().with_row_group_max_rows(2), 1), [2, 2, 1]);
    assert_eq!(rows(WriterOptions::new().with_row_group_max_rows(3), 2), [3, 3, 3, 1]);
    // Five bytes per row: a group ends before the row that would exceed twelve.
    assert_eq!(rows(WriterOptions::new().with_row_group_max_bytes(12), 1), [2, 2, 1]);
    assert_eq!(rows(WriterOptions::new().with_row_group_max_bytes(10), 2), [2, 2, 2, 2, 2]);
    assert_eq!(rows(WriterOptions::new().with_row_group_max_bytes(1), 1), [1; 5]);
    // In the interop profile a group ends by its bytes only at the end of a batch.
    assert_eq!(rows(WriterOptions::interop().with_row_group_max_bytes(12), 2), [5, 5]);
    assert_eq!(rows(WriterOptions::interop().with_row_group_max_bytes(26), 3), [10, 5]);
    assert_eq!(rows(WriterOptions::new(), 0), Vec::<u64>::new());
}

fn refused(fields: Vec<Field>, columns: &[Column]) -> BatchError {
    let mut writer = writer(fields, WriterOptions::new());
    match writer.append(columns).map_err(Error::into_kind) {
        Err(ErrorKind::Batch(error)) => {
            assert_eq!(writer.rows(), 0);
            writer.finish().unwrap();
            *error
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn mismatched_batches_are_rejected() {
    let int = || Field::new("n", Type::Int32);
    let text = || Field::new("s", Type::String);
    assert_eq!(refused(vec![int()], &[]), BatchError::Columns { expected: 1, found: 0 });
    let found = refused(vec![int()], &[strings(&["x"])]);
    assert_eq!(found, BatchError::Values { column: "n".into(), expected: Type::Int32, found: "bytes" });
    let found = refused(vec![int(), text()], &[ints(&[1, 2]), strings(&["x"])]);
    assert_eq!(found, BatchError::Rows { column: "s".into(), expected: 2, found: 1 });
    let short = ints(&[1, 2]).with_validity(Bitmap::filled(1, true));
    assert_eq!(
        refused(vec![int()], &[short]),
        BatchError::Rows { column: "n".into(), expected: 2, found: 1 }
    );
    let null = ints(&[1, 2]).with_validity([true, false].into_iter().collect());
    assert_eq!(refused(vec![int()], &[null]), BatchError::Null { column: "n".into(), row: 1 });
    let bad = Column::new(Values::Bytes([&b"ok"[..], b"\xff"].iter().collect()));
    assert_eq!(
        refused(vec![text()], slice::from_ref(&bad)),
        BatchError::NotUtf8 { column: "s".into(), row: 1 }
    );
    write(vec![Field::new("b", Type::Bytes)], slice::from_ref(&bad), WriterOptions::new());
    let hidden = bad.clone().with_validity([true, false].into_iter().collect());
    write(vec![text().with_nulls()], &[hidden], WriterOptions::new());
    let list = |ends: Vec<u64>, elements| Column::new(Values::List(Box::new(Lists { ends, elements })));
    let field = || vec![Field::list("l", Type::String)];
    assert_eq!(
        refused(field(), &[list(vec![1, 2], bad)]),
        BatchError::NotUtf8 { column: "l".into(), row: 1 }
    );
    for ends in [vec![2, 1], vec![3], vec![1]] {
        let found = refused(field(), &[list(ends.clone(), strings(&["a", "b"]))]);
        assert!(matches!(found, BatchError::ListEnds { .. }), "{ends:?}");
    }
}

#[test]
fn the_sort_key_must_be_ascending_over_the_whole_file() {
    let fields = || vec![Field::new("k", Type::Int32).with_sort_key().with_nulls()];
    let mut sorted = writer(fields(), WriterOptions::new());
    let nulls = ints(&[3, -9, 3, 4]).with_validity([true, false, true, true].into_iter().collect());
    sorted.append(&[nulls]).unwrap();
    let error = sorted.append(&[ints(&[4, 3])]).unwrap_err();
    let ErrorKind::Batch(error) = error.into_kind() else { panic!("not about the batch") };
    assert_eq!(*error, BatchError::Unsorted { column: "k".into(), row: 5 });
    let error = sorted.append(&[ints(&[2, 5])]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Batch(_)));
    sorted.append(&[ints(&[4, 5])]).unwrap();
    assert_eq!(sorted.finish().unwrap().rows, 6);
    let mut free = writer(fields(), WriterOptions::new().with_require_sorted(false));
    free.append(&[ints(&[5, 1, 3])]).unwrap();
    free.finish().unwrap();
}

#[test]
fn conflicting_options_are_rejected() {
    let create = |field: Field, options: WriterOptions| {
        let schema = Schema::new(vec![field]).unwrap();
        Writer::new(Cursor::new(Vec::new()), schema, options).map(drop).unwrap_err().into_kind()
    };
    let int = || Field::new("n", Type::Int32);
    let fault = create(int(), WriterOptions::interop().with_codec(Codec::Lz4));
    assert!(matches!(fault, ErrorKind::Options(OptionsError::CodecInterop { .. })), "{fault:?}");
    let fault = create(int(), WriterOptions::new().with_codec(Codec::ZstdDict));
    assert!(matches!(fault, ErrorKind::Options(OptionsError::Codec { .. })), "{fault:?}");
    let fault = create(Field::list("l", Type::Int32), WriterOptions::interop());
    assert!(matches!(fault, ErrorKind::Schema(SchemaError::ListInterop { .. })), "{fault:?}");
}

/// A sink that accepts a limited number of bytes.
#[derive(Debug)]
struct Full(Cursor<Vec<u8>>, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.get_ref().len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Sink for Full {
    type Output = Vec<u8>;

    fn finish(self) -> io::Result<Vec<u8>> {
        Ok(self.0.into_inner())
    }
}

#[test]
fn a_failed_writer_leaves_no_file() {
    let schema = || Schema::new(vec![Field::new("n", Type::Int32)]).unwrap();
    let options = || WriterOptions::new().with_row_group_max_rows(2);
    let create = |room| Writer::new(Full(Cursor::new(Vec::new()), room), schema(), options());
    assert!(create(63).is_err(), "no room for the header");
    let mut writer = create(100).unwrap();
    let failed = |result: Result<(), Error>| {
        let is_write = |kind: &ErrorKind| matches!(kind, ErrorKind::Common(CommonError::Write(_)));
        result.is_err_and(|error| is_write(error.kind()) && error.location() == "output")
    };
    assert!(failed(writer.append(&[ints(&[1, 2, 3])])));
    assert!(failed(writer.append(&[ints(&[4])])), "nothing may follow");
    assert!(failed(writer.finish().map(drop)), "half a file is none");
    let mut writer = create(1000).unwrap();
    writer.append(&[ints(&[1, 2, 3])]).unwrap();
    let whole = writer.finish().unwrap().output.len();
    for room in 64..whole {
        let mut writer = create(room).unwrap();
        let failed = writer.append(&[ints(&[1, 2, 3])]).is_err() || writer.finish().is_err();
        assert!(failed, "{room} bytes cannot hold the file");
    }
}
