//! Integration tests, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]
#![allow(clippy::float_cmp, reason = "values must be equal to the last bit")]
#![allow(clippy::manual_is_multiple_of, reason = "the plain model states the rule")]

#[cfg(all(any(unix, windows), target_endian = "little"))]
mod faults;
mod footers;
mod golden;
#[cfg(target_endian = "little")]
mod lazy;
#[cfg(all(any(unix, windows), target_endian = "little"))]
mod mending;
mod proofs;
#[cfg(target_endian = "little")]
mod properties;
mod queries;
mod query_properties;
#[cfg(target_endian = "little")]
mod sites;
#[cfg(target_endian = "little")]
mod vectors;
mod zones;

#[path = "../support/arrays.rs"]
mod arrays;
#[path = "../support/document.rs"]
mod document;
#[path = "../support/model.rs"]
mod model;
#[allow(dead_code, reason = "shared with the other test binary")]
#[path = "../support/samples.rs"]
mod samples;
