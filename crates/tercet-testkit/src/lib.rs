//! Test utilities: faulty disks, power cuts, damaged bytes, counted memory, an HTTP server.
//!
//! For tests only: everything panics on misuse; not released.
//!
//! | module | checks |
//! |---|---|
//! | [`faults`] | is the file old or new, whichever operation fails? |
//! | [`powercut`] | is the file old or new, whenever the power is cut? |
//! | [`damage`] | does every truncation and every flipped byte give an error or a value? |
//! | [`alloc`] | how much memory does the code allocate? |
//! | [`counting`] | which bytes does the code read? |
//! | [`pool_size`] | which number of threads does a read use? |
//! | [`server`] | which requests does the code make, and how does it handle faults? |
//! | [`source_conformance`] | does a source conform to `ByteSource`? |
//! | [`floats`] | what is the nearest float? |
//! | [`cases`](cases()) | how many cases does a property test draw? |
//! | [`leaves_partition`] | does an outline cover every byte once? |
//! | [`golden`](golden()) | where are the golden files? |
//!
//! ```
//! use std::io::Write;
//! use tercet_core::publish::AtomicFile;
//! use tercet_testkit::{faults, old_or_new};
//!
//! faults::for_each_fault(
//!     |directory| std::fs::write(directory.join("a"), "old").unwrap(),
//!     |disk, directory| {
//!         let mut out = AtomicFile::create_on(disk, &directory.join("a"))?;
//!         out.write_all(b"new")?;
//!         out.publish()?;
//!         Ok::<_, Box<dyn std::error::Error>>(())
//!     },
//!     |trial| {
//!         let found = std::fs::read(trial.directory.join("a")).ok();
//!         let is_new = old_or_new(found.as_deref(), Some(b"old"), b"new");
//!         assert!(is_new || trial.result.is_err());
//!     },
//! );
//! ```

pub mod alloc;
mod conformance;
pub mod counting;
pub mod damage;
pub mod faults;
pub mod floats;
mod golden;
mod outline;
pub mod pool_size;
pub mod powercut;
pub mod server;

pub use conformance::source_conformance;
pub use golden::golden;
pub use outline::leaves_partition;

use std::{env, thread};

/// The number of cases of a property test: `usual`, times `TERCET_PROPERTY_FACTOR` in long runs.
///
/// # Panics
///
/// When the variable is set and is not a number.
pub fn cases(usual: u32) -> u32 {
    let factor = env::var("TERCET_PROPERTY_FACTOR");
    usual * factor.map_or(1, |factor| factor.parse().expect("TERCET_PROPERTY_FACTOR is a number"))
}

/// Asserts that a file holds its old or its new bytes; returns whether they are the new ones.
///
/// `None` is a missing file.
///
/// # Panics
///
/// When the bytes are neither.
pub fn old_or_new(found: Option<&[u8]>, old: Option<&[u8]>, new: &[u8]) -> bool {
    let is_new = found == Some(new);
    assert!(
        is_new || found == old,
        "neither old ({:?} bytes) nor new ({} bytes): {:?} bytes",
        old.map(<[u8]>::len),
        new.len(),
        found.map(<[u8]>::len),
    );
    is_new
}

/// Prints the current trial when a check panics.
struct TrialContext(String);

impl Drop for TrialContext {
    #[expect(clippy::print_stderr, reason = "the captured output of a failing test")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("while trying: {}", self.0);
        }
    }
}
