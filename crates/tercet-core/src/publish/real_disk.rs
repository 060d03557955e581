//! The file system of this machine.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile, Entry, EntryKind, FileId, Permissions};
#[cfg(target_os = "linux")]
use crate::num::saturating_usize;

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        Ok(system::entry(&fs::symlink_metadata(path)?))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn create_new(&self, path: &Path, like: Option<&Permissions>) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(Box::new(RealFile(system::open(&mut options, path, like)?)))
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(Box::new(RealFile(system::open(&mut options, path, None)?)))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the layer for the others to use")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the layer for the others to use")]
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        system::sync_directory(directory)
    }

    fn list(&self, directory: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for item in fs::read_dir(directory)? {
            let name = item?.file_name();
            if wanted(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(unix)]
pub(super) use system::{cannot_sync, entry_from_stat, new_file_mode};

#[derive(Debug)]
pub(super) struct RealFile(File);

#[cfg(unix)]
impl RealFile {
    /// A file that was opened in some other way.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // Closing releases the lock only when no child that is being started has a copy of the handle.
        system::unlock(&self.0);
    }
}

impl Write for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for RealFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl DiskFile for RealFile {
    fn entry(&self) -> io::Result<Entry> {
        Ok(system::entry(&self.0.metadata()?))
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        system::try_lock(&self.0)
    }

    fn set_permissions(&mut self, permissions: &Permissions) -> io::Result<()> {
        system::set_permissions(&self.0, permissions)
    }

    fn handle(&self) -> Option<&File> {
        Some(&self.0)
    }
}

/// Copies `len` bytes at `from` to the position of the other file inside the kernel. Returns the number of bytes
/// copied, fewer where the system does not support it.
#[cfg(target_os = "linux")]
pub(super) fn copy_in_kernel(source: &File, mut from: u64, sink: &File, len: u64) -> io::Result<u64> {
    use rustix::io::Errno;

    let mut done = 0;
    while done < len {
        // The kernel takes at most 2 GiB at a time.
        let want = saturating_usize(len - done).min(1 << 30);
        match rustix::fs::copy_file_range(source, Some(&mut from), sink, None, want) {
            // Two file systems, or one that does not know how.
            Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => break,
            Ok(copied) => done += copied as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Other systems have no such copy.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
pub(super) fn copy_in_kernel(_source: &File, _from: u64, _sink: &File, _len: u64) -> io::Result<u64> {
    Ok(0)
}

#[cfg(unix)]
mod system {
    use std::fs::{Permissions as FsPermissions, TryLockError};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    use super::{Entry, EntryKind, File, FileId, Metadata, OpenOptions, Path, Permissions, io};

    pub(super) fn entry(metadata: &Metadata) -> Entry {
        let kind = match metadata.file_type() {
            t if t.is_file() => EntryKind::File,
            t if t.is_dir() => EntryKind::Directory,
            t if t.is_symlink() => EntryKind::Link,
            t if t.is_fifo() => EntryKind::Fifo,
            t if t.is_socket() => EntryKind::Socket,
            t if t.is_char_device() || t.is_block_device() => EntryKind::Device,
            _ => EntryKind::Other,
        };
        Entry {
            kind,
            id: FileId(metadata.dev(), metadata.ino()),
            permissions: Permissions {
                mode: metadata.mode() & 0o777,
                owner: Some((metadata.uid(), metadata.gid())),
            },
        }
    }

    pub(super) fn open(
        options: &mut OpenOptions,
        path: &Path,
        like: Option<&Permissions>,
    ) -> io::Result<File> {
        options.mode(new_file_mode(like)).open(path)
    }

    /// The mode of a new file, before the umask.
    pub(in super::super) fn new_file_mode(like: Option<&Permissions>) -> u32 {
        // The owner can always read and write a temporary file, or a later writer could not lock and remove it.
        like.map_or(0o666, |permissions| (permissions.mode & 0o777) | 0o600)
    }

    /// The entry from the result of `fstat`.
    #[expect(clippy::allow_attributes, reason = "the types of the numbers differ between systems")]
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "device numbers are bit patterns")]
    pub(in super::super) fn entry_from_stat(stat: &rustix::fs::Stat) -> Entry {
        use rustix::fs::FileType;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Fifo,
            FileType::Socket => EntryKind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => EntryKind::Device,
            FileType::Unknown => EntryKind::Other,
        };
        Entry {
            kind,
            id: FileId(stat.st_dev as u64, stat.st_ino as u64),
            permissions: Permissions {
                mode: stat.st_mode as u32 & 0o777,
                owner: Some((stat.st_uid, stat.st_gid)),
            },
        }
    }

    /// The error of file systems that cannot sync a directory (some FUSE and SMB mounts).
    pub(in super::super) fn cannot_sync(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    }

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn unlock(file: &File) {
        let _ = file.unlock();
    }

    pub(super) fn set_permissions(file: &File, permissions: &Permissions) -> io::Result<()> {
        let now = entry(&file.metadata()?).permissions;
        if let (Some((uid, gid)), Some((now_uid, now_gid))) = (permissions.owner, now.owner) {
            // Only root may change the owner, and only to a group of the process. Otherwise the new file keeps its
            // own, as with any program that rewrites files.
            let uid = (uid != now_uid).then_some(uid);
            let gid = (gid != now_gid).then_some(gid);
            if gid.is_some() {
                let _ = fchown(file, None, gid);
            }
            if uid.is_some() {
                let _ = fchown(file, uid, None);
            }
        }
        // Only if it differs: some network file systems refuse every change of mode.
        if now.mode != permissions.mode & 0o777 {
            file.set_permissions(FsPermissions::from_mode(permissions.mode & 0o777))?;
        }
        Ok(())
    }

    pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
        let handle = match OpenOptions::new().read(true).open(directory) {
            // A directory without read permission cannot be opened, hence not synced.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            opened => opened?,
        };
        match handle.sync_all() {
            Err(error) if cannot_sync(&error) => Ok(()),
            synced => synced,
        }
    }
}

/// On Windows a byte lock also blocks readers, so the share mode of the handle is the lock: others may read and
/// rename, but a second writer cannot open the file.
#[cfg(windows)]
mod system {
    use std::os::windows::fs::{MetadataExt, OpenOptionsExt};

    use super::{Entry, EntryKind, File, FileId, Metadata, OpenOptions, Path, Permissions, io};

    const FILE_SHARE_READ: u32 = 1;
    const FILE_SHARE_DELETE: u32 = 4;
    const ERROR_SHARING_VIOLATION: i32 = 32;

    pub(super) fn entry(metadata: &Metadata) -> Entry {
        let kind = match metadata.file_type() {
            t if t.is_file() => EntryKind::File,
            t if t.is_dir() => EntryKind::Directory,
            t if t.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let mode = if metadata.permissions().readonly() { 0o444 } else { 0o666 };
        // File IDs need `unsafe`. Times of 100 ns and the length are used instead: IDs are compared only between
        // an idle file and the path it was opened by.
        let id = FileId(metadata.creation_time(), metadata.last_write_time() ^ metadata.file_size());
        Entry { kind, id, permissions: Permissions { mode, owner: None } }
    }

    pub(super) fn open(
        options: &mut OpenOptions,
        path: &Path,
        _like: Option<&Permissions>,
    ) -> io::Result<File> {
        options.share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE).open(path).map_err(|error| {
            if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) {
                io::Error::new(io::ErrorKind::WouldBlock, error)
            } else {
                error
            }
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
    pub(super) fn try_lock(_file: &File) -> io::Result<bool> {
        Ok(true)
    }

    pub(super) fn unlock(_file: &File) {}

    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
    pub(super) fn set_permissions(_file: &File, _access: &Permissions) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
    pub(super) fn sync_directory(_directory: &Path) -> io::Result<()> {
        Ok(())
    }
}
