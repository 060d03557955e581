//! Arrays into `.tgm` messages and out of them, through the commands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]

mod create;
mod extract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod guide;
mod npy;

use std::path::PathBuf;

use assert_cmd::Command;
use tercet::tgm;

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tgm"));
        command.current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command
    }

    /// Runs `tgm` with these words.
    fn tgm(&self, words: &str) -> Said {
        said(self.command().args(words.split_whitespace()))
    }

    /// Runs `tgm` with these words, which must go well.
    fn ok(&self, words: &str) -> Said {
        let said = self.tgm(words);
        assert_eq!(said.code, 0, "tgm {words}: {}", said.err);
        said
    }

    /// Runs `tgm` with these words, which must fail like this and change nothing.
    fn refused(&self, words: &str, code: i32, message: &str) {
        let state = || {
            self.names()
                .into_iter()
                .filter(|name| self.path(name).is_file())
                .map(|name| (self.read(&name), name))
        };
        let before: Vec<_> = state().collect();
        let said = self.tgm(words);
        assert_eq!(said.code, code, "{words}: {}", said.err);
        assert!(said.err.contains(message), "{words}: {}", said.err);
        assert_eq!(said.out, "", "{words}");
        assert!(state().eq(before), "{words} changed a file");
    }

    fn message(&self, name: &str, number: u64) -> tgm::Message {
        tgm::File::open(self.path(name)).unwrap().message(number).unwrap()
    }

    /// The values of an object, after every hash was compared.
    fn values(&self, name: &str, number: u64, object: u64) -> Vec<u8> {
        self.message(name, number).object(object).unwrap().decode().unwrap().bytes().to_vec()
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
