//! Remote `.tatami` files.

use super::*;

/// A fixture with `rows.tatami`: 50,000 rows, in the directory and on the server.
fn fixture() -> Fixture {
    let fixture =
        Fixture { dir: TestDir::for_program(env!("CARGO_BIN_EXE_tatami")), server: Server::start() };
    let rows: Vec<String> = (0..50_000_u64)
        .map(|row| format!("{{\"n\":{row},\"s\":\"text {}\"}}\n", row.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    fixture.dir.write("rows.jsonl", rows.concat());
    fixture.ok(
        "tatami create rows.tatami --from rows.jsonl --sort-key n --page-rows 1000 --row-group-rows 20000",
    );
    for name in ["rows.tatami", "rows.jsonl"] {
        fixture.server.put(&format!("/{name}"), &fixture.dir.read(name));
    }
    fixture
}

#[test]
fn urls_and_paths_give_the_same_output() {
    let fixture = fixture();
    let url = fixture.server.url("/rows.tatami");
    for verb in [
        "tatami inspect FILE",
        "tatami inspect FILE --json --pages",
        "tatami cat FILE",
        "tatami head FILE -n 3 --columns s",
        "tatami lookup FILE 34567",
        "tatami stats FILE --json",
        "tatami verify FILE --deep",
        "tatami outline FILE",
        "tatami repair FILE",
        "tercet info FILE",
    ] {
        let local = fixture.ok(&verb.replace("FILE", "rows.tatami"));
        let remote = fixture.ok(&verb.replace("FILE", &url));
        assert!(remote.bytes.len() > 2, "{verb}");
        assert!(remote.out.replace(&url, "rows.tatami") == local.out, "{verb}");
        assert_eq!(remote.err, local.err, "{verb}");
    }
}

#[test]
fn small_reads_fetch_few_bytes() {
    let fixture = fixture();
    let len = fixture.dir.read("rows.tatami").len() as u64;
    let url = fixture.server.url("/rows.tatami");
    fixture.traffic();
    fixture.ok(&format!("tatami inspect {url}"));
    let (_, sent) = fixture.traffic();
    assert!(sent < len / 2, "{sent} of {len} bytes to inspect");
    fixture.ok(&format!("tatami lookup {url} 34567"));
    let (_, sent) = fixture.traffic();
    assert!(sent < len, "{sent} of {len} bytes for one row");
}

#[test]
fn rows_are_read_from_urls_and_files_written_to_stores() {
    let fixture = fixture();
    let options = "--sort-key n --page-rows 1000 --row-group-rows 20000";
    let result = fixture.ok(&format!(
        "tatami create s3://bucket/rows.tatami --from {} {options}",
        fixture.server.url("/rows.jsonl")
    ));
    assert!(result.out.starts_with("s3://bucket/rows.tatami: 50000 rows"), "{}", result.out);
    assert!(fixture.server.file("/bucket/rows.tatami").unwrap() == fixture.dir.read("rows.tatami"));
    fixture.refused("tatami create s3://bucket/rows.tatami --from rows.jsonl", 8, "file exists");
    let secret = fixture.server.url("/nothing.jsonl?geheim");
    let result = fixture.run(&format!("tatami create x.tatami --from {secret} --format jsonl"));
    assert_ne!(result.code, 0);
    assert!(!result.err.contains("geheim"), "{}", result.err);
}
