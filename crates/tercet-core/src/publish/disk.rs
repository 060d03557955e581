//! The file system operations of writers, as a trait that tests can replace.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use super::EntryKind;

/// The file system under every writer.
///
/// Each method is one operation that can fail. None retries, and none follows a symbolic link in the last
/// component of a path, so that a test that fails the n-th operation reaches every error path.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// The directory entry at a path. Symbolic links are not followed.
    fn entry(&self, path: &Path) -> io::Result<Entry>;

    /// The target of a symbolic link, as stored.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;

    /// Creates a file that must not exist, open for writing.
    ///
    /// With `like`, the new file is never more readable than these permissions allow. Without, it follows the umask.
    fn create_new(&self, path: &Path, like: Option<&Permissions>) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing, without changing it.
    ///
    /// [`io::ErrorKind::WouldBlock`] where the system refuses to open a file that another writer has open.
    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file, replacing an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Creates a hard link; [`io::ErrorKind::AlreadyExists`] if the name is taken.
    ///
    /// [`io::ErrorKind::Unsupported`] where the file system has no hard links.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Syncs a directory, so that its names survive a power cut.
    ///
    /// Succeeds where the file system has no such operation.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// The names in a directory that `wanted` accepts, in no particular order.
    fn list(&self, directory: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>>;
}

/// An open file of a [`Disk`].
///
/// `Write` may be partial or interrupted; the writers on top handle both.
pub trait DiskFile: Write + Seek + Send + fmt::Debug {
    /// The entry of the open file, even if its path now names another file.
    fn entry(&self) -> io::Result<Entry>;

    /// Syncs the file, so that its bytes survive a power cut.
    fn sync_all(&mut self) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&mut self, len: u64) -> io::Result<()>;

    /// Takes the exclusive advisory lock; `false` if another handle holds it. Closing the file releases it.
    ///
    /// [`io::ErrorKind::Unsupported`] where the file system has no locks.
    fn try_lock(&mut self) -> io::Result<bool>;

    /// Sets the permissions, and owner and group as far as the process may.
    fn set_permissions(&mut self, permissions: &Permissions) -> io::Result<()>;

    /// The file handle of the operating system, if any, for copies inside the kernel.
    fn handle(&self) -> Option<&std::fs::File> {
        None
    }
}

/// A directory entry: kind, ID and permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File, directory, link, …
    pub kind: EntryKind,
    /// The ID: two paths with the same ID name the same file.
    pub id: FileId,
    /// The permissions.
    pub permissions: Permissions,
}

/// The ID of an open file: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub(super) u64, pub(super) u64);

/// The permissions of a file: mode bits and owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// The mode bits (`0o777`). On Windows only the write permission of the owner is used.
    pub mode: u32,
    /// User and group ID, where the system has them.
    pub owner: Option<(u32, u32)>,
}
