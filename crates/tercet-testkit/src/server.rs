//! A web server and object store on the loopback interface that counts, and misbehaves on demand.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

mod answer;
mod wire;

pub use wire::Request;
use wire::{read_request, wait_until_closed};

/// A way to misbehave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sends the whole file with status 200 whatever the range.
    NoRanges,
    /// Announces all bytes, sends half of them and closes the connection.
    Truncated,
    /// Announces fewer bytes than the range has, and sends those.
    Shorter,
    /// Sends bytes for ever.
    Endless,
    /// Sends other bytes than asked for, and says so.
    OtherRange,
    /// Says nothing at all.
    NoProgress,
    /// Says what it will send, sends half of it, and then nothing.
    Hanging,
    /// Closes the connection instead of an answer.
    Closed,
    /// Answers with this status.
    Status(u16),
    /// Points to another address.
    Redirect(String),
    /// Answers `HEAD` with status 403, as for addresses that are signed for `GET`.
    HeadRefused,
    /// Says neither what nor when: no tag, no time.
    NoVersion,
    /// Gives tags that are weak.
    WeakTags,
    /// Gives times, but no tags.
    TimesOnly,
    /// Ignores `If-Match`.
    NoConditions,
}

/// A file of the server.
#[derive(Clone, Debug)]
struct Stored {
    bytes: Arc<[u8]>,
    version: u64,
}

/// Parts of an object that is not complete.
#[derive(Clone, Debug, Default)]
struct Parts {
    path: String,
    parts: BTreeMap<u32, Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, Parts>,
    versions: u64,
    log: Vec<Request>,
    /// Faults of the next requests.
    next: VecDeque<Option<Fault>>,
    /// Faults of all requests.
    always: Vec<Fault>,
}

/// A server on a free port, for as long as it is not dropped. Files are called by their path: `/a.tgm`, `/bucket/key`.
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
    /// When there is no loopback interface.
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

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Puts a file there, in the place of one that may be there. Each has a tag and a time of its own.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        lock(&self.state).put(path, bytes);
    }

    /// The bytes of a file.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        lock(&self.state).files.get(path).map(|file| file.bytes.to_vec())
    }

    /// Uploads in parts that are neither complete nor taken back.
    pub fn open_uploads(&self) -> usize {
        lock(&self.state).uploads.len()
    }

    /// The requests so far, in the order of their answers.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state).log.clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        lock(&self.state).log.clear();
    }

    /// Misbehaves from now on, at every request.
    pub fn always(&self, fault: Fault) {
        lock(&self.state).always.push(fault);
    }

    /// Misbehaves at the next requests, one fault for each; `None` behaves.
    pub fn next(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        lock(&self.state).next.extend(faults);
    }

    /// Behaves from now on.
    pub fn behave(&self) {
        let mut state = lock(&self.state);
        state.next.clear();
        state.always.clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn put(&mut self, path: &str, bytes: &[u8]) {
        self.versions += 1;
        self.files.insert(path.to_owned(), Stored { bytes: bytes.into(), version: self.versions });
    }
}

/// Answers the requests of one connection.
fn serve(connection: &TcpStream, shared: &Mutex<State>) {
    let mut reader = BufReader::new(connection);
    while let Ok(Some((mut request, body))) = read_request(&mut reader) {
        let (answer, faults) = {
            let mut state = lock(shared);
            let mut faults = state.always.clone();
            faults.extend(state.next.pop_front().flatten());
            let mut answer = state.answer(&request, &body, &faults);
            answer.is_head = request.method == "HEAD";
            request.status = answer.status;
            request.sent = if answer.is_head { 0 } else { answer.body.len() as u64 };
            state.log.push(request.clone());
            (answer, faults)
        };
        let mut out = connection;
        match answer.send(&mut out, &faults) {
            Ok(true) => {}
            Ok(false) => {
                let _ = out.flush();
                if faults.iter().any(|fault| matches!(fault, Fault::NoProgress | Fault::Hanging)) {
                    wait_until_closed(connection);
                }
                return;
            }
            Err(_) => return,
        }
    }
}
