//! Validation reports as text and as JSON.

use serde::Serialize;
use serde_json::Value as Json;
use tercet::core::num::counted;
use tercet::core::{Severity, escape};
use tercet::tgm::{FileIssue, FileReport, Issue, MessageReport};

use super::against::Comparison;
use crate::failure::Failure;
use crate::persona::is_reference;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// The JSON report of a file.
#[derive(Serialize)]
pub(super) struct ValidateJson<'a> {
    file: &'a str,
    status: &'static str,
    messages: u64,
    objects: u64,
    hash_verified: bool,
    file_issues: Vec<Json>,
    message_reports: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Comparison>,
}

impl<'a> ValidateJson<'a> {
    pub(super) fn new(file: &'a str, report: &'a FileReport) -> Self {
        let (messages, objects) = counts(report);
        Self {
            file,
            status: status(report),
            messages,
            objects,
            hash_verified: report.hash_verified(),
            file_issues: report.file_issues.iter().map(file_issue).collect(),
            message_reports: report.messages.iter().map(message_report).collect(),
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

/// The JSON of unrecognized bytes.
fn file_issue(issue: &FileIssue) -> Json {
    let mut json = serde_json::json!(issue);
    if !is_reference() {
        json["description"] = issue.detail.as_str().into();
    }
    json
}

/// The JSON of a message. Bytes are absolute, except in the output of the reference implementation.
fn message_report(report: &MessageReport) -> Json {
    let mut json = serde_json::json!(report);
    if is_reference() {
        return json;
    }
    // A message index has no number.
    json["message"] = report.number.into();
    let issues = json.get_mut("issues").and_then(Json::as_array_mut);
    for (json, issue) in issues.into_iter().flatten().zip(&report.issues) {
        if let Some(fields) = json.as_object_mut() {
            fields.remove("byte_offset");
            fields.insert("bytes".to_owned(), serde_json::json!(issue.span));
        }
    }
    json
}

/// The number of messages and objects. The reference implementation counts indexes as messages.
fn counts(report: &FileReport) -> (u64, u64) {
    if is_reference() {
        let objects = report.messages.iter().map(|message| message.object_count).sum();
        return (report.messages.len() as u64, objects);
    }
    (report.message_count(), report.object_count())
}

fn status(report: &FileReport) -> &'static str {
    if report.is_ok() { "ok" } else { "failed" }
}

/// Prints issues on standard error; the result on standard output if valid, else on standard error.
pub(super) fn print(name: &str, report: &FileReport, out: &mut Ui) -> Result<(), Failure> {
    let name = escape::name(name);
    for issue in &report.file_issues {
        let FileIssue { byte_offset, length, description, detail } = issue;
        if !is_reference() {
            out.note(format_args!("{name}: {} — {}", paint(BAD, "FAILED"), escape::name(detail)))?;
            continue;
        }
        let (word, text) = (paint(WARN, "WARNING"), escape::name(description));
        let length = counted(*length, "byte");
        out.note(format_args!("{name}: {word} — {text} (at byte offset {byte_offset}, {length})"))?;
    }
    for (message, position) in report.messages.iter().zip(0_u64..) {
        for issue in &message.issues {
            out.note(format_args!("{name}: {}", line(issue, message, position)))?;
        }
    }
    let (messages, objects) = counts(report);
    let counts = format!("{}, {}", counted(messages, "message"), counted(objects, "object"));
    if report.is_ok() {
        let hashes = if report.hash_verified() { ", hash verified" } else { "" };
        return out.line(format_args!("{name}: {} ({counts}{hashes})", paint(GOOD, "OK")));
    }
    let errors = counted(report.error_count() as u64, "error");
    out.note(format_args!("{name}: {} ({errors}, {counts})", paint(BAD, "FAILED")))
}

/// An issue of a message. The reference output numbers messages by their position, messages and objects from 1, and bytes
/// from the start of the message.
fn line(issue: &Issue, message: &MessageReport, position: u64) -> String {
    let word = match issue.severity {
        Severity::Error => paint(BAD, "FAILED"),
        Severity::Warning | Severity::Info => paint(WARN, "WARNING"),
    };
    let text = escape::name(&issue.description);
    if !is_reference() {
        let object = issue.object_index.map(|index| format!(" › object {index}")).unwrap_or_default();
        let bytes = issue.span.map(|span| format!(" (bytes {span})")).unwrap_or_default();
        return format!("{word} — {}{object}{bytes}: {text}", message.region());
    }
    let message = position.saturating_add(1);
    let object = issue.object_index.map(|index| format!(", object {}", index.saturating_add(1)));
    let place = issue.byte_offset.map(|at| format!(" (at byte {at})"));
    format!("{word} — message {message}{}: {text}{}", object.unwrap_or_default(), place.unwrap_or_default())
}

/// The report as one line.
pub(super) fn one_line(name: &str, report: &FileReport) -> String {
    let (messages, objects) = counts(report);
    format!(
        "path={} status={} messages={messages} objects={objects} errors={} hash_verified={}",
        escape::name(name),
        status(report),
        report.error_count(),
        report.hash_verified(),
    )
}
