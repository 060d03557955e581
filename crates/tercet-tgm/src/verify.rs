//! Verification of a file: [`verify`] and its report.

use std::sync::Arc;

use serde::Serialize;
use tercet_core::{ByteSource, Finding, Progress, Severity, VerifyOptions};

use crate::error::Error;
use crate::validate::{
    Depth, FileIssue, FileReport, Issue, Level, MessageReport, ValidateOptions, validate_source,
};

/// The report of a verification.
pub type Report = tercet_core::Report<VerifyDetails>;

/// The counts of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifyDetails {
    /// The number of messages, without message indexes.
    pub messages: u64,
    /// The number of objects, without those of message indexes.
    pub objects: u64,
    /// Whether every object has a hash and all hashes match.
    pub hash_verified: bool,
}

/// Verifies every message of a file: structure, metadata, hashes; with [`VerifyOptions::deep`] also the decoded values.
///
/// The codes of findings are those of [`Code`](crate::Code), `unrecognized_bytes` for bytes outside messages, and the
/// name of each [`Level`] that passed. Numbers count from 0; byte ranges count from the start of the file.
///
/// ```
/// use std::sync::Arc;
///
/// use tercet_core::progress::NoProgress;
/// use tercet_core::source::Memory;
/// use tercet_core::VerifyOptions;
/// use tercet_tgm::{EncodeOptions, GlobalMetadata, encode_message, verify};
///
/// let mut bytes = encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
/// bytes.extend(b"junk");
/// let report = verify(Arc::new(Memory::new("run.tgm", bytes)), VerifyOptions::new(), &NoProgress)?;
/// assert!(!report.ok);
/// assert_eq!(report.failures().next().unwrap().code, "unrecognized_bytes");
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[expect(clippy::needless_pass_by_value, reason = "all formats have the same signature")]
pub fn verify(
    source: Arc<dyn ByteSource>,
    options: VerifyOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let depth = if options.deep { Depth::Full } else { Depth::Default };
    let validation =
        ValidateOptions::new().with_depth(depth).with_limits(options.limits).with_threads(options.threads);
    let report = validate_source(&source, &validation, progress)?;
    Ok(report.to_report(source.name(), source.len(), options.deep))
}

impl FileReport {
    /// The report in the shape that all formats share: what [`verify`] returns. `deep` is whether values were
    /// validated.
    pub fn to_report(&self, location: &str, file_len: u64, deep: bool) -> Report {
        let mut levels = vec![Level::Structure, Level::Metadata, Level::Integrity];
        levels.extend(deep.then_some(Level::Fidelity));
        let failed = |level: Level| {
            let mut issues = self.messages.iter().flat_map(|message| &message.issues);
            issues.any(|issue| issue.level == level && issue.severity == Severity::Error)
        };
        let passed =
            levels.into_iter().filter(|level| !failed(*level)).map(|level| Finding::pass(level.name()));
        let mut findings: Vec<Finding> = passed.collect();
        findings.extend(self.file_issues.iter().map(FileIssue::to_finding));
        for message in &self.messages {
            findings.extend(message.issues.iter().map(|issue| issue.to_finding(message)));
        }
        let details = VerifyDetails {
            messages: self.message_count(),
            objects: self.object_count(),
            hash_verified: self.hash_verified(),
        };
        Report::new(location, file_len, findings, details)
    }
}

impl FileIssue {
    fn to_finding(&self) -> Finding {
        let span = tercet_core::Span::at(self.byte_offset, self.length);
        Finding::fail("unrecognized_bytes", &self.detail).with_site("file", span)
    }
}

impl Issue {
    fn to_finding(&self, message: &MessageReport) -> Finding {
        let region = match self.object_index {
            Some(object) => format!("{} › object {object}", message.region()),
            None => message.region(),
        };
        let finding = match self.severity {
            Severity::Error => Finding::fail(self.code.name(), &self.description),
            Severity::Warning => Finding::warn(self.code.name(), &self.description),
            Severity::Info => Finding::pass(self.code.name()).with_message(&self.description),
        };
        finding.with_site(region, Some(self.span.unwrap_or(message.span)))
    }
}
