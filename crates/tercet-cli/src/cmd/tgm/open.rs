//! Opening and scanning `.tgm` files.

use std::sync::Arc;

use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{ByteSource, Class, Diagnostic as _, Span, escape};
use tercet::tgm::{File, MAGIC, Message, ReadOptions};

use super::select::Filter;
use crate::args::limits;
use crate::failure::Failure;
use crate::input::must_be;
use crate::ui::{Ui, WARN, is_interrupted, paint};

/// Ranges of unrecognized bytes that are printed one by one.
const MAX_RANGES: usize = 4;

/// Read options of a `.tgm` file.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ReadArgs {
    /// Skip hash verification and tolerate inconsistent messages, for data recovery
    #[arg(long)]
    pub(crate) ignore_checksums: bool,
}

impl ReadArgs {
    /// Scans the messages of a file and warns about unrecognized bytes. A non-empty file without a message is an error.
    pub(super) fn open(self, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<File, Failure> {
        Self::open_with(source, self.options(), out)
    }

    /// The options of the library.
    pub(super) fn options(self) -> ReadOptions {
        let options =
            ReadOptions::new().with_verify(!self.ignore_checksums).with_strict(!self.ignore_checksums);
        options.with_limits(limits())
    }

    /// Like [`open`](Self::open), with other options.
    pub(super) fn open_with(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        out: &mut Ui,
    ) -> Result<File, Failure> {
        let file = File::from_source(must_be(source, Format::Tgm)?, options)?;
        let bar = out.bar("scanning", file.len());
        let scan = file.scan_with(&bar)?;
        drop(bar);
        if scan.messages.is_empty() && !file.is_empty() {
            // A file that starts like a message has a better error: truncated, or another version.
            let whole = Span::first(file.len());
            let first = Message::open(Arc::clone(file.source()), 0, whole, options);
            if let Err(error) = first
                && error.span().is_none_or(|span| span.start() >= MAGIC.len() as u64)
            {
                return Err(error.into());
            }
            let message = format!("{}: contains no messages", file.name());
            return Err(
                Failure::new(Class::Malformed, message).with_hint("inspect the bytes with `tgm outline`")
            );
        }
        if let Some(reason) = file.rejected_index()? {
            let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()));
            let reason = reason.to_string().replace("\n  ", ": ");
            out.note(format_args!("{warning} {name}: ignoring the message index: {reason}"))?;
        }
        warn_of_unrecognized(file.name(), &scan.unrecognized, out)?;
        Ok(file)
    }

    /// Verifies the hashes of a message's objects, if any, and payload sizes.
    pub(super) fn check_objects(self, message: &Message) -> Result<(), Failure> {
        if !self.ignore_checksums {
            for object in message.objects() {
                let object = object?;
                object.verify()?;
                match object.decoded_len() {
                    // An unsupported pipeline is not an error of the file.
                    Err(error) if error.class() != Class::Unsupported => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Calls `each` for matching messages and their matching objects, at most `left` messages; returns their number. Stops at
/// the first message that cannot be read. A message index with the keys of the filter avoids reading the other messages.
pub(super) fn for_each_message(
    file: &File,
    filter: &Filter,
    left: &mut u64,
    mut each: impl FnMut(&Message, &[u64]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut matched = 0;
    if *left == 0 {
        return Ok(matched);
    }
    // Returns whether to go on.
    let mut each = |message: &Message| {
        let Some(objects) = filter.takes(message)? else { return Ok(true) };
        each(message, &objects)?;
        matched += 1;
        *left -= 1;
        Ok::<bool, Failure>(*left > 0)
    };
    if let Some(chosen) = filter.chosen(file)? {
        for &number in &chosen.numbers {
            let message = file.message(number)?;
            if !chosen.agrees(&message) {
                let (name, number) = (escape::name(file.name()), message.number());
                let message = format!("{name}: the message index does not match message {number}");
                let failure = Failure::new(Class::Corrupt, message);
                return Err(failure.with_hint("rebuild it with `tgm index FILE --rebuild`"));
            }
            stop_if_interrupted()?;
            // The index does not have all values: the message decides.
            if !each(&message)? {
                break;
            }
        }
        return Ok(matched);
    }
    for message in file.messages()? {
        stop_if_interrupted()?;
        let message = message?;
        if !each(&message)? {
            break;
        }
    }
    Ok(matched)
}

fn stop_if_interrupted() -> Result<(), Failure> {
    if is_interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Warns about unrecognized bytes: those outside messages.
pub(super) fn warn_of_unrecognized(name: &str, spans: &[Span], out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), escape::name(name));
    for span in spans.iter().take(MAX_RANGES) {
        out.note(format_args!("{warning} {name}: unrecognized bytes {span}: not part of a message"))?;
    }
    match spans.get(MAX_RANGES..) {
        Some(rest @ [_, ..]) => {
            let bytes = counted(rest.iter().map(|span| span.len()).sum(), "unrecognized byte");
            let more = counted(rest.len() as u64, "more range");
            out.note(format_args!("{warning} {name}: … and {more}, {bytes}"))
        }
        _ => Ok(()),
    }
}
