//! [`Server`]: a listener, with timeouts of connections and a graceful end.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep};

use crate::router::router;
use crate::state::State;

/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// The maximum bytes of the head of a request.
const MAX_HEAD: usize = 32 << 10;

/// A server that is bound to an address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    state: State,
}

/// Why a server cannot run.
#[derive(Debug)]
pub enum ServeError {
    /// The address is not one of this machine alone, and there is no token.
    TokenRequired(SocketAddr),
    /// The address cannot be used.
    Bind(SocketAddr, io::Error),
    /// The threads cannot be started.
    Runtime(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenRequired(address) => {
                write!(f, "{address} can be reached from other machines: a token is required")
            }
            Self::Bind(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Runtime(error) => write!(f, "cannot start the server: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TokenRequired(_) => None,
            Self::Bind(_, error) | Self::Runtime(error) => Some(error),
        }
    }
}

impl Server {
    /// Binds the address of the options. Other addresses than those of this machine alone need a token.
    pub fn bind(state: State, address: SocketAddr) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() && state.shared().options.token.is_none() {
            return Err(ServeError::TokenRequired(address));
        }
        let failed = |error| ServeError::Bind(address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, state })
    }

    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready; then accepts no more connections and lets requests end.
    pub fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let options = &self.state.shared().options;
        let blocking = options.max_in_flight.saturating_add(options.max_streams).saturating_add(8);
        // A runtime panics where its threads cannot be started. One more is for requests.
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        tercet::core::threads::can_start(workers + 1).map_err(ServeError::Runtime)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_io()
            .enable_time()
            .thread_name("http")
            .max_blocking_threads(blocking)
            .build()
            .map_err(ServeError::Runtime)?;
        let (state, drain) = (self.state.clone(), options.drain);
        let listener = self.listener;
        runtime.block_on(accept(listener, &state, shutdown)).map_err(ServeError::Runtime)?;
        state.stop();
        runtime.shutdown_timeout(drain.min(Duration::from_secs(2)));
        Ok(())
    }
}

async fn accept(listener: TcpListener, state: &State, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = router(state.clone());
    let connections = Arc::new(Semaphore::new(state.shared().options.max_connections));
    let (drain, draining) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let permit = tokio::select! {
            () = &mut shutdown => break,
            permit = Arc::clone(&connections).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // No more file descriptors, or the client is gone already.
                tracing::warn!(%error, "accept");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, state, draining) = (router.clone(), state.clone(), draining.clone());
        tokio::spawn(async move {
            let _permit = permit;
            state.shared().metrics.connections.fetch_add(1, Ordering::Relaxed);
            connection(stream, router, &state, draining).await;
            state.shared().metrics.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
    drop(listener);
    state.drain();
    drop(draining);
    // No receiver is no connection.
    let _ = drain.send(true);
    if tokio::time::timeout(state.shared().options.drain, drain.closed()).await.is_err() {
        tracing::warn!("requests did not end in time");
    }
    Ok(())
}

async fn connection(stream: TcpStream, router: Router, state: &State, mut draining: watch::Receiver<bool>) {
    // Small responses are sent at once.
    let _ = stream.set_nodelay(true);
    let options = &state.shared().options;
    let io = TokioIo::new(Guarded::new(stream, options.stall_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(io, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // The guard of the watched value is dropped before the next wait.
    let is_draining = async { drop(draining.wait_for(|draining| *draining).await) };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = is_draining => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection");
    }
}

/// A stream that fails if the client does not read for some time.
struct Guarded {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    fn guard<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let patience = self.patience;
        let sleep =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(context, buf);
        this.guard(context, result)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_flush(context);
        this.guard(context, result)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(context, bufs);
        this.guard(context, result)
    }
}
