//! Output locations: paths are checked first, then walked by directory handles that follow no link.
//!
//! ```text
//! "sub/x.bin" ──canonical──▶ /data/sub/x.bin ──inside a root?──▶ OutputPath     nothing was written so far
//! OutputPath ──from the root's handle, directory by directory, no links──▶ Output   missing directories are made
//! Output ──temporary name, sync, publish──▶ the file                            or nothing, and no new directory either
//! ```
//!
//! The checked path and the used path can differ only if another process changes directories in between. Then the walk
//! meets a link, or another directory of the same root, but never leaves the root.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Component, Path, PathBuf};

use tercet_core::publish::{AtomicFile, Directory, Disk as _, EntryKind, FileId, RealDisk};

use crate::error::{ErrorKind, TargetError};

#[cfg(test)]
mod tests;

/// Output locations: where results may be written, and which file must not be overwritten.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    /// Path of the source file, as opened; `None` for bytes in memory.
    file: Option<PathBuf>,
    /// Directory of the source file.
    directory: Option<Directory>,
    source: Option<FileId>,
    /// Directories that the user allows.
    allowed: Vec<PathBuf>,
    /// Cache directories for files without a given name, best first; they need not exist.
    cache: Vec<PathBuf>,
    /// Number of result elements in the preview.
    pub(crate) preview: u64,
    /// Whether a result may replace an existing file.
    overwrite: bool,
}

impl Outputs {
    /// Allows output to the directory of the source file, the cache, and the directories `allowed`.
    pub(crate) fn new(file: Option<&Path>, allowed: &[PathBuf], preview: u64) -> Result<Self, ErrorKind> {
        let refuse = |path: &Path, error: io::Error| fault(path, TargetError::Io(error));
        let (mut directory, mut source) = (None, None);
        if let Some(file) = file {
            directory = Some(Directory::open(directory_of(file)).map_err(|error| refuse(file, error))?);
            let real = std::fs::canonicalize(file).and_then(|real| RealDisk.entry(&real));
            source = Some(real.map_err(|error| refuse(file, error))?.id);
        }
        let file = file.map(Path::to_owned);
        let (allowed, cache) = (allowed.to_vec(), cache_directories());
        Ok(Self { file, directory, source, allowed, cache, preview, overwrite: false })
    }

    /// Sets whether results may replace existing files.
    pub(crate) fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Path of the source file, if it has one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Checks a path of a query. Nothing is written.
    pub(crate) fn spot(&self, path: &Path) -> Result<OutputPath, ErrorKind> {
        let refuse = |reason| fault(path, reason);
        let name = own_name(path).ok_or_else(|| refuse(TargetError::NoName))?;
        let full = match (&self.directory, path.is_absolute()) {
            (_, true) => path.to_owned(),
            (Some(directory), false) => directory.path().join(path),
            (None, false) => return Err(refuse(TargetError::NoBase)),
        };
        let parent = Resolved::new(directory_of(&full)).map_err(refuse)?;
        let root = self.root_of(&parent, path)?.ok_or_else(|| refuse(TargetError::Outside))?;
        let spot = OutputPath::walk(root, &parent, name, path)?;
        if let (Some(directory), []) = (&spot.directory, &spot.missing[..]) {
            let there = directory.look(name).map_err(|error| refuse(TargetError::Io(error)))?;
            match there {
                Some(entry) if self.source == Some(entry.id) => return Err(refuse(TargetError::Source)),
                Some(entry) if entry.kind == EntryKind::Link => return Err(refuse(TargetError::Link)),
                Some(entry) if entry.kind != EntryKind::File => {
                    return Err(refuse(TargetError::NotAFile(entry.kind)));
                }
                _ => {}
            }
        }
        Ok(spot)
    }

    /// Allowed directory that contains a path: the directory to start from, and whether new directories are private.
    fn root_of(&self, parent: &Resolved, shown: &Path) -> Result<Option<Root>, ErrorKind> {
        if let Some(directory) = self.directory.as_ref().filter(|directory| parent.is_in(directory.path())) {
            return Ok(Some(Root { directory: directory.clone(), private: false }));
        }
        for allowed in &self.allowed {
            let open = Directory::open(allowed).map_err(|error| fault(allowed, TargetError::Io(error)))?;
            if parent.is_in(open.path()) {
                return Ok(Some(Root { directory: open, private: false }));
            }
        }
        for cache in &self.cache {
            // An inaccessible cache directory is skipped.
            let Ok(root) = Resolved::new(cache) else { continue };
            if parent.is_in(&root.full()) {
                let open =
                    Directory::open(&root.existing).map_err(|error| fault(shown, TargetError::Io(error)))?;
                return Ok(Some(Root { directory: open, private: true }));
            }
        }
        Ok(None)
    }

    /// Creates a location in the cache for a persistent file with a unique name.
    pub(crate) fn automatic(&self) -> Result<Output, ErrorKind> {
        let name = format!("spill-{}-{:016x}.bin", std::process::id(), random());
        let mut last = fault(Path::new(&name), TargetError::NoCache);
        for cache in &self.cache {
            match self.open_private(&cache.join(&name)) {
                Err(error @ ErrorKind::Target { .. }) => last = error,
                made => return made,
            }
        }
        Err(last)
    }

    /// Creates a location in the cache, private to the owner even if the cache is below the directory of the source
    /// file.
    fn open_private(&self, path: &Path) -> Result<Output, ErrorKind> {
        self.spot(path).and_then(|spot| self.open(OutputPath { private: true, ..spot }))
    }

    /// Creates an unnamed temporary file in the cache, removed when it is closed; also returns the directory that it
    /// uses space in.
    pub(crate) fn temporary(&self) -> Result<(std::fs::File, PathBuf), ErrorKind> {
        let in_cache = self.cache.iter().find_map(|cache| {
            let output = self.open_private(&cache.join("spill")).ok()?;
            let file = output.directory.temporary().ok()?;
            let directory = output.directory.path().to_owned();
            output.keep();
            Some((file, directory))
        });
        let anywhere = || {
            let directory = std::env::temp_dir();
            let file = Directory::open(&directory).and_then(|open| open.temporary());
            file.map(|file| (file, directory.clone()))
                .map_err(|error| fault(&directory, TargetError::Io(error)))
        };
        in_cache.map_or_else(anywhere, Ok)
    }

    /// Opens a checked location and creates its missing directories.
    pub(crate) fn open(&self, spot: OutputPath) -> Result<Output, ErrorKind> {
        let OutputPath { root, directory, missing, name, shown, private } = spot;
        let refuse = |error: io::Error| fault(&shown, TargetError::Io(error));
        let (directory, overwrite) = (directory.unwrap_or(root), self.overwrite);
        let mut output = Output { directory, name, private, overwrite, made: Vec::new() };
        for part in missing {
            if output.directory.make(&part, private).map_err(refuse)? {
                output.made.push((output.directory.clone(), part.clone()));
            }
            output.directory = output.directory.enter(&part).map_err(refuse)?;
        }
        // Another name of the source may have appeared since the check.
        let there = output.directory.look(&output.name).map_err(refuse)?;
        if there.is_some_and(|entry| self.source == Some(entry.id)) {
            return Err(fault(&shown, TargetError::Source));
        }
        Ok(output)
    }
}

struct Root {
    directory: Directory,
    private: bool,
}

/// A checked output location.
#[derive(Debug)]
pub(crate) struct OutputPath {
    root: Directory,
    /// Deepest existing directory; `None` is the root itself.
    directory: Option<Directory>,
    /// Directories that do not exist yet.
    missing: Vec<OsString>,
    name: OsString,
    shown: PathBuf,
    private: bool,
}

impl OutputPath {
    /// Walks from the root to the directory of the file, without following links.
    fn walk(root: Root, parent: &Resolved, name: &OsStr, shown: &Path) -> Result<Self, ErrorKind> {
        let refuse = |error: io::Error| fault(shown, TargetError::Io(error));
        let mut directory = root.directory.clone();
        let below = parent.existing.strip_prefix(root.directory.path());
        // Without directories below the root, the missing ones start inside the root.
        for part in below.unwrap_or(Path::new("")).components() {
            directory = directory.enter(part.as_os_str()).map_err(refuse)?;
        }
        Ok(Self {
            root: root.directory,
            directory: Some(directory),
            missing: parent.missing.clone(),
            name: name.to_owned(),
            shown: shown.to_owned(),
            private: root.private,
        })
    }

    /// Whether the name already exists.
    pub(crate) fn is_taken(&self) -> bool {
        let directory = self.directory.as_ref().unwrap_or(&self.root);
        self.missing.is_empty() && matches!(directory.look(&self.name), Ok(Some(_)))
    }
}

/// An open output location for a file.
#[derive(Debug)]
pub(crate) struct Output {
    directory: Directory,
    name: OsString,
    /// Whether the file is private to its owner, as every file in the cache is: the caller chose no directory whose
    /// permissions decide who may read it.
    private: bool,
    overwrite: bool,
    /// Directories that were created for the file.
    made: Vec<(Directory, OsString)>,
}

impl Output {
    /// Creates the file under a temporary name. It appears, complete, when it is published.
    pub(crate) fn stage(&self) -> Result<AtomicFile, ErrorKind> {
        Ok(self.directory.stage(&self.name, self.private, self.overwrite)?)
    }

    /// Path of the file, with links resolved.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    /// Keeps the created directories, after the file was published.
    pub(crate) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        for (directory, name) in self.made.drain(..).rev() {
            // A directory in use by another process is not empty and is kept.
            let _ = directory.remove_directory(&name);
        }
    }
}

/// A path with links resolved, as far as it exists.
#[derive(Debug)]
struct Resolved {
    existing: PathBuf,
    missing: Vec<OsString>,
}

impl Resolved {
    fn new(path: &Path) -> Result<Self, TargetError> {
        let mut missing = Vec::new();
        let mut parts: Vec<Component<'_>> = path.components().collect();
        loop {
            let known: PathBuf = parts.iter().collect();
            match std::fs::canonicalize(&known) {
                Ok(existing) => {
                    missing.reverse();
                    return Ok(Self { existing, missing });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => match parts.pop() {
                    Some(Component::Normal(name)) => missing.push(name.to_owned()),
                    // The parent of a directory that does not exist is unknown.
                    Some(Component::ParentDir) => return Err(TargetError::Dots),
                    _ => return Err(TargetError::Io(error)),
                },
                Err(error) => return Err(TargetError::Io(error)),
            }
        }
    }

    fn full(&self) -> PathBuf {
        self.existing.join(self.missing.iter().collect::<PathBuf>())
    }

    fn is_in(&self, root: &Path) -> bool {
        self.full().starts_with(root)
    }
}

/// Parent directory of a path; for a bare name, the working directory.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// File name of a path, unless the path denotes a directory: `Path` drops the end of `a/` and `a/.`.
fn own_name(path: &Path) -> Option<&OsStr> {
    let name = path.file_name()?;
    path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()).then_some(name)
}

/// Cache directories for files without a given name, best first.
fn cache_directories() -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("HOME").or_else(|| absolute("USERPROFILE"));
    let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let cache = absolute("XDG_CACHE_HOME").or_else(|| below_home(".cache"));
    let temporary = ["TMPDIR", "TEMP", "TMP"].into_iter().find_map(absolute);
    let directories = [cache, below_home(".local/cache"), temporary];
    directories.into_iter().flatten().map(|directory| directory.join("tetration")).collect()
}

fn fault(path: &Path, reason: TargetError) -> ErrorKind {
    ErrorKind::Target { path: path.to_string_lossy().into(), reason }
}

/// Random number, unique across processes; the keys of `RandomState` come from the system.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}
