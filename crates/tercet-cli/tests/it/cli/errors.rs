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
    assert!(ran.stderr.starts_with("error: missing.tet: "), "{}", ran.stderr);
}
