//! Opening and scanning `.tgm` files.

use std::path::PathBuf;
use std::sync::Arc;

use tercet::Format;
use tercet::core::num::counted;
use tercet::core::{ByteSource, Class, Diagnostic as _, Span, escape};
use tercet::tgm::{File, Gap, MAGIC, Message, ReadOptions};

use super::select::Filter;
use crate::args::limits;
use crate::failure::{Failure, Outcome};
use crate::input::must_be;
use crate::persona::is_reference;
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

/// Options for files with gaps or an incomplete end.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct DamageArgs {
    /// Skip gaps between messages; messages may be lost in them
    #[arg(long)]
    pub(crate) allow_gaps: bool,
    /// Skip an incomplete message at the end of the file
    #[arg(long)]
    pub(crate) allow_truncated: bool,
}

impl DamageArgs {
    /// Rejects gaps and an incomplete end unless they are allowed.
    pub(super) fn check(self, file: &File) -> Result<(), Failure> {
        if is_reference() {
            return Ok(());
        }
        let name = escape::name(file.name());
        let cut_tail = file.cut_tail()?;
        let is_gap = |gap: &Gap| cut_tail.is_none_or(|cut| gap.span.end() != cut.span.end());
        if let Some(gap) = file.gaps()?.into_iter().find(is_gap).filter(|_| !self.allow_gaps) {
            let failure = Failure::new(Class::Malformed, format!("{name}: {gap}; messages may be lost"));
            return Err(failure.with_hint(
                "recover what is left with `tgm repair FILE -o NEW`, or skip the gap with `--allow-gaps`",
            ));
        }
        if let Some(cut) = cut_tail.filter(|_| !self.allow_truncated) {
            let failure = Failure::new(Class::Malformed, format!("{name}: {cut}"));
            return Err(failure.with_hint("skip the incomplete message with `--allow-truncated`"));
        }
        Ok(())
    }
}

impl ReadArgs {
    /// Opens a file whose messages are written to another one. Gaps and an incomplete end are errors unless they are
    /// allowed, and so is a file without messages.
    pub(super) fn open_complete(
        self,
        source: Arc<dyn ByteSource>,
        damage: DamageArgs,
        out: &mut Ui,
    ) -> Result<File, Failure> {
        let file = Self::scanned(source, self.options().with_allow_gaps(true), out)?;
        damage.check(&file)?;
        warn_of_index(&file, out)?;
        warn_of_gaps(&file, out)?;
        Ok(file)
    }

    /// Scans the messages of a file and warns about unrecognized bytes. A file without a message is an error.
    pub(super) fn open(self, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<File, Failure> {
        Self::open_with(source, self.options(), out)
    }

    /// Like [`open`](Self::open); the file may be empty, as before the first append.
    pub(super) fn open_or_empty(self, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<File, Failure> {
        if source.is_empty() { Self::unscanned(source, self.options()) } else { self.open(source, out) }
    }

    /// The options of the library.
    pub(super) fn options(self) -> ReadOptions {
        let options =
            ReadOptions::new().with_verify(!self.ignore_checksums).with_strict(!self.ignore_checksums);
        // The reference implementation numbers the messages that it finds.
        options.with_limits(limits()).with_allow_gaps(is_reference())
    }

    /// Like [`open`](Self::open), with other options.
    pub(super) fn open_with(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        out: &mut Ui,
    ) -> Result<File, Failure> {
        let file = Self::scanned(source, options, out)?;
        warn_of_index(&file, out)?;
        warn_of_gaps(&file, out)?;
        Ok(file)
    }

    /// Scans the messages of a file. A file without a message is an error.
    fn scanned(source: Arc<dyn ByteSource>, options: ReadOptions, out: &Ui) -> Result<File, Failure> {
        let file = Self::unscanned(source, options)?;
        let bar = out.bar("scanning", file.len());
        let scan = file.scan_with(&bar)?;
        drop(bar);
        if scan.messages.is_empty() && !(is_reference() && file.is_empty()) {
            // A file that starts like a message has a better error: truncated, or another version.
            if let Some(cut) = file.cut_tail()?.filter(|_| !is_reference()) {
                let message = format!("{}: {cut}", escape::name(file.name()));
                return Err(
                    Failure::new(Class::Malformed, message).with_hint("inspect the bytes with `tgm outline`")
                );
            }
            if file.is_empty() {
                let message = format!("{}: contains no messages", escape::name(file.name()));
                return Err(Failure::new(Class::Malformed, message));
            }
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
        Ok(file)
    }

    /// Opens a file of which no message is found yet. An index file beside it is used.
    fn unscanned(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<File, Failure> {
        let source = must_be(source, Format::Tgm)?;
        let path = (!source.is_remote()).then(|| PathBuf::from(&**source.name()));
        let file = File::from_source(source, options)?;
        Ok(match path {
            Some(path) => file.with_index_file_of(&path),
            None => file,
        })
    }

    /// Opens a file and finds its messages up to `number`. Bytes after it are not looked at.
    pub(super) fn open_up_to(
        source: Arc<dyn ByteSource>,
        number: u64,
        options: ReadOptions,
        out: &mut Ui,
    ) -> Result<File, Failure> {
        let file = Self::unscanned(Arc::clone(&source), options)?;
        if file.message_span(number).is_err() {
            // Report everything that may be the reason.
            return Self::open_with(source, options, out);
        }
        warn_of_index(&file, out)?;
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
        // They are selected by their keys, not by their numbers.
        let file = file.clone().with_options(file.options().with_allow_gaps(true));
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

/// Warns about an index that is not used.
fn warn_of_index(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let Some(reason) = file.rejected_index()? else { return Ok(()) };
    let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()));
    let reason = reason.to_string().replace("\n  ", ": ");
    out.note(format_args!("{warning} {name}: ignoring the message index: {reason}"))
}

/// Warns about gaps between messages and an incomplete message at the end.
pub(super) fn warn_of_gaps(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()));
    let cut_tail = file.cut_tail()?;
    let mut gaps = file.gaps()?;
    gaps.retain(|gap| cut_tail.is_none_or(|cut| gap.span.end() != cut.span.end()));
    for gap in gaps.iter().take(MAX_RANGES) {
        out.note(format_args!("{warning} {name}: {gap}"))?;
    }
    if let Some(rest @ [_, ..]) = gaps.get(MAX_RANGES..) {
        let bytes = counted(rest.iter().map(|gap| gap.span.len()).sum(), "byte");
        let more = counted(rest.len() as u64, "more gap");
        out.note(format_args!("{warning} {name}: … and {more}, {bytes}"))?;
    }
    match cut_tail {
        Some(cut) => out.note(format_args!("{warning} {name}: {cut}")),
        None => Ok(()),
    }
}

/// The outcome of listing a file: a file that ends inside a message is not listed completely.
pub(super) fn listed(file: &File) -> Result<Outcome, Failure> {
    let is_cut = !is_reference() && file.cut_tail()?.is_some();
    Ok(if is_cut { Outcome::CheckFailed } else { Outcome::Done })
}
