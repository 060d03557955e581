//! Output of one error of each class.

use insta::assert_snapshot;

use super::support::TestDir;

#[test]
fn io_is_3() {
    assert_snapshot!(TestDir::new().tet("info missing.tet").snapshot());
}

#[test]
fn malformed_is_4() {
    let dir = TestDir::with_weather();
    dir.write("foreign.tet", b"this is no such file, it only has the name of one");
    assert_snapshot!("malformed_by_magic", dir.tet("info foreign.tet").snapshot());
    dir.write("picture.png", b"\x89PNG\r\n\x1a\n and so on");
    assert_snapshot!("malformed_unrecognised", dir.tercet("info picture.png").snapshot());
    dir.damaged("weather.tet", "short.tet", |bytes| bytes.truncate(300));
    assert_snapshot!("malformed_truncated", dir.tet("info short.tet").snapshot());
    let output = dir.tercet("info foreign.tet");
    assert_eq!(output.code, Some(4));
    assert!(output.stderr.contains("TETR"), "the extension decides the expected format: {}", output.stderr);
}

#[test]
fn corrupt_is_5() {
    let dir = TestDir::with_weather();
    // The first byte of the first dataset's name.
    dir.damaged("weather.tet", "bad.tet", |bytes| bytes[56] ^= 1);
    assert_snapshot!(dir.tet("info bad.tet").snapshot());
    let output = dir.tet("info -q bad.tet --ignore-checksums");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn limit_is_6() {
    let dir = TestDir::with_weather();
    let mut command = dir.command("tet");
    command.args(["info", "-", "--max-stdin", "1KiB"]).write_stdin(dir.read("weather.tet"));
    assert_snapshot!(super::support::run(&mut command).snapshot());
}

#[test]
fn request_is_8() {
    assert_snapshot!(TestDir::with_weather().tet("repair - --apply footer_invalid").snapshot());
}

#[test]
fn usage_is_2() {
    let dir = TestDir::with_weather();
    for args in [
        "",
        "info",
        "frobnicate",
        "info weather.tet -n many",
        "repair weather.tet --dry-run",
        "repair weather.tet --fill 1",
        "info - --max-stdin much",
    ] {
        let output = dir.tet(args);
        assert_eq!(output.code, Some(2), "{args}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{args}");
        assert!(!output.stderr.is_empty(), "{args}");
    }
}

#[test]
fn json_keeps_standard_output_clean() {
    let output = TestDir::new().tet("info --json missing.tet");
    assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""));
    let error = &error_json(&output.stderr)["error"];
    assert_eq!((&error["class"], &error["exit_code"]), (&"io".into(), &3.into()), "{}", output.stderr);
    assert_eq!(error["location"], "missing.tet", "{}", output.stderr);
    assert!(error["message"].as_str().unwrap().starts_with("missing.tet: cannot open"), "{}", output.stderr);
}

/// Every verb and every kind of error: one JSON object, on one line of standard error.
#[test]
fn json_errors_are_one_object() {
    let dir = TestDir::with_weather();
    dir.write("cut.tet", &dir.read("weather.tet")[..100]);
    for (args, code, class) in [
        ("verify --json missing.tet", 3, "io"),
        ("info --json cut.tet", 4, "malformed"),
        ("outline -j cut.tet", 4, "malformed"),
        ("drop weather.tet nothing --json", 8, "request"),
        ("info weather.tet --json --nope", 2, "usage"),
        ("frobnicate --json", 2, "usage"),
    ] {
        let output = dir.tet(args);
        assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{args}: {}", output.stderr);
        let error = &error_json(&output.stderr)["error"];
        assert_eq!((&error["class"], &error["exit_code"]), (&class.into(), &code.into()), "{args}");
        for key in ["location", "message", "span", "hint"] {
            assert!(error.get(key).is_some(), "{args}: {key}");
        }
    }
    let malformed = &error_json(&dir.tet("info --json cut.tet").stderr)["error"];
    assert_eq!(malformed["span"], serde_json::json!([16, 32]));
}

/// The location is the file that the message names, also for errors of the command line itself.
#[test]
fn json_errors_have_the_location() {
    let dir = TestDir::with_weather();
    dir.write("text", b"plain text\n");
    dir.write("rows.csv", b"a,b\n1,2\n");
    for (args, location) in [
        ("tet info text --json", "text"),
        ("tgm info text --json", "text"),
        ("tgm verify weather.tet --json", "weather.tet"),
        ("tet extract weather.tet t2m -o weather.tet --json", "weather.tet"),
        ("tet extract weather.tet t2m -o none/x.npy --json", "none/x.npy"),
        ("tet extract weather.tet t2m -o rows.csv --json", "rows.csv"),
        ("tet create new.tet --from a=rows.csv --json", "rows.csv"),
        ("tatami create new.tatami --from weather.tet --json", "weather.tet"),
        ("tatami delete https://u:secret@host/x.tatami --id 3 --json", "https://host/x.tatami"),
        ("tatami repair ftp://u:secret@host/x.tatami?secret --json", "ftp://host/x.tatami?…"),
        ("info text --json", "text"),
        ("info nothing*.tet --json", "nothing*.tet"),
    ] {
        let output = dir.tercet(args);
        let error = &error_json(&output.stderr)["error"];
        assert_eq!(error["location"], location, "{args}: {}", output.stderr);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{location}: ")), "{args}: {message}");
    }
}

/// Text, and other files that are not containers, are named as such; the parser would report a field of them.
#[test]
fn other_files_are_not_malformed_containers() {
    let dir = TestDir::with_weather();
    dir.write("text", b"plain text\nof two lines\n");
    dir.write("text.tatami", b"plain text\nof two lines\n");
    dir.write("elf", b"\x7fELF\x02\x01\x01\0 and so on, longer than a trailer");
    for (args, message) in [
        ("tet info text", "text: is text, not a .tet file"),
        ("tet verify text", "text: is text, not a .tet file"),
        ("tgm info text", "text: is text, not a .tgm file"),
        ("tgm repair text", "text: is text, not a .tgm file"),
        ("tatami info text", "text: is text, not a .tatami file"),
        ("tatami cat text.tatami", "text.tatami: is text, not a .tatami file"),
        ("tatami info elf", "elf: is not a .tatami file: starts with `\\x7fELF"),
    ] {
        let output = dir.tercet(args);
        assert_eq!(output.code, Some(4), "{args}: {}", output.stderr);
        assert!(output.stderr.contains(message), "{args}: {}", output.stderr);
    }
    #[cfg(feature = "arrow")]
    {
        let output = dir.tatami("convert weather.tet rows.csv");
        let text =
            "error: weather.tet: is a .tet file, not a table\n  hint: use `tet convert weather.tet …`\n";
        assert_eq!((output.code, output.stderr.as_str()), (Some(7), text));
    }
}

#[test]
fn inputs_of_convert_are_named_with_their_format() {
    let dir = TestDir::new();
    dir.write("field.bufr", b"BUFR\x00\x00\x40\x04 and more bytes of a message");
    dir.write("field.grib", b"GRIB\x00\x00\x40\x01 and more bytes of a message");
    dir.write("cut.nc", b"CDF\x01\x00\x00");
    for (input, code, message) in [
        ("field.bufr", 7, "error: field.bufr: is a BUFR file"),
        ("field.grib", 4, "error: field.grib: no GRIB field can be read: message 0 at byte 0: cut"),
        ("cut.nc", 4, "error: cut.nc: "),
        ("none.nc", 3, "error: none.nc: "),
    ] {
        let output = dir.tercet(&format!("convert {input} out.tet"));
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        assert!(output.stderr.starts_with(message), "{}", output.stderr);
        assert!(!dir.path("out.tet").exists());
    }
}

fn error_json(stderr: &str) -> serde_json::Value {
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    serde_json::from_str(stderr).unwrap()
}

/// Arguments are quoted in usage errors, but never reach a terminal as commands.
#[test]
fn usage_errors_are_escaped() {
    let output = TestDir::new().tet("info --\u{202e}\u{9b}31m");
    assert_eq!(output.code, Some(2));
    assert!(!output.stderr.contains(['\u{202e}', '\u{9b}']), "{}", output.stderr);
    assert!(output.stderr.contains("\\u{202e}\\u{9b}31m"), "{}", output.stderr);
}

#[test]
fn the_terminal_browser_needs_a_terminal() {
    let output = TestDir::with_weather().tercet("view --tui weather.tet");
    assert_eq!((output.code, output.stdout.as_str()), (Some(8), ""), "{}", output.stderr);
    assert!(
        output.stderr.contains("needs a terminal") && output.stderr.contains("hint:"),
        "{}",
        output.stderr
    );
    let output = TestDir::new().tercet("view --tui --open weather.tet");
    assert_eq!(output.code, Some(2), "{}", output.stderr);
}
