//! The threads on which requests are made.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};

use tokio::runtime::{Builder, Runtime};

use super::RemoteError;

/// Work that was started.
#[derive(Debug)]
pub(super) struct Started<T>(Receiver<Result<T, RemoteError>>);

impl<T> Started<T> {
    /// Waits for its end. The caller may be on a thread of any other runtime.
    pub(super) fn wait(self) -> Result<T, RemoteError> {
        self.0.recv().unwrap_or_else(|_| Err(library("a request ended without an answer")))
    }
}

/// Starts work on threads that do nothing else.
pub(super) fn start<T: Send + 'static>(
    work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
) -> Result<Started<T>, RemoteError> {
    let (send, receive) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Whoever asked is waiting; if not, nobody wants to know.
        let _ = send.send(work.await);
    });
    Ok(Started(receive))
}

/// Starts work and waits for it.
pub(super) fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
) -> Result<T, RemoteError> {
    start(work)?.wait()
}

/// One for the process: requests to the same server share its connections.
fn runtime() -> Result<&'static Runtime, RemoteError> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let make = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).thread_name("tercet-remote").enable_all().build().ok()
    };
    RUNTIME.get_or_init(make).as_ref().ok_or_else(|| library("threads for requests cannot be started"))
}

pub(super) fn library(detail: &str) -> RemoteError {
    RemoteError::Library { detail: detail.to_owned() }
}
