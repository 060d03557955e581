//! Arrays into `.tet` files and out of them, through the commands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]

mod append;
mod create;
mod extract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod guide;
mod npy;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tercet::tet;

/// A folder of its own for each test; commands run in it.
struct Folder(tempfile::TempDir);

/// What a command said and did.
struct Said {
    code: i32,
    out: String,
    err: String,
    bytes: Vec<u8>,
}

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
        command.current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("TET_NO_QUERY_HISTORY", "1");
        command
    }

    /// Runs `tet` with these words.
    fn tet(&self, words: &str) -> Said {
        said(self.command().args(words.split_whitespace()))
    }

    /// Runs `tet` with these words, which must go well.
    fn ok(&self, words: &str) -> Said {
        let said = self.tet(words);
        assert_eq!(said.code, 0, "tet {words}: {}", said.err);
        said
    }

    fn open(&self, name: &str) -> tet::File {
        tet::File::open(self.path(name)).unwrap()
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        bytes: output.stdout,
    }
}

/// Whether a file in a folder is the unfinished file of a writer to `target`.
fn is_unfinished(name: &str, target: &str) -> bool {
    tercet::core::publish::is_leftover(Path::new(name).as_os_str(), Path::new(target).as_os_str())
}
