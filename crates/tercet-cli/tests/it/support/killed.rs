//! Commands killed while they write, and files created concurrently.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tercet::core::publish::is_stale_temp;

use super::test_dir::TestDir;

/// Long enough for a slow machine; only a failing test waits for it.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The length of the temporary file of a writer to `target`, if there is one.
fn half_written<S>(dir: &TestDir<S>, target: &str) -> Option<u64> {
    let entries = std::fs::read_dir(dir.0.path()).unwrap();
    let mut half =
        entries.map(Result::unwrap).filter(|entry| is_stale_temp(&entry.file_name(), target.as_ref()));
    half.find_map(|entry| Some(entry.metadata().ok()?.len()).filter(|len| *len > 0))
}

fn spawn<S>(dir: &TestDir<S>, args: &str) -> Child {
    let mut command = Command::new(dir.1);
    command.current_dir(dir.0.path()).env("SOURCE_DATE_EPOCH", "1700000000").args(args.split_whitespace());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The number of times that a command is killed.
fn stages() -> u32 {
    tercet_testkit::cases(5).max(2)
}

/// Runs a command that changes a directory repeatedly and kills it after parts of its time. `print` is a command that prints the
/// contents, and `verify` one that must succeed.
pub(crate) fn kill_over_time<S>(dir: &TestDir<S>, directory: &str, args: &str, print: &str, verify: &str) {
    let files = |dir: &TestDir<S>| {
        let entries = std::fs::read_dir(dir.path(directory)).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.path(), std::fs::read(entry.path()).unwrap())).collect::<Vec<_>>()
    };
    let before = files(dir);
    let restore = |dir: &TestDir<S>| {
        for (path, _) in files(dir) {
            std::fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &before {
            std::fs::write(path, bytes).unwrap();
        }
    };
    let old = dir.ok(print).out;
    let started = Instant::now();
    dir.ok(args);
    let time = started.elapsed();
    let new = dir.ok(print).out;
    assert!(old != new, "{args}: changes nothing");
    let mut killed = 0;
    let stages = stages();
    for stage in 0..stages {
        restore(dir);
        let mut child = spawn(dir, args);
        thread::sleep(time * stage / stages);
        // It may have ended by itself.
        let _ = child.kill();
        let status = child.wait().unwrap();
        dir.ok(verify);
        let found = dir.ok(print).out;
        assert!(found == old || found == new, "{args}: neither the old rows nor the new ones");
        assert!(!status.success() || found == new, "{args}: ended without the new rows");
        killed += usize::from(!status.success() && found == old);
        dir.ok(args);
        assert!(dir.ok(print).out == new, "{args}: other rows after one was killed");
    }
    assert!(killed > 0, "{args}: never killed while it wrote");
}

/// Runs a command that writes `target` repeatedly and kills it at different lengths of the temporary file.
pub(crate) fn kill_at_every_stage<S>(dir: &TestDir<S>, args: &str, code: i32, target: &str) {
    let before = dir.names();
    let old = dir.read(target);
    let done = dir.run(args);
    assert_eq!(done.code, code, "{args}: {}", done.err);
    let new = dir.read(target);
    assert!(old != new, "{args}: changes nothing");
    let mut killed = 0;
    let stages = stages();
    for stage in 0..stages {
        dir.write(target, &old);
        let mut child = spawn(dir, args);
        let (started, enough) = (Instant::now(), new.len() as u64 * u64::from(stage) / u64::from(stages - 1));
        let status = loop {
            if half_written(dir, target).is_some_and(|len| len >= enough) {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < TIMEOUT, "{args}: never ends");
            thread::sleep(Duration::from_millis(1));
        };
        let found = dir.read(target);
        assert!(found == old || found == new, "{args}: neither the old file nor the new one");
        if status.code().is_none() {
            killed += usize::from(found == old);
        } else {
            assert!(status.code() == Some(code) && found == new, "{args}: ended by itself: {status}");
        }
        // The next run replaces the file and removes the stale temporary file.
        dir.write(target, &old);
        assert_eq!(dir.run(args).code, code, "{args}");
        assert!(dir.read(target) == new, "{args}: another file after one was killed");
        assert_eq!(dir.names(), before, "{args}");
    }
    assert!(killed > 0, "{args}: never killed while it wrote");
}

/// Runs a command that creates the file `new` while another process creates it: the other file must stay.
pub(crate) fn created_concurrently<S>(dir: &TestDir<S>, args: &str) {
    let before = dir.names();
    let mut refused = 0;
    for _ in 0..5 {
        let mut child = spawn(dir, args);
        let started = Instant::now();
        while half_written(dir, "new").is_none() && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < TIMEOUT, "{args}: never ends");
            thread::sleep(Duration::from_millis(1));
        }
        let made = std::fs::OpenOptions::new().write(true).create_new(true).open(dir.path("new"));
        let code = child.wait().unwrap().code();
        if made.is_ok() {
            // The other file was created first.
            assert_eq!(code, Some(8), "{args}");
            assert_eq!(dir.read("new"), b"", "{args}");
            refused += 1;
        } else {
            assert_eq!(code, Some(0), "{args}");
        }
        std::fs::remove_file(dir.path("new")).unwrap();
        assert_eq!(dir.names(), before, "{args}");
    }
    assert!(refused > 0, "{args}: always done before");
}
