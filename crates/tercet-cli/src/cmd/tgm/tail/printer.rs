//! The output of `tgm tail`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tgm::{self, ErrorKind, FileChange, FollowEvent, FollowedMessage};
use tercet::{Format, detect};

use super::Args;
use crate::cmd::tgm::select::{Keys, Row};
use crate::failure::{Failure, Outcome};
use crate::input::wrong_format;
use crate::ui::{self, Ui, WARN, paint};

/// Damaged messages without a complete one between them that are reported one by one.
const MAX_BURST: u64 = 16;

/// Prints events and counts damage.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    args: &'a Args,
    name: String,
    printed: u64,
    damaged: u64,
    /// Damaged messages since the last complete one.
    burst: u64,
    /// The number of unrecognized bytes: those outside messages, without those of damaged messages.
    unrecognized: u64,
    /// The incomplete message at the current end of the input.
    cut: Option<Damage>,
}

#[derive(Debug)]
struct Damage {
    start: u64,
    fault: ErrorKind,
}

/// The JSON line of a message.
#[derive(Serialize)]
struct Line {
    message: u64,
    offset: u64,
    length: u64,
    objects: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Json>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(args: &'a Args, out: &mut Ui) -> Result<Self, Failure> {
        let is_stdin = args.path.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { args.display_name() };
        if !args.json.json {
            let keys = args.keys.iter().flat_map(Keys::iter).map(escape::name);
            let heads = ["message", "offset", "length", "objects"].into_iter().map(Into::into);
            out.line(heads.chain(keys).collect::<Vec<_>>().join("\t"))?;
            out.finish()?;
        }
        Ok(Self { args, name, printed: 0, damaged: 0, burst: 0, unrecognized: 0, cut: None })
    }

    /// Whether the requested number of messages is printed.
    pub(super) fn is_full(&self) -> bool {
        self.printed >= self.args.limit.or(0)
    }

    /// Prints an event.
    pub(super) fn report(&mut self, event: FollowEvent, out: &mut Ui) -> Result<(), Failure> {
        match event {
            FollowEvent::Message(message) => {
                self.print_cut(out)?;
                self.end_burst(out)?;
                self.message(&message, out)
            }
            FollowEvent::Damaged { start, fault: fault @ ErrorKind::TruncatedStream { .. }, .. } => {
                self.print_cut(out)?;
                self.cut = Some(Damage { start, fault });
                Ok(())
            }
            FollowEvent::Damaged { start, fault, .. } => self.damage(Damage { start, fault }, out),
            FollowEvent::Skipped { after_damage: true, .. } => Ok(()),
            FollowEvent::Skipped { span, .. } => {
                self.unrecognized += span.len();
                let (warning, name) = (paint(WARN, "warning:"), escape::name(&self.name));
                out.note(format_args!("{warning} {name}: unrecognized bytes {span}: not part of a message"))
            }
            // Other bytes pass: messages may follow them.
            FollowEvent::Opened { head } => match detect(&head) {
                Some(found) if found != Format::Tgm => Err(wrong_format(&self.name, found, Format::Tgm)),
                _ => Ok(()),
            },
            FollowEvent::Waiting { was_removed: true } => {
                self.note("file removed; waiting for it to reappear", out)
            }
            FollowEvent::Waiting { was_removed: false } => self.note("file not found; waiting for it", out),
            FollowEvent::Changed { change, resumed } => {
                self.print_cut(out)?;
                let what = match (change, resumed) {
                    (FileChange::Truncated, _) => "was truncated",
                    (FileChange::Rewritten, _) => "was rewritten",
                    (FileChange::Replaced, false) => "was replaced by another file",
                    _ => "was replaced",
                };
                let how = if resumed {
                    "continuing after the last complete message"
                } else {
                    "reading from its start"
                };
                self.note(&format!("file {what}; {how}"), out)
            }
            FollowEvent::CaughtUp => out.finish(),
            // Ignore unknown kinds of events.
            _ => Ok(()),
        }
    }

    /// Prints a note about the file.
    fn note(&self, what: &str, out: &mut Ui) -> Result<(), Failure> {
        out.finish()?;
        out.note(format_args!("note: {}: {what}", escape::name(&self.name)))
    }

    fn message(&mut self, message: &FollowedMessage, out: &mut Ui) -> Result<(), Failure> {
        let FollowedMessage { number, span, objects, metadata, .. } = message;
        // Skip message indexes.
        if metadata.is_message_index() || !self.args.filter.takes_metadata(metadata)? {
            return Ok(());
        }
        let all: Vec<u64> = (0..metadata.base.len() as u64).collect();
        let values = Row::of_metadata(metadata, &all);
        self.printed += 1;
        if self.args.json.json {
            return out.json_line(&Line {
                message: *number,
                offset: span.start(),
                length: span.len(),
                objects: *objects,
                keys: self.args.keys.as_ref().map(|keys| values.json(keys)).transpose()?,
            });
        }
        let mut row = format!("{number}\t{}\t{}\t{objects}", span.start(), span.len());
        for key in self.args.keys.iter().flat_map(Keys::iter) {
            // Writing to a String cannot fail.
            let _ = write!(row, "\t{}", escape::name(&values.text(key)?));
        }
        out.line(row)
    }

    fn damage(&mut self, damage: Damage, out: &mut Ui) -> Result<(), Failure> {
        self.damaged += 1;
        self.burst += 1;
        if self.burst > MAX_BURST {
            return Ok(());
        }
        let start = damage.start;
        let passed = format!("skipped the message at byte {start}");
        if let Failure::Error(mut report) = self.failure(damage) {
            report.hint = None;
            out.note(format_args!("{}\n  {passed}", ui::error_text(&report, false)))?;
        }
        Ok(())
    }

    /// Prints the number of damaged messages that were not reported one by one.
    fn end_burst(&mut self, out: &mut Ui) -> Result<(), Failure> {
        let more = std::mem::take(&mut self.burst).saturating_sub(MAX_BURST);
        if more == 0 {
            return Ok(());
        }
        let (warning, name) = (paint(WARN, "warning:"), escape::name(&self.name));
        out.note(format_args!("{warning} {name}: … and {}", counted(more, "more damaged message")))
    }

    /// An incomplete message is damage only if more bytes follow.
    pub(super) fn print_cut(&mut self, out: &mut Ui) -> Result<(), Failure> {
        match self.cut.take() {
            Some(damage) => self.damage(damage, out),
            None => Ok(()),
        }
    }

    fn failure(&self, damage: Damage) -> Failure {
        Failure::for_program(&tgm::Error::new(self.name.as_str().into(), damage.fault), "tgm")
    }

    /// Prints the final summary.
    pub(super) fn end(&mut self, out: &mut Ui) -> Result<Outcome, Failure> {
        out.finish()?;
        self.end_burst(out)?;
        if self.damaged > 0 || self.unrecognized > 0 {
            let (warning, name) = (paint(WARN, "warning:"), escape::name(&self.name));
            let damaged = counted(self.damaged, "damaged message");
            let unrecognized = counted(self.unrecognized, "unrecognized byte");
            out.note(format_args!("{warning} {name}: {damaged}, {unrecognized}"))?;
        }
        if let Some(damage) = self.cut.take() {
            let start = damage.start;
            return Err(self.failure(damage).with_hint(format!("the message starts at byte {start}")));
        }
        Ok(if self.damaged > 0 || self.unrecognized > 0 { Outcome::CheckFailed } else { Outcome::Done })
    }
}
