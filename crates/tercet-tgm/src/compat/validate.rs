//! Validation with the names of the documentation.

use super::decode::BUFFER;
#[cfg(any(unix, windows))]
use super::error::Result;
use super::options::ValidateOptions;
use crate::validate::{FileReport, Level, MessageReport, validate_bytes, validate_slice};

/// Validates the message at the start of a buffer. What could not be checked, because of a limit, is an error of the report.
pub fn validate_message(buffer: &[u8], options: &ValidateOptions) -> MessageReport {
    let report = validate_bytes(buffer, &options.into());
    let report = report.unwrap_or_else(|error| MessageReport::not_checked(buffer.len() as u64, &error));
    limited(report, options)
}

/// Validates all messages of a buffer, and reports unrecognized bytes.
pub fn validate_buffer(buffer: &[u8], options: &ValidateOptions) -> FileReport {
    let report = validate_slice(BUFFER, buffer, &options.into()).unwrap_or_else(|error| FileReport {
        messages: vec![MessageReport::not_checked(buffer.len() as u64, &error)],
        ..FileReport::default()
    });
    all_limited(report, options)
}

/// Validates a file.
#[cfg(any(unix, windows))]
pub fn validate_file(path: impl AsRef<std::path::Path>, options: &ValidateOptions) -> Result<FileReport> {
    let file = crate::File::open(path.as_ref())?;
    let progress = &tercet_core::progress::NoProgress;
    let report = crate::validate_source(file.source(), &options.into(), progress)?;
    Ok(all_limited(report, options))
}

fn all_limited(mut report: FileReport, options: &ValidateOptions) -> FileReport {
    report.messages = report.messages.into_iter().map(|message| limited(message, options)).collect();
    report
}

/// Removes what is above the requested level.
fn limited(mut report: MessageReport, options: &ValidateOptions) -> MessageReport {
    if options.max_level == Level::Metadata && !options.checksum_only {
        report.issues.retain(|issue| issue.level <= Level::Metadata);
        report.hash_verified = false;
    }
    report
}
