//! Async API: files on tokio's blocking pool, streams over `AsyncRead` and `AsyncWrite`.
//!
//! The parser and the encoder are those of the blocking API. This module moves bytes to and from them and runs them on
//! the blocking pool when they hash or encode more than [`WORTH_A_THREAD`] bytes.

mod decoder;
mod encoder;
mod file;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tercet_core::progress::Cancelled;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

pub use decoder::AsyncDecoder;
pub use encoder::AsyncStreamingEncoder;

/// The input size from which hashing or encoding runs on another thread, which costs about 10 µs.
const WORTH_A_THREAD: usize = 128 << 10;

/// Runs work on the blocking pool. A panic is propagated; if the runtime shuts down first, the work is cancelled.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cancelled> {
    joined(spawn_blocking(work).await)
}

fn joined<T>(done: Result<T, JoinError>) -> Result<T, Cancelled> {
    done.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Cancelled,
    })
}

/// A value that is either idle or in use by a task on the blocking pool.
///
/// A caller may stop waiting for the task: the next caller that waits gets its result.
#[derive(Debug)]
enum Worker<T, A> {
    Idle(T),
    Busy(JoinHandle<(T, A)>),
    /// The runtime shut down during the task.
    Lost,
}

impl<T: Send + 'static, A: Send + 'static> Worker<T, A> {
    /// The value, if it is idle.
    fn idle(&mut self) -> Result<&mut T, Cancelled> {
        match self {
            Self::Idle(tool) => Ok(tool),
            Self::Busy(_) | Self::Lost => Err(Cancelled),
        }
    }

    /// Starts a task. The value must be idle.
    fn send(&mut self, work: impl FnOnce(&mut T) -> A + Send + 'static) -> Result<(), Cancelled> {
        match std::mem::replace(self, Self::Lost) {
            Self::Idle(mut tool) => {
                *self = Self::Busy(spawn_blocking(move || {
                    let made = work(&mut tool);
                    (tool, made)
                }));
                Ok(())
            }
            other => {
                *self = other;
                Err(Cancelled)
            }
        }
    }

    /// Waits for the task and returns its result; `None` if there is none.
    async fn result(&mut self) -> Result<Option<A>, Cancelled> {
        TaskResult(self).await
    }
}

/// Waits for the task without owning it: dropping this future loses nothing.
struct TaskResult<'a, T, A>(&'a mut Worker<T, A>);

impl<T, A> Future for TaskResult<'_, T, A> {
    type Output = Result<Option<A>, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let tool = &mut *self.0;
        match tool {
            Worker::Idle(_) => Poll::Ready(Ok(None)),
            Worker::Lost => Poll::Ready(Err(Cancelled)),
            Worker::Busy(handle) => {
                let done = ready!(Pin::new(handle).poll(context));
                *tool = Worker::Lost;
                let (back, made) = joined(done)?;
                *tool = Worker::Idle(back);
                Poll::Ready(Ok(Some(made)))
            }
        }
    }
}
