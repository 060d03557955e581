//! Integration tests, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]

mod afar;
#[cfg(feature = "async")]
mod asynchronous;
mod catalogue;
mod edit;
#[cfg(any(unix, windows))]
mod faults;
mod follow;
mod golden;
mod pipeline;
mod salvage;
mod streams;
mod vectors;

#[path = "../support/descriptors.rs"]
mod descriptors;
#[path = "../support/samples.rs"]
mod samples;
