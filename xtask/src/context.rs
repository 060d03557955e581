//! Where the checkout, its caches and its golden files are, and how cargo is called in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Cache, Lease, key};
use crate::process;

/// The workspaces beside the main one that the tests build, each with its own lock file. `bench` is not among
/// them: the peers it measures take long to build.
pub(crate) const SIDE_WORKSPACES: [&str; 2] = ["fuzz", "interop"];

/// Everything a stage needs to know about its surroundings.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    /// `CI=true`: whatever is missing is a failure.
    pub(crate) ci: bool,
    pub(crate) cache: Cache,
    main_target: Lease,
    side_target: Lease,
}

/// Where property tests start to draw their cases.
const PROPERTY_SEED: &str = "20261116";

impl Context {
    pub(crate) fn open() -> Result<Self, String> {
        let root = checkout();
        let cache = Cache::open(&root)?;
        let compiler = process::read(Command::new("rustc").arg("-vV").current_dir(&root))?;
        let locks = |folders: &[&str]| {
            let mut parts = vec![compiler.clone().into_bytes()];
            // A lock file that is not there yet counts as empty: cargo will write it.
            parts.extend(folders.iter().map(|folder| read_or_empty(&root.join(folder).join("Cargo.lock"))));
            key(&parts)
        };
        let main_target = cache.entry("target", &locks(&[""]))?;
        let side_target = cache.entry("target-side", &locks(&SIDE_WORKSPACES))?;
        let ci = env::var("CI").is_ok_and(|value| matches!(value.as_str(), "true" | "1"));
        Ok(Self { root, ci, cache, main_target, side_target })
    }

    /// Cargo on the main workspace.
    pub(crate) fn cargo(&self) -> Command {
        self.cargo_with_target(self.main_target.path())
    }

    /// Cargo on the side workspaces, which share one target directory.
    pub(crate) fn side_cargo(&self) -> Command {
        self.cargo_with_target(self.side_target.path())
    }

    /// A program of the main workspace, once that is built.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.main_target.path().join("debug").join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    /// A program of a side workspace, once that is built.
    pub(crate) fn side_program(&self, name: &str) -> PathBuf {
        self.side_target.path().join("debug").join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    fn cargo_with_target(&self, target: &Path) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", target);
        // The same cases in every run, so that a failure can be repeated; `cargo test` by hand draws new ones.
        command.env("PROPTEST_RNG_SEED", PROPERTY_SEED);
        if self.ci {
            // Nothing is rebuilt after an edit there, so incremental state would only fill the disk.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// `--locked` where the lock files must already be right.
    pub(crate) fn locked(&self) -> &'static [&'static str] {
        if self.ci { &["--locked"] } else { &[] }
    }

    /// Whether the checkout has this file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The folder with golden files, or where it was looked for.
    pub(crate) fn golden(&self) -> Result<PathBuf, PathBuf> {
        let folder = PathBuf::from(env::var_os("TERCET_GOLDEN").unwrap_or_else(|| "../shared/golden".into()));
        match self.root.join(&folder).canonicalize() {
            Ok(found) if found.is_dir() => Ok(found),
            _ => Err(folder),
        }
    }
}

/// The root of the checkout.
pub(crate) fn checkout() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Cargo without what the cargo that started us told us about our own package.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| text.starts_with(p))
        {
            command.env_remove(&name);
        }
    }
    command
}

pub(crate) fn read_or_empty(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}
