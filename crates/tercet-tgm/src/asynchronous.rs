//! The same for async runtimes: files on tokio's blocking pool, streams over `AsyncRead` and `AsyncWrite`.
//!
//! There is one parser and one encoder. What is here moves bytes to and from them, and moves them to the blocking
//! pool while they hash or code more than a little.

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

/// Bytes whose hashing or coding is worth the way to another thread: some ten microseconds.
const WORTH_A_THREAD: usize = 128 << 10;

/// Does work on the blocking pool. A panic there goes on here; a runtime that ends before the work starts cancels it.
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

/// A tool that is either here or at work on the blocking pool.
///
/// A caller that waits for it may give up waiting: the tool comes back with what it made to a caller that waits next.
#[derive(Debug)]
enum Worker<T, A> {
    Idle(T),
    Busy(JoinHandle<(T, A)>),
    /// The runtime ended while it was away.
    Lost,
}

impl<T: Send + 'static, A: Send + 'static> Worker<T, A> {
    /// The tool, if it is here.
    fn here(&mut self) -> Result<&mut T, Cancelled> {
        match self {
            Self::Idle(tool) => Ok(tool),
            Self::Busy(_) | Self::Lost => Err(Cancelled),
        }
    }

    /// Sends it to work. It must be here.
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

    /// What it made, once it is back; `None` if it was not away.
    async fn back(&mut self) -> Result<Option<A>, Cancelled> {
        Back(self).await
    }
}

/// Waits for a tool without taking it: dropping this loses nothing.
struct Back<'a, T, A>(&'a mut Worker<T, A>);

impl<T, A> Future for Back<'_, T, A> {
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
