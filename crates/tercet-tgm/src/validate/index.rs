//! Validation of the message index.

use tercet_core::ByteSource;

use super::code::Code;
use super::report::FileReport;
use crate::error::ErrorKind;
use crate::index::{IndexLookup, MessageIndex, find};
use crate::message::read_metadata;
use crate::options::ReadOptions;
use crate::scan::Scan;

/// Checks the last message of a file, if it is an index.
pub(super) fn check(
    source: &dyn ByteSource,
    scan: &Scan,
    reading: &ReadOptions,
    report: &mut FileReport,
) -> Result<(), ErrorKind> {
    let wrong = match find(source, reading)? {
        IndexLookup::None => None,
        IndexLookup::Rejected(_, error) => Some(format!("the index of the file cannot be used: {error}")),
        IndexLookup::Found(message_index) => compare(&message_index, source, scan, reading, report),
    };
    if let (Some(wrong), Some(last)) = (wrong, report.messages.last_mut()) {
        let at = last.span.start();
        last.add(Code::IndexWrong, None, Some(at), wrong);
        last.hash_verified = false;
    }
    Ok(())
}

/// The first contradiction between the index and the messages.
fn compare(
    message_index: &MessageIndex,
    source: &dyn ByteSource,
    scan: &Scan,
    reading: &ReadOptions,
    report: &FileReport,
) -> Option<String> {
    let messages = scan.messages.split_last().map_or(&[][..], |(_, messages)| messages);
    let listed = &message_index.scan().messages;
    if listed.len() != messages.len() {
        let (listed, there) = (listed.len(), messages.len());
        return Some(format!("the index lists {listed} messages, but there are {there}"));
    }
    let differs = listed.iter().zip(messages).position(|(listed, there)| listed != there);
    if let Some(message) = differs {
        let (listed, there) = (listed.get(message)?, messages.get(message)?);
        return Some(format!("the index lists message {message} at {listed}, but it is at {there}"));
    }
    let columns: Result<Vec<_>, _> =
        message_index.keys().map(|key| Ok((key, message_index.column(key)?))).collect();
    let columns = match columns {
        Ok(columns) => columns,
        Err::<_, crate::IndexError>(error) => {
            return Some(format!("the index of the file cannot be used: {error}"));
        }
    };
    for ((&span, number), found) in messages.iter().zip(0..).zip(&report.messages) {
        // Errors in a message are already reported.
        if !found.is_ok() {
            continue;
        }
        let Ok(metadata) = read_metadata(source, span, reading) else { continue };
        for (key, column) in &columns {
            let Some(column) = column.as_ref() else { continue };
            let (listed, there) = (column.value(number), metadata.get(key));
            let is_same = match (listed, there) {
                (None, Some(_)) if !column.is_stored(number) => true,
                (Some(listed), Some(there)) => listed.is_same(there),
                (listed, there) => listed.is_none() == there.is_none(),
            };
            if !is_same {
                let key = tercet_core::escape::name(key);
                return Some(format!("the index differs from message {number} in `{key}`"));
            }
        }
    }
    None
}
