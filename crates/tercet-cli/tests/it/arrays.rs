//! Arrays into `.tet` files and out of them, through the commands.

mod append;
mod create;
mod extract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod guide;
mod npy;

use std::path::Path;

use tercet::tet;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marks the directories of this suite.
enum Arrays {}

type TestDir = test_dir::TestDir<Arrays>;

impl TestDir {
    fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_tet"))
    }

    /// Runs `tet` with these words.
    fn tet(&self, words: &str) -> CommandOutput {
        self.run(words)
    }

    fn open(&self, name: &str) -> tet::File {
        tet::File::open(self.path(name)).unwrap()
    }
}

/// Whether a file in a directory is the unfinished file of a writer to `target`.
fn is_unfinished(name: &str, target: &str) -> bool {
    tercet::core::publish::is_stale_temp(Path::new(name).as_os_str(), Path::new(target).as_os_str())
}
