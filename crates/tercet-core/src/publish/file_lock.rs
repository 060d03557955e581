//! The lock of a change to an existing file.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::atomic_file::AtomicFile;
use super::target::Target;
use super::{Access, Disk, DiskFile, Kind, Operation, PublishError, RealDisk};

/// A writer that clears leftovers or moves its file into place holds a lock for a moment. Waiting that long
/// spares the user a second try; a lock that lasts is reported.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(4);

/// The right to change an existing file, held against every other writer of this library.
///
/// Acquire it *before* reading the file: what is read afterwards, through any reader, stays the truth until the
/// lock is dropped or its [`AtomicFile`] successor is published. The lock is advisory and stops no reader.
#[derive(Debug)]
pub struct FileLock {
    disk: Arc<dyn Disk>,
    target: Target,
    /// Open for the lock and for the identity: while it is open, no other file gets its number.
    file: Box<dyn DiskFile>,
    access: Access,
}

impl FileLock {
    /// Locks an existing file; [`PublishError::Busy`] when another writer has it.
    pub fn acquire(path: &Path) -> Result<Self, PublishError> {
        Self::acquire_on(Arc::new(RealDisk), path)
    }

    /// Locks an existing file of another disk.
    pub fn acquire_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, PublishError> {
        let target = Target::resolve(disk.as_ref(), path)?;
        let (file, access) = lock(disk.as_ref(), &target)?;
        Ok(Self { disk, target, file, access })
    }

    /// The lock of a writer that replaces the file whatever it is: `None` when there is nothing to lock, or no
    /// way to.
    pub(super) fn lock_if_possible(
        disk: &Arc<dyn Disk>,
        target: &Target,
    ) -> Result<Option<Self>, PublishError> {
        match lock(disk.as_ref(), target) {
            Ok((file, access)) => {
                Ok(Some(Self { disk: Arc::clone(disk), target: target.clone(), file, access }))
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

    /// The file behind all symbolic links.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Checks that the path still names the locked file; [`PublishError::Replaced`] when it does not.
    pub fn check(&self) -> Result<(), PublishError> {
        let locked = self.file.entry().map_err(|error| self.target.error(Operation::Inspect, error))?;
        match self.disk.entry(&self.target.path) {
            Ok(named) if named.id == locked.id => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.target.error(Operation::Inspect, error))
            }
            _ => Err(PublishError::Replaced { path: self.target.shown.clone() }),
        }
    }

    /// Starts the successor of the locked file. It keeps the lock until it is published or dropped.
    ///
    /// Publishing it fails with [`PublishError::Replaced`] when a program that ignores locks has replaced or
    /// removed the file meanwhile.
    pub fn replace(self) -> Result<AtomicFile, PublishError> {
        AtomicFile::succeed(self, None)
    }

    /// Like [`replace`](Self::replace), but the successor is for its owner alone (mode `0600`).
    pub fn replace_private(self) -> Result<AtomicFile, PublishError> {
        AtomicFile::succeed(self, Some(super::atomic_file::PRIVATE))
    }

    /// Cuts the locked file to `keep` bytes and puts `bytes` behind them, durably. For logs, whose readers know a tail that
    /// is not whole; everything else is [replaced](Self::replace).
    ///
    /// After a failure the file is cut to `keep` again as far as that can be done: what was not promised is not there.
    pub fn append(&mut self, keep: u64, bytes: &[u8]) -> Result<(), PublishError> {
        self.check()?;
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

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    pub(super) fn handle(&self) -> Option<&std::fs::File> {
        self.file.handle()
    }
}

/// Locks the file that is at the target, without waiting for longer than a moment.
fn lock(disk: &dyn Disk, target: &Target) -> Result<(Box<dyn DiskFile>, Access), PublishError> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
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
        // Another writer may have moved a new file here after this one was opened: then the lock is on a
        // file without a name.
        match disk.entry(&target.path) {
            Ok(named) if named.id == locked.id && named.kind == Kind::File => {
                return Ok((file, locked.access));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(target.error(Operation::Inspect, error)),
        }
    }
    Err(PublishError::Busy { path: target.shown.clone() })
}
