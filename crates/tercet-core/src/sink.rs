//! Where written bytes go: a file that appears whole, or memory.

use std::io::{self, Cursor, Seek, Write};

/// An output that is closed by value: its bytes count only after [`finish`](Sink::finish).
///
/// A writer that is generic over `Sink` makes files (`publish::AtomicFile`, where there is an operating system) and
/// byte vectors with the same code:
///
/// ```
/// use std::io::{Cursor, Write};
/// use tercet_core::sink::Sink;
///
/// fn write_greeting<S: Sink>(mut sink: S) -> std::io::Result<S::Done> {
///     sink.write_all(b"hello")?;
///     sink.finish()
/// }
/// assert_eq!(write_greeting(Cursor::new(Vec::new())).unwrap(), b"hello");
/// ```
pub trait Sink: Write + Seek {
    /// What remains when everything is written.
    type Done;

    /// Ends the output. Dropping a sink without this call leaves no output.
    fn finish(self) -> io::Result<Self::Done>;
}

impl Sink for Cursor<Vec<u8>> {
    type Done = Vec<u8>;

    fn finish(self) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::io::SeekFrom;

    use super::*;

    #[test]
    fn memory_keeps_what_was_written_after_a_seek_back() {
        let mut sink = Cursor::new(Vec::new());
        sink.write_all(b"....body").unwrap();
        sink.seek(SeekFrom::Start(0)).unwrap();
        sink.write_all(b"head").unwrap();
        assert_eq!(sink.finish().unwrap(), b"headbody");
    }
}
