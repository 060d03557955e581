//! Commands that are killed while they write, and files that appear meanwhile.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tercet::core::publish::is_leftover;
use tercet::tgm::{DataObjectDescriptor, Dtype, EncodeOptions, GlobalMetadata, Provenance, encode_message};

use crate::Folder;

/// Long enough for a slow machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_mins(2);
/// Long enough to be killed while it is written.
const PAYLOAD: usize = 8 << 20;

fn message(seed: u8) -> Vec<u8> {
    let values: Vec<u8> = (0..PAYLOAD).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [PAYLOAD as u64]);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    encode_message(&GlobalMetadata::default(), &[(&descriptor, &values)], &options).unwrap()
}

/// The length of the half file that will be `target`, if there is one.
fn half_written(folder: &Folder, target: &str) -> Option<u64> {
    let entries = std::fs::read_dir(folder.0.path()).unwrap();
    let mut half =
        entries.map(Result::unwrap).filter(|entry| is_leftover(&entry.file_name(), target.as_ref()));
    half.find_map(|entry| Some(entry.metadata().ok()?.len()).filter(|len| *len > 0))
}

/// Runs a command that writes `target` again and again, and kills it when so many bytes of the new file are there.
fn kill_at_every_stage(folder: &Folder, words: &str, code: i32, target: &str) {
    let before = folder.names();
    let old = folder.read(target);
    let done = folder.run(words);
    assert_eq!(done.code, code, "{words}: {}", done.err);
    let new = folder.read(target);
    assert!(old != new, "{words}: changes nothing");
    let mut killed = 0;
    for stage in 0..5 {
        folder.write(target, &old);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
        command.current_dir(folder.0.path()).args(words.split_whitespace());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (started, enough) = (Instant::now(), new.len() as u64 / 4 * stage);
        let status = loop {
            if half_written(folder, target).is_some_and(|len| len >= enough) {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "{words}: never ends");
            thread::sleep(Duration::from_millis(1));
        };
        let found = folder.read(target);
        assert!(found == old || found == new, "{words}: neither the old file nor the new one");
        if status.code().is_none() {
            killed += usize::from(found == old);
        } else {
            assert!(status.code() == Some(code) && found == new, "{words}: ended by itself: {status}");
        }
        // Whoever comes next takes the place and clears up.
        folder.write(target, &old);
        assert_eq!(folder.run(words).code, code, "{words}");
        assert!(folder.read(target) == new, "{words}: another file after one was killed");
        assert_eq!(folder.names(), before, "{words}");
    }
    assert!(killed > 0, "{words}: never killed while it wrote");
}

#[test]
fn a_killed_index_leaves_the_old_file_or_the_new_one() {
    let folder = Folder::new();
    folder.write("run.tgm", [message(1), message(2)].concat());
    kill_at_every_stage(&folder, "index run.tgm --reproducible", 0, "run.tgm");
    kill_at_every_stage(&folder, "index run.tgm --remove", 0, "run.tgm");
}

#[test]
fn a_killed_merge_leaves_the_old_file_or_the_new_one() {
    let folder = Folder::new();
    folder.write("a.tgm", message(1));
    folder.write("b.tgm", message(2));
    folder.write("all.tgm", b"something else");
    kill_at_every_stage(&folder, "merge a.tgm b.tgm -o all.tgm --force --reproducible", 0, "all.tgm");
}

#[test]
fn a_killed_repair_leaves_the_old_file_or_the_new_one() {
    let folder = Folder::new();
    let mut bytes = [message(1), message(2), message(3)].concat();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    folder.write("bad.tgm", &bytes);
    folder.write("good.tgm", b"something else");
    kill_at_every_stage(&folder, "repair bad.tgm -o good.tgm --force --reproducible", 1, "good.tgm");
}

/// Without `--force` no file is replaced, even if it was not there when the command began.
#[test]
fn a_file_that_appears_meanwhile_stays() {
    let folder = Folder::new();
    folder.write("a.tgm", [message(1), message(2)].concat());
    for words in [
        "merge a.tgm -o new",
        "set -s a=b a.tgm new",
        "repair a.tgm -o new",
        "copy a.tgm new",
        "extract a.tgm 0 -o new",
    ] {
        let mut refused = 0;
        for _ in 0..5 {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
            command.current_dir(folder.0.path()).args(words.split_whitespace());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let started = Instant::now();
            while half_written(&folder, "new").is_none() && child.try_wait().unwrap().is_none() {
                assert!(started.elapsed() < PATIENCE, "{words}: never ends");
                thread::sleep(Duration::from_millis(1));
            }
            let made = std::fs::OpenOptions::new().write(true).create_new(true).open(folder.path("new"));
            let code = child.wait().unwrap().code();
            if made.is_ok() {
                // It was there first.
                assert_eq!(code, Some(8), "{words}");
                assert_eq!(folder.read("new"), b"", "{words}");
                refused += 1;
            } else {
                assert_eq!(code, Some(0), "{words}");
            }
            std::fs::remove_file(folder.path("new")).unwrap();
            assert_eq!(folder.names(), ["a.tgm"], "{words}");
        }
        assert!(refused > 0, "{words}: always done before");
    }
}
