//! A temporary directory per test, in which a command runs.

use std::marker::PhantomData;
use std::path::PathBuf;

use assert_cmd::Command;

/// A directory and the program that runs in it. The marker type `S` lets each suite add its own methods.
pub(crate) struct TestDir<S>(pub(crate) tempfile::TempDir, pub(crate) &'static str, PhantomData<S>);

/// Output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) bytes: Vec<u8>,
}

impl<S> TestDir<S> {
    /// An empty directory for this program.
    pub(crate) fn for_program(program: &'static str) -> Self {
        Self(tempfile::tempdir().unwrap(), program, PhantomData)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.1);
        command.current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("TET_NO_QUERY_HISTORY", "1");
        command
    }

    /// Runs the program with arguments separated by spaces.
    pub(crate) fn run(&self, args: &str) -> CommandOutput {
        run_command(self.command().args(args.split_whitespace()))
    }

    /// Runs the program, which must succeed.
    pub(crate) fn ok(&self, args: &str) -> CommandOutput {
        let result = self.run(args);
        assert_eq!(result.code, 0, "{args}: {}", result.err);
        result
    }
}

pub(crate) fn run_command(command: &mut Command) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        bytes: output.stdout,
    }
}
