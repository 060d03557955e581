//! `tercet verify` of `.tgm` files. `tgm validate` prints the report of the reference implementation instead.

use std::sync::Arc;

use tercet::core::{ByteSource, Finding, escape};
use tercet::tgm::{Depth, Report};

use super::ReportFormat;
use super::validate::{check, options};
use crate::cmd::tet::report::{check as check_line, status};
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

/// Verifies an open file.
pub(crate) fn run_on(
    deep: bool,
    form: ReportFormat,
    source: &Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let depth = if deep { Depth::Full } else { Depth::Default };
    let report = check(source, &options(depth), out)?.to_report(source.name(), source.len(), deep);
    match form {
        ReportFormat::Json => out.json(&report)?,
        ReportFormat::OneLine => out.line(one_line(&report))?,
        ReportFormat::Text => print(&report, out)?,
    }
    if report.ok {
        return Ok(Outcome::Done);
    }
    out.verdict("verification failed")?;
    Ok(Outcome::CheckFailed)
}

fn print(report: &Report, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("file: {}", escape::name(&report.location)))?;
    out.line(format_args!("status: {}", status(report.ok)))?;
    out.line("checks:")?;
    for finding in &report.findings {
        out.line(check_line(&with_site(finding)))?;
    }
    let details = report.details;
    let (messages, objects, hashes) = (details.messages, details.objects, details.hash_verified);
    out.line(format_args!("summary: messages={messages} objects={objects} hash_verified={hashes}"))
}

/// A finding whose message names the part of the file.
fn with_site(finding: &Finding) -> Finding {
    let Some(site) = &finding.site else { return finding.clone() };
    let bytes = site.span.map(|span| format!(" (bytes {span})")).unwrap_or_default();
    let message = finding.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    finding.clone().with_message(format!("{}{bytes}{message}", site.region))
}

fn one_line(report: &Report) -> String {
    let details = report.details;
    format!(
        "path={} status={} messages={} objects={} errors={} hash_verified={}",
        escape::name(&report.location),
        if report.ok { "ok" } else { "failed" },
        details.messages,
        details.objects,
        report.failures().count(),
        details.hash_verified,
    )
}
