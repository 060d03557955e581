//! Paths that are not ordinary files.

use super::support::TestDir;

const READERS: [&str; 4] = ["info", "verify", "outline", "repair"];

#[test]
fn a_file_without_bytes() {
    let dir = TestDir::new();
    dir.write("empty.tet", b"");
    for verb in ["info", "outline"] {
        let ran = dir.tet(&format!("{verb} empty.tet"));
        assert_eq!(ran.code, Some(4), "{verb}: {}", ran.stderr);
    }
    assert_eq!(dir.tet("verify empty.tet").code, Some(1));
    assert_eq!(dir.tet("repair empty.tet").code, Some(0));
    assert_eq!(dir.read("empty.tet"), b"");
    dir.write("nothing", b"");
    let ran = dir.tercet("info nothing");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), "error: nothing: empty file\n"));
}

#[test]
fn a_directory() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("dir.tet")).unwrap();
    for verb in READERS {
        let ran = dir.tet(&format!("{verb} dir.tet"));
        let result = "error: dir.tet: cannot open: is a directory, not a regular file\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), result), "{verb}");
    }
}

#[cfg(unix)]
#[test]
fn a_device() {
    let dir = TestDir::new();
    for verb in READERS {
        for program in ["tet", "tercet"] {
            let ran = super::support::run(dir.command(program).args([verb, "/dev/zero"]));
            let result = "error: /dev/zero: cannot open: is a device, not a regular file\n";
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), result), "{program} {verb}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let dir = TestDir::with_weather();
    let name = OsStr::from_bytes(b"caf\xe9.tet");
    std::fs::copy(dir.path("weather.tet"), dir.path("").join(name)).unwrap();
    let ran = super::support::run(dir.command("tet").args([OsStr::new("info"), OsStr::new("-q"), name]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("path=caf\u{fffd}.tet "), "{}", ran.stdout);
    let ran = super::support::run(dir.command("tet").args([OsStr::new("verify"), name]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
