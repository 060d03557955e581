//! The commands, run as a user runs them: output, files and exit codes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests create and inspect real files")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test values are small"
)]

mod arrays;
mod cli;
#[cfg(unix)]
mod launchers;
#[cfg(unix)]
mod process;
#[cfg(feature = "remote")]
mod remote;
mod support;
mod sz3;
mod tatami;
mod tgm_arrays;
mod tgm_tail;
