//! The report of a validation.

use serde::Serialize;
use tercet_core::limits::LimitExceeded;
use tercet_core::{Severity, Span};

use super::code::{Code, Level};
use crate::layout::Layout;

/// A finding about a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The code.
    pub code: Code,
    /// The level.
    pub level: Level,
    /// The severity.
    pub severity: Severity,
    /// The number of the object, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_index: Option<u64>,
    /// The offset from the start of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// The byte range in the file: from the offset to the end of its frame.
    #[serde(skip)]
    pub span: Option<Span>,
    /// The description.
    pub description: String,
}

/// The findings of one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageReport {
    /// The findings.
    pub issues: Vec<Issue>,
    /// The number of objects.
    pub object_count: u64,
    /// Whether the message has hashes of objects, all hashes match, and there is no error.
    pub hash_verified: bool,
    /// The byte range in the file.
    pub span: Span,
    /// The number of the message, from 0; `None` for a message index.
    #[serde(skip)]
    pub number: Option<u64>,
    /// The first limit that kept a part of the message from being checked.
    #[serde(skip)]
    pub(super) limit: Option<LimitExceeded>,
}

impl MessageReport {
    pub(super) fn new(span: Span) -> Self {
        let (issues, number) = (Vec::new(), Some(0));
        Self { issues, object_count: 0, hash_verified: false, span, number, limit: None }
    }

    /// The report of a message that could not be checked.
    pub(crate) fn not_checked(len: u64, error: &crate::Error) -> Self {
        let mut report = Self::new(Span::first(len));
        let description = format!("not checked: {error}");
        report.add_as(Code::LimitExceeded, Severity::Error, None, None, description);
        report
    }

    /// Adds a part that exceeds a limit: it is not checked, which is not damage.
    pub(super) fn add_limit(&mut self, limit: LimitExceeded, object: Option<u64>, at: Option<u64>) {
        self.add(Code::LimitExceeded, object, at, format!("not checked: {limit}"));
        self.limit.get_or_insert(limit);
        self.hash_verified = false;
    }

    /// The message with its number, or the message index.
    pub fn region(&self) -> String {
        self.number.map_or_else(|| "message index".to_owned(), |number| format!("message {number}"))
    }

    /// Whether there is no error. Warnings are allowed.
    pub fn is_ok(&self) -> bool {
        self.error_count() == 0
    }

    /// The number of errors.
    pub fn error_count(&self) -> usize {
        self.issues.iter().filter(|issue| issue.severity == Severity::Error).count()
    }

    /// Adds a finding. `at` is an offset in the file.
    pub(super) fn add(&mut self, code: Code, object: Option<u64>, at: Option<u64>, description: String) {
        self.add_as(code, code.severity(), object, at, description);
    }

    pub(super) fn add_as(
        &mut self,
        code: Code,
        severity: Severity,
        object_index: Option<u64>,
        at: Option<u64>,
        description: String,
    ) {
        let byte_offset = at.map(|at| at.saturating_sub(self.span.start()));
        self.issues.push(Issue {
            code,
            level: code.level(),
            severity,
            object_index,
            byte_offset,
            span: None,
            description,
        });
    }

    /// Sets the byte range of every finding: up to the end of its frame, or of the message.
    pub(super) fn locate(&mut self, layout: Option<&Layout>) {
        let end = |at: u64| {
            let layout = layout?;
            let frames = layout.frames.iter().map(|frame| frame.span);
            let mut spans = frames.chain([layout.preamble_span(), layout.postamble_span()]);
            spans.find(|span| span.start() <= at && at < span.end()).map(Span::end)
        };
        for issue in self.issues.iter_mut().filter(|issue| issue.span.is_none()) {
            let at = issue.byte_offset.map(|offset| self.span.start().saturating_add(offset));
            issue.span = at.and_then(|at| Span::between(at, end(at).unwrap_or(self.span.end())));
        }
    }

    pub(super) fn keep_errors(&mut self) {
        self.issues.retain(|issue| issue.severity == Severity::Error);
    }
}

/// Unrecognized bytes: those outside messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileIssue {
    /// The offset.
    pub byte_offset: u64,
    /// The length.
    pub length: u64,
    /// The description of the reference implementation.
    pub description: String,
    /// What the bytes are: another version, a damaged message, or the start of an incomplete one.
    #[serde(skip)]
    pub detail: String,
}

impl FileIssue {
    /// `detail` is `None` for padding.
    pub(super) fn for_unrecognized(span: Span, file_len: u64, detail: Option<String>) -> Self {
        let (at, length) = (span.start(), span.len());
        let description = if length == file_len {
            format!("{length} bytes with no valid messages")
        } else if span.end() == file_len {
            format!("{length} trailing bytes after last message at offset {at}")
        } else {
            format!("{length} unrecognized bytes at offset {at}")
        };
        let detail = detail.unwrap_or_else(|| format!("bytes {span}: padding after a message"));
        Self { byte_offset: at, length, description, detail }
    }
}

/// The report of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Unrecognized bytes: those outside messages.
    pub file_issues: Vec<FileIssue>,
    /// The reports of the messages, and of the message indexes among them.
    pub messages: Vec<MessageReport>,
}

impl FileReport {
    /// Whether there are no errors and no unrecognized bytes.
    pub fn is_ok(&self) -> bool {
        self.error_count() == 0
    }

    /// The number of errors, including unrecognized bytes.
    pub fn error_count(&self) -> usize {
        self.file_issues.len() + self.messages.iter().map(MessageReport::error_count).sum::<usize>()
    }

    /// The number of messages, without message indexes.
    pub fn message_count(&self) -> u64 {
        self.numbered().count() as u64
    }

    /// The number of objects, without those of message indexes.
    pub fn object_count(&self) -> u64 {
        self.numbered().map(|message| message.object_count).sum()
    }

    fn numbered(&self) -> impl Iterator<Item = &MessageReport> {
        self.messages.iter().filter(|message| message.number.is_some())
    }

    /// Whether all objects of all messages have hashes that match.
    pub fn hash_verified(&self) -> bool {
        !self.messages.is_empty() && self.messages.iter().all(|message| message.hash_verified)
    }
}
