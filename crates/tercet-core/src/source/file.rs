//! Files with positional reads.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::{ByteSource, SourceError, check_span};
use crate::Span;

/// A file with positional reads (`pread`): every read copies.
///
/// If another program truncates the file, reading fails with an error.
#[derive(Debug)]
pub struct File {
    name: Arc<str>,
    handle: fs::File,
    len: u64,
}

impl File {
    /// Opens a regular file. Directories, pipes and devices are refused without reading from them.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let (file, name, len) = open_regular(path.as_ref())?;
        Ok(Self { name, handle: file, len })
    }

    /// A source over an open file, such as a temporary one. `name` appears in error messages.
    pub fn from_handle(name: &str, handle: fs::File) -> Result<Self, SourceError> {
        let meta = handle.metadata().map_err(SourceError::Open)?;
        refuse_special(&meta)?;
        Ok(Self { name: Arc::from(name), handle, len: meta.len() })
    }
}

impl ByteSource for File {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let range = check_span(span, self.len)?;
        let mut out = Vec::new();
        out.try_reserve_exact(range.len()).map_err(|_| SourceError::TooLarge { span })?;
        out.resize(range.len(), 0);
        self.read_into(span.start(), &mut out)?;
        Ok(out.into())
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let span = Span::at(start, out.len() as u64)
            .ok_or(SourceError::PastEnd { span: Span::empty(start), len: self.len })?;
        check_span(span, self.len)?;
        read_exact_at(&self.handle, out, start).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                SourceError::PastEnd { span, len: self.handle.metadata().map_or(0, |meta| meta.len()) }
            } else {
                SourceError::Read { span, error }
            }
        })
    }
}

#[cfg(unix)]
fn read_exact_at(file: &fs::File, out: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, start)
}

#[cfg(windows)]
fn read_exact_at(file: &fs::File, mut out: &mut [u8], mut start: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, start) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                out = &mut out[n..];
                start += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a regular file; returns its name for error messages and its length.
pub(super) fn open_regular(path: &Path) -> Result<(fs::File, Arc<str>, u64), SourceError> {
    // Opening a pipe blocks until it has a writer, so its kind is checked first.
    let meta = fs::metadata(path).map_err(SourceError::Open)?;
    refuse_special(&meta)?;
    let file = open_without_waiting(path).map_err(SourceError::Open)?;
    // The path may have changed in between: check what was opened.
    let meta = file.metadata().map_err(SourceError::Open)?;
    refuse_special(&meta)?;
    Ok((file, Arc::from(path.to_string_lossy()), meta.len()))
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    fs::OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

#[cfg(windows)]
fn open_without_waiting(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).open(path)
}

fn refuse_special(meta: &fs::Metadata) -> Result<(), SourceError> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let kind = if kind.is_dir() { "a directory" } else { special_kind(kind) };
    Err(SourceError::NotAFile { kind })
}

#[cfg(unix)]
fn special_kind(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(windows)]
fn special_kind(_kind: fs::FileType) -> &'static str {
    "a device"
}
