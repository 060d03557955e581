//! HTTP requests and responses as bytes.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;

use super::Fault;

/// The largest body of a request.
const MAX_BODY: u64 = 64 << 20;

/// A request and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD`, `PUT`, …
    pub method: String,
    /// The decoded path, without the query.
    pub path: String,
    /// The query, without `?`.
    pub query: String,
    /// The requested range, end exclusive.
    pub range: Option<(u64, u64)>,
    /// All headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The status of the response.
    pub status: u16,
    /// Bytes of the response body.
    pub sent: u64,
    /// Bytes of the request body.
    pub received: u64,
}

impl Request {
    /// The value of a header; the name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a key of the query.
    pub(super) fn query_value(&self, key: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name == key).then_some(value)
        })
    }
}

/// The next request of a connection and its body; `None` at its end.
pub(super) fn read_request(from: &mut impl BufRead) -> io::Result<Option<(Request, Vec<u8>)>> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace();
    let (method, target) = (parts.next().ok_or_else(wrong)?, parts.next().ok_or_else(wrong)?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), decoded(path), query.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, query, range: None, headers, status: 0, sent: 0, received: 0 };
    request.range = request.header("range").and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse::<u64>().ok()? + 1))
    });
    let length = request.header("content-length").map_or(Ok(0), str::parse).map_err(|_| wrong())?;
    if length > MAX_BODY || request.header("transfer-encoding").is_some() {
        return Err(wrong());
    }
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body)?;
    request.received = body.len() as u64;
    Ok(Some((request, body)))
}

/// A percent-decoded path.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An HTTP response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) is_head: bool,
}

impl Response {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), is_head: false }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sends the response, with the faults applied; returns whether the connection stays open.
    pub(super) fn send(&self, out: &mut impl Write, faults: &[Fault]) -> io::Result<bool> {
        let has = |fault: &Fault| faults.contains(fault);
        if has(&Fault::Closed) || has(&Fault::NoResponse) {
            return Ok(false);
        }
        write!(out, "HTTP/1.1 {} Response\r\n", self.status)?;
        for (name, value) in &self.headers {
            write!(out, "{name}: {value}\r\n")?;
        }
        let body = if has(&Fault::Shorter) { &self.body[..self.body.len() / 2] } else { &self.body[..] };
        if has(&Fault::Endless) {
            out.write_all(b"\r\n")?;
            let piece = [0x5a; 1 << 14];
            // Until the client closes the connection.
            while out.write_all(&piece).is_ok() {}
            return Ok(false);
        }
        write!(out, "content-length: {}\r\n\r\n", body.len())?;
        if self.is_head {
            return Ok(true);
        }
        if has(&Fault::Truncated) || has(&Fault::Hanging) {
            out.write_all(&body[..body.len() / 2])?;
            return Ok(false);
        }
        out.write_all(body)?;
        out.flush()?;
        Ok(true)
    }
}

/// Waits until the client closes the connection.
pub(super) fn wait_until_closed(mut connection: &TcpStream) {
    let mut byte = [0; 64];
    while connection.read(&mut byte).is_ok_and(|n| n > 0) {}
}
