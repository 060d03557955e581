//! Outputs: a new file, an object in a store, a pipe, a device, or standard output; formats of arrays.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet::core::publish::{AtomicFile, PublishError, TempDirectory};
use tercet::core::{ByteSource, Sink, SourceError, escape, source};

use crate::failure::Failure;
use crate::remote::{self, Object};
use crate::ui::Ui;

mod stream;

use stream::Device;
pub(crate) use stream::{Stream, failure as stream_failure};

/// The output of a verb: a path, a URL, a pipe or device, or `-` for standard output.
#[derive(Debug)]
pub(crate) enum Output {
    Stdout,
    Path(PathBuf),
    Stream(Stream),
}

impl Output {
    /// Opens an output for binary data. Rejects a terminal, and an existing file without `force`.
    pub(crate) fn open(path: &Path, force: bool) -> Result<Self, Failure> {
        let output = Self::open_for_text(path, force)?;
        if output.is_terminal() { Err(binary_to_terminal()) } else { Ok(output) }
    }

    /// Whether the output is a terminal, where untrusted text must be escaped.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stream(Stream::Device(device)) => device.is_terminal(),
            Self::Path(_) | Self::Stream(Stream::Object(_)) => false,
        }
    }

    /// Opens an output for text. Rejects an existing file without `force`.
    pub(crate) fn open_for_text(path: &Path, force: bool) -> Result<Self, Failure> {
        if is_stdout(path) {
            return Ok(Self::Stdout);
        }
        if let Some(url) = remote::url_of(path) {
            return Ok(Self::Stream(Stream::Object(Object::create(url, force)?)));
        }
        if let Some(device) = Device::find(path)? {
            return Ok(Self::Stream(Stream::Device(device)));
        }
        // Directories and sockets are rejected, with a better message, when the file is created.
        let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        if is_file && !force {
            let message = format!("{}: file exists", display_path(path));
            let failure = Failure::request(message).with_location(path);
            return Err(failure.with_hint("`--force` replaces it"));
        }
        Ok(Self::Path(path.to_owned()))
    }

    /// Reserves standard output for the file: text goes to standard error, and JSON is rejected.
    pub(crate) fn reserve_stdout(&self, out: &mut Ui) -> Result<(), Failure> {
        if matches!(self, Self::Stdout) {
            if out.is_json() {
                return Err(Failure::request("cannot write both the file and JSON to standard output"));
            }
            out.use_stdout_for_data();
        }
        Ok(())
    }

    /// The name of the output for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::Path(path) => display_path(path),
            Self::Stream(stream) => stream.name().to_string(),
        }
    }

    /// Rejects an output that is also an input.
    pub(crate) fn must_not_be(&self, input: &Path) -> Result<(), Failure> {
        let is_input = match self {
            Self::Stdout => false,
            Self::Path(path) => is_same_file(path, input),
            Self::Stream(stream) => stream.is_at(input),
        };
        if is_input {
            let message = format!("{}: input and output are the same file", display_path(input));
            return Err(Failure::request(message).with_location(input));
        }
        Ok(())
    }
}

/// Whether two paths name the same existing file.
fn is_same_file(path: &Path, other: &Path) -> bool {
    let (path, other) = (std::fs::canonicalize(path), std::fs::canonicalize(other));
    path.is_ok_and(|path| other.is_ok_and(|other| path == other))
}

fn binary_to_terminal() -> Failure {
    let failure = Failure::request("refusing to write binary data to a terminal");
    failure.with_hint("redirect it: `… > FILE`")
}

/// Whether a path is `-` or a name of standard output, where no temporary file can be created and renamed.
pub(crate) fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path.as_os_str() == *name)
}

/// Calls `write` with the path of the output. An output that is no file (standard output, a pipe, a device or a URL) receives the
/// complete file from a temporary directory, where its name has this extension.
pub(crate) fn write_by_path<T>(
    path: &Path,
    extension: &str,
    force: bool,
    out: &mut Ui,
    write: impl FnOnce(&Path, &mut Ui) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if is_stdout(path) || !is_file_or_new(path) {
        let output = Output::open(path, force)?;
        output.reserve_stdout(out)?;
        let refused = |error: io::Error| Failure::io("cannot create a temporary directory", &error);
        let directory = TempDirectory::create_in(&std::env::temp_dir(), "output").map_err(refused)?;
        let complete = directory.path().join(format!("output.{extension}"));
        let written = write(&complete, out)?;
        #[expect(clippy::disallowed_methods, reason = "the file is copied from start to end")]
        let complete = File::open(&complete).map_err(refused)?;
        deliver(complete, output, out)?;
        return Ok(written);
    }
    write(path, out)
}

/// Whether a path is that of a local file, or of one that can be created.
pub(crate) fn is_file_or_new(path: &Path) -> bool {
    remote::url_of(path).is_none() && !stream::is_device(path)
}

/// Creates a file that appears when complete. Without `force`, a file that appears meanwhile is not replaced.
pub(crate) fn atomic_file(path: &Path, force: bool) -> Result<AtomicFile, PublishError> {
    if force { AtomicFile::create(path) } else { AtomicFile::create_new(path) }
}

/// A path for messages: escaped, and without the secrets of a URL.
pub(crate) fn display_path(path: &Path) -> String {
    if let Some(url) = remote::url_of(path) {
        return remote::redacted(url);
    }
    escape::name(&path.to_string_lossy()).into_owned()
}

/// The name of an output in JSON: a path, or a URL without credentials.
pub(crate) fn json_path(path: &Path) -> String {
    remote::url_of(path).map_or_else(|| path.to_string_lossy().into_owned(), remote::redacted)
}

/// An unnamed temporary file for output that is not written in order.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<File>,
}

impl Spool {
    pub(crate) fn new() -> Result<Self, Failure> {
        let file =
            tempfile::tempfile().map_err(|error| Failure::io("cannot create a temporary file", &error))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file) })
    }

    /// Copies the file into a stream.
    pub(crate) fn stream_to(self, stream: Stream) -> Result<u64, Failure> {
        let kept = |error: io::Error| Failure::io("cannot access the temporary file", &error);
        stream_file(self.finish().map_err(kept)?, stream)
    }

    /// Copies the file to standard output.
    pub(crate) fn send(self, out: &mut Ui) -> Result<(), Failure> {
        let kept = |error: io::Error| Failure::io("cannot access the temporary file", &error);
        send(self.finish().map_err(kept)?, out)
    }
}

/// Sends a temporary file to standard output or a stream; returns its size.
pub(crate) fn deliver(file: File, output: Output, out: &mut Ui) -> Result<u64, Failure> {
    let kept = |error: io::Error| Failure::io("cannot access the temporary file", &error);
    let len = file.metadata().map_err(kept)?.len();
    match output {
        Output::Stream(stream) => stream_file(file, stream).map(drop)?,
        Output::Stdout | Output::Path(_) => send(file, out)?,
    }
    Ok(len)
}

/// A temporary file as an input, to be read after it was sent.
pub(crate) fn readable_copy(name: &str, file: &File) -> Result<Arc<dyn ByteSource>, Failure> {
    let copy = file.try_clone().map_err(SourceError::Open);
    let copy = copy.and_then(|file| source::File::from_handle(name, file));
    Ok(Arc::new(copy.map_err(|error| Failure::source(name, error))?))
}

/// Copies a temporary file into a stream, from its start.
pub(crate) fn stream_file(mut file: File, stream: Stream) -> Result<u64, Failure> {
    file.rewind().map_err(|error| Failure::io("cannot access the temporary file", &error))?;
    stream.take(&mut file)
}

/// Copies a file to standard output, from its start.
pub(crate) fn send(mut file: File, out: &mut Ui) -> Result<(), Failure> {
    file.rewind().map_err(|error| Failure::io("cannot access the temporary file", &error))?;
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
    type Output = File;

    fn finish(self) -> io::Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
