//! Output, errors and exit codes of every verb.

mod compute;
mod contents;
mod demo;
mod errors;
mod flags;
mod flipped_bits;
mod guides;
mod history;
mod info;
mod many;
mod outline;
mod paths;
mod query;
mod repair;
mod shell;
mod streams;
mod support;
mod tgm;
mod unverified_reads;
mod verify;
