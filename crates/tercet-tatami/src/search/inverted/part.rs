//! Records that are built incrementally in a temporary file.

use std::io::{self, Write};
use std::path::Path;

use tercet_core::checksum::{crc32c, crc32c_append, crc32c_combine};

use crate::writer::Spool;

/// Size of writes to the file.
const BUFFER_LEN: usize = 1 << 16;

/// A payload: head and spooled bytes.
#[derive(Debug)]
pub(crate) struct Part {
    front: Vec<u8>,
    pieces: Vec<Piece>,
}

/// Spooled bytes.
#[derive(Debug)]
pub(crate) struct Piece {
    spool: Spool,
    buffer: Vec<u8>,
    len: u64,
    crc: u32,
}

impl Piece {
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self { spool: Spool::new(directory), buffer: Vec::new(), len: 0, crc: 0 }
    }

    /// The number of bytes so far.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_LEN { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.crc = crc32c_append(self.crc, &self.buffer);
        self.spool.push(&[&self.buffer])?;
        self.buffer.clear();
        Ok(())
    }
}

impl Part {
    /// `front`, followed by the spooled bytes.
    pub(crate) fn new(front: Vec<u8>, pieces: Vec<Piece>) -> io::Result<Self> {
        let mut out = Self { front, pieces };
        for piece in &mut out.pieces {
            piece.flush()?;
            piece.buffer = Vec::new();
        }
        Ok(out)
    }

    /// A payload in memory.
    pub(crate) const fn from_memory(payload: Vec<u8>) -> Self {
        Self { front: payload, pieces: Vec::new() }
    }

    /// The length of the payload.
    pub(crate) fn len(&self) -> u64 {
        self.front.len() as u64 + self.pieces.iter().map(Piece::len).sum::<u64>()
    }

    /// The checksum of the payload.
    pub(crate) fn crc(&self) -> u32 {
        let add = |crc, piece: &Piece| crc32c_combine(crc, piece.crc, piece.len);
        self.pieces.iter().fold(crc32c(&self.front), add)
    }

    /// Copies the payload.
    pub(crate) fn copy_to(self, sink: &mut impl Write) -> io::Result<()> {
        sink.write_all(&self.front)?;
        for piece in self.pieces {
            piece.spool.copy_to(sink)?;
        }
        Ok(())
    }
}
