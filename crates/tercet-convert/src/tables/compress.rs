//! Compressed output.

use std::io::{self, Write};

use super::format::Compression;

/// A writer that compresses text, as its [`Compression`] says.
///
/// ```
/// use std::io::Write as _;
/// use tercet_convert::tables::{Compression, Encoder};
///
/// let mut out = Encoder::new(Vec::new(), Compression::for_name("rows.csv.gz"))?;
/// out.write_all(b"a,b\n")?;
/// assert_eq!(out.finish()?[..2], [0x1f, 0x8b]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Encoder<W: Write>(Inner<W>);

enum Inner<W: Write> {
    None(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    /// Compresses into a writer, with the default level.
    pub fn new(out: W, compression: Compression) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::None => Inner::None(out),
            Compression::Gzip => {
                Inner::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default()))
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                Inner::Zstd(encoder)
            }
        }))
    }

    /// Ends the compressed data and returns the writer.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Inner::None(out) => Ok(out),
            Inner::Gzip(encoder) => encoder.finish(),
            Inner::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::None(out) => out.write(bytes),
            Inner::Gzip(encoder) => encoder.write(bytes),
            Inner::Zstd(encoder) => encoder.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Inner::None(out) => out.flush(),
            Inner::Gzip(encoder) => encoder.flush(),
            Inner::Zstd(encoder) => encoder.flush(),
        }
    }
}

impl<W: Write> std::fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}
