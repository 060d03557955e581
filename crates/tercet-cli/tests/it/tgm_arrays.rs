//! Tests of `tgm` commands: arrays into `.tgm` messages and out of them.

mod advise;
#[cfg(unix)]
mod append_race;
mod compare;
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
mod repack;
mod repair;

use tercet::tgm;

use crate::support::test_dir::{self, CommandOutput, run_command};

/// Marker type of this suite's test directories.
enum TgmArrays {}

type TestDir = test_dir::TestDir<TgmArrays>;

impl TestDir {
    fn new() -> Self {
        Self::for_program(env!("CARGO_BIN_EXE_tgm"))
    }

    /// Runs `tgm` with arguments separated by spaces.
    fn tgm(&self, args: &str) -> CommandOutput {
        self.run(args)
    }

    /// Runs `tgm`, which must fail with this exit code and message and change no file.
    fn refused(&self, args: &str, code: i32, message: &str) {
        let state = || {
            self.names()
                .into_iter()
                .filter(|name| self.path(name).is_file())
                .map(|name| (self.read(&name), name))
        };
        let before: Vec<_> = state().collect();
        let result = self.tgm(args);
        assert_eq!(result.code, code, "{args}: {}", result.err);
        assert!(result.err.contains(message), "{args}: {}", result.err);
        assert_eq!(result.out, "", "{args}");
        assert!(state().eq(before), "{args} changed a file");
    }

    fn message(&self, name: &str, number: u64) -> tgm::Message {
        tgm::File::open(self.path(name)).unwrap().message(number).unwrap()
    }

    /// The values of an object, with hashes verified.
    fn values(&self, name: &str, number: u64, object: u64) -> Vec<u8> {
        let file = tgm::File::open(self.path(name)).unwrap();
        file.message(number).unwrap().object(object).unwrap().decode().unwrap().bytes().to_vec()
    }
}
