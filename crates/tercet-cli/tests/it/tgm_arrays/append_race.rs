//! Processes that append to one file at the same time, or are killed while they do.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tercet::core::CommonError;
use tercet::tgm::{Error, ErrorKind, File};

use super::{TestDir, npy};

fn append(dir: &TestDir, array: &str, number: u64) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
    command.current_dir(dir.path("")).args(["create", "run.tgm", "--append", "-q", "--from"]);
    command.arg(format!("x={array}")).arg("--meta").arg(format!("n={number}"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The numbers of all messages, each of which is read and verified.
fn numbers(dir: &TestDir) -> Result<Vec<u64>, Error> {
    let file = File::open(dir.path("run.tgm"))?;
    let messages = file.messages()?.map(|message| {
        let message = message?;
        message.object(0)?.verify()?;
        Ok(message.metadata().get("n").unwrap().as_u64().unwrap())
    });
    messages.collect()
}

fn is_truncated(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Common(CommonError::Source(_)))
}

#[test]
fn eight_appenders_lose_nothing() {
    let dir = TestDir::new();
    dir.write("x.npy", npy::with_header("'|u1'", false, &[1000], vec![7; 1000]));
    std::thread::scope(|scope| {
        for process in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for turn in 0..6 {
                    let status = append(dir, "x.npy", process * 6 + turn).wait().unwrap();
                    assert!(status.success(), "appender {process}, turn {turn}: {status}");
                }
            });
        }
    });
    let mut found = numbers(&dir).unwrap();
    found.sort_unstable();
    assert_eq!(found, (0..48).collect::<Vec<_>>());
}

/// Appenders are killed at 200 points while a reader opens the file again and again: it finds complete messages only, and
/// those that it found before.
#[test]
fn killed_appenders_lose_nothing_and_readers_see_complete_messages() {
    let dir = TestDir::new();
    dir.write("x.npy", npy::with_header("'|u1'", false, &[1 << 20], vec![7; 1 << 20]));
    assert!(append(&dir, "x.npy", 0).wait().unwrap().success());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut known, mut reads) = (vec![0], 0);
            while !is_done.load(Ordering::Relaxed) {
                // The next appender removes what a killed one left: a file that shrinks while it is read is an I/O error.
                let found = match numbers(&dir) {
                    Err(error) if is_truncated(&error) => continue,
                    found => found.unwrap(),
                };
                assert!(found.starts_with(&known), "{known:?} became {found:?}");
                (known, reads) = (found, reads + 1);
            }
            reads
        });
        // A fixed sequence of delays, from before the start of the process to after its end.
        let mut seed = 12_345_u64;
        let (mut finished, mut killed) = (vec![0], 0);
        for number in 1..=200 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut child = append(&dir, "x.npy", number);
            std::thread::sleep(Duration::from_micros((seed >> 33) % 40_000));
            let _ = child.kill();
            if child.wait().unwrap().success() {
                finished.push(number);
            } else {
                killed += 1;
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        assert!(killed > 0, "no process was killed");
        assert!(append(&dir, "x.npy", 201).wait().unwrap().success());
        let found = numbers(&dir).unwrap();
        assert!(finished.iter().all(|number| found.contains(number)), "{finished:?} in {found:?}");
        assert_eq!(found.last(), Some(&201));
    });
    let valid = dir.tgm("validate run.tgm");
    assert_eq!(valid.code, 0, "{}", valid.err);
}
