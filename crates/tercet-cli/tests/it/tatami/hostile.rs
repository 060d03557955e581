//! Small files that declare large contents, read with 1.5 GB of memory: errors, never an abort or a hang.

use std::process::Command;

use tercet::core::checksum::crc32c;
use tercet::tatami::format::{
    Chunk, Codec, Encoding, Features, Footer, Group, Header, Kind, PageHeader, Statistics, page_flags,
};
use tercet::tatami::{Field, Schema, Type};

use super::TestDir;
use crate::support::test_dir::{CommandOutput, TestDir as AnyDir};

/// The address space of the commands, in KiB.
const MEMORY: u32 = 1_500_000;

/// Far more than any of the commands needs, even on a busy machine; a hanging command ends with exit code 124.
const SECONDS: u32 = 100;

/// Whether a command found the file malformed or damaged, or beyond a limit; `verify` and `repair` exit with 1 for damage.
fn is_refused(result: &CommandOutput) -> bool {
    matches!(result.code, 1 | 4 | 5 | 6)
}

/// One page of a column.
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
    /// Rows of the number one: one run of the run-length encoding.
    fn equal(rows: u32) -> Self {
        let mut stored = vec![1];
        let mut control = u64::from(rows) << 1 | 1;
        while control >= 0x80 {
            stored.push((control & 0x7f) as u8 | 0x80);
            control >>= 7;
        }
        stored.extend([control as u8, 1]);
        let raw_bytes = stored.len() as u32;
        Self { encoding: Encoding::Rle, codec: Codec::None, flags: 0, rows, nulls: 0, raw_bytes, stored }
    }

    /// Null rows: a bitmap of zeros, compressed.
    fn null(rows: u32) -> Self {
        let bitmap = vec![0; rows as usize / 8];
        Self {
            encoding: Encoding::Plain,
            codec: Codec::Zstd,
            flags: page_flags::NULLS,
            rows,
            nulls: rows,
            raw_bytes: bitmap.len() as u32,
            stored: zstd::bulk::compress(&bitmap, 3).unwrap(),
        }
    }
}

/// A file of one page with valid checksums; `change` edits the footer.
fn file(kind: Type, page: &Page, change: impl FnOnce(&mut Footer)) -> Vec<u8> {
    let stored_bytes = page.stored.len() as u64;
    let header = PageHeader {
        kind: Kind::Data,
        encoding: page.encoding,
        codec: page.codec,
        marked: false,
        flags: page.flags,
        values: page.rows,
        raw_bytes: page.raw_bytes,
        stored_bytes: page.stored.len() as u32,
        nulls: page.nulls,
        first_row: 0,
        payload_crc: crc32c(&page.stored),
    };
    let chunk = Chunk {
        offset: 64,
        stored_bytes,
        raw_bytes: page.raw_bytes.into(),
        values: page.rows.into(),
        nulls: page.nulls.into(),
        pages: 1,
        encoding: page.encoding,
        codec: page.codec,
        zone: None,
        bloom: None,
        page_index: None,
    };
    let rows = page.rows.into();
    let total_bytes = 32 + stored_bytes;
    let mut footer = Footer {
        schema: std::sync::Arc::new(Schema::new(vec![Field::new("a", kind).with_nulls()]).unwrap()),
        groups: vec![Group { first_row: 0, rows, total_bytes, bounds: None, chunks: vec![chunk] }],
        blobs: Vec::new(),
        dictionaries: Vec::new(),
        indexes: Vec::new(),
        inverted: None,
        access: None,
        positions: None,
        page_headers: None,
        pairs: Vec::new(),
        statistics: Statistics { rows, raw_bytes: page.raw_bytes.into(), stored_bytes },
        features: Some(Features { requires: 0, offers: 1, resources: Vec::new() }),
        unknown: Vec::new(),
    };
    change(&mut footer);
    let rows = footer.statistics.rows;
    let footer = footer.to_bytes();
    let head = Header {
        major: 1,
        minor: 1,
        flags: 0,
        checksum: 1,
        default_codec: Codec::Zstd,
        page_size_hint: 0,
        uuid: [0; 16],
        rows,
        footer_offset: 96 + stored_bytes,
        created_millis: 0,
        creator_id: 0,
    };
    let tail = [&(footer.len() as u32).to_le_bytes()[..], &crc32c(&footer).to_le_bytes(), b"TAT1"].concat();
    [&head.to_bytes(), &header.to_bytes()[..], &page.stored, &footer, &tail].concat()
}

/// Runs a command with little memory and time.
fn limited<S>(dir: &AnyDir<S>, args: &str) -> CommandOutput {
    let script =
        format!("ulimit -v {MEMORY}; exec timeout {SECONDS} {} {args}", env!("CARGO_BIN_EXE_tatami"));
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script]).current_dir(dir.0.path()).output().unwrap();
    CommandOutput {
        // A signal has no exit code.
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        bytes: output.stdout,
    }
}

/// Every verb that reads a file.
const VERBS: [&str; 13] = [
    "inspect a.tatami",
    "count a.tatami",
    "head a.tatami -n 1",
    "cat a.tatami --limit 3",
    "stats a.tatami",
    "count a.tatami --where a=1",
    "agg a.tatami --sum a",
    "explain a.tatami --where a=1",
    "outline a.tatami",
    "verify a.tatami",
    "verify a.tatami --deep",
    "repair a.tatami -o out.tatami --force",
    "convert a.tatami out.csv --force",
];

#[test]
fn rows_beyond_the_bytes_are_malformed() {
    let dir = TestDir::new();
    // A row count near the maximum, in a file of 165 bytes: pages without bytes, and far outside of the file.
    for pages in [0, 1 << 32] {
        let bytes = file(Type::Int64, &Page::equal(1), |footer| {
            let group = &mut footer.groups[0];
            (group.rows, group.chunks[0].values) = (u64::MAX - 1, u64::MAX - 1);
            group.chunks[0].pages = pages;
            footer.statistics.rows = u64::MAX - 1;
        });
        assert!(bytes.len() < 200, "{}", bytes.len());
        dir.write("a.tatami", bytes);
        for args in VERBS {
            let result = limited(&dir, args);
            assert!(is_refused(&result), "{args}: {} {}", result.code, result.err);
        }
    }
}

#[test]
fn row_groups_that_share_a_page_are_malformed() {
    let dir = TestDir::new();
    // Half a megabyte that means 3·10¹¹ rows.
    let bytes = file(Type::Int64, &Page::equal(1 << 25), |footer| {
        let first = footer.groups[0].clone();
        footer.groups = (0..10_000).map(|at| Group { first_row: at << 25, ..first.clone() }).collect();
        footer.statistics.rows = 10_000 << 25;
    });
    dir.write("a.tatami", bytes);
    for args in VERBS {
        let result = limited(&dir, args);
        assert!(is_refused(&result), "{args}: {} {}", result.code, result.err);
        if !args.starts_with("repair") {
            let text = result.out + &result.err;
            assert!(text.contains("overlap"), "{args}: {text}");
        }
    }
}

#[test]
fn long_runs_exceed_the_limit() {
    let dir = TestDir::new();
    let bytes = file(Type::Int64, &Page::equal(1 << 28), |_| {});
    assert!(bytes.len() < 200, "{}", bytes.len());
    dir.write("a.tatami", bytes);
    for args in VERBS.into_iter().filter(|args| !args.starts_with("outline")) {
        let result = limited(&dir, args);
        // Footer and page headers are valid: only what decodes the page fails.
        let is_read =
            ["inspect", "count a.tatami", "stats", "explain"].iter().any(|verb| args.starts_with(verb))
                || args == "verify a.tatami";
        // Without `--max-memory`, `repair` takes the size for damage.
        let expected: &[i32] = match args {
            _ if is_read => &[0, 1, 6],
            args if args.starts_with("repair") => &[1, 6],
            _ => &[6],
        };
        assert!(expected.contains(&result.code), "{args}: {} {}", result.code, result.err);
    }
}

#[test]
fn many_null_rows_are_read_with_little_memory() {
    let dir = TestDir::new();
    // Shorter than the limit: 256 MiB of one-byte values and 32 MiB of bitmap.
    let bytes = file(Type::Int8, &Page::null(1 << 28), |_| {});
    assert!(bytes.len() < 4000, "{}", bytes.len());
    dir.write("a.tatami", bytes);
    for (args, out) in [("count a.tatami --where 'a>0'", "0\n"), ("head a.tatami -n 1", "{\"a\":null}\n")] {
        let result = limited(&dir, args);
        assert_eq!((result.code, &result.out[..]), (0, out), "{args}: {}", result.err);
    }
    let result = limited(&dir, "verify a.tatami --deep");
    assert_eq!(result.code, 0, "{}", result.err);
    // Longer than the limit: eight bytes for each of the rows.
    dir.write("a.tatami", file(Type::Int64, &Page::null(1 << 28), |_| {}));
    for args in ["head a.tatami -n 1", "verify a.tatami --deep"] {
        let result = limited(&dir, args);
        assert_eq!(result.code, 6, "{args}: {}", result.err);
    }
    assert!(is_refused(&limited(&dir, "repair a.tatami -o out.tatami")));
}
