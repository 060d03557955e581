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

/// Runs a command that writes `target` repeatedly and kills it at different lengths of the temporary file.
pub(crate) fn kill_at_every_stage<S>(dir: &TestDir<S>, args: &str, code: i32, target: &str) {
    let before = dir.names();
    let old = dir.read(target);
    let done = dir.run(args);
    assert_eq!(done.code, code, "{args}: {}", done.err);
    let new = dir.read(target);
    assert!(old != new, "{args}: changes nothing");
    let mut killed = 0;
    for stage in 0..5 {
        dir.write(target, &old);
        let mut child = spawn(dir, args);
        let (started, enough) = (Instant::now(), new.len() as u64 / 4 * stage);
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
