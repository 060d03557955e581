//! Validation of the message index.

use std::collections::HashSet;

use tercet_core::{ByteSource, Severity};

use super::ValidateOptions;
use super::code::Code;
use super::limit_of;
use super::report::{FileReport, MessageReport};
use crate::error::ErrorKind;
use crate::index::{IndexError, IndexLookup, MessageIndex, find};
use crate::message::read_metadata;
use crate::options::ReadOptions;
use crate::scan::Scan;

/// The offsets of the message indexes of a file: at its end, and those of files that were concatenated.
pub(super) fn spans(
    source: &dyn ByteSource,
    scan: &Scan,
    options: &ValidateOptions,
) -> Result<HashSet<u64>, ErrorKind> {
    let mut scan = scan.clone();
    let reading = ReadOptions::new().with_limits(options.limits).with_threads(options.threads);
    match scan.separate_indexes(source, &reading) {
        // What could not be read because of a limit is reported as a message.
        Err(fault) if limit_of(&fault).is_none() => return Err(fault),
        _ => {}
    }
    Ok(scan.indexes.iter().map(|span| span.start()).collect())
}

/// Checks the last message of a file, if it is an index.
pub(super) fn check(
    source: &dyn ByteSource,
    reading: &ReadOptions,
    report: &mut FileReport,
) -> Result<(), ErrorKind> {
    let unusable = |error: &IndexError| format!("the index of the file cannot be used: {error}");
    let wrong = match find(source, reading)? {
        IndexLookup::None => None,
        // Messages were appended by another program, or the file is the concatenation of several: readers ignore the index.
        IndexLookup::Rejected(_, error @ IndexError::Incomplete { .. }) => {
            Some((Severity::Warning, unusable(&error)))
        }
        IndexLookup::Rejected(_, error) => Some((Severity::Error, unusable(&error))),
        IndexLookup::Found(message_index) => {
            compare(&message_index, source, reading, report).map(|wrong| (Severity::Error, wrong))
        }
    };
    if let (Some((severity, wrong)), Some(last)) = (wrong, report.messages.last_mut()) {
        let at = last.span.start();
        last.number = None;
        last.add_as(Code::IndexWrong, severity, None, Some(at), wrong);
        last.hash_verified &= severity == Severity::Warning;
        last.locate(None);
    }
    Ok(())
}

/// The first contradiction between the index and the messages.
fn compare(
    message_index: &MessageIndex,
    source: &dyn ByteSource,
    reading: &ReadOptions,
    report: &FileReport,
) -> Option<String> {
    let messages = report.messages.split_last().map_or(&[][..], |(_, messages)| messages);
    let messages: Vec<&MessageReport> = messages.iter().filter(|message| message.number.is_some()).collect();
    let listed = &message_index.scan().messages;
    if listed.len() != messages.len() {
        let (listed, there) = (listed.len(), messages.len());
        return Some(format!("the index lists {listed} messages, but there are {there}"));
    }
    let differs = listed.iter().zip(&messages).position(|(listed, there)| *listed != there.span);
    if let Some(message) = differs {
        let (listed, there) = (listed.get(message)?, messages.get(message)?.span);
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
    for (found, number) in messages.into_iter().zip(0..) {
        // Errors in a message are already reported.
        if !found.is_ok() {
            continue;
        }
        let Ok(metadata) = read_metadata(source, found.span, reading) else { continue };
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
