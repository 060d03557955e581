//! The cache between runs: target directories, the Python environment, installed programs.
//!
//! An entry is a directory `KIND-KEY` in the cache root. A stamp file in it records the last use and is locked
//! (shared) while in use. Only the most recent entries of a kind are kept; an entry in use is never removed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Entries kept of each kind: the current one and the previous one, for switching between two branches.
const KEEP: usize = 2;

const STAMP: &str = ".last-used";
const COMPLETE: &str = ".complete";

/// The root directory of the cache.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// An entry that is kept as long as this value lives.
#[derive(Debug)]
pub(crate) struct Lease {
    path: PathBuf,
    stamp: File,
}

impl Lease {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Records this use; closing the file releases the lock.
    fn touch(&self) -> Result<(), String> {
        self.stamp
            .lock_shared()
            .and_then(|()| self.stamp.set_modified(SystemTime::now()))
            .map_err(|error| cannot("stamp", &self.path, &error))
    }
}

impl Cache {
    /// `$XDG_CACHE_HOME/tercet`, else `$HOME/.cache/tercet`, else inside the checkout's `target`.
    pub(crate) fn open(checkout: &Path) -> Result<Self, String> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .map_or_else(|| checkout.join("target/cache"), |base| base.join("tercet"));
        Self::at(root)
    }

    fn at(root: PathBuf) -> Result<Self, String> {
        fs::create_dir_all(&root).map_err(|error| cannot("create", &root, &error))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The entry of this key, created empty if it is new; older entries of the kind are removed.
    pub(crate) fn entry(&self, kind: &str, key: &str) -> Result<Lease, String> {
        let _guard = self.lock(kind)?;
        self.lease(kind, key)
    }

    /// The entry of this key, filled by `install` unless an earlier run completed it.
    ///
    /// It is filled in place, because a Python environment cannot be moved. A mark is written last; an entry
    /// without it was interrupted and is created again.
    pub(crate) fn installed(
        &self,
        kind: &str,
        key: &str,
        install: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<Lease, String> {
        let _guard = self.lock(kind)?;
        let path = self.path(kind, key);
        let mark = path.join(COMPLETE);
        if !mark.exists() {
            remove(&path)?;
            fs::create_dir_all(&path).map_err(|error| cannot("create", &path, &error))?;
            install(&path)?;
            File::create(&mark).map_err(|error| cannot("create", &mark, &error))?;
        }
        self.lease(kind, key)
    }

    fn lease(&self, kind: &str, key: &str) -> Result<Lease, String> {
        let path = self.path(kind, key);
        fs::create_dir_all(&path).map_err(|error| cannot("create", &path, &error))?;
        let stamp = open_stamp(&path.join(STAMP)).map_err(|error| cannot("stamp", &path, &error))?;
        let lease = Lease { path, stamp };
        lease.touch()?;
        self.prune(kind)?;
        Ok(lease)
    }

    /// Removes all but the most recently used entries of a kind. The caller holds the lock of the kind.
    fn prune(&self, kind: &str) -> Result<(), String> {
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.root).map_err(|error| cannot("list", &self.root, &error))? {
            let path = found.map_err(|error| cannot("list", &self.root, &error))?.path();
            if is_of_kind(&path, kind) {
                let used = fs::metadata(path.join(STAMP)).and_then(|stamp| stamp.modified());
                entries.push((used.unwrap_or(SystemTime::UNIX_EPOCH), path));
            }
        }
        entries.sort_by(|a, b| b.cmp(a));
        for (_, path) in entries.into_iter().skip(KEEP) {
            if open_stamp(&path.join(STAMP)).is_ok_and(|stamp| stamp.try_lock().is_ok()) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Waits for other runs that change entries of this kind.
    fn lock(&self, kind: &str) -> Result<File, String> {
        let path = self.root.join(format!("{kind}.lock"));
        let file = open_stamp(&path).map_err(|error| cannot("open", &path, &error))?;
        if file.try_lock().is_err() {
            println!("waiting for another run to release {}", path.display());
            file.lock().map_err(|error| cannot("lock", &path, &error))?;
        }
        Ok(file)
    }

    fn path(&self, kind: &str, key: &str) -> PathBuf {
        self.root.join(format!("{kind}-{key}"))
    }
}

/// Removes a directory and its contents, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", path, &error)),
        _ => Ok(()),
    }
}

/// A hash of some content: 64-bit FNV-1a, the same on every machine and with every compiler.
pub(crate) fn key(parts: &[Vec<u8>]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes();
        for byte in length.iter().chain(part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// `KIND-KEY` with a key without hyphens, so that `target` does not match `target-other-…`.
fn is_of_kind(path: &Path, kind: &str) -> bool {
    path.is_dir()
        && path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(kind)?.strip_prefix('-'))
            .is_some_and(|key| !key.contains('-'))
}

fn open_stamp(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("tercet-xtask-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn cache(&self) -> Cache {
            Cache::at(self.0.clone()).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Uses an entry, with a last use some seconds ago.
    fn use_entry(cache: &Cache, kind: &str, key: &str, seconds_ago: u64) {
        let lease = cache.entry(kind, key).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds_ago);
        lease.stamp.set_modified(then).unwrap();
    }

    #[test]
    fn only_the_two_most_recent_entries_of_a_kind_are_kept() {
        let scratch = Scratch::new("prune");
        let cache = scratch.cache();
        use_entry(&cache, "target-other", "z", 900);
        use_entry(&cache, "target", "a", 30);
        use_entry(&cache, "target", "b", 50);
        let _now = cache.entry("target", "c").unwrap();
        assert!(cache.path("target", "a").exists());
        assert!(!cache.path("target", "b").exists());
        assert!(cache.path("target", "c").exists());
        assert!(cache.path("target-other", "z").exists());
    }

    #[test]
    fn an_entry_in_use_is_never_removed() {
        let scratch = Scratch::new("in-use");
        let cache = scratch.cache();
        let old = cache.entry("target", "a").unwrap();
        old.stamp.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        use_entry(&cache, "target", "b", 10);
        let _now = cache.entry("target", "c").unwrap();
        assert!(old.path().exists());
    }

    #[test]
    fn an_interrupted_installation_is_redone_and_a_complete_one_is_kept() {
        let scratch = Scratch::new("install");
        let cache = scratch.cache();
        let interrupted = cache.installed("venv", "k", |path| {
            fs::write(path.join("half"), b"").unwrap();
            Err("no network".into())
        });
        assert_eq!(interrupted.unwrap_err(), "no network");
        let lease = cache
            .installed("venv", "k", |path| {
                assert!(!path.join("half").exists());
                fs::write(path.join("whole"), b"").map_err(|error| error.to_string())
            })
            .unwrap();
        assert!(lease.path().join("whole").exists());
        cache.installed("venv", "k", |_| panic!("installed twice")).unwrap();
    }

    #[test]
    fn keys_depend_on_contents_and_their_boundaries() {
        let of = |parts: &[&[u8]]| key(&parts.iter().map(|part| part.to_vec()).collect::<Vec<_>>());
        assert_eq!(of(&[b"ab", b"c"]).len(), 16);
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
    }
}
