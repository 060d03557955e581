//! Collections: a directory of files with a manifest that lists its members.
//!
//! ```text
//! crawl/tatami.manifest   the log: files added, removed, assigned to a tier
//!       part-0.tatami     members
//!       2026/part-1.tatami
//! ```
//!
//! The manifest holds the rows, the sort range and the column statistics of each member. A [`Collection`] prunes members with
//! it and opens the others; each is compared with its entry. Changes are appended under a lock
//! and are durable when they return.
//!
//! | file | contents |
//! |---|---|
//! | `log.rs` | the records of the manifest, and their replay |
//! | `member.rs` | the entry of a member |
//! | `edit.rs` | add, remove, compact |
//! | `change.rs` | append, upsert and delete rows |
//! | `rows.rs` | scans and key lookups over all members |
//! | `merge.rs` | merge members into one file |
//! | `segments.rs` | update and merge search segments |
//! | `verify.rs` | verify manifest and members |

#[cfg(any(unix, windows))]
mod change;
#[cfg(any(unix, windows))]
mod edit;
pub mod log;
mod member;
#[cfg(any(unix, windows))]
mod merge;
#[cfg(any(unix, windows))]
mod rows;
#[cfg(any(unix, windows))]
pub(crate) mod segments;
#[cfg(any(unix, windows))]
mod verify;

#[cfg(any(unix, windows))]
pub use change::{Append, AppendOptions, Appended, Upsert};
#[cfg(any(unix, windows))]
pub use edit::Compacted;
pub use log::{ManifestWarning, Record, Replay};
pub use member::{Member, MemberId, MemberZone};
#[cfg(any(unix, windows))]
pub use merge::merge_files;
#[cfg(any(unix, windows))]
pub use rows::{
    CollectionBatches, CollectionExplain, CollectionLookup, CollectionScan, MemberBatch, MemberExplain,
};

#[cfg(any(unix, windows))]
pub use segments::SegmentUpdate;
#[cfg(any(unix, windows))]
pub use verify::CollectionReport;

#[cfg(any(unix, windows))]
pub use opened::Collection;
#[cfg(any(unix, windows))]
use opened::resolves_inside;

/// The name of the manifest in the root of a collection.
pub const MANIFEST: &str = "tatami.manifest";

#[cfg(any(unix, windows))]
mod opened {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use bytes::Bytes;
    use tercet_core::limits::check_limit;
    use tercet_core::publish::{Disk, RealDisk};
    use tercet_core::{ByteSource as _, Location, SourceError, Span, source};

    use super::log::{self, ManifestWarning, Replay};
    use super::{MANIFEST, Member};
    use crate::error::{Error, ErrorKind};
    use crate::file::{Access, File, ReadOptions};

    /// Whether `path` stays inside the directory `root` after resolving symbolic links.
    pub(super) fn resolves_inside(root: &Path, path: &Path) -> bool {
        match (root.canonicalize(), path.canonicalize()) {
            (Ok(root), Ok(resolved)) => resolved.starts_with(root),
            // A path that cannot be resolved cannot be opened either; that error is more precise.
            _ => true,
        }
    }

    /// An open collection: the manifest as it was read.
    #[derive(Clone, Debug)]
    pub struct Collection {
        pub(super) root: PathBuf,
        pub(super) disk: Arc<dyn Disk>,
        pub(super) options: ReadOptions,
        pub(super) replay: Replay,
    }

    impl Collection {
        /// Reads the manifest of a directory. Without a manifest or a directory, the collection is empty.
        pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
            // Other programs may change the files of a directory at any time: they are not mapped.
            Self::open_with(location, ReadOptions::new().with_access(Access::Pread))
        }

        /// Reads the manifest of a directory; members are opened with `options`.
        pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
            match location.into() {
                Location::Path(root) => Self::open_on(Arc::new(RealDisk), &root, options),
                url @ Location::Url(_) => {
                    Err(Error::new(url.to_string().into(), ErrorKind::RemoteCollection))
                }
            }
        }

        /// A collection whose manifest is not read yet, for [`compact`](Self::compact) with salvage.
        pub fn for_recovery(root: impl AsRef<Path>, options: ReadOptions) -> Self {
            let root = root.as_ref().to_owned();
            Self { root, disk: Arc::new(RealDisk), options, replay: Replay::default() }
        }

        /// Reads the manifest of a directory; changes are written through `disk`, members are opened with `options`.
        pub fn open_on(disk: Arc<dyn Disk>, root: &Path, options: ReadOptions) -> Result<Self, Error> {
            let mut out = Self { root: root.to_owned(), disk, options, replay: Replay::default() };
            if let Some(bytes) = out.read_existing()? {
                out.replay = log::replay_file(&bytes).map_err(|fault| out.error(fault))?;
            }
            Ok(out)
        }

        /// The directory.
        pub fn root(&self) -> &Path {
            &self.root
        }

        /// The path of the manifest.
        pub fn manifest_path(&self) -> PathBuf {
            self.root.join(MANIFEST)
        }

        /// The live members, sorted by path.
        pub fn members(&self) -> &[Member] {
            &self.replay.members
        }

        /// The member at a path relative to the root.
        pub fn member(&self, path: &str) -> Option<&Member> {
            let members = self.members();
            members.binary_search_by(|member| member.path.as_str().cmp(path)).ok().map(|at| &members[at])
        }

        /// The replayed manifest.
        pub fn replay(&self) -> &Replay {
            &self.replay
        }

        /// Fails if the manifest has no records at all. It may be truncated, so an empty result could be wrong. Called by
        /// everything that reads rows; changes and [`compact`](Self::compact) write a first record.
        pub fn check_records(&self) -> Result<(), Error> {
            if self.replay.warnings.contains(&ManifestWarning::NoRecords) {
                return Err(self.error(ErrorKind::ManifestEmpty));
            }
            Ok(())
        }

        /// The number of rows of all members, without deleted ones.
        pub fn rows(&self) -> u64 {
            self.members().iter().fold(0, |sum, member| sum.saturating_add(member.live_rows()))
        }

        /// The number of deleted rows that the files of the members still have.
        pub fn deleted_rows(&self) -> u64 {
            self.members().iter().fold(0, |sum, member| sum.saturating_add(member.deleted.len()))
        }

        /// The size of all members in bytes.
        pub fn bytes(&self) -> u64 {
            self.members().iter().fold(0, |sum, member| sum.saturating_add(member.bytes))
        }

        /// Opens a member, without its deleted rows; fails if the file changed since it was added.
        pub fn open_member(&self, member: &Member) -> Result<File, Error> {
            let Some(path) = member.location(&self.root) else {
                return Err(self.error(ErrorKind::Outside { path: member.path.as_str().into() }));
            };
            if !resolves_inside(&self.root, &path) {
                return Err(self.error(ErrorKind::Outside { path: member.path.as_str().into() }));
            }
            let file = File::open_with(&path, self.options)?;
            if (file.len(), file.footer_crc()) != (member.bytes, member.footer_crc) {
                let describe = |bytes: u64, crc: u32| format!("{bytes} bytes with footer {crc:08x}").into();
                let was = describe(member.bytes, member.footer_crc);
                let now = describe(file.len(), file.footer_crc());
                return Err(file.error(ErrorKind::MemberChanged { was, now }));
            }
            if let Some(row) = member.deleted.last().filter(|row| *row >= file.rows()) {
                return Err(file.error(ErrorKind::NoSuchRow { row, rows: file.rows() }));
            }
            Ok(file.without_rows(&member.deleted))
        }

        /// The bytes of the manifest; `None` if it does not exist.
        pub(super) fn read_existing(&self) -> Result<Option<Bytes>, Error> {
            let source = match source::File::open(self.manifest_path()) {
                Ok(source) => source,
                Err(SourceError::Open(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.error(error.into())),
            };
            let read = || {
                check_limit("the manifest", source.len(), self.options.common.limits.metadata_bytes)?;
                Ok(source.read_at(Span::first(source.len()))?)
            };
            read().map(Some).map_err(|fault| self.error(fault))
        }

        /// Adds the location of the manifest to an error.
        pub(super) fn error(&self, fault: ErrorKind) -> Error {
            Error::new(self.manifest_path().display().to_string().into(), fault)
        }
    }
}
