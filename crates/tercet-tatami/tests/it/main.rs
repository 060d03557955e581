//! Integration tests, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "test values are small"
)]
#![allow(clippy::float_cmp, reason = "values must be equal to the last bit")]
#![allow(clippy::many_single_char_names, reason = "terms of a query")]

mod access;
mod aggregates;
mod cluster;
#[cfg(any(unix, windows))]
mod collection;
mod damaged;
#[cfg(any(unix, windows))]
mod deletes;
mod encodings;
mod example;
#[cfg(any(unix, windows))]
mod faults;
mod further_columns;
mod golden;
mod hostile;
mod interop;
mod invalid_values;
#[cfg(any(unix, windows))]
mod merges;
mod positions;
mod query_language;
mod remote;
mod roundtrip;
mod salvage;
mod scans;
mod scripts;
mod search;
mod searcher;
mod segments;
mod single_blobs;
mod vectors;
mod writer;

#[path = "../support/columns.rs"]
mod columns;
#[path = "../support/one_page.rs"]
mod one_page;
#[path = "../support/pages.rs"]
mod pages;
