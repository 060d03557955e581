//! Files that appear whole or not at all.
//!
//! [`AtomicFile`] is the one way files are written: bytes go to a temporary file beside the target, and only
//! [`AtomicFile::publish`] gives it the name of the target. A reader sees the old file or the new one, never a part;
//! so does the machine after a power cut.
//!
//! ```text
//! create   .era5.tet.tercet-3f9c01d2a4b5e687.tmp   beside the target, under an exclusive lock
//! write    …                                        buffered
//! publish  permissions → fsync file → rename over era5.tet → fsync folder
//! ```
//!
//! [`FileLock`] is the lock of a change to an existing file: read it, stage its successor with
//! [`FileLock::replace`], publish. A second writer gets [`PublishError::Busy`] instead of a lost update. Every
//! writer here that replaces an existing file holds its lock until the rename, so `Busy` is also what a plain
//! [`AtomicFile::create`] answers while somebody else changes the target. Locks are advisory: readers take none and
//! are never blocked, and a foreign program that ignores them is noticed by identity
//! ([`PublishError::Replaced`]).
//!
//! [`Folder`] is an open folder: what is staged in it stays in it, whatever happens to the path that led there.
//!
//! A writer that dies leaves its temporary file behind, without a lock. The next writer to the same target
//! removes it; readers never write.
//!
//! All of it goes through [`Disk`], so tests can fail any operation or cut the power between any two.
//!
//! ```
//! use std::io::Write;
//! use tercet_core::publish::AtomicFile;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("out.bin");
//! let mut out = AtomicFile::create(&path)?;
//! out.write_all(b"all of it")?;
//! assert!(!path.exists());
//! out.publish()?;
//! assert_eq!(std::fs::read(&path)?, b"all of it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(unix, windows))]
mod atomic_file;
#[cfg(any(unix, windows))]
mod disk;
mod error;
#[cfg(any(unix, windows))]
mod file_lock;
#[cfg(any(unix, windows))]
mod folder;
mod kind;
#[cfg(any(unix, windows))]
mod real;
#[cfg(any(unix, windows))]
mod target;
#[cfg(any(unix, windows))]
mod temporary;

#[cfg(any(unix, windows))]
pub use atomic_file::AtomicFile;
#[cfg(any(unix, windows))]
pub use disk::{Access, Disk, DiskFile, Entry, FileId};
pub use error::{Operation, PublishError};
#[cfg(any(unix, windows))]
pub use file_lock::FileLock;
#[cfg(any(unix, windows))]
pub use folder::Folder;
pub use kind::Kind;
#[cfg(any(unix, windows))]
pub use real::RealDisk;
#[cfg(any(unix, windows))]
pub use temporary::is_stale_temp;
