//! Arrays into `.tgm` messages and out of them, through the commands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]

mod advise;
mod against;
mod create;
mod edit;
mod extract;
#[cfg(unix)]
mod faults;
#[path = "../support/folder.rs"]
mod folder;
#[cfg(unix)]
mod guide;
mod index;
#[cfg(unix)]
mod killed;
#[cfg(unix)]
#[path = "../support/killed.rs"]
mod killing;
mod masks;
mod npy;
mod pipeline;
mod ranges;
mod recode;
mod repair;
#[cfg(unix)]
#[path = "../support/guide.rs"]
mod shown;

use tercet::tgm;

use folder::{Folder, Said, said};

impl Folder {
    fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_tgm"))
    }

    /// Runs `tgm` with these words.
    fn tgm(&self, words: &str) -> Said {
        self.run(words)
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
