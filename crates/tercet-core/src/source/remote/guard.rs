//! The client through which every request goes, with the rules that hold for all of them.
//!
//! An answer is exactly what was asked for, or an error: ranges are compared with what was asked, bodies have the length
//! that was announced and never more, redirects stay where they are, and everything ends at some time. What fails for a
//! moment is tried again. The libraries above it, which sign requests and know the stores, never see half an answer.

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
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::address::place;
use super::error::cause_of;
use super::{RemoteError, RemoteOptions};

/// How many redirects are followed, all of them to the same host.
const REDIRECTS: usize = 5;
/// The most that is taken of an answer that is no file: lists, tokens, errors.
const TALK: u64 = 1 << 20;
/// Bytes that must come in each second, once the time for a few bytes is over.
const RATE: u64 = 64 << 10;
/// The pause before the second try; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// Where machines in a cloud find their credentials. Elsewhere nobody answers there.
const METADATA_HOSTS: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "metadata"];

/// The rules of all requests.
#[derive(Clone)]
pub(super) struct Guard {
    client: reqwest::Client,
    timeout: Duration,
    retries: u32,
    retry_time: Duration,
    /// The most that is taken where a server sends the whole file instead of a range; `None` refuses.
    whole: Option<u64>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client could tell headers.
        f.debug_struct("Guard").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Guard {
    /// `is_loopback`: the server is on this machine, and no proxy is asked for it.
    pub(super) fn new(
        options: &RemoteOptions,
        is_loopback: bool,
        whole: Option<u64>,
    ) -> Result<Self, RemoteError> {
        Ok(Self {
            client: super::client::client(options.connect_timeout, is_loopback)?,
            timeout: options.timeout,
            retries: options.retries,
            retry_time: options.retry_time,
            whole,
        })
    }

    /// Makes a request until it succeeds, fails for good, or was tried often enough.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, RemoteError> {
        let is_metadata = request.uri().host().is_some_and(|host| METADATA_HOSTS.contains(&host));
        let retries = if is_metadata { 0 } else { self.retries };
        let last_start = Instant::now() + self.retry_time;
        let mut pause = FIRST_PAUSE;
        for tried in 0.. {
            match self.once(request.clone(), is_metadata).await {
                Err(error)
                    if error.is_passing() && tried < retries && Instant::now() + pause < last_start =>
                {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                result => return result,
            }
        }
        Err(super::runtime::library("a request was never made"))
    }

    async fn once(&self, mut request: HttpRequest, is_metadata: bool) -> Result<HttpResponse, RemoteError> {
        let asked = Asked::of(&request);
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let from = request.uri().to_string();
        let limit = if is_metadata { self.timeout.min(Duration::from_secs(2)) } else { self.timeout };
        let clock = Clock { start: Instant::now(), limit };
        let sent = request.body().content_length() as u64;
        let answer = timeout_at(clock.deadline(sent), HttpService::call(&self.client, request)).await;
        let answer = answer.map_err(|_| clock.timed_out())?.map_err(|error| of_transport(&error))?;
        let (parts, body) = answer.into_parts();
        let status = parts.status;
        let body = body.bytes_stream();
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(redirected(&parts.headers, &from, status));
        }
        if !status.is_success() {
            if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
                return Err(RemoteError::of_status(status.as_u16()));
            }
            // These mean something to the stores, which never show the answer; all others could end in a message.
            let is_known = is_metadata || matches!(status.as_u16(), 304 | 401 | 403 | 404 | 409 | 412);
            if !is_known {
                return Err(RemoteError::of_status(status.as_u16()));
            }
            let body = collect(body, Expect::AtMost(TALK), clock).await.unwrap_or_default();
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        let body = match asked {
            Asked::Nothing => Bytes::new(),
            Asked::Talk => collect(body, Expect::AtMost(TALK), clock).await?,
            Asked::Range { first, end } if status == StatusCode::PARTIAL_CONTENT => {
                let found = Found::of(&parts.headers)?;
                if found.first != first || found.end != end.min(found.total) {
                    return Err(found.other());
                }
                collect(body, Expect::Exactly(found.end - found.first), clock).await?
            }
            Asked::Range { .. } => {
                let limit = self.whole.ok_or(RemoteError::NoRanges { limit: 0 })?;
                whole_length(&parts, limit)?;
                match collect(body, Expect::AtMost(limit), clock).await {
                    Err(RemoteError::Long { .. }) => return Err(RemoteError::NoRanges { limit }),
                    body => body?,
                }
            }
        };
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
    }
}

/// What a request wants in the body of the answer.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Nothing,
    Range { first: u64, end: u64 },
    Talk,
}

impl Asked {
    fn of(request: &HttpRequest) -> Self {
        if request.method() == Method::HEAD {
            return Self::Nothing;
        }
        let range =
            request.headers().get(RANGE).and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
        let numbers = range.and_then(|range| {
            let (first, last) = range.split_once('-')?;
            Some((first.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?))
        });
        match numbers {
            Some((first, end)) => Self::Range { first, end },
            None => Self::Talk,
        }
    }
}

/// The bytes that an answer says it holds.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) total: u64,
    said: String,
}

impl Found {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, RemoteError> {
        let said = headers.get(CONTENT_RANGE).map_or("none", |value| value.to_str().unwrap_or("not text"));
        let said: String = said.chars().take(80).collect();
        let numbers = || {
            let (range, total) = said.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let (first, end, total): (u64, u64, u64) =
                (first.parse().ok()?, last.parse::<u64>().ok()?.checked_add(1)?, total.parse().ok()?);
            (first < end && end <= total).then_some((first, end, total))
        };
        match numbers() {
            Some((first, end, total)) => Ok(Self { first, end, total, said }),
            None => Err(RemoteError::OtherBytes { said }),
        }
    }

    fn other(self) -> RemoteError {
        RemoteError::OtherBytes { said: self.said }
    }
}

/// Refuses a whole file that is too long, and one whose end nobody can tell from a connection that broke.
fn whole_length(parts: &http::response::Parts, limit: u64) -> Result<(), RemoteError> {
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let is_framed = parts.version >= Version::HTTP_2 || parts.headers.contains_key(TRANSFER_ENCODING);
    match length {
        Some(length) if length > limit => Err(RemoteError::NoRanges { limit }),
        None if !is_framed => Err(RemoteError::NoLength),
        _ => Ok(()),
    }
}

/// When an answer is too late.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    limit: Duration,
}

impl Clock {
    fn deadline(self, bytes: u64) -> Instant {
        self.start + self.limit + Duration::from_secs(bytes / RATE)
    }

    fn timed_out(self) -> RemoteError {
        RemoteError::TimedOut { seconds: self.limit.as_secs() }
    }
}

#[derive(Clone, Copy, Debug)]
enum Expect {
    Exactly(u64),
    AtMost(u64),
}

/// Takes a body, and never more of it than expected.
async fn collect(
    mut body: impl Stream<Item = Result<Bytes, HttpError>> + Unpin,
    expect: Expect,
    clock: Clock,
) -> Result<Bytes, RemoteError> {
    let (Expect::Exactly(most) | Expect::AtMost(most)) = expect;
    let mut taken: Vec<u8> = Vec::new();
    if let Expect::Exactly(exact) = expect {
        let room = usize::try_from(exact).ok().and_then(|exact| taken.try_reserve_exact(exact).ok());
        room.ok_or_else(|| super::runtime::library("there is not enough memory for the bytes asked for"))?;
    }
    loop {
        let found = taken.len() as u64;
        let next = timeout_at(clock.deadline(found), body.next()).await.map_err(|_| clock.timed_out())?;
        match next {
            Some(Ok(piece)) if found + piece.len() as u64 > most => {
                return Err(RemoteError::Long { expected: most });
            }
            Some(Ok(piece)) => taken.extend_from_slice(&piece),
            Some(Err(error)) => return Err(RemoteError::Interrupted { detail: cause_of(&error) }),
            None => break,
        }
    }
    match expect {
        Expect::Exactly(expected) if taken.len() as u64 != expected => {
            Err(RemoteError::Short { found: taken.len() as u64, expected })
        }
        _ => Ok(taken.into()),
    }
}

fn of_transport(error: &HttpError) -> RemoteError {
    let detail = cause_of(error);
    match error.kind() {
        HttpErrorKind::Connect => RemoteError::Unreachable { detail },
        // Everything else happens on a connection: it was closed, reset, or talked nonsense.
        _ => RemoteError::Interrupted { detail },
    }
}

/// The client follows redirects that stay where they are; this is one it did not follow.
fn redirected(headers: &HeaderMap, from: &str, status: StatusCode) -> RemoteError {
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
    let from = Url::parse(from).ok();
    match (to, from) {
        (Some(to), Some(from)) => match from.join(to) {
            Ok(to) if stays(&from, &to) => RemoteError::RedirectedTooOften { most: REDIRECTS },
            Ok(to) => RemoteError::Redirected { host: place(&to) },
            Err(_) => RemoteError::Status { status: status.as_u16() },
        },
        _ => RemoteError::Status { status: status.as_u16() },
    }
}

/// Whether a redirect stays at the same server.
fn stays(from: &Url, to: &Url) -> bool {
    from.scheme() == to.scheme()
        && from.host_str() == to.host_str()
        && from.port_or_known_default() == to.port_or_known_default()
}

/// Follows redirects that stay at the same server, and not for ever.
pub(super) fn redirects() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let stays = attempt.previous().last().is_some_and(|from| stays(from, attempt.url()));
        if stays && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

#[async_trait::async_trait]
impl HttpService for Guard {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Of this kind, so that nobody above tries it once more.
        self.send(request).await.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))
    }
}

/// Gives this client to the library of the stores.
impl HttpConnector for Guard {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_understood_or_refused() {
        let of = |said: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, HeaderValue::from_static(said));
            Found::of(&headers).map(|found| (found.first, found.end, found.total)).ok()
        };
        assert_eq!(of("bytes 0-9/10"), Some((0, 10, 10)));
        assert_eq!(of("bytes 5-5/10"), Some((5, 6, 10)));
        for said in [
            "bytes 0-9/*",
            "bytes */10",
            "bytes 9-0/10",
            "bytes 0-10/10",
            "0-9/10",
            "bytes -1-9/10",
            "bytes 0-18446744073709551615/18446744073709551615",
            "",
        ] {
            assert_eq!(of(said), None, "{said}");
        }
        assert!(Found::of(&HeaderMap::new()).is_err());
    }

    #[test]
    fn redirects_stay_at_the_same_port_too() {
        let url = |text| Url::parse(text).unwrap();
        let from = url("http://h/a");
        assert!(stays(&from, &url("http://h:80/b?c")));
        for to in ["https://h/a", "http://h:81/a", "http://g/a", "http://h.g/a"] {
            assert!(!stays(&from, &url(to)), "{to}");
        }
    }
}
