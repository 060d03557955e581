//! Full disks, paths that are not files, killed commands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::npy::{self, Array};
use super::{CommandOutput, TestDir, is_unfinished, run_command};

/// Long enough for a slow machine; only a failing test waits for it.
const TIMEOUT: Duration = Duration::from_mins(2);

fn dir_with_input() -> TestDir {
    let dir = TestDir::new();
    dir.write("in.npy", npy::with_header("'|u1'", false, &[1000, 1000], vec![7; 1_000_000]));
    dir
}

/// Runs `tet` in a shell that was prepared by `prepare`.
fn after(prepare: &str, dir: &TestDir, args: &str) -> CommandOutput {
    let mut command = assert_cmd::Command::new("bash");
    command.current_dir(dir.0.path());
    command.arg("-c").arg(format!("{prepare} \"$0\" {args}")).arg(env!("CARGO_BIN_EXE_tet"));
    run_command(&mut command)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let dir = dir_with_input();
    dir.write("small.npy", Array::new(("u1", 1), &[10]).file(false, false));
    dir.ok("create old.tet --from a=small.npy");
    dir.ok("create full.tet --from a=in.npy --raw");
    let (old, full) = (dir.read("old.tet"), dir.read("full.tet"));
    let before = dir.names();
    for args in [
        "create old.tet --from a=in.npy --raw --force",
        "create new.tet --from a=in.npy --raw --chunk 10,10",
        "append old.tet --from b=in.npy --raw",
        "append full.tet --along 0 --from a=in.npy",
        "set full.tet a units=K",
        "rename full.tet a b",
        "copy full.tet:a old.tet:b",
        "merge full.tet -o new.tet",
        "extract full.tet a -o old.tet --force",
        "extract full.tet a -o new.npy",
    ] {
        // The file size limit is 100 KiB; the test passes whether or not its signal is ignored.
        for trap in ["", "trap '' XFSZ;"] {
            let result = after(&format!("{trap} ulimit -f 100;"), &dir, args);
            assert_eq!(result.code, 3, "{args}: {}", result.err);
            assert!(result.err.contains("cannot write: File too large"), "{args}: {}", result.err);
            assert!(result.err.contains("the old file, if any, is unchanged"), "{args}: {}", result.err);
            assert!(dir.read("old.tet") == old && dir.read("full.tet") == full, "{args}");
            assert_eq!(dir.names(), before, "{args}");
        }
    }
    // The temporary file of a pipe has the same limit.
    let result = after("ulimit -f 100;", &dir, "create - --from a=in.npy --raw");
    assert_eq!((result.code, result.bytes.len()), (3, 0), "{}", result.err);
    assert!(result.err.contains("File too large"), "{}", result.err);
}

#[test]
fn a_directory_without_permission_is_refused() {
    let dir = dir_with_input();
    let closed = dir.path("closed");
    std::fs::create_dir(&closed).unwrap();
    dir.ok("create closed/old.tet --from a=in.npy");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write everywhere, unless the capability is dropped.
    let is_root = std::fs::write(closed.join("probe"), "").is_ok();
    let prepare = if is_root { "setpriv --bounding-set=-dac_override --inh-caps=-dac_override" } else { "" };
    if is_root && Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!(
            "skipped: a_directory_without_permission_is_refused (runs as root, and there is no setpriv)"
        );
        return;
    }
    let old = dir.read("closed/old.tet");
    for args in [
        "create closed/new.tet --from a=in.npy",
        "create closed/old.tet --from a=in.npy --force",
        "append closed/old.tet --from b=in.npy",
        "append closed/old.tet --along 0 --from a=in.npy",
        "set closed/old.tet a units=K",
        "copy closed/old.tet closed/new.tet",
        "merge closed/old.tet -o closed/new.tet",
        "drop closed/old.tet a",
        "extract closed/old.tet a -o closed/new.npy",
    ] {
        let result = after(prepare, &dir, args);
        assert_eq!(result.code, 3, "{args}: {}", result.err);
        assert!(result.err.contains("cannot create a file in the directory"), "{args}: {}", result.err);
        assert!(result.err.contains("hint: check the permissions"), "{args}: {}", result.err);
        assert!(dir.read("closed/old.tet") == old, "{args}");
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!closed.join("new.tet").exists() && !closed.join("new.npy").exists());
}

#[test]
fn non_file_paths_are_rejected() {
    let dir = dir_with_input();
    dir.ok("create a.tet --from a=in.npy");
    std::fs::create_dir(dir.path("dir")).unwrap();
    dir.write("zero", "");
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    let before = dir.names();
    for (args, code, message) in [
        ("create dir --from a=in.npy --force", 8, "dir: is a directory, not a file"),
        ("create dir/ --from a=in.npy", 8, "dir/: is a directory, not a file"),
        ("create new/ --from a=in.npy", 8, "new/: the path does not end in a file name"),
        ("create none/a.tet --from a=in.npy", 3, "does not exist\n  hint: create the directory first"),
        ("create new.tet --from a=dir", 3, "dir: cannot open: is a directory, not a regular file"),
        ("create new.tet --from a=/dev/zero", 3, "/dev/zero: cannot open: is a device"),
        (
            "create new.tet --from a=zero",
            4,
            "zero: malformed npy preamble › magic (bytes 0..6)\n  needs 6 bytes",
        ),
        ("create new.tet --from a=in.npy --labels 0=/dev/zero", 3, "/dev/zero: cannot open: is a device"),
        ("extract /dev/zero a -o x.bin", 3, "/dev/zero: cannot open: is a device"),
        ("extract dir a -o x.bin", 3, "dir: cannot open: is a directory"),
        ("extract zero a -o x.bin", 4, "zero: malformed superblock"),
        ("extract a.tet a -o dir", 8, "dir: is a directory, not a file"),
        ("extract a.tet a -o /dev/full", 3, "/dev/full: cannot write: No space left on device"),
        ("append dir --from b=in.npy", 8, "dir: is a directory, not a file"),
        ("append pipe --from b=in.npy", 8, "pipe: is a pipe, which cannot be changed in place"),
        ("append /dev/zero --from b=in.npy", 8, "/dev/zero: is a device, not a file"),
        ("drop pipe a", 8, "pipe: is a pipe, which cannot be changed in place"),
        ("set pipe a x=1", 8, "pipe: is a pipe, which cannot be changed in place"),
        ("rename dir a b", 8, "dir: is a directory, not a file"),
        ("copy a.tet dir", 8, "dir: is a directory, not a file"),
    ] {
        let result = dir.tet(args);
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
        assert_eq!(dir.names(), before, "{args}");
    }
}

/// A standard output that accepts no bytes.
#[test]
fn a_full_standard_output_is_an_error() {
    let dir = dir_with_input();
    dir.ok("create a.tet --from a=in.npy");
    for args in ["extract a.tet a -o - > /dev/full", "create - --from a=in.npy > /dev/full"] {
        let result = after("", &dir, args);
        assert_eq!(result.code, 3, "{args}: {}", result.err);
        assert!(
            result.err.contains("cannot write to standard output: No space left"),
            "{args}: {}",
            result.err
        );
    }
}

#[test]
fn paths_need_not_be_utf8() {
    let dir = dir_with_input();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let mut command = dir.command();
    let made = run_command(command.args(["create", "--from", "a=in.npy"]).arg(name(b"\xff\xfe.tet")));
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("\u{fffd}\u{fffd}.tet: 1 dataset"), "{}", made.out);
    let mut command = dir.command();
    command.arg("extract").arg(name(b"\xff\xfe.tet")).args(["a", "-o"]).arg(name(b"\xff.npy"));
    assert_eq!(run_command(&mut command).code, 0);
    let values = std::fs::read(dir.0.path().join(name(b"\xff.npy"))).unwrap();
    assert!(npy::values(&values) == npy::values(&dir.read("in.npy")));
    let mut command = dir.command();
    command.arg("append").arg(name(b"\xff\xfe.tet")).arg("--from").arg(name(b"b=\xff.npy"));
    assert_eq!(run_command(&mut command).code, 0);
    let mut command = dir.command();
    command.arg("create").arg("x.tet").arg("--from").arg(name(b"\xff=in.npy"));
    assert_eq!(run_command(&mut command).code, 2);
}

/// Starts a `create` of a large file and waits until it writes.
fn start_long_create(dir: &TestDir) -> Child {
    let len = 64u64 << 30;
    dir.write("long.npy", npy::with_header("'|u1'", false, &[len], Vec::new()));
    let input = std::fs::OpenOptions::new().append(true).open(dir.path("long.npy")).unwrap();
    input.set_len(input.metadata().unwrap().len() + len).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
    command.current_dir(dir.0.path()).args("create a.tet --from a=long.npy --force --zstd 19".split(' '));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !dir.names().iter().any(|name| is_unfinished(name, "a.tet")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        assert!(started.elapsed() < TIMEOUT, "it never started to write");
        thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn a_killed_command_leaves_the_old_file() {
    let dir = dir_with_input();
    dir.ok("create a.tet --from a=in.npy");
    let old = dir.read("a.tet");
    let mut child = start_long_create(&dir);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    assert!(dir.read("a.tet") == old);
    assert!(dir.names().iter().any(|name| is_unfinished(name, "a.tet")));
    // The next writer replaces the file and removes the stale temporary file.
    dir.ok("append a.tet --from b=in.npy");
    assert_eq!(dir.names(), ["a.tet", "in.npy", "long.npy"]);
    assert_eq!(dir.open("a.tet").datasets().len(), 2);
}

#[test]
fn an_interrupt_leaves_the_old_file_and_no_temporary_file() {
    let dir = dir_with_input();
    dir.ok("create a.tet --from a=in.npy");
    let old = dir.read("a.tet");
    let mut child = start_long_create(&dir);
    let interrupted = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(dir.read("a.tet") == old);
    assert_eq!(dir.names(), ["a.tet", "in.npy", "long.npy"]);
}
