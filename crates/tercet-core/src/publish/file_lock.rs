//! Locks on files that are being changed.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::append_file::AppendFile;
use super::atomic_file::AtomicFile;
use super::target::Target;
use super::temp_file::remove_stale_temps;
use super::{Disk, DiskFile, EntryKind, Operation, Permissions, PublishError, RealDisk};
use crate::progress::{Cancelled, Progress};

/// Other writers hold locks for moments when they remove stale files or rename. A few attempts avoid a spurious
/// error; a lock that is held longer is reported.
const ATTEMPTS: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(4);
/// The maximum delay between two attempts of a writer that waits.
const MAX_DELAY: Duration = Duration::from_millis(32);

/// The error of waiting for a lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The file cannot be locked, or another writer held the lock all the time.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The caller gave up.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// An exclusive lock on an existing file, respected by every writer of this library.
///
/// Acquire it *before* reading the file: the file then does not change until the lock is dropped or its
/// [`AtomicFile`] replacement is published. The lock is advisory and blocks no reader.
#[derive(Debug)]
pub struct FileLock {
    disk: Arc<dyn Disk>,
    target: Target,
    /// Held open for the lock, and so that its inode number is not reused.
    file: Box<dyn DiskFile>,
    permissions: Permissions,
}

impl FileLock {
    /// Locks an existing file; [`PublishError::Busy`] if another writer holds the lock.
    pub fn acquire(path: &Path) -> Result<Self, PublishError> {
        Self::acquire_on(Arc::new(RealDisk), path)
    }

    /// [`acquire`](Self::acquire) on another disk.
    pub fn acquire_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), path)?;
        let (file, permissions) = lock(disk.as_ref(), &target)?;
        Ok(Self { disk, target, file, permissions })
    }

    /// Locks an existing file on a disk, and waits for other writers for at most `wait`.
    pub fn wait_on(
        disk: &Arc<dyn Disk>,
        path: &Path,
        wait: Duration,
        progress: &dyn Progress,
    ) -> Result<Self, WaitError> {
        let started = Instant::now();
        let mut delay = RETRY_DELAY;
        loop {
            progress.check()?;
            match Self::acquire_on(Arc::clone(disk), path) {
                Err(PublishError::Busy { .. }) if started.elapsed() < wait => thread::sleep(delay),
                locked => return Ok(locked?),
            }
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    /// The lock of a writer that replaces any file: `None` if there is no file, or it cannot be locked.
    pub(super) fn try_acquire(disk: &Arc<dyn Disk>, target: &Target) -> Result<Option<Self>, PublishError> {
        match lock(disk.as_ref(), target) {
            Ok((file, permissions)) => {
                Ok(Some(Self { disk: Arc::clone(disk), target: target.clone(), file, permissions }))
            }
            Err(PublishError::Io { operation: Operation::Open, source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                Ok(None)
            }
            Err(PublishError::Io { operation: Operation::Lock, source, .. })
                if source.kind() == io::ErrorKind::Unsupported =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The path of the file, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Checks that the path still names the locked file; [`PublishError::Replaced`] if not.
    pub fn check(&self) -> Result<(), PublishError> {
        let locked = self.file.entry().map_err(|error| self.target.error(Operation::Inspect, error))?;
        match self.disk.entry(&self.target.path) {
            Ok(named) if named.id == locked.id => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.target.error(Operation::Inspect, error))
            }
            _ => Err(PublishError::Replaced { path: self.target.given.clone() }),
        }
    }

    /// Creates the replacement of the locked file. It holds the lock until it is published or dropped.
    ///
    /// Publishing fails with [`PublishError::Replaced`] if a program that ignores locks replaced or removed the file.
    pub fn replace(self) -> Result<AtomicFile, PublishError> {
        AtomicFile::replace_locked(self, None)
    }

    /// Like [`replace`](Self::replace), but the new file is private (mode `0600`).
    pub fn replace_private(self) -> Result<AtomicFile, PublishError> {
        AtomicFile::replace_locked(self, Some(super::atomic_file::PRIVATE))
    }

    /// Truncates the locked file to `keep` bytes, appends `bytes` and syncs. For logs, whose readers detect an
    /// incomplete tail; other files are [replaced](Self::replace).
    ///
    /// After a failure the file is truncated to `keep` again, best effort.
    pub fn append(&mut self, keep: u64, bytes: &[u8]) -> Result<(), PublishError> {
        self.check()?;
        remove_stale_temps(self.disk.as_ref(), &self.target);
        let appended = self.try_append(keep, bytes);
        if appended.is_err() {
            let _ = self.file.set_len(keep);
        }
        appended
    }

    fn try_append(&mut self, keep: u64, bytes: &[u8]) -> Result<(), PublishError> {
        let (file, target) = (self.file.as_mut(), &self.target);
        let failed = |operation| move |error| target.error(operation, error);
        file.set_len(keep).map_err(failed(Operation::SetLen))?;
        file.seek(SeekFrom::Start(keep)).map_err(failed(Operation::Seek))?;
        super::atomic_file::write_all(file, bytes).map_err(failed(Operation::Write))?;
        file.sync_all().map_err(failed(Operation::Sync))
    }

    /// Extends the locked file of `len` bytes in place, after its first `start` bytes. If that fails, the file is truncated
    /// to `start`, and `replaced` is written again after it.
    pub fn extend(self, len: u64, start: u64, replaced: Vec<u8>) -> AppendFile {
        remove_stale_temps(self.disk.as_ref(), &self.target);
        AppendFile::new(self, len, start, replaced)
    }

    pub(super) fn file_mut(&mut self) -> &mut dyn DiskFile {
        self.file.as_mut()
    }

    /// The path as the caller gave it.
    pub(super) fn given(&self) -> &Path {
        &self.target.given
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn permissions(&self) -> Permissions {
        self.permissions
    }

    pub(super) fn handle(&self) -> Option<&std::fs::File> {
        self.file.handle()
    }
}

/// Locks the file at the target path, with a few short attempts.
fn lock(disk: &dyn Disk, target: &Target) -> Result<(Box<dyn DiskFile>, Permissions), PublishError> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(RETRY_DELAY);
        }
        let mut file = match disk.open_existing(&target.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(target.error(Operation::Open, error)),
        };
        if !file.try_lock().map_err(|error| target.error(Operation::Lock, error))? {
            continue;
        }
        let locked = file.entry().map_err(|error| target.error(Operation::Inspect, error))?;
        // If another writer renamed a new file to this path after the open, the lock is on a file without a name.
        match disk.entry(&target.path) {
            Ok(named) if named.id == locked.id && named.kind == EntryKind::File => {
                return Ok((file, locked.permissions));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(target.error(Operation::Inspect, error)),
        }
    }
    Err(PublishError::Busy { path: target.given.clone() })
}
