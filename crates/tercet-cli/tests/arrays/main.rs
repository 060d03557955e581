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
#[path = "../support/folder.rs"]
mod folder;
#[cfg(unix)]
mod guide;
mod npy;
#[cfg(unix)]
#[path = "../support/guide.rs"]
mod shown;

use std::path::Path;

use tercet::tet;

use folder::{Folder, Said, said};

impl Folder {
    fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_tet"))
    }

    /// Runs `tet` with these words.
    fn tet(&self, words: &str) -> Said {
        self.run(words)
    }

    fn open(&self, name: &str) -> tet::File {
        tet::File::open(self.path(name)).unwrap()
    }
}

/// Whether a file in a folder is the unfinished file of a writer to `target`.
fn is_unfinished(name: &str, target: &str) -> bool {
    tercet::core::publish::is_stale_temp(Path::new(name).as_os_str(), Path::new(target).as_os_str())
}
