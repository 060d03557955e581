//! A server with a socket: limits of connections, streams, the end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tercet_server::{Options, ServeError, Server, State};

use crate::support::{message, sample};

/// A running server.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn new(path: &Path, options: Options) -> Self {
        let state = State::open(path, options).unwrap();
        let server = Server::bind(state, "127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let signal = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let wait = async move {
                while !signal.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            server.run(wait).unwrap();
        });
        Self { address, stop, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends a request and reads until the server closes the connection.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A connection that was cut has answered all the same.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn other_machines_need_a_token() {
    let directory = sample();
    let state = State::open(directory.path(), Options::new()).unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let bound = Server::bind(state.clone(), address.parse().unwrap());
        assert!(matches!(bound, Err(ServeError::TokenRequired(_))), "{address}");
    }
}

#[test]
fn requests_are_answered_over_a_socket() {
    let directory = sample();
    let running = Running::new(directory.path(), Options::new());
    assert!(running.get("/healthz").ends_with("\r\n\r\nok\n"));
    // Two requests at once, on one connection.
    let two = running.ask("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(two.contains("ok\n") && two.ends_with("ready\n"), "{two}");
    // Without a host, and with a head that is none.
    assert!(running.ask("GET /api/files HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 403"));
    assert!(running.ask("GET\0/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn heads_have_limits() {
    let directory = sample();
    let running = Running::new(directory.path(), Options::new());
    let many = "x: a\r\n".repeat(100);
    assert!(
        running
            .ask(&format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"))
            .starts_with("HTTP/1.1 431")
    );
    let long = "a".repeat(60_000);
    let answer = running.ask(&format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"));
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let answer = running.ask(&format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431") || answer.starts_with("HTTP/1.1 414"),
        "{answer}"
    );
    // The server still answers.
    assert!(running.get("/healthz").ends_with("ok\n"));
}

#[test]
fn slow_clients_are_cut() {
    let directory = sample();
    let file = std::fs::File::create(directory.path().join("big.tgm")).unwrap();
    file.set_len(64 << 20).unwrap();
    let options =
        Options::new().with_connection_timeouts(Duration::from_millis(300), Duration::from_millis(300));
    let running = Running::new(directory.path(), options);
    // A head that does not end.
    let started = Instant::now();
    let mut slow = running.connect();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(started.elapsed() < Duration::from_secs(10));
    // A client that does not read its download: the connection is closed, and its stream is given back.
    let list = running.get("/api/files?match=big");
    let id = list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut lazy = running.connect();
    lazy.write_all(format!("GET /api/files/{id}/raw HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    let started = Instant::now();
    loop {
        let metrics = running.get("/metrics");
        let streams = metrics.lines().find(|line| line.starts_with("tercet_streams ")).unwrap().to_owned();
        if started.elapsed() > Duration::from_millis(200) && streams == "tercet_streams 0" {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(15), "{streams}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut read = 0;
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n @ 1..) = lazy.read(&mut buffer) {
        read += n;
    }
    assert!(read < 64 << 20);
}

#[test]
fn a_growing_file_is_followed_and_the_end_is_graceful() {
    let directory = sample();
    let path = directory.path().join("data/run.tgm");
    let mut running = Running::new(directory.path(), Options::new().with_drain(Duration::from_secs(5)));
    let list = running.get("/api/files?format=tgm");
    let id = list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut stream = running.connect();
    stream
        .write_all(format!("GET /api/tgm/{id}/follow?after=1 HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    let mut seen = String::new();
    let mut read_until = |stream: &mut TcpStream, wanted: &str| {
        let mut buffer = [0; 4096];
        while !seen.contains(wanted) {
            let n = stream.read(&mut buffer).unwrap();
            assert!(n > 0, "{wanted} did not come: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
        seen.clone()
    };
    let first = read_until(&mut stream, "event: state");
    assert!(first.contains("content-type: text/event-stream") && first.contains("\"message\":2"), "{first}");
    assert!(!first.contains("\"message\":1,"), "{first}");
    // A message is appended.
    let (metadata, descriptor, payload) = message(7);
    let options = tercet::tgm::EncodeOptions::new();
    let bytes = tercet::tgm::encode_message(&metadata, &[(&descriptor, &payload[..])], &options).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&bytes).unwrap();
    let more = read_until(&mut stream, "\"step\":7");
    assert!(more.contains("id: 3\n"), "{more}");
    // Connected clients are notified of the end.
    running.stop.store(true, Ordering::SeqCst);
    let started = Instant::now();
    running.stop();
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
    assert!(TcpStream::connect(running.address).is_err());
}

#[cfg(unix)]
#[test]
fn a_followed_file_that_becomes_a_link_is_not_followed_out_of_the_directory() {
    let directory = sample();
    let outside = tempfile::tempdir().unwrap();
    let (path, secret) = (directory.path().join("data/run.tgm"), outside.path().join("secret.tgm"));
    crate::support::messages(&secret, 70..79);
    let running = Running::new(directory.path(), Options::new());
    let list = running.get("/api/files?format=tgm");
    let id = list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut stream = running.connect();
    let request =
        format!("GET /api/tgm/{id}/follow HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("caught_up") {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    let link = directory.path().join("data/.link");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    std::fs::rename(&link, &path).unwrap();
    stream.read_to_string(&mut seen).unwrap();
    assert!(seen.contains("event: error") && !seen.contains("\"step\":7"), "{seen}");
    assert!(!seen.contains(outside.path().to_str().unwrap()), "{seen}");
}

#[test]
fn verification_reports_its_progress() {
    let directory = sample();
    let running = Running::new(directory.path(), Options::new());
    let list = running.get("/api/files?format=tet");
    let id = list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let answer = running.ask(&format!(
        "GET /api/files/{id}/verify?deep=true HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n"
    ));
    assert!(answer.contains("event: progress\ndata: {\"bytes\":0,"), "{answer}");
    assert!(answer.contains("event: report\n") && answer.contains("\"ok\":true"), "{answer}");
}

#[test]
fn only_directories_and_regular_files_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let reason = |path: &Path| State::open(path, Options::new()).err().unwrap().to_string();
    assert!(reason(Path::new("/dev/null")).ends_with("neither a directory nor a regular file"));
    assert!(reason(&directory.path().join("missing")).contains("No such file or directory"));
}
