//! Standard input and exit conditions.

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::{TIMEOUT, TestDir, message};
use crate::support::test_dir::run_command;

#[test]
fn stream_messages_are_printed_on_arrival() {
    let dir = TestDir::new();
    let mut tail = dir.tail("- --json -p step");
    let mut stdin = tail.child.stdin.take().unwrap();
    for n in 0..3 {
        let bytes = message(n, 1000);
        for piece in bytes.chunks(333) {
            stdin.write_all(piece).unwrap();
        }
        assert_eq!(tail.steps(1), [n]);
    }
    drop(stdin);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}

/// The end of a stream inside a message is an error, also after complete messages.
#[test]
fn a_stream_that_ends_inside_a_message_is_malformed() {
    let dir = TestDir::new();
    let (first, second) = (message(0, 100), message(1, 100));
    for cut in [1, 8, 20, 24, 30, 100, second.len() - 1] {
        let bytes = [&first[..], &second[..cut]].concat();
        let result = run_command(dir.command().args(["tail", "-", "--json"]).write_stdin(bytes.clone()));
        assert_eq!(result.code, 4, "{cut}: {}", result.err);
        assert_eq!(result.out.lines().count(), 1, "{cut}");
        let end = bytes.len();
        let start = first.len();
        let error: serde_json::Value = serde_json::from_str(&result.err).unwrap();
        let (message, hint) = (&error["error"]["message"], &error["error"]["hint"]);
        let expected = format!("standard input: the stream ends inside message 1, at byte {end}");
        assert_eq!(message, expected.as_str(), "{cut}");
        assert_eq!(hint, format!("the message starts at byte {start}").as_str(), "{cut}");
        dir.write("cut.tgm", &bytes);
        assert_eq!(dir.run("tail cut.tgm --no-follow").code, 4, "{cut}");
    }
}

/// Messages inside a partial message are printed at the end, and the partial one is reported as damaged.
#[test]
fn messages_inside_an_incomplete_message_are_printed() {
    let dir = TestDir::new();
    let long = message(0, 100_000);
    let bytes = [&long[..1000], &message(1, 10), &message(2, 10)].concat();
    let result = run_command(dir.command().args(["tail", "-"]).write_stdin(bytes));
    assert_eq!(result.code, 1, "{}", result.err);
    let numbers: Vec<&str> =
        result.out.lines().skip(1).map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(numbers, ["0", "1"]);
    assert!(result.err.contains("skipped the message at byte 0"), "{}", result.err);
}

#[test]
fn tail_of_a_stream_ends_by_idle_time_or_count() {
    let dir = TestDir::new();
    // Nothing arrives, and the pipe stays open.
    let tail = dir.tail("- --json --idle 0.05");
    let mut tail = tail;
    let stdin = tail.child.stdin.take();
    assert_eq!(tail.end(), (0, vec![], vec![]));
    drop(stdin);
    let mut tail = dir.tail("- --json -p step --until-count 2");
    let mut stdin = tail.child.stdin.take().unwrap();
    stdin.write_all(&[message(0, 10), message(1, 10), message(2, 10)].concat()).unwrap();
    assert_eq!(tail.steps(2), [0, 1]);
    assert_eq!(tail.end(), (0, vec![], vec![]));
    let result = dir.run("tail - --last 3");
    assert_eq!(result.code, 8, "{}", result.err);
}

/// A closed output pipe is not an error.
#[test]
fn a_closed_pipe_ends_tail() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 10));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tgm"));
    command.current_dir(dir.0.path()).args(["tail", "run.tgm", "--json"]);
    let pipes = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0; 4]).unwrap();
    drop(stdout);
    // A process that another test has forked holds a copy of the pipe until it execs: a first write may succeed.
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < TIMEOUT, "tail does not end");
        dir.append("run.tgm", &message(1, 10));
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_130() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 10));
    for args in ["run.tgm --json", "- --json"] {
        let mut tail = dir.tail(args);
        let stdin = tail.child.stdin.take();
        if args.starts_with("run") {
            assert!(tail.line().starts_with("{\"message\":0,"));
        } else {
            let mut stdin = stdin.as_ref().unwrap();
            stdin.write_all(&message(0, 10)).unwrap();
            assert!(tail.line().starts_with("{\"message\":0,"));
        }
        let pid = tail.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let (code, out, err) = tail.end();
        assert_eq!((code, out), (130, vec![]), "{err:?}");
        assert!(err.len() == 1 && err[0].contains("\"class\":\"interrupted\""), "{err:?}");
        drop(stdin);
    }
}
