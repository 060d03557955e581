//! Bytes of a stream: standard input, a named pipe, a socket.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// Read buffer size and maximum number of queued buffers.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;

/// A stream, read on a thread of its own, because blocking reads cannot be cancelled.
#[derive(Debug)]
pub(super) struct Stream {
    pieces: Receiver<io::Result<Vec<u8>>>,
}

/// The result of reading.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// Nothing has arrived.
    Nothing,
    End,
}

impl Stream {
    /// Reads what `open` opens. It may wait, as for the writer of a pipe.
    pub(super) fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> io::Result<Self> {
        let (send, pieces) = sync_channel(WAITING);
        // The thread ends with the stream, or at its next read after the receiver is dropped.
        std::thread::Builder::new().spawn(move || match open() {
            Ok(stream) => read_all(stream, &send),
            Err(error) => drop(send.send(Err(error))),
        })?;
        Ok(Self { pieces })
    }

    /// The bytes that have arrived.
    pub(super) fn try_next(&self) -> io::Result<Piece> {
        match self.pieces.try_recv() {
            Ok(piece) => Ok(Piece::Bytes(piece?)),
            Err(TryRecvError::Empty) => Ok(Piece::Nothing),
            Err(TryRecvError::Disconnected) => Ok(Piece::End),
        }
    }

    /// The next bytes, if they arrive in time.
    pub(super) fn wait(&self, longest: Duration) -> io::Result<Piece> {
        match self.pieces.recv_timeout(longest) {
            Ok(piece) => Ok(Piece::Bytes(piece?)),
            Err(RecvTimeoutError::Timeout) => Ok(Piece::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Piece::End),
        }
    }
}

fn read_all(mut stream: impl Read, send: &SyncSender<io::Result<Vec<u8>>>) {
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
