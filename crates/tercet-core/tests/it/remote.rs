//! Files at a server on the loopback interface: which requests are made, and what if the server misbehaves.

use std::time::Duration;

use tercet_core::source::remote::RemoteError;
use tercet_core::source::{Remote, RemoteOptions};
use tercet_core::{SourceError, Span};
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

/// Tries nothing again.
fn once() -> RemoteOptions {
    let mut options = RemoteOptions::default();
    options.retries = 0;
    options
}

/// Gives up soon, for servers that never answer.
fn impatient() -> RemoteOptions {
    let mut options = once();
    options.timeout = Duration::from_millis(200);
    options
}

/// What happened between here and the server.
fn trouble<T: std::fmt::Debug>(result: Result<T, SourceError>) -> RemoteError {
    match result {
        Err(error) => RemoteError::from_source(&error).unwrap().clone(),
        other => panic!("{other:?}"),
    }
}
