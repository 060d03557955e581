//! Paths that are not ordinary files.

use super::support::TestDir;

const READERS: [&str; 4] = ["info", "verify", "outline", "repair"];

#[test]
fn an_empty_file() {
    let dir = TestDir::new();
    dir.write("empty.tet", b"");
    for verb in ["info", "outline"] {
        let output = dir.tet(&format!("{verb} empty.tet"));
        assert_eq!(output.code, Some(4), "{verb}: {}", output.stderr);
    }
    assert_eq!(dir.tet("verify empty.tet").code, Some(1));
    assert_eq!(dir.tet("repair empty.tet").code, Some(1));
    assert_eq!(dir.read("empty.tet"), b"");
    dir.write("nothing", b"");
    let output = dir.tercet("info nothing");
    assert_eq!((output.code, output.stderr.as_str()), (Some(4), "error: nothing: empty file\n"));
}

#[test]
fn a_directory() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("dir.tet")).unwrap();
    for verb in READERS {
        let output = dir.tet(&format!("{verb} dir.tet"));
        let expected = "error: dir.tet: is a directory without .tet files\n";
        assert_eq!((output.code, output.stderr.as_str()), (Some(8), expected), "{verb}");
    }
}

#[cfg(unix)]
#[test]
fn a_device() {
    let dir = TestDir::new();
    for verb in READERS {
        for program in ["tet", "tercet"] {
            let output = super::support::run(dir.command(program).args([verb, "/dev/zero"]));
            let expected = "error: /dev/zero: cannot open: is a device, not a regular file\n";
            assert_eq!((output.code, output.stderr.as_str()), (Some(3), expected), "{program} {verb}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let dir = TestDir::with_weather();
    let name = OsStr::from_bytes(b"caf\xe9.tet");
    std::fs::copy(dir.path("weather.tet"), dir.path("").join(name)).unwrap();
    let output = super::support::run(dir.command("tet").args([OsStr::new("info"), OsStr::new("-q"), name]));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.starts_with("path=caf\u{fffd}.tet "), "{}", output.stdout);
    let output = super::support::run(dir.command("tet").args([OsStr::new("verify"), name]));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}
