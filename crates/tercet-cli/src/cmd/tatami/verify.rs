//! `tatami verify`: structure, checksums and values.

use std::path::Path;
use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, escape};
use tercet::tatami::verify::Checked;
use tercet::tatami::{Collection, Report, VerifyOptions, verify};

use crate::args::{JsonArgs, limits};
use crate::cmd::tet::report::{check, status};
use crate::cmd::tgm::ReportFormat;
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami verify crawl.tatami           structure and all checksums
  tatami verify crawl.tatami --deep    decode all values; check statistics, filters and sort order
  tatami verify crawl.tatami --json    JSON report
  tatami verify crawl                  a collection: manifest, deleted rows and all members

Exit code 0: valid; 1: verification failed; others: the check could not run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Also decode all values
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    json: JsonArgs,
    /// Print a one-line summary
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    out.hush(args.quiet);
    if let Some(directory) = args.files.collection() {
        return run_on_collection(args.deep, ReportFormat::new(args.json.json, args.quiet), directory, out);
    }
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        run_on(
            args.deep,
            ReportFormat::new(args.json.json, args.quiet),
            input.source_of(Format::Tatami)?,
            out,
        )
    })
}

/// Verifies an open file.
pub(crate) fn run_on(
    deep: bool,
    form: ReportFormat,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let bar = out.bar("verifying", source.len());
    let report = verify(source, VerifyOptions::default().with_deep(deep).with_limits(limits()), &bar)?;
    drop(bar);
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

/// Verifies a collection: its manifest and all members.
pub(super) fn run_on_collection(
    deep: bool,
    form: ReportFormat,
    directory: &Path,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let bar = out.bar("verifying", 0);
    let options = VerifyOptions::default().with_deep(deep).with_limits(limits());
    let report = Collection::verify(directory, super::collection::options(), options, &bar)?;
    drop(bar);
    let status_word = if report.ok { "ok" } else { "failed" };
    match form {
        ReportFormat::Json => out.json(&report)?,
        ReportFormat::OneLine => {
            let (rows, members) = (report.rows, report.members.len());
            let name = escape::name(&report.location);
            out.line(format_args!("path={name} status={status_word} members={members} rows={rows}"))?;
        }
        ReportFormat::Text => {
            out.line(format_args!("collection: {}", escape::name(&report.location)))?;
            out.line(format_args!("status: {}", status(report.ok)))?;
            out.line("checks:")?;
            for finding in &report.findings {
                out.line(check(finding))?;
            }
            for member in &report.members {
                out.line(one_line(member))?;
                for finding in member.failures() {
                    out.line(check(finding))?;
                }
            }
            let (members, rows, deleted) = (report.members.len(), report.rows, report.deleted);
            out.line(format_args!("summary: members={members} rows={rows} deleted={deleted} deep={deep}"))?;
        }
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
        out.line(check(finding))?;
    }
    let Checked { rows, pages, records, deep, .. } = report.details;
    out.line(format_args!("summary: rows={rows} pages={pages} records={records} deep={deep}"))
}

fn one_line(report: &Report) -> String {
    let failures = report.findings.iter().filter(|finding| finding.is_failure()).count();
    format!(
        "path={} status={} rows={} pages={} records={} failures={failures}",
        escape::name(&report.location),
        if report.ok { "ok" } else { "failed" },
        report.details.rows,
        report.details.pages,
        report.details.records,
    )
}
