//! Writes the seeds of `corpus/tatami`, `corpus/rows` and `corpus/manifest`: small files of every kind, some damaged ones,
//! choices of rows to write, and manifests of collections.
//!
//! Deterministic: the seeds are the same in every run.
#![expect(clippy::disallowed_methods, reason = "the programs here are about real files")]

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use tercet_core::checksum::crc32c;
use tercet_core::source::Memory;
use tercet_tatami::collection::{Member, Record};
use tercet_tatami::format::Codec;
use tercet_tatami::{
    Bitmap, Column, Field, File, Lists, Provenance, ReadOptions, Schema, Type, Values, Writer, WriterOptions,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (dir, seeds) in [("tatami", files()?), ("rows", rows()), ("manifest", manifests()?)] {
        fs::create_dir_all(corpus.join(dir))?;
        for (name, bytes) in seeds {
            fs::write(corpus.join(dir).join(name), bytes)?;
        }
    }
    Ok(())
}

type Seeds = Vec<(String, Vec<u8>)>;

fn write(fields: Vec<Field>, columns: &[Column], options: WriterOptions) -> Outcome<Vec<u8>> {
    let options = options.with_provenance(Provenance::Off);
    let mut writer = Writer::new(Cursor::new(Vec::new()), Schema::new(fields)?, options)?;
    writer.append(columns)?;
    Ok(writer.finish()?.output)
}

const COUNT: u16 = 24;

fn strings(make: impl Fn(u16) -> String) -> Column {
    Column::new(Values::Bytes((0..COUNT).map(make).collect()))
}

fn some() -> Bitmap {
    (0..COUNT).map(|n| n % 7 != 3).collect()
}

/// Key, city, body and tags: most features of a file. Without lists for readers that do not support them.
fn mixed(lists: bool, options: WriterOptions) -> Outcome<Vec<u8>> {
    let mut fields = vec![
        Field::new("key", Type::UInt16).with_sort_key(),
        Field::new("city", Type::String).with_bloom().with_nulls(),
        Field::new("body", Type::BlobRef).with_nulls(),
    ];
    let mut columns = vec![
        Column::new(Values::UInt16((0..COUNT).map(|n| n * 3).collect())),
        strings(|n| ["Ulm", "Bonn", "Jena"][usize::from(n % 3)].to_owned()).with_validity(some()),
        strings(|n| format!("<p>{n}</p>").repeat(3)).with_validity(some()),
    ];
    if lists {
        fields.push(Field::list("tags", Type::Int32).with_nulls());
        let elements = Column::new(Values::Int32((0..i32::from(COUNT) * 2).collect()));
        let lists = Lists { ends: (1..=u64::from(COUNT)).map(|n| n * 2).collect(), elements };
        columns.push(Column::new(Values::List(Box::new(lists))).with_validity(some()));
    }
    let options =
        options.with_page_max_values(10).with_blob_run_target_bytes(300).with_row_group_max_rows(16);
    write(fields, &columns, options)
}

fn files() -> Outcome<Seeds> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| seeds.push((format!("{name}.tatami"), bytes));
    let one =
        |values| write(vec![Field::new("n", Type::Int32)], &[Column::new(values)], WriterOptions::new());
    add("one-int", one(Values::Int32(vec![1, 2, 3]))?);
    add("equal-ints", one(Values::Int32(vec![7; 5000]))?);
    add("empty", one(Values::Int32(Vec::new()))?);
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        add(&format!("mixed-{codec}"), mixed(true, WriterOptions::new().with_codec(codec))?);
    }
    add("mixed-interop", mixed(false, WriterOptions::interop())?);
    // Without the feature section and the checksums of record headers, as other writers write it.
    add("mixed-foreign", without_tercet_fields(mixed(false, WriterOptions::interop())?));
    for (name, codec) in [("none", Codec::None), ("zstd", Codec::Zstd)] {
        add(&format!("types-{name}"), every_type(codec)?);
    }
    add("strings", {
        let urls = strings(|n| format!("https://example.org/{}/item-{n}", n * 7 % 5));
        write(vec![Field::new("url", Type::String)], &[urls], WriterOptions::new().with_codec(Codec::None))?
    });
    let good = mixed(true, WriterOptions::new().with_codec(Codec::None))?;
    add("bad-cut", good[..good.len() - 30].to_vec());
    add("bad-page", {
        let mut bytes = good.clone();
        bytes[64 + 33] ^= 0x10;
        bytes
    });
    add("bad-header", {
        let mut bytes = good;
        bytes[32] ^= 1;
        bytes
    });
    Ok(seeds)
}

/// A column of every type that a list can hold, and of lists of it.
fn every_type(codec: Codec) -> Outcome<Vec<u8>> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for kind in (0..14).filter_map(Type::from_id) {
        let values = match kind {
            Type::Bool => Values::Bool(vec![true, false, true]),
            Type::Int8 => Values::Int8(vec![-1, 0, 1]),
            Type::Int16 => Values::Int16(vec![-300, 0, 300]),
            Type::Int32 => Values::Int32(vec![i32::MIN, 0, 5]),
            Type::Int64 | Type::TimestampMicros => Values::Int64(vec![i64::MIN, 0, i64::MAX]),
            Type::UInt8 => Values::UInt8(vec![0, 1, 255]),
            Type::UInt16 => Values::UInt16(vec![0, 300, 65535]),
            Type::UInt32 => Values::UInt32(vec![7, 7, 7]),
            Type::UInt64 => Values::UInt64(vec![1 << 40, 2 << 40, 3 << 40]),
            Type::Float32 => Values::Float32(vec![1.5, f32::NAN, -0.0]),
            Type::Float64 => Values::Float64(vec![0.1, f64::INFINITY, 0.1]),
            Type::String | Type::Bytes | Type::BlobRef | Type::List => {
                Values::Bytes(["", "é", "a longer text"].iter().collect())
            }
        };
        fields.push(Field::new(kind.name(), kind));
        columns.push(Column::new(values.clone()));
        fields.push(Field::list(format!("list of {kind}"), kind));
        let elements = Column::new(values).with_validity([true, false, true].into_iter().collect());
        columns.push(Column::new(Values::List(Box::new(Lists { ends: vec![2, 2, 3], elements }))));
    }
    write(fields, &columns, WriterOptions::new().with_codec(codec))
}

/// Removes the feature section from the end of the footer, and the checksums from the record headers.
fn without_tercet_fields(mut bytes: Vec<u8>) -> Vec<u8> {
    const TAG: [u8; 3] = [0xc3, 0xa8, 0x01];
    let word =
        |bytes: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index])) as usize;
    let trailer = bytes.len() - 12;
    let footer = trailer - word(&bytes, trailer);
    let Some(section) = bytes[footer..trailer].windows(3).rposition(|window| window == TAG) else {
        return bytes;
    };
    let mut at = 64;
    while at < footer {
        bytes[at + 28..at + 32].fill(0);
        at += 32 + word(&bytes, at + 12);
    }
    bytes.truncate(footer + section);
    let crc = crc32c(&bytes[footer..]);
    bytes.extend_from_slice(&u32::try_from(section).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(b"TAT1");
    bytes
}

/// Choices for every type, alone and in a list: see `Choices` of the target.
/// Collection logs: valid, torn, damaged in the middle, with an unknown record kind and with a path outside.
fn manifests() -> Outcome<Seeds> {
    let keys = |from: i64| Column::new(Values::Int64((from..from + 5).collect()));
    let fields = || vec![Field::new("key", Type::Int64).with_sort_key()];
    let member = |path: &str, from: i64| -> Outcome<Member> {
        let bytes = write(fields(), &[keys(from)], WriterOptions::new())?;
        let file = File::from_source(Arc::new(Memory::new(path, bytes)), ReadOptions::new())?;
        Ok(Member::describe(path, &file))
    };
    let (a, b) = (member("a.tatami", 0)?, member("2026/b.tatami", 100)?);
    let log = |records: &[Record]| {
        let mut out = b"TMAN\x01".to_vec();
        for record in records {
            record.put(&mut out);
        }
        out
    };
    let add = |member: &Member| Record::Add(Box::new(member.clone()));
    let whole = log(&[add(&a), add(&b), Record::SetTier(a.id, 2), Record::Remove(b.id), add(&b)]);
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    let mut unknown = log(&[add(&a)]);
    let start = unknown.len();
    unknown.extend([77, 3, 1, 2, 3]);
    let crc = crc32c(&unknown[start..]);
    unknown.extend(crc.to_le_bytes());
    let outside = log(&[add(&member("../a.tatami", 0)?), add(&member("/a.tatami", 0)?)]);
    let torn = whole[..whole.len() - 7].to_vec();
    Ok(vec![
        ("empty".to_owned(), log(&[])),
        ("short".to_owned(), b"TM".to_vec()),
        ("whole".to_owned(), whole),
        ("torn".to_owned(), torn),
        ("damaged".to_owned(), damaged),
        ("unknown".to_owned(), unknown),
        ("outside".to_owned(), outside),
    ])
}

fn rows() -> Seeds {
    let mut seeds = Vec::new();
    for kind in 0..16 {
        for first in [0x00, 0x01, 0x42, 0x80] {
            let head = [first, kind, 9, 20, 30, 0, kind, 7, 60, 25];
            let body = (0..240_u8).map(|n| n.wrapping_mul(29) % 41);
            seeds.push((format!("type-{kind}-{first:02x}"), head.into_iter().chain(body).collect()));
        }
    }
    let head = [0x00, 6, 39, 200, 9, 3, 11, 7, 8, 4, 1, 15, 1, 14, 1, 11, 250, 90];
    seeds.push(("mixed".to_owned(), head.into_iter().chain((0..=255).cycle().take(2000)).collect()));
    seeds
}
