//! A verification report as text.

use tercet::core::{Finding, Severity, escape};
use tercet::tet::{File, IntegrityStatus, Recommendation, Report};

use crate::failure::Failure;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// Prints the report.
pub(super) fn print(report: &Report, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("file: {}", escape::name(&report.path)))?;
    out.line(format_args!("size: {} bytes", report.file_len))?;
    out.line(format_args!("status: {}", status(report.ok)))?;
    out.line("checks:")?;
    for finding in &report.findings {
        out.line(check(finding))?;
    }
    if !report.recommendations.is_empty() {
        out.line("recommendations:")?;
        for recommendation in &report.recommendations {
            print_recommendation(recommendation, out)?;
        }
    }
    let Some(summary) = &report.summary else { return Ok(()) };
    out.line(format_args!(
        "summary: layout={} datasets={} chunks={} history={} metadata={} footer={} deep_decode={}",
        summary.layout_version,
        summary.dataset_count,
        summary.chunk_count,
        summary.history_events,
        summary.has_metadata,
        summary.history_footer,
        summary.deep_chunk_decode,
    ))
}

/// The report as one line.
pub(super) fn one_line(report: &Report) -> String {
    let unknown = || "?".to_owned();
    let summary = report.summary.as_ref();
    format!(
        "path={} status={} datasets={} chunks={} recommendations={}",
        escape::name(&report.path),
        if report.ok { "ok" } else { "failed" },
        summary.map_or_else(unknown, |summary| summary.dataset_count.to_string()),
        summary.map_or_else(unknown, |summary| summary.chunk_count.to_string()),
        report.recommendations.len(),
    )
}

/// `ok` or `failed`.
pub(crate) fn status(ok: bool) -> String {
    if ok { paint(GOOD, "ok") } else { paint(BAD, "failed") }
}

/// A check and its result.
pub(crate) fn check(finding: &Finding) -> String {
    let state = match (finding.is_failure(), finding.severity) {
        (true, _) => paint(BAD, "FAIL"),
        (false, Severity::Warning) => paint(WARN, "warn"),
        (false, _) => paint(GOOD, "ok"),
    };
    let detail = finding.message.as_deref().map(|detail| format!(" ({})", in_one_line(detail)));
    format!("  {:<22} {state}{}", finding.code, detail.unwrap_or_default())
}

fn print_recommendation(recommendation: &Recommendation, out: &mut Ui) -> Result<(), Failure> {
    let code = paint(WARN, format_args!("[{}]", recommendation.code));
    out.line(format_args!("  {code} {}", in_one_line(&recommendation.message)))?;
    let Some(fix) = &recommendation.fix else { return Ok(()) };
    out.line(format_args!("       → {}", in_one_line(&fix.summary)))?;
    match &fix.command {
        Some(command) => out.line(format_args!("       → {}", escape::name(command))),
        None => Ok(()),
    }
}

/// Warns if some of the checksums of a file are unusable.
pub(super) fn warn_if_partly_protected(file: &File, out: &mut Ui) -> Result<(), Failure> {
    let IntegrityStatus::Partial { problems } = file.integrity_status() else { return Ok(()) };
    let (name, problems) = (escape::name(file.name()), in_one_line(&problems.join("; ")));
    out.note(format_args!("{} {name}: partly protected: {problems}", paint(WARN, "warning:")))
}

/// Joins the lines of a message.
pub(super) fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    escape::name(&lines.join(": ")).into_owned()
}
