//! Reason a file could not be written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Kind;
use crate::{Class, Diagnose, Hint, escape};

/// A file that could not be written, replaced or locked.
///
/// Travels through [`io::Error`] where an interface asks for one (`Write`, `Sink`) and comes back out with
/// [`PublishError::recover`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The path does not end in a name that a file could have.
    #[error("{}: the path does not end in a file name", show(path))]
    NoFileName {
        /// The path as given.
        path: PathBuf,
    },
    /// There is a file, which was not to be replaced.
    #[error("{}: exists already", show(path))]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// The path names something that cannot be replaced by a file.
    #[error("{}: is {kind}, not a file", show(path))]
    NotAFile {
        /// The path as given.
        path: PathBuf,
        /// What it names.
        kind: Kind,
    },
    /// Symbolic links lead to each other, without end.
    #[error("{}: the symbolic links lead nowhere", show(path))]
    LinkLoop {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder of the path does not exist.
    #[error("{}: the folder `{}` does not exist", show(path), show(folder))]
    NoFolder {
        /// The path as given.
        path: PathBuf,
        /// The folder that the file would be in.
        folder: PathBuf,
    },
    /// The folder does not take a new file.
    #[error("{}: cannot create a file in the folder `{}`", show(path), show(folder))]
    Folder {
        /// The path as given.
        path: PathBuf,
        /// The folder that the file would be in.
        folder: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// Another writer holds the lock.
    #[error("{}: another process is changing this file", show(path))]
    Busy {
        /// The path as given.
        path: PathBuf,
    },
    /// The file of the path is no longer the one that was locked.
    #[error("{}: was replaced by another program while being changed", show(path))]
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
    /// The system refused an operation.
    #[error("{}: cannot {operation}", show(path))]
    Io {
        /// The path as given.
        path: PathBuf,
        /// The operation.
        operation: Operation,
        /// The answer of the system.
        source: io::Error,
    },
}

const _: () = assert!(size_of::<PublishError>() <= 96);

fn show(path: &Path) -> String {
    escape::name(&path.to_string_lossy()).into_owned()
}

/// The steps of writing a file that the system can refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Asking what the path names.
    Inspect,
    /// Opening the file.
    Open,
    /// Taking the lock.
    Lock,
    /// Writing bytes.
    Write,
    /// Moving the position.
    Seek,
    /// Changing the length.
    SetLen,
    /// Keeping the permissions of the file that is replaced.
    SetAccess,
    /// Making the bytes durable.
    Sync,
    /// Giving the new file its name.
    Rename,
    /// Making the name durable: the new file is in place, but a power cut could still undo it.
    SyncFolder,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "look at the path",
            Self::Open => "open the file",
            Self::Lock => "lock the file",
            Self::Write => "write",
            Self::Seek => "seek",
            Self::SetLen => "change the length",
            Self::SetAccess => "keep the permissions",
            Self::Sync => "sync the file to the disk",
            Self::Rename => "move the finished file into place",
            Self::SyncFolder => "sync the folder to the disk",
        })
    }
}

impl PublishError {
    /// The path it is about, as the caller gave it.
    pub fn path(&self) -> &Path {
        match self {
            Self::NoFileName { path }
            | Self::NotAFile { path, .. }
            | Self::LinkLoop { path }
            | Self::NoFolder { path, .. }
            | Self::Folder { path, .. }
            | Self::Busy { path }
            | Self::Replaced { path }
            | Self::Incomplete { path }
            | Self::Exists { path }
            | Self::Io { path, .. } => path,
        }
    }

    /// The nearest kind of [`io::Error`].
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoFileName { .. } => io::ErrorKind::InvalidInput,
            Self::NotAFile { kind: Kind::Folder, .. } => io::ErrorKind::IsADirectory,
            Self::NoFolder { .. } => io::ErrorKind::NotFound,
            Self::Busy { .. } => io::ErrorKind::ResourceBusy,
            Self::Exists { .. } => io::ErrorKind::AlreadyExists,
            Self::Folder { source, .. } | Self::Io { source, .. } => source.kind(),
            Self::NotAFile { .. }
            | Self::LinkLoop { .. }
            | Self::Replaced { .. }
            | Self::Incomplete { .. } => io::ErrorKind::Other,
        }
    }

    /// Takes the error back out of an [`io::Error`] made from it; any other error is returned as it was.
    pub fn recover(error: io::Error) -> Result<Self, io::Error> {
        error.downcast()
    }

    pub(super) fn io(path: &Path, operation: Operation, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), operation, source }
    }
}

impl From<PublishError> for io::Error {
    fn from(error: PublishError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl Diagnose for PublishError {
    fn class(&self) -> Class {
        match self {
            Self::NoFileName { .. } | Self::NotAFile { .. } | Self::Exists { .. } => Class::Request,
            Self::LinkLoop { .. }
            | Self::NoFolder { .. }
            | Self::Folder { .. }
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
            Self::NoFolder { .. } => "create the folder first",
            Self::Io { operation: Operation::SyncFolder, .. } => {
                "the file is in place, but may not survive a power cut"
            }
            Self::Io { operation: Operation::Lock, source, .. }
                if source.kind() == io::ErrorKind::Unsupported =>
            {
                "this file system has no locks; change a copy on another one"
            }
            Self::Folder { source, .. } | Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => "the disk is full; the old file, if any, is unchanged",
                io::ErrorKind::QuotaExceeded => "your quota is used up; the old file, if any, is unchanged",
                io::ErrorKind::FileTooLarge => {
                    "no file may become so large here (`ulimit -f`); the old file, if any, is unchanged"
                }
                io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
                io::ErrorKind::PermissionDenied => "check the permissions of the file and its folder",
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
    fn survives_a_journey_through_io_error() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let travelling = io::Error::from(PublishError::io(Path::new("a.tet"), Operation::Write, full));
        assert_eq!(travelling.kind(), io::ErrorKind::StorageFull);
        let back = PublishError::recover(travelling).unwrap();
        assert!(matches!(back, PublishError::Io { operation: Operation::Write, .. }));
        assert_eq!(back.path(), Path::new("a.tet"));
        assert!(back.hint().unwrap().to_string().contains("disk is full"));
        assert!(back.source().is_some());

        let foreign = io::Error::other("something else");
        assert_eq!(PublishError::recover(foreign).unwrap_err().to_string(), "something else");
    }

    #[test]
    fn paths_cannot_command_a_terminal() {
        let error = PublishError::Busy { path: PathBuf::from("a\u{1b}[2J.tet") };
        assert_eq!(error.to_string(), "a\\u{1b}[2J.tet: another process is changing this file");
    }
}
