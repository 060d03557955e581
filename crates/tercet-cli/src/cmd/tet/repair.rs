//! `tet repair`: plan and apply repairs, or salvage intact chunks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet::Format;
use tercet::core::{ByteSource, escape};
use tercet::tet::{
    self, Action, ActionState, RepairMode, RepairOptions, RepairReport, Report, SalvageOptions, SalvageReport,
};

use super::report::{ReportJson, check, in_one_line, status};
use crate::args::{ForceArgs, JsonArgs, QuietArgs, read_options};
use crate::cmd::tgm::ReportFormat;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, cannot_change, is_pipe, must_be_changeable};
use crate::many::{Files, JsonList};
use crate::output::{Output, Spool, atomic_file, deliver, json_path};
use crate::render::shell_quoted;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};

/// Missing chunks printed.
const MISSING_PRINTED: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tet repair bad.tet                                   list possible repairs; changes nothing
  tet repair bad.tet --apply footer_invalid --dry-run  print what would change
  tet repair bad.tet --apply footer_invalid            apply the repair
  tet repair bad.tet -o good.tet --fill nan            copy intact chunks to a new file
  tet repair --plan -r archive                         possible repairs of a directory tree

Repairs are made on a copy that replaces the file atomically.
Exit code 0: nothing is lost, or repaired in place and valid; 1: something is damaged or lost, or verification still \
fails. A plan exits with 1 if verification fails.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("force", |arg| arg.requires("output")))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) files: Files,
    /// List possible repairs and change nothing (default); takes several files
    #[arg(long, conflicts_with_all = ["apply", "output"])]
    plan: bool,
    /// Apply this repair. Repeatable
    #[arg(long, value_name = "CODE", value_parser = tet::REPAIRABLE)]
    apply: Vec<String>,
    /// With --apply: print what would change
    #[arg(long, requires = "apply")]
    dry_run: bool,
    /// Salvage: write the intact parts to a new file and list the lost ones; `-` writes to standard output
    #[arg(short, long, value_name = "OUT", alias = "salvage", conflicts_with_all = ["apply", "dry_run"])]
    output: Option<PathBuf>,
    /// With --output: fill value of lost elements of a .tet file, like `nan`; without it, reading them is an error
    #[arg(long, value_name = "VALUE", requires = "output", allow_negative_numbers = true)]
    fill: Option<f64>,
    /// With --output: accept a .tet catalog whose checksum fails; names, types and shapes may be wrong
    #[arg(long, requires = "output")]
    ignore_checksums: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

impl Args {
    fn form(&self) -> ReportFormat {
        ReportFormat::new(self.json.json, self.quiet.quiet)
    }

    /// The first given option that applies to `.tet` files only.
    pub(crate) fn for_tet_only(&self) -> Option<&'static str> {
        let options = [
            ("--apply", !self.apply.is_empty()),
            ("--fill", self.fill.is_some()),
            ("--ignore-checksums", self.ignore_checksums),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// Rejects several files unless nothing is written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.files.only_one_if(self.output.is_some() || !self.apply.is_empty(), "repair")
    }

    /// The same request for a `.tgm` file.
    pub(crate) fn for_tgm<'a>(&'a self, input: &'a Path) -> crate::cmd::tgm::repair::Request<'a> {
        crate::cmd::tgm::repair::Request {
            input: Some(input),
            output: self.output.as_deref(),
            force: self.force.force,
            reproducible: false,
            form: self.form(),
        }
    }

    /// The same request for a `.tatami` file.
    pub(crate) fn for_tatami(&self) -> crate::cmd::tatami::repair::Request<'_> {
        crate::cmd::tatami::repair::Request {
            output: self.output.as_deref(),
            force: self.force.force,
            schema: None,
            writer: tercet::tatami::WriterOptions::new(),
            form: self.form(),
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.check()?;
    args.files.each(Some(Format::Tet), JsonList::ForMany, out, |input, out| {
        let source = input.source_of(Format::Tet)?;
        run_on(args, input, source, out)
    })
}

/// Repairs a file in place, or salvages any input.
pub(crate) fn run_on(
    args: &Args,
    input: &Input,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let path = &input.path;
    if let Some(target) = &args.output {
        return salvage(input, source, target, args, out);
    }
    let options = applying(&args.apply).with_dry_run(args.dry_run);
    let done = if args.apply.is_empty() {
        tet::plan_repair(source, &options, &out.bar("planning", 0))?
    } else {
        if is_pipe(path) {
            let failure = cannot_change(path, "a pipe");
            return Err(failure.with_hint("write the intact parts to a new file with `-o`"));
        }
        must_be_changeable(path, "repair")?;
        tet::repair(path, &options, &out.bar("repairing", 0))?
    };
    match args.form() {
        ReportFormat::Json => out.json(&RepairJson::new(&done))?,
        ReportFormat::OneLine => out.line(one_line(&done))?,
        ReportFormat::Text => lines(&done).into_iter().try_for_each(|line| out.line(line))?,
    }
    match done.mode {
        RepairMode::DryRun => Ok(Outcome::Done),
        RepairMode::Plan | RepairMode::Apply if done.ok() => Ok(Outcome::Done),
        RepairMode::Plan => Ok(Outcome::CheckFailed),
        RepairMode::Apply => {
            out.note("verification still fails")?;
            Ok(Outcome::CheckFailed)
        }
    }
}

/// The report as one line.
fn one_line(report: &RepairReport) -> String {
    let with = |state: ActionState| report.actions.iter().filter(|action| action.state == state).count();
    format!(
        "path={} status={} repairable={} manual={} applied={}",
        escape::name(&report.location),
        if report.ok() { "ok" } else { "failed" },
        with(ActionState::Repairable) + with(ActionState::WouldApply),
        with(ActionState::Manual),
        with(ActionState::Applied),
    )
}

/// Applies every safe repair and prints it on standard error. Returns whether anything was changed.
pub(super) fn apply_safe_repairs(path: &Path, out: &mut Ui) -> Result<bool, Failure> {
    let plan = tet::repair(path, &applying(&[]), &out.bar("planning", 0))?;
    let apply: Vec<String> = tet::safe_repairs(&plan.before).into_iter().map(str::to_owned).collect();
    let left = plan
        .actions
        .iter()
        .find(|action| action.state == ActionState::Repairable && !apply.contains(&action.code));
    if let Some(action) = left {
        let code = &action.code;
        let command = format!("tet repair {} --apply {code}", shell_quoted(&path.to_string_lossy()));
        out.note(format!("not applied: `{code}` would accept bytes that their checksums contradict"))?;
        out.note(format!("hint: inspect the file, then use `{command}` if its contents are right"))?;
    }
    if apply.is_empty() {
        if left.is_none() {
            out.note("no automatic repair available")?;
        }
        return Ok(false);
    }
    let done = tet::repair(path, &applying(&apply), &out.bar("repairing", 0))?;
    for line in lines(&done) {
        out.note(line)?;
    }
    Ok(true)
}

fn applying(codes: &[String]) -> RepairOptions {
    let options = RepairOptions::new().with_read(read_options());
    codes.iter().fold(options, |options, code| options.with_apply(code))
}

/// A report with the commands for its recommendations, as JSON.
#[derive(Serialize)]
struct RepairJson<'a> {
    path: &'a str,
    mode: RepairMode,
    actions: &'a [Action],
    before: ReportJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<ReportJson<'a>>,
}

impl<'a> RepairJson<'a> {
    fn new(report: &'a RepairReport) -> Self {
        Self {
            path: &report.location,
            mode: report.mode,
            actions: &report.actions,
            before: ReportJson::new(&report.before),
            after: report.after.as_ref().map(ReportJson::new),
        }
    }
}

/// The result of a salvage with the path of the new file, as JSON.
#[derive(Serialize)]
struct SalvageJson<'a> {
    output: String,
    #[serde(flatten)]
    report: &'a SalvageReport<()>,
}

fn lines(report: &RepairReport) -> Vec<String> {
    let mut lines = vec![format!("file: {}", escape::name(&report.location))];
    match report.mode {
        RepairMode::Plan => lines.push("repair plan:".to_owned()),
        RepairMode::DryRun => lines.push("mode: dry-run".to_owned()),
        RepairMode::Apply => lines.push("mode: apply".to_owned()),
    }
    if report.actions.is_empty() {
        lines.extend(without_actions(&report.before));
    }
    for action in &report.actions {
        let (state, detail) = (action.state, in_one_line(&action.detail));
        let word = match state {
            ActionState::Repairable => paint(GOOD, "repairable"),
            ActionState::Manual => paint(WARN, "manual"),
            ActionState::WouldApply => paint(WARN, "planned"),
            ActionState::Applied => paint(GOOD, "applied"),
            ActionState::Skipped => paint(BAD, "skipped"),
        };
        if report.mode == RepairMode::Plan {
            lines.push(format!("  [{word}] {} — {detail}", action.code));
            lines.extend(command_for(report, &action.code).map(|command| format!("       → {command}")));
        } else {
            lines.push(format!("  [{}] {word}: {detail}", escape::name(&action.code)));
        }
    }
    if report.mode == RepairMode::Apply {
        lines.push(format!("verify_after: {}", status(report.ok())));
    }
    lines
}

/// The report without actions: the file is valid, or no repair is available.
fn without_actions(before: &Report) -> Vec<String> {
    if before.ok {
        return vec!["  (nothing to repair: the file is valid)".to_owned()];
    }
    let failed = before.findings.iter().filter(|finding| finding.is_failure());
    failed.map(check).chain(["  no automatic repair available".to_owned()]).collect()
}

/// The command of a recommended repair.
fn command_for(report: &RepairReport, code: &str) -> Option<String> {
    let recommended = report.before.details.recommendations.iter().find(|other| other.code == code)?;
    let command = super::report::command(recommended, &report.location)?;
    Some(escape::name(&command).into_owned())
}

fn salvage(
    input: &Input,
    source: Arc<dyn ByteSource>,
    target: &Path,
    args: &Args,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let output = Output::open(target, args.force.force)?;
    output.must_not_be(&input.path)?;
    output.reserve_stdout(out)?;
    let mut options = SalvageOptions::new().with_read(read_options());
    options.fill = args.fill;
    options.accept_catalog = args.ignore_checksums;
    let (name, bar) = (output.name(), out.bar("salvaging", 0));
    let report = match &output {
        Output::Path(target) if input.is_on_disk() => {
            tet::salvage_file(&input.path, target, args.force.force, options, &bar)?.into_parts().0
        }
        Output::Path(target) => {
            let sink = atomic_file(target, args.force.force)?;
            tet::salvage(source, sink, options, &bar)?.into_parts().0
        }
        Output::Stdout | Output::Stream(_) => {
            let (report, file) = tet::salvage(source, Spool::new()?, options, &bar)?.into_parts();
            deliver(file, output, out)?;
            report
        }
    };
    drop(bar);
    let is_bad = !report.is_complete() || report.kept == 0;
    match args.form() {
        ReportFormat::Json => out.json(&SalvageJson { output: json_path(target), report: &report })?,
        ReportFormat::OneLine => {
            let (path, status) = (escape::name(&report.location), if is_bad { "failed" } else { "ok" });
            let (kept, missing) = (report.kept, report.missing.len());
            let datasets = report.lost_datasets.len();
            out.line(format_args!(
                "path={path} status={status} kept={kept} missing={missing} lost_datasets={datasets}"
            ))?;
        }
        ReportFormat::Text => print_salvage(&report, &name, out)?,
    }
    if report.kept == 0 {
        out.note("no chunk could be kept")?;
    }
    Ok(if is_bad { Outcome::CheckFailed } else { Outcome::Done })
}

fn print_salvage(report: &SalvageReport<()>, target: &str, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("from: {}", escape::name(&report.location)))?;
    out.line(format_args!("into: {target}"))?;
    let total = report.kept.saturating_add(report.missing.len() as u64);
    out.line(format_args!("kept: {} of {total} chunks", report.kept))?;
    // Each message names its dataset.
    for reason in &report.lost_datasets {
        out.line(format_args!("{} {}", paint(BAD, "lost:"), in_one_line(reason)))?;
    }
    for note in &report.notes {
        out.line(format_args!("note: {}", in_one_line(note)))?;
    }
    if report.missing.is_empty() {
        return Ok(());
    }
    let meaning = match report.fill {
        Some(value) => format!("filled with {value}"),
        None => "reading them is an error".to_owned(),
    };
    out.line(format_args!("{} ({meaning}):", paint(WARN, "missing chunks")))?;
    for hole in report.missing.iter().take(MISSING_PRINTED) {
        let reason = in_one_line(&hole.reason);
        // Most reasons name the chunk.
        if reason.starts_with("dataset `") {
            out.line(format_args!("  {reason}"))?;
        } else {
            let name = escape::name(&hole.dataset);
            out.line(format_args!("  dataset `{name}`, chunk {:?}: {reason}", hole.chunk))?;
        }
    }
    match report.missing.len().checked_sub(MISSING_PRINTED) {
        Some(more @ 1..) => out.line(format_args!("  … and {more} more; `--json` prints all")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// An invalid file without a known repair is never reported as valid.
    #[test]
    fn without_a_repair_the_failed_checks_are_printed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"no such format").unwrap();
        let silent = tercet::core::progress::NoProgress;
        let mut plan = tet::repair(file.path(), &RepairOptions::default(), &silent).unwrap();
        assert!(!plan.before.ok);
        plan.actions.clear();
        let text = lines(&plan).join("\n");
        assert!(!text.contains("the file is valid"), "{text}");
        let failed = plan.before.findings.iter().find(|finding| finding.is_failure()).unwrap();
        let detail = in_one_line(failed.message.as_deref().unwrap());
        assert!(text.contains(&*failed.code) && text.contains(&detail), "{text}");
        assert!(text.ends_with("\n  no automatic repair available"), "{text}");
    }
}
