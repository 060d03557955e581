//! A verification report as text.

use std::path::Path;

use serde::Serialize;
use tercet::core::{Finding, Severity, escape};
use tercet::tet::{File, FixAction, IntegrityStatus, Recommendation, Report, ReportSummary};

use crate::failure::Failure;
use crate::input::STDIN;
use crate::remote::url_of;
use crate::render::shell_quoted;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// Prints the report.
pub(super) fn print(report: &Report, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("file: {}", escape::name(&report.location)))?;
    out.line(format_args!("size: {} bytes", report.file_len))?;
    out.line(format_args!("status: {}", status(report.ok)))?;
    out.line("checks:")?;
    for finding in &report.findings {
        out.line(check(finding))?;
    }
    if !report.details.recommendations.is_empty() {
        out.line("recommendations:")?;
        for recommendation in &report.details.recommendations {
            print_recommendation(recommendation, &report.location, out)?;
        }
    }
    let Some(summary) = &report.details.summary else { return Ok(()) };
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
    let summary = report.details.summary.as_ref();
    format!(
        "path={} status={} datasets={} chunks={} recommendations={}",
        escape::name(&report.location),
        if report.ok { "ok" } else { "failed" },
        summary.map_or_else(unknown, |summary| summary.dataset_count.to_string()),
        summary.map_or_else(unknown, |summary| summary.chunk_count.to_string()),
        report.details.recommendations.len(),
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

fn print_recommendation(recommendation: &Recommendation, path: &str, out: &mut Ui) -> Result<(), Failure> {
    let code = paint(WARN, format_args!("[{}]", recommendation.code));
    out.line(format_args!("  {code} {}", in_one_line(&recommendation.message)))?;
    out.line(format_args!("       → {}", recommendation.fix.summary))?;
    match command(recommendation, path) {
        Some(command) => out.line(format_args!("       → {}", escape::name(&command))),
        None => Ok(()),
    }
}

/// The command that does what is recommended.
pub(super) fn command(recommendation: &Recommendation, location: &str) -> Option<String> {
    let is_stdin = location == STDIN;
    let is_local = !is_stdin && url_of(Path::new(location)).is_none();
    let path = if is_stdin { "-".to_owned() } else { shell_quoted(location) };
    Some(match recommendation.fix.action? {
        FixAction::VerifyDeep => format!("tet verify --deep {path}"),
        // Only files on this machine are changed in place.
        FixAction::Repair if !is_local => return None,
        FixAction::Repair => format!("tet repair {path} --apply {}", recommendation.code),
        FixAction::Salvage => format!("tet repair {path} -o OUT.tet"),
        FixAction::Fill => format!("tet repair {path} -o OUT.tet --fill VALUE"),
        _ => return None,
    })
}

/// A report with the commands for its recommendations, as JSON.
#[derive(Serialize)]
pub(super) struct ReportJson<'a> {
    ok: bool,
    path: &'a str,
    file_len: u64,
    findings: &'a [Finding],
    recommendations: Vec<RecommendationJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a ReportSummary>,
}

#[derive(Serialize)]
struct RecommendationJson<'a> {
    code: &'a str,
    message: &'a str,
    fix: FixJson<'a>,
}

#[derive(Serialize)]
struct FixJson<'a> {
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl<'a> ReportJson<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        let recommendations =
            report.details.recommendations.iter().map(|recommendation| RecommendationJson {
                code: recommendation.code,
                message: &recommendation.message,
                fix: FixJson {
                    summary: recommendation.fix.summary,
                    command: command(recommendation, &report.location),
                },
            });
        Self {
            ok: report.ok,
            path: &report.location,
            file_len: report.file_len,
            findings: &report.findings,
            recommendations: recommendations.collect(),
            summary: report.details.summary.as_ref(),
        }
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
