//! What a check found.

use std::borrow::Cow;

use serde::Serialize;

/// How bad a failed check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Legal, but not as it should be.
    Warning,
    /// The file is wrong.
    Error,
}

/// The result of one check of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: Cow<'static, str>,
    /// How much it matters.
    pub severity: Severity,
    /// Whether the check passed. Warnings pass.
    pub ok: bool,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Finding {
    /// A check that passed.
    pub fn pass(check: &'static str) -> Self {
        Self { check: Cow::Borrowed(check), severity: Severity::Info, ok: true, detail: None }
    }

    /// Something legal that the user should know.
    pub fn warn(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            check: Cow::Borrowed(check),
            severity: Severity::Warning,
            ok: true,
            detail: Some(detail.into()),
        }
    }

    /// A check that failed.
    pub fn fail(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            check: Cow::Borrowed(check),
            severity: Severity::Error,
            ok: false,
            detail: Some(detail.into()),
        }
    }

    /// Adds what was found.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Whether this finding makes the file bad.
    pub fn is_failure(&self) -> bool {
        !self.ok && self.severity == Severity::Error
    }
}
