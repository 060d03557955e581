//! A file of messages, opened and looked through.

use std::sync::Arc;

use tercet::core::{ByteSource, Class, Diagnose as _, Span, escape};
use tercet::tgm::{File, MAGIC, Message, ReadOptions};

use super::select::Filter;
use crate::failure::Failure;
use crate::ui::{Ui, WARN, is_interrupted, paint};

/// Gaps that are told one by one before it is said how many more there are.
const GAPS_SHOWN: usize = 4;

/// How a file of messages is read.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Reading {
    /// Compare no hashes, and read messages that contradict themselves: for what can be had of a damaged file
    #[arg(long)]
    pub(crate) ignore_checksums: bool,
}

impl Reading {
    /// Finds the messages of a file and tells on standard error about bytes that belong to none. A file that has
    /// bytes but no message is an error.
    pub(super) fn open(self, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<File, Failure> {
        Self::open_with(source, self.options(), out)
    }

    /// What is asked of the library.
    pub(super) fn options(self) -> ReadOptions {
        let options = ReadOptions::new().with_ignore_checksums(self.ignore_checksums);
        #[cfg(feature = "sz3")]
        let options = options.with_sz3(sz3());
        options
    }

    /// Like [`open`](Self::open), with other options.
    pub(super) fn open_with(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        out: &mut Ui,
    ) -> Result<File, Failure> {
        let file = File::from_source(source, options);
        let bar = out.bar("scanning", file.len());
        let scan = file.scan_with(&bar)?;
        drop(bar);
        if scan.messages.is_empty() && !file.is_empty() {
            // A file that starts like a message is told what is wrong with it: cut, or of another version.
            let whole = Span::first(file.len());
            let first = Message::open(Arc::clone(file.source()), 0, whole, options);
            if let Err(error) = first
                && error.span().is_none_or(|span| span.start() >= MAGIC.len() as u64)
            {
                return Err(error.into());
            }
            let said = format!("{}: holds no message", file.name());
            return Err(Failure::new(Class::Malformed, said).with_hint("`tgm outline` shows the bytes"));
        }
        if let Some(reason) = file.rejected_index()? {
            let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()));
            let reason = reason.to_string().replace("\n  ", ": ");
            out.note(format_args!("{warning} {name}: its catalogue is not used: {reason}"))?;
        }
        warn_of_gaps(file.name(), &scan.junk, out)?;
        Ok(file)
    }

    /// Compares the objects of a message with their hashes, as far as they have some, and payloads with their shapes.
    pub(super) fn check_objects(self, message: &Message) -> Result<(), Failure> {
        if !self.ignore_checksums {
            for object in message.objects() {
                let object = object?;
                object.verify()?;
                match object.decoded_len() {
                    // What cannot be decoded here may be right all the same.
                    Err(error) if error.class() != Class::Unsupported => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// How SZ3 payloads are read. Their library can be crashed by what it decodes: let that be another process.
#[cfg(feature = "sz3")]
pub(super) fn sz3() -> tercet::tgm::Sz3Decoding {
    tercet::tgm::Sz3Decoding::External(super::sz3::decode_in_child)
}

/// Hands over every message that the filter takes. The first one that cannot be read ends the work; a catalogue that knows
/// the key of the filter spares reading the others.
pub(super) fn for_each_message(
    file: &File,
    filter: &Filter,
    mut each: impl FnMut(&Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(chosen) = filter.chosen(file)? {
        for &number in &chosen.numbers {
            let message = file.message(number)?;
            if !chosen.agrees(&message) {
                let (name, number) = (escape::name(file.name()), message.number());
                let said = format!("{name}: the catalogue does not say what message {number} says");
                let failure = Failure::new(Class::Corrupt, said);
                return Err(failure.with_hint("`tgm index FILE --anew` makes the catalogue anew"));
            }
            stop_if_interrupted()?;
            // What the catalogue does not hold only the message knows.
            if filter.takes(&message) {
                each(&message)?;
            }
        }
        return Ok(());
    }
    for message in file.messages()? {
        stop_if_interrupted()?;
        let message = message?;
        if filter.takes(&message) {
            each(&message)?;
        }
    }
    Ok(())
}

fn stop_if_interrupted() -> Result<(), Failure> {
    if is_interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Tells on standard error about bytes that belong to no message.
pub(super) fn warn_of_gaps(name: &str, gaps: &[Span], out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), escape::name(name));
    for gap in gaps.iter().take(GAPS_SHOWN) {
        out.note(format_args!("{warning} {name}: bytes {gap} belong to no message"))?;
    }
    match gaps.get(GAPS_SHOWN..) {
        Some(rest @ [_, ..]) => {
            let bytes: u64 = rest.iter().map(|gap| gap.len()).sum();
            let more = rest.len();
            out.note(format_args!("{warning} {name}: … and {more} more gaps with {bytes} bytes"))
        }
        _ => Ok(()),
    }
}
