//! Runs every `console` block of the guides and compares the output.
#![cfg(unix)]

use std::path::{Path, PathBuf};

use super::support::TestDir;
use crate::support::guide::{commands, matches};

/// A shell session of a guide.
struct Session {
    dir: TestDir,
    working_dir: PathBuf,
    last_code: i32,
}

impl Session {
    fn new() -> Self {
        let dir = TestDir::new();
        let working_dir = dir.path("");
        Self { dir, working_dir, last_code: 0 }
    }

    /// Runs a line as a shell would, both streams joined.
    fn run(&mut self, line: &str) -> String {
        if let Some(dir) = line.strip_prefix("cd ") {
            self.working_dir = self.working_dir.join(dir);
            return String::new();
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_tet")).parent().unwrap();
        let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
        let mut command = self.dir.shell(&format!("exec 2>&1; (exit {}); {line}", self.last_code));
        let output = command.current_dir(&self.working_dir).env("PATH", path).output().unwrap();
        self.last_code = output.status.code().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    let commands = commands(&std::fs::read_to_string(&path).unwrap());
    assert!(commands.len() > 3, "{name} has hardly any commands");
    let mut session = Session::new();
    for (command, expected) in commands {
        let output = session.run(&command);
        let lines: Vec<&str> = output.lines().collect();
        assert!(
            matches(&expected, &lines),
            "{name} shows for `{command}`:\n{}\n\nbut it prints:\n{output}",
            expected.join("\n")
        );
    }
}

#[cfg(feature = "arrow")]
#[test]
fn readme() {
    check("../../README.md");
}

#[test]
fn search() {
    check("search.md");
}

#[test]
fn messages_to_catalog() {
    check("messages-to-catalog.md");
}

#[test]
fn serve() {
    check("serve.md");
}

#[test]
fn netcdf_hdf5() {
    check("netcdf-hdf5.md");
}

#[test]
fn grib() {
    check("grib.md");
}

#[test]
fn zarr() {
    check("zarr.md");
}

#[test]
fn open_and_inspect() {
    check("open-and-inspect.md");
}

#[test]
fn grow_and_edit() {
    check("grow-and-edit.md");
}

#[test]
fn verify_and_repair() {
    check("verify-and-repair.md");
}

#[test]
fn compute() {
    check("compute.md");
}

#[test]
fn query() {
    check("query.md");
}

#[test]
fn tgm() {
    check("tgm.md");
}

#[test]
fn tgm_index() {
    check("tgm-index.md");
}

#[test]
fn tgm_edit_and_repair() {
    check("tgm-edit-and-repair.md");
}

#[test]
fn tatami() {
    check("tatami.md");
}

#[test]
fn tatami_scan() {
    check("tatami-scan.md");
}

#[cfg(feature = "arrow")]
#[test]
fn tatami_convert() {
    check("tatami-convert.md");
}

#[test]
fn tatami_collections() {
    check("tatami-collections.md");
}

#[test]
fn exit_codes() {
    check("exit-codes.md");
}

#[test]
fn dots_match_any_lines() {
    let expected = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&expected("a\n…\nd"), &["a", "b", "c", "d"]));
    assert!(matches(&expected("…"), &[]));
    assert!(!matches(&expected("a\n…\nd"), &["a", "b"]));
    assert!(!matches(&expected("a"), &["a", "b"]));
}
