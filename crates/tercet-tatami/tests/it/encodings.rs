//! Choices of the writer: encodings, codecs and dictionaries for values of every type and shape, the metadata about
//! them, and equal bytes for any number of threads.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::slice;
use std::sync::Arc;

use crate::columns::{Noise, SHAPES, all_seen, column};
use crate::pages::Bytes;
use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::format::{Codec, Encoding, page_flags, requires};
use tercet_tatami::schema::TYPES;
use tercet_tatami::{
    Column, Field, Provenance, Schema, Type, Values, VerifyOptions, Writer, WriterOptions, verify,
};

fn part(column: &Column, from: usize, to: usize) -> Column {
    let mut out = column.take(&[]);
    out.extend_from(column, from, to);
    out
}

fn write(fields: &[Field], columns: &[Column], batch: usize, options: WriterOptions) -> Vec<u8> {
    let schema = Schema::new(fields.to_vec()).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options).unwrap();
    let rows = columns[0].len();
    for start in (0..rows).step_by(batch.max(1)) {
        let end = rows.min(start + batch.max(1));
        let batch: Vec<Column> = columns.iter().map(|column| part(column, start, end)).collect();
        writer.append(&batch).unwrap();
    }
    writer.finish().unwrap().output
}

/// A column of every type, lists of every element type included.
fn fields(nullable: bool, native: bool) -> Vec<Field> {
    let plain = TYPES.into_iter().filter(|kind| *kind != Type::List);
    let mut out: Vec<Field> = plain.clone().map(|kind| Field::new(kind.name(), kind).with_bloom()).collect();
    if native {
        let elements = plain.filter(|kind| *kind != Type::BlobRef);
        out.extend(elements.map(|kind| Field::list(format!("list of {kind}"), kind).with_bloom()));
    }
    out.into_iter().map(|field| if nullable { field.with_nulls() } else { field }).collect()
}

fn options(codec: Codec, native: bool) -> WriterOptions {
    let options = if native { WriterOptions::new() } else { WriterOptions::interop() };
    options.with_codec(codec)
}

/// The features that pages and runs of a file need. Every page that other readers would misread is marked.
fn needed(made: &Bytes) -> u64 {
    let mut all = 0;
    for (column, field) in made.file.schema().fields().iter().enumerate() {
        for page in made.column_pages(column) {
            let header = page.header;
            let by_encoding = match header.encoding {
                Encoding::Dictionary => requires::DICTIONARY,
                Encoding::Fsst => requires::FSST,
                Encoding::Plain => 0,
                _ if field.scalar().is_float() => requires::FLOAT,
                _ => 0,
            };
            let list = if field.kind == Type::List { requires::LIST } else { 0 };
            let split = if header.has(page_flags::SPLIT) { requires::FLOAT } else { 0 };
            let (by_codec, bounds) = match header.codec {
                Codec::Lz4 => (requires::LZ4, 0),
                Codec::ZstdDict => (requires::ZSTD_DICT, 0),
                Codec::None if header.has(page_flags::BOUNDS) => (0, requires::BOUNDS),
                _ => (0, 0),
            };
            let strange = by_encoding | list | split | bounds;
            assert_eq!(header.marked, strange != 0 && by_codec == 0, "{header:?}");
            all |= strange | by_codec;
        }
    }
    for blob in &made.file.footer().blobs {
        if blob.codec == Codec::Lz4 && !blob.runs.is_empty() {
            all |= requires::LZ4;
        }
        if let Some(index) = blob.dictionary.checked_sub(1) {
            let entry = made.file.footer().dictionaries[usize::try_from(index).unwrap()];
            if made.record(entry.offset).header.encoding.id() == 1 {
                all |= requires::TRAINED;
            }
        }
    }
    all
}

fn check(fields: &[Field], columns: &[Column], made: &Bytes, what: &str) {
    let all: Vec<usize> = (0..fields.len()).collect();
    let back = made.file.read_columns(&all).unwrap();
    for ((field, column), back) in fields.iter().zip(columns).zip(&back) {
        assert!(all_seen(column) == all_seen(back), "{what}: column `{}`", field.name);
    }
    assert_eq!(made.file.footer().features.as_ref().unwrap().requires, needed(made), "{what}");
    let source = Arc::new(Memory::new("test", made.bytes.clone()));
    // Also checks that bloom filters contain every value.
    let report = verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
    assert!(report.ok, "{what}: {:#?}", report.findings);
}

#[test]
fn every_type_round_trips_with_every_encoding() {
    let (mut encodings, mut codecs, mut splits) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut noise = Noise(7);
    for native in [true, false] {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            if codec == Codec::Lz4 && !native {
                continue;
            }
            for shape in SHAPES {
                for (nullable, page, rows) in [(false, 65_536, 700), (true, 100, 700), (true, 65_536, 300)] {
                    let fields = fields(nullable, native);
                    let columns: Vec<Column> =
                        fields.iter().map(|field| column(field, rows, shape, &mut noise)).collect();
                    let options = options(codec, native)
                        .with_page_max_values(page)
                        .with_row_group_max_rows(256)
                        .with_blob_run_target_bytes(500);
                    let made = Bytes::new(write(&fields, &columns, 211, options));
                    let what = format!("{codec} {shape:?} nullable {nullable} native {native} page {page}");
                    check(&fields, &columns, &made, &what);
                    for page in (0..fields.len()).flat_map(|column| made.column_pages(column)) {
                        encodings.insert(page.header.encoding);
                        codecs.insert(page.header.codec);
                        splits += usize::from(page.header.has(page_flags::SPLIT));
                    }
                }
            }
        }
    }
    let names: Vec<String> = encodings.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["plain", "rle", "dictionary", "bitpack_for", "delta", "groupvarint", "pfordelta", "fsst", "bitmap"]
    );
    assert_eq!(codecs.into_iter().collect::<Vec<_>>(), [Codec::None, Codec::Lz4, Codec::Zstd]);
    assert!(splits > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(48)))]

    #[test]
    fn any_file_round_trips(
        seed in any::<u64>(),
        native in any::<bool>(),
        nullable in any::<bool>(),
        rows in 0usize..400,
        batch in 1usize..300,
        group_rows in 1u64..300,
        group_bytes in 50u64..20_000,
        page in 1u32..200,
        page_bytes in prop_oneof![Just(0u32), 1u32..3000],
        dictionary in (0u32..100, 0u32..1000),
        run in 1u64..3000,
        codec in 0usize..3,
        bounds in any::<bool>(),
    ) {
        let codec = [Codec::Zstd, Codec::None, Codec::Lz4][if native { codec } else { codec % 2 }];
        let mut noise = Noise(seed);
        let fields = fields(nullable, native);
        let columns: Vec<Column> = fields
            .iter()
            .map(|field| {
                let shape = SHAPES[usize::try_from(noise.below(5)).unwrap()];
                column(field, rows, shape, &mut noise)
            })
            .collect();
        let options = options(codec, native)
            .with_row_group_max_rows(group_rows)
            .with_row_group_max_bytes(group_bytes)
            .with_page_max_values(page)
            .with_page_max_bytes(page_bytes)
            .with_dictionary_max_values(dictionary.0)
            .with_dictionary_max_bytes(dictionary.1)
            .with_blob_run_target_bytes(run)
            .with_inline_bounds(bounds);
        let made = Bytes::new(write(&fields, &columns, batch, options));
        prop_assert_eq!(made.file.rows(), rows as u64);
        check(&fields, &columns, &made, "a file");
    }
}

#[test]
fn threads_do_not_change_the_output() {
    let fields = fields(true, true);
    let mut noise = Noise(3);
    let columns: Vec<Column> = fields
        .iter()
        .zip(SHAPES.into_iter().cycle())
        .map(|(field, shape)| column(field, 3000, shape, &mut noise))
        .collect();
    let made = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = WriterOptions::new()
            .with_provenance(Provenance::Off)
            .with_page_max_values(128)
            .with_row_group_max_rows(1100)
            .with_blob_run_target_bytes(2000);
        pool.install(|| write(&fields, &columns, 900, options))
    };
    let one = made(1);
    assert!(one == made(8));
    assert!(one == made(3));
    assert!(one == made(1), "nor does the hash of the dictionaries");
}

#[test]
fn small_pages_share_a_dictionary() {
    let mut noise = Noise(11);
    let field = Field::new("s", Type::String);
    // Short pages of the same few strings in random order.
    let words: Vec<String> = (0..4000)
        .map(|row| {
            let mut text = format!("{row:05} ");
            for _ in 0..6 {
                text += ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
                    [usize::try_from(noise.below(6)).unwrap()];
                text.push(' ');
            }
            text
        })
        .collect();
    let words = Column::new(Values::Bytes(words.iter().collect()));
    let options = WriterOptions::new().with_page_max_values(20);
    let made = Bytes::new(write(slice::from_ref(&field), slice::from_ref(&words), 4000, options));
    check(&[field], &[words], &made, "words");
    let features = made.file.footer().features.clone().unwrap();
    assert_ne!(features.requires & requires::ZSTD_DICT, 0, "{features:?}");
}

#[test]
fn blobs_share_a_dictionary_if_smaller() {
    let mut noise = Noise(12);
    let field = Field::new("body", Type::BlobRef);
    let page = |noise: &mut Noise| {
        let words = (0..12).map(|_| noise.below(500).to_string());
        let text = words.collect::<Vec<_>>().join(" ");
        format!("<html><head><title>{}</title></head><body><p>{text}</p></body></html>", noise.next())
    };
    let pages: Vec<String> = (0..3000).map(|_| page(&mut noise)).collect();
    let column = Column::new(Values::Bytes(pages.iter().collect()));
    let made = |options: WriterOptions| {
        let bytes = write(slice::from_ref(&field), slice::from_ref(&column), 700, options);
        let made = Bytes::new(bytes);
        check(slice::from_ref(&field), slice::from_ref(&column), &made, "blobs");
        made
    };
    let short = |options: WriterOptions| options.with_blob_run_target_bytes(1000);
    let native = made(short(WriterOptions::new()));
    let interop = made(short(WriterOptions::interop()));
    for made in [&native, &interop] {
        let blob = &made.file.footer().blobs[0];
        assert_eq!((blob.codec, blob.dictionary), (Codec::ZstdDict, 1));
    }
    assert_eq!(interop.file.required_features(), 0, "others know samples of the content only");
    assert!(native.bytes.len() <= interop.bytes.len());
    let long = made(WriterOptions::new());
    let blob = &long.file.footer().blobs[0];
    assert_eq!((blob.codec, blob.dictionary), (Codec::Zstd, 0), "one run is its own dictionary");
    for codec in [Codec::None, Codec::Lz4] {
        let made = made(short(WriterOptions::new().with_codec(codec)));
        let blob = &made.file.footer().blobs[0];
        assert_eq!((blob.codec, blob.dictionary), (codec, 0));
    }
}

/// Records with common parts are stored in small runs, so that single ones are read fast.
#[test]
fn templated_blobs_are_stored_in_small_runs() {
    let mut noise = Noise(13);
    let field = Field::new("body", Type::BlobRef);
    let record = |id: u32, noise: &mut Noise| {
        let (user, mail, sku, cents) =
            (noise.below(9999), noise.below(99_999), noise.below(999_999), noise.below(10_000));
        let (day, hour, count) = (noise.below(28) + 1, noise.below(24), noise.below(5));
        format!(
            r#"{{"id": {id}, "type": "purchase", "user": {{"name": "user{user}", "country": "DE", "email": "u{mail}@example.org"}}, "items": [{{"sku": "SKU-{sku:06}", "price": {cents}, "qty": {count}}}], "status": "completed", "created_at": "2024-06-{day:02}T{hour:02}:00:00Z"}}"#
        )
    };
    let records: Vec<String> = (0..50_000).map(|id| record(id, &mut noise)).collect();
    let column = Column::new(Values::Bytes(records.iter().collect()));
    let bytes = write(slice::from_ref(&field), slice::from_ref(&column), 50_000, WriterOptions::new());
    let made = Bytes::new(bytes);
    check(slice::from_ref(&field), slice::from_ref(&column), &made, "records");
    let blob = &made.file.footer().blobs[0];
    assert_eq!((blob.codec, blob.dictionary), (Codec::ZstdDict, 1));
    assert!(blob.runs.len() > 1 && blob.runs.iter().all(|run| run.raw_bytes <= 300 << 10));
}

fn lines(name: &str) -> Option<Vec<String>> {
    let dir = tercet_testkit::golden("tatami")?.join("../../data/strings");
    let text = std::fs::read_to_string(dir.join(name)).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

fn encoding_of(values: &[String]) -> String {
    let column = Column::new(Values::Bytes(values.iter().collect()));
    let field = Field::new("s", Type::String);
    let made = Bytes::new(write(
        slice::from_ref(&field),
        slice::from_ref(&column),
        values.len(),
        WriterOptions::new(),
    ));
    check(&[field], &[column], &made, "text");
    let pages = made.column_pages(0);
    let names: BTreeSet<String> = pages.iter().map(|page| page.header.encoding.to_string()).collect();
    names.into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn strings_get_a_suitable_encoding() {
    if let Some(urls) = lines("urls2.txt") {
        assert_eq!(encoding_of(&urls), "fsst");
    }
    // Digests are shorter with FSST by about one percent only.
    let mut noise = Noise(8);
    let digests: Vec<String> =
        (0..40_000).map(|_| format!("{:016x}{:016x}", noise.next(), noise.next())).collect();
    assert_eq!(encoding_of(&digests), "fsst");
    if let Some(cities) = lines("city.txt") {
        // Each city occurs once in the list and many times in the table.
        let mut noise = Noise(5);
        let many: Vec<String> = (0..100_000)
            .map(|_| cities[usize::try_from(noise.below(cities.len() as u64)).unwrap()].clone())
            .collect();
        assert_eq!(encoding_of(&many), "dictionary");
    }
    let words =
        ["furiously", "pending", "deposits", "sleep", "quickly", "among", "the", "ironic", "theodolites"];
    let mut noise = Noise(6);
    let comments: Vec<String> = (0..30_000)
        .map(|_| {
            let picked = (0..5).map(|_| words[usize::try_from(noise.below(9)).unwrap()]);
            picked.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let column = Column::new(Values::Bytes(comments.iter().collect()));
    let field = [Field::new("s", Type::String)];
    let sizes = [WriterOptions::new(), WriterOptions::interop().with_page_max_bytes(1 << 20)]
        .map(|options| write(&field, slice::from_ref(&column), 30_000, options).len());
    assert!(sizes[0] * 100 <= sizes[1] * 101, "{sizes:?}");
}
