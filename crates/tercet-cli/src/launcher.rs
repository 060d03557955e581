//! Starts `tercet` under another name: the commands are linked once, and a launcher is a few hundred kilobytes.
//!
//! The name travels as `argv[0]`, which no argument of the user can be mistaken for. On Windows, where a process
//! cannot choose the `argv[0]` of another one, it travels in the environment variable `TERCET_PERSONA`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, io};

/// The program that all launchers start.
const PROGRAM: &str = "tercet";
/// The exit code for I/O errors, as `tercet` has it.
const IO_ERROR: u8 = 3;

/// Runs `tercet` as `name` with the arguments of this process.
pub(crate) fn run(name: &str) -> ExitCode {
    // A link named `tensogram` to any of the launchers is a name of its own.
    let link = env::args_os().next();
    let stem = link.as_deref().and_then(|link| Path::new(link).file_stem());
    let name = if stem == Some(OsStr::new("tensogram")) { "tensogram" } else { name };
    let beside = beside();
    for program in beside.iter().map(PathBuf::as_path).chain([Path::new(PROGRAM)]) {
        match start(program, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return failed(name, &format!("cannot run {}: {error}", program.display())),
            Ok(code) => return code,
        }
    }
    let place = beside.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    failed(
        name,
        &format!(
            "the program `{PROGRAM}` is neither in {} nor in PATH; install it together with `{name}`",
            place.display()
        ),
    )
}

/// `tercet` in the directory of this launcher, links followed.
fn beside() -> Option<PathBuf> {
    let launcher = env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    let program = launcher.with_file_name(PROGRAM).with_extension(env::consts::EXE_EXTENSION);
    // A launcher that was renamed to `tercet` must not start itself for ever.
    (program != launcher).then_some(program)
}

/// Replaces this process, so that exit codes and signals need no forwarding. Returns only if that fails.
#[cfg(unix)]
fn start(program: &Path, name: &str) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    Err(Command::new(program).arg0(name).args(env::args_os().skip(1)).exec())
}

/// Starts a process, waits for its end and passes its exit code on.
#[cfg(not(unix))]
fn start(program: &Path, name: &str) -> io::Result<ExitCode> {
    let mut command = Command::new(program);
    let status = command.env("TERCET_PERSONA", name).args(env::args_os().skip(1)).status()?;
    std::process::exit(status.code().unwrap_or(1))
}

#[expect(clippy::print_stderr, reason = "a program without a terminal library of its own")]
fn failed(name: &str, problem: &str) -> ExitCode {
    eprintln!("{name}: error: {problem}");
    ExitCode::from(IO_ERROR)
}
