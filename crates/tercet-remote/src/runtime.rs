//! The threads that make requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use crate::RemoteError;

/// Threads that make requests, each with its own single-threaded runtime. A multi-threaded runtime would panic where a
/// thread cannot be started.
const THREADS: usize = 2;

/// A task that was started.
#[derive(Debug)]
pub(crate) struct Pending<T>(Receiver<Result<T, RemoteError>>);

impl<T> Pending<T> {
    /// Waits for the result. The caller may be on a thread of another runtime.
    pub(crate) fn wait(self) -> Result<T, RemoteError> {
        self.0.recv().unwrap_or_else(|_| Err(internal("a request ended without a result")))
    }
}

/// Starts a task.
pub(crate) fn start<T: Send + 'static>(
    work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
) -> Result<Pending<T>, RemoteError> {
    let (send, receive) = mpsc::sync_channel(1);
    spawn(async move {
        // Fails if the caller does not wait any more.
        let _ = send.send(work.await);
    })?;
    Ok(Pending(receive))
}

/// Starts a task and waits for the result.
pub(crate) fn block_on<T: Send + 'static>(
    work: impl Future<Output = Result<T, RemoteError>> + Send + 'static,
) -> Result<T, RemoteError> {
    start(work)?.wait()
}

/// Starts a task on the next thread, for a task that awaits it.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<JoinHandle<T>, RemoteError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let workers = workers()?;
    let next = NEXT.fetch_add(1, Ordering::Relaxed) % workers.len();
    Ok(workers[next].spawn(work))
}

/// The runtimes, started at the first request. A failure is not remembered: the next request tries again.
fn workers() -> Result<&'static [Handle], RemoteError> {
    static WORKERS: OnceLock<Vec<Handle>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(workers) = WORKERS.get() {
        return Ok(workers);
    }
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(workers) = WORKERS.get() {
        return Ok(workers);
    }
    let mut workers = vec![start_worker()?];
    // One thread is enough to make requests.
    workers.extend((1..THREADS).filter_map(|_| start_worker().ok()));
    Ok(WORKERS.get_or_init(|| workers))
}

fn start_worker() -> Result<Handle, RemoteError> {
    let failed = |error: std::io::Error| internal(&format!("cannot start a thread for requests: {error}"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("tercet-remote".to_owned()).spawn(run).map_err(failed)?;
    Ok(handle)
}

pub(crate) fn internal(detail: &str) -> RemoteError {
    RemoteError::Library { detail: detail.to_owned() }
}
