//! `tgm tail` on files that grow, shrink, are replaced, removed and recreated.

mod growing;
#[cfg(unix)]
mod killed;
mod output;
mod replaced;
mod streams;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tercet::tgm::{
    DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata, Provenance, Stamp, encode_message,
};

use crate::support::test_dir;

/// Marker type of this suite's test directories.
enum TgmTail {}

type TestDir = test_dir::TestDir<TgmTail>;

/// Timeout for expected output.
const TIMEOUT: Duration = Duration::from_mins(1);

fn options() -> EncodeOptions {
    let stamp = Stamp::fixed(1_700_000_000, "976bf8a7-b57e-4bb9-b612-99ca8e251769");
    EncodeOptions::new().with_provenance(Provenance::Fixed(Box::new(stamp)))
}

/// A message of `len` values, with `n` under the key `step`.
fn message(n: u64, len: usize) -> Vec<u8> {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("step".to_owned(), n.into());
    let values: Vec<u8> = (0..len).map(|i| (i as u64 * 7 + n) as u8).collect();
    let descriptor = DataObjectDescriptor::new(DType::U8, [len as u64]);
    encode_message(&metadata, &[(&descriptor, &values)], &options()).unwrap()
}

impl TestDir {
    fn new() -> Self {
        Self::for_program(env!("CARGO_BIN_EXE_tgm"))
    }

    fn append(&self, name: &str, bytes: &[u8]) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// Starts `tgm tail` with arguments separated by spaces.
    fn tail(&self, args: &str) -> Tail {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
        command.current_dir(self.0.path()).arg("tail").args(args.split_whitespace());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Tail::new(pipes.spawn().unwrap())
    }
}

/// A running command and its output lines.
struct Tail {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Tail {
    fn new(mut child: Child) -> Self {
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// The next line on standard output.
    fn line(&self) -> String {
        self.out.recv_timeout(TIMEOUT).expect("a line on standard output")
    }

    /// The next line on standard error.
    fn note(&self) -> String {
        self.err.recv_timeout(TIMEOUT).expect("a line on standard error")
    }

    /// The `step` keys of the next messages, printed as JSON.
    fn steps(&self, count: usize) -> Vec<u64> {
        let step = |line: String| {
            let json: serde_json::Value = serde_json::from_str(&line).unwrap();
            json["keys"]["step"].as_u64().unwrap()
        };
        (0..count).map(|_| step(self.line())).collect()
    }

    /// Waits for the end: exit code, and the remaining lines of both streams.
    fn end(mut self) -> (i32, Vec<String>, Vec<String>) {
        drop(self.child.stdin.take());
        let out = self.out.iter().collect();
        let err = self.err.iter().collect();
        (self.child.wait().unwrap().code().unwrap_or(-1), out, err)
    }

    /// Kills the command and asserts that it printed nothing else.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        assert_eq!(self.out.iter().collect::<Vec<_>>(), [""; 0]);
        assert_eq!(self.err.iter().collect::<Vec<_>>(), [""; 0]);
    }
}

/// The lines of a stream as they arrive.
fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
            if send.send(line.trim_end_matches('\n').to_owned()).is_err() {
                // The receiver is gone; the pipe stays open so that the command does not fail.
                let _ = reader.read_to_end(&mut Vec::new());
                return;
            }
            line.clear();
        }
    });
    receive
}
