//! An HTTP server and S3 endpoint on the loopback interface, with a record of requests and injected faults.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

mod handler;
mod http;

pub use http::Request;
use http::{read_request, wait_until_closed};

/// An injected fault of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Ignores the range: the whole file with status 200.
    NoRanges,
    /// Announces all bytes, sends half of them and closes the connection.
    Truncated,
    /// Announces fewer bytes than the range has, and sends those.
    Shorter,
    /// Sends bytes without end.
    Endless,
    /// Sends another range than requested, with its `Content-Range`.
    OtherRange,
    /// Sends no response.
    NoResponse,
    /// Sends the headers and half of the body, then nothing.
    Hanging,
    /// Closes the connection without a response.
    Closed,
    /// Responds with this status.
    Status(u16),
    /// Redirects to this URL.
    Redirect(String),
    /// Responds to `HEAD` with status 403, as for URLs presigned for `GET`.
    HeadRefused,
    /// Sends neither an entity tag nor a modification time.
    NoVersion,
    /// Sends weak entity tags.
    WeakTags,
    /// Sends modification times, but no entity tags.
    TimesOnly,
    /// Ignores `If-Match`.
    NoConditions,
}

/// A file of the server.
#[derive(Clone, Debug)]
struct StoredFile {
    bytes: Arc<[u8]>,
    version: u64,
}

/// A multipart upload in progress.
#[derive(Clone, Debug, Default)]
struct Parts {
    path: String,
    parts: BTreeMap<u32, Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, StoredFile>,
    uploads: BTreeMap<String, Parts>,
    versions: u64,
    log: Vec<Request>,
    /// Faults of the next requests.
    next: VecDeque<Option<Fault>>,
    /// Faults of all requests.
    always: Vec<Fault>,
}

/// A server on a free port, until it is dropped. Files are named by their path: `/a.tgm`, `/bucket/key`.
///
/// ```
/// use tercet_testkit::server::Server;
///
/// let server = Server::start();
/// server.put("/a", b"hello");
/// assert_eq!(server.file("/a").unwrap(), b"hello");
/// assert!(server.url("/a").starts_with("http://127.0.0.1:"));
/// ```
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_closing: Arc<AtomicBool>,
}

impl Server {
    /// Starts a server without files.
    ///
    /// # Panics
    ///
    /// If there is no loopback interface.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("loopback: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("loopback: {error}"));
        let state = Arc::new(Mutex::new(State::default()));
        let is_closing = Arc::new(AtomicBool::new(false));
        let (shared, closing) = (Arc::clone(&state), Arc::clone(&is_closing));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if closing.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&connection, &shared));
            }
        });
        Self { address, state, is_closing }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Stores a file, with a new entity tag and modification time.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        lock(&self.state).put(path, bytes);
    }

    /// The bytes of a file.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        lock(&self.state).files.get(path).map(|file| file.bytes.to_vec())
    }

    /// The number of multipart uploads that are neither complete nor aborted.
    pub fn open_uploads(&self) -> usize {
        lock(&self.state).uploads.len()
    }

    /// The requests so far, in the order of their responses.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state).log.clone()
    }

    /// Clears the record of requests.
    pub fn clear_requests(&self) {
        lock(&self.state).log.clear();
    }

    /// Applies a fault to every request from now on.
    pub fn always(&self, fault: Fault) {
        lock(&self.state).always.push(fault);
    }

    /// Applies faults to the next requests, one each; `None` is not a fault.
    pub fn next(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        lock(&self.state).next.extend(faults);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        let mut state = lock(&self.state);
        state.next.clear();
        state.always.clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn put(&mut self, path: &str, bytes: &[u8]) {
        self.versions += 1;
        self.files.insert(path.to_owned(), StoredFile { bytes: bytes.into(), version: self.versions });
    }
}

/// Serves the requests of one connection.
fn serve(connection: &TcpStream, shared: &Mutex<State>) {
    let mut reader = BufReader::new(connection);
    while let Ok(Some((mut request, body))) = read_request(&mut reader) {
        let (response, faults) = {
            let mut state = lock(shared);
            let mut faults = state.always.clone();
            faults.extend(state.next.pop_front().flatten());
            let mut response = state.handle(&request, &body, &faults);
            response.is_head = request.method == "HEAD";
            request.status = response.status;
            request.sent = if response.is_head { 0 } else { response.body.len() as u64 };
            state.log.push(request.clone());
            (response, faults)
        };
        let mut out = connection;
        match response.send(&mut out, &faults) {
            Ok(true) => {}
            Ok(false) => {
                let _ = out.flush();
                if faults.iter().any(|fault| matches!(fault, Fault::NoResponse | Fault::Hanging)) {
                    wait_until_closed(connection);
                }
                return;
            }
            Err(_) => return,
        }
    }
}
