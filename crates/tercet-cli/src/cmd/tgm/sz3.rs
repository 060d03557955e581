//! SZ3 payloads, decoded in a child process.
//!
//! The SZ3 library trusts its input: a malicious payload can crash it, or make it run and allocate without end. So this
//! program starts itself again, sends the payload to the child and reads the values from it. A crash of the child is an
//! error of the object only.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tercet::tgm::precision::Trial;
use tercet::tgm::{DType, DataObjectDescriptor};

use crate::ui::is_interrupted;

mod limits;

/// The hidden verb of the child process.
const VERB: &str = "__sz3-decode";

/// Interval of checks for interrupts.
const GLANCE: Duration = Duration::from_millis(50);
/// Maximum length of the child's error message.
const WORDS: u64 = 4096;

/// The time limit for a payload that decodes to `len` bytes.
fn patience(len: usize) -> Duration {
    Duration::from_secs(60 + (len / (16 << 20)) as u64)
}

/// The reason of a failure.
#[derive(Debug)]
enum End {
    /// The child exited, with this text on its standard error.
    Ended(ExitStatus, String),
    TooLate(Duration),
    Interrupted,
}

/// Decodes a payload into exactly `values.len()` bytes.
pub(super) fn decode_in_child(stored: &[u8], values: &mut [u8]) -> Result<(), String> {
    let refused = |error: io::Error| format!("cannot start the sz3 decoder: {error}");
    let program = std::env::current_exe().map_err(refused)?;
    let mut child = Command::new(program)
        .args([OsStr::new(VERB), OsStr::new(&values.len().to_string())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(refused)?;
    let limit = patience(values.len());
    let end = attend(&mut child, stored, values, limit).map_err(|error| {
        // Otherwise the child would wait forever.
        let _ = child.kill().and_then(|()| child.wait());
        format!("cannot communicate with the sz3 decoder: {error}")
    })?;
    match end {
        Ok(()) => Ok(()),
        Err(End::Interrupted) => Err("interrupted".to_owned()),
        Err(End::TooLate(limit)) => {
            Err(format!("decoding took longer than {} s and was stopped", limit.as_secs()))
        }
        Err(End::Ended(status, words)) => Err(explain(status, &words)),
    }
}

/// Sends the payload, reads the values, and kills the child at the time limit.
fn attend(
    child: &mut Child,
    stored: &[u8],
    values: &mut [u8],
    limit: Duration,
) -> io::Result<Result<(), End>> {
    let missing = || io::Error::other("a pipe is missing");
    let mut input = child.stdin.take().ok_or_else(missing)?;
    let mut output = child.stdout.take().ok_or_else(missing)?;
    let mut errors = child.stderr.take().ok_or_else(missing)?;
    thread::scope(|scope| {
        // If the child stops reading, its exit status has the reason.
        // A thread that cannot be started leaves the pipes closed, which ends the child.
        thread::Builder::new().spawn_scoped(scope, move || input.write_all(stored))?;
        let words = thread::Builder::new().spawn_scoped(scope, move || {
            let mut words = Vec::new();
            let _ = errors.by_ref().take(WORDS).read_to_end(&mut words);
            let _ = io::copy(&mut errors, &mut io::sink());
            String::from_utf8_lossy(&words).trim().to_owned()
        })?;
        let (done, is_done) = channel();
        let reader = thread::Builder::new().spawn_scoped(scope, move || {
            let read = read_exactly(&mut output, values);
            let _ = done.send(());
            read
        })?;
        let stopped = wait(&is_done, limit);
        if stopped.is_some() {
            child.kill()?;
        }
        let is_whole = reader.join().unwrap_or(false);
        let status = child.wait()?;
        let words = words.join().unwrap_or_default();
        // Ctrl-C interrupts the child, too, which then looks like a crash.
        let stopped = stopped.or_else(|| is_interrupted().then_some(End::Interrupted));
        Ok(match stopped {
            Some(stopped) => Err(stopped),
            None if is_whole && status.success() => Ok(()),
            None => Err(End::Ended(status, words)),
        })
    })
}

/// Waits for the reader; returns the reason to stop waiting.
fn wait(is_done: &Receiver<()>, limit: Duration) -> Option<End> {
    let started = Instant::now();
    loop {
        match is_done.recv_timeout(GLANCE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if is_interrupted() => return Some(End::Interrupted),
            Err(RecvTimeoutError::Timeout) if started.elapsed() > limit => return Some(End::TooLate(limit)),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Whether the stream had exactly `values.len()` bytes.
fn read_exactly(from: &mut impl Read, values: &mut [u8]) -> bool {
    let mut more = [0];
    from.read_exact(values).is_ok() && from.read(&mut more).is_ok_and(|len| len == 0)
}

/// The error of a failed child.
fn explain(status: ExitStatus, words: &str) -> String {
    match status.code() {
        Some(0) => "the decoder returned a wrong number of values".to_owned(),
        // Prefix of every message of the library.
        Some(_) if !words.is_empty() => words.strip_prefix("sz3 cannot decode: ").unwrap_or(words).to_owned(),
        Some(code) => format!("the decoder exited with code {code}"),
        // No exit code: killed by a signal.
        None => format!("the payload crashed the decoder ({status})"),
    }
}

/// Runs the child, if this process was started as one.
pub(crate) fn child(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.nth(1)? != VERB {
        return None;
    }
    let len = args.next().and_then(|len| len.to_str()?.parse::<usize>().ok());
    let done = match len {
        Some(len) if len.is_multiple_of(8) => decode(len),
        _ => Err("expected the number of bytes of the values".to_owned()),
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    })
}

/// Decodes standard input to standard output, within limits.
fn decode(len: usize) -> Result<(), String> {
    limits::set(len, patience(len)).map_err(|error| format!("cannot limit the decoder: {error}"))?;
    let mut stored = Vec::new();
    io::stdin().lock().read_to_end(&mut stored).map_err(|error| error.to_string())?;
    // Required parameters, unused by decoding.
    let descriptor = DataObjectDescriptor::new(DType::F64, [(len / 8) as u64])
        .with_compression("sz3")
        .with_param("sz3_error_bound_mode", "abs")
        .with_param("sz3_error_bound", 0.0);
    let values = Trial { descriptor, stored }.decode().map_err(|error| error.to_string())?;
    let mut out = io::stdout().lock();
    out.write_all(&values).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Runs a shell script as the child.
    fn shell(script: &str, stored: &[u8], values: &mut [u8]) -> Result<(), End> {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        attend(&mut child, stored, values, Duration::from_millis(400)).expect("the pipes of the child")
    }

    #[test]
    fn values_pass_through_pipes_of_any_size() {
        let stored: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut values = vec![0; stored.len()];
        shell("cat", &stored, &mut values).unwrap();
        assert!(values == stored);
        shell("cat", &[], &mut []).unwrap();
        // A child need not read its whole input.
        shell("head -c 10", &stored, &mut values[..10]).unwrap();
    }

    #[test]
    fn a_child_that_fails_is_explained() {
        let message = |script: &str| match shell(script, b"12345678", &mut [0; 8]) {
            Err(End::Ended(status, words)) => explain(status, &words),
            other => panic!("{other:?}"),
        };
        assert!(message("kill -SEGV $$").starts_with("the payload crashed the decoder (signal: 11"));
        assert_eq!(message("echo 'sz3 cannot decode: bad magic' >&2; exit 1"), "bad magic");
        assert_eq!(message("exit 3"), "the decoder exited with code 3");
        for script in ["head -c 7", "cat; echo more"] {
            assert_eq!(message(script), "the decoder returned a wrong number of values");
        }
        assert!(message("cat; head -c 100000 /dev/zero >&2; exit 1").len() <= 4096);
    }

    #[test]
    fn a_child_that_takes_too_long_is_stopped() {
        let started = Instant::now();
        let end = shell("exec sleep 60", b"12345678", &mut [0; 8]);
        assert!(matches!(end, Err(End::TooLate(_))), "{end:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn other_command_lines_are_not_for_the_child() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>().into_iter();
        assert!(child(args(&["tgm"])).is_none());
        assert!(child(args(&["tgm", "info", VERB])).is_none());
        assert_eq!(child(args(&["tgm", VERB, "7"])), Some(ExitCode::FAILURE));
        assert_eq!(child(args(&["tgm", VERB])), Some(ExitCode::FAILURE));
    }
}
