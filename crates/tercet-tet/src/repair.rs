//! [`repair()`]: in-place repairs of damaged files.
//!
//! A repair writes a copy that replaces the file when it is complete; a crash leaves the file unchanged. Only repairs
//! that verification recommends are applied, so no intact part is destroyed.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet_core::publish::{Disk, FileLock, RealDisk};
use tercet_core::{ByteSource, Class, Diagnostic as _, Progress, Span};

use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind};
use crate::file::{Mode, ReadOptions};
use crate::layout::WriterOptions;
use crate::metadata::HistoryRow;
use crate::rewrite::Rewrite;
use crate::verify::{
    FOOTER_INVALID, RECOMPUTE_CHECKSUMS, Report, VerifyOptions, footer_cut_offset, is_about_footer, verify,
};
use crate::wire::ids::FLAG_FOOTER;
use crate::writer::PRODUCER;

mod salvage;

pub use salvage::{MissingChunk, SalvageOptions, SalvageReport, salvage, salvage_file, salvage_file_on};

/// The repairs to apply.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// The codes of the repairs. Without one, the report lists what can be done.
    pub apply: Vec<String>,
    /// Report what would be done and change nothing.
    pub dry_run: bool,
    /// How the file is read: limits, access, threads. Checksums are always compared.
    pub read: ReadOptions,
}

impl RepairOptions {
    /// No repairs: a plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a code to apply.
    pub fn with_apply(mut self, code: &str) -> Self {
        self.apply.push(code.to_owned());
        self
    }

    /// Sets whether nothing is changed.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Sets how the file is read.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

/// The result of a repair.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// The path of the file.
    #[serde(rename = "path")]
    pub location: String,
    /// Whether repairs were requested.
    pub mode: RepairMode,
    /// The result of each code.
    pub actions: Vec<Action>,
    /// The verification before the repairs.
    pub before: Report,
    /// The verification after the repairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Report>,
}

/// Whether repairs were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairMode {
    /// No: the report lists what can be done.
    Plan,
    /// Yes, without changing the file.
    DryRun,
    /// Yes.
    Apply,
}

/// The result of one repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The code of the repair.
    pub code: String,
    /// The state of the repair.
    pub state: ActionState,
    /// The result in words.
    pub detail: String,
}

/// The state of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// It can be applied.
    Repairable,
    /// It needs manual work.
    Manual,
    /// It would be applied.
    WouldApply,
    /// It was applied.
    Applied,
    /// It was not applied: not recommended, or manual work.
    Skipped,
}

impl RepairReport {
    /// Whether the file is valid now.
    pub fn ok(&self) -> bool {
        self.after.as_ref().unwrap_or(&self.before).ok
    }
}

/// Bytes copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// The repairs of a report that accept no bytes that a checksum contradicts: those in [`REPAIRABLE`] without
/// `recompute_checksums`, unless only statistics differ from intact chunks.
pub fn safe_repairs(report: &Report) -> Vec<&'static str> {
    let contradicted = ["tercet_catalog", "tercet_footer", "tercet_block"];
    let is_safe = |code: &str| {
        code != RECOMPUTE_CHECKSUMS
            || !report.failures().any(|finding| contradicted.contains(&&*finding.code))
    };
    let recommended = report.details.recommendations.iter().map(|recommendation| recommendation.code);
    recommended.filter(|code| REPAIRABLE.contains(code) && is_safe(code)).collect()
}

/// The codes of the repairs that can be applied in place.
pub const REPAIRABLE: [&str; 2] = [FOOTER_INVALID, RECOMPUTE_CHECKSUMS];

/// Verifies a file and lists the repairs that can be done. Nothing is changed: the source can be remote or in memory.
pub fn plan_repair(
    source: Arc<dyn ByteSource>,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<RepairReport, Error> {
    let before = verify_deep(source, options.read, progress)?;
    Ok(RepairReport {
        location: before.location.clone(),
        mode: RepairMode::Plan,
        actions: before.details.recommendations.iter().map(planned).collect(),
        before,
        after: None,
    })
}

/// Verifies a file and applies repairs to it. Without repairs to apply, it is [`plan_repair`].
pub fn repair(path: &Path, options: &RepairOptions, progress: &dyn Progress) -> Result<RepairReport, Error> {
    repair_on(&(Arc::new(RealDisk) as Arc<dyn Disk>), path, options, progress)
}

/// Repairs a file on another [`Disk`], for tests.
pub fn repair_on(
    disk: &Arc<dyn Disk>,
    path: &Path,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<RepairReport, Error> {
    let mut report = plan_repair(open(path, options.read)?, options, progress)?;
    if options.apply.is_empty() {
        return Ok(report);
    }
    report.mode = if options.dry_run { RepairMode::DryRun } else { RepairMode::Apply };
    report.actions.clear();
    for code in &options.apply {
        // A repair can make the next one unnecessary, or necessary.
        let current = report.after.as_ref().unwrap_or(&report.before);
        let action = apply(disk, path, code, current, options, progress)?;
        let applied = action.state == ActionState::Applied;
        report.actions.push(action);
        if applied {
            report.after = Some(verify_deep(open(path, options.read)?, options.read, progress)?);
        }
    }
    if report.after.is_none() && !options.dry_run {
        report.after = Some(report.before.clone());
    }
    Ok(report)
}

fn verify_deep(
    source: Arc<dyn ByteSource>,
    read: ReadOptions,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let options = VerifyOptions::new().with_deep(true).with_limits(read.limits).with_threads(read.threads);
    verify(source, options, progress)
}

fn open(path: &Path, read: ReadOptions) -> Result<Arc<dyn ByteSource>, Error> {
    let source = read.access.open(path);
    source.map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))
}

fn planned(recommendation: &crate::Recommendation) -> Action {
    let repairable = REPAIRABLE.contains(&recommendation.code);
    Action {
        code: recommendation.code.to_owned(),
        state: if repairable { ActionState::Repairable } else { ActionState::Manual },
        detail: recommendation.fix.summary.to_owned(),
    }
}

fn apply(
    disk: &Arc<dyn Disk>,
    path: &Path,
    code: &str,
    report: &Report,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<Action, Error> {
    let (dry_run, read) = (options.dry_run, options.read);
    let action = |state, detail: String| Ok(Action { code: code.to_owned(), state, detail });
    if !REPAIRABLE.contains(&code) {
        let known = report.details.recommends(code);
        let reason = if known { "needs manual work: no repair does it" } else { "is not a repair code" };
        return action(ActionState::Skipped, reason.to_owned());
    }
    if !report.details.recommends(code) {
        return action(
            ActionState::Skipped,
            "verification does not recommend it; nothing was changed".to_owned(),
        );
    }
    let done = if dry_run { ActionState::WouldApply } else { ActionState::Applied };
    if code == FOOTER_INVALID {
        return match cut_footer(disk, path, dry_run, read)? {
            Some(detail) => action(done, detail),
            None => action(
                ActionState::Skipped,
                "the file was changed meanwhile and its footer is intact; nothing was changed".to_owned(),
            ),
        };
    }
    if let Some(reason) = cannot_recompute(report) {
        return action(ActionState::Skipped, reason);
    }
    if dry_run {
        return action(done, "would decode every chunk and recompute the checksums".to_owned());
    }
    let rows = match recompute_checksums(disk.clone(), path, read, progress) {
        Ok(rows) => rows,
        // The remaining checksums, or the order of the index, contradict the bytes.
        Err(error) if matches!(error.class(), Class::Corrupt | Class::Malformed) => {
            let reason = error.kind().to_string().replace("\n ", ":");
            let detail =
                format!("refused: {reason}; damaged chunks get no new checksum; salvage the intact chunks");
            return action(ActionState::Skipped, detail);
        }
        Err(error) => return Err(error),
    };
    action(
        done,
        format!(
            "decoded {rows} chunk(s) and recomputed their checksums; the current bytes are accepted as correct"
        ),
    )
}

/// Reason the checksums must not be recomputed: damage that the old checksums prove would be accepted.
fn cannot_recompute(report: &Report) -> Option<String> {
    let bad =
        ["tercet_payloads", "chunk_decode", "chunk_dataset_ids", "dataset_tensor_bytes", "chunk_coords"];
    let failed = report.failures().find(|finding| bad.contains(&&*finding.code))?;
    Some(format!(
        "refused: `{}` fails; damaged chunks get no new checksum; salvage the intact chunks",
        failed.code
    ))
}

/// Cuts off the footer: removes everything after the payloads and clears the flag. `None` if the footer is intact.
fn cut_footer(
    disk: &Arc<dyn Disk>,
    path: &Path,
    dry_run: bool,
    read: ReadOptions,
) -> Result<Option<String>, Error> {
    let name: Arc<str> = path.to_string_lossy().into();
    let error = |fault: ErrorKind| Error::new(name.clone(), fault);
    // Locked before it is read, so that no other process changes it in between.
    let lock = if dry_run {
        None
    } else {
        Some(FileLock::acquire_on(disk.clone(), path).map_err(|publish| error(publish.into()))?)
    };
    let source = open(path, read)?;
    let limits = read.limits.for_file(source.len());
    // The file may have been replaced after it was verified and before it was locked.
    match Catalog::read(&source, &limits) {
        Err(fault) if is_about_footer(&fault) => {}
        Err(fault) => return Err(error(fault)),
        Ok(_) => return Ok(None),
    }
    let cut = footer_cut_offset(&source, &limits).map_err(error)?;
    let lost = source.len() - cut;
    let Some(lock) = lock else {
        return Ok(Some(format!(
            "would truncate to {cut} bytes and clear history footer flag; {lost} bytes are lost"
        )));
    };
    copy_without_footer(&source, lock, cut).map_err(error)?;
    Ok(Some(format!(
        "truncated to {cut} bytes and cleared history footer flag; {lost} bytes of footer are lost"
    )))
}

/// Replaces a file by its first `end` bytes with the footer flag cleared.
fn copy_without_footer(source: &dyn ByteSource, lock: FileLock, end: u64) -> Result<(), ErrorKind> {
    let mut atomic_file = lock.replace()?;
    let mut flags = [0; 4];
    source.read_into(12, &mut flags)?;
    let flags = (u32::from_le_bytes(flags) & !FLAG_FOOTER).to_le_bytes();
    atomic_file.write_all(&source.read_at(Span::first(12))?)?;
    atomic_file.write_all(&flags)?;
    let mut at = 16 + atomic_file.copy_from_replaced(16, end.saturating_sub(16))?;
    while at < end {
        let piece = Span::between(at, end.min(at + COPY_BYTES)).unwrap_or(Span::empty(at));
        atomic_file.write_all(&source.read_at(piece)?)?;
        at = piece.end();
    }
    atomic_file.publish()?;
    Ok(())
}

/// Rewrites the file with a new integrity block.
fn recompute_checksums(
    disk: Arc<dyn Disk>,
    path: &Path,
    read: ReadOptions,
    progress: &dyn Progress,
) -> Result<u64, Error> {
    // Chunks are still checked against the old block: damage that it proves is not accepted.
    let rewrite = Rewrite::open_mode(disk, path, read, Mode::Recovery)?;
    let rows = rewrite.file().chunk_count();
    let row = HistoryRow::now("recompute_checksums", PRODUCER);
    rewrite.start(row, WriterOptions::new(), progress)?.finish()?;
    Ok(rows)
}
