//! A remote file as a byte source.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use tercet_core::source::check_span;
use tercet_core::{ByteSource, SourceError, Span, redact_url};

use crate::RemoteError;
use crate::block_cache::BlockCache;
use crate::coalesce::coalesce;
use crate::endpoint::{Endpoint, Version};
use crate::runtime::{block_on, internal, spawn};
use crate::url::RemoteUrl;

/// Reads of this size and larger are neither rounded to blocks nor cached.
const LARGE_READ: u64 = 64 << 10;
/// Spans at most this far apart are fetched in one request.
const MAX_GAP: u64 = 8 << 10;
/// The largest request for several spans.
const MAX_COALESCED: u64 = 16 << 20;
/// Concurrent requests of one read.
const MAX_CONCURRENT: usize = 8;

/// How a remote file is read.
#[derive(Clone)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// The timeout of a small request. Each 64 KiB transferred adds a second.
    pub timeout: Duration,
    /// The number of retries after a broken connection, a timeout or a transient status (408, 429, 5xx).
    pub retries: u32,
    /// The time after which a request is not retried.
    pub retry_time: Duration,
    /// The size of the block cache; 0 disables it.
    pub cache_bytes: u64,
    /// The block size. Smaller reads are rounded to blocks.
    pub block_bytes: u64,
    /// The largest file that is held in memory where the server does not support range requests.
    pub whole_bytes: u64,
    /// Whether the file may grow while it is open. Versions are then not compared, and the length stays that at
    /// opening; the caller must detect a replaced file.
    pub grows: bool,
    /// Settings of the object store by the names of their variables (`aws_endpoint_url`). They override the
    /// environment.
    pub settings: Vec<(String, String)>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            retries: 3,
            retry_time: Duration::from_mins(1),
            cache_bytes: 32 << 20,
            block_bytes: 8 << 10,
            whole_bytes: 256 << 20,
            grows: false,
            settings: Vec::new(),
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may hold credentials.
        f.debug_struct("RemoteOptions")
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("cache_bytes", &self.cache_bytes)
            .field("block_bytes", &self.block_bytes)
            .field("whole_bytes", &self.whole_bytes)
            .finish_non_exhaustive()
    }
}

/// A file on a web server or in an object store, read with range requests.
///
/// Opening is one request, which fetches the first block. A large read (64 KiB and more) is one request for exactly
/// the bytes that are not cached. Small reads are rounded to blocks of 8 KiB, which are cached (32 MiB), with up to 1
/// MiB of read-ahead. [`read_many`](ByteSource::read_many) coalesces spans that are close to each other and makes
/// eight concurrent requests.
///
/// Every response is compared with the request and with the version of the file that was opened: if the file is
/// replaced, reading fails. A server without range requests sends the file once; it is held in memory up to a limit.
///
/// Calls block. They may come from any thread, also from one of an async runtime's blocking pool.
#[derive(Debug)]
pub struct Remote {
    name: Arc<str>,
    len: u64,
    endpoint: Arc<Endpoint>,
    version: Arc<Version>,
    grows: bool,
    /// The file, if the server does not support range requests.
    whole: Option<Bytes>,
    cache: Mutex<BlockCache>,
}

impl Remote {
    /// Opens a URL: `https://host/path`, `s3://bucket/key`, `gs://bucket/key`, `az://container/key`.
    ///
    /// Credentials of stores come from the environment variables of their own tools, those of web servers from the URL.
    pub fn open(url: &str, options: &RemoteOptions) -> Result<Self, SourceError> {
        let open = || {
            let endpoint = Arc::new(Endpoint::new(&RemoteUrl::parse(url)?, options)?);
            let mut cache = BlockCache::new(options.block_bytes, options.cache_bytes);
            let first = Span::first(cache.size());
            let server = Arc::clone(&endpoint);
            let response = match block_on(async move { server.get(first, None).await }) {
                Err(RemoteError::Status { status: 416 }) => return open_empty(endpoint),
                response => response?,
            };
            let whole = response.is_whole.then(|| response.bytes.clone());
            if whole.is_none() {
                cache.insert(0, &response.bytes, response.file_len);
                cache.set_next(1);
            }
            Ok((endpoint, response.file_len, response.version, whole, cache))
        };
        let (endpoint, len, version, whole, cache) =
            open().map_err(|error| SourceError::Remote { span: None, error: Box::new(error) })?;
        let name = redact_url(url).into();
        let (version, grows, cache) = (version.into(), options.grows, Mutex::new(cache));
        Ok(Self { name, len, endpoint, version, grows, whole, cache })
    }

    /// The version of the opened file: its entity tag or modification time.
    pub fn version(&self) -> Option<&str> {
        self.version.name()
    }

    fn cache(&self) -> MutexGuard<'_, BlockCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches exactly this span of the opened version.
    fn fetch(&self, span: Span) -> Result<Bytes, SourceError> {
        let (endpoint, version) = (Arc::clone(&self.endpoint), Arc::clone(&self.version));
        let (grows, len) = (self.grows, self.len);
        block_on(async move { fetch_exact(&endpoint, span, (!grows).then_some(&*version), len).await })
            .map_err(|error| read_error(span, error))
    }

    /// A small read: assembled from blocks; the missing ones are one request.
    fn read_small(&self, span: Span) -> Result<Bytes, SourceError> {
        let (size, wanted, missing) = {
            let mut cache = self.cache();
            let size = cache.size();
            let numbers = span.start() / size..span.end().div_ceil(size);
            let mut missing = numbers.clone().filter(|&number| !cache.contains(number));
            let missing = missing.next().map(|first| (first, missing.next_back().unwrap_or(first) + 1));
            let missing = missing.map(|(first, end)| (first, end + cache.read_ahead(first, end)));
            let cached: Vec<Option<Bytes>> = numbers.clone().map(|number| cache.get(number)).collect();
            (size, numbers.zip(cached), missing)
        };
        let fetched = match missing {
            None => Bytes::new(),
            Some((first, end)) => {
                let bytes = self.fetch(self.clamp(first * size, end.saturating_mul(size)))?;
                self.cache().insert(first * size, &bytes, self.len);
                bytes
            }
        };
        let start = missing.map_or(0, |(first, _)| first * size);
        let mut pieces = wanted.map(|(number, cached)| {
            let block = self.clamp(number * size, (number + 1).saturating_mul(size));
            let part = intersection(block, span);
            let (bytes, from) = match cached {
                Some(bytes) => (bytes, block.start()),
                None => (fetched.clone(), start),
            };
            slice(&bytes, from, part)
        });
        let first = pieces.next().unwrap_or_default();
        if first.len() as u64 == span.len() {
            return Ok(first);
        }
        let mut joined = BytesMut::from(&first[..]);
        pieces.for_each(|piece| joined.extend_from_slice(&piece));
        Ok(joined.freeze())
    }

    /// A large read: cached blocks at both ends are used, the rest is one request.
    fn read_large(&self, span: Span) -> Result<Bytes, SourceError> {
        let (mut start, mut end) = (span.start(), span.end());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        {
            let mut cache = self.cache();
            let size = cache.size();
            while start < end
                && let Some(block) = cache.get(start / size)
            {
                let extent = self.clamp(start / size * size, (start / size + 1).saturating_mul(size));
                let part = intersection(extent, self.clamp(start, end));
                before.push(slice(&block, extent.start(), part));
                start = part.end();
            }
            while start < end
                && let Some(block) = cache.get((end - 1) / size)
            {
                let extent = self.clamp((end - 1) / size * size, ((end - 1) / size + 1).saturating_mul(size));
                let part = intersection(extent, self.clamp(start, end));
                after.push(slice(&block, extent.start(), part));
                end = part.start();
            }
        }
        let middle = if start < end { self.fetch(self.clamp(start, end))? } else { Bytes::new() };
        if before.is_empty() && after.is_empty() {
            return Ok(middle);
        }
        let mut joined = Vec::new();
        let len = span.len_usize().filter(|&len| joined.try_reserve_exact(len).is_ok());
        len.ok_or(SourceError::TooLarge { span })?;
        for piece in before.iter().chain([&middle]).chain(after.iter().rev()) {
            joined.extend_from_slice(piece);
        }
        Ok(joined.into())
    }

    /// The bytes to fetch for a span: nothing, whole blocks, or the span itself.
    fn missing(&self, span: Span) -> Option<Span> {
        let cache = self.cache();
        if span.len() >= LARGE_READ || cache.is_disabled() {
            return Some(span);
        }
        let size = cache.size();
        let numbers = span.start() / size..span.end().div_ceil(size);
        let is_cached = numbers.clone().all(|number| cache.contains(number));
        (!is_cached).then(|| self.clamp(numbers.start * size, numbers.end.saturating_mul(size)))
    }

    /// The bytes from `start` to `end`, cut at the end of the file.
    fn clamp(&self, start: u64, end: u64) -> Span {
        let end = end.min(self.len);
        let start = start.min(end);
        Span::clamped(start, end - start)
    }
}

impl ByteSource for Remote {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let range = check_span(span, self.len)?;
        if let Some(whole) = &self.whole {
            return Ok(whole.slice(range));
        }
        if span.is_empty() {
            return Ok(Bytes::new());
        }
        let is_off = self.cache().is_disabled();
        if span.len() >= LARGE_READ || is_off { self.read_large(span) } else { self.read_small(span) }
    }

    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        for span in spans {
            check_span(*span, self.len)?;
        }
        let needed = if self.whole.is_some() { Vec::new() } else { spans.to_vec() };
        let needed = needed.into_iter().filter(|span| !span.is_empty()).filter_map(|span| self.missing(span));
        let needed = coalesce(needed.collect(), MAX_GAP, MAX_COALESCED);
        let (endpoint, version) = (Arc::clone(&self.endpoint), Arc::clone(&self.version));
        let (grows, len) = (self.grows, self.len);
        let fetches = needed.clone().into_iter().map(move |span| {
            let (endpoint, version) = (Arc::clone(&endpoint), Arc::clone(&version));
            // A task of its own, so that responses are received on all threads.
            let fetch =
                spawn(async move { fetch_exact(&endpoint, span, (!grows).then_some(&*version), len).await });
            async move {
                let fetched = match fetch {
                    Ok(fetch) => fetch.await.unwrap_or_else(|_| Err(internal("a request failed"))),
                    Err(error) => Err(error),
                };
                fetched.map_err(|error| (span, error))
            }
        });
        let fetched = block_on(async move {
            Ok(stream::iter(fetches).buffered(MAX_CONCURRENT).try_collect::<Vec<_>>().await)
        });
        let fetched = match fetched {
            Ok(Ok(fetched)) => fetched,
            Ok(Err((span, error))) => return Err(read_error(span, error)),
            Err(error) => return Err(read_error(Span::empty(0), error)),
        };
        let take = |span: &Span| match needed
            .partition_point(|outer| outer.start() <= span.start())
            .checked_sub(1)
        {
            Some(at) if needed[at].contains(*span) && !span.is_empty() => {
                Ok(slice(&fetched[at], needed[at].start(), *span))
            }
            // It was cached.
            _ => self.read_at(*span),
        };
        let result = spans.iter().map(take).collect();
        // Only small reads are likely to be repeated.
        let mut cache = self.cache();
        for (outer, bytes) in needed.iter().zip(&fetched) {
            let small = spans.iter().filter(|span| span.len() < LARGE_READ && outer.contains(**span));
            for span in small {
                let size = cache.size();
                let extent =
                    self.clamp(span.start() / size * size, span.end().div_ceil(size).saturating_mul(size));
                if outer.contains(extent) {
                    cache.insert(extent.start(), &slice(bytes, outer.start(), extent), self.len);
                }
            }
        }
        result
    }

    fn is_zero_copy(&self) -> bool {
        self.whole.is_some()
    }

    fn is_remote(&self) -> bool {
        self.whole.is_none()
    }
}

/// Fetches exactly a span of one version of a file, or of any version.
async fn fetch_exact(
    endpoint: &Endpoint,
    span: Span,
    version: Option<&Version>,
    len: u64,
) -> Result<Bytes, RemoteError> {
    let response = endpoint.get(span, version).await?;
    if response.file_len < len || (response.file_len > len && version.is_some()) {
        return Err(RemoteError::Changed);
    }
    if response.is_whole {
        // The server ignores the range now; the whole file contains it.
        return Ok(slice(&response.bytes, 0, span));
    }
    match response.bytes.len() as u64 {
        found if found == span.len() => Ok(response.bytes),
        found => Err(RemoteError::Short { found, expected: span.len() }),
    }
}

/// Opens a file for which the server has no first byte.
#[expect(clippy::type_complexity, reason = "the fields of the source that is being opened")]
fn open_empty(
    endpoint: Arc<Endpoint>,
) -> Result<(Arc<Endpoint>, u64, Version, Option<Bytes>, BlockCache), RemoteError> {
    let server = Arc::clone(&endpoint);
    match block_on(async move { server.file_len().await })? {
        0 => Ok((endpoint, 0, Version::default(), Some(Bytes::new()), BlockCache::new(1, 0))),
        _ => Err(RemoteError::Status { status: 416 }),
    }
}

fn read_error(span: Span, error: RemoteError) -> SourceError {
    SourceError::Remote { span: Some(span), error: Box::new(error) }
}

/// The intersection of two spans that overlap.
fn intersection(one: Span, other: Span) -> Span {
    let (start, end) = (one.start().max(other.start()), one.end().min(other.end()));
    Span::clamped(start, end.saturating_sub(start))
}

/// The bytes of `span`, out of bytes that start at `from`.
fn slice(bytes: &Bytes, from: u64, span: Span) -> Bytes {
    let range = Span::between(span.start().saturating_sub(from), span.end().saturating_sub(from));
    let range = range.and_then(Span::to_range).unwrap_or_default();
    bytes.slice(range)
}
