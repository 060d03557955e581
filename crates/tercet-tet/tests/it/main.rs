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

#[cfg(target_endian = "little")]
mod chunk_visits;
#[cfg(target_endian = "little")]
mod compute;
#[cfg(target_endian = "little")]
mod error_locations;
#[cfg(target_endian = "little")]
mod exact_results;
#[cfg(all(any(unix, windows), target_endian = "little"))]
mod faults;
mod footer_repair;
mod golden;
mod golden_queries;
#[cfg(all(any(unix, windows), target_endian = "little"))]
mod grow;
mod integrity;
#[cfg(target_endian = "little")]
mod missing_values;
#[cfg(target_endian = "little")]
mod partial_reads;
#[cfg(target_endian = "little")]
mod properties;
#[cfg(all(any(unix, windows), target_endian = "little"))]
mod protection;
mod query_properties;
#[cfg(all(any(unix, windows), target_endian = "little"))]
mod repair;
#[cfg(target_endian = "little")]
mod results;
mod rounding;
#[cfg(target_endian = "little")]
mod spec_vectors;
#[cfg(any(unix, windows))]
mod threads;
mod zone_maps;

#[cfg(any(unix, windows))]
#[path = "../../examples/arrays.rs"]
mod example;

#[path = "../support/arrays.rs"]
mod arrays;
#[path = "../support/document.rs"]
mod document;
#[path = "../support/model.rs"]
mod model;
#[allow(dead_code, reason = "shared with the other test binary")]
#[path = "../support/samples.rs"]
mod samples;

/// Verifies a file on disk.
#[cfg(any(unix, windows))]
fn verify_path(
    path: &std::path::Path,
    options: tercet_tet::VerifyOptions,
    progress: &dyn tercet_core::Progress,
) -> Result<tercet_tet::Report, tercet_tet::Error> {
    tercet_tet::verify(std::sync::Arc::new(tercet_core::source::File::open(path).unwrap()), options, progress)
}
