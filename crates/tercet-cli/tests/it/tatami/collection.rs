//! Collections of files.

use std::io::Write as _;

use serde_json::Value;

use super::{TestDir, lines, run_command};

/// Transcripts of the reference, in their original order.
#[test]
fn collection_output_matches_the_reference() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let manifest = std::fs::read_to_string(golden.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dir = TestDir::new();
    for name in ["collection", "clitmp"] {
        std::fs::create_dir(dir.path(name)).unwrap();
        for entry in std::fs::read_dir(golden.join("collection")).unwrap() {
            let entry = entry.unwrap();
            if name == "collection" || entry.file_name() != "tatami.manifest" {
                std::fs::copy(entry.path(), dir.path(name).join(entry.file_name())).unwrap();
            }
        }
    }
    let mut compared = 0;
    for entry in manifest["cli"].as_array().unwrap() {
        let args: Vec<&str> =
            entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        if !matches!(args[0], "collection" | "col") {
            continue;
        }
        let output = run_command(dir.command().args(&args));
        compared += 1;
        assert_eq!(output.out, entry["stdout"].as_str().unwrap(), "{args:?}: {}", output.err);
        assert_eq!(output.code == 0, entry["exit"] == 0, "{args:?}: {}", output.err);
        assert_eq!(output.err.is_empty(), output.code == 0, "{args:?}: {}", output.err);
    }
    assert_eq!(compared, 8);
}

/// A directory `days` with three files of keys.
fn days() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("days")).unwrap();
    for (name, from) in [("mon", 0), ("tue", 100), ("wed", 200)] {
        let rows = lines(from..from + 50, |key| format!(r#"{{"key":{key},"day":"{name}"}}"#));
        dir.write("rows.jsonl", rows);
        dir.ok(&format!("create days/{name}.tatami --from rows.jsonl --sort-key key"));
        dir.ok(&format!("collection add days days/{name}.tatami"));
    }
    dir
}

#[test]
fn files_are_added_listed_tiered_and_removed() {
    let dir = days();
    let json: Value = serde_json::from_str(&dir.ok("collection list days --json").out).unwrap();
    assert_eq!(json["rows"], 150);
    let paths: Vec<&str> =
        json["members"].as_array().unwrap().iter().map(|member| member["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["mon.tatami", "tue.tatami", "wed.tatami"]);
    assert_eq!(dir.ok("collection tier days tue.tatami 3").out, "tue.tatami: tier 3\n");
    assert_eq!(dir.ok("col remove days days/mon.tatami").out, "removed mon.tatami\n");
    let list = dir.ok("collection list days").out;
    assert!(list.contains("members:    2\n"), "{list}");
    assert!(list.contains("tue.tatami               rows=50"), "{list}");
    assert!(list.contains(" tier=3 key[key]=100..149"), "{list}");
    // All files are removed, or none.
    let refused = dir.run("collection remove days tue.tatami nothing.tatami");
    assert_eq!(refused.code, 8, "{}", refused.err);
    assert!(refused.err.contains("has no member `nothing.tatami`"), "{}", refused.err);
    assert_eq!(dir.ok("collection list days").out, list);
    let outside = dir.run("collection add days rows.jsonl");
    assert_eq!(outside.code, 8, "{}", outside.err);
    assert!(outside.err.contains("not a path inside the collection"), "{}", outside.err);
    assert_eq!(dir.ok("collection compact days").out, "compacted manifest at days (2 live members)\n");
    assert_eq!(dir.ok("collection list days").out, list);
}

#[test]
fn a_key_is_looked_up_in_all_files() {
    let dir = days();
    assert_eq!(dir.ok("lookup days 117").out, "{\"key\":117,\"day\":\"tue\"}\n");
    assert_eq!(dir.ok("lookup days 200 --columns day").out, "{\"day\":\"wed\"}\n");
    let json: Value = serde_json::from_str(&dir.ok("lookup days 149 --json").out).unwrap();
    assert_eq!(json["row"], 49);
    assert!(json["file"].as_str().unwrap().ends_with("tue.tatami"));
    let missing = dir.run("lookup days 77");
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("days: no row with key `77`"), "{}", missing.err);
    let wrong = dir.run("lookup days Tuesday");
    assert_eq!(wrong.code, 8, "{}", wrong.err);
}

#[test]
fn a_torn_or_damaged_manifest_is_reported() {
    let dir = days();
    let whole = dir.read("days/tatami.manifest");
    // As another program leaves it, after an interrupted append.
    dir.write("days/tatami.manifest", [&whole[..5], &whole[19..whole.len() - 3]].concat());
    let torn = dir.ok("collection list days");
    assert!(torn.out.contains("members:    2\n"));
    assert!(torn.err.contains("incomplete record"), "{}", torn.err);
    let mut damaged = whole.clone();
    damaged[30] ^= 4;
    dir.write("days/tatami.manifest", &damaged);
    for verb in ["list days", "add days days/mon.tatami", "compact days"] {
        let refused = dir.run(&format!("collection {verb}"));
        assert_eq!(refused.code, 5, "{verb}: {}", refused.err);
        assert!(refused.err.contains("record 0 of the manifest (bytes 19.."), "{}", refused.err);
        assert!(refused.err.contains("--salvage"), "{}", refused.err);
    }
    assert_eq!(dir.read("days/tatami.manifest"), damaged);
    let saved = dir.ok("collection compact days --salvage");
    assert_eq!(saved.out, "compacted manifest at days (2 live members)\n");
    assert!(saved.err.contains("damaged bytes of the manifest (at byte 19)"), "{}", saved.err);
    dir.ok("collection add days days/mon.tatami");
    assert!(dir.ok("collection list days").out.contains("members:    3\n"));
}

#[test]
fn a_rewritten_file_must_be_added_again() {
    let dir = days();
    dir.write("rows.jsonl", "{\"key\":120,\"day\":\"new\"}\n");
    dir.ok("create days/tue.tatami --force --from rows.jsonl --sort-key key");
    let changed = dir.run("lookup days 120");
    assert_eq!(changed.code, 5, "{}", changed.err);
    assert!(changed.err.contains("was changed since it was added"), "{}", changed.err);
    dir.ok("collection add days days/tue.tatami");
    assert_eq!(dir.ok("lookup days 120 --columns day").out, "{\"day\":\"new\"}\n");
    assert!(dir.ok("collection list days").out.contains("rows:       101\n"));
}

#[test]
fn queries_scan_all_files_of_a_collection() {
    let dir = days();
    let rows = dir.ok("cat days").out;
    assert_eq!(rows.lines().count(), 150);
    assert_eq!(rows.lines().last().unwrap(), r#"{"key":249,"day":"wed"}"#);
    let args = ["cat", "days", "--columns", "day,key", "--where", "key >= 148 and key < 202", "--limit", "3"];
    assert_eq!(
        dir.run_args(&args).out,
        "{\"day\":\"tue\",\"key\":148}\n{\"day\":\"tue\",\"key\":149}\n{\"day\":\"wed\",\"key\":200}\n"
    );
    assert_eq!(dir.ok("count days").out, "150\n");
    assert_eq!(dir.run_args(&["count", "days", "--where", "key > 110"]).out, "89\n");
    let json: Value =
        serde_json::from_str(&dir.run_args(&["count", "days", "-w", "key<10", "--json"]).out).unwrap();
    assert_eq!((json["rows"].as_u64(), json["count"].as_u64()), (Some(150), Some(10)));
    // Pruned files are not opened: this one cannot be opened.
    std::fs::write(dir.path("days/wed.tatami"), b"gone").unwrap();
    assert_eq!(dir.run_args(&["count", "days", "--where", "key < 110"]).out, "60\n");
    let explained = dir.run_args(&["explain", "days", "--where", "key < 10"]).out;
    assert!(explained.starts_with("3 files, 2 pruned by the manifest\nmon.tatami:\n"), "{explained}");
    let json = dir.run_args(&["explain", "days", "--where", "key < 10", "--json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["files_pruned"].as_u64(), &json["members"][0]["file"]), (Some(2), &"mon.tatami".into()));
    assert_ne!(dir.run("cat days").code, 0);
    // Errors point at the position in the filter.
    let wrong = dir.run_args(&["count", "days", "--where", "kez = 1"]);
    assert_eq!(wrong.code, 8);
    assert!(wrong.err.contains("^^^"), "{}", wrong.err);
    std::fs::create_dir(dir.path("empty")).unwrap();
    for args in ["cat empty", "count empty", "lookup empty 1"] {
        let refused = dir.run(args);
        assert!(refused.code == 8 && refused.err.contains("directory without a manifest"), "{}", refused.err);
    }
}

/// A column that is cents in one file and mills in another cannot be compared.
#[cfg(feature = "arrow")]
#[test]
fn files_with_different_logical_types_are_rejected() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("c")).unwrap();
    dir.write("a.csv", "price\n1.25\n");
    dir.ok("convert a.csv c/a.tatami --schema price:decimal128[9,2]");
    dir.ok("convert a.csv c/b.tatami --schema price:decimal128[9,3]");
    dir.ok("convert a.csv c/d.tatami --schema price:decimal128[9,2]");
    dir.ok("collection add c c/a.tatami");
    assert_eq!(dir.ok("cat c").out, "{\"price\":1.25}\n");
    let is_mismatch = |result: &super::CommandOutput| {
        assert_eq!(result.code, 8, "{}", result.err);
        assert!(
            result.err.contains("b.tatami") && result.err.contains("has different logical types"),
            "{}",
            result.err
        );
    };
    is_mismatch(&dir.run("collection add c c/b.tatami"));
    is_mismatch(&dir.run("merge c/a.tatami c/b.tatami -o m.tatami"));
    dir.ok("collection add c c/d.tatami");
    assert_eq!(dir.ok("count c --where price=1.25").out, "2\n");
    dir.ok("merge c/a.tatami c/d.tatami -o m.tatami");
    assert_eq!(dir.ok("cat m.tatami").out, "{\"price\":1.25}\n{\"price\":1.25}\n");
    // Files added by other programs are checked when they are opened.
    std::fs::copy(dir.path("c/b.tatami"), dir.path("b.tatami")).unwrap();
    std::fs::create_dir(dir.path("e")).unwrap();
    std::fs::rename(dir.path("b.tatami"), dir.path("e/b.tatami")).unwrap();
    dir.ok("collection add e e/b.tatami");
    let (one, other) = (dir.read("c/tatami.manifest"), dir.read("e/tatami.manifest"));
    dir.write("c/tatami.manifest", [&one[..], &other[5..]].concat());
    for args in ["cat c", "count c --where price>=0"] {
        is_mismatch(&dir.run(args));
    }
}

/// Truncated manifests and manifests with a damaged last record are no answer of any reading command.
#[test]
fn no_command_reads_a_truncated_or_damaged_manifest() {
    let dir = days();
    let whole = dir.read("days/tatami.manifest");
    let mut last = whole.clone();
    last[whole.len() - 9] ^= 1;
    let cuts = [0, 3, 5, 12, 19, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec());
    for damaged in cuts.into_iter().chain([last]) {
        dir.write("days/tatami.manifest", &damaged);
        for args in [
            "count days",
            "cat days",
            "lookup days 1",
            "explain days --where key=1",
            "search days mon",
            "convert days days.csv",
        ] {
            let refused = dir.run(args);
            assert_eq!(refused.code, 5, "{args}, {} bytes: {}", damaged.len(), refused.err);
            assert!(refused.err.contains("--salvage"), "{args}: {}", refused.err);
            assert_eq!(refused.out, "");
        }
    }
}

/// Every command reports skipped manifest records.
#[test]
fn every_command_reports_a_torn_manifest() {
    let dir = days();
    let bytes = dir.read("days/tatami.manifest");
    for args in [
        "count days",
        "cat days --limit 1",
        "lookup days 1",
        "explain days --where key=1",
        "collection tier days mon.tatami 1",
    ] {
        dir.write("days/tatami.manifest", [&bytes[..5], &bytes[19..bytes.len() - 3]].concat());
        let result = dir.ok(args);
        assert!(result.err.contains("incomplete record"), "{args}: {}", result.err);
    }
    for args in ["collection list nothing", "collection compact nothing"] {
        let missing = dir.run(args);
        assert!(missing.code == 3 && missing.err.contains("nothing: cannot open: "), "{}", missing.err);
    }
}

#[test]
fn rows_of_a_collection_are_upserted_deleted_and_merged() {
    let dir = days();
    let keys = |dir: &TestDir| dir.ok("count days").out.trim().to_owned();
    dir.write(
        "new.jsonl",
        "{\"key\":10,\"day\":\"new\"}\n{\"key\":999,\"day\":\"new\"}\n{\"key\":10,\"day\":\"newest\"}\n",
    );
    let stdout = dir.ok("upsert days --key key --from new.jsonl").out;
    assert_eq!(stdout, "days: upserted 2 rows, 1 replaced, 1 duplicate in the input dropped, 151 rows now\n");
    assert_eq!(dir.ok("lookup days 10").out, "{\"key\":10,\"day\":\"newest\"}\n");
    assert_eq!(dir.ok("cat days --where key=10").out, "{\"key\":10,\"day\":\"newest\"}\n");
    assert_eq!(dir.ok("delete days --where day=\"wed\"").out, "days: deleted 50 rows, 101 left\n");
    assert_eq!(keys(&dir), "101");
    let json: Value = serde_json::from_str(&dir.ok("agg days --group-by day --json").out).unwrap_or_default();
    assert!(!json.to_string().contains("wed"), "{json}");
    assert!(dir.ok("stats days").err.contains("52 deleted rows"), "noted");
    assert!(dir.ok("inspect days").out.contains("deleted=50"));
    assert_eq!(dir.ok("head days -n 2").out.lines().count(), 2);
    assert!(dir.ok("verify days --deep").out.contains("summary: members=4 rows=101 deleted=52 deep=true"));
    dir.ok("merge days -o one.tatami");
    assert_eq!(dir.ok("count one.tatami").out, "101\n");
    // Deleted rows are not converted, nor files that are not in the manifest.
    std::fs::copy(dir.path("one.tatami"), dir.path("days/other.tatami")).unwrap();
    dir.ok("convert days days.csv");
    let csv = String::from_utf8(dir.read("days.csv")).unwrap();
    assert_eq!(csv.lines().count(), 102, "{csv}");
    assert!(!csv.contains("wed") && csv.matches("10,new").count() == 1, "{csv}");
    assert_eq!(dir.run("convert days one.tatami days.csv -f").code, 2);
    assert_eq!(dir.run("create two.tatami --from days one.tatami").code, 8);
    assert_eq!(
        dir.ok("collection merge days -o days/all.tatami").out,
        "all.tatami: 101 rows of 4 members, 52 deleted dropped\n"
    );
    assert_eq!(keys(&dir), "101");
    dir.ok("collection verify days -q");
    assert_eq!(dir.ok("cat days").out, dir.ok("cat one.tatami").out);
    let rows = lines(1000..1100, |key| format!(r#"{{"key":{key},"day":"thu"}}"#));
    dir.write("rows.jsonl", rows);
    assert!(dir.ok("collection append days --from rows.jsonl --file-size 1KiB").out.contains("100 rows"));
    assert_eq!(keys(&dir), "201");
}

#[test]
fn a_damaged_collection_fails_verification() {
    let dir = days();
    let path = dir.path("days/tue.tatami");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(dir.run("verify days").code, 1);
    std::fs::remove_file(&path).unwrap();
    let output = dir.run("verify days --json");
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(output.out.contains("tue.tatami"), "{}", output.out);
    let manifest = dir.path("days/tatami.manifest");
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(dir.run("verify days").code, 1);
}

#[test]
fn upserted_rows_of_a_file_have_its_logical_types() {
    let dir = TestDir::new();
    dir.write("a.csv", "k,day,at\n1,2024-01-02,2024-01-02T03:04:05Z\n2,2024-01-01,2024-01-01T03:04:05Z\n");
    dir.ok("create a.tatami --from a.csv --sort-key k");
    dir.write("u.jsonl", "{\"k\":2,\"day\":\"2025-01-01\",\"at\":\"2025-01-01T00:00:00Z\"}\n");
    assert_eq!(
        dir.ok("upsert a.tatami --key k --from u.jsonl").out,
        "a.tatami: upserted 1 row, 1 replaced, 2 rows now\n"
    );
    dir.ok("convert a.tatami out.csv");
    assert_eq!(
        String::from_utf8(dir.read("out.csv")).unwrap(),
        "k,day,at\n1,2024-01-02,2024-01-02T03:04:05Z\n2,2025-01-01,2025-01-01T00:00:00Z\n"
    );
    assert_eq!(dir.ok("count a.tatami --where day>=\"2025-01-01\"").out, "1\n");
}

/// New rows of tables with types: columns by name, missing ones are null, other types are refused.
#[test]
fn rows_of_every_format_are_upserted_and_appended() {
    let dir = TestDir::new();
    dir.write(
        "a.csv",
        "k,day,at,s\n1,2024-01-02,2024-01-02T03:04:05Z,x\n2,2024-01-01,2024-01-01T03:04:05Z,y\n",
    );
    dir.write("u.csv", "s,at,day,k\nnew,2025-01-01T00:00:00Z,2025-01-01,2\n");
    let expected = "k,day,at,s\n1,2024-01-02,2024-01-02T03:04:05Z,x\n2,2025-01-01,2025-01-01T00:00:00Z,new\n";
    let csv = |dir: &TestDir, name: &str| {
        dir.ok(&format!("convert {name} out.csv --force"));
        String::from_utf8(dir.read("out.csv")).unwrap()
    };
    let gzip = |dir: &TestDir, name: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&dir.read(name)).unwrap();
        dir.write(&format!("{name}.gz"), gzip.finish().unwrap());
    };
    for format in ["csv", "tsv", "jsonl", "parquet", "arrow", "arrows", "tatami"] {
        if format != "csv" {
            dir.ok(&format!("convert u.csv u.{format}"));
        }
        gzip(&dir, &format!("u.{format}"));
        // Compressed files are read by the same code.
        let compressed = matches!(format, "csv" | "parquet").then(|| format!("u.{format}.gz"));
        for from in [Some(format!("u.{format}")), compressed].into_iter().flatten() {
            dir.ok("create a.tatami --from a.csv --sort-key k --force");
            dir.ok(&format!("upsert a.tatami --key k --from {from}"));
            assert_eq!(csv(&dir, "a.tatami"), expected, "{from}");
            let all = format!("c-{from}");
            std::fs::create_dir(dir.path(&all)).unwrap();
            // The columns of a new collection have logical types too.
            dir.ok(&format!("collection append {all} --from a.csv"));
            dir.ok(&format!("upsert {all} --key k --from {from}"));
            assert_eq!(dir.ok(&format!("count {all} --where day=\"2025-01-01\"")).out, "1\n");
            assert_eq!(csv(&dir, &all), expected, "{from}");
            dir.ok(&format!("collection append {all} --from {from} --from {from}"));
            assert_eq!(csv(&dir, &all).lines().count(), 5, "{from}");
        }
    }
    // Null in place of missing columns.
    dir.ok("convert u.parquet few.parquet --columns k,s");
    dir.write("n.csv", "k,day,s\n1,,x\n2,2024-01-01,y\n");
    dir.ok("create n.tatami --from n.csv");
    dir.ok("upsert n.tatami --key k --from few.parquet");
    assert_eq!(dir.ok("cat n.tatami --where k=2").out, "{\"k\":2,\"day\":null,\"s\":\"new\"}\n");
    let missing = dir.run("upsert a.tatami --key k --from few.parquet");
    assert!(missing.code == 8 && missing.err.contains("column `day`: non-nullable column is missing"));
    let before = dir.read("a.tatami");
    dir.write("u.csv", "k,more\n1,2\n");
    dir.ok("convert u.csv more.parquet");
    dir.write("u.csv", "k,day\n1,2\n");
    dir.ok("convert u.csv number.parquet");
    dir.write("u.csv", "k,day\nx,2024-01-01\n");
    dir.ok("convert u.csv key.arrow");
    for (from, reason) in [
        ("more.parquet", "more.parquet: column `more`: not in a.tatami"),
        ("number.parquet", "number.parquet: column `day`: is int64, but date in a.tatami"),
        ("key.arrow", "key.arrow: column `k`: is string, but int64 in a.tatami"),
    ] {
        let output = dir.run(&format!("upsert a.tatami --key k --from {from}"));
        assert!(output.code == 8 && output.err.contains(reason), "{} {}", output.code, output.err);
    }
    assert_eq!(dir.read("a.tatami"), before);
}

#[test]
fn rows_of_a_file_are_upserted_and_deleted() {
    let dir = TestDir::new();
    dir.write("rows.jsonl", lines(0..20, |key| format!(r#"{{"id":{key},"name":"old"}}"#)));
    dir.ok("create a.tatami --from rows.jsonl --sort-key id");
    dir.write("new.csv", "id,name\n30,new\n5,new\n");
    assert_eq!(
        dir.ok("upsert a.tatami --key id --from new.csv").out,
        "a.tatami: upserted 2 rows, 1 replaced, 21 rows now\n"
    );
    assert_eq!(dir.ok("lookup a.tatami 5").out, "{\"id\":5,\"name\":\"new\"}\n");
    assert_eq!(dir.ok("delete a.tatami --where name=\"old\"").out, "a.tatami: deleted 19 rows, 2 left\n");
    assert_eq!(dir.ok("cat a.tatami").out, "{\"id\":5,\"name\":\"new\"}\n{\"id\":30,\"name\":\"new\"}\n");
    assert_eq!(dir.run("upsert a.tatami --key nope --from new.csv").code, 8);
    assert_eq!(dir.run("delete a.tatami --id x").code, 8);
}
