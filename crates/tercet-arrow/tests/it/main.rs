//! Integration tests, one module per subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "test values are small")]
#![allow(clippy::too_many_lines, reason = "one column of every type")]

mod golden;
mod nested;
mod roundtrip;
mod types;

#[allow(dead_code, reason = "shared with the tests of tercet-tatami")]
#[path = "../../../tercet-tatami/tests/support/pages.rs"]
mod pages;
#[path = "../support/tables.rs"]
mod tables;
