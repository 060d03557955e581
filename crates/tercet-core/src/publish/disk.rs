//! The file layer: every operation a writer makes, as a trait that tests can stand in for.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use super::Kind;

/// The file layer under every writer.
///
/// One method is one operation that can fail; none retries and none follows a symbolic link of its own accord
/// (except in the folders of a path), so that a test which fails the n-th operation reaches every error path.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// What a path names. A symbolic link is answered as itself.
    fn entry(&self, path: &Path) -> io::Result<Entry>;

    /// Where a symbolic link points, as it is stored.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;

    /// Creates a file that must not exist, open for writing.
    ///
    /// With `like`, nobody who may not read a file of those rights may read the new one, from its first moment
    /// on. Without, the new file follows the defaults of the process (umask).
    fn create_new(&self, path: &Path, like: Option<&Access>) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing, without changing it.
    ///
    /// [`io::ErrorKind::WouldBlock`] where the system itself keeps the file from being opened while another
    /// writer has it.
    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file a new name, replacing the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, unless a file has it: [`io::ErrorKind::AlreadyExists`].
    ///
    /// [`io::ErrorKind::Unsupported`] where a file has one name only.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder survive a power cut.
    ///
    /// Where the file system has no such operation, this is success.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// The names in a folder that `wanted` accepts, in no particular order.
    fn list(&self, folder: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>>;
}

/// An open file of a [`Disk`].
///
/// `Write` may write less than asked or be interrupted, as the system does; the writers on top handle both.
pub trait DiskFile: Write + Seek + Send + fmt::Debug {
    /// What the open file is, whatever its path names by now.
    fn entry(&self) -> io::Result<Entry>;

    /// Makes all bytes survive a power cut.
    fn sync_all(&mut self) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&mut self, len: u64) -> io::Result<()>;

    /// Takes the exclusive advisory lock; `false` when somebody else holds it. Closing the file releases it.
    ///
    /// [`io::ErrorKind::Unsupported`] where the file system has no locks.
    fn try_lock(&mut self) -> io::Result<bool>;

    /// Gives the file these rights, and its owner and group as far as the process may.
    fn set_access(&mut self, access: &Access) -> io::Result<()>;

    /// The file of the system, where there is one: for copies that the system makes itself.
    fn handle(&self) -> Option<&std::fs::File> {
        None
    }
}

/// What a path or an open file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File, folder or something else.
    pub kind: Kind,
    /// Which file it is: two paths with one identity name the same file.
    pub id: FileId,
    /// Who may do what with it.
    pub access: Access,
}

/// The identity of a file while it is open: numbers that no other existing file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub(super) u64, pub(super) u64);

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The permission bits (`0o777`). On Windows only the right of the owner to write means anything.
    pub mode: u32,
    /// The numbers of user and group, where the system has them.
    pub owner: Option<(u32, u32)>,
}
