//! The HTTP client of every request: checks of the response, timeouts, retries.
//!
//! A response is exactly what was requested, or an error: the byte range is compared with the request, the body has
//! the announced length and never more, redirects stay on the same server, and every request has a deadline.
//! Transient errors are retried. The object store library on top, which signs requests, never sees a partial
//! response.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, LOCATION, RANGE,
    TRANSFER_ENCODING,
};
use http::{Method, StatusCode, Version};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient as StoreClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use crate::error::root_cause;
use crate::runtime::internal;
use crate::url::origin;
use crate::{RemoteError, RemoteOptions};

/// The largest number of redirects, all of them on the same server.
const MAX_REDIRECTS: usize = 5;
/// The largest body of a response that is not a file: listings, tokens, errors.
const MAX_CONTROL_BYTES: u64 = 1 << 20;
/// The minimum transfer rate in bytes per second, after the timeout of a small request.
const MIN_RATE: u64 = 64 << 10;
/// The delay before the first retry; it doubles with each retry.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(3);
/// The metadata servers of the clouds, which provide credentials. They exist inside the cloud only.
const METADATA_HOSTS: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "metadata"];

/// Sends requests and checks responses.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    timeout: Duration,
    retries: u32,
    retry_time: Duration,
    /// The largest file that is accepted as a whole where a server ignores the range; `None` accepts none.
    max_whole_bytes: Option<u64>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The inner client may print headers.
        f.debug_struct("HttpClient").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// `is_loopback`: the server is on this machine, so no proxy is used.
    pub(crate) fn new(
        options: &RemoteOptions,
        is_loopback: bool,
        max_whole_bytes: Option<u64>,
    ) -> Result<Self, RemoteError> {
        Ok(Self {
            client: crate::connection_pool::client(options.connect_timeout, is_loopback)?,
            timeout: options.timeout,
            retries: options.retries,
            retry_time: options.retry_time,
            max_whole_bytes,
        })
    }

    /// Sends a request and retries transient errors.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, RemoteError> {
        let is_metadata = request.uri().host().is_some_and(|host| METADATA_HOSTS.contains(&host));
        let retries = if is_metadata { 0 } else { self.retries };
        let last_start = Instant::now() + self.retry_time;
        let mut delay = FIRST_DELAY;
        for attempt in 0.. {
            match self.send_once(request.clone(), is_metadata).await {
                Err(error)
                    if error.is_transient() && attempt < retries && Instant::now() + delay < last_start =>
                {
                    sleep(delay).await;
                    delay = (delay * 2).min(MAX_DELAY);
                }
                result => return result,
            }
        }
        Err(internal("a request was never sent"))
    }

    async fn send_once(
        &self,
        mut request: HttpRequest,
        is_metadata: bool,
    ) -> Result<HttpResponse, RemoteError> {
        let expected = ExpectedBody::from_request(&request);
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let url = request.uri().to_string();
        let timeout = if is_metadata { self.timeout.min(Duration::from_secs(2)) } else { self.timeout };
        let deadline = Deadline { start: Instant::now(), timeout };
        let sent = request.body().content_length() as u64;
        let response = timeout_at(deadline.after(sent), HttpService::call(&self.client, request)).await;
        let response =
            response.map_err(|_| deadline.timed_out())?.map_err(|error| transport_error(&error))?;
        let (parts, body) = response.into_parts();
        let status = parts.status;
        let body = body.bytes_stream();
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(redirect_error(&parts.headers, &url, status));
        }
        if !status.is_success() {
            if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
                return Err(RemoteError::from_status(status.as_u16()));
            }
            // The store library understands these and does not print the body. It could print the body of all others.
            let is_known = is_metadata || matches!(status.as_u16(), 304 | 401 | 403 | 404 | 409 | 412);
            if !is_known {
                return Err(RemoteError::from_status(status.as_u16()));
            }
            let body = collect(body, BodyLen::AtMost(MAX_CONTROL_BYTES), deadline).await.unwrap_or_default();
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        let body = match expected {
            ExpectedBody::None => Bytes::new(),
            ExpectedBody::Control => collect(body, BodyLen::AtMost(MAX_CONTROL_BYTES), deadline).await?,
            ExpectedBody::Range { first, end } if status == StatusCode::PARTIAL_CONTENT => {
                let found = ContentRange::from_headers(&parts.headers)?;
                if found.first != first || found.end != end.min(found.total) {
                    return Err(found.mismatch());
                }
                collect(body, BodyLen::Exactly(found.end - found.first), deadline).await?
            }
            ExpectedBody::Range { .. } => {
                let limit = self.max_whole_bytes.ok_or(RemoteError::NoRanges { limit: 0 })?;
                check_whole_length(&parts, limit)?;
                match collect(body, BodyLen::AtMost(limit), deadline).await {
                    Err(RemoteError::Long { .. }) => return Err(RemoteError::NoRanges { limit }),
                    body => body?,
                }
            }
        };
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
    }
}

/// The body that a request expects.
#[derive(Clone, Copy, Debug)]
enum ExpectedBody {
    None,
    Range {
        first: u64,
        end: u64,
    },
    /// A listing, a token, a confirmation.
    Control,
}

impl ExpectedBody {
    fn from_request(request: &HttpRequest) -> Self {
        if request.method() == Method::HEAD {
            return Self::None;
        }
        let range =
            request.headers().get(RANGE).and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
        let numbers = range.and_then(|range| {
            let (first, last) = range.split_once('-')?;
            Some((first.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?))
        });
        match numbers {
            Some((first, end)) => Self::Range { first, end },
            None => Self::Control,
        }
    }
}

/// The byte range of a response: its header `Content-Range`.
#[derive(Debug)]
pub(crate) struct ContentRange {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) total: u64,
    header: String,
}

impl ContentRange {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, RemoteError> {
        let header = headers.get(CONTENT_RANGE).map_or("none", |value| value.to_str().unwrap_or("not text"));
        let header: String = header.chars().take(80).collect();
        let numbers = || {
            let (range, total) = header.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let (first, end, total): (u64, u64, u64) =
                (first.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?, total.parse().ok()?);
            (first < end && end <= total).then_some((first, end, total))
        };
        match numbers() {
            Some((first, end, total)) => Ok(Self { first, end, total, header }),
            None => Err(RemoteError::WrongRange { content_range: header }),
        }
    }

    fn mismatch(self) -> RemoteError {
        RemoteError::WrongRange { content_range: self.header }
    }
}

/// Refuses a whole file that is too long, and one whose end looks like a broken connection.
fn check_whole_length(parts: &http::response::Parts, limit: u64) -> Result<(), RemoteError> {
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let is_framed = parts.version >= Version::HTTP_2 || parts.headers.contains_key(TRANSFER_ENCODING);
    match length {
        Some(length) if length > limit => Err(RemoteError::NoRanges { limit }),
        None if !is_framed => Err(RemoteError::NoLength),
        _ => Ok(()),
    }
}

/// The deadline of a request: a timeout, extended by the bytes transferred.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    fn after(self, bytes: u64) -> Instant {
        self.start + self.timeout + Duration::from_secs(bytes / MIN_RATE)
    }

    fn timed_out(self) -> RemoteError {
        RemoteError::TimedOut { seconds: self.timeout.as_secs() }
    }
}

#[derive(Clone, Copy, Debug)]
enum BodyLen {
    Exactly(u64),
    AtMost(u64),
}

/// Collects a body, never more than expected.
async fn collect(
    mut body: impl Stream<Item = Result<Bytes, HttpError>> + Unpin,
    len: BodyLen,
    deadline: Deadline,
) -> Result<Bytes, RemoteError> {
    let (BodyLen::Exactly(max) | BodyLen::AtMost(max)) = len;
    let mut taken: Vec<u8> = Vec::new();
    if let BodyLen::Exactly(exact) = len {
        let room = usize::try_from(exact).ok().and_then(|exact| taken.try_reserve_exact(exact).ok());
        room.ok_or_else(|| internal(&format!("out of memory ({exact} bytes)")))?;
    }
    loop {
        let found = taken.len() as u64;
        let next = timeout_at(deadline.after(found), body.next()).await.map_err(|_| deadline.timed_out())?;
        match next {
            Some(Ok(piece)) if found + piece.len() as u64 > max => {
                return Err(RemoteError::Long { expected: max });
            }
            Some(Ok(piece)) => taken.extend_from_slice(&piece),
            Some(Err(error)) => return Err(RemoteError::Interrupted { detail: root_cause(&error) }),
            None => break,
        }
    }
    match len {
        BodyLen::Exactly(expected) if taken.len() as u64 != expected => {
            Err(RemoteError::Short { found: taken.len() as u64, expected })
        }
        _ => Ok(taken.into()),
    }
}

fn transport_error(error: &HttpError) -> RemoteError {
    let detail = root_cause(error);
    match error.kind() {
        HttpErrorKind::Connect => RemoteError::Unreachable { detail },
        // Everything else happens on an open connection: closed, reset, or no valid HTTP.
        _ => RemoteError::Interrupted { detail },
    }
}

/// The error of a redirect that was not followed.
fn redirect_error(headers: &HeaderMap, from: &str, status: StatusCode) -> RemoteError {
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
    let from = Url::parse(from).ok();
    match (to, from) {
        (Some(to), Some(from)) => match from.join(to) {
            Ok(to) if is_same_origin(&from, &to) => RemoteError::TooManyRedirects { max: MAX_REDIRECTS },
            Ok(to) => RemoteError::Redirected { host: origin(&to) },
            Err(_) => RemoteError::Status { status: status.as_u16() },
        },
        _ => RemoteError::Status { status: status.as_u16() },
    }
}

/// Whether two URLs have the same scheme, host and port.
fn is_same_origin(from: &Url, to: &Url) -> bool {
    from.scheme() == to.scheme()
        && from.host_str() == to.host_str()
        && from.port_or_known_default() == to.port_or_known_default()
}

/// Follows redirects on the same server, up to [`MAX_REDIRECTS`].
pub(crate) fn redirect_policy() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let previous = attempt.previous();
        let same_origin = previous.last().is_some_and(|from| is_same_origin(from, attempt.url()));
        if same_origin && previous.len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

#[async_trait::async_trait]
impl HttpService for HttpClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // The store library does not retry this kind.
        self.send(request).await.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
    }
}

/// Makes the object store library use this client.
impl HttpConnector for HttpClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<StoreClient> {
        Ok(StoreClient::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_range_is_parsed_or_refused() {
        let parse = |header: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, HeaderValue::from_static(header));
            ContentRange::from_headers(&headers).map(|found| (found.first, found.end, found.total)).ok()
        };
        assert_eq!(parse("bytes 0-9/10"), Some((0, 10, 10)));
        assert_eq!(parse("bytes 5-5/10"), Some((5, 6, 10)));
        for header in [
            "bytes 0-9/*",
            "bytes */10",
            "bytes 9-0/10",
            "bytes 0-10/10",
            "0-9/10",
            "bytes -1-9/10",
            "bytes 0-18446744073709551615/18446744073709551615",
            "",
        ] {
            assert_eq!(parse(header), None, "{header}");
        }
        assert!(ContentRange::from_headers(&HeaderMap::new()).is_err());
    }

    #[test]
    fn origins_include_the_port() {
        let url = |text| Url::parse(text).unwrap();
        let from = url("http://h/a");
        assert!(is_same_origin(&from, &url("http://h:80/b?c")));
        for to in ["https://h/a", "http://h:81/a", "http://g/a", "http://h.g/a"] {
            assert!(!is_same_origin(&from, &url(to)), "{to}");
        }
    }
}
