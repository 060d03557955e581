//! Integration tests, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is intended")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]

#[cfg(feature = "async")]
mod asynchronous;
#[cfg(any(unix, windows))]
mod disk_faults;
#[cfg(any(unix, windows))]
mod document;
mod edit;
#[cfg(any(unix, windows))]
mod examples;
mod follow;
mod golden;
mod index;
mod outline;
mod pipeline;
mod remote;
mod salvage;
mod streams;
mod vectors;

#[path = "../support/descriptors.rs"]
mod descriptors;
#[path = "../support/samples.rs"]
mod samples;
