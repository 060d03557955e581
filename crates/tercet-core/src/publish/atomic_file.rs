//! Atomic output files: the target appears when it is complete.

use std::io::{self, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::real_disk;
use super::target::Target;
use super::{
    Disk, DiskFile, EntryKind, FileLock, Operation, Permissions, PublishError, RealDisk, temp_file,
    unfinished,
};
use crate::sink::Sink;

/// The size of the write buffer. Longer writes go to the file directly.
const BUFFER_LEN: usize = 256 * 1024;

/// The permissions of a private file: owner only.
pub(super) const PRIVATE: Permissions = Permissions { mode: 0o600, owner: None };

/// An output file that replaces its target atomically, by [`publish`](AtomicFile::publish).
///
/// Dropping it removes the temporary file and leaves an existing target unchanged. A symbolic link is followed:
/// the link stays, its target is replaced. The permissions of a replaced file are kept (not its extended
/// attributes or other hard links); a new file follows the umask.
///
/// After a failed operation every later call, including `publish`, returns [`PublishError::Incomplete`].
#[derive(Debug)]
pub struct AtomicFile {
    disk: Arc<dyn Disk>,
    target: Target,
    temporary: PathBuf,
    file: Box<dyn DiskFile>,
    /// Makes the temporary file known to [`remove_unfinished`](super::remove_unfinished).
    _entry: unfinished::Entry,
    /// The lock of the file that will be replaced.
    lock: Option<FileLock>,
    replaces: Replaces,
    /// The permissions of the file that will be replaced, or the requested ones.
    permissions: Option<Permissions>,
    buffer: Vec<u8>,
    /// The logical position: the position of the file plus the length of the buffer.
    position: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaces {
    /// Any file at the target path.
    Anything,
    /// Only the locked file, from which the new bytes were made.
    LockedFile,
    /// Nothing: a file that appears meanwhile is an error.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    Failed,
    Published,
}

impl AtomicFile {
    /// Creates an output for `target`, which may replace an existing file.
    ///
    /// Fails before any byte is written if the target is not a file, its directory is missing or not writable, or
    /// another writer is changing the existing file.
    pub fn create(target: &Path) -> Result<Self, PublishError> {
        Self::create_on(Arc::new(RealDisk), target)
    }

    /// Creates an output for a `target` that must not exist, neither now nor when it is published.
    pub fn create_new(target: &Path) -> Result<Self, PublishError> {
        Self::create_new_on(Arc::new(RealDisk), target)
    }

    /// [`create_new`](Self::create_new) on another disk.
    pub fn create_new_on(disk: Arc<dyn Disk>, target: &Path) -> Result<Self, PublishError> {
        Self::create_new_as(disk, target, None)
    }

    pub(super) fn create_new_as(
        disk: Arc<dyn Disk>,
        target: &Path,
        permissions: Option<Permissions>,
    ) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), target)?;
        if target.existing.is_some() {
            return Err(PublishError::Exists { path: target.given });
        }
        Self::start(disk, target, None, Replaces::Nothing, permissions)
    }

    /// Creates a private output (mode `0600`), regardless of the permissions of the file it replaces.
    pub fn create_private(target: &Path) -> Result<Self, PublishError> {
        Self::create_as(Arc::new(RealDisk), target, Some(PRIVATE))
    }

    /// [`create`](Self::create) on another disk.
    pub fn create_on(disk: Arc<dyn Disk>, target: &Path) -> Result<Self, PublishError> {
        Self::create_as(disk, target, None)
    }

    pub(super) fn create_as(
        disk: Arc<dyn Disk>,
        target: &Path,
        permissions: Option<Permissions>,
    ) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), target)?;
        let lock = match target.existing {
            Some(_) => FileLock::try_acquire(&disk, &target)?,
            None => None,
        };
        Self::start(disk, target, lock, Replaces::Anything, permissions)
    }

    /// Creates the replacement of a locked file, with the given permissions if any.
    pub(super) fn replace_locked(
        lock: FileLock,
        permissions: Option<Permissions>,
    ) -> Result<Self, PublishError> {
        let (disk, target) = (Arc::clone(lock.disk()), lock.target().clone());
        Self::start(disk, target, Some(lock), Replaces::LockedFile, permissions)
    }

    fn start(
        disk: Arc<dyn Disk>,
        target: Target,
        lock: Option<FileLock>,
        replaces: Replaces,
        permissions: Option<Permissions>,
    ) -> Result<Self, PublishError> {
        let existing = target.existing.as_ref().map(|entry| entry.permissions);
        let permissions = permissions.or(lock.as_ref().map(FileLock::permissions)).or(existing);
        temp_file::remove_stale_temps(disk.as_ref(), &target);
        let (temporary, file) = temp_file::create(disk.as_ref(), &target, permissions.as_ref())?;
        let entry = unfinished::Entry::new(&disk, &temporary);
        Ok(Self {
            disk,
            target,
            temporary,
            file,
            _entry: entry,
            lock,
            replaces,
            permissions,
            buffer: Vec::new(),
            position: 0,
            state: State::Writing,
        })
    }

    /// The path of the target, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// The path of the temporary file.
    #[cfg(test)]
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Opens the temporary file for reading, with all bytes that were written, to check them before they are published.
    #[expect(clippy::disallowed_methods, reason = "this is the layer for the others to use")]
    pub fn reader(&mut self) -> Result<std::fs::File, PublishError> {
        self.write_buffer()?;
        std::fs::File::open(&self.temporary).map_err(|error| self.target.error(Operation::Open, error))
    }

    /// Truncates the file, or extends it with zeros. The position does not change.
    pub fn set_len(&mut self, len: u64) -> Result<(), PublishError> {
        self.write_buffer()?;
        self.attempt(Operation::SetLen, |file| file.set_len(len))
    }

    /// Copies bytes of the locked file inside the kernel. Returns the number of bytes copied, fewer than `len`
    /// where the system does not support it. The caller writes the rest.
    pub fn copy_from_replaced(&mut self, from: u64, len: u64) -> Result<u64, PublishError> {
        self.write_buffer()?;
        let source = self.lock.as_ref().and_then(|lock| lock.handle()?.try_clone().ok());
        let Some(source) = source else { return Ok(0) };
        let copied = self.attempt(Operation::Write, |file| match file.handle() {
            Some(sink) => real_disk::copy_in_kernel(&source, from, sink, len),
            None => Ok(0),
        })?;
        self.position = self.position.saturating_add(copied);
        Ok(copied)
    }

    /// Syncs the file and renames it to the target. Returns the path of the target, with symbolic links resolved.
    ///
    /// On failure the target is unchanged, with one exception: after [`Operation::SyncDirectory`] the new file is
    /// in place, but a power cut could bring the old one back.
    pub fn publish(mut self) -> Result<PathBuf, PublishError> {
        self.write_buffer()?;
        if let Some(permissions) = self.permissions {
            self.attempt(Operation::SetPermissions, |file| file.set_permissions(&permissions))?;
        }
        self.attempt(Operation::Sync, |file| file.sync_all())?;
        self.lock_target()?;
        let is_linked = self.replaces == Replaces::Nothing && self.link()?;
        if !is_linked {
            self.disk
                .rename(&self.temporary, &self.target.path)
                .map_err(|error| self.target.error(Operation::Rename, error))?;
        }
        self.state = State::Published;
        self.disk
            .sync_directory(&self.target.directory)
            .map_err(|error| self.target.error(Operation::SyncDirectory, error))?;
        Ok(mem::take(&mut self.target.path))
    }

    /// Links the file to the target path, which cannot replace another file. Returns whether the file system
    /// supports it.
    fn link(&mut self) -> Result<bool, PublishError> {
        match self.disk.link(&self.temporary, &self.target.path) {
            Ok(()) => {
                // A stale temporary file is removed by the next writer.
                let _ = self.disk.remove(&self.temporary);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(self.exists()),
            // Without hard links a concurrent writer can create the target between the check and the rename.
            Err(_) => Ok(false),
        }
    }

    fn exists(&self) -> PublishError {
        PublishError::Exists { path: self.target.given.clone() }
    }

    /// Locks the file that is about to be replaced and checks that it may be replaced.
    fn lock_target(&mut self) -> Result<(), PublishError> {
        if let Some(lock) = &self.lock {
            match lock.check() {
                Err(PublishError::Replaced { .. }) if self.replaces == Replaces::Anything => self.lock = None,
                checked => return checked,
            }
        }
        match self.disk.entry(&self.target.path) {
            Ok(entry) if entry.kind == EntryKind::File && self.replaces == Replaces::Nothing => {
                Err(self.exists())
            }
            Ok(entry) if entry.kind == EntryKind::File => {
                self.lock = FileLock::try_acquire(&self.disk, &self.target)?;
                Ok(())
            }
            Ok(entry) => Err(PublishError::NotAFile { path: self.target.given.clone(), kind: entry.kind }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.target.error(Operation::Inspect, error)),
        }
    }

    fn write_buffer(&mut self) -> Result<(), PublishError> {
        let mut buffer = mem::take(&mut self.buffer);
        let written = self.attempt(Operation::Write, |file| write_all(file, &buffer));
        buffer.clear();
        self.buffer = buffer;
        written
    }

    /// Runs one operation on the file, unless an earlier one failed.
    fn attempt<T>(
        &mut self,
        operation: Operation,
        act: impl FnOnce(&mut dyn DiskFile) -> io::Result<T>,
    ) -> Result<T, PublishError> {
        if self.state == State::Failed {
            return Err(PublishError::Incomplete { path: self.target.given.clone() });
        }
        act(self.file.as_mut()).map_err(|error| {
            self.state = State::Failed;
            self.target.error(operation, error)
        })
    }
}

/// Writes all bytes, across partial and interrupted writes.
pub(super) fn write_all(file: &mut dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.write_buffer()?;
        }
        if bytes.len() >= BUFFER_LEN {
            self.attempt(Operation::Write, |file| write_all(file, bytes))?;
        } else {
            self.attempt(Operation::Write, |_| Ok(()))?;
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(BUFFER_LEN);
            }
            self.buffer.extend_from_slice(bytes);
        }
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    /// Writes the buffer to the file. It is durable only after [`AtomicFile::publish`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.write_buffer()?)
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to != SeekFrom::Current(0) && to != SeekFrom::Start(self.position) {
            self.write_buffer()?;
            self.position = self.attempt(Operation::Seek, |file| file.seek(to))?;
        }
        Ok(self.position)
    }
}

impl Sink for AtomicFile {
    type Output = PathBuf;

    fn finish(self) -> io::Result<PathBuf> {
        Ok(self.publish()?)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.state != State::Published {
            // A stale temporary file is removed by the next writer.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}
