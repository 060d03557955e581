//! The façade and its example, on files of every format.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]

#[path = "../../examples/any_file.rs"]
#[allow(dead_code, reason = "the tests call the function that the program calls")]
mod any_file;
mod files;
mod outline;
mod shape;
mod threads;
