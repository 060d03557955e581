//! Following standard input or a named pipe.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tercet::tgm::Follower;

use super::printer::Printer;
use super::{Args, Flow};
use crate::failure::Failure;
use crate::output::display_path;
use crate::ui::{Ui, is_interrupted};

/// Read buffer size and maximum number of queued buffers.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
/// Interval of checks for interrupts.
const PATIENCE: Duration = Duration::from_millis(50);

/// An input that cannot be read twice.
#[derive(Clone, Debug)]
pub(super) enum Stream {
    Stdin,
    /// A named pipe, also of a process substitution (`<(…)`).
    Pipe(PathBuf),
}

impl Stream {
    /// Opens the stream; this waits for a writer of a pipe.
    fn open(&self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin().lock())),
            #[expect(clippy::disallowed_methods, reason = "a pipe is read once, from start to end")]
            Self::Pipe(path) => Ok(Box::new(std::fs::File::open(path)?)),
        }
    }
}

/// Prints the messages of a stream until it ends.
pub(super) fn drain(
    args: &Args,
    stream: Stream,
    printer: &mut Printer<'_>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let cannot_read = match &stream {
        Stream::Stdin => "cannot read standard input".to_owned(),
        Stream::Pipe(path) => format!("cannot read {}", display_path(path)),
    };
    let pieces = read_apart(stream)?;
    let mut follower = Follower::new();
    let mut last = Instant::now();
    loop {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let left = args.idle.map(|idle| idle.saturating_sub(last.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            break;
        }
        match pieces.recv_timeout(left.unwrap_or(PATIENCE).min(PATIENCE)) {
            Ok(piece) => {
                follower.push(&piece.map_err(|error| Failure::io(&cannot_read, &error))?);
                last = Instant::now();
                if printer.print(&mut follower, |_| {}, out)? == Flow::Enough {
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    printer.print_end(&mut follower, out).map(|_| ())
}

/// Reads a stream on a separate thread, because blocking reads cannot be cancelled.
fn read_apart(stream: Stream) -> Result<Receiver<io::Result<Vec<u8>>>, Failure> {
    let (send, receive) = sync_channel(WAITING);
    // The thread ends with the process, or when the receiver is dropped.
    std::thread::Builder::new().spawn(move || read_all(&stream, &send)).map_err(Failure::no_thread)?;
    Ok(receive)
}

fn read_all(stream: &Stream, send: &SyncSender<io::Result<Vec<u8>>>) {
    let mut stream = match stream.open() {
        Ok(stream) => stream,
        Err(error) => {
            // The receiver is gone after an interrupt.
            let _ = send.send(Err(error));
            return;
        }
    };
    let mut buffer = vec![0; PIECE];
    loop {
        let piece = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => Ok(buffer[..n].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_end = piece.is_err();
        if send.send(piece).is_err() || is_end {
            return;
        }
    }
}
