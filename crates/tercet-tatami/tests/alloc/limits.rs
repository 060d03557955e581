//! Hostile files take no more memory than the limits allow.
//!
//! A single test, because the allocator counts for the whole process.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use tercet_codec::bytes::zstd;
use tercet_core::checksum::crc32c;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _, Limits, OutlineOptions};
use tercet_tatami::format::Header;
use tercet_tatami::format::PageHeader;
use tercet_tatami::format::{BlobColumn, Chunk, Features, Footer, Group, Run, Statistics};
use tercet_tatami::format::{Codec, Encoding, Kind, page_flags, requires};
use tercet_tatami::salvage::{SalvageOptions, salvage};
use tercet_tatami::{
    Column, Error, Field, File, ReadOptions, Schema, Type, Values, VerifyOptions, Writer, WriterOptions,
    verify,
};
use tercet_testkit::alloc::{AllocStats, exclusive, measure};

const MIB: u64 = 1 << 20;

/// Small limits, so that excess allocations are visible.
fn limits() -> Limits {
    Limits::small()
        .with_metadata_bytes(4 * MIB)
        .with_chunk_bytes(MIB)
        .with_array_bytes(4 * MIB)
        .with_table_bytes(MIB)
}

fn source(bytes: &[u8]) -> Arc<Memory> {
    Arc::new(Memory::new("hostile", bytes.to_vec()))
}

fn open(bytes: &[u8]) -> Result<File, Error> {
    File::from_source(source(bytes), ReadOptions::new().with_limits(limits()))
}

/// A page as stored in the file.
struct Page {
    encoding: Encoding,
    codec: Codec,
    flags: u8,
    rows: u32,
    nulls: u32,
    raw_bytes: u32,
    stored: Vec<u8>,
}

impl Page {
    fn plain(rows: u32, payload: &[u8]) -> Self {
        let raw_bytes = payload.len() as u32;
        let stored = payload.to_vec();
        Self { encoding: Encoding::Plain, codec: Codec::None, flags: 0, rows, nulls: 0, raw_bytes, stored }
    }

    fn encoded(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }
}

/// A file with these pages of one column and valid checksums.
fn file(field: Field, groups: &[Vec<Page>], runs: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0; 64];
    let record = |header: PageHeader, stored: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(stored);
    };
    let mark = field.kind == Type::List;
    let header = |kind, page: &Page, first_row| PageHeader {
        kind,
        encoding: page.encoding,
        codec: page.codec,
        marked: mark,
        flags: page.flags,
        values: page.rows,
        raw_bytes: page.raw_bytes,
        stored_bytes: page.stored.len() as u32,
        nulls: page.nulls,
        first_row,
        payload_crc: crc32c(&page.stored),
    };
    let mut entries = Vec::new();
    let mut rows = 0;
    for pages in groups {
        let offset = out.len() as u64;
        let mut in_group = 0u64;
        for page in pages {
            record(header(Kind::Data, page, in_group as u32), &page.stored, &mut out);
            in_group += u64::from(page.rows);
        }
        let sum = |of: fn(&Page) -> u64| pages.iter().map(of).sum();
        let chunk = Chunk {
            offset,
            stored_bytes: sum(|page| page.stored.len() as u64),
            raw_bytes: sum(|page| page.raw_bytes.into()),
            values: in_group,
            nulls: sum(|page| page.nulls.into()),
            pages: pages.len() as u64,
            encoding: pages[0].encoding,
            codec: pages[0].codec,
            zone: None,
            bloom: None,
            page_index: None,
        };
        let total_bytes = out.len() as u64 - offset;
        entries.push(Group {
            first_row: rows,
            rows: in_group,
            total_bytes,
            bounds: None,
            chunks: vec![chunk],
        });
        rows += in_group;
    }
    let mut blob = BlobColumn { column: 0, dictionary: 0, codec: Codec::Zstd, runs: Vec::new() };
    for (values, payload) in runs {
        let stored = compressed(payload);
        let page = Page {
            codec: Codec::Zstd,
            raw_bytes: payload.len() as u32,
            stored,
            ..Page::plain(*values as u32, &[])
        };
        let (offset, stored_bytes) = (out.len() as u64, page.stored.len() as u64);
        blob.runs.push(Run { offset, stored_bytes, raw_bytes: payload.len() as u64, values: *values });
        record(PageHeader { marked: false, ..header(Kind::Run, &page, 0) }, &page.stored, &mut out);
    }
    let footer = Footer {
        blobs: if field.kind == Type::BlobRef { vec![blob] } else { Vec::new() },
        schema: Arc::new(Schema::new(vec![field]).unwrap()),
        groups: entries,
        dictionaries: Vec::new(),
        indexes: Vec::new(),
        inverted: None,
        access: None,
        positions: None,
        page_headers: None,
        pairs: Vec::new(),
        statistics: Statistics { rows, raw_bytes: 0, stored_bytes: 0 },
        features: Some(Features { requires: requires::LIST, offers: 1, resources: Vec::new() }),
        unknown: Vec::new(),
    };
    close(out, &footer.to_bytes(), rows)
}

/// Adds header and trailer.
fn close(mut out: Vec<u8>, footer: &[u8], rows: u64) -> Vec<u8> {
    let header = Header {
        major: 1,
        minor: 1,
        flags: 0,
        checksum: 1,
        default_codec: Codec::Zstd,
        page_size_hint: 0,
        uuid: [0; 16],
        rows,
        footer_offset: out.len() as u64,
        created_millis: 0,
        creator_id: 0,
    };
    out[..64].copy_from_slice(&header.to_bytes());
    out.extend_from_slice(footer);
    out.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32c(footer).to_le_bytes());
    out.extend_from_slice(b"TAT1");
    out
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    zstd::encode(bytes, 3, &mut out).unwrap();
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// One run of equal values: width, control, value.
fn repeated(rows: u32) -> Vec<u8> {
    [vec![1], varint(u64::from(rows) << 1 | 1), vec![1]].concat()
}

/// Runs every read operation on a file; returns the class of the last error.
fn everything(bytes: &[u8]) -> Option<Class> {
    let mut class = None;
    let mut rows = 0;
    let mut record = |error: &Error| class = Some(error.class());
    match open(bytes) {
        Ok(file) => {
            rows = file.rows();
            _ = file.read_columns(&[0]).inspect_err(&mut record);
            if file.rows() > 0 {
                _ = file.take(&[0], &[0]);
            }
            _ = file.scan().with_batch_rows(100).batches().next();
            _ = file.outline(OutlineOptions::new());
        }
        Err(error) => record(&error),
    }
    for deep in [false, true] {
        let options = VerifyOptions::default().with_limits(limits()).with_deep(deep);
        // Damage is a finding of the report; only a limit ends the verification.
        if let Err(error) = verify(source(bytes), options, &NoProgress) {
            assert_eq!(error.class(), Class::Limit, "{error}");
        }
    }
    // Rows that can be read are rewritten, and a writer keeps a row group in memory.
    if rows != 0 && rows != u64::from(u32::MAX) {
        return class;
    }
    let schema = Schema::new(vec![Field::new("a", Type::BlobRef)]).unwrap();
    let options = SalvageOptions::new()
        .with_read(ReadOptions::new().with_limits(limits()))
        .with_schema(schema)
        .with_writer(WriterOptions::new().with_level(1));
    _ = salvage(source(bytes), Cursor::new(Vec::new()), options, &NoProgress);
    class
}

/// Memory beyond the file itself, which is copied a few times.
fn measured(name: &str, bytes: &[u8]) -> Option<Class> {
    let (class, stats): (_, AllocStats) = measure(|| everything(bytes));
    let max = 24 * MIB as usize + 8 * bytes.len();
    assert!(stats.peak_bytes <= max, "{name}: {} bytes at a time", stats.peak_bytes);
    assert!(stats.largest_bytes <= max, "{name}: {} bytes at once", stats.largest_bytes);
    class
}

#[test]
fn hostile_files_stay_within_the_limits() {
    let _exclusive = exclusive();
    // Decompression contexts are kept per thread: not part of the measurement.
    let warm = file(Field::new("a", Type::Int32), &[vec![Page::plain(1, &[0; 4])]], &[]);
    everything(&warm);

    let page = |rows| Page::plain(rows, &repeated(rows)).encoded(Encoding::Rle);
    let bytes = file(Field::new("a", Type::UInt8), &[vec![page(u32::MAX)]], &[]);
    assert_eq!(measured("2³² equal rows in one page", &bytes), Some(Class::Limit));

    // Each page is below the limit, but their sum is not: in one group, and in many.
    let pages = (0..8).map(|_| page(1 << 20)).collect();
    let bytes = file(Field::new("a", Type::UInt8), &[pages], &[]);
    assert_eq!(measured("equal rows in many pages", &bytes), Some(Class::Limit));
    let groups: Vec<Vec<Page>> = (0..8).map(|_| vec![page(1 << 20)]).collect();
    let bytes = file(Field::new("a", Type::UInt8), &groups, &[]);
    assert_eq!(measured("equal rows in many groups", &bytes), Some(Class::Limit));

    // Payloads with and without a declared size.
    let zeros = vec![0; 64 << 20];
    let bomb = |raw_bytes: u32| Page {
        codec: Codec::Zstd,
        raw_bytes,
        stored: compressed(&zeros),
        ..Page::plain(16 << 20, &[])
    };
    let bytes = file(Field::new("a", Type::Int32), &[vec![bomb(64 << 20)]], &[]);
    assert_eq!(measured("a payload of 64 MiB", &bytes), Some(Class::Limit));
    let inconsistent = Page { rows: 4, ..bomb(16) };
    let bytes = file(Field::new("a", Type::Int32), &[vec![inconsistent]], &[]);
    assert_eq!(measured("a payload that is longer than declared", &bytes), Some(Class::Corrupt));
    // Equal strings of a megabyte each, in pages of a few bytes.
    let text = [varint(1_000_000), vec![b'a'; 1_000_000]].concat();
    let strings = || Page {
        codec: Codec::Zstd,
        raw_bytes: text.len() as u32,
        stored: compressed(&text),
        ..Page::plain(1, &[])
    };
    let bytes = file(Field::new("a", Type::String), &[(0..100).map(|_| strings()).collect()], &[]);
    assert_eq!(measured("strings of 100 MB", &bytes), Some(Class::Limit));

    // One list of 2²⁴ elements, and more.
    for elements in [1 << 24, u32::MAX] {
        let lengths = [vec![32], varint(3), elements.to_le_bytes().to_vec()].concat();
        let list = [
            vec![1],
            varint(lengths.len() as u64),
            lengths,
            varint(elements.into()),
            vec![0],
            repeated(elements),
        ]
        .concat();
        let list = Page::plain(1, &list).encoded(Encoding::Rle);
        let bytes = file(Field::list("a", Type::Int64), &[vec![list]], &[]);
        let refused = if elements == u32::MAX { Class::Malformed } else { Class::Limit };
        assert_eq!(measured("a list of many elements", &bytes), Some(refused));
    }

    // Runs of empty values: one byte each in the file, one view each in memory.
    let count = 1_000_000;
    let run = [varint(count), vec![0; count as usize]].concat();
    let rows = Page::plain(count as u32, &[]);
    let bytes = file(Field::new("a", Type::BlobRef), &[vec![rows]], &[(count, run)]);
    assert_eq!(measured("a run of empty values", &bytes), Some(Class::Limit));
    let rows = Page::plain(u32::MAX, &[]);
    let bytes = file(Field::new("a", Type::BlobRef), &[vec![rows]], &[(u64::from(u32::MAX), vec![0])]);
    assert_eq!(measured("2³² blobs that are not there", &bytes), Some(Class::Limit));
    let nulls = Page {
        flags: page_flags::NULLS,
        rows: u32::MAX,
        nulls: u32::MAX,
        codec: Codec::Zstd,
        raw_bytes: 1 << 29,
        stored: compressed(&zeros),
        ..Page::plain(0, &[])
    };
    let bytes = file(Field::new("a", Type::Int8).with_nulls(), &[vec![nulls]], &[]);
    assert_eq!(measured("2³² nulls", &bytes), Some(Class::Limit));

    // Counts beyond any limit.
    for tag in 1..=8 {
        for before in [&[][..], &[1], &[0, 0, 0, 0], &[0, 0, 0]] {
            let body = [before.to_vec(), varint(1 << 62), vec![0; 8]].concat();
            let schema = [vec![1, 1], b"a".to_vec(), vec![3, 0, 0]].concat();
            let mut footer = vec![0];
            for (tag, body) in [(1, &schema), (tag, &body)] {
                footer.extend(varint(tag));
                footer.extend(varint(body.len() as u64));
                footer.extend_from_slice(body);
            }
            measured("a count of 2⁶²", &close(vec![0; 64], &footer, 0));
        }
    }
    // A footer of unknown sections only.
    let mut footer = vec![0, 1, 6, 1, 1, b'a', 3, 0, 0];
    for tag in 30_000..330_000 {
        footer.extend(varint(tag));
        footer.push(0);
    }
    let bytes = close(vec![0; 64], &footer, 0);
    assert_eq!(measured("300,000 unknown sections", &bytes), None);
    assert_eq!(open(&bytes).unwrap().footer().unknown.len(), 300_000);

    ten_thousand_columns_open_cheaply();
}

/// A file of ten thousand columns: opening takes some hundred bytes for each, and reads no page.
fn ten_thousand_columns_open_cheaply() {
    let count = 10_000;
    let fields = (0..count).map(|n| Field::new(format!("column {n}"), Type::Int32)).collect();
    let mut writer = Writer::new(
        Cursor::new(Vec::new()),
        Schema::new(fields).unwrap(),
        WriterOptions::new().with_level(1),
    )
    .unwrap();
    writer.append(&vec![Column::new(Values::Int32(vec![1, 2, 3])); count]).unwrap();
    let bytes = Bytes::from(writer.finish().unwrap().output);
    let source = Arc::new(Memory::new("wide", bytes));
    let (file, stats) = measure(|| File::from_source(source, ReadOptions::new()).unwrap());
    assert_eq!(file.schema().len(), count);
    assert!(stats.peak_bytes < 1000 * count, "{} bytes for each column", stats.peak_bytes / count);
    assert_eq!(file.read_column(count - 1).unwrap().values, Values::Int32(vec![1, 2, 3]));
}
