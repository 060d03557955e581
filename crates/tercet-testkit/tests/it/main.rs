//! Integration tests, one module per subject.
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]

mod disks;
