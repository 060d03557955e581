//! Mending files: what can be mended, how, and what is lost by it.
//!
//! Repairs work on a copy that takes the place of the file when it is complete; a crash leaves the file as it was.
//! Nothing is repaired that verification does not recommend, so a healthy part is never destroyed.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::publish::{Disk, FileLock, RealDisk};
use tercet_core::{ByteSource, Class, Diagnose as _, Limits, Progress, Span};

use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind};
use crate::file::ReadOptions;
use crate::layout::WriterOptions;
use crate::metadata::HistoryRow;
use crate::rewrite::Rewrite;
use crate::verify::{
    FOOTER_INVALID, RESEAL, Report, VerifyOptions, footer_cut_offset, is_about_footer, verify_source,
};
use crate::wire::ids::FLAG_FOOTER;

mod salvage;

pub use salvage::{MissingChunk, SalvageOptions, SalvageReport, salvage, salvage_on};

/// What to repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// The codes to apply; none of them: only tell what could be done.
    pub apply: Vec<String>,
    /// Tell what would be done, and do nothing.
    pub dry_run: bool,
}

impl RepairOptions {
    /// Adds a code to apply.
    pub fn with_apply(mut self, code: &str) -> Self {
        self.apply.push(code.to_owned());
        self
    }

    /// Sets whether nothing is done.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// What was repaired.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// The file.
    pub path: String,
    /// Whether anything was to be done.
    pub mode: RepairMode,
    /// What each code came to.
    pub actions: Vec<Action>,
    /// The file before.
    pub before: Report,
    /// The file after, if anything was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Report>,
}

/// Whether anything was to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairMode {
    /// Only told what could be done.
    Plan,
    /// Told what would be done.
    DryRun,
    /// Done.
    Apply,
}

/// What one code came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The code.
    pub code: String,
    /// How it went.
    pub state: ActionState,
    /// In words.
    pub detail: String,
}

/// How a repair went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// Can be applied.
    Repairable,
    /// Needs a person.
    Manual,
    /// Would be applied.
    WouldApply,
    /// Was applied.
    Applied,
    /// Was not applied: not recommended, or not something a command can do.
    Skipped,
}

impl RepairReport {
    /// Whether the file is well now.
    pub fn ok(&self) -> bool {
        self.after.as_ref().unwrap_or(&self.before).ok
    }
}

/// The repairs that a command can do on the file itself.
pub const REPAIRABLE: [&str; 2] = [FOOTER_INVALID, RESEAL];

/// Verifies a file and applies repairs to it.
pub fn repair(path: &Path, options: &RepairOptions, progress: &dyn Progress) -> Result<RepairReport, Error> {
    repair_on(&(Arc::new(RealDisk) as Arc<dyn Disk>), path, options, progress)
}

/// Repairs a file through a file layer of the caller's.
pub fn repair_on(
    disk: &Arc<dyn Disk>,
    path: &Path,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<RepairReport, Error> {
    let before = look(path, progress)?;
    let mut report = RepairReport {
        path: before.path.clone(),
        mode: if options.apply.is_empty() { RepairMode::Plan } else { RepairMode::Apply },
        actions: Vec::new(),
        before,
        after: None,
    };
    if options.apply.is_empty() {
        report.actions = report.before.recommendations.iter().map(planned).collect();
        return Ok(report);
    }
    if options.dry_run {
        report.mode = RepairMode::DryRun;
    }
    for code in &options.apply {
        // One repair may make the next one needless, or needed.
        let current = report.after.as_ref().unwrap_or(&report.before);
        let action = apply(disk, path, code, current, options.dry_run, progress)?;
        let applied = action.state == ActionState::Applied;
        report.actions.push(action);
        if applied {
            report.after = Some(look(path, progress)?);
        }
    }
    if report.after.is_none() && !options.dry_run {
        report.after = Some(report.before.clone());
    }
    Ok(report)
}

fn look(path: &Path, progress: &dyn Progress) -> Result<Report, Error> {
    let source = tercet_core::source::File::open(path)
        .map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
    verify_source(Arc::new(source), VerifyOptions::default().with_deep(true), progress)
}

fn planned(recommendation: &crate::Recommendation) -> Action {
    let repairable = REPAIRABLE.contains(&recommendation.code);
    let fix = recommendation.fix.as_ref().map_or("", |fix| &fix.summary);
    Action {
        code: recommendation.code.to_owned(),
        state: if repairable { ActionState::Repairable } else { ActionState::Manual },
        detail: if fix.is_empty() { recommendation.message.clone() } else { fix.to_owned() },
    }
}

fn apply(
    disk: &Arc<dyn Disk>,
    path: &Path,
    code: &str,
    report: &Report,
    dry_run: bool,
    progress: &dyn Progress,
) -> Result<Action, Error> {
    let action = |state, detail: String| Ok(Action { code: code.to_owned(), state, detail });
    if !REPAIRABLE.contains(&code) {
        let known = report.recommends(code);
        let reason =
            if known { "needs a person: no command can do it" } else { "is not the code of a repair" };
        return action(ActionState::Skipped, reason.to_owned());
    }
    if !report.recommends(code) {
        return action(
            ActionState::Skipped,
            "verification does not recommend it: nothing was changed".to_owned(),
        );
    }
    let done = if dry_run { ActionState::WouldApply } else { ActionState::Applied };
    if code == FOOTER_INVALID {
        return match cut_footer(disk, path, dry_run)? {
            Some(detail) => action(done, detail),
            None => action(
                ActionState::Skipped,
                "the file was changed meanwhile, and its footer is sound: nothing was done".to_owned(),
            ),
        };
    }
    if let Some(reason) = cannot_reseal(report) {
        return action(ActionState::Skipped, reason);
    }
    if dry_run {
        return action(done, "would decode every chunk and compute the checksums anew".to_owned());
    }
    let rows = match reseal(disk.clone(), path, progress) {
        Ok(rows) => rows,
        // What is left of the old checksums, or the order of the index, speaks against it.
        Err(error) if matches!(error.class(), Class::Corrupt | Class::Malformed) => {
            let reason = error.kind().to_string().replace("\n ", ":");
            let detail = format!("refused: {reason}; damage is not sealed in, salvage the good chunks first");
            return action(ActionState::Skipped, detail);
        }
        Err(error) => return Err(error),
    };
    action(
        done,
        format!("decoded {rows} chunk(s) and computed their checksums anew; present bytes count as right"),
    )
}

/// Damage that a checksum proves must not be sealed in.
fn cannot_reseal(report: &Report) -> Option<String> {
    let bad =
        ["tercet_payloads", "chunk_decode", "chunk_dataset_ids", "dataset_tensor_bytes", "chunk_coords"];
    let failed = report.failures().find(|finding| bad.contains(&&*finding.code))?;
    Some(format!(
        "refused: `{}` fails, and damage is not sealed in; salvage the good chunks first",
        failed.code
    ))
}

/// Cuts a footer off: everything behind the payloads goes, and the flag is cleared. `None` if the footer is sound.
fn cut_footer(disk: &Arc<dyn Disk>, path: &Path, dry_run: bool) -> Result<Option<String>, Error> {
    let name: Arc<str> = path.to_string_lossy().into();
    let error = |fault: ErrorKind| Error::new(name.clone(), fault);
    // Locked before it is read, so that nobody changes it in between.
    let lock = if dry_run {
        None
    } else {
        Some(FileLock::acquire_on(disk.clone(), path).map_err(|publish| error(publish.into()))?)
    };
    let source = tercet_core::source::File::open(path).map_err(|source| error(source.into()))?;
    // Another file may have taken the place of the one that was verified, before this one was locked.
    match Catalog::read(&source, &Limits::default()) {
        Err(fault) if is_about_footer(&fault) => {}
        Err(fault) => return Err(error(fault)),
        Ok(_) => return Ok(None),
    }
    let cut = footer_cut_offset(&source).map_err(error)?;
    let lost = source.len() - cut;
    let Some(lock) = lock else {
        return Ok(Some(format!(
            "would truncate to {cut} bytes and clear history footer flag; {lost} bytes are lost"
        )));
    };
    let copy = || -> Result<(), ErrorKind> {
        let mut atomic_file = lock.replace()?;
        let write = crate::writer::write_fault;
        let mut flags = [0; 4];
        source.read_into(12, &mut flags)?;
        let flags = (u32::from_le_bytes(flags) & !FLAG_FOOTER).to_le_bytes();
        atomic_file.write_all(&source.read_at(Span::first(12))?).map_err(write)?;
        atomic_file.write_all(&flags).map_err(write)?;
        let rest = Span::between(16, cut).unwrap_or(Span::empty(16));
        atomic_file.write_all(&source.read_at(rest)?).map_err(write)?;
        atomic_file.publish()?;
        Ok(())
    };
    copy().map_err(error)?;
    Ok(Some(format!(
        "truncated to {cut} bytes and cleared history footer flag; {lost} bytes of footer are lost"
    )))
}

/// Writes the file again with a new block.
fn reseal(disk: Arc<dyn Disk>, path: &Path, progress: &dyn Progress) -> Result<u64, Error> {
    // Chunks are still checked by what is left of the old block: damage that it proves is not sealed in.
    let rewrite = Rewrite::open_with(disk, path, ReadOptions::recovery())?;
    let rows = rewrite.file().chunk_count();
    let row = HistoryRow::now("reseal", "tet repair");
    rewrite.start(row, WriterOptions::new(), progress)?.seal()?;
    Ok(rows)
}
