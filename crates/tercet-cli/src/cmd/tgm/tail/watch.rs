//! A file that grows, shrinks, is replaced, goes away and comes back.

use std::time::{Duration, Instant};

use tercet::core::{SourceError, Span};
use tercet::tgm::{File, FollowedMessage, Follower, ReadOptions};

use super::consumed::Consumed;
use super::growing::{Growing, Place, Stamp};
use super::teller::Teller;
use super::{Args, Flow};
use crate::failure::Failure;
use crate::ui::{Ui, is_interrupted};

/// Bytes read at a time.
const PIECE: usize = 256 << 10;
/// Bytes in front of the first message that are read to know the file again.
const BEFORE: u64 = 64 << 10;
/// How often to look whether the user wants to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Tells the messages of whatever is at a place.
pub(super) fn watch(
    args: &Args,
    place: &dyn Place,
    teller: &mut Teller<'_>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let fail = |error| Failure::source(&args.shown(), error);
    let mut clock = Clock { args, last: Instant::now() };
    let mut watched = wait_for(place, &clock, teller, out)?;
    clock.something_came();
    let mut is_gone = false;
    loop {
        let before = watched.consumed.end();
        match watched.read_on(teller, out).map_err(|error| error.or(fail))? {
            Seen::Enough => return Ok(()),
            Seen::End => {}
            Seen::Changed(what) => {
                watched.start_again(what, teller, out).map_err(|error| error.or(fail))?;
                clock.something_came();
                continue;
            }
        }
        if watched.consumed.end() > before {
            clock.something_came();
        }
        if args.no_follow || clock.is_over() {
            break;
        }
        match place.identity().map_err(fail)? {
            Some(identity) if identity == watched.thing.identity() => is_gone = false,
            Some(_) => {
                is_gone = false;
                let Some(thing) = place.open().map_err(fail)? else { continue };
                if watched.take_over(thing, teller, out).map_err(|error| error.or(fail))? == Flow::Enough {
                    return Ok(());
                }
                continue;
            }
            None if !args.retry => {
                // What was written before it went away.
                if matches!(watched.read_on(teller, out).map_err(|error| error.or(fail))?, Seen::Enough) {
                    return Ok(());
                }
                teller.tell_end(&mut watched.follower, out)?;
                teller.tell_cut(out)?;
                return Err(missing(args, fail));
            }
            None if !is_gone => {
                is_gone = true;
                teller.note("is gone; waiting for it to come back", out)?;
            }
            None => {}
        }
        clock.wait()?;
    }
    teller.tell_end(&mut watched.follower, out).map(|_| ())
}

/// Opens what is at a place, once it is there.
fn wait_for(
    place: &dyn Place,
    clock: &Clock<'_>,
    teller: &Teller<'_>,
    out: &mut Ui,
) -> Result<Watched, Failure> {
    let args = clock.args;
    let fail = |error| Failure::source(&args.shown(), error);
    let mut is_told = false;
    loop {
        if let Some(thing) = place.open().map_err(fail)? {
            // What comes later is new: all of it.
            let last = args.last.filter(|_| !is_told);
            return Watched::start(thing, last).map_err(|stopped| stopped.or(fail));
        }
        if !args.retry {
            return Err(missing(args, fail));
        }
        if !is_told {
            is_told = true;
            teller.note("is not there yet; waiting for it", out)?;
        }
        if args.no_follow || clock.is_over() {
            return Err(missing(args, fail));
        }
        clock.wait()?;
    }
}

fn missing(args: &Args, fail: impl Fn(SourceError) -> Failure) -> Failure {
    let nothing = std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such file");
    let failure = fail(SourceError::Open(nothing));
    if args.retry { failure } else { failure.with_hint("`--retry` waits for it") }
}

/// When to look, and when to stop.
struct Clock<'a> {
    args: &'a Args,
    last: Instant,
}

impl Clock<'_> {
    fn something_came(&mut self) {
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

/// A file, and what came of it.
struct Watched {
    thing: Box<dyn Growing>,
    follower: Follower,
    consumed: Consumed,
    /// The number of the message behind the last one that was whole.
    next: u64,
    /// When it was changed, at the last look.
    stamp: Stamp,
    /// Whether a catalogue came behind it: whoever adds a message writes another one in its place.
    has_catalogue: bool,
}

/// How reading went.
enum Seen {
    /// Up to where the file ends now.
    End,
    /// There were as many messages as were asked for.
    Enough,
    /// The file is another one than it was.
    Changed(&'static str),
}

/// A file that cannot be read, or a user who wants no more.
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
    /// From the first byte, or with the last messages that are there.
    fn start(thing: Box<dyn Growing>, last: Option<u64>) -> Result<Self, Stopped> {
        let Some(last) = last else {
            let consumed = Consumed::starting_with(0, &[]);
            let follower = Follower::new();
            return Ok(Self { thing, follower, consumed, next: 0, stamp: None, has_catalogue: false });
        };
        let file = File::from_source(thing.snapshot()?, ReadOptions::new());
        let messages = file.scan().map_err(Failure::from)?.messages.clone();
        let number = messages.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX));
        let end = messages.last().map_or(0, |message| message.end());
        let at = messages.get(number).map_or(end, |message| message.start());
        let before = Span::between(at.saturating_sub(BEFORE), at).unwrap_or(Span::empty(at));
        let consumed = Consumed::starting_with(before.start(), &file.source().read_at(before)?);
        let next = number as u64;
        let follower = Follower::new().starting_at(at, next);
        Ok(Self { thing, follower, consumed, next, stamp: None, has_catalogue: false })
    }

    /// Forgets everything: the file is read from its start.
    fn restart(&mut self) {
        self.follower = Follower::new();
        self.consumed = Consumed::starting_with(0, &[]);
        self.next = 0;
    }

    /// Goes on behind the last message that was whole, and forgets the half one behind it.
    fn rewind(&mut self) {
        self.consumed.rewind();
        self.follower = Follower::new().starting_at(self.consumed.whole_end(), self.next);
    }

    /// Reads a file again that changed: behind the messages that were told, if they are still there, as when a writer
    /// takes back half a message; else from its start.
    fn start_again(&mut self, what: &str, teller: &Teller<'_>, out: &mut Ui) -> Result<(), Stopped> {
        if self.consumed.whole_is_start_of(&*self.thing)? {
            self.rewind();
            teller.note(&format!("{what}; going on behind the last whole message"), out)?;
        } else {
            self.restart();
            teller.note(&format!("{what}, so it is read from its start"), out)?;
        }
        Ok(())
    }

    /// Reads up to where the file ends now.
    fn read_on(&mut self, teller: &mut Teller<'_>, out: &mut Ui) -> Result<Seen, Stopped> {
        let mut buffer = Vec::new();
        loop {
            if is_interrupted() {
                return Err(Failure::Interrupted.into());
            }
            let ((len, stamp), end) = (self.thing.look()?, self.consumed.end());
            // Written anew with the same length, or a length was filled in.
            let is_suspect = len == end && stamp != self.stamp && self.stamp.is_some();
            self.stamp = stamp;
            if is_suspect && !self.consumed.looks_like(&*self.thing)? {
                return Ok(Seen::Changed("was written anew"));
            }
            if len == end {
                return Ok(Seen::End);
            }
            if len < end {
                return Ok(Seen::Changed("shrank"));
            }
            // The last bytes that are known come along: if they are others now, so is the file.
            let known = self.consumed.recent().len();
            buffer.resize(known + usize::try_from(len - end).unwrap_or(PIECE).min(PIECE), 0);
            let read = self.thing.read_at(end - known as u64, &mut buffer)?;
            let (again, new) = buffer[..read].split_at(known.min(read));
            if again.len() < known {
                return Ok(Seen::Changed("shrank"));
            }
            if !self.consumed.ends_with(again) {
                return Ok(Seen::Changed("was written anew"));
            }
            self.consumed.add(new);
            self.follower.push(new);
            if self.tell(new, teller, out)? == Flow::Enough {
                return Ok(Seen::Enough);
            }
        }
    }

    /// Tells what became whole with these bytes, and remembers it.
    fn tell(&mut self, new: &[u8], teller: &mut Teller<'_>, out: &mut Ui) -> Result<Flow, Failure> {
        let Self { follower, consumed, next, has_catalogue, .. } = self;
        let seen = |message: &FollowedMessage| {
            if message.preamble.known_length().is_none() {
                consumed.add_open_message(message.span.start());
            }
            *has_catalogue = message.metadata.is_message_index();
            if !*has_catalogue && consumed.add_whole(message.span.end(), new) {
                *next = message.number + 1;
            }
        };
        let flow = teller.tell(follower, seen, out)?;
        if let Some((start, preamble)) = self.follower.pending()
            && preamble.known_length().is_none()
        {
            self.consumed.add_open_message(start);
        }
        Ok(flow)
    }

    /// Goes on with a file that took the place of this one: behind what is known of it, or from its start.
    fn take_over(
        &mut self,
        thing: Box<dyn Growing>,
        teller: &mut Teller<'_>,
        out: &mut Ui,
    ) -> Result<Flow, Stopped> {
        if self.consumed.is_start_of(&*thing)? {
            self.thing = thing;
            return Ok(Flow::GoOn);
        }
        if self.consumed.whole_is_start_of(&*thing)? {
            self.thing = thing;
            self.rewind();
            if !std::mem::take(&mut self.has_catalogue) {
                teller.note("was replaced; going on behind the last whole message", out)?;
            }
            return Ok(Flow::GoOn);
        }
        // What was written before it was replaced belongs to it.
        if matches!(self.read_on(teller, out)?, Seen::Enough) {
            return Ok(Flow::Enough);
        }
        if teller.tell_end(&mut self.follower, out)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
        teller.tell_cut(out)?;
        teller.note("was replaced by another file, which is read from its start", out)?;
        self.thing = thing;
        self.restart();
        Ok(Flow::GoOn)
    }
}
