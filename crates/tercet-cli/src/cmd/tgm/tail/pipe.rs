//! Following standard input.

use std::io::{self, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tercet::tgm::Follower;

use super::printer::Printer;
use super::{Args, Flow};
use crate::failure::Failure;
use crate::ui::{Ui, is_interrupted};

/// Read buffer size and maximum number of queued buffers.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
/// Interval of checks for interrupts.
const PATIENCE: Duration = Duration::from_millis(50);

/// Prints the messages of standard input until it ends.
pub(super) fn drain(args: &Args, printer: &mut Printer<'_>, out: &mut Ui) -> Result<(), Failure> {
    let pieces = read_apart()?;
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
                follower.push(&piece.map_err(|error| Failure::io("cannot read standard input", &error))?);
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

/// Reads standard input on a separate thread, because a blocking read cannot be cancelled.
fn read_apart() -> Result<Receiver<io::Result<Vec<u8>>>, Failure> {
    let (send, receive) = sync_channel(WAITING);
    // The thread ends with the process, or when the receiver is dropped.
    std::thread::Builder::new().spawn(move || read_all(&send)).map_err(Failure::no_thread)?;
    Ok(receive)
}

fn read_all(send: &SyncSender<io::Result<Vec<u8>>>) {
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; PIECE];
    loop {
        let piece = match stdin.read(&mut buffer) {
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
