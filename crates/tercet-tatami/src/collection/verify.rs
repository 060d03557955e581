//! Verification of a collection: the manifest, deleted rows and all members.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::{Class, Diagnostic as _, Finding, Progress, source};

use super::{Collection, Member};
use crate::error::Error;
use crate::file::ReadOptions;
use crate::verify::{Report, VerifyOptions, verify};

/// The result of verifying a collection.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CollectionReport {
    /// The directory.
    pub location: String,
    /// Whether manifest and members are valid.
    pub ok: bool,
    /// The manifest and its deleted rows.
    pub findings: Vec<Finding>,
    /// Rows of the collection, without deleted ones.
    pub rows: u64,
    /// Deleted rows that the files still have.
    pub deleted: u64,
    /// The members, by path.
    pub members: Vec<Report>,
}

impl Collection {
    /// Verifies a collection: the manifest, its deleted rows, and every member against its entry. Fails on I/O errors of the manifest
    /// only; everything else is in the report.
    pub fn verify(
        root: &Path,
        read: ReadOptions,
        options: VerifyOptions,
        progress: &dyn Progress,
    ) -> Result<CollectionReport, Error> {
        let mut out = CollectionReport {
            location: root.display().to_string(),
            ok: false,
            findings: Vec::new(),
            rows: 0,
            deleted: 0,
            members: Vec::new(),
        };
        let opened = Self::open_with(root, read).and_then(|opened| opened.check_records().map(|()| opened));
        let collection = match opened {
            Ok(collection) => collection,
            Err(error) if matches!(error.class(), Class::Io | Class::Limit) => return Err(error),
            Err(error) => {
                out.findings.push(Finding::fail("manifest", error.into_kind().to_string()));
                return Ok(out);
            }
        };
        (out.rows, out.deleted) = (collection.rows(), collection.deleted_rows());
        let warnings = &collection.replay.warnings;
        let warned = warnings.iter().map(|warning| Finding::warn("manifest", warning.to_string()));
        out.findings.extend(warned);
        if warnings.is_empty() {
            out.findings.push(Finding::pass("manifest"));
        }
        for member in collection.members() {
            progress.check().map_err(|cancelled| collection.error(cancelled.into()))?;
            match collection.verify_member(member, options, progress) {
                Ok(report) => out.members.push(report),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => out.findings.push(Finding::fail("member", error.to_string())),
            }
        }
        // Replay and `open_member` checked that they are rows of their members.
        out.findings.push(Finding::pass("deleted_rows"));
        let failed = out.findings.iter().any(Finding::is_failure);
        out.ok = !failed && out.members.iter().all(|report| report.ok);
        Ok(out)
    }

    fn verify_member(
        &self,
        member: &Member,
        options: VerifyOptions,
        progress: &dyn Progress,
    ) -> Result<Report, Error> {
        // A damaged file cannot be opened: its report is more precise than the error.
        if let Err(error) = self.open_member(member)
            && (member.location(&self.root).is_none()
                || !matches!(error.class(), Class::Corrupt | Class::Malformed)
                || matches!(error.kind(), crate::ErrorKind::MemberChanged { .. }))
        {
            return Err(error);
        }
        let path = member.location(&self.root).unwrap_or_default();
        let source = source::File::open(&path)
            .map_err(|error| Error::new(path.display().to_string().into(), error.into()))?;
        verify(Arc::new(source), options, progress)
    }
}
