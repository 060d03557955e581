//! Full disks, paths that are not files, closed pipes.

use std::process::Command;

use super::npy;
use super::{CommandOutput, TestDir, run_command};

fn dir_with_input() -> TestDir {
    let dir = TestDir::new();
    dir.write("in.npy", npy::with_header("'|u1'", false, &[1000, 1000], vec![7; 1_000_000]));
    dir.write("small.npy", npy::with_header("'|u1'", false, &[10], vec![7; 10]));
    dir
}

/// Runs `tgm` in a shell that was prepared by `prepare`.
fn after(prepare: &str, dir: &TestDir, args: &str) -> CommandOutput {
    let mut command = assert_cmd::Command::new("bash");
    command.current_dir(dir.0.path());
    command.arg("-c").arg(format!("{prepare} \"$0\" {args}")).arg(env!("CARGO_BIN_EXE_tgm"));
    run_command(&mut command)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let dir = dir_with_input();
    dir.ok("create old.tgm --from a=small.npy");
    dir.ok("create full.tgm --from a=in.npy");
    let (old, full, before) = (dir.read("old.tgm"), dir.read("full.tgm"), dir.names());
    for args in [
        "create old.tgm --from a=in.npy --force",
        "create new.tgm --from a=in.npy --stream",
        "create old.tgm --from a=in.npy --append",
        "create old.tgm --from a=in.npy --append --stream",
        "create full.tgm --from a=small.npy --append",
        "extract full.tgm 0 -o old.tgm --as raw --force",
        "extract full.tgm 0 -o new.npy",
        "extract full.tgm 0 --range 5:900000 -o new.npy",
        "repack full.tgm old.tgm --compression none --force",
        "repack full.tgm new.tgm --filter none",
        "copy full.tgm new.tgm --compression none",
    ] {
        // The file size limit is 100 KiB.
        let result = after("ulimit -f 100;", &dir, args);
        assert_eq!(result.code, 3, "{args}: {}", result.err);
        assert!(result.err.contains("cannot write: File too large"), "{args}: {}", result.err);
        assert!(result.err.contains("the old file, if any, is unchanged"), "{args}: {}", result.err);
        assert!(dir.read("old.tgm") == old && dir.read("full.tgm") == full, "{args}");
        assert_eq!(dir.names(), before, "{args}");
    }
}

#[test]
fn non_file_paths_are_rejected() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=small.npy");
    std::fs::create_dir(dir.path("dir")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    for (args, code, message) in [
        ("create dir --from a=small.npy --force", 8, "dir: is a directory, not a file"),
        ("create dir --from a=small.npy --append", 8, "dir: is a directory, not a file"),
        ("create pipe --from a=small.npy --append", 8, "pipe: is a pipe, which cannot be changed in place"),
        (
            "create /dev/zero --from a=small.npy --append",
            8,
            "/dev/zero: is a device, which cannot be changed in place",
        ),
        ("create new.tgm --from a=dir", 3, "dir: cannot open: is a directory, not a regular file"),
        ("create new.tgm --from a=/dev/zero", 3, "/dev/zero: cannot open: is a device"),
        ("extract /dev/zero 0 -o x", 3, "/dev/zero: cannot open: is a device"),
        ("extract a.tgm 0 -o dir", 8, "dir: is a directory, not a file"),
        ("extract a.tgm 0 -o /dev/full", 3, "/dev/full: cannot write: No space left on device"),
        ("repack a.tgm dir --compression none --force", 8, "dir: is a directory, not a file"),
        ("repack /dev/zero new.tgm --compression none", 3, "/dev/zero: cannot open: is a device"),
        ("advise /dev/zero", 3, "/dev/zero: cannot open: is a device"),
        ("validate a.tgm --against dir", 3, "dir: cannot open: is a directory"),
    ] {
        dir.refused(args, code, message);
    }
}

/// A standard output that accepts no bytes, and a closed pipe.
#[test]
fn standard_output_errors_are_reported() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=in.npy");
    for args in [
        "extract a.tgm 0 -o -",
        "extract a.tgm 0 --range 0:999999 -o -",
        "create - --from a=in.npy",
        "create - --from a=in.npy --stream",
        "repack a.tgm - --compression none",
        "copy a.tgm - --compression none",
    ] {
        let result = after("", &dir, &format!("{args} > /dev/full"));
        assert_eq!(result.code, 3, "{args}: {}", result.err);
        assert!(
            result.err.contains("cannot write to standard output: No space left"),
            "{args}: {}",
            result.err
        );
        let result = after("", &dir, &format!("{args} | head -c 10 >/dev/null; echo \"${{PIPESTATUS[0]}}\""));
        assert_eq!((result.out.as_str(), result.err.as_str()), ("0\n", ""), "{args}");
    }
}

/// While one command changes a file, a second one waits.
#[test]
fn appends_wait_for_other_writers() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=small.npy");
    let lock = tercet::core::publish::FileLock::acquire(&dir.path("a.tgm")).unwrap();
    let args = "create a.tgm --append --from a=small.npy";
    dir.refused(&format!("{args} --lock-timeout 0.1"), 3, "another process is changing this file");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| dir.ok(args));
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(!waiting.is_finished());
        drop(lock);
        let out = waiting.join().unwrap().out;
        assert!(out.starts_with("a.tgm: message 1 with 1 object"), "{out}");
    });
}

/// Eight commands append to one file at the same time.
#[test]
fn concurrent_appends_all_succeed() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=small.npy --meta step=0");
    for is_indexed in [false, true] {
        if is_indexed {
            dir.ok("index a.tgm");
        }
        let before = dir.ok("get -p step a.tgm").out.lines().count();
        std::thread::scope(|scope| {
            for step in 1..9 {
                let dir = &dir;
                scope.spawn(move || {
                    dir.ok(&format!("create a.tgm --append --from a=small.npy --meta step={step}"))
                });
            }
        });
        let mut steps: Vec<String> =
            dir.ok("get -p step a.tgm").out.lines().skip(before).map(str::to_owned).collect();
        steps.sort();
        assert_eq!(steps, ["1", "2", "3", "4", "5", "6", "7", "8"]);
        dir.ok("validate a.tgm");
    }
}

/// A killed command leaves an incomplete message. The next one removes it.
#[test]
fn an_incomplete_message_is_removed_and_reported() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=small.npy --meta step=0");
    dir.ok("create b.tgm --from a=in.npy");
    let (mut cut, whole) = (dir.read("a.tgm"), dir.read("b.tgm"));
    cut.extend(&whole[..760]);
    dir.write("a.tgm", cut);
    let result = dir.ok("create a.tgm --append --from a=small.npy --meta step=1");
    assert!(result.out.starts_with("a.tgm: message 1 with 1 object"), "{}", result.out);
    let expected = "warning: a.tgm: file ends inside message 1: 760 of 1,000,";
    assert!(result.err.starts_with(expected) && result.err.ends_with(" bytes; removed\n"), "{}", result.err);
    assert_eq!(dir.ok("get -p step a.tgm").out, "0\n1\n");
}

/// Four of five commands are killed at random points: what was reported as appended stays, and a reader finds valid messages.
#[cfg(unix)]
#[test]
fn killed_appends_lose_nothing() {
    let dir = dir_with_input();
    dir.ok("create a.tgm --from a=small.npy --meta step=0");
    let mut acknowledged = vec![0];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for step in 1..=200u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
        let source = if step % 2 == 0 { "a=in.npy" } else { "a=small.npy" };
        command.current_dir(dir.0.path()).args(["create", "a.tgm", "--append", "--from", source]);
        command.arg("--meta").arg(format!("step={step}"));
        let quiet = || std::process::Stdio::null();
        let mut child = command.stdout(quiet()).stderr(quiet()).spawn().unwrap();
        if step % 5 != 0 {
            std::thread::sleep(std::time::Duration::from_micros(random % 12_000));
            let _ = child.kill();
        }
        if child.wait().unwrap().success() {
            acknowledged.push(step);
        }
        // A reader at this moment: all messages are valid, whatever the tail is.
        let file = tercet::tgm::File::open(dir.path("a.tgm")).unwrap();
        let found: Vec<u64> = file
            .messages()
            .unwrap()
            .map(|message| message.unwrap().metadata().get("step").unwrap().as_u64().unwrap())
            .collect();
        assert!(found.is_sorted() && acknowledged.iter().all(|step| found.contains(step)), "{found:?}");
    }
    dir.ok("create a.tgm --append --from a=small.npy --meta step=201");
    dir.ok("validate a.tgm --full");
    assert!(acknowledged.len() > 40, "commands that are not killed succeed");
}

/// Concurrent commands that create one file: each reports success or an error.
#[test]
fn concurrent_appends_to_a_new_file_lose_nothing() {
    let dir = dir_with_input();
    for round in 0..4 {
        let path = format!("new{round}.tgm");
        let start = |step: usize| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
            command.current_dir(dir.0.path()).args(["create", &path, "--append", "--from", "a=small.npy"]);
            command.arg("--meta").arg(format!("step={step}"));
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..6).map(start).collect();
        let done = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap());
        let mut done: Vec<String> =
            done.enumerate().filter(|(_, code)| *code == 0).map(|(step, _)| step.to_string()).collect();
        let mut found: Vec<String> =
            dir.ok(&format!("get -p step {path}")).out.lines().map(str::to_owned).collect();
        done.sort();
        found.sort();
        assert_eq!(found, done, "round {round}");
    }
}

/// Arrays that are stored unchanged are larger than the memory of the process.
#[cfg(target_os = "linux")]
#[test]
fn arrays_are_larger_than_memory() {
    const LEN: u64 = 192 << 20;
    let dir = TestDir::new();
    let header = tercet::convert::npy::header(tercet::tgm::DType::F32, &[LEN / 4]).unwrap();
    // Zeros that take no space.
    let file = std::fs::File::create(dir.path("zeros.npy")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &header, 0).unwrap();
    file.set_len(header.len() as u64 + LEN).unwrap();
    for option in ["", "--force --stream", "--append --no-hash"] {
        let limit = "ulimit -d 150000; export TENSOGRAM_THREADS=1;";
        let result = after(limit, &dir, &format!("create run.tgm {option} --from zeros=zeros.npy"));
        assert_eq!((result.code, &*result.err), (0, ""), "{option}");
        let number = u64::from(option.starts_with("--append"));
        let message = dir.message("run.tgm", number);
        let object = message.object(0).unwrap();
        assert_eq!(object.payload_span().len(), LEN, "{option}");
        if number == 0 {
            object.verify().unwrap();
        }
    }
}
