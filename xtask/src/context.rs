//! Where the checkout, its caches and its golden files are, and how cargo is called in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Cache, Lease, key};
use crate::layers;
use crate::process;

/// Features that no build here enables: the wrappers for cargo-fuzz need its sanitizer flags.
const NEVER: [&str; 1] = ["libfuzzer"];
/// The feature that needs a C++ compiler.
const SZ3: &str = "sz3";

/// Everything a stage needs to know about its environment.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    /// `CI=true`: a missing tool or directory is a failure.
    pub(crate) ci: bool,
    pub(crate) cache: Cache,
    /// Why the feature `sz3` is not built, if it is not.
    pub(crate) without_sz3: Option<String>,
    /// `package/feature` of all features of all members.
    features: String,
    target: Lease,
}

/// The seed of all property tests.
const PROPERTY_SEED: &str = "20261116";

impl Context {
    pub(crate) fn open() -> Result<Self, String> {
        let root = checkout();
        let cache = Cache::open(&root)?;
        let compiler = process::read(Command::new("rustc").arg("-vV").current_dir(&root))?;
        // A missing lock file counts as empty: cargo will write it.
        let lock = read_or_empty(&root.join("Cargo.lock"));
        let target = cache.entry("target", &key(&[compiler.into_bytes(), lock]))?;
        let ci = env::var("CI").is_ok_and(|value| matches!(value.as_str(), "true" | "1"));
        let without_sz3 = missing_cxx();
        let features = all_features(&root, without_sz3.is_none())?;
        Ok(Self { root, ci, cache, without_sz3, features, target })
    }

    /// Cargo in the checkout, with the cached target directory.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", self.target.path());
        // The same cases in every run, so that a failure can be repeated; `cargo test` by hand draws new ones.
        command.env("PROPTEST_RNG_SEED", PROPERTY_SEED);
        // More than half of a test program would be debug information, which only a debugger reads; a panic
        // names its line without.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        if self.ci {
            // Nothing is rebuilt after an edit there; incremental state would only fill the disk.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// A cargo command on all members with all features. Every stage that compiles uses the same members and
    /// features, so that each crate is compiled once per profile.
    pub(crate) fn workspace(&self, verb: &str) -> Command {
        let mut command = self.cargo();
        command.args([verb, "--workspace", "--features", &self.features]).args(self.locked());
        command
    }

    /// [`Self::workspace`] for everything that a later stage runs. Like `cargo test` it resolves development
    /// dependencies; without them the features of some crates would differ.
    pub(crate) fn build(&self) -> Command {
        let mut command = self.workspace("build");
        command.args(["--lib", "--bins", "--tests", "--examples"]);
        command
    }

    /// [`Self::workspace`] for running tests: golden files named, snapshots compared and never written.
    pub(crate) fn workspace_test(&self) -> Command {
        let mut command = self.workspace("test");
        self.prepare_tests(&mut command);
        command
    }

    /// The environment of tests.
    pub(crate) fn prepare_tests(&self, command: &mut Command) {
        command.arg("--no-fail-fast").env("INSTA_UPDATE", "no");
        if let Ok(directory) = self.golden() {
            command.env("TERCET_GOLDEN", directory);
        }
    }

    /// The directory of the builds.
    pub(crate) fn target(&self) -> &Path {
        self.target.path()
    }

    /// A program of the workspace, after the stage `build`.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.built("debug", name)
    }

    /// A program of the workspace, after a build with this profile.
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.target.path().join(profile).join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    /// `--locked` where the lock file must already be right.
    pub(crate) fn locked(&self) -> &'static [&'static str] {
        if self.ci { &["--locked"] } else { &[] }
    }

    /// The directory with golden files, or where it was expected.
    pub(crate) fn golden(&self) -> Result<PathBuf, PathBuf> {
        let directory =
            PathBuf::from(env::var_os("TERCET_GOLDEN").unwrap_or_else(|| "../shared/golden".into()));
        match self.root.join(&directory).canonicalize() {
            Ok(found) if found.is_dir() => Ok(found),
            _ => Err(directory),
        }
    }
}

/// The root of the checkout.
pub(crate) fn checkout() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Cargo without the variables that describe our own package.
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

/// Why there is no C++ compiler, if there is none.
fn missing_cxx() -> Option<String> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let found = process::read(Command::new(&compiler).arg("--version"));
    found.err().map(|_| format!("`{compiler}` not found: the feature needs a C++17 compiler"))
}

fn all_features(root: &Path, sz3: bool) -> Result<String, String> {
    let metadata = layers::metadata(root)?;
    let mut features = Vec::new();
    for (name, package) in layers::packages(&metadata) {
        for feature in layers::features(package).filter(|feature| !NEVER.contains(feature)) {
            if sz3 || feature != SZ3 {
                features.push(format!("{name}/{feature}"));
            }
        }
    }
    Ok(features.join(","))
}
