//! Rotation: a full file gets a number, so that writers start a new one.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tercet_core::publish::Disk;
use tercet_core::source::File as Source;
use tercet_core::{ByteSource as _, Diagnostic as _, Progress};

use super::append::wait_for;
use crate::error::ErrorKind;
use crate::index::index_file_path;

/// The number of digits, with leading zeros, so that names sort in order.
const DIGITS: usize = 6;

/// Renames a file of at least `max` bytes, with its index file, to the next number: `run.tgm` to `run-000000.tgm`. Returns
/// the new path. The file is locked meanwhile; a writer that waits for it then finds no file.
pub(super) fn rotate(
    disk: &Arc<dyn Disk>,
    path: &Path,
    max: u64,
    wait: Duration,
    progress: &dyn Progress,
) -> Result<Option<PathBuf>, ErrorKind> {
    let lock = match wait_for(disk, path, wait, progress) {
        Err(fault) if fault.is_not_found() => return Ok(None),
        lock => lock?,
    };
    let path = lock.path();
    if Source::open(path)?.len() < max {
        return Ok(None);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = Name::new(path);
    let last = disk.list(directory, &|other| name.number(other).is_some())?;
    let last = last.iter().filter_map(|other| name.number(other)).max();
    let full = directory.join(name.numbered(last.map_or(0, |last| last + 1)));
    lock.check()?;
    // The index file first: without its file it is stale, and with the wrong one, too.
    match disk.rename(&index_file_path(path), &index_file_path(&full)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    disk.rename(path, &full)?;
    disk.sync_directory(directory)?;
    Ok(Some(full))
}

/// A file name in two parts, between which the number is inserted.
struct Name {
    stem: String,
    extension: String,
}

impl Name {
    fn new(path: &Path) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = path.extension().map(|extension| format!(".{}", text(Some(extension))));
        Self { stem: text(path.file_stem()), extension: extension.unwrap_or_default() }
    }

    fn numbered(&self, number: u64) -> String {
        format!("{}-{number:0DIGITS$}{}", self.stem, self.extension)
    }

    /// The number of a full file.
    fn number(&self, name: &OsStr) -> Option<u64> {
        let digits =
            name.to_str()?.strip_prefix(&self.stem)?.strip_prefix('-')?.strip_suffix(&self.extension)?;
        let is_number = digits.len() >= DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
        if is_number { digits.parse().ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_name() {
        let name = Name::new(Path::new("dir/run.tgm"));
        assert_eq!(name.numbered(7), "run-000007.tgm");
        assert_eq!(name.number(OsStr::new("run-000007.tgm")), Some(7));
        assert_eq!(name.number(OsStr::new("run-1000000.tgm")), Some(1_000_000));
        for other in
            ["run.tgm", "run-7.tgm", "run-00000a.tgm", "run-000007.tgm.idx", "ran-000007.tgm", "run-000007"]
        {
            assert_eq!(name.number(OsStr::new(other)), None, "{other}");
        }
        assert_eq!(Name::new(Path::new("run")).numbered(0), "run-000000");
    }
}
