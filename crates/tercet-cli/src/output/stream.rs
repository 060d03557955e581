//! Streams: outputs that are written once, from start to end.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::core::{Class, escape};

use crate::failure::Failure;
use crate::input::cannot_change;
use crate::remote::{self, Object};
use crate::ui::exit_at_once_if_interrupted;

/// An output that is written once, from start to end: an object in a store, a pipe or a character device.
#[derive(Debug)]
pub(crate) enum Stream {
    Object(Object),
    Device(Device),
}

/// Whether a path is a named pipe or a character device.
pub(super) fn is_device(path: &Path) -> bool {
    Kind::of_path(path).is_some()
}

/// A named pipe (also of a process substitution, `>(…)`) or a character device.
#[derive(Debug)]
pub(crate) struct Device {
    path: PathBuf,
    kind: Kind,
    name: Arc<str>,
    /// The open file. A pipe is opened when the first byte is written: opening waits for a reader.
    file: Option<File>,
    written: u64,
}

impl Device {
    /// The device of a path, if it is one.
    pub(super) fn find(path: &Path) -> Result<Option<Self>, Failure> {
        let Some(kind) = Kind::of_path(path) else { return Ok(None) };
        let name = escape::name(&path.to_string_lossy()).as_ref().into();
        let mut device = Self { path: path.to_owned(), kind, name, file: None, written: 0 };
        if kind == Kind::Character {
            device.open().map_err(|error| failure(&error).with_location(path))?;
        }
        Ok(Some(device))
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.file.as_ref().is_some_and(File::is_terminal)
    }

    fn open(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => exit_at_once_if_interrupted(|| File::options().write(true).open(&self.path))
                .map_err(|error| self.named("cannot open", &error))?,
        };
        Ok(self.file.insert(file))
    }

    /// An error with the name of the device.
    fn named(&self, what: &str, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {what}: {error}", self.name))
    }
}

impl Write for Device {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.open()?.write(bytes).map_err(|error| self.named("cannot write", &error))?;
        self.written += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kind of a device that can be written as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pipe,
    Character,
}

impl Kind {
    #[cfg(unix)]
    fn of_path(path: &Path) -> Option<Self> {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = std::fs::metadata(path).ok()?.file_type();
        if kind.is_fifo() { Some(Self::Pipe) } else { kind.is_char_device().then_some(Self::Character) }
    }

    #[cfg(not(unix))]
    fn of_path(_path: &Path) -> Option<Self> {
        None
    }
}

impl Stream {
    /// The name of the output for messages.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            Self::Object(object) => object.name(),
            Self::Device(device) => Arc::clone(&device.name),
        }
    }

    /// Whether the output is also this input.
    pub(super) fn is_at(&self, input: &Path) -> bool {
        match self {
            Self::Object(object) => object.is_at(input),
            Self::Device(device) => super::is_same_file(&device.path, input),
        }
    }

    /// Copies a temporary file into the output, from its current position, and completes it.
    pub(crate) fn take(mut self, from: &mut dyn io::Read) -> Result<u64, Failure> {
        io::copy(from, &mut self).map_err(|error| failure(&error))?;
        self.finish()
    }

    /// Completes the output; returns its size.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        match self {
            Self::Object(object) => object.finish(),
            Self::Device(mut device) => {
                // The reader of a pipe waits for a writer, even if there is nothing to write.
                device.open().map_err(|error| failure(&error))?;
                Ok(device.written)
            }
        }
    }

    /// The error of appending to the output, or of changing it in place.
    pub(crate) fn cannot_append(&self) -> Failure {
        match self {
            Self::Object(object) => {
                let failure =
                    Failure::request(format!("{}: cannot append to a remote object", object.name()));
                failure.with_hint("download it, append to it, and upload it")
            }
            Self::Device(Device { path, kind: Kind::Pipe, .. }) => cannot_change(path, "a pipe"),
            Self::Device(Device { path, kind: Kind::Character, .. }) => cannot_change(path, "a device"),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Object(object) => object.write(bytes),
            Self::Device(device) => device.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Object(object) => object.flush(),
            Self::Device(device) => device.flush(),
        }
    }
}

/// An error of writing to a stream. A reader that closes its pipe is not an error.
pub(crate) fn failure(error: &io::Error) -> Failure {
    match remote::upload_failure(error) {
        Some(failure) => failure,
        None if error.kind() == io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        None => Failure::new(Class::Io, error.to_string()),
    }
}
