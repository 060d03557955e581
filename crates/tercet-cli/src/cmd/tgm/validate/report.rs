//! Validation reports as text and as JSON.

use serde::Serialize;
use tercet::core::num::counted;
use tercet::core::{Severity, escape};
use tercet::tgm::{FileIssue, FileReport, Issue, MessageReport};

use super::against::Comparison;
use crate::failure::Failure;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// The JSON report of a file.
#[derive(Serialize)]
pub(super) struct ValidateJson<'a> {
    file: &'a str,
    status: &'static str,
    messages: usize,
    objects: u64,
    hash_verified: bool,
    file_issues: &'a [FileIssue],
    message_reports: &'a [MessageReport],
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Comparison>,
}

impl<'a> ValidateJson<'a> {
    pub(super) fn new(file: &'a str, report: &'a FileReport) -> Self {
        Self {
            file,
            status: status(report),
            messages: report.messages.len(),
            objects: report.object_count(),
            hash_verified: report.hash_verified(),
            file_issues: &report.file_issues,
            message_reports: &report.messages,
            against: None,
        }
    }

    /// Adds a comparison. An exceeded bound makes the status `failed`.
    pub(super) fn with(mut self, against: Option<&'a Comparison>) -> Self {
        if against.is_some_and(|against| !against.holds()) {
            self.status = "failed";
        }
        self.against = against;
        self
    }
}

fn status(report: &FileReport) -> &'static str {
    if report.is_ok() { "ok" } else { "failed" }
}

/// Prints issues on standard error; the result on standard output if valid, else on standard error.
pub(super) fn print(name: &str, report: &FileReport, out: &mut Ui) -> Result<(), Failure> {
    let name = escape::name(name);
    for issue in &report.file_issues {
        let FileIssue { byte_offset, length, description } = issue;
        let (word, text) = (paint(WARN, "WARNING"), escape::name(description));
        let length = counted(*length, "byte");
        out.note(format_args!("{name}: {word} — {text} (at byte offset {byte_offset}, {length})"))?;
    }
    for (message, number) in report.messages.iter().zip(1_u64..) {
        for issue in &message.issues {
            out.note(format_args!("{name}: {}", line(issue, number)))?;
        }
    }
    let messages = counted(report.messages.len() as u64, "message");
    let counts = format!("{messages}, {}", counted(report.object_count(), "object"));
    if report.is_ok() {
        let hashes = if report.hash_verified() { ", hash verified" } else { "" };
        return out.line(format_args!("{name}: {} ({counts}{hashes})", paint(GOOD, "OK")));
    }
    let errors = counted(report.error_count() as u64, "error");
    out.note(format_args!("{name}: {} ({errors}, {counts})", paint(BAD, "FAILED")))
}

/// An issue of a message. The reference output numbers messages and objects from 1.
fn line(issue: &Issue, message: u64) -> String {
    let word = match issue.severity {
        Severity::Error => paint(BAD, "FAILED"),
        Severity::Warning | Severity::Info => paint(WARN, "WARNING"),
    };
    let object = issue.object_index.map(|index| format!(", object {}", index.saturating_add(1)));
    let place = issue.byte_offset.map(|at| format!(" (at byte {at})"));
    let text = escape::name(&issue.description);
    format!("{word} — message {message}{}: {text}{}", object.unwrap_or_default(), place.unwrap_or_default())
}

/// The report as one line.
pub(super) fn one_line(name: &str, report: &FileReport) -> String {
    format!(
        "path={} status={} messages={} objects={} errors={} hash_verified={}",
        escape::name(name),
        status(report),
        report.messages.len(),
        report.object_count(),
        report.error_count(),
        report.hash_verified(),
    )
}
