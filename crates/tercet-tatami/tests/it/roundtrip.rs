//! Round trips of every type, encoding, codec, nullability and page size, compared with plain vectors.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_tatami::format::{Codec, Encoding};
use tercet_tatami::{
    Bitmap, Column, Field, File, Lists, Provenance, ReadOptions, Schema, Type, Values, VerifyOptions, Writer,
    WriterOptions, verify,
};

/// Numbers with a distribution that suits one of the encodings.
fn numbers(shape: u8, rows: usize, seed: u64) -> Vec<u64> {
    let mut state = seed | 1;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..rows as u64)
        .map(|row| match shape {
            0 => seed,
            1 => row,
            2 => row / 37 % 5,
            3 => random() % 16,
            4 => random(),
            5 => {
                if random().is_multiple_of(50) {
                    random()
                } else {
                    random() % 8
                }
            }
            6 => (row * 3) ^ (random() % 4),
            _ => (random() << 40) ^ random(),
        })
        .collect()
}

fn cut<T>(numbers: &[u64], make: impl Fn(u64) -> T) -> Vec<T> {
    numbers.iter().map(|number| make(*number)).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "any bits will do"
)]
fn values(kind: Type, numbers: &[u64]) -> Values {
    match kind {
        Type::Bool => Values::Bool(cut(numbers, |n| n % 3 == 0)),
        Type::Int8 => Values::Int8(cut(numbers, |n| n as i8)),
        Type::Int16 => Values::Int16(cut(numbers, |n| n as i16)),
        Type::Int32 => Values::Int32(cut(numbers, |n| n as i32)),
        Type::Int64 | Type::TimestampMicros => Values::Int64(cut(numbers, |n| n as i64)),
        Type::UInt8 => Values::UInt8(cut(numbers, |n| n as u8)),
        Type::UInt16 => Values::UInt16(cut(numbers, |n| n as u16)),
        Type::UInt32 => Values::UInt32(cut(numbers, |n| n as u32)),
        Type::UInt64 => Values::UInt64(cut(numbers, |n| n)),
        Type::Float32 => Values::Float32(cut(numbers, |n| match n % 41 {
            7 => f32::NAN,
            8 => -0.0,
            9 => f32::INFINITY,
            _ => n as f32 / 8.0,
        })),
        Type::Float64 => Values::Float64(cut(numbers, |n| match n % 41 {
            7 => f64::from_bits(0x7ff8_0000_0000_0123),
            8 => -0.0,
            9 => f64::NEG_INFINITY,
            _ => n as f64 / 8.0,
        })),
        Type::String => Values::Bytes(numbers.iter().map(|n| text(*n)).collect()),
        Type::Bytes | Type::BlobRef => {
            let bytes = |n: u64| {
                let part = n.to_le_bytes();
                part.iter().copied().cycle().take((n % 23) as usize).collect::<Vec<u8>>()
            };
            Values::Bytes(numbers.iter().map(|n| bytes(*n)).collect())
        }
        Type::List => unreachable!("lists are made of elements"),
    }
}

fn text(n: u64) -> String {
    match n % 7 {
        0 => String::new(),
        1 => format!("https://example.org/path/{n}/index.html"),
        2 => format!("straße {}", n % 10),
        3 => "日本".repeat((n % 40) as usize),
        _ => format!("word{}", n % 100),
    }
}

fn validity(rows: usize, seed: u64, kind: u8) -> Option<Bitmap> {
    match kind {
        0 => None,
        1 => Some(Bitmap::filled(rows, false)),
        2 => Some(Bitmap::filled(rows, true)),
        _ => Some(numbers(3, rows, seed).into_iter().map(|n| n % 3 != 0).collect()),
    }
}

#[derive(Clone, Debug)]
struct Shape {
    kind: Type,
    list: bool,
    numbers: u8,
    nulls: u8,
    bloom: bool,
    seed: u64,
}

impl Shape {
    fn field(&self, index: usize) -> Field {
        let name = format!("c{index}");
        let mut field = if self.list { Field::list(name, self.kind) } else { Field::new(name, self.kind) };
        if self.nulls > 0 {
            field = field.with_nulls();
        }
        if self.bloom {
            field = field.with_bloom();
        }
        field
    }

    fn column(&self, rows: usize) -> Column {
        let valid = validity(rows, self.seed ^ 5, self.nulls);
        if !self.list {
            let mut column = Column::new(values(self.kind, &numbers(self.numbers, rows, self.seed)));
            column.validity = valid;
            return column;
        }
        let mut ends = Vec::new();
        let mut end = 0;
        for (row, n) in numbers(3, rows, self.seed ^ 9).into_iter().enumerate() {
            if valid.as_ref().is_none_or(|valid| valid.get(row)) {
                end += n % 5;
            }
            ends.push(end);
        }
        let count = usize::try_from(end).unwrap();
        let mut elements = Column::new(values(self.kind, &numbers(self.numbers, count, self.seed)));
        elements.validity = validity(count, self.seed ^ 3, (self.seed % 4) as u8);
        let mut column = Column::new(Values::List(Box::new(Lists { ends, elements })));
        column.validity = valid;
        column
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let kinds = prop::sample::select(tercet_tatami::schema::TYPES.to_vec());
    (kinds, any::<bool>(), 0u8..8, 0u8..4, any::<bool>(), any::<u64>()).prop_map(
        |(kind, list, shape, nulls, bloom, seed)| {
            let list = (list && kind != Type::BlobRef) || kind == Type::List;
            let kind = if kind == Type::List { Type::Int32 } else { kind };
            Shape { kind, list, numbers: shape, nulls, bloom, seed: seed >> 8 }
        },
    )
}

fn options() -> impl Strategy<Value = WriterOptions> {
    let codecs = prop::sample::select(vec![Codec::None, Codec::Lz4, Codec::Zstd]);
    (codecs, any::<bool>(), 1u32..300, 20u64..400, 16u32..5000, any::<bool>(), 1u64..2000).prop_map(
        |(codec, interop, page_rows, group_rows, page_bytes, bounds, run_bytes)| {
            let options = if interop { WriterOptions::interop() } else { WriterOptions::new() };
            let options = options
                .with_page_max_values(page_rows)
                .with_row_group_max_rows(group_rows)
                .with_blob_run_target_bytes(run_bytes);
            if interop {
                options
            } else {
                options.with_codec(codec).with_page_max_bytes(page_bytes).with_inline_bounds(bounds)
            }
        },
    )
}

fn write(fields: Vec<Field>, columns: &[Column], options: &WriterOptions, batch: usize) -> Vec<u8> {
    let schema = Schema::new(fields).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options.clone()).unwrap();
    let rows = columns[0].len();
    let mut at = 0;
    while at < rows {
        let end = rows.min(at + batch);
        let part: Vec<Column> = columns
            .iter()
            .map(|column| {
                let mut part = column.take(&[]);
                part.extend_from(column, at, end);
                part
            })
            .collect();
        writer.append(&part).unwrap();
        at = end;
    }
    writer.finish().unwrap().output
}

fn open(bytes: &[u8]) -> File {
    File::from_source(Arc::new(Memory::new("written", bytes.to_vec())), ReadOptions::new()).unwrap()
}

/// A row by its bits, so that NaN equals itself; lists element by element.
fn bits(column: &Column, row: usize) -> Option<Vec<Option<Vec<u8>>>> {
    if !column.is_present(row) {
        return None;
    }
    match &column.values {
        Values::List(lists) => {
            let elements = lists.range(row).map(|at| lists.elements.scalar(at).map(|value| value.to_bytes()));
            Some(elements.collect())
        }
        _ => Some(vec![column.scalar(row).map(|value| value.to_bytes())]),
    }
}

fn assert_same(found: &Column, expected: &Column, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for row in 0..found.len() {
        assert_eq!(bits(found, row), bits(expected, row), "{what}, row {row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(150)))]

    #[test]
    fn every_row_round_trips(
        shapes in prop::collection::vec(shapes(), 1..4),
        options in options(),
        rows in 0usize..700,
        batch in 1usize..400,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let interop = options.profile == tercet_tatami::Profile::Interop;
        let shapes: Vec<Shape> =
            shapes.into_iter().map(|shape| Shape { list: shape.list && !interop, ..shape }).collect();
        let fields: Vec<Field> = shapes.iter().enumerate().map(|(index, shape)| shape.field(index)).collect();
        let columns: Vec<Column> = shapes.iter().map(|shape| shape.column(rows)).collect();
        let bytes = write(fields, &columns, &options, batch);
        let file = open(&bytes);
        if interop {
            prop_assert_eq!(file.required_features(), 0);
        }
        let all: Vec<usize> = (0..columns.len()).collect();
        for (index, column) in file.read_columns(&all).unwrap().iter().enumerate() {
            assert_same(column, &columns[index], "whole");
        }
        let mut at = 0;
        for part in file.scan().with_batch_rows(97).batches() {
            let part = part.unwrap().columns;
            for (index, column) in part.iter().enumerate() {
                for row in 0..column.len() {
                    assert_eq!(bits(column, row), bits(&columns[index], at + row), "scanned");
                }
            }
            at += part[0].len();
        }
        prop_assert_eq!(at, rows);
        if rows > 0 {
            let wanted: Vec<u64> = picks.iter().map(|pick| pick.index(rows) as u64).collect();
            for (index, column) in file.take(&wanted, &all).unwrap().iter().enumerate() {
                for (position, row) in wanted.iter().enumerate() {
                    assert_eq!(bits(column, position), bits(&columns[index], usize::try_from(*row).unwrap()), "taken");
                }
            }
        }
        let source = Arc::new(Memory::new("written", bytes));
        let report = verify(source, VerifyOptions::default().with_deep(true), &NoProgress).unwrap();
        prop_assert!(report.ok, "{:#?}", report.findings);
        prop_assert!(report.findings.iter().all(|finding| finding.severity == tercet_core::Severity::Info), "{:#?}", report.findings);
    }

    #[test]
    fn every_key_is_found(
        mut keys in prop::collection::vec(-500i64..500, 1..600),
        options in options(),
        nulls in any::<bool>(),
    ) {
        keys.sort_unstable();
        let mut column = Column::new(Values::Int64(keys.clone()));
        let mut field = Field::new("key", Type::Int64).with_sort_key();
        if nulls {
            let valid: Bitmap = (0..keys.len()).map(|row| row % 5 != 2).collect();
            field = field.with_nulls();
            column.validity = Some(valid);
        }
        let bytes = write(vec![field], std::slice::from_ref(&column), &options, 1000);
        let file = open(&bytes);
        for wanted in -510..510 {
            let expected = (0..keys.len()).find(|row| keys[*row] == wanted && column.is_present(*row));
            let found = file.lookup(&tercet_tatami::Scalar::Int64(wanted)).unwrap();
            prop_assert_eq!(found.map(|found| found.row), expected.map(|row| row as u64), "key {}", wanted);
        }
    }
}

#[test]
fn every_encoding_and_codec_is_covered() {
    let mut seen: BTreeSet<(Numbered, Encoding, Codec)> = BTreeSet::new();
    for kind in tercet_tatami::schema::TYPES.into_iter().filter(|kind| *kind != Type::List) {
        for (shape, codec, page_rows) in (0..8)
            .flat_map(|shape| [Codec::None, Codec::Lz4, Codec::Zstd].map(move |codec| (shape, codec)))
            .flat_map(|(shape, codec)| [40, 300].map(move |rows| (shape, codec, rows)))
        {
            let shape = Shape { kind, list: false, numbers: shape, nulls: 0, bloom: false, seed: 77 };
            let column = shape.column(2000);
            let options = WriterOptions::new().with_codec(codec).with_page_max_values(page_rows);
            let bytes = write(vec![shape.field(0)], std::slice::from_ref(&column), &options, 5000);
            let file = open(&bytes);
            assert_same(&file.read_column(0).unwrap(), &column, "whole");
            for group in 0..file.group_count() {
                for page in file.pages(group, 0).unwrap() {
                    seen.insert((Numbered(kind), page.header.encoding, page.header.codec));
                }
            }
        }
    }
    let met = |encoding| seen.iter().any(|(_, found, _)| *found == encoding);
    for encoding in [
        Encoding::Plain,
        Encoding::Rle,
        Encoding::Dictionary,
        Encoding::BitpackFor,
        Encoding::Delta,
        Encoding::PforDelta,
        Encoding::Fsst,
        Encoding::Bitmap,
    ] {
        assert!(met(encoding), "{encoding} is never chosen: {seen:?}");
    }
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        assert!(seen.iter().any(|(_, _, found)| *found == codec), "{codec} is never chosen");
    }
}

/// Types in the order of their numbers, for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered(Type);

impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id().cmp(&other.0.id())
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let shapes: Vec<Shape> = tercet_tatami::schema::TYPES
        .into_iter()
        .filter(|kind| *kind != Type::List)
        .map(|kind| Shape { kind, list: false, numbers: 5, nulls: 3, bloom: true, seed: 3 })
        .collect();
    let fields: Vec<Field> = shapes.iter().enumerate().map(|(index, shape)| shape.field(index)).collect();
    let columns: Vec<Column> = shapes.iter().map(|shape| shape.column(5000)).collect();
    let options = WriterOptions::new().with_page_max_values(200).with_row_group_max_rows(900);
    let options = options.with_provenance(Provenance::Off);
    let make = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| write(fields.clone(), &columns, &options, 777))
    };
    assert!(make(1) == make(8));
}
