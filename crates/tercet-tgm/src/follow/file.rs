//! Following of files, streams and URLs.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tercet_core::progress::NoProgress;
use tercet_core::{Location, Progress, SourceError, Span};

use super::growing::{FileLocation, LocalPath};
use super::stream::{Piece, Stream};
use super::watch::{ReadResult, Watched};
use super::{FollowEvent, Follower};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::options::ReadOptions;

/// Poll intervals of local and remote files.
const INTERVAL: Duration = Duration::from_millis(20);
#[cfg(feature = "remote")]
const REMOTE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of checks for cancellation.
const PATIENCE: Duration = Duration::from_millis(50);

/// How a file or stream is followed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Start with the last N messages; 0 starts with the next new message. By default all messages are reported. It does
    /// not apply to streams, nor to a file that appears later.
    pub last: Option<u64>,
    /// Wait for new messages. Otherwise the end of the file ends it.
    pub wait: bool,
    /// Wait for a file that does not exist, or is removed. Otherwise it is an error.
    pub retry: bool,
    /// End after this time without new bytes.
    pub idle: Option<Duration>,
    /// The poll interval. The default is 20 ms, for URLs 1 s.
    pub interval: Option<Duration>,
    /// How messages are read.
    pub read: ReadOptions,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { last: None, wait: true, retry: false, idle: None, interval: None, read: ReadOptions::new() }
    }
}

impl FollowOptions {
    /// Reports all messages and waits for new ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts with the last N messages.
    pub fn with_last(mut self, last: Option<u64>) -> Self {
        self.last = last;
        self
    }

    /// Sets whether to wait for new messages.
    pub fn with_wait(mut self, wait: bool) -> Self {
        self.wait = wait;
        self
    }

    /// Sets whether to wait for a file that does not exist.
    pub fn with_retry(mut self, retry: bool) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the time without new bytes after which it ends.
    pub fn with_idle(mut self, idle: Option<Duration>) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the poll interval.
    pub fn with_interval(mut self, interval: Option<Duration>) -> Self {
        self.interval = interval;
        self
    }

    /// Sets how messages are read.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

impl File {
    /// Follows a growing file, a named pipe, or a URL with the feature `remote`: reports each message when it is complete
    /// and all its hashes match. Opens nothing yet.
    ///
    /// ```
    /// use tercet_tgm::{EncodeOptions, File, FollowEvent, FollowOptions, GlobalMetadata, Writer, WriterOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("run.tgm");
    /// let mut writer = Writer::create(&path, WriterOptions::new())?;
    /// for _ in 0..3 {
    ///     writer.message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
    /// }
    /// writer.finish()?;
    ///
    /// let mut numbers = Vec::new();
    /// for event in File::follow(&path, FollowOptions::new().with_last(Some(2)).with_wait(false)) {
    ///     if let FollowEvent::Message(message) = event? {
    ///         numbers.push(message.number);
    ///     }
    /// }
    /// assert_eq!(numbers, [1, 2]);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn follow(location: impl Into<Location>, options: FollowOptions) -> Follow {
        let location = location.into();
        let name: Arc<str> = location.to_string().into();
        let state = match location {
            Location::Path(path) if is_pipe(&path) => State::Unopened(Box::new(move || {
                Stream::new(move || {
                    #[expect(clippy::disallowed_methods, reason = "a pipe is read once, from start to end")]
                    std::fs::File::open(path)
                })
            })),
            Location::Path(path) => State::missing(Box::new(LocalPath::new(path))),
            #[cfg(feature = "remote")]
            Location::Url(url) => {
                let options =
                    FollowOptions { interval: Some(options.interval.unwrap_or(REMOTE_INTERVAL)), ..options };
                let location = Box::new(super::remote::RemoteFile::new(&url));
                return Follow::new(name, State::missing(location), options);
            }
            #[cfg(not(feature = "remote"))]
            Location::Url(_) => State::Ended(Some(SourceError::RemoteDisabled.into())),
        };
        Follow::new(name, state, options)
    }

    /// Follows a stream, such as standard input or a socket, on a thread of its own. `name` appears in errors.
    pub fn follow_stream(name: &str, stream: impl Read + Send + 'static, options: FollowOptions) -> Follow {
        let open = || Stream::new(move || Ok(stream));
        Follow::new(name.into(), State::Unopened(Box::new(open)), options)
    }
}

/// The events of a growing file or stream: see [`File::follow`].
///
/// A file that is truncated, rewritten or replaced is read on after the last complete message if it starts with the same
/// bytes, else from its start: see [`FollowEvent::Changed`]. As an iterator, it waits without cancellation; it ends after
/// an error.
pub struct Follow {
    name: Arc<str>,
    options: FollowOptions,
    state: State,
    events: VecDeque<FollowEvent>,
    /// When bytes were read last.
    last: Instant,
    /// Whether events were returned since the last [`FollowEvent::CaughtUp`].
    is_behind: bool,
}

type OpenStream = Box<dyn FnOnce() -> io::Result<Stream> + Send>;

enum State {
    /// A stream that is not open yet.
    Unopened(OpenStream),
    Stream {
        stream: Stream,
        follower: Box<Follower>,
        position: u64,
    },
    /// A file that is not open yet.
    Missing {
        location: Box<dyn FileLocation>,
        is_reported: bool,
    },
    File {
        location: Box<dyn FileLocation>,
        watched: Box<Watched>,
        is_removed: bool,
    },
    /// The end, and the error to report.
    Ended(Option<ErrorKind>),
}

impl State {
    fn missing(location: Box<dyn FileLocation>) -> Self {
        Self::Missing { location, is_reported: false }
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Iterator for Follow {
    type Item = Result<FollowEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event(&NoProgress).transpose()
    }
}

impl Follow {
    fn new(name: Arc<str>, state: State, options: FollowOptions) -> Self {
        Self { name, options, state, events: VecDeque::new(), last: Instant::now(), is_behind: false }
    }

    /// The path or URL, without credentials.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The next event; waits for it. `None` at the end. `progress` can cancel it.
    pub fn next_event(&mut self, progress: &dyn Progress) -> Result<Option<FollowEvent>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                self.is_behind = !matches!(event, FollowEvent::CaughtUp);
                return Ok(Some(event));
            }
            if let State::Ended(fault) = &mut self.state {
                return fault.take().map_or(Ok(None), |fault| Err(Error::new(Arc::clone(&self.name), fault)));
            }
            let state = std::mem::replace(&mut self.state, State::Ended(None));
            let next = progress.check().map_err(ErrorKind::from).and_then(|()| self.advance(state, progress));
            self.state = next.unwrap_or_else(|fault| State::Ended(Some(fault)));
        }
    }

    /// Reads more bytes, or waits for them.
    fn advance(&mut self, state: State, progress: &dyn Progress) -> Result<State, ErrorKind> {
        match state {
            State::Unopened(open) => {
                let stream = open().map_err(SourceError::Open)?;
                self.last = Instant::now();
                let follower = Box::new(Follower::with_options(self.options.read));
                Ok(State::Stream { stream, follower, position: 0 })
            }
            State::Stream { stream, follower, position } => self.advance_stream(stream, follower, position),
            State::Missing { location, is_reported } => self.open(location, is_reported, progress),
            State::File { location, watched, is_removed } => {
                self.advance_file(location, watched, is_removed, progress)
            }
            State::Ended(fault) => Ok(State::Ended(fault)),
        }
    }

    fn advance_stream(
        &mut self,
        stream: Stream,
        mut follower: Box<Follower>,
        position: u64,
    ) -> Result<State, ErrorKind> {
        let failed = |error| SourceError::Read { span: Span::empty(position), error };
        let piece = match stream.try_next().map_err(failed)? {
            Piece::Nothing => {
                if self.report_end() {
                    return Ok(State::Stream { stream, follower, position });
                }
                let left = self.options.idle.map(|idle| idle.saturating_sub(self.last.elapsed()));
                if left.is_some_and(|left| left.is_zero()) {
                    Piece::End
                } else {
                    stream.wait(left.unwrap_or(PATIENCE).min(PATIENCE)).map_err(failed)?
                }
            }
            piece => piece,
        };
        match piece {
            Piece::Bytes(bytes) => {
                self.last = Instant::now();
                follower.push(&bytes);
                self.events.extend(std::iter::from_fn(|| follower.next_event()));
                let position = position.saturating_add(bytes.len() as u64);
                Ok(State::Stream { stream, follower, position })
            }
            Piece::Nothing => Ok(State::Stream { stream, follower, position }),
            Piece::End => {
                self.events.extend(std::iter::from_fn(|| follower.finish()));
                Ok(State::Ended(None))
            }
        }
    }

    /// Opens the file, or waits for it.
    fn open(
        &mut self,
        location: Box<dyn FileLocation>,
        is_reported: bool,
        progress: &dyn Progress,
    ) -> Result<State, ErrorKind> {
        if let Some(open_file) = location.open()? {
            // A file that appears later is read from its start.
            let last = self.options.last.filter(|_| !is_reported);
            let watched = Box::new(Watched::start(open_file, last, self.options.read)?);
            self.events.push_back(FollowEvent::Opened { head: watched.head()? });
            self.last = Instant::now();
            return Ok(State::File { location, watched, is_removed: false });
        }
        if !self.options.retry || (is_reported && (!self.options.wait || self.is_idle())) {
            return Err(not_found());
        }
        if is_reported {
            self.wait(progress)?;
        } else {
            self.events.push_back(FollowEvent::Waiting { was_removed: false });
        }
        Ok(State::Missing { location, is_reported: true })
    }

    fn advance_file(
        &mut self,
        location: Box<dyn FileLocation>,
        mut watched: Box<Watched>,
        mut is_removed: bool,
        progress: &dyn Progress,
    ) -> Result<State, ErrorKind> {
        let events = &mut self.events;
        match watched.read_on(events)? {
            ReadResult::More => {
                self.last = Instant::now();
                return Ok(State::File { location, watched, is_removed });
            }
            ReadResult::Changed(change) => {
                watched.start_again(change, events)?;
                self.last = Instant::now();
                return Ok(State::File { location, watched, is_removed });
            }
            ReadResult::End => {}
        }
        if !self.options.wait || self.is_idle() {
            watched.finish(&mut self.events);
            return Ok(State::Ended(None));
        }
        if self.report_end() {
            return Ok(State::File { location, watched, is_removed });
        }
        match location.file_id()? {
            Some(file_id) if file_id == watched.open_file().file_id() => is_removed = false,
            Some(_) => {
                is_removed = false;
                if let Some(open_file) = location.open()? {
                    watched.take_over(open_file, &mut self.events, progress)?;
                }
                return Ok(State::File { location, watched, is_removed });
            }
            None if !self.options.retry => {
                // Read what was written before the removal.
                watched.read_rest(&mut self.events, progress)?;
                return Ok(State::Ended(Some(not_found())));
            }
            None if !is_removed => {
                is_removed = true;
                self.events.push_back(FollowEvent::Waiting { was_removed: true });
            }
            None => {}
        }
        self.wait(progress)?;
        Ok(State::File { location, watched, is_removed })
    }

    /// Reports that all current messages are reported, once.
    fn report_end(&mut self) -> bool {
        let is_behind = std::mem::take(&mut self.is_behind);
        if is_behind {
            self.events.push_back(FollowEvent::CaughtUp);
        }
        is_behind
    }

    fn is_idle(&self) -> bool {
        self.options.idle.is_some_and(|idle| self.last.elapsed() >= idle)
    }

    /// Waits for the poll interval.
    fn wait(&self, progress: &dyn Progress) -> Result<(), ErrorKind> {
        let until = Instant::now() + self.options.interval.unwrap_or(INTERVAL);
        loop {
            progress.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(PATIENCE));
        }
    }
}

fn not_found() -> ErrorKind {
    SourceError::Open(io::Error::new(io::ErrorKind::NotFound, "no such file")).into()
}

/// Whether a path is a named pipe, also of a process substitution (`<(…)`).
#[cfg(unix)]
fn is_pipe(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_path: &std::path::Path) -> bool {
    false
}
