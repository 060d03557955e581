//! Records at a distance.

use super::*;

/// A scene with `rows.tatami`, 50,000 rows in the directory and on the server.
fn scene() -> Scene {
    let scene = Scene { dir: TestDir::of(env!("CARGO_BIN_EXE_tatami")), server: Server::start() };
    let rows: Vec<String> = (0..50_000_u64)
        .map(|row| format!("{{\"n\":{row},\"s\":\"text {}\"}}\n", row.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    scene.dir.write("rows.jsonl", rows.concat());
    scene.ok(
        "tatami create rows.tatami --from rows.jsonl --sort-key n --page-rows 1000 --row-group-rows 20000",
    );
    for name in ["rows.tatami", "rows.jsonl"] {
        scene.server.put(&format!("/{name}"), &scene.dir.read(name));
    }
    scene
}

#[test]
fn every_verb_says_of_an_address_what_it_says_of_a_path() {
    let scene = scene();
    let address = scene.server.url("/rows.tatami");
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
        let here = scene.ok(&verb.replace("FILE", "rows.tatami"));
        let there = scene.ok(&verb.replace("FILE", &address));
        assert!(there.bytes.len() > 2, "{verb}");
        assert!(there.out.replace(&address, "rows.tatami") == here.out, "{verb}");
        assert_eq!(there.err, here.err, "{verb}");
    }
}

#[test]
fn little_is_fetched_for_a_little() {
    let scene = scene();
    let len = scene.dir.read("rows.tatami").len() as u64;
    let address = scene.server.url("/rows.tatami");
    scene.traffic();
    scene.ok(&format!("tatami inspect {address}"));
    let (_, sent) = scene.traffic();
    assert!(sent < len / 2, "{sent} of {len} bytes to inspect");
    scene.ok(&format!("tatami lookup {address} 34567"));
    let (_, sent) = scene.traffic();
    assert!(sent < len, "{sent} of {len} bytes for one row");
}

#[test]
fn rows_come_from_addresses_and_files_go_to_stores() {
    let scene = scene();
    let options = "--sort-key n --page-rows 1000 --row-group-rows 20000";
    let result = scene.ok(&format!(
        "tatami create s3://bucket/rows.tatami --from {} {options}",
        scene.server.url("/rows.jsonl")
    ));
    assert!(result.out.starts_with("s3://bucket/rows.tatami: 50000 rows"), "{}", result.out);
    assert!(scene.server.file("/bucket/rows.tatami").unwrap() == scene.dir.read("rows.tatami"));
    scene.refused("tatami create s3://bucket/rows.tatami --from rows.jsonl", 8, "exists already");
    let secret = scene.server.url("/nothing.jsonl?geheim");
    let result = scene.run(&format!("tatami create x.tatami --from {secret} --format jsonl"));
    assert_ne!(result.code, 0);
    assert!(!result.err.contains("geheim"), "{}", result.err);
}
