//! Programs of others that the stages run, installed once into the cache and never part of our own graph: the
//! reference implementations as oracles, and cargo-deny.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::cache::{Lease, key, remove};
use crate::context::{Context, cargo, read_or_empty};
use crate::process;

/// What the Python environment contains, pinned exactly.
const REQUIREMENTS: &str = "interop/requirements.txt";

/// The directory of the page.
const WEB: &str = "web";

/// A program that cargo installs from its published source.
#[derive(Debug)]
pub(crate) struct CargoTool {
    /// The prefix of its directory in the cache.
    kind: &'static str,
    package: &'static str,
    version: &'static str,
    /// Features instead of the default ones.
    features: Option<&'static str>,
    binary: &'static str,
}

/// The reference command line for `.tet`; its Python package cannot verify a file, this can.
pub(crate) const TET: CargoTool = CargoTool {
    kind: "oracle-tet",
    package: "tetration",
    version: "0.8.3",
    features: Some("tetration-cli"),
    binary: "tet",
};

/// Checks licences and sources of dependencies.
pub(crate) const DENY: CargoTool = CargoTool {
    kind: "cargo-deny",
    package: "cargo-deny",
    version: "0.20.2",
    features: None,
    binary: "cargo-deny",
};

/// An installed program; it stays in the cache as long as this value lives.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) program: PathBuf,
    _lease: Lease,
}

/// Installs every oracle that is missing.
pub(crate) fn install_oracles(context: &Context) -> Result<(), String> {
    println!("{}", python(context)?.program.display());
    println!("{}", cargo_tool(context, &TET)?.program.display());
    Ok(())
}

/// The interpreter of a virtual environment with the packages of `interop/requirements.txt`.
pub(crate) fn python(context: &Context) -> Result<Installed, String> {
    let requirements = context.root.join(REQUIREMENTS);
    let version = process::read(Command::new("python3").arg("--version"))?;
    // An environment belongs to its interpreter: an upgraded Python gets a new one.
    let key = key(&[read_or_empty(&requirements), version.into_bytes()]);
    let lease = context.cache.installed("venv", &key, |directory| {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
        process::run(
            Command::new(interpreter(directory))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
                .arg(&requirements),
        )
    })?;
    Ok(Installed { program: interpreter(lease.path()), _lease: lease })
}

/// A program of an npm package, if this machine has node.
pub(crate) fn npm(context: &Context, package: &str, version: &str) -> Result<Installed, String> {
    process::read(Command::new("node").arg("--version"))?;
    let lease = context.cache.installed(&format!("npm_{package}"), version, |directory| {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(directory);
        process::run(install.arg(format!("{package}@{version}")))
    })?;
    let program = lease.path().join("node_modules/.bin").join(package);
    Ok(Installed { program, _lease: lease })
}

/// An installed tool; building it takes some minutes, once.
pub(crate) fn cargo_tool(context: &Context, tool: &CargoTool) -> Result<Installed, String> {
    let lease = context.cache.installed(tool.kind, tool.version, |directory| {
        let scratch = context.cache.root().join(format!("{}-build", tool.kind));
        let mut command = cargo();
        command.args(["install", tool.package, "--version", tool.version, "--locked"]);
        if let Some(features) = tool.features {
            command.args(["--no-default-features", "--features", features]);
        }
        command
            .arg("--root")
            .arg(directory)
            // Outside the checkout, so that its settings do not apply.
            .current_dir(context.cache.root())
            .env("CARGO_TARGET_DIR", &scratch);
        let built = process::run(&mut command);
        remove(&scratch)?;
        built
    })?;
    let program = lease.path().join("bin").join(tool.binary).with_extension(std::env::consts::EXE_EXTENSION);
    Ok(Installed { program, _lease: lease })
}

/// The packages of `web/package-lock.json`: a directory that contains `node_modules`.
pub(crate) fn node_modules(context: &Context) -> Result<Installed, String> {
    let web = context.root.join(WEB);
    let version = process::read(Command::new("node").arg("--version"))?;
    let key = key(&[read_or_empty(&web.join("package-lock.json")), version.into_bytes()]);
    let lease = context.cache.installed("node", &key, |directory| {
        for name in [".npmrc", "package.json", "package-lock.json"] {
            fs::copy(web.join(name), directory.join(name))
                .map_err(|error| format!("cannot copy {WEB}/{name}: {error}"))?;
        }
        process::run(Command::new("npm").args(["ci", "--no-progress"]).current_dir(directory))
    })?;
    Ok(Installed { program: lease.path().join("node_modules"), _lease: lease })
}

/// The browser of the distribution. It is installed if that is possible; the outer result is `None` if it is not.
pub(crate) fn chromium() -> Option<Result<PathBuf, String>> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(Ok(named.into()));
    }
    let found = || {
        ["/usr/bin/chromium", "/usr/bin/chromium-browser"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists())
    };
    if let Some(path) = found() {
        return Some(Ok(path));
    }
    let is_root = process::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || process::read(Command::new("apt-get").arg("--version")).is_err() {
        return None;
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "-qq"]);
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends", "chromium"]);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    let installed = process::run(&mut update).and_then(|()| process::run(&mut install));
    Some(installed.and_then(|()| found().ok_or_else(|| "the package `chromium` has no program".to_owned())))
}

pub(crate) fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}
