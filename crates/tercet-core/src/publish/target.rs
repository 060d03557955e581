//! The target of an output file: its path with symbolic links resolved, checked before any byte is written.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, Entry, EntryKind, Operation, PublishError};

/// The number of links that Linux follows in one path.
const MAX_LINKS: usize = 40;

/// A path at which a file can be published.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The path as the caller gave it, for messages.
    pub(super) given: PathBuf,
    /// The absolute path with links resolved, independent of the working directory.
    pub(super) path: PathBuf,
    /// The directory of `path`.
    pub(super) directory: PathBuf,
    /// The existing file, if any.
    pub(super) existing: Option<Entry>,
}

impl Target {
    /// Resolves the links of a path and refuses what a file cannot replace.
    pub(super) fn resolve(disk: &dyn Disk, given: &Path) -> Result<Self, PublishError> {
        let no_file_name = || PublishError::NoFileName { path: given.to_owned() };
        let mut path = std::path::absolute(given).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let error = io::Error::new(error.kind(), "the working directory does not exist");
                PublishError::io(given, Operation::Inspect, error)
            }
            _ => no_file_name(),
        })?;
        for _ in 0..=MAX_LINKS {
            let existing = match disk.entry(&path) {
                Ok(entry) => Some(entry),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(PublishError::io(given, Operation::Inspect, error)),
            };
            match existing.as_ref().map(|entry| entry.kind) {
                Some(EntryKind::Link) => {
                    let to = disk
                        .read_link(&path)
                        .map_err(|error| PublishError::io(given, Operation::Inspect, error))?;
                    path = path.parent().unwrap_or(Path::new("")).join(to);
                }
                Some(EntryKind::File) | None => {
                    // Both, because `absolute` may already have dropped the end of the given path.
                    let name = file_name_of(given).and(file_name_of(&path)).ok_or_else(no_file_name)?;
                    let directory = path.parent().ok_or_else(no_file_name)?.to_owned();
                    return Ok(Self {
                        given: given.to_owned(),
                        path: directory.join(name),
                        directory,
                        existing,
                    });
                }
                Some(kind) => return Err(PublishError::NotAFile { path: given.to_owned(), kind }),
            }
        }
        Err(PublishError::LinkLoop { path: given.to_owned() })
    }

    /// The name of the file, in its directory.
    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    pub(super) fn error(&self, operation: Operation, source: io::Error) -> PublishError {
        PublishError::io(&self.given, operation, source)
    }
}

/// The last component of a path, unless the path denotes a directory: `Path` drops the end of `a/` and `a/.`.
fn file_name_of(path: &Path) -> Option<&OsStr> {
    let name = path.file_name()?;
    path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::RealDisk;

    #[test]
    fn a_directory_path_has_no_file_name() {
        let directory = tempfile::tempdir().unwrap();
        for end in ["new/", "new/."] {
            let error = Target::resolve(&RealDisk, &directory.path().join(end)).unwrap_err();
            assert!(matches!(error, PublishError::NoFileName { .. }), "{end}: {error}");
        }
        assert!(matches!(Target::resolve(&RealDisk, Path::new("")), Err(PublishError::NoFileName { .. })));
        assert!(matches!(
            Target::resolve(&RealDisk, Path::new("/")),
            Err(PublishError::NotAFile { kind: EntryKind::Directory, .. })
        ));
    }

    #[test]
    fn a_bare_name_is_in_the_working_directory() {
        let target = Target::resolve(&RealDisk, Path::new("no-such-file.bin")).unwrap();
        assert_eq!(target.directory, std::env::current_dir().unwrap());
        assert_eq!(target.name(), "no-such-file.bin");
        assert_eq!(target.given, Path::new("no-such-file.bin"));
    }
}
