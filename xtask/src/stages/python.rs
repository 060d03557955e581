//! The Python package: its tests, and its wheel.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::scratch::Scratch;
use super::tests::driver;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tools;

/// The directory of the Python modules.
const PACKAGE: &str = "python/tercet";

/// Runs the tests of the Python package with the native module of the stage `build`.
pub(super) fn python(context: &Context) -> Report {
    let mut report = Report::default();
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => {
            report.lack(context.ci, "python", &reason);
            return report;
        }
    };
    let staged = Scratch::new("python").and_then(|scratch| stage(context, scratch.path()).map(|()| scratch));
    match staged {
        Ok(scratch) => {
            let mut command = Command::new(&python.program);
            command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules"]);
            command.arg(context.root.join("python/tests")).arg(scratch.path().join("tercet"));
            command.arg("--rootdir").arg(scratch.path());
            command.env("PYTHONPATH", scratch.path()).env("PYTHONDONTWRITEBYTECODE", "1");
            if let Ok(golden) = context.golden() {
                command.env("TERCET_GOLDEN", golden);
            }
            driver(&mut report, "pytest", command.current_dir(scratch.path()));
        }
        Err(reason) => report.fail(reason),
    }
    report
}

/// Builds the wheel with the release profile. Returns what maturin prints.
pub(crate) fn wheel(context: &Context, out: &str) -> Result<(), String> {
    let python = tools::python(context)?;
    let mut command = Command::new(&python.program);
    command.args([
        "-m",
        "maturin",
        "build",
        "--release",
        "--manifest-path",
        "python/Cargo.toml",
        "--out",
        out,
    ]);
    process::run(command.current_dir(&context.root))
}

/// Puts the modules and the native module into one directory, as an installed wheel has them.
fn stage(context: &Context, directory: &Path) -> Result<(), String> {
    let package = directory.join("tercet");
    copy(&context.root.join(PACKAGE), &package)?;
    let built = context.built("debug", "lib_lib").with_extension("so");
    let native = package.join("_lib.abi3.so");
    fs::copy(&built, native)
        .map(drop)
        .map_err(|error| format!("cannot copy {}: {error}", built.display()))?;
    // The entry point of the xarray backend is found in the metadata of the distribution.
    let info = directory.join("tercet-0.1.0.dist-info");
    let write = |name: &str, text: &str| {
        fs::write(info.join(name), text).map_err(|error| format!("cannot write {name}: {error}"))
    };
    fs::create_dir(&info).map_err(|error| format!("cannot create {}: {error}", info.display()))?;
    write("METADATA", "Metadata-Version: 2.1\nName: tercet\nVersion: 0.1.0\n")?;
    write("entry_points.txt", "[xarray.backends]\ntercet = tercet.xarray:TercetBackend\n")
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    fs::create_dir(to).map_err(fail)?;
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(fail)?.is_dir() {
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &target)?;
            }
        } else {
            fs::copy(entry.path(), target).map_err(fail)?;
        }
    }
    Ok(())
}
