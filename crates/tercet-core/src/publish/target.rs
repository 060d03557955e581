//! Where a new file goes: the path behind all symbolic links, checked before any byte is written.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, Entry, Kind, Operation, PublishError};

/// As many links as Linux follows in one path.
const MAX_LINKS: usize = 40;

/// A path that a file can be published at.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The path as the caller gave it, for messages.
    pub(super) shown: PathBuf,
    /// The absolute path behind the links: a later change of the working directory changes nothing.
    pub(super) path: PathBuf,
    /// The folder of `path`.
    pub(super) folder: PathBuf,
    /// The file that is there now.
    pub(super) existing: Option<Entry>,
}

impl Target {
    /// Follows the links of `shown` and refuses whatever a file cannot replace.
    pub(super) fn resolve(disk: &dyn Disk, shown: &Path) -> Result<Self, PublishError> {
        let no_file_name = || PublishError::NoFileName { path: shown.to_owned() };
        let mut path = std::path::absolute(shown).map_err(|_| no_file_name())?;
        for _ in 0..=MAX_LINKS {
            let existing = match disk.entry(&path) {
                Ok(entry) => Some(entry),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(PublishError::io(shown, Operation::Inspect, error)),
            };
            match existing.as_ref().map(|entry| entry.kind) {
                Some(Kind::Link) => {
                    let to = disk
                        .read_link(&path)
                        .map_err(|error| PublishError::io(shown, Operation::Inspect, error))?;
                    path = path.parent().unwrap_or(Path::new("")).join(to);
                }
                Some(Kind::File) | None => {
                    // Both, because `absolute` may already have dropped the end of the given path.
                    let name = own_name(shown).and(own_name(&path)).ok_or_else(no_file_name)?;
                    let folder = path.parent().ok_or_else(no_file_name)?.to_owned();
                    return Ok(Self { shown: shown.to_owned(), path: folder.join(name), folder, existing });
                }
                Some(kind) => return Err(PublishError::NotAFile { path: shown.to_owned(), kind }),
            }
        }
        Err(PublishError::LinkLoop { path: shown.to_owned() })
    }

    /// The name of the file, in its folder.
    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    pub(super) fn error(&self, operation: Operation, source: io::Error) -> PublishError {
        PublishError::io(&self.shown, operation, source)
    }
}

/// The last name of a path, unless the path insists on a folder: `Path` drops the end of `a/` and `a/.`.
fn own_name(path: &Path) -> Option<&OsStr> {
    let name = path.file_name()?;
    path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::RealDisk;

    #[test]
    fn a_path_that_insists_on_a_folder_names_no_file() {
        let folder = tempfile::tempdir().unwrap();
        for end in ["new/", "new/."] {
            let error = Target::resolve(&RealDisk, &folder.path().join(end)).unwrap_err();
            assert!(matches!(error, PublishError::NoFileName { .. }), "{end}: {error}");
        }
        assert!(matches!(Target::resolve(&RealDisk, Path::new("")), Err(PublishError::NoFileName { .. })));
        assert!(matches!(
            Target::resolve(&RealDisk, Path::new("/")),
            Err(PublishError::NotAFile { kind: Kind::Folder, .. })
        ));
    }

    #[test]
    fn a_bare_name_is_in_the_working_directory() {
        let target = Target::resolve(&RealDisk, Path::new("no-such-file.bin")).unwrap();
        assert_eq!(target.folder, std::env::current_dir().unwrap());
        assert_eq!(target.name(), "no-such-file.bin");
        assert_eq!(target.shown, Path::new("no-such-file.bin"));
    }
}
