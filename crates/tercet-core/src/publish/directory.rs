//! Open directories: operations relative to a handle, safe from renamed parents.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::atomic_file::PRIVATE;
use super::{AtomicFile, Disk, DiskFile, Entry, FileId, Permissions, PublishError};

/// An open directory, identified by its handle instead of its path.
///
/// Every operation names one entry of the directory. Symbolic links are never followed, neither by
/// [`enter`](Self::enter) nor by writes. A program that replaces a parent directory by a link has no effect.
///
/// It is also a [`Disk`]: only the last component of each path is used, in this directory.
///
/// Safe code has no such operations on Windows: there the path is resolved once, and links are refused.
#[derive(Clone, Debug)]
pub struct Directory {
    handle: Arc<system::Handle>,
    path: PathBuf,
}

impl Directory {
    /// Opens an existing directory. Links in its path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let handle = Arc::new(system::open(&path)?);
        Ok(Self { handle, path })
    }

    /// Opens a subdirectory. A link is refused.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(single(name)?);
        let handle = Arc::new(system::enter(&self.handle, name, &path)?);
        Ok(Self { handle, path })
    }

    /// Creates a subdirectory, with owner-only permissions if `private`; `false` if the name exists.
    pub fn make(&self, name: &OsStr, private: bool) -> io::Result<bool> {
        let path = self.path.join(single(name)?);
        match system::make(&self.handle, name, &path, private) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes an empty subdirectory.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        let path = self.path.join(single(name)?);
        system::remove_directory(&self.handle, name, &path)
    }

    /// The entry of a name; `None` if it does not exist.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match self.entry(&self.path.join(single(name)?)) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The ID of the directory.
    pub fn id(&self) -> io::Result<FileId> {
        system::id(&self.handle, &self.path)
    }

    /// The path at opening, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an output file in this directory, with owner-only permissions if `private`. An existing file is an
    /// error unless `overwrite`, also one that appears before the output is published.
    pub fn stage(&self, name: &OsStr, private: bool, overwrite: bool) -> Result<AtomicFile, PublishError> {
        let permissions = private.then_some(PRIVATE);
        let (disk, path) = (Arc::new(self.clone()), self.path.join(name));
        if overwrite {
            AtomicFile::create_as(disk, &path, permissions)
        } else {
            AtomicFile::create_new_as(disk, &path, permissions)
        }
    }

    /// An unnamed file for reading and writing. It disappears when it is closed.
    pub fn temporary(&self) -> io::Result<File> {
        system::temporary(&self.handle, &self.path)
    }
}

/// Checks that a name is a single path component.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a single file name")),
    }
}

/// The last component of a path.
fn name_of(path: &Path) -> io::Result<&OsStr> {
    single(path.file_name().unwrap_or_default())
}

impl Disk for Directory {
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        system::entry(&self.handle, name_of(path)?, path)
    }

    fn read_link(&self, _path: &Path) -> io::Result<PathBuf> {
        Err(io::Error::other("symbolic links are not followed"))
    }

    fn create_new(&self, path: &Path, like: Option<&Permissions>) -> io::Result<Box<dyn DiskFile>> {
        system::create_new(&self.handle, name_of(path)?, path, like)
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        system::open_existing(&self.handle, name_of(path)?, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::rename(&self.handle, (name_of(from)?, from), (name_of(to)?, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::link(&self.handle, name_of(from)?, name_of(to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        system::remove(&self.handle, name_of(path)?, path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        system::sync(&self.handle, directory)
    }

    fn list(&self, directory: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        system::list(&self.handle, directory, wanted)
    }
}

#[cfg(unix)]
mod system {
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, Mode, OFlags};

    use super::super::real_disk::{RealFile, cannot_sync, entry_from_stat, new_file_mode};
    use super::{DiskFile, Entry, File, FileId, OsStr, OsString, Path, Permissions, io};

    pub(super) type Handle = OwnedFd;

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        Ok(rustix::fs::open(path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub(super) fn enter(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<Handle> {
        Ok(rustix::fs::openat(directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub(super) fn make(directory: &Handle, name: &OsStr, _path: &Path, private: bool) -> io::Result<()> {
        let mode = if private { Mode::RWXU } else { Mode::RWXU | Mode::RWXG | Mode::RWXO };
        Ok(rustix::fs::mkdirat(directory, name, mode)?)
    }

    pub(super) fn remove_directory(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn id(directory: &Handle, _path: &Path) -> io::Result<FileId> {
        Ok(entry_from_stat(&rustix::fs::fstat(directory)?).id)
    }

    pub(super) fn entry(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<Entry> {
        Ok(entry_from_stat(&rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    pub(super) fn create_new(
        directory: &Handle,
        name: &OsStr,
        _path: &Path,
        like: Option<&Permissions>,
    ) -> io::Result<Box<dyn DiskFile>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(new_file_mode(like) as rustix::fs::RawMode);
        let handle = rustix::fs::openat(directory, name, flags, mode)?;
        Ok(Box::new(RealFile::new(handle.into())))
    }

    pub(super) fn open_existing(
        directory: &Handle,
        name: &OsStr,
        _path: &Path,
    ) -> io::Result<Box<dyn DiskFile>> {
        // `NONBLOCK`: opening must not wait if the file was replaced by a named pipe.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        Ok(Box::new(RealFile::new(handle.into())))
    }

    pub(super) fn rename(directory: &Handle, from: (&OsStr, &Path), to: (&OsStr, &Path)) -> io::Result<()> {
        Ok(rustix::fs::renameat(directory, from.0, directory, to.0)?)
    }

    pub(super) fn link(directory: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?)
    }

    pub(super) fn remove(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty())?)
    }

    pub(super) fn sync(directory: &Handle, _path: &Path) -> io::Result<()> {
        match rustix::fs::fsync(directory).map_err(io::Error::from) {
            Err(error) if cannot_sync(&error) => Ok(()),
            synced => synced,
        }
    }

    pub(super) fn list(
        directory: &Handle,
        _path: &Path,
        wanted: &dyn Fn(&OsStr) -> bool,
    ) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for item in rustix::fs::Dir::read_from(directory)? {
            let item = item?;
            let name = OsStr::from_bytes(item.file_name().to_bytes());
            if name != "." && name != ".." && wanted(name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn temporary(directory: &Handle, _path: &Path) -> io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            if let Ok(handle) = rustix::fs::openat(directory, ".", flags, mode) {
                return Ok(handle.into());
            }
            // Not every file system has files without a name.
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = super::super::temp_file::temp_name(OsStr::new("spill"));
        let handle = rustix::fs::openat(directory, &name, flags, mode)?;
        rustix::fs::unlinkat(directory, &name, AtFlags::empty())?;
        Ok(handle.into())
    }
}

#[cfg(windows)]
mod system {
    use std::fs;

    use super::super::{Disk as _, EntryKind, RealDisk};
    use super::{DiskFile, Entry, File, FileId, OsStr, OsString, Path, PathBuf, Permissions, io};

    /// The resolved path.
    pub(super) type Handle = PathBuf;

    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        refuse_others(path).map(|()| path.to_owned())
    }

    pub(super) fn enter(_directory: &Handle, _name: &OsStr, path: &Path) -> io::Result<Handle> {
        refuse_others(path).map(|()| path.to_owned())
    }

    fn refuse_others(path: &Path) -> io::Result<()> {
        match RealDisk.entry(path)?.kind {
            EntryKind::Directory => Ok(()),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn make(_directory: &Handle, _name: &OsStr, path: &Path, _private: bool) -> io::Result<()> {
        fs::create_dir(path)
    }

    pub(super) fn remove_directory(_directory: &Handle, _name: &OsStr, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    pub(super) fn id(_directory: &Handle, path: &Path) -> io::Result<FileId> {
        Ok(RealDisk.entry(path)?.id)
    }

    pub(super) fn entry(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<Entry> {
        RealDisk.entry(&directory.join(name))
    }

    pub(super) fn create_new(
        directory: &Handle,
        name: &OsStr,
        _path: &Path,
        like: Option<&Permissions>,
    ) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create_new(&directory.join(name), like)
    }

    pub(super) fn open_existing(
        directory: &Handle,
        name: &OsStr,
        _path: &Path,
    ) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open_existing(&directory.join(name))
    }

    pub(super) fn rename(directory: &Handle, from: (&OsStr, &Path), to: (&OsStr, &Path)) -> io::Result<()> {
        RealDisk.rename(&directory.join(from.0), &directory.join(to.0))
    }

    pub(super) fn link(directory: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
        RealDisk.link(&directory.join(from), &directory.join(to))
    }

    pub(super) fn remove(directory: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        RealDisk.remove(&directory.join(name))
    }

    pub(super) fn sync(directory: &Handle, _path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(directory)
    }

    pub(super) fn list(
        directory: &Handle,
        _path: &Path,
        wanted: &dyn Fn(&OsStr) -> bool,
    ) -> io::Result<Vec<OsString>> {
        RealDisk.list(directory, wanted)
    }

    pub(super) fn temporary(_directory: &Handle, path: &Path) -> io::Result<File> {
        tempfile::tempfile_in(path)
    }
}
