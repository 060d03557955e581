//! The output file of a writer: a new file, or an existing one that grows.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::publish::{AppendFile, AtomicFile, Disk, PublishError};
use tercet_core::sink::Sink;

/// An output file.
#[derive(Debug)]
pub struct FileSink(Kind);

#[derive(Debug)]
enum Kind {
    /// Appears complete.
    New(Box<AtomicFile>),
    /// Extended in place.
    Appended(Box<AppendFile>),
}

impl FileSink {
    pub(super) fn create_on(disk: Arc<dyn Disk>, path: &Path, overwrite: bool) -> Result<Self, PublishError> {
        let file =
            if overwrite { AtomicFile::create_on(disk, path) } else { AtomicFile::create_new_on(disk, path) };
        file.map(Self::from)
    }
}

impl FileSink {
    /// Whether the file is new. Otherwise it is extended in place.
    pub fn is_new(&self) -> bool {
        matches!(self.0, Kind::New(_))
    }
}

impl From<AtomicFile> for FileSink {
    fn from(file: AtomicFile) -> Self {
        Self(Kind::New(Box::new(file)))
    }
}

impl From<AppendFile> for FileSink {
    fn from(file: AppendFile) -> Self {
        Self(Kind::Appended(Box::new(file)))
    }
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::New(file) => file.write(bytes),
            Kind::Appended(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::New(file) => file.flush(),
            Kind::Appended(file) => file.flush(),
        }
    }
}

impl Seek for FileSink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Kind::New(file) => file.seek(to),
            Kind::Appended(file) => file.seek(to),
        }
    }
}

impl Sink for FileSink {
    type Output = PathBuf;

    fn checkpoint(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::New(file) => file.checkpoint(),
            Kind::Appended(file) => file.checkpoint(),
        }
    }

    fn finish(self) -> io::Result<PathBuf> {
        match self.0 {
            Kind::New(file) => file.finish(),
            Kind::Appended(file) => file.finish(),
        }
    }
}
