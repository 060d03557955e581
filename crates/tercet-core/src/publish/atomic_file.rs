//! An output that does not exist until it is published.

use std::io::{self, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::real;
use super::target::Target;
use super::{Access, Disk, DiskFile, FileLock, Kind, Operation, PublishError, RealDisk, temporary};
use crate::sink::Sink;

/// Writes of a few bytes are collected up to this length; longer ones go straight to the file.
const BUFFER_LEN: usize = 256 * 1024;

/// The rights of a file that is for its owner alone.
pub(super) const PRIVATE: Access = Access { mode: 0o600, owner: None };

/// A file in the making. It gets its name, whole and durable, by [`publish`](AtomicFile::publish).
///
/// Dropping it leaves no trace: the bytes so far are removed and a file that was there is unchanged. A symbolic
/// link is followed: it stays, and what it points to is replaced. The permissions of a file that is replaced
/// are kept (not its extended attributes, nor other hard links to it); a new file follows the umask.
///
/// After a failed operation the bytes cannot be trusted any more: every later call, and `publish`, answers
/// [`PublishError::Incomplete`].
#[derive(Debug)]
pub struct AtomicFile {
    disk: Arc<dyn Disk>,
    target: Target,
    temporary: PathBuf,
    file: Box<dyn DiskFile>,
    /// The lock of the file that will be replaced.
    lock: Option<FileLock>,
    replaces: Replaces,
    /// The rights of the file that will be replaced, or those asked for.
    access: Option<Access>,
    buffer: Vec<u8>,
    /// Where the next byte goes; the file itself is behind by the length of the buffer.
    position: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaces {
    /// Whatever has the name when it is published.
    Anything,
    /// Only the file that was locked: the new bytes were made from its bytes.
    TheLocked,
    /// No file, even if one appears while this one is written.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Writing,
    Failed,
    Published,
}

impl AtomicFile {
    /// Starts a file that will be at `target`, replacing what is there.
    ///
    /// Everything that can be refused is refused here, before any byte is written: a target that is no file, a
    /// folder that is missing or not writable, an existing file that another writer is changing.
    pub fn create(target: &Path) -> Result<Self, PublishError> {
        Self::create_on(Arc::new(RealDisk), target)
    }

    /// Starts a file where none is. One that appears until this one is published is not replaced.
    pub fn create_new(target: &Path) -> Result<Self, PublishError> {
        Self::create_new_on(Arc::new(RealDisk), target)
    }

    /// Starts a file where none is, on another disk.
    pub fn create_new_on(disk: Arc<dyn Disk>, target: &Path) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), target)?;
        if target.existing.is_some() {
            return Err(PublishError::Exists { path: target.shown });
        }
        Self::start(disk, target, None, Replaces::Nothing, None)
    }

    /// Starts a file that is for its owner alone (mode `0600`), whatever the rights of the file it replaces.
    pub fn create_private(target: &Path) -> Result<Self, PublishError> {
        Self::create_private_on(Arc::new(RealDisk), target)
    }

    /// Starts a file for its owner alone on another disk.
    pub(super) fn create_private_on(disk: Arc<dyn Disk>, target: &Path) -> Result<Self, PublishError> {
        Self::create_as(disk, target, Some(PRIVATE))
    }

    /// Starts a file on another disk.
    pub fn create_on(disk: Arc<dyn Disk>, target: &Path) -> Result<Self, PublishError> {
        Self::create_as(disk, target, None)
    }

    fn create_as(disk: Arc<dyn Disk>, target: &Path, access: Option<Access>) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), target)?;
        let lock = match target.existing {
            Some(_) => FileLock::lock_if_possible(&disk, &target)?,
            None => None,
        };
        Self::start(disk, target, lock, Replaces::Anything, access)
    }

    /// Starts the successor of a locked file, with other rights if some are given.
    pub(super) fn succeed(lock: FileLock, access: Option<Access>) -> Result<Self, PublishError> {
        let (disk, target) = (Arc::clone(lock.disk()), lock.target().clone());
        Self::start(disk, target, Some(lock), Replaces::TheLocked, access)
    }

    fn start(
        disk: Arc<dyn Disk>,
        target: Target,
        lock: Option<FileLock>,
        replaces: Replaces,
        access: Option<Access>,
    ) -> Result<Self, PublishError> {
        let existing = target.existing.as_ref().map(|entry| entry.access);
        let access = access.or(lock.as_ref().map(FileLock::access)).or(existing);
        temporary::clear_leftovers(disk.as_ref(), &target);
        let (temporary, file) = temporary::create(disk.as_ref(), &target, access.as_ref())?;
        let (buffer, position, state) = (Vec::new(), 0, State::Writing);
        Ok(Self { disk, target, temporary, file, lock, replaces, access, buffer, position, state })
    }

    /// The path that the file will have, behind all symbolic links.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Cuts the file, or extends it with zeros. The position stays.
    pub fn set_len(&mut self, len: u64) -> Result<(), PublishError> {
        self.write_buffer()?;
        self.attempt(Operation::SetLen, |file| file.set_len(len))
    }

    /// Copies bytes of the locked file that this one will replace, within the system; answers how many were copied, which is
    /// fewer than `len` where the system cannot. The caller writes the rest.
    pub fn copy_from_replaced(&mut self, from: u64, len: u64) -> Result<u64, PublishError> {
        self.write_buffer()?;
        let source = self.lock.as_ref().and_then(|lock| lock.handle()?.try_clone().ok());
        let Some(source) = source else { return Ok(0) };
        let copied = self.attempt(Operation::Write, |file| match file.handle() {
            Some(sink) => real::copy_in_system(&source, from, sink, len),
            None => Ok(0),
        })?;
        self.position = self.position.saturating_add(copied);
        Ok(copied)
    }

    /// Makes the bytes durable, then gives them their name; answers the path behind all symbolic links.
    ///
    /// When this fails, the target is as it was, except for one case: [`Operation::SyncFolder`] says that the
    /// new file is in place but that a power cut could still bring the old one back.
    pub fn publish(mut self) -> Result<PathBuf, PublishError> {
        self.write_buffer()?;
        if let Some(access) = self.access {
            self.attempt(Operation::SetAccess, |file| file.set_access(&access))?;
        }
        self.attempt(Operation::Sync, |file| file.sync_all())?;
        self.hold_target()?;
        let is_linked = self.replaces == Replaces::Nothing && self.link()?;
        if !is_linked {
            self.disk
                .rename(&self.temporary, &self.target.path)
                .map_err(|error| self.target.error(Operation::Rename, error))?;
        }
        self.state = State::Published;
        self.disk
            .sync_folder(&self.target.folder)
            .map_err(|error| self.target.error(Operation::SyncFolder, error))?;
        Ok(mem::take(&mut self.target.path))
    }

    /// Gives the file its name in a way that cannot replace another one; answers whether that can be done here.
    fn link(&mut self) -> Result<bool, PublishError> {
        match self.disk.link(&self.temporary, &self.target.path) {
            Ok(()) => {
                // What cannot be removed now is a leftover, which the next writer removes.
                let _ = self.disk.remove(&self.temporary);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(self.exists()),
            // A file system without second names: somebody could still come in between, within moments.
            Err(_) => Ok(false),
        }
    }

    fn exists(&self) -> PublishError {
        PublishError::Exists { path: self.target.shown.clone() }
    }

    /// Makes sure that the file about to be replaced is locked and may be replaced.
    fn hold_target(&mut self) -> Result<(), PublishError> {
        if let Some(lock) = &self.lock {
            match lock.check() {
                Err(PublishError::Replaced { .. }) if self.replaces == Replaces::Anything => self.lock = None,
                checked => return checked,
            }
        }
        match self.disk.entry(&self.target.path) {
            Ok(entry) if entry.kind == Kind::File && self.replaces == Replaces::Nothing => Err(self.exists()),
            Ok(entry) if entry.kind == Kind::File => {
                self.lock = FileLock::lock_if_possible(&self.disk, &self.target)?;
                Ok(())
            }
            Ok(entry) => Err(PublishError::NotAFile { path: self.target.shown.clone(), kind: entry.kind }),
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

    /// Does one thing to the file, unless something failed before.
    fn attempt<T>(
        &mut self,
        operation: Operation,
        act: impl FnOnce(&mut dyn DiskFile) -> io::Result<T>,
    ) -> Result<T, PublishError> {
        if self.state == State::Failed {
            return Err(PublishError::Incomplete { path: self.target.shown.clone() });
        }
        act(self.file.as_mut()).map_err(|error| {
            self.state = State::Failed;
            self.target.error(operation, error)
        })
    }
}

/// Writes everything, however the system cuts it up.
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

    /// Hands the buffered bytes to the system. They are durable only after [`AtomicFile::publish`].
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
    type Done = PathBuf;

    fn finish(self) -> io::Result<PathBuf> {
        Ok(self.publish()?)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.state != State::Published {
            // What cannot be removed now is a leftover, which the next writer removes.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}
