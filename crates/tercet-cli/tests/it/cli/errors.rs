//! One error of each class, as it is told.

use insta::assert_snapshot;

use super::support::Folder;

#[test]
fn io_is_3() {
    assert_snapshot!(Folder::new().tet("info missing.tet").shot());
}

#[test]
fn malformed_is_4() {
    let folder = Folder::with_weather();
    folder.write("stranger.tet", b"this is no such file, it only has the name of one");
    assert_snapshot!("malformed_by_magic", folder.tet("info stranger.tet").shot());
    folder.write("picture.png", b"\x89PNG\r\n\x1a\n and so on");
    assert_snapshot!("malformed_unrecognised", folder.tercet("info picture.png").shot());
    folder.damaged("weather.tet", "short.tet", |bytes| bytes.truncate(300));
    assert_snapshot!("malformed_truncated", folder.tet("info short.tet").shot());
    let ran = folder.tercet("info stranger.tet");
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("TETR"), "the ending of the name decides what is expected: {}", ran.stderr);
}

#[test]
fn corrupt_is_5() {
    let folder = Folder::with_weather();
    // The first byte of the first dataset's name.
    folder.damaged("weather.tet", "bad.tet", |bytes| bytes[56] ^= 1);
    assert_snapshot!(folder.tet("info bad.tet").shot());
    let ran = folder.tet("info -q bad.tet --ignore-checksums");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn limit_is_6() {
    let folder = Folder::with_weather();
    let mut command = folder.command("tet");
    command.args(["info", "-", "--max-stdin", "1KiB"]).write_stdin(folder.read("weather.tet"));
    assert_snapshot!(super::support::run(&mut command).shot());
}

#[test]
fn request_is_8() {
    assert_snapshot!(Folder::with_weather().tet("repair - --apply footer_invalid").shot());
}

#[test]
fn usage_is_2() {
    let folder = Folder::with_weather();
    for args in [
        "",
        "info",
        "frobnicate",
        "info weather.tet --json -q",
        "info weather.tet -n many",
        "repair weather.tet --dry-run",
        "repair weather.tet --fill 1",
        "info - --max-stdin much",
    ] {
        let ran = folder.tet(args);
        assert_eq!(ran.code, Some(2), "{args}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{args}");
        assert!(!ran.stderr.is_empty(), "{args}");
    }
}

#[test]
fn json_keeps_standard_output_clean() {
    let ran = Folder::new().tet("info --json missing.tet");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    let error = &error_json(&ran.stderr)["error"];
    assert_eq!((&error["class"], &error["exit_code"]), (&"io".into(), &3.into()), "{}", ran.stderr);
    assert_eq!(error["location"], "missing.tet", "{}", ran.stderr);
    assert!(error["message"].as_str().unwrap().starts_with("missing.tet: cannot open"), "{}", ran.stderr);
}

/// Every verb and every kind of error: one JSON object, on one line of standard error.
#[test]
fn json_errors_are_one_object() {
    let folder = Folder::with_weather();
    folder.write("cut.tet", &folder.read("weather.tet")[..100]);
    for (args, code, class) in [
        ("verify --json missing.tet", 3, "io"),
        ("info --json cut.tet", 4, "malformed"),
        ("outline -j cut.tet", 4, "malformed"),
        ("drop weather.tet nothing --json", 8, "request"),
        ("info weather.tet --json --nope", 2, "usage"),
        ("frobnicate --json", 2, "usage"),
    ] {
        let ran = folder.tet(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{args}: {}", ran.stderr);
        let error = &error_json(&ran.stderr)["error"];
        assert_eq!((&error["class"], &error["exit_code"]), (&class.into(), &code.into()), "{args}");
        for key in ["location", "message", "span", "hint"] {
            assert!(error.get(key).is_some(), "{args}: {key}");
        }
    }
    let malformed = &error_json(&folder.tet("info --json cut.tet").stderr)["error"];
    assert_eq!(malformed["span"], serde_json::json!([16, 32]));
}

fn error_json(stderr: &str) -> serde_json::Value {
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    serde_json::from_str(stderr).unwrap()
}

/// Arguments are quoted in usage errors, but never reach a terminal as commands.
#[test]
fn usage_errors_are_escaped() {
    let ran = Folder::new().tet("info --\u{202e}\u{9b}31m");
    assert_eq!(ran.code, Some(2));
    assert!(!ran.stderr.contains(['\u{202e}', '\u{9b}']), "{}", ran.stderr);
    assert!(ran.stderr.contains("\\u{202e}\\u{9b}31m"), "{}", ran.stderr);
}
