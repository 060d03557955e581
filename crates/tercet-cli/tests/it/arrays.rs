//! Tests of `tet` commands: arrays into `.tet` files and out of them.

mod append;
mod create;
mod extract;
#[cfg(unix)]
mod faults;
mod grow;
#[cfg(unix)]
mod guide;
mod npy;
mod plot;
mod smaller;

use std::path::Path;

use tercet::tet;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marker type of this suite's test directories.
enum Arrays {}

type TestDir = test_dir::TestDir<Arrays>;

impl TestDir {
    fn new() -> Self {
        Self::for_program(env!("CARGO_BIN_EXE_tet"))
    }

    /// Runs `tet` with arguments separated by spaces.
    fn tet(&self, args: &str) -> CommandOutput {
        self.run(args)
    }

    fn open(&self, name: &str) -> tet::File {
        tet::File::open(self.path(name)).unwrap()
    }
}

/// Whether a file is the temporary file of a writer to `target`.
fn is_unfinished(name: &str, target: &str) -> bool {
    tercet::core::publish::is_stale_temp(Path::new(name).as_os_str(), Path::new(target).as_os_str())
}
