//! The directory of the demo, and damaged copies of files.
#![expect(clippy::disallowed_methods, reason = "creates plain files in order to damage them")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::display_path;

const NAME: &str = "tercet-demo";

/// An empty directory: the given one, or a new one in the current directory.
pub(super) fn make(wanted: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(path) = wanted else { return make_numbered() };
    fs::create_dir_all(path).map_err(|error| refused(path, &error))?;
    let mut entries = fs::read_dir(path).map_err(|error| refused(path, &error))?;
    if entries.next().is_some() {
        let message = format!("{}: directory is not empty", display_path(path));
        return Err(Failure::request(message).with_hint("give a new directory; the demo overwrites nothing"));
    }
    Ok(path.to_owned())
}

fn make_numbered() -> Result<PathBuf, Failure> {
    for number in 1..1000 {
        let name = if number == 1 { NAME.to_owned() } else { format!("{NAME}-{number}") };
        let path = PathBuf::from(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(&path, &error)),
        }
    }
    Err(Failure::request(format!("too many directories `{NAME}-…`"))
        .with_hint("give a new directory: `tercet demo DIR`"))
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::io(&format!("{}: cannot create the directory", display_path(path)), error)
        .with_hint("give another directory: `tercet demo DIR`")
}

fn io_failure(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::io(&display_path(path), &error)
}

/// Writes a file.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(io_failure(path))
}

/// Copies a file and changes one byte of the copy.
pub(super) fn damaged_copy(
    from: &Path,
    to: &Path,
    at: u64,
    change: impl Fn(u8) -> u8,
) -> Result<(), Failure> {
    let mut bytes = fs::read(from).map_err(io_failure(from))?;
    let byte = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at));
    let byte =
        byte.ok_or_else(|| Failure::request(format!("{}: offset {at} is past the end", display_path(from))))?;
    *byte = change(*byte);
    fs::write(to, bytes).map_err(io_failure(to))
}

/// Copies the first `len` bytes of a file.
pub(super) fn cut_copy(from: &Path, to: &Path, len: u64) -> Result<(), Failure> {
    let mut bytes = fs::read(from).map_err(io_failure(from))?;
    bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    fs::write(to, bytes).map_err(io_failure(to))
}

/// Whether two files are equal.
pub(super) fn same_bytes(a: &Path, b: &Path) -> Result<bool, Failure> {
    Ok(fs::read(a).map_err(io_failure(a))? == fs::read(b).map_err(io_failure(b))?)
}
