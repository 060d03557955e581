//! Damaged files: detection and repair.

use std::sync::Arc;

use serde_json::Value;
use tercet::core::checksum::crc32c;
use tercet::core::source::Memory;
use tercet::tatami::{File, ReadOptions};

use super::{TestDir, lines};

/// A directory with `rows.tatami`: 100 rows, ten on a page, in two row groups.
fn rows() -> TestDir {
    let dir = TestDir::new();
    let rows = lines(0..100, |row| format!("{{\"n\":{row},\"s\":\"text {row}\"}}"));
    dir.write("rows.jsonl", rows);
    dir.ok(
        "create rows.tatami --from rows.jsonl --sort-key n --page-rows 10 --row-group-rows 50 --metadata a=b",
    );
    dir
}

/// Flips a bit in the last byte of a page of the second column.
fn damage(dir: &TestDir, group: usize, page: usize) {
    let json: Value = serde_json::from_str(&dir.ok("inspect rows.tatami --json --pages").out).unwrap();
    let page = &json["groups"][group]["chunks"][1]["pages"][page];
    let number = |key: &str| page[key].as_u64().unwrap();
    let at = (number("offset") + 32 + number("stored_bytes") - 1) as usize;
    let mut bytes = dir.read("rows.tatami");
    bytes[at] ^= 1;
    dir.write("bad.tatami", bytes);
}

#[test]
fn intact_rows_are_kept_and_lost_rows_reported() {
    let dir = rows();
    damage(&dir, 1, 2);
    let cat = dir.run("cat bad.tatami");
    assert_eq!(cat.code, 5);
    assert!(cat.err.contains("bad.tatami: row group 1 › column 1 › page 2"), "{}", cat.err);
    assert_eq!(dir.run("cat bad.tatami --columns n").code, 0, "other columns are read");
    let verified = dir.run("verify bad.tatami -q");
    assert_eq!(verified.code, 1);
    assert!(verified.out.contains("status=failed rows=100"), "{}", verified.out);

    let planned = dir.run("repair bad.tatami");
    assert_eq!(planned.code, 1);
    let expected = "from: bad.tatami\nintact: 90 of 100 rows\nlost: rows 70..80\n  row group 1 › column 1 › page 2 (bytes ";
    assert!(planned.out.starts_with(expected), "{}", planned.out);
    assert_eq!(dir.names(), ["bad.tatami", "rows.jsonl", "rows.tatami"], "nothing is written");
    let repaired = dir.run("repair bad.tatami -o good.tatami");
    assert_eq!(repaired.code, 1);
    assert!(repaired.out.contains("kept: 90 of 100 rows\nlost: rows 70..80\n"), "{}", repaired.out);
    assert_eq!(dir.ok("verify --deep -q good.tatami").code, 0);
    let kept = dir.ok("cat good.tatami").out;
    let expected: String = String::from_utf8(dir.read("rows.jsonl"))
        .unwrap()
        .split_inclusive('\n')
        .enumerate()
        .filter(|(row, _)| !(70..80).contains(row))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(kept, expected);
    assert!(dir.ok("inspect good.tatami").out.contains("  a = b\n"));
    assert_eq!(dir.run("repair bad.tatami -o good.tatami").code, 8, "nothing is overwritten");
    assert_eq!(dir.run("repair bad.tatami -o bad.tatami --force").code, 8);
    let json: Value = serde_json::from_str(&dir.run("repair bad.tatami --json").out).unwrap();
    assert_eq!((json["rows_kept"].as_u64(), json["has_losses"].as_bool()), (Some(90), Some(true)));
}

#[test]
fn a_valid_file_is_kept_whole() {
    let dir = rows();
    let output = dir.ok("repair rows.tatami -o copy.tatami");
    assert!(output.out.ends_with("kept: 100 of 100 rows\n"), "{}", output.out);
    assert_eq!(dir.ok("cat copy.tatami").out, dir.ok("cat rows.tatami").out);
    dir.ok("repair rows.tatami -o interop.tatami --profile interop");
    assert!(dir.ok("inspect interop.tatami").out.contains("required features: reference"));
}

#[test]
fn a_truncated_file_needs_a_schema() {
    let dir = rows();
    let mut bytes = dir.read("rows.tatami");
    bytes.truncate(bytes.len() - 20);
    dir.write("cut.tatami", bytes);
    for verb in ["cat", "inspect", "stats", "head", "outline"] {
        assert_eq!(dir.run(&format!("{verb} cut.tatami")).code, 4, "{verb}");
    }
    assert_eq!(dir.run("verify cut.tatami").code, 1);
    let output = dir.run("repair cut.tatami -o good.tatami");
    assert_eq!(output.code, 4);
    assert!(output.err.contains("set the schema: `--schema name:type,…`"), "{}", output.err);
    assert!(!dir.path("good.tatami").exists());
    let output = dir.run("repair cut.tatami -o good.tatami --schema n:int64,s:string");
    assert_eq!(output.code, 1, "{}{}", output.out, output.err);
    assert!(output.out.contains("the footer was rebuilt"), "{}", output.out);
}

/// Every flipped bit of a small file is an error or does not change the output.
#[test]
fn every_flipped_bit_is_detected() {
    let dir = TestDir::new();
    dir.write("s.jsonl", "{\"k\":1,\"s\":\"red\"}\n{\"k\":2,\"s\":\"blue\"}\n");
    dir.ok("create s.tatami --from s.jsonl --sort-key k --bloom s");
    let good = dir.read("s.tatami");
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        dir.write("bad.tatami", bytes);
        let verified = dir.run("verify -q bad.tatami");
        assert_eq!(verified.code, 1, "byte {at}: {}", verified.out);
    }
}

/// Sums of huge sizes in a footer saturate instead of overflowing.
#[test]
fn overflowing_sums_saturate() {
    let dir = rows();
    let bytes = dir.read("rows.tatami");
    let source = Memory::new("rows", bytes.clone());
    let file = File::from_source(Arc::new(source), ReadOptions::new()).unwrap();
    let (mut footer, span) = (file.footer().clone(), file.footer_span());
    for group in &mut footer.groups {
        group.chunks[1].raw_bytes = u64::MAX / 2 + 1;
    }
    let footer = footer.to_bytes();
    let tail = [&(footer.len() as u32).to_le_bytes()[..], &crc32c(&footer).to_le_bytes(), b"TAT1"].concat();
    let start = span.start() as usize;
    dir.write("absurd.tatami", [&bytes[..start], &footer, &tail].concat());
    let max = u64::MAX.to_string();
    assert!(dir.ok("inspect absurd.tatami").out.contains(&format!(" {max}->")));
    let json: Value = serde_json::from_str(&dir.ok("inspect absurd.tatami --json").out).unwrap();
    assert_eq!(json["columns"][1]["raw_bytes"], u64::MAX);
    for verb in ["stats", "cat"] {
        let output = dir.run(&format!("{verb} absurd.tatami"));
        assert_eq!(output.code, 4, "{verb}: {}", output.err);
    }
}

/// A file without a footer does not store its sort key: it is optional in a repair.
#[test]
fn the_sort_key_of_a_lost_footer_is_an_option() {
    let dir = rows();
    let bytes = dir.read("rows.tatami");
    dir.write("cut.tatami", &bytes[..bytes.len() - 12]);
    let repaired = dir.run("repair cut.tatami --schema n:int64,s:string -o plain.tatami");
    assert!(repaired.out.contains("kept: 100 of 100 rows\n"), "{}", repaired.out);
    assert_eq!(dir.ok("cat plain.tatami").bytes, dir.read("rows.jsonl"));
    let repaired = dir.run("repair cut.tatami --schema n:int64,s:string --sort-key n -o sorted.tatami");
    assert!(repaired.out.contains("kept: 100 of 100 rows\n"), "{}", repaired.out);
    assert_eq!(dir.ok("lookup sorted.tatami 42 --columns s").out, "{\"s\":\"text 42\"}\n");
    let refused = dir.run("repair cut.tatami --schema n:int64,s:string --sort-key s -o wrong.tatami");
    assert_eq!(refused.code, 8, "{}", refused.err);
    assert!(!dir.path("wrong.tatami").exists());
}
