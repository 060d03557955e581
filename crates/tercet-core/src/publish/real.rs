//! The disk of the operating system.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Access, Disk, DiskFile, Entry, FileId, Kind};

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

    fn create_new(&self, path: &Path, like: Option<&Access>) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(Box::new(RealFile(system::open(&mut options, path, like)?)))
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(Box::new(RealFile(system::open(&mut options, path, None)?)))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the layer that the others must go through")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the layer that the others must go through")]
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        system::sync_folder(folder)
    }

    fn list(&self, folder: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for item in fs::read_dir(folder)? {
            let name = item?.file_name();
            if wanted(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(unix)]
pub(super) use system::{entry_of, is_unsyncable, mode_of_new};

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

    fn set_access(&mut self, access: &Access) -> io::Result<()> {
        system::set_access(&self.0, access)
    }

    fn handle(&self) -> Option<&File> {
        Some(&self.0)
    }
}

/// Copies `len` bytes at `from` to where the other file stands, without taking them into memory; answers how many it did, which
/// are fewer where the system cannot.
#[cfg(target_os = "linux")]
pub(super) fn copy_in_system(source: &File, mut from: u64, sink: &File, len: u64) -> io::Result<u64> {
    use rustix::io::Errno;

    let mut done = 0;
    while done < len {
        // The kernel takes at most 2 GiB at a time.
        let want = usize::try_from(len - done).unwrap_or(usize::MAX).min(1 << 30);
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

/// Other systems copy nothing themselves.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
pub(super) fn copy_in_system(_source: &File, _from: u64, _sink: &File, _len: u64) -> io::Result<u64> {
    Ok(0)
}

#[cfg(unix)]
mod system {
    use std::fs::{Permissions, TryLockError};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    use super::{Access, Entry, File, FileId, Kind, Metadata, OpenOptions, Path, io};

    pub(super) fn entry(metadata: &Metadata) -> Entry {
        let kind = match metadata.file_type() {
            t if t.is_file() => Kind::File,
            t if t.is_dir() => Kind::Folder,
            t if t.is_symlink() => Kind::Link,
            t if t.is_fifo() => Kind::Fifo,
            t if t.is_socket() => Kind::Socket,
            t if t.is_char_device() || t.is_block_device() => Kind::Device,
            _ => Kind::Other,
        };
        Entry {
            kind,
            id: FileId(metadata.dev(), metadata.ino()),
            access: Access { mode: metadata.mode() & 0o777, owner: Some((metadata.uid(), metadata.gid())) },
        }
    }

    pub(super) fn open(options: &mut OpenOptions, path: &Path, like: Option<&Access>) -> io::Result<File> {
        options.mode(mode_of_new(like)).open(path)
    }

    /// The mode of a new file, before the umask.
    pub(in super::super) fn mode_of_new(like: Option<&Access>) -> u32 {
        // The owner can always read and write an unfinished file, or a later writer could not lock and clear it.
        like.map_or(0o666, |access| (access.mode & 0o777) | 0o600)
    }

    /// What a file is, by the answer of `fstat` and its kin.
    #[expect(clippy::allow_attributes, reason = "the types of the numbers differ between systems")]
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "device numbers are bit patterns")]
    pub(in super::super) fn entry_of(stat: &rustix::fs::Stat) -> Entry {
        use rustix::fs::FileType;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            FileType::Unknown => Kind::Other,
        };
        Entry {
            kind,
            id: FileId(stat.st_dev as u64, stat.st_ino as u64),
            access: Access { mode: stat.st_mode as u32 & 0o777, owner: Some((stat.st_uid, stat.st_gid)) },
        }
    }

    /// The answer of file systems that cannot sync a folder (some FUSE and SMB mounts).
    pub(in super::super) fn is_unsyncable(error: &io::Error) -> bool {
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

    pub(super) fn set_access(file: &File, access: &Access) -> io::Result<()> {
        let now = entry(&file.metadata()?).access;
        if let (Some((uid, gid)), Some((now_uid, now_gid))) = (access.owner, now.owner) {
            // Only root may give files away, and a group only to its members: whoever may not, keeps the new
            // file, as with any other program that writes files anew.
            let uid = (uid != now_uid).then_some(uid);
            let gid = (gid != now_gid).then_some(gid);
            if gid.is_some() {
                let _ = fchown(file, None, gid);
            }
            if uid.is_some() {
                let _ = fchown(file, uid, None);
            }
        }
        // Asked only when needed: some network file systems refuse every change of mode.
        if now.mode != access.mode & 0o777 {
            file.set_permissions(Permissions::from_mode(access.mode & 0o777))?;
        }
        Ok(())
    }

    pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
        let handle = match OpenOptions::new().read(true).open(folder) {
            // A folder that one may write in but not read cannot be opened, hence not synced.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            opened => opened?,
        };
        match handle.sync_all() {
            Err(error) if is_unsyncable(&error) => Ok(()),
            synced => synced,
        }
    }
}

/// On Windows a lock on bytes also stops readers, so the share mode of the handle is the lock: others may read
/// and rename, but nobody else can open the file for writing, hence no second writer gets past `open`.
#[cfg(windows)]
mod system {
    use std::os::windows::fs::{MetadataExt, OpenOptionsExt};

    use super::{Access, Entry, File, FileId, Kind, Metadata, OpenOptions, Path, io};

    const FILE_SHARE_READ: u32 = 1;
    const FILE_SHARE_DELETE: u32 = 4;
    const ERROR_SHARING_VIOLATION: i32 = 32;

    pub(super) fn entry(metadata: &Metadata) -> Entry {
        let kind = match metadata.file_type() {
            t if t.is_file() => Kind::File,
            t if t.is_dir() => Kind::Folder,
            t if t.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        let mode = if metadata.permissions().readonly() { 0o444 } else { 0o666 };
        // File numbers are not available without `unsafe`. Times of 100 ns and the length serve: identities
        // are compared only between an idle file and the path it was opened by.
        let id = FileId(metadata.creation_time(), metadata.last_write_time() ^ metadata.file_size());
        Entry { kind, id, access: Access { mode, owner: None } }
    }

    pub(super) fn open(options: &mut OpenOptions, path: &Path, _like: Option<&Access>) -> io::Result<File> {
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
    pub(super) fn set_access(_file: &File, _access: &Access) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
    pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
        Ok(())
    }
}
