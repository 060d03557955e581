//! The server, without a socket and with one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and change real files")]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "test values are small")]

mod api;
mod files;
mod hostile;
mod network;
mod support;
mod transcripts;
