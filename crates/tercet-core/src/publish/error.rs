//! Errors of writing files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::EntryKind;
use crate::{Class, Diagnostic, Hint, escape};

/// The error of a file that could not be written, replaced or locked.
///
/// Interfaces that return [`io::Error`] (`Write`, `Sink`) wrap it; [`PublishError::recover`] unwraps it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The path does not end in a file name.
    #[error("{}: the path does not end in a file name", show(path))]
    NoFileName {
        /// The path as given.
        path: PathBuf,
    },
    /// The file exists and must not be overwritten.
    #[error("{}: file exists", show(path))]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// The path names a directory, a device or another special file.
    #[error("{}: is {kind}, not a file", show(path))]
    NotAFile {
        /// The path as given.
        path: PathBuf,
        /// The kind of the entry.
        kind: EntryKind,
    },
    /// A loop of symbolic links.
    #[error("{}: the symbolic links form a loop", show(path))]
    LinkLoop {
        /// The path as given.
        path: PathBuf,
    },
    /// The parent directory does not exist.
    #[error("{}: the directory `{}` does not exist", show(path), show(directory))]
    NoDirectory {
        /// The path as given.
        path: PathBuf,
        /// The parent directory.
        directory: PathBuf,
    },
    /// A file cannot be created in the parent directory.
    #[error("{}: cannot create a file in the directory `{}`", show(path), show(directory))]
    Directory {
        /// The path as given.
        path: PathBuf,
        /// The parent directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another writer holds the lock.
    #[error("{}: another process is changing this file", show(path))]
    Busy {
        /// The path as given.
        path: PathBuf,
    },
    /// The path does not name the locked file any more.
    #[error("{}: was replaced by another program while it was being changed", show(path))]
    Replaced {
        /// The path as given.
        path: PathBuf,
    },
    /// An earlier write failed, so the bytes are incomplete and are not published.
    #[error("{}: an earlier write failed, so the file is incomplete", show(path))]
    Incomplete {
        /// The path as given.
        path: PathBuf,
    },
    /// An operation failed.
    #[error("{}: cannot {operation}", show(path))]
    Io {
        /// The path as given.
        path: PathBuf,
        /// The operation.
        operation: Operation,
        /// The error of the operating system.
        source: io::Error,
    },
}

const _: () = assert!(size_of::<PublishError>() <= 96);

fn show(path: &Path) -> String {
    escape::name(&path.to_string_lossy()).into_owned()
}

/// The file system operations of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Reading the directory entry.
    Inspect,
    /// Opening the file.
    Open,
    /// Taking the lock.
    Lock,
    /// Writing bytes.
    Write,
    /// Seeking.
    Seek,
    /// Changing the length.
    SetLen,
    /// Setting the permissions of the replaced file.
    SetPermissions,
    /// Syncing the file.
    Sync,
    /// Renaming the temporary file to the target.
    Rename,
    /// Syncing the directory: the new file is in place, but a power cut could still undo it.
    SyncDirectory,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "read the directory entry",
            Self::Open => "open the file",
            Self::Lock => "lock the file",
            Self::Write => "write",
            Self::Seek => "seek",
            Self::SetLen => "change the length",
            Self::SetPermissions => "set the permissions",
            Self::Sync => "sync the file to the disk",
            Self::Rename => "move the finished file into place",
            Self::SyncDirectory => "sync the directory to the disk",
        })
    }
}

impl PublishError {
    /// The path as given.
    pub fn path(&self) -> &Path {
        match self {
            Self::NoFileName { path }
            | Self::NotAFile { path, .. }
            | Self::LinkLoop { path }
            | Self::NoDirectory { path, .. }
            | Self::Directory { path, .. }
            | Self::Busy { path }
            | Self::Replaced { path }
            | Self::Incomplete { path }
            | Self::Exists { path }
            | Self::Io { path, .. } => path,
        }
    }

    /// The corresponding kind of [`io::Error`].
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoFileName { .. } => io::ErrorKind::InvalidInput,
            Self::NotAFile { kind: EntryKind::Directory, .. } => io::ErrorKind::IsADirectory,
            Self::NoDirectory { .. } => io::ErrorKind::NotFound,
            Self::Busy { .. } => io::ErrorKind::ResourceBusy,
            Self::Exists { .. } => io::ErrorKind::AlreadyExists,
            Self::Directory { source, .. } | Self::Io { source, .. } => source.kind(),
            Self::NotAFile { .. }
            | Self::LinkLoop { .. }
            | Self::Replaced { .. }
            | Self::Incomplete { .. } => io::ErrorKind::Other,
        }
    }

    /// Unwraps the error from an [`io::Error`]; any other error is returned unchanged.
    pub fn recover(error: io::Error) -> Result<Self, io::Error> {
        error.downcast()
    }

    /// The same error of another path: a file that is written beside its target has the name of the target.
    #[must_use]
    pub fn with_path(mut self, new: PathBuf) -> Self {
        match &mut self {
            Self::NoFileName { path }
            | Self::Exists { path }
            | Self::NotAFile { path, .. }
            | Self::LinkLoop { path }
            | Self::NoDirectory { path, .. }
            | Self::Directory { path, .. }
            | Self::Busy { path }
            | Self::Replaced { path }
            | Self::Incomplete { path }
            | Self::Io { path, .. } => *path = new,
        }
        self
    }

    #[cfg(any(unix, windows))]
    pub(super) fn io(path: &Path, operation: Operation, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), operation, source }
    }
}

impl From<PublishError> for io::Error {
    fn from(error: PublishError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl Diagnostic for PublishError {
    fn class(&self) -> Class {
        match self {
            Self::NoFileName { .. } | Self::NotAFile { .. } | Self::Exists { .. } => Class::Request,
            Self::LinkLoop { .. }
            | Self::NoDirectory { .. }
            | Self::Directory { .. }
            | Self::Busy { .. }
            | Self::Replaced { .. }
            | Self::Incomplete { .. }
            | Self::Io { .. } => Class::Io,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Busy { .. } => "try again when the other process has finished",
            Self::Replaced { .. } => "nothing was written; try again with the new file",
            Self::NoDirectory { .. } => "create the directory first",
            Self::Io { operation: Operation::SyncDirectory, .. } => {
                "the file is in place, but may not survive a power cut"
            }
            Self::Io { operation: Operation::Lock, source, .. }
                if source.kind() == io::ErrorKind::Unsupported =>
            {
                "this file system has no locks; change a copy on another file system"
            }
            Self::Directory { source, .. } | Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => "the disk is full; the old file, if any, is unchanged",
                io::ErrorKind::QuotaExceeded => "disk quota exceeded; the old file, if any, is unchanged",
                io::ErrorKind::FileTooLarge => {
                    "the file exceeds the file size limit (`ulimit -f`); the old file, if any, is unchanged"
                }
                io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
                io::ErrorKind::PermissionDenied => "check the permissions of the file and its directory",
                _ => return None,
            },
            Self::Exists { .. } => return Some(Hint::Overwrite),
            Self::NoFileName { .. }
            | Self::NotAFile { .. }
            | Self::LinkLoop { .. }
            | Self::Incomplete { .. } => return None,
        };
        Some(hint.into())
    }

    fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    fn is_broken_pipe(&self) -> bool {
        self.kind() == io::ErrorKind::BrokenPipe
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn errors_are_recovered_from_io_errors() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let travelling = io::Error::from(PublishError::io(Path::new("a.tet"), Operation::Write, full));
        assert_eq!(travelling.kind(), io::ErrorKind::StorageFull);
        let back = PublishError::recover(travelling).unwrap();
        assert!(matches!(back, PublishError::Io { operation: Operation::Write, .. }));
        assert_eq!(back.path(), Path::new("a.tet"));
        assert!(back.hint().unwrap().to_string().contains("disk is full"));
        assert!(back.source().is_some());

        let other = io::Error::other("something else");
        assert_eq!(PublishError::recover(other).unwrap_err().to_string(), "something else");
    }

    #[test]
    fn paths_are_escaped() {
        let error = PublishError::Busy { path: PathBuf::from("a\u{1b}[2J.tet") };
        assert_eq!(error.to_string(), "a\\u{1b}[2J.tet: another process is changing this file");
    }
}
