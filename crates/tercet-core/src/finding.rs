//! Results of a verification: [`Report`] and its [`Finding`]s.

use std::borrow::Cow;

use serde::Serialize;

use crate::{Region, Site, Span};

/// How bad a failed check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information.
    Info,
    /// Valid, but unusual.
    Warning,
    /// The file is invalid.
    Error,
}

/// The part of a file that a [`Finding`] is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingSite {
    /// The region, as the format names it. Messages, objects, row groups and pages are numbered from 0.
    pub region: String,
    /// The bytes of the region, from the start of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

impl<R: Region> From<Site<R>> for FindingSite {
    fn from(site: Site<R>) -> Self {
        Self { region: format!("{} › {}", site.region, site.field), span: Some(site.span) }
    }
}

/// The result of one check of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check, stable between versions.
    #[serde(rename = "check")]
    pub code: Cow<'static, str>,
    /// How bad a failure of the check is.
    pub severity: Severity,
    /// Whether the check passed. Warnings pass.
    pub ok: bool,
    /// The part of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<FindingSite>,
    /// The result in words.
    #[serde(rename = "detail", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Finding {
    /// A check that passed.
    pub fn pass(code: &'static str) -> Self {
        Self { code: Cow::Borrowed(code), severity: Severity::Info, ok: true, site: None, message: None }
    }

    /// A warning: valid, but unusual.
    pub fn warn(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::pass(code) }.with_message(message)
    }

    /// A check that failed.
    pub fn fail(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, ok: false, ..Self::pass(code) }.with_message(message)
    }

    /// Sets the message.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets the part of the file.
    pub fn with_site(mut self, region: impl Into<String>, span: Option<Span>) -> Self {
        self.site = Some(FindingSite { region: region.into(), span });
        self
    }

    /// Whether this finding makes the file invalid.
    pub fn is_failure(&self) -> bool {
        !self.ok && self.severity == Severity::Error
    }
}

/// The result of a verification. `D` holds what only one format reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report<D = ()> {
    /// Whether no check failed.
    pub ok: bool,
    /// The path or URL of the file.
    #[serde(rename = "path")]
    pub location: String,
    /// The length of the file in bytes.
    pub file_len: u64,
    /// The results of the checks, in order.
    pub findings: Vec<Finding>,
    /// The details of the format.
    #[serde(flatten)]
    pub details: D,
}

impl<D> Report<D> {
    /// A report of these findings; it is `ok` unless one of them is a failure.
    pub fn new(location: impl Into<String>, file_len: u64, findings: Vec<Finding>, details: D) -> Self {
        let ok = !findings.iter().any(Finding::is_failure);
        Self { ok, location: location.into(), file_len, findings, details }
    }

    /// The findings that make the file invalid.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_failure())
    }
}
