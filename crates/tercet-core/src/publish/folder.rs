//! An open folder: what happens inside it cannot be led elsewhere by whoever renames its parents.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Access, AtomicFile, Disk, DiskFile, Entry, FileId, PublishError};

/// A folder that is held by its handle, not by its path.
///
/// Every operation names one thing directly inside it. Symbolic links are never followed: neither by
/// [`enter`](Self::enter), nor by what is written through it. A program that swaps a parent for a link meanwhile
/// changes nothing.
///
/// It is a [`Disk`] as well: of each path only the last name counts, and it is looked up in this folder.
///
/// Windows has no such operations in safe code; there the path is resolved once, and links are refused where they
/// are met.
#[derive(Clone, Debug)]
pub struct Folder {
    handle: Arc<system::Handle>,
    path: PathBuf,
}

impl Folder {
    /// Opens an existing folder; links in its path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let handle = Arc::new(system::open(&path)?);
        Ok(Self { handle, path })
    }

    /// Opens a folder inside this one. A link to a folder is refused.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(single(name)?);
        let handle = Arc::new(system::enter(&self.handle, name, &path)?);
        Ok(Self { handle, path })
    }

    /// Makes a folder inside this one, for its owner only if `private`; `false` if something of that name is there.
    pub fn make(&self, name: &OsStr, private: bool) -> io::Result<bool> {
        let path = self.path.join(single(name)?);
        match system::make(&self.handle, name, &path, private) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes an empty folder inside this one.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        let path = self.path.join(single(name)?);
        system::remove_folder(&self.handle, name, &path)
    }

    /// What a name in this folder is; `None` if there is nothing.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match self.entry(&self.path.join(single(name)?)) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Which folder it is.
    pub fn id(&self) -> io::Result<FileId> {
        system::id(&self.handle, &self.path)
    }

    /// The path it was opened by, behind all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a file in this folder.
    pub fn stage(&self, name: &OsStr) -> Result<AtomicFile, PublishError> {
        AtomicFile::create_on(Arc::new(self.clone()), &self.path.join(name))
    }

    /// Starts a file in this folder that is for its owner alone, as [`AtomicFile::create_private`] does.
    pub fn stage_private(&self, name: &OsStr) -> Result<AtomicFile, PublishError> {
        AtomicFile::create_private_on(Arc::new(self.clone()), &self.path.join(name))
    }

    /// A file without a name, for reading and writing. It is gone when it is closed, whatever happens.
    pub fn temporary(&self) -> io::Result<File> {
        system::temporary(&self.handle, &self.path)
    }
}

/// A name that stays in its folder.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name in a folder")),
    }
}

/// The last name of a path.
fn name_of(path: &Path) -> io::Result<&OsStr> {
    single(path.file_name().unwrap_or_default())
}

impl Disk for Folder {
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        system::entry(&self.handle, name_of(path)?, path)
    }

    fn read_link(&self, _path: &Path) -> io::Result<PathBuf> {
        Err(io::Error::other("a symbolic link is not followed here"))
    }

    fn create_new(&self, path: &Path, like: Option<&Access>) -> io::Result<Box<dyn DiskFile>> {
        system::create_new(&self.handle, name_of(path)?, path, like)
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        system::open_existing(&self.handle, name_of(path)?, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::rename(&self.handle, (name_of(from)?, from), (name_of(to)?, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        system::remove(&self.handle, name_of(path)?, path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        system::sync(&self.handle, folder)
    }

    fn list(&self, folder: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        system::list(&self.handle, folder, wanted)
    }
}

#[cfg(unix)]
mod system {
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, Mode, OFlags};

    use super::super::real::{RealFile, entry_of, is_unsyncable, mode_of_new};
    use super::{Access, DiskFile, Entry, File, FileId, OsStr, OsString, Path, io};

    pub(super) type Handle = OwnedFd;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        Ok(rustix::fs::open(path, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub(super) fn enter(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<Handle> {
        Ok(rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub(super) fn make(folder: &Handle, name: &OsStr, _path: &Path, private: bool) -> io::Result<()> {
        let mode = if private { Mode::RWXU } else { Mode::RWXU | Mode::RWXG | Mode::RWXO };
        Ok(rustix::fs::mkdirat(folder, name, mode)?)
    }

    pub(super) fn remove_folder(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn id(folder: &Handle, _path: &Path) -> io::Result<FileId> {
        Ok(entry_of(&rustix::fs::fstat(folder)?).id)
    }

    pub(super) fn entry(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<Entry> {
        Ok(entry_of(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    pub(super) fn create_new(
        folder: &Handle,
        name: &OsStr,
        _path: &Path,
        like: Option<&Access>,
    ) -> io::Result<Box<dyn DiskFile>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode_of_new(like) as rustix::fs::RawMode);
        let handle = rustix::fs::openat(folder, name, flags, mode)?;
        Ok(Box::new(RealFile::new(handle.into())))
    }

    pub(super) fn open_existing(
        folder: &Handle,
        name: &OsStr,
        _path: &Path,
    ) -> io::Result<Box<dyn DiskFile>> {
        // Without waiting for the other end, should a named pipe have taken the place of the file.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        Ok(Box::new(RealFile::new(handle.into())))
    }

    pub(super) fn rename(folder: &Handle, from: (&OsStr, &Path), to: (&OsStr, &Path)) -> io::Result<()> {
        Ok(rustix::fs::renameat(folder, from.0, folder, to.0)?)
    }

    pub(super) fn remove(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    pub(super) fn sync(folder: &Handle, _path: &Path) -> io::Result<()> {
        match rustix::fs::fsync(folder).map_err(io::Error::from) {
            Err(error) if is_unsyncable(&error) => Ok(()),
            synced => synced,
        }
    }

    pub(super) fn list(
        folder: &Handle,
        _path: &Path,
        wanted: &dyn Fn(&OsStr) -> bool,
    ) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for item in rustix::fs::Dir::read_from(folder)? {
            let item = item?;
            let name = OsStr::from_bytes(item.file_name().to_bytes());
            if name != "." && name != ".." && wanted(name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn temporary(folder: &Handle, _path: &Path) -> io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            if let Ok(handle) = rustix::fs::openat(folder, ".", flags, mode) {
                return Ok(handle.into());
            }
            // Not every file system has files without a name.
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = super::super::temporary::unfinished_name(OsStr::new("spill"));
        let handle = rustix::fs::openat(folder, &name, flags, mode)?;
        rustix::fs::unlinkat(folder, &name, AtFlags::empty())?;
        Ok(handle.into())
    }
}

#[cfg(windows)]
mod system {
    use std::fs;

    use super::super::{Disk as _, Kind, RealDisk};
    use super::{Access, DiskFile, Entry, File, FileId, OsStr, OsString, Path, PathBuf, io};

    /// The resolved path.
    pub(super) type Handle = PathBuf;

    pub(super) fn open(path: &Path) -> io::Result<Handle> {
        refuse_others(path).map(|()| path.to_owned())
    }

    pub(super) fn enter(_folder: &Handle, _name: &OsStr, path: &Path) -> io::Result<Handle> {
        refuse_others(path).map(|()| path.to_owned())
    }

    fn refuse_others(path: &Path) -> io::Result<()> {
        match RealDisk.entry(path)?.kind {
            Kind::Folder => Ok(()),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn make(_folder: &Handle, _name: &OsStr, path: &Path, _private: bool) -> io::Result<()> {
        fs::create_dir(path)
    }

    pub(super) fn remove_folder(_folder: &Handle, _name: &OsStr, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    pub(super) fn id(_folder: &Handle, path: &Path) -> io::Result<FileId> {
        Ok(RealDisk.entry(path)?.id)
    }

    pub(super) fn entry(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<Entry> {
        RealDisk.entry(&folder.join(name))
    }

    pub(super) fn create_new(
        folder: &Handle,
        name: &OsStr,
        _path: &Path,
        like: Option<&Access>,
    ) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create_new(&folder.join(name), like)
    }

    pub(super) fn open_existing(
        folder: &Handle,
        name: &OsStr,
        _path: &Path,
    ) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open_existing(&folder.join(name))
    }

    pub(super) fn rename(folder: &Handle, from: (&OsStr, &Path), to: (&OsStr, &Path)) -> io::Result<()> {
        RealDisk.rename(&folder.join(from.0), &folder.join(to.0))
    }

    pub(super) fn remove(folder: &Handle, name: &OsStr, _path: &Path) -> io::Result<()> {
        RealDisk.remove(&folder.join(name))
    }

    pub(super) fn sync(folder: &Handle, _path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(folder)
    }

    pub(super) fn list(
        folder: &Handle,
        _path: &Path,
        wanted: &dyn Fn(&OsStr) -> bool,
    ) -> io::Result<Vec<OsString>> {
        RealDisk.list(folder, wanted)
    }

    pub(super) fn temporary(_folder: &Handle, path: &Path) -> io::Result<File> {
        tempfile::tempfile_in(path)
    }
}
