//! What was found.

use serde::Serialize;
use tercet_core::{Severity, Span};

use super::code::{Code, Level};
use crate::layout::Layout;

/// A finding about a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// What it is.
    pub code: Code,
    /// The level it belongs to.
    pub level: Level,
    /// How bad it is.
    pub severity: Severity,
    /// The object it is about, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_index: Option<u64>,
    /// The position, from the start of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// The bytes, from the start of the file: from the position to the end of the frame that it is in.
    #[serde(skip)]
    pub span: Option<Span>,
    /// The description.
    pub description: String,
}

/// What was found in one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageReport {
    /// The findings.
    pub issues: Vec<Issue>,
    /// Its objects.
    pub object_count: u64,
    /// Whether there were hashes of objects, all of them right, and no error of any kind.
    pub hash_verified: bool,
    /// Its bytes in the file.
    pub span: Span,
}

impl MessageReport {
    pub(super) fn new(span: Span) -> Self {
        Self { issues: Vec::new(), object_count: 0, hash_verified: false, span }
    }

    /// Whether there is no error. Warnings are allowed.
    pub fn is_ok(&self) -> bool {
        self.error_count() == 0
    }

    /// The number of errors.
    pub fn error_count(&self) -> usize {
        self.issues.iter().filter(|issue| issue.severity == Severity::Error).count()
    }

    /// Adds a finding. `at` is a place in the file.
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

    /// Gives every finding its byte range: up to the end of the frame it is in, or of the message.
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

/// Bytes of a file that belong to no message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileIssue {
    /// Where they start.
    pub byte_offset: u64,
    /// How many.
    pub length: u64,
    /// The description.
    pub description: String,
}

impl FileIssue {
    pub(super) fn for_junk(junk: Span, file_len: u64) -> Self {
        let (at, length) = (junk.start(), junk.len());
        let description = if length == file_len {
            format!("{length} bytes with no valid messages")
        } else if junk.end() == file_len {
            format!("{length} trailing bytes after last message at offset {at}")
        } else {
            format!("{length} unrecognized bytes at offset {at}")
        };
        Self { byte_offset: at, length, description }
    }
}

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Bytes between messages.
    pub file_issues: Vec<FileIssue>,
    /// What was found in each message.
    pub messages: Vec<MessageReport>,
}

impl FileReport {
    /// Whether there is nothing between messages and no error in them.
    pub fn is_ok(&self) -> bool {
        self.error_count() == 0
    }

    /// The number of errors; bytes between messages count.
    pub fn error_count(&self) -> usize {
        self.file_issues.len() + self.messages.iter().map(MessageReport::error_count).sum::<usize>()
    }

    /// All objects.
    pub fn object_count(&self) -> u64 {
        self.messages.iter().map(|message| message.object_count).sum()
    }

    /// Whether the hashes of all objects of all messages were there and right.
    pub fn hash_verified(&self) -> bool {
        !self.messages.is_empty() && self.messages.iter().all(|message| message.hash_verified)
    }
}
