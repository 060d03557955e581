//! Where a verb puts its bytes: a new file, or standard output; and in which format it puts arrays there.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tercet::core::publish::{AtomicFile, PublishError};
use tercet::core::{Sink, escape};

use crate::address::{self, Object};
use crate::failure::Failure;
use crate::ui::Ui;

/// A path, an address in a store, or `-`.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout,
    Path(PathBuf),
    Object(Object),
}

impl Output {
    /// Refuses to bury a terminal in bytes, or a file that is there already unless `force` says so.
    pub(crate) fn of(path: &Path, force: bool) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            if io::stdout().is_terminal() {
                let failure = Failure::request("standard output is a terminal, which cannot show bytes");
                return Err(failure.with_hint("redirect it: `… > FILE`"));
            }
            return Ok(Self::Stdout);
        }
        if let Some(address) = address::of(path) {
            return Ok(Self::Object(Object::create(address, force)?));
        }
        // Whatever is there and is no file is refused with more words when it is to be replaced.
        let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        if is_file && !force {
            let said = format!("{}: exists already", shown(path));
            return Err(Failure::request(said).with_hint("`--force` replaces it"));
        }
        Ok(Self::Path(path.to_owned()))
    }

    /// Refuses to write over the file that is read.
    pub(crate) fn must_not_be(&self, input: &Path) -> Result<(), Failure> {
        let path = match self {
            Self::Path(path) => path,
            Self::Object(object) if object.is_at(input) => {
                let said = format!("{}: cannot be read and replaced at the same time", object.name());
                return Err(Failure::request(said));
            }
            Self::Stdout | Self::Object(_) => return Ok(()),
        };
        match (std::fs::canonicalize(path), std::fs::canonicalize(input)) {
            (Ok(to), Ok(from)) if to == from => {
                let shown = shown(input);
                Err(Failure::request(format!("{shown}: cannot be read and replaced at the same time")))
            }
            _ => Ok(()),
        }
    }
}

/// Starts a file. Without `force` one that appears meanwhile is not replaced either.
pub(crate) fn atomic_file(path: &Path, force: bool) -> Result<AtomicFile, PublishError> {
    if force { AtomicFile::create(path) } else { AtomicFile::create_new(path) }
}

/// A path as it is shown to the user.
pub(crate) fn shown(path: &Path) -> String {
    if let Some(address) = address::of(path) {
        return address::shown(address);
    }
    escape::name(&path.to_string_lossy()).into_owned()
}

/// The format of an array outside of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrayFormat {
    Npy,
    Raw,
}

impl ArrayFormat {
    /// What the user said, or what the ending of the output says.
    pub(crate) fn of(said: Option<Self>, output: &Path) -> Self {
        let is_npy = output.extension().is_some_and(|end| end.eq_ignore_ascii_case("npy"));
        said.unwrap_or(if is_npy { Self::Npy } else { Self::Raw })
    }
}

/// Bytes on their way to standard output that are not made in order: kept in a temporary file without a name.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<File>,
}

impl Spool {
    pub(crate) fn new() -> Result<Self, Failure> {
        let file =
            tempfile::tempfile().map_err(|error| Failure::io("cannot make a temporary file", &error))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file) })
    }

    /// Copies everything to an object of a store.
    pub(crate) fn upload(self, object: Object) -> Result<u64, Failure> {
        let kept = |error: io::Error| Failure::io("cannot use the temporary file", &error);
        let mut file = self.finish().map_err(kept)?;
        file.rewind().map_err(kept)?;
        object.take(&mut file)
    }

    /// Copies everything to standard output.
    pub(crate) fn send(self, out: &mut Ui) -> Result<(), Failure> {
        let kept = |error: io::Error| Failure::io("cannot use the temporary file", &error);
        send(self.finish().map_err(kept)?, out)
    }
}

/// Copies a file to standard output, from its start.
pub(crate) fn send(mut file: File, out: &mut Ui) -> Result<(), Failure> {
    file.rewind().map_err(|error| Failure::io("cannot use the temporary file", &error))?;
    let sink = out.bytes()?;
    io::copy(&mut file, sink).and_then(|_| sink.flush()).map_err(|error| Failure::output(&error))
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Sink for Spool {
    type Done = File;

    fn finish(self) -> io::Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
