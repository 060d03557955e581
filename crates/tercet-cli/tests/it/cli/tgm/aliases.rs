//! `.tgm` files through `tercet` and through a link named `tensogram`.

use serde_json::Value;

use super::sample::{dir, with_damaged_payload};
use crate::cli::support::TestDir;

#[test]
fn tercet_detects_the_format() {
    let dir = dir();
    std::fs::copy(dir.path("run.tgm"), dir.path("whatever.bin")).unwrap();
    for name in ["run.tgm", "whatever.bin"] {
        assert_eq!(
            dir.tercet(&format!("info {name}")).stdout,
            dir.tgm(&format!("info {name}")).stdout,
            "{name}"
        );
    }
    let len = dir.read("run.tgm").len();
    let line = format!("path=run.tgm file_len={len} version=3 messages=3\n");
    assert_eq!(dir.tercet("info -q run.tgm").stdout, line);
    let json: Value = serde_json::from_str(&dir.tercet("info --json run.tgm").stdout).unwrap();
    assert_eq!((&json["format"], &json["summary"]["messages"]), (&"tgm".into(), &3.into()));
    assert_eq!(dir.tercet("tgm ls run.tgm").stdout, dir.tgm("ls run.tgm").stdout);
    let output = dir.tercet("info --chunks run.tgm");
    let expected = "error: run.tgm: is a .tgm file; `--chunks` is for .tet files\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(8), expected));
}

#[test]
fn tercet_verifies() {
    let dir = dir();
    with_damaged_payload(&dir, "bad.tgm");
    let output = dir.tercet("verify run.tgm");
    let start = "file: run.tgm\nstatus: ok\nchecks:\n";
    assert!(output.stdout.starts_with(start), "{}", output.snapshot());
    let end = "summary: messages=3 objects=4 hash_verified=true\n";
    assert!(output.stdout.ends_with(end), "{}", output.snapshot());
    let output = dir.tercet("verify -q --deep bad.tgm");
    let line = "path=bad.tgm status=failed messages=3 objects=4 errors=1 hash_verified=false\n";
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), line), "{}", output.stderr);
    let json: Value = serde_json::from_str(&dir.tercet("verify --json bad.tgm").stdout).unwrap();
    assert_eq!(json["ok"], false);
}

#[test]
fn tercet_repairs_messages_too() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    dir.write("junk.tgm", &[b"junk", &*whole].concat());
    let output = dir.tercet("repair junk.tgm --salvage good.tgm");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    assert!(output.stdout.contains("unrecognized: bytes 0..4: not part of a message"), "{}", output.stdout);
    assert_eq!(dir.read("good.tgm"), whole);
    let output = dir.tercet("repair junk.tgm --json");
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&json["kept_messages"], &json["output"]), (&3.into(), &Value::Null));
}

#[test]
fn tercet_reports_unsupported_verbs() {
    let dir = dir();
    for (args, reason) in [
        ("repair run.tgm --apply footer_invalid", "`--apply` is for .tet files"),
        ("repair run.tgm --salvage new.tgm --fill 0", "`--fill` is for .tet files"),
        ("verify --repair run.tgm", "only .tet files can be repaired in place"),
    ] {
        let output = dir.tercet(args);
        assert_eq!(output.code, Some(8), "{args}");
        assert!(output.stderr.contains(reason), "{args}: {}", output.stderr);
    }
    let query = r#"query -t run.tgm {"dataset":"a"}"#;
    let output = dir.tercet(query);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("is a .tgm file, not a .tet file"), "{}", output.stderr);
    assert_eq!(output.stderr, dir.tet(query).stderr);
}

#[cfg(unix)]
#[test]
fn a_link_named_tensogram_is_tgm() {
    let dir = dir();
    let programs = [env!("CARGO_BIN_EXE_tercet"), env!("CARGO_BIN_EXE_tet"), env!("CARGO_BIN_EXE_tgm")];
    for (number, program) in programs.into_iter().enumerate() {
        let bin = dir.path(&format!("bin{number}"));
        std::fs::create_dir(&bin).unwrap();
        let link = bin.join("tensogram");
        std::os::unix::fs::symlink(program, &link).unwrap();
        let run = |args: &[&str]| {
            let output =
                std::process::Command::new(&link).args(args).current_dir(dir.path("")).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        assert_eq!(run(&["get", "-p", "mars.param", "run.tgm"]), (Some(0), "2t\nmsl\n10u\n".to_owned()));
        let (code, help) = run(&["--help"]);
        assert!(code == Some(0) && help.contains("Usage: tensogram "), "{help}");
        let (code, help) = run(&["ls", "--help"]);
        assert!(code == Some(0) && help.contains("Usage: tensogram ls "), "{help}");
        assert_eq!(run(&["--version"]).1, format!("tensogram {}\n", env!("CARGO_PKG_VERSION")));
        assert!(run(&["completions", "bash"]).1.contains("_tensogram()"));
    }
}

#[test]
fn a_damaged_start_is_detected_by_extension() {
    let dir = TestDir::new();
    super::sample::write_run(&dir.path("run.tgm"));
    dir.damaged("run.tgm", "late.tgm", |bytes| {
        bytes.splice(0..0, *b"junk");
    });
    let output = dir.tercet("info late.tgm");
    assert!(
        output.stdout.contains("Messages: 3") && output.stderr.contains("bytes 0..4"),
        "{}",
        output.snapshot()
    );
}
