//! Output sinks: atomic files or memory.

use std::io::{self, Cursor, Seek, Write};

/// An output that is complete only after [`finish`](Sink::finish), which consumes it.
///
/// A writer that is generic over `Sink` writes files (`publish::AtomicFile`) and byte vectors with the same code:
///
/// ```
/// use std::io::{Cursor, Write};
/// use tercet_core::sink::Sink;
///
/// fn write_greeting<S: Sink>(mut sink: S) -> std::io::Result<S::Output> {
///     sink.write_all(b"hello")?;
///     sink.finish()
/// }
/// assert_eq!(write_greeting(Cursor::new(Vec::new())).unwrap(), b"hello");
/// ```
pub trait Sink: Write + Seek {
    /// The result: a path, a vector of bytes.
    type Output;

    /// Completes the bytes written so far, where they are visible before [`finish`](Sink::finish): in a file that grows in
    /// place. Other sinks do nothing.
    fn checkpoint(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Completes the output. A sink that is dropped without this call leaves no output.
    fn finish(self) -> io::Result<Self::Output>;
}

impl Sink for Cursor<Vec<u8>> {
    type Output = Vec<u8>;

    fn finish(self) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::io::SeekFrom;

    use super::*;

    #[test]
    fn memory_sinks_support_seeking_back() {
        let mut sink = Cursor::new(Vec::new());
        sink.write_all(b"....body").unwrap();
        sink.seek(SeekFrom::Start(0)).unwrap();
        sink.write_all(b"head").unwrap();
        assert_eq!(sink.finish().unwrap(), b"headbody");
    }
}
