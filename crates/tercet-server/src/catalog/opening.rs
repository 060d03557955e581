//! Opening files below a root, and nowhere else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory whose files may be opened.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    handle: fs::File,
}

/// What distinguishes two versions of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    pub(crate) len: u64,
    modified: u128,
    /// Device and number of the file, where the system has them.
    node: (u64, u64),
}

impl Stamp {
    pub(crate) fn new(meta: &fs::Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { len: meta.len(), modified: since.map_or(0, |since| since.as_nanos()), node: node(meta) }
    }

    /// A short text that differs between versions.
    pub(crate) fn version(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.len.to_le_bytes()).update(&self.modified.to_le_bytes());
        hasher.update(&self.node.0.to_le_bytes()).update(&self.node.1.to_le_bytes());
        hasher.finalize().to_hex()[..12].to_owned()
    }

    /// The time of the last change.
    pub(crate) fn modified(&self) -> SystemTime {
        let nanos = u64::try_from(self.modified).unwrap_or(0);
        UNIX_EPOCH + std::time::Duration::from_nanos(nanos)
    }
}

#[cfg(unix)]
fn node(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn node(_meta: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

impl Root {
    /// `path` is canonical.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            #[cfg(target_os = "linux")]
            handle: fs::OpenOptions::new().read(true).open(&path)?,
            path,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file by its path below the root, which has no links.
    pub(super) fn open_file(&self, relative: &Path) -> io::Result<(fs::File, Stamp)> {
        let file = self.open_beneath(relative)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stamp = Stamp::new(&meta);
        Ok((file, stamp))
    }

    #[cfg(target_os = "linux")]
    fn open_beneath(&self, relative: &Path) -> io::Result<fs::File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;
        // A pipe must not block.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.handle, relative, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file.into()),
            // Links, or a path out of the root.
            Err(Errno::LOOP | Errno::XDEV) => Err(io::ErrorKind::PermissionDenied.into()),
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => self.open_checked(relative),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_beneath(&self, relative: &Path) -> io::Result<fs::File> {
        self.open_checked(relative)
    }

    /// Opens a file if its path without links is below the root.
    fn open_checked(&self, relative: &Path) -> io::Result<fs::File> {
        let path = self.path.join(relative).canonicalize()?;
        if !path.starts_with(&self.path) || !fs::metadata(&path)?.is_file() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        fs::OpenOptions::new().read(true).open(path)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests create real files")]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nothing_outside_of_the_root_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::write(inside.path().join("file"), "f").unwrap();
        fs::create_dir(inside.path().join("directory")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), inside.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way")).unwrap();
        std::os::unix::fs::symlink("file", inside.path().join("same")).unwrap();
        let root = Root::open(inside.path().canonicalize().unwrap()).unwrap();
        assert!(root.open_file(Path::new("file")).is_ok());
        let secret = outside.path().canonicalize().unwrap().join("secret");
        let up = format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
        for path in
            ["link", "way/secret", "directory", "missing", "../x", "same", secret.to_str().unwrap(), &up]
        {
            assert!(root.open_file(Path::new(path)).is_err(), "{path}");
        }
        // The way of systems without the call.
        assert!(root.open_checked(Path::new("file")).is_ok());
        for path in ["link", "way/secret", "directory", "missing", secret.to_str().unwrap(), &up] {
            assert!(root.open_checked(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn versions_differ() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "1").unwrap();
        let first = Stamp::new(&fs::metadata(&path).unwrap());
        assert_eq!(first.version(), Stamp::new(&fs::metadata(&path).unwrap()).version());
        fs::write(&path, "12").unwrap();
        assert_ne!(first.version(), Stamp::new(&fs::metadata(&path).unwrap()).version());
    }
}
