//! Standard input, followed to its end.

use std::io::{self, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tercet::tgm::Follower;

use super::teller::Teller;
use super::{Args, Flow};
use crate::failure::Failure;
use crate::ui::{Ui, is_interrupted};

/// Bytes read at a time, and how many such pieces wait at most.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
/// How often to look whether the user wants to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Tells the messages of standard input until it ends.
pub(super) fn drain(args: &Args, teller: &mut Teller<'_>, out: &mut Ui) -> Result<(), Failure> {
    let pieces = read_apart();
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
                if teller.tell(&mut follower, |_| {}, out)? == Flow::Enough {
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    teller.tell_end(&mut follower, out).map(|_| ())
}

/// Reads standard input on a thread of its own, since a read cannot be given up; not more than is asked for.
fn read_apart() -> Receiver<io::Result<Vec<u8>>> {
    let (send, receive) = sync_channel(WAITING);
    // The thread ends with the process, or when nobody listens any more.
    std::thread::spawn(move || read_all(&send));
    receive
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
