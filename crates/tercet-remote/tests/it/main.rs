//! Integration tests against an HTTP server on the loopback interface: requests, faults, object stores, uploads.
#![cfg(any(unix, windows))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use tercet_core::{SourceError, Span};
use tercet_remote::{Remote, RemoteError, RemoteOptions};
use tercet_testkit::server::Server;

mod faults;
mod requests;
mod stores;
mod uploads;

const KIB: u64 = 1 << 10;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0]).collect()
}

fn span(start: u64, len: u64) -> Span {
    Span::at(start, len).unwrap()
}

/// A server with `/a.tgm` of this length.
fn server(len: usize) -> (Server, Vec<u8>) {
    let (server, bytes) = (Server::start(), content(len));
    server.put("/a.tgm", &bytes);
    (server, bytes)
}

fn open(server: &Server) -> Remote {
    Remote::open(&server.url("/a.tgm"), &RemoteOptions::default()).unwrap()
}

/// Options without retries.
fn no_retries() -> RemoteOptions {
    let mut options = RemoteOptions::default();
    options.retries = 0;
    options
}

/// Options with a short timeout, for servers that never respond.
fn short_timeout() -> RemoteOptions {
    let mut options = no_retries();
    options.timeout = Duration::from_millis(200);
    options
}

/// The remote error of a failed call.
fn remote_error<T: std::fmt::Debug>(result: Result<T, SourceError>) -> RemoteError {
    match result {
        Err(error) => RemoteError::from_source(&error).unwrap().clone(),
        other => panic!("{other:?}"),
    }
}
