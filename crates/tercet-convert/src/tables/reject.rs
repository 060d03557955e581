//! Rejected records.

use std::sync::Arc;

/// What to do with a record or value that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Fail at the first one.
    #[default]
    Stop,
    /// Leave out the row.
    Skip,
    /// Store null in place of a value of another type; leave out a row that cannot be parsed at all.
    Null,
}

/// A rejected record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The name of the input.
    pub input: Arc<str>,
    /// The line on which the record starts, from 1.
    pub line: u64,
    /// The column and the reason.
    pub reason: Box<str>,
    /// The record, at most [`Reject::TEXT_LEN`] bytes of it.
    pub text: Box<str>,
    /// Whether the row is kept, with a null.
    pub is_kept: bool,
}

impl Reject {
    /// Maximum length of the text.
    pub const TEXT_LEN: usize = 4096;

    pub(super) fn new(input: &Arc<str>, line: u64, reason: &str, record: &[u8], is_kept: bool) -> Self {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        let record = &record[..record.len().min(Self::TEXT_LEN)];
        let text = String::from_utf8_lossy(record).into();
        Self { input: Arc::clone(input), line, reason: reason.into(), text, is_kept }
    }
}
