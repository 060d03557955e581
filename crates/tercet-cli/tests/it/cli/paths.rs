//! Paths that are not ordinary files.

use super::support::Folder;

const READERS: [&str; 4] = ["info", "verify", "outline", "repair"];

#[test]
fn a_file_without_bytes() {
    let folder = Folder::new();
    folder.write("empty.tet", b"");
    for verb in ["info", "outline"] {
        let ran = folder.tet(&format!("{verb} empty.tet"));
        assert_eq!(ran.code, Some(4), "{verb}: {}", ran.stderr);
    }
    assert_eq!(folder.tet("verify empty.tet").code, Some(1));
    assert_eq!(folder.tet("repair empty.tet").code, Some(0));
    assert_eq!(folder.read("empty.tet"), b"");
    folder.write("nothing", b"");
    let ran = folder.tercet("info nothing");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), "error: nothing: empty file\n"));
}

#[test]
fn a_directory() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("dir.tet")).unwrap();
    for verb in READERS {
        let ran = folder.tet(&format!("{verb} dir.tet"));
        let said = "error: dir.tet: cannot open: is a directory, not a regular file\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), said), "{verb}");
    }
}

#[cfg(unix)]
#[test]
fn a_device() {
    let folder = Folder::new();
    for verb in READERS {
        for program in ["tet", "tercet"] {
            let ran = super::support::run(folder.command(program).args([verb, "/dev/zero"]));
            let said = "error: /dev/zero: cannot open: is a device, not a regular file\n";
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), said), "{program} {verb}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let folder = Folder::with_weather();
    let name = OsStr::from_bytes(b"caf\xe9.tet");
    std::fs::copy(folder.path("weather.tet"), folder.path("").join(name)).unwrap();
    let ran = super::support::run(folder.command("tet").args([OsStr::new("info"), OsStr::new("-q"), name]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("path=caf\u{fffd}.tet "), "{}", ran.stdout);
    let ran = super::support::run(folder.command("tet").args([OsStr::new("verify"), name]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
