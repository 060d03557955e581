//! Arrays into `.tgm` messages and out of them, through the commands.

mod advise;
mod against;
mod create;
mod edit;
mod extract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod guide;
mod index;
#[cfg(unix)]
mod killed;
mod masks;
mod npy;
mod pipeline;
mod ranges;
mod recode;
mod repair;

use tercet::tgm;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marks the directories of this suite.
enum TgmArrays {}

type TestDir = test_dir::TestDir<TgmArrays>;

impl TestDir {
    fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_tgm"))
    }

    /// Runs `tgm` with these words.
    fn tgm(&self, words: &str) -> CommandOutput {
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
        let result = self.tgm(words);
        assert_eq!(result.code, code, "{words}: {}", result.err);
        assert!(result.err.contains(message), "{words}: {}", result.err);
        assert_eq!(result.out, "", "{words}");
        assert!(state().eq(before), "{words} changed a file");
    }

    fn message(&self, name: &str, number: u64) -> tgm::Message {
        tgm::File::open(self.path(name)).unwrap().message(number).unwrap()
    }

    /// The values of an object, after every hash was compared. A build with SZ3 may have chosen that.
    fn values(&self, name: &str, number: u64, object: u64) -> Vec<u8> {
        let trusting = tgm::ReadOptions::new().with_sz3(tgm::Sz3Decoding::InProcess);
        let file = tgm::File::open_with(self.path(name), trusting).unwrap();
        file.message(number).unwrap().object(object).unwrap().decode().unwrap().bytes().to_vec()
    }
}
