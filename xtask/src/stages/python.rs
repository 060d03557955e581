//! The Python package: its tests, and its wheel.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scratch::Scratch;
use super::tests::driver;
use crate::context::Context;
use crate::process;
use crate::report::Report;
use crate::tools;

/// The directory of the Python modules.
const PACKAGE: &str = "python/tercet";

/// The largest wheel: it contains one native module.
const WHEEL_BYTES: u64 = 20_000_000;

/// Checks types as mypy does, with other rules; a package of npm, because that of `PyPI` downloads a node of its own.
const PYRIGHT: &str = "1.1.414";

/// Runs the tests of the Python package with the native module of the stage `build`.
///
/// A build by maturin would compile every crate again, with the features of this one package. The stage `wheel` of
/// `nightly` runs the same tests on the wheel; some of them compare the metadata here with `pyproject.toml`.
pub(super) fn python(context: &Context) -> Report {
    let mut report = Report::default();
    let python = match tools::python(context) {
        Ok(python) => python,
        Err(reason) => {
            report.lack(context.ci, "python", &reason);
            return report;
        }
    };
    match Scratch::new("python").and_then(|scratch| stage(context, scratch.path()).map(|()| scratch)) {
        Ok(scratch) => tests(context, &mut report, &python.program, scratch.path()),
        Err(reason) => report.fail(reason),
    }
    report
}

/// Runs the tests and the examples in docstrings on a directory with the package.
fn tests(context: &Context, report: &mut Report, python: &Path, site: &Path) {
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules"]);
    command.arg(context.root.join("python/tests")).arg(site.join("tercet"));
    command.arg("--rootdir").arg(site);
    command.env("PYTHONPATH", site).env("PYTHONDONTWRITEBYTECODE", "1");
    if let Ok(golden) = context.golden() {
        command.env("TERCET_GOLDEN", golden);
    }
    let pyright = tools::npm(context, "pyright", PYRIGHT);
    match &pyright {
        Ok(pyright) => drop(command.env("PYRIGHT", &pyright.program)),
        // Not everyone has node; the test is skipped by name.
        Err(reason) => println!("pyright: {reason}"),
    }
    driver(report, "pytest", command.current_dir(site));
}

/// Builds the wheel with the release profile.
pub(crate) fn wheel(context: &Context, out: &str) -> Result<(), String> {
    let python = tools::python(context)?;
    maturin(context, &python.program, &["build", "--release"], Path::new(out))
}

fn maturin(context: &Context, python: &Path, verb: &[&str], out: &Path) -> Result<(), String> {
    let mut command = Command::new(python);
    command.args(["-m", "maturin"]).args(verb).args(["--manifest-path", "python/Cargo.toml", "--out"]);
    process::run(command.arg(out).current_dir(&context.root))
}

/// Builds the source distribution, and from it the wheel, as `pip` does for users; audits and tests the wheel.
pub(super) fn shipped_wheel(context: &Context) -> Report {
    let mut report = Report::default();
    let made = tools::python(context).and_then(|python| {
        let scratch = Scratch::new("wheel")?;
        let wheel = build_wheel(context, &python.program, scratch.path())?;
        Ok((python, scratch, wheel))
    });
    let (python, scratch, wheel) = match made {
        Ok(made) => made,
        Err(reason) => return Report::failed(reason),
    };
    report.tally.passed += 1;
    for audit in [audit as fn(&Path, &Path, &Path) -> Result<(), String>, install_alone] {
        match audit(&python.program, &wheel, scratch.path()) {
            Ok(()) => report.tally.passed += 1,
            Err(reason) => report.fail(reason),
        }
    }
    let site = scratch.path().join("site");
    let mut install = Command::new(&python.program);
    install
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"])
        .arg(&site)
        .arg(&wheel);
    match process::run(&mut install) {
        Ok(()) => tests(context, &mut report, &python.program, &site),
        Err(reason) => report.fail(reason),
    }
    report
}

/// The path of a wheel that was built from the source distribution.
fn build_wheel(context: &Context, python: &Path, scratch: &Path) -> Result<PathBuf, String> {
    maturin(context, python, &["sdist"], scratch)?;
    let source = the_file(scratch, "gz")?;
    let mut build = Command::new(python);
    build.args(["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir"]);
    build.arg(scratch).arg(&source).env("CARGO_TARGET_DIR", context.target());
    // The build backend calls `maturin` by name.
    build.env("PATH", with_directory(python)?);
    process::run(&mut build)?;
    let wheel = the_file(scratch, "whl")?;
    let bytes = fs::metadata(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    println!("{}: {bytes} bytes", wheel.display());
    if bytes > WHEEL_BYTES {
        return Err(format!("the wheel has {bytes} bytes, more than {WHEEL_BYTES}"));
    }
    Ok(wheel)
}

/// The stable interface is the only one that is used, and no library is needed that a system may not have.
fn audit(python: &Path, wheel: &Path, _scratch: &Path) -> Result<(), String> {
    process::run(Command::new(python).args(["-m", "abi3audit", "--strict", "--verbose"]).arg(wheel))?;
    if cfg!(target_os = "linux") {
        process::run(Command::new(python).args(["-m", "auditwheel", "show"]).arg(wheel))?;
    }
    Ok(())
}

/// Installs the wheel with `NumPy` and nothing else, without a compiler, and uses it.
fn install_alone(python: &Path, wheel: &Path, scratch: &Path) -> Result<(), String> {
    let environment = scratch.join("environment");
    process::run(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    let alone = tools::interpreter(&environment);
    let mut install = Command::new(&alone);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]);
    process::run(install.arg(wheel).env("CC", "/nonexistent").env("PATH", ""))?;
    let code = "import io, numpy, tercet; tercet.write('a.tet', {'x': numpy.arange(6.0)}); \
                assert tercet.open('a.tet')['x'].mean().item() == 2.5; print('tercet', tercet.__version__)";
    process::run(Command::new(&alone).args(["-c", code]).current_dir(scratch))
}

/// The only file with an extension.
fn the_file(directory: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut found = entries.filter_map(Result::ok).map(|entry| entry.path());
    found
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| format!("{} has no file `.{extension}`", directory.display()))
}

/// The search path with the directory of a program first.
fn with_directory(program: &Path) -> Result<OsString, String> {
    let own = program.parent().map(Path::to_path_buf);
    let rest = env::var_os("PATH").unwrap_or_default();
    env::join_paths(own.into_iter().chain(env::split_paths(&rest))).map_err(|error| error.to_string())
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
