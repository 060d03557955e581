//! `tet`, `tgm`, `tatami` and `tensogram`: small programs that start `tercet` under their own name.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const LAUNCHERS: [(&str, &str); 4] = [
    ("tet", env!("CARGO_BIN_EXE_tet")),
    ("tgm", env!("CARGO_BIN_EXE_tgm")),
    ("tatami", env!("CARGO_BIN_EXE_tatami")),
    ("tensogram", env!("CARGO_BIN_EXE_tensogram")),
];

/// A directory on the file system of the build, for hard links: a copy could not run while another test forks.
fn beside_the_build() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn launchers_are_small() {
    let program = Path::new(env!("CARGO_BIN_EXE_tercet")).metadata().unwrap().len();
    for (name, launcher) in LAUNCHERS {
        let len = Path::new(launcher).metadata().unwrap().len();
        // Symbols of the standard library make up most of it in a test build.
        assert!(len < 8 << 20 && len < program / 4, "{name}: {len} bytes");
    }
}

#[test]
fn launchers_and_links_run_under_their_name() {
    let dir = tempfile::tempdir().unwrap();
    for (name, launcher) in LAUNCHERS {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tercet"), &link).unwrap();
        for program in [Path::new(launcher), &link] {
            let output = Command::new(program).arg("--version").output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}");
            let version = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
            let output = Command::new(program).arg("--no-such-option").output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{name}");
            let usage = format!("Usage: {name} ");
            assert!(String::from_utf8(output.stderr).unwrap().contains(&usage), "{name}");
        }
    }
}

#[test]
fn arguments_arrive_unchanged() {
    for (name, launcher) in LAUNCHERS {
        for odd in ["", " ", "tercet", "--", "tet"] {
            let run = |program: &str, arg0: &str| {
                let mut command = Command::new(program);
                std::os::unix::process::CommandExt::arg0(&mut command, arg0);
                let output = command.arg(odd).output().unwrap();
                (output.status, output.stdout, output.stderr)
            };
            assert_eq!(run(launcher, name), run(env!("CARGO_BIN_EXE_tercet"), name), "{name} {odd:?}");
        }
    }
}

#[test]
fn signals_end_the_program_itself() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
    let mut child = command.args(["tail", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // Launcher and program are one process with one ID.
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_launcher_alone_names_the_missing_program() {
    let dir = beside_the_build();
    for (name, launcher) in LAUNCHERS {
        let copy = dir.path().join(name);
        std::fs::hard_link(launcher, &copy).unwrap();
        let mut command = Command::new(&copy);
        let output = command.arg("--version").env("PATH", dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}");
        let message = String::from_utf8(output.stderr).unwrap();
        let canonical = dir.path().canonicalize().unwrap();
        let expected = format!("the program `tercet` is neither in {} nor in PATH", canonical.display());
        assert!(message.starts_with(&format!("{name}: error: ")) && message.contains(&expected), "{message}");
    }
}

#[test]
fn a_launcher_finds_the_program_in_the_path() {
    let dir = beside_the_build();
    let programs = Path::new(env!("CARGO_BIN_EXE_tercet")).parent().unwrap();
    for (name, launcher) in LAUNCHERS {
        let copy = dir.path().join(name);
        std::fs::hard_link(launcher, &copy).unwrap();
        let output = Command::new(&copy).arg("--version").env("PATH", programs).output().unwrap();
        let version = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
    }
}
