//! The reference implementations, installed once into the cache and never part of our own graph.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Lease, key, remove};
use crate::context::{Context, cargo, read_or_empty};
use crate::process;

/// What the Python environment holds, pinned exactly.
const REQUIREMENTS: &str = "interop/requirements.txt";

/// A command line of a reference implementation, installed by cargo from its published source.
#[derive(Debug)]
pub(crate) struct ReferenceCli {
    /// Names its folder in the cache.
    kind: &'static str,
    package: &'static str,
    version: &'static str,
    features: &'static str,
    binary: &'static str,
}

/// The reference command line for `.tet`; its Python package cannot verify a file, this can.
pub(crate) const TET: ReferenceCli = ReferenceCli {
    kind: "oracle-tet",
    package: "tetration",
    version: "0.8.3",
    features: "tetration-cli",
    binary: "tet",
};

/// Something installed, kept in the cache as long as this value lives.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) program: PathBuf,
    _lease: Lease,
}

/// Installs every oracle that is not there yet.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    println!("{}", python(context)?.program.display());
    println!("{}", reference_cli(context, &TET)?.program.display());
    Ok(())
}

/// The interpreter of a virtual environment with the packages of `interop/requirements.txt`.
pub(crate) fn python(context: &Context) -> Result<Installed, String> {
    let requirements = context.root.join(REQUIREMENTS);
    let version = process::read(Command::new("python3").arg("--version"))?;
    // An environment belongs to its interpreter, so an upgraded Python gets a new one.
    let key = key(&[read_or_empty(&requirements), version.into_bytes()]);
    let lease = context.cache.installed("venv", &key, |folder| {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        process::run(
            Command::new(interpreter(folder))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
                .arg(&requirements),
        )
    })?;
    Ok(Installed { program: interpreter(lease.path()), _lease: lease })
}

/// A reference command line; building it takes some minutes, once.
pub(crate) fn reference_cli(context: &Context, cli: &ReferenceCli) -> Result<Installed, String> {
    let lease = context.cache.installed(cli.kind, cli.version, |folder| {
        let scratch = context.cache.root().join(format!("{}-build", cli.kind));
        let mut command = cargo();
        command
            .args(["install", cli.package, "--version", cli.version, "--locked"])
            .args(["--no-default-features", "--features", cli.features, "--root"])
            .arg(folder)
            // Outside the checkout, so that none of its settings reach a foreign build.
            .current_dir(context.cache.root())
            .env("CARGO_TARGET_DIR", &scratch);
        let built = process::run(&mut command);
        remove(&scratch)?;
        built
    })?;
    let program = lease.path().join("bin").join(cli.binary).with_extension(std::env::consts::EXE_EXTENSION);
    Ok(Installed { program, _lease: lease })
}

fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}
