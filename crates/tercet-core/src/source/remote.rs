//! Files at web servers and in object stores: `https://`, `s3://`, `gs://`, `az://`.
//!
//! ```text
//! Remote ─▶ blocks, merge       what to fetch, and what is here already (no I/O)
//!        ─▶ place               one request: a web server, or a store that signs it
//!        ─▶ guard               the rules for every answer: exact, bounded, in time, from the same file
//!        ─▶ runtime, client     threads and connections, one set for the process
//! Upload ─▶ place …             the way back
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{ByteSource, SourceError, range_within};
use crate::Span;

mod address;
mod blocks;
mod client;
mod error;
mod guard;
mod merge;
mod place;
mod runtime;
mod upload;

use address::Address;
pub use address::{is_address, redacted};
use blocks::Blocks;
pub use error::RemoteError;
use merge::merged;
use place::{Place, Version};
use runtime::wait;
pub use upload::Upload;

/// Reads of so many bytes and more are not rounded out to blocks, and not kept.
const LARGE: u64 = 64 << 10;
/// Spans that are so close to each other are fetched in one request.
const GAP: u64 = 8 << 10;
/// The most that is fetched in one request because spans are close to each other.
const MERGED: u64 = 16 << 20;
/// Requests at the same time.
const PARALLEL: usize = 8;

/// How a remote file is read.
#[derive(Clone)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The time for a connection.
    pub connect_timeout: Duration,
    /// The time for a request of a few bytes. For each 64 KiB that are sent there is a second more.
    pub timeout: Duration,
    /// How often a request is tried again after a broken connection, a timeout or a status that passes (408, 429, 5xx).
    pub retries: u32,
    /// The time after which nothing is tried again.
    pub retry_time: Duration,
    /// The bytes of blocks that are kept; 0 keeps none.
    pub cache_bytes: u64,
    /// The bytes of a block. Smaller reads are rounded out to it.
    pub block_bytes: u64,
    /// The most that is held in memory of a file whose server sends whole files only.
    pub whole_bytes: u64,
    /// Whether the file may grow while it is read: versions are not compared then, and bytes of the length that it had when
    /// it was opened are read. Whoever reads sees to it that they fit together.
    pub grows: bool,
    /// Settings of the store by the names of their variables (`aws_endpoint_url`), which go before the environment.
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
        // Settings may be secret.
        f.debug_struct("RemoteOptions")
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("cache_bytes", &self.cache_bytes)
            .field("block_bytes", &self.block_bytes)
            .field("whole_bytes", &self.whole_bytes)
            .finish_non_exhaustive()
    }
}

/// A file at a web server or in an object store, read by ranges.
///
/// Opening it is one request, which fetches the first block. After that a large read (64 KiB and more) is one request for exactly
/// the bytes that are not in memory; small ones are rounded out to blocks of 8 KiB, which are kept (32 MiB of them), and
/// who reads on gets up to 1 MiB ahead. [`read_many`](ByteSource::read_many) fetches spans that are close to each other
/// together, and eight requests at a time.
///
/// Every answer is compared with what was asked for, and with the file that was opened: if that was replaced meanwhile,
/// reading fails. Servers that know no ranges send the file once, which is then held in memory up to a limit.
///
/// Calls block; they may come from any thread, also from one of a runtime's blocking pool.
#[derive(Debug)]
pub struct Remote {
    name: Arc<str>,
    len: u64,
    place: Arc<Place>,
    version: Arc<Version>,
    grows: bool,
    /// All bytes, if the server sends whole files only.
    whole: Option<Bytes>,
    blocks: Mutex<Blocks>,
}

impl Remote {
    /// Opens the file at an address: `https://host/path`, `s3://bucket/key`, `gs://bucket/key`, `az://container/key`.
    ///
    /// Credentials of stores come from the variables that their own tools use, those of web servers from the address.
    pub fn open(address: &str, options: &RemoteOptions) -> Result<Self, SourceError> {
        let open = || {
            let place = Arc::new(Place::of(&Address::parse(address)?, options)?);
            let mut blocks = Blocks::new(options.block_bytes, options.cache_bytes);
            let first = Span::first(blocks.size());
            let asked = Arc::clone(&place);
            let answer = wait(async move { asked.get(first, None).await });
            let answer = match answer {
                Err(RemoteError::Status { status: 416 }) => return empty(place),
                answer => answer?,
            };
            let whole = answer.is_whole.then(|| answer.bytes.clone());
            if whole.is_none() {
                blocks.keep(0, &answer.bytes, answer.total);
                blocks.go_on_from(1);
            }
            Ok((place, answer.total, answer.version, whole, blocks))
        };
        let (place, len, version, whole, blocks) =
            open().map_err(|error| SourceError::Remote { span: None, error: Box::new(error) })?;
        let name = redacted(address).into();
        let (version, grows, blocks) = (version.into(), options.grows, Mutex::new(blocks));
        Ok(Self { name, len, place, version, grows, whole, blocks })
    }

    /// What the server calls the version of the file that was opened: another one if it changed.
    pub fn version(&self) -> Option<&str> {
        self.version.name()
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches exactly these bytes of the file that was opened.
    fn fetch(&self, span: Span) -> Result<Bytes, SourceError> {
        let (place, version) = (Arc::clone(&self.place), Arc::clone(&self.version));
        let (grows, len) = (self.grows, self.len);
        wait(async move { exact(&place, span, (!grows).then_some(&*version), len).await })
            .map_err(|error| failed(span, error))
    }

    /// A read of a few bytes: out of blocks, those that are missing in one request.
    fn read_small(&self, span: Span) -> Result<Bytes, SourceError> {
        let (size, wanted, missing) = {
            let mut blocks = self.blocks();
            let size = blocks.size();
            let numbers = span.start() / size..span.end().div_ceil(size);
            let mut missing = numbers.clone().filter(|&number| !blocks.has(number));
            let missing = missing.next().map(|first| (first, missing.next_back().unwrap_or(first) + 1));
            let missing = missing.map(|(first, end)| (first, end + blocks.read_ahead(first, end)));
            let held: Vec<Option<Bytes>> = numbers.clone().map(|number| blocks.get(number)).collect();
            (size, numbers.zip(held), missing)
        };
        let fetched = match missing {
            None => Bytes::new(),
            Some((first, end)) => {
                let bytes = self.fetch(self.cut(first * size, end.saturating_mul(size)))?;
                self.blocks().keep(first * size, &bytes, self.len);
                bytes
            }
        };
        let start = missing.map_or(0, |(first, _)| first * size);
        let mut pieces = wanted.map(|(number, held)| {
            let block = self.cut(number * size, (number + 1).saturating_mul(size));
            let part = common(block, span);
            let (bytes, from) = match held {
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

    /// A read of many bytes: those that are in blocks at both ends are taken from there, the rest is one request.
    fn read_large(&self, span: Span) -> Result<Bytes, SourceError> {
        let (mut start, mut end) = (span.start(), span.end());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        {
            let mut blocks = self.blocks();
            let size = blocks.size();
            while start < end
                && let Some(block) = blocks.get(start / size)
            {
                let place = self.cut(start / size * size, (start / size + 1).saturating_mul(size));
                let part = common(place, self.cut(start, end));
                before.push(slice(&block, place.start(), part));
                start = part.end();
            }
            while start < end
                && let Some(block) = blocks.get((end - 1) / size)
            {
                let place = self.cut((end - 1) / size * size, ((end - 1) / size + 1).saturating_mul(size));
                let part = common(place, self.cut(start, end));
                after.push(slice(&block, place.start(), part));
                end = part.start();
            }
        }
        let middle = if start < end { self.fetch(self.cut(start, end))? } else { Bytes::new() };
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

    /// What of a span has to be fetched: nothing, whole blocks, or the span itself.
    fn needed(&self, span: Span) -> Option<Span> {
        let blocks = self.blocks();
        if span.len() >= LARGE || blocks.is_off() {
            return Some(span);
        }
        let size = blocks.size();
        let numbers = span.start() / size..span.end().div_ceil(size);
        let is_here = numbers.clone().all(|number| blocks.has(number));
        (!is_here).then(|| self.cut(numbers.start * size, numbers.end.saturating_mul(size)))
    }

    /// The bytes from `start` to `end`, as far as the file goes.
    fn cut(&self, start: u64, end: u64) -> Span {
        let end = end.min(self.len);
        Span::between(start.min(end), end).unwrap_or(Span::empty(end))
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
        let range = range_within(span, self.len)?;
        if let Some(whole) = &self.whole {
            return Ok(whole.slice(range));
        }
        if span.is_empty() {
            return Ok(Bytes::new());
        }
        let is_off = self.blocks().is_off();
        if span.len() >= LARGE || is_off { self.read_large(span) } else { self.read_small(span) }
    }

    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        for span in spans {
            range_within(*span, self.len)?;
        }
        let needed = if self.whole.is_some() { Vec::new() } else { spans.to_vec() };
        let needed = needed.into_iter().filter(|span| !span.is_empty()).filter_map(|span| self.needed(span));
        let needed = merged(needed.collect(), GAP, MERGED);
        let (place, version) = (Arc::clone(&self.place), Arc::clone(&self.version));
        let (grows, len) = (self.grows, self.len);
        let fetches = needed.clone().into_iter().map(move |span| {
            let (place, version) = (Arc::clone(&place), Arc::clone(&version));
            async move {
                exact(&place, span, (!grows).then_some(&*version), len).await.map_err(|error| (span, error))
            }
        });
        let fetched =
            wait(async move { Ok(stream::iter(fetches).buffered(PARALLEL).try_collect::<Vec<_>>().await) });
        let fetched = match fetched {
            Ok(Ok(fetched)) => fetched,
            Ok(Err((span, error))) => return Err(failed(span, error)),
            Err(error) => return Err(failed(Span::empty(0), error)),
        };
        let answer = |span: &Span| match needed
            .partition_point(|outer| outer.start() <= span.start())
            .checked_sub(1)
        {
            Some(at) if needed[at].contains(*span) && !span.is_empty() => {
                Ok(slice(&fetched[at], needed[at].start(), *span))
            }
            // It was here before.
            _ => self.read_at(*span),
        };
        let answers = spans.iter().map(answer).collect();
        // Only what was rounded out to blocks will be asked for again soon.
        let mut blocks = self.blocks();
        for (outer, bytes) in needed.iter().zip(&fetched) {
            let small = spans.iter().filter(|span| span.len() < LARGE && outer.contains(**span));
            for span in small {
                let size = blocks.size();
                let place =
                    self.cut(span.start() / size * size, span.end().div_ceil(size).saturating_mul(size));
                if outer.contains(place) {
                    blocks.keep(place.start(), &slice(bytes, outer.start(), place), self.len);
                }
            }
        }
        answers
    }

    fn is_zero_copy(&self) -> bool {
        self.whole.is_some()
    }

    fn is_remote(&self) -> bool {
        self.whole.is_none()
    }
}

/// Fetches exactly these bytes of one version of a file.
///
/// Without a version they are of any that has them.
async fn exact(place: &Place, span: Span, version: Option<&Version>, len: u64) -> Result<Bytes, RemoteError> {
    let answer = place.get(span, version).await?;
    if answer.total < len || (answer.total > len && version.is_some()) {
        return Err(RemoteError::Changed);
    }
    if answer.is_whole {
        // It sent a part when it was opened. Whatever this is, it holds the bytes.
        return Ok(slice(&answer.bytes, 0, span));
    }
    match answer.bytes.len() as u64 {
        found if found == span.len() => Ok(answer.bytes),
        found => Err(RemoteError::Short { found, expected: span.len() }),
    }
}

/// A file of which a server says that it has no first byte.
#[expect(clippy::type_complexity, reason = "the parts of a file that is being opened")]
fn empty(place: Arc<Place>) -> Result<(Arc<Place>, u64, Version, Option<Bytes>, Blocks), RemoteError> {
    let asked = Arc::clone(&place);
    match wait(async move { asked.length().await })? {
        0 => Ok((place, 0, Version::default(), Some(Bytes::new()), Blocks::new(1, 0))),
        _ => Err(RemoteError::Status { status: 416 }),
    }
}

fn failed(span: Span, error: RemoteError) -> SourceError {
    SourceError::Remote { span: Some(span), error: Box::new(error) }
}

/// What two spans that overlap have in common.
fn common(one: Span, other: Span) -> Span {
    let (start, end) = (one.start().max(other.start()), one.end().min(other.end()));
    Span::between(start, end).unwrap_or(Span::empty(start))
}

/// The bytes of `span` out of bytes that start at `from`.
fn slice(bytes: &Bytes, from: u64, span: Span) -> Bytes {
    let range = Span::between(span.start().saturating_sub(from), span.end().saturating_sub(from));
    let range = range.and_then(Span::to_range).unwrap_or_default();
    bytes.slice(range)
}
