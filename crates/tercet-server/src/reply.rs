//! [`Reply`]: what a handler returns.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

pub(crate) const JSON: &str = "application/json; charset=utf-8";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const BYTES: &str = "application/octet-stream";
pub(crate) const EVENTS: &str = "text/event-stream";

/// Time between two comments in an event stream, which keep the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pieces of a streamed body that wait for the client.
const PIECES: usize = 8;

/// A response before it is sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    content_type: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: ReplyBody,
}

enum ReplyBody {
    Bytes(Bytes),
    /// Bytes that are made while they are sent, on a thread of their own.
    Stream(Box<dyn FnOnce(&Sink) + Send>),
}

impl std::fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Reply {
    fn new(content_type: &'static str, body: ReplyBody) -> Self {
        Self { status: StatusCode::OK, content_type, headers: Vec::new(), body }
    }

    pub(crate) fn bytes(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self::new(content_type, ReplyBody::Bytes(bytes.into()))
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::bytes(JSON, json(value))
    }

    /// An empty response.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self::bytes(TEXT, Bytes::new()).with_status(status)
    }

    /// A body that `write` makes while it is sent.
    pub(crate) fn stream(content_type: &'static str, write: impl FnOnce(&Sink) + Send + 'static) -> Self {
        Self::new(content_type, ReplyBody::Stream(Box::new(write)))
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header. An invalid header value is skipped.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.body, ReplyBody::Stream(_))
    }

    /// The response. `start` runs the writer of a stream on another thread.
    pub(crate) fn into_response(
        self,
        start: impl FnOnce(Box<dyn FnOnce(&Sink) + Send>, Sink),
    ) -> Response<Body> {
        let mut response = match self.body {
            ReplyBody::Bytes(bytes) => {
                let len = bytes.len();
                let mut response = Response::new(Body::from(bytes));
                response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
                response
            }
            ReplyBody::Stream(write) => {
                let (sender, receiver) = mpsc::channel(PIECES);
                let gone = Arc::new(AtomicBool::new(false));
                start(write, Sink { sender, gone: Arc::clone(&gone) });
                let is_events = self.content_type == EVENTS;
                Response::new(stream_body(receiver, gone, is_events))
            }
        };
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// Signals to the writer of a stream that the client has disconnected.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stream_body(
    receiver: mpsc::Receiver<Result<Bytes, std::io::Error>>,
    gone: Arc<AtomicBool>,
    is_events: bool,
) -> Body {
    let state = (receiver, SetOnDrop(gone));
    Body::from_stream(futures_util::stream::unfold(state, move |(mut receiver, guard)| async move {
        let piece = if is_events {
            match tokio::time::timeout(HEARTBEAT, receiver.recv()).await {
                Ok(piece) => piece,
                Err(_) => Some(Ok(Bytes::from_static(b":\n\n"))),
            }
        } else {
            receiver.recv().await
        };
        piece.map(|piece| (piece, (receiver, guard)))
    }))
}

/// Takes the bytes of a streamed body.
#[derive(Debug)]
pub(crate) struct Sink {
    sender: mpsc::Sender<Result<Bytes, std::io::Error>>,
    gone: Arc<AtomicBool>,
}

/// The client is gone.
#[derive(Debug)]
pub(crate) struct ClientGone;

impl Sink {
    /// Sends bytes; waits while the client does not read.
    pub(crate) fn send(&self, bytes: impl Into<Bytes>) -> Result<(), ClientGone> {
        self.sender.blocking_send(Ok(bytes.into())).map_err(|_| ClientGone)
    }

    /// Ends the body with an error: the connection is closed, so that the client sees that the body is not complete.
    pub(crate) fn abort(&self, message: String) {
        // No one reads it if the client has disconnected.
        let _ = self.sender.blocking_send(Err(std::io::Error::other(message)));
    }

    /// Sends a server-sent event.
    pub(crate) fn event(&self, name: &str, id: Option<u64>, data: &impl Serialize) -> Result<(), ClientGone> {
        let mut text = format!("event: {name}\n");
        if let Some(id) = id {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "id: {id}");
        }
        text.push_str("data: ");
        let mut bytes = text.into_bytes();
        // JSON of one line, with its line break.
        bytes.extend(json(data));
        bytes.push(b'\n');
        self.send(bytes)
    }

    /// Whether the client is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.sender.is_closed()
    }
}

impl std::io::Write for &Sink {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let sent = self.send(Bytes::copy_from_slice(buf));
        sent.map_err(|ClientGone| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A value as one line of JSON that is safe inside of HTML: `<`, `>`, `&`, U+2028 and U+2029 are escaped.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    // Values of this crate have string keys and serialize without errors.
    let plain = serde_json::to_vec(value).unwrap_or_else(|error| {
        serde_json::to_vec(&serde_json::json!({ "error": error.to_string() })).unwrap_or_default()
    });
    let mut out = Vec::with_capacity(plain.len() + 1);
    let mut from = 0;
    let mut at = 0;
    // These characters occur in strings only.
    while at < plain.len() {
        let escape: Option<(&[u8], usize)> = match plain[at] {
            b'<' => Some((b"\\u003c", 1)),
            b'>' => Some((b"\\u003e", 1)),
            b'&' => Some((b"\\u0026", 1)),
            0x7f => Some((b"\\u007f", 1)),
            0xe2 if plain.get(at + 1..at + 3) == Some(&[0x80, 0xa8]) => Some((b"\\u2028", 3)),
            0xe2 if plain.get(at + 1..at + 3) == Some(&[0x80, 0xa9]) => Some((b"\\u2029", 3)),
            _ => None,
        };
        if let Some((escape, len)) = escape {
            out.extend_from_slice(&plain[from..at]);
            out.extend_from_slice(escape);
            at += len;
            from = at;
        } else {
            at += 1;
        }
    }
    out.extend_from_slice(&plain[from..]);
    out.push(b'\n');
    out
}

/// A float as the existing server writes it: the shortest digits, without `.0`, with an exponent below 1e-6 and from 1e21 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortest<F>(pub(crate) F);

macro_rules! shortest {
    ($($float:ty),*) => {$(
        impl Serialize for Shortest<$float> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if !self.0.is_finite() {
                    return serializer.serialize_none();
                }
                let text = if self.0 == 0.0 || (1e-6..1e21).contains(&self.0.abs()) {
                    self.0.to_string()
                } else {
                    let text = format!("{:e}", self.0);
                    if text.contains("e-") { text } else { text.replace('e', "e+") }
                };
                let raw = serde_json::value::RawValue::from_string(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    )*};
}

shortest!(f32, f64);

impl<F> schemars::JsonSchema for Shortest<F> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "null"] })
    }
    fn inline_schema() -> bool {
        true
    }
}

/// Milliseconds with microseconds as fractions.
pub(crate) fn millis(elapsed: Duration) -> Shortest<f64> {
    #[expect(clippy::cast_precision_loss, reason = "durations of requests")]
    Shortest(elapsed.as_micros() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_safe_in_html() {
        let text = String::from_utf8(json(&"<b>&\u{2028}é\u{2029}\u{7f}…")).unwrap();
        assert_eq!(text, "\"\\u003cb\\u003e\\u0026\\u2028é\\u2029\\u007f…\"\n");
        let back: String = serde_json::from_str(&text).unwrap();
        assert_eq!(back, "<b>&\u{2028}é\u{2029}\u{7f}…");
    }

    #[test]
    fn floats_are_written_as_by_the_existing_server() {
        let f32s = [
            (0.0f32, "0"),
            (1.0, "1"),
            (0.006_669_788_6, "0.0066697886"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1e21, "1e+21"),
            (1.5e22, "1.5e+22"),
            (-2.5, "-2.5"),
            (f32::NAN, "null"),
        ];
        for (value, expected) in f32s {
            assert_eq!(serde_json::to_string(&Shortest(value)).unwrap(), expected);
        }
        assert_eq!(serde_json::to_string(&millis(Duration::from_micros(1234))).unwrap(), "1.234");
        assert_eq!(serde_json::to_string(&millis(Duration::ZERO)).unwrap(), "0");
    }
}
