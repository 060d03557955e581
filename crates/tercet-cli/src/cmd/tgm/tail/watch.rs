//! Watching a file that grows, shrinks, is replaced, removed or recreated.

use std::time::{Duration, Instant};

use tercet::core::{SourceError, Span};
use tercet::tgm::{File, FollowedMessage, Follower, ReadOptions};
use tercet::{Format, HEAD_LEN, detect};

use super::consumed::Consumed;
use super::growing::{FileLocation, GrowingFile, Stamp};
use super::printer::Printer;
use super::{Args, Flow};
use crate::args::limits;
use crate::failure::Failure;
use crate::input::wrong_format;
use crate::ui::{Ui, is_interrupted};

/// Read buffer size.
const PIECE: usize = 256 << 10;
/// Bytes before the first message that are read to recognise the file.
const BEFORE: u64 = 64 << 10;
/// Interval of checks for interrupts.
const PATIENCE: Duration = Duration::from_millis(50);

/// Prints the messages of the file at a location.
pub(super) fn watch(
    args: &Args,
    location: &dyn FileLocation,
    printer: &mut Printer<'_>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let fail = |error| Failure::source(&args.display_name(), error);
    let mut clock = Clock { args, last: Instant::now() };
    let mut watched = wait_for(location, &clock, printer, out)?;
    clock.reset_idle();
    let mut is_gone = false;
    loop {
        let before = watched.consumed.end();
        match watched.read_on(printer, out).map_err(|error| error.or(fail))? {
            Seen::Enough => return Ok(()),
            Seen::End => {}
            Seen::Changed(what) => {
                watched.start_again(what, printer, out).map_err(|error| error.or(fail))?;
                clock.reset_idle();
                continue;
            }
        }
        if watched.consumed.end() > before {
            clock.reset_idle();
        }
        if args.no_follow || clock.is_over() {
            break;
        }
        match location.file_id().map_err(fail)? {
            Some(file_id) if file_id == watched.open_file.file_id() => is_gone = false,
            Some(_) => {
                is_gone = false;
                let Some(open_file) = location.open().map_err(fail)? else { continue };
                if watched.take_over(open_file, printer, out).map_err(|error| error.or(fail))? == Flow::Enough
                {
                    return Ok(());
                }
                continue;
            }
            None if !args.retry => {
                // Read what was written before the removal.
                if matches!(watched.read_on(printer, out).map_err(|error| error.or(fail))?, Seen::Enough) {
                    return Ok(());
                }
                printer.print_end(&mut watched.follower, out)?;
                printer.print_cut(out)?;
                return Err(missing(args, fail));
            }
            None if !is_gone => {
                is_gone = true;
                printer.note("file removed; waiting for it to reappear", out)?;
            }
            None => {}
        }
        clock.wait()?;
    }
    printer.print_end(&mut watched.follower, out).map(|_| ())
}

/// Opens the file, waiting for it with `--retry`.
fn wait_for(
    location: &dyn FileLocation,
    clock: &Clock<'_>,
    printer: &Printer<'_>,
    out: &mut Ui,
) -> Result<Watched, Failure> {
    let args = clock.args;
    let fail = |error| Failure::source(&args.display_name(), error);
    let mut is_noted = false;
    loop {
        if let Some(open_file) = location.open().map_err(fail)? {
            // A file that appears later is read from its start.
            let last = args.last.filter(|_| !is_noted);
            check_format(args, &*open_file).map_err(|stopped| stopped.or(fail))?;
            return Watched::start(open_file, last).map_err(|stopped| stopped.or(fail));
        }
        if !args.retry {
            return Err(missing(args, fail));
        }
        if !is_noted {
            is_noted = true;
            printer.note("file not found; waiting for it", out)?;
        }
        if args.no_follow || clock.is_over() {
            return Err(missing(args, fail));
        }
        clock.wait()?;
    }
}

/// Rejects a file of another container format. Other bytes pass: messages may follow them.
fn check_format(args: &Args, open_file: &dyn GrowingFile) -> Result<(), Stopped> {
    let mut head = vec![0; usize::try_from(open_file.len()?.min(HEAD_LEN)).unwrap_or(0)];
    let read = open_file.read_at(0, &mut head)?;
    match head.get(..read).and_then(detect) {
        Some(found) if found != Format::Tgm => {
            Err(wrong_format(&args.display_name(), found, Format::Tgm).into())
        }
        _ => Ok(()),
    }
}

fn missing(args: &Args, fail: impl Fn(SourceError) -> Failure) -> Failure {
    let nothing = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
    let failure = fail(SourceError::Open(nothing));
    if args.retry { failure } else { failure.with_hint("add `--retry` to wait for it") }
}

/// Poll interval and idle timeout.
struct Clock<'a> {
    args: &'a Args,
    last: Instant,
}

impl Clock<'_> {
    fn reset_idle(&mut self) {
        self.last = Instant::now();
    }

    fn is_over(&self) -> bool {
        self.args.idle.is_some_and(|idle| self.last.elapsed() >= idle)
    }

    fn wait(&self) -> Result<(), Failure> {
        let until = Instant::now() + self.args.interval();
        loop {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(PATIENCE));
        }
    }
}

/// The state of a watched file.
struct Watched {
    open_file: Box<dyn GrowingFile>,
    follower: Follower,
    consumed: Consumed,
    /// The number of the next message.
    next: u64,
    /// The modification stamp of the last poll.
    stamp: Stamp,
    /// Whether a message index follows, which is replaced when a message is appended.
    has_index: bool,
}

/// The result of reading.
enum Seen {
    /// Reached the current end of the file.
    End,
    /// The requested number of messages was printed.
    Enough,
    /// The file was truncated or rewritten.
    Changed(&'static str),
}

/// A read error, or another failure.
enum Stopped {
    Source(SourceError),
    Failure(Failure),
}

impl Stopped {
    fn or(self, fail: impl Fn(SourceError) -> Failure) -> Failure {
        match self {
            Self::Source(error) => fail(error),
            Self::Failure(failure) => failure,
        }
    }
}

impl From<SourceError> for Stopped {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Watched {
    /// Starts at the first byte, or with the last messages.
    fn start(open_file: Box<dyn GrowingFile>, last: Option<u64>) -> Result<Self, Stopped> {
        let Some(last) = last else {
            let consumed = Consumed::starting_with(0, &[]);
            let follower = Follower::new();
            return Ok(Self { open_file, follower, consumed, next: 0, stamp: None, has_index: false });
        };
        let file = File::from_source(open_file.snapshot()?, ReadOptions::new().with_limits(limits()))
            .map_err(Failure::from)?;
        let messages = file.scan().map_err(Failure::from)?.messages.clone();
        let number = messages.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX));
        let end = messages.last().map_or(0, |message| message.end());
        let at = messages.get(number).map_or(end, |message| message.start());
        let before = Span::between(at.saturating_sub(BEFORE), at).unwrap_or(Span::empty(at));
        let consumed = Consumed::starting_with(before.start(), &file.source().read_at(before)?);
        let next = number as u64;
        let follower = Follower::new().starting_at(at, next);
        Ok(Self { open_file, follower, consumed, next, stamp: None, has_index: false })
    }

    /// Restarts at the first byte.
    fn restart(&mut self) {
        self.follower = Follower::new();
        self.consumed = Consumed::starting_with(0, &[]);
        self.next = 0;
    }

    /// Continues after the last complete message.
    fn rewind(&mut self) {
        self.consumed.rewind();
        self.follower = Follower::new().starting_at(self.consumed.whole_end(), self.next);
    }

    /// Handles a changed file: continues after the printed messages if they are unchanged, as when a writer
    /// removes an incomplete message; else restarts.
    fn start_again(&mut self, what: &str, printer: &Printer<'_>, out: &mut Ui) -> Result<(), Stopped> {
        if self.consumed.whole_is_start_of(&*self.open_file)? {
            self.rewind();
            // An append replaces the index at the end.
            if !std::mem::take(&mut self.has_index) {
                printer.note(&format!("file {what}; continuing after the last complete message"), out)?;
            }
        } else {
            self.restart();
            printer.note(&format!("file {what}; reading from its start"), out)?;
        }
        Ok(())
    }

    /// Reads to the current end of the file.
    fn read_on(&mut self, printer: &mut Printer<'_>, out: &mut Ui) -> Result<Seen, Stopped> {
        let mut buffer = Vec::new();
        loop {
            if is_interrupted() {
                return Err(Failure::Interrupted.into());
            }
            let ((len, stamp), end) = (self.open_file.stat()?, self.consumed.end());
            // Rewritten with the same length, or a length field was filled in.
            let is_suspect = len == end && stamp != self.stamp && self.stamp.is_some();
            self.stamp = stamp;
            if is_suspect && !self.consumed.looks_like(&*self.open_file)? {
                return Ok(Seen::Changed("was rewritten"));
            }
            if len == end {
                return Ok(Seen::End);
            }
            if len < end {
                return Ok(Seen::Changed("was truncated"));
            }
            // Read the most recent bytes again: if they differ, the file was rewritten.
            let known = self.consumed.recent().len();
            buffer.resize(known + usize::try_from(len - end).unwrap_or(PIECE).min(PIECE), 0);
            let read = self.open_file.read_at(end - known as u64, &mut buffer)?;
            let (again, new) = buffer[..read].split_at(known.min(read));
            if again.len() < known {
                return Ok(Seen::Changed("was truncated"));
            }
            if !self.consumed.ends_with(again) {
                return Ok(Seen::Changed("was rewritten"));
            }
            self.consumed.add(new);
            self.follower.push(new);
            if self.print(new, printer, out)? == Flow::Enough {
                return Ok(Seen::Enough);
            }
        }
    }

    /// Prints the messages completed by these bytes, and records them.
    fn print(&mut self, new: &[u8], printer: &mut Printer<'_>, out: &mut Ui) -> Result<Flow, Failure> {
        let Self { follower, consumed, next, has_index, .. } = self;
        let seen = |message: &FollowedMessage| {
            if message.preamble.known_length().is_none() {
                consumed.add_open_message(message.span.start());
            }
            *has_index = message.metadata.is_message_index();
            if !*has_index && consumed.add_whole(message.span.end(), new) {
                *next = message.number + 1;
            }
        };
        let flow = printer.print(follower, seen, out)?;
        if let Some((start, preamble)) = self.follower.pending()
            && preamble.known_length().is_none()
        {
            self.consumed.add_open_message(start);
        }
        Ok(flow)
    }

    /// Switches to a file that replaced this one: continues after the known bytes, or restarts.
    fn take_over(
        &mut self,
        open_file: Box<dyn GrowingFile>,
        printer: &mut Printer<'_>,
        out: &mut Ui,
    ) -> Result<Flow, Stopped> {
        if self.consumed.is_start_of(&*open_file)? {
            self.open_file = open_file;
            return Ok(Flow::GoOn);
        }
        if self.consumed.whole_is_start_of(&*open_file)? {
            self.open_file = open_file;
            self.rewind();
            if !std::mem::take(&mut self.has_index) {
                printer.note("file was replaced; continuing after the last complete message", out)?;
            }
            return Ok(Flow::GoOn);
        }
        // Read what was written before the replacement.
        if matches!(self.read_on(printer, out)?, Seen::Enough) {
            return Ok(Flow::Enough);
        }
        if printer.print_end(&mut self.follower, out)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
        printer.print_cut(out)?;
        printer.note("file was replaced by another file; reading from its start", out)?;
        self.open_file = open_file;
        self.restart();
        Ok(Flow::GoOn)
    }
}
