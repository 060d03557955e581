//! Whether a catalogue says what the messages say.

use std::sync::Arc;

use tercet_core::ByteSource;

use super::code::Code;
use super::report::FileReport;
use crate::error::ErrorKind;
use crate::index::{IndexLookup, MessageIndex, find};
use crate::message::read_metadata;
use crate::options::ReadOptions;
use crate::scan::Scan;

/// Looks at the last message of a file, if it is a catalogue.
pub(super) fn check(
    source: &Arc<dyn ByteSource>,
    scan: &Scan,
    reading: &ReadOptions,
    report: &mut FileReport,
) -> Result<(), ErrorKind> {
    let wrong = match find(&**source, reading)? {
        IndexLookup::None => None,
        IndexLookup::Rejected(_, error) => Some(format!("the catalogue of the file cannot be used: {error}")),
        IndexLookup::Found(message_index) => compare(&message_index, source, scan, reading, report),
    };
    if let (Some(wrong), Some(last)) = (wrong, report.messages.last_mut()) {
        let at = last.span.start();
        last.add(Code::IndexWrong, None, Some(at), wrong);
        last.hash_verified = false;
    }
    Ok(())
}

/// The first thing that the catalogue says and the messages do not.
fn compare(
    message_index: &MessageIndex,
    source: &Arc<dyn ByteSource>,
    scan: &Scan,
    reading: &ReadOptions,
    report: &FileReport,
) -> Option<String> {
    let messages = scan.messages.split_last().map_or(&[][..], |(_, messages)| messages);
    let told = &message_index.scan().messages;
    if told.len() != messages.len() {
        let (told, there) = (told.len(), messages.len());
        return Some(format!("the catalogue tells of {told} messages, but there are {there}"));
    }
    let differs = told.iter().zip(messages).position(|(told, there)| told != there);
    if let Some(message) = differs {
        let (told, there) = (told.get(message)?, messages.get(message)?);
        return Some(format!("the catalogue says that message {message} is at {told}, but it is at {there}"));
    }
    let columns: Result<Vec<_>, _> =
        message_index.keys().map(|key| Ok((key, message_index.column(key)?))).collect();
    let columns = match columns {
        Ok(columns) => columns,
        Err::<_, crate::IndexError>(error) => {
            return Some(format!("the catalogue of the file cannot be used: {error}"));
        }
    };
    for ((&span, number), found) in messages.iter().zip(0..).zip(&report.messages) {
        // What is wrong with a message is told already.
        if !found.is_ok() {
            continue;
        }
        let Ok(metadata) = read_metadata(&**source, span, reading) else { continue };
        for (key, column) in &columns {
            let Some(column) = column.as_ref() else { continue };
            let (told, there) = (column.value(number), metadata.get(key));
            let is_same = match (told, there) {
                (None, Some(_)) if !column.is_held(number) => true,
                (Some(told), Some(there)) => told.is_same(there),
                (told, there) => told.is_none() == there.is_none(),
            };
            if !is_same {
                let key = tercet_core::escape::name(key);
                return Some(format!("the catalogue does not say what message {number} says about `{key}`"));
            }
        }
    }
    None
}
