//! Atomic output files, file locks and open directories.
//!
//! [`AtomicFile`] writes every file: bytes go to a temporary file next to the target, and [`AtomicFile::publish`]
//! renames it to the target. A reader sees the old file or the new one, never a part, also after a power cut.
//!
//! ```text
//! create   .era5.tet.tercet-3f9c01d2a4b5e687.tmp   next to the target, under an exclusive lock
//! write    …                                        buffered
//! publish  permissions → fsync file → rename over era5.tet → fsync directory
//! ```
//!
//! [`FileLock`] locks an existing file for a change: read it, write the replacement with [`FileLock::replace`],
//! publish. A second writer gets [`PublishError::Busy`] instead of a lost update. Every writer of this library
//! that replaces a file holds its lock until the rename, so [`AtomicFile::create`] also returns `Busy` while
//! another writer changes the target. Locks are advisory: readers take none and are never blocked. A program that
//! ignores them is detected by the file ID ([`PublishError::Replaced`]).
//!
//! [`AppendFile`] extends a locked file in place, for formats whose readers recognize an incomplete tail. Appenders wait
//! for each other ([`FileLock::wait_on`]).
//!
//! [`Directory`] is an open directory: files are created in it even if its path changes.
//!
//! A writer that dies leaves a temporary file without a lock. The next writer to the same target removes it. A program
//! that exits at a signal calls [`remove_unfinished`] first.
//!
//! Everything uses [`Disk`], so tests can fail any operation or cut the power between any two.
//!
//! ```
//! use std::io::Write;
//! use tercet_core::publish::AtomicFile;
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("out.bin");
//! let mut out = AtomicFile::create(&path)?;
//! out.write_all(b"all of it")?;
//! assert!(!path.exists());
//! out.publish()?;
//! assert_eq!(std::fs::read(&path)?, b"all of it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(unix, windows))]
mod append_file;
#[cfg(any(unix, windows))]
mod atomic_file;
#[cfg(any(unix, windows))]
mod directory;
#[cfg(any(unix, windows))]
mod disk;
mod entry_kind;
mod error;
#[cfg(any(unix, windows))]
mod file_lock;
#[cfg(any(unix, windows))]
mod real_disk;
#[cfg(any(unix, windows))]
mod target;
#[cfg(any(unix, windows))]
mod temp_file;
#[cfg(any(unix, windows))]
mod unfinished;

#[cfg(any(unix, windows))]
pub use append_file::AppendFile;
#[cfg(any(unix, windows))]
pub use atomic_file::AtomicFile;
#[cfg(any(unix, windows))]
pub use directory::Directory;
#[cfg(any(unix, windows))]
pub use disk::{Disk, DiskFile, Entry, FileId, Permissions};
pub use entry_kind::EntryKind;
pub use error::{Operation, PublishError};
#[cfg(any(unix, windows))]
pub use file_lock::{FileLock, WaitError};
#[cfg(any(unix, windows))]
pub use real_disk::RealDisk;
#[cfg(any(unix, windows))]
pub use temp_file::is_stale_temp;
#[cfg(any(unix, windows))]
pub use unfinished::{NoWriters, TempDirectory, remove_unfinished};
