//! Fuzz targets as plain functions over bytes.
//!
//! A target takes any bytes and must return: no panic, no hang, no allocation beyond its limits. Two runners use the same
//! table:
//!
//! - `replay` (`src/bin/replay.rs`): the corpus and a few seconds of [`mutate`], part of every test run;
//! - `fuzz_targets/*.rs`: wrappers for libFuzzer, for long runs with a sanitizer.
//!
//! ```
//! tercet_fuzz::run("selection", b"10,6\n2:8,::3");
//! ```
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program for developers: real files, plain output"
)]

pub mod guard;
pub mod mutate;
pub mod targets;

pub use targets::{TARGETS, Target};

/// Counts what a target allocates.
#[global_allocator]
static ALLOCATOR: tercet_testkit::alloc::CountingAlloc = tercet_testkit::alloc::CountingAlloc;

/// Runs one target by name, for the libFuzzer wrappers.
///
/// # Panics
///
/// If no target has this name, and if the target finds a fault.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("the name of a fuzz target");
    (target.run)(input);
}
