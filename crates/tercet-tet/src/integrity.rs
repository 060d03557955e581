//! [`IntegrityChecker`]: checks index rows, chunks and statistics against the integrity block.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde::Serialize;
use tercet_core::checksum::{self, Mismatch};
use tercet_core::{ByteSource, CommonError, Limits, Span};

use crate::Region;
use crate::catalog::Catalog;
use crate::error::ErrorKind;
use crate::file::Mode;
use crate::wire::block::{Block, CRC_LEN, Column, LongLabels, STATS_LEN, runs};
use crate::wire::ids::RUN_ROWS;

mod lost;

pub(crate) use lost::{LostBlock, find_lost_block};

/// Whether the bytes of a file are checked against its integrity block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum IntegrityStatus {
    /// Every byte that is read is checked.
    Checked {
        /// Whether the block has chunk statistics.
        statistics: bool,
    },
    /// Some columns of the block are unusable: the bytes they cover are not checked.
    Partial {
        /// The problems of the columns.
        problems: Vec<String>,
    },
    /// The file has no integrity block.
    Absent,
    /// The block has an unknown version.
    Unknown,
    /// Verification is off.
    Ignored,
}

/// An integrity block, and which runs of rows have passed their checksum.
#[derive(Debug)]
pub(crate) struct IntegrityChecker {
    block: Block,
    rows: u64,
    /// One bit per run of index rows: checked.
    index_runs: Vec<AtomicU64>,
    /// One bit per run of statistics: checked.
    stats_runs: Vec<AtomicU64>,
    /// In recovery, one bit per run of index rows that fails its checksum. Rows of such a run may still be intact;
    /// the checksums of their chunks decide.
    suspect_runs: Option<Vec<AtomicU64>>,
}

/// The integrity block of an open file.
pub(crate) struct Integrity {
    pub(crate) checker: Option<IntegrityChecker>,
    pub(crate) status: IntegrityStatus,
    /// Labels of axes with more than 64 of them, checked or not.
    pub(crate) labels: LongLabels,
}

/// Parses the integrity block of an opened file and checks footer and catalog against it.
///
/// A file without a block is searched for traces of one: damage must not make a protected file an unprotected one.
pub(crate) fn open(
    catalog: &Catalog,
    source: &dyn ByteSource,
    limits: &Limits,
    verify: bool,
    mode: Mode,
) -> Result<Integrity, ErrorKind> {
    let unchecked = |status, labels| Integrity { checker: None, status, labels };
    let mut block = catalog.block();
    let labels = block.as_mut().map(|block| std::mem::take(&mut block.labels)).unwrap_or_default();
    if mode == Mode::Recovery {
        let checker = block.and_then(|block| recovery(catalog, block));
        return Ok(Integrity { checker, ..unchecked(IntegrityStatus::Ignored, labels) });
    }
    if !verify || mode == Mode::WithoutFooter {
        return Ok(unchecked(IntegrityStatus::Ignored, labels));
    }
    let Some(block) = block else {
        if let Some(lost) = find_lost_block(catalog, source, limits)? {
            return Err(lost.error());
        }
        let has_block = catalog.footer.as_ref().is_some_and(|footer| footer.block.is_some());
        let status = if has_block { IntegrityStatus::Unknown } else { IntegrityStatus::Absent };
        return Ok(unchecked(status, labels));
    };
    catalog.check_footer(source)?;
    catalog.check_catalog(source, &block)?;
    let status = if block.problems.is_empty() {
        IntegrityStatus::Checked { statistics: block.row_stats.is_some() }
    } else {
        IntegrityStatus::Partial { problems: block.problems.clone() }
    };
    let checker = IntegrityChecker::new(block, catalog.index.entry_count);
    Ok(Integrity { checker: Some(checker), ..unchecked(status, labels) })
}

/// A checker for the chunks of a damaged file.
///
/// The block itself may be damaged: then an intact chunk may fail its checksum, but a damaged chunk never passes.
fn recovery(catalog: &Catalog, mut block: Block) -> Option<IntegrityChecker> {
    let rows = catalog.index.entry_count;
    if block.rows != Some(rows) {
        return None;
    }
    (block.row_stats, block.stats_crc32c) = (None, None);
    let mut checker = IntegrityChecker::new(block, rows);
    checker.suspect_runs = Some(checker.index_runs.iter().map(|_| AtomicU64::new(0)).collect());
    Some(checker)
}

impl IntegrityChecker {
    fn new(block: Block, rows: u64) -> Self {
        let words = usize::try_from(runs(rows).div_ceil(64)).unwrap_or(0);
        let bits = || (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { block, rows, index_runs: bits(), stats_runs: bits(), suspect_runs: None }
    }

    /// Checks the bytes of a run of index rows, once.
    pub(crate) fn check_index_run(
        &self,
        source: &dyn ByteSource,
        run: u64,
        bytes: &[u8],
        span: Span,
    ) -> Result<(), ErrorKind> {
        if is_set(&self.index_runs, run) {
            return Ok(());
        }
        self.check_index_run_again(source, run, bytes, span)?;
        set(&self.index_runs, run);
        Ok(())
    }

    /// Checks the bytes of a run of index rows that were read again. For recovery, a mismatch makes the run suspect.
    pub(crate) fn check_index_run_again(
        &self,
        source: &dyn ByteSource,
        run: u64,
        bytes: &[u8],
        span: Span,
    ) -> Result<(), ErrorKind> {
        match (self.recheck_index_run(source, run, bytes, span), &self.suspect_runs) {
            (Err(ErrorKind::Common(CommonError::Checksum { .. })), Some(suspect)) => {
                set(suspect, run);
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Whether a row outside canonical order is accepted: its run has passed its checksum.
    pub(crate) fn is_trusted(&self, row: u64) -> bool {
        self.suspect_runs.as_ref().is_none_or(|suspect| !is_set(suspect, row / RUN_ROWS))
    }

    /// Checks the bytes of a run of index rows again.
    pub(crate) fn recheck_index_run(
        &self,
        source: &dyn ByteSource,
        run: u64,
        bytes: &[u8],
        span: Span,
    ) -> Result<(), ErrorKind> {
        let Some(column) = &self.block.index_crc32c else { return Ok(()) };
        let expected = crc_entry(column, source, run)?;
        let (first, end) = run_rows(run, self.rows);
        Mismatch::check_crc32c(expected, checksum::crc32c(bytes)).map_err(|mismatch| {
            ErrorKind::Common(CommonError::Checksum {
                region: Region::IndexRun { first, end },
                span,
                mismatch,
            })
        })
    }

    /// The stored checksum of a chunk; `None` without one.
    pub(crate) fn row_crc(&self, source: &dyn ByteSource, row: u64) -> Result<Option<u32>, ErrorKind> {
        let column = self.block.row_crc32c.as_ref();
        column.map(|column| crc_entry(column, source, row)).transpose()
    }

    /// The stored checksum of a chunk, from those that were read before if it is one of them.
    pub(crate) fn row_crc_of_run(
        &self,
        source: &dyn ByteSource,
        row: u64,
        run: &mut CrcRun,
    ) -> Result<Option<u32>, ErrorKind> {
        let Some(column @ Column::At { .. }) = &self.block.row_crc32c else {
            return self.row_crc(source, row);
        };
        if !(run.first..run.end).contains(&row) {
            let (first, end) = run_rows(row / RUN_ROWS, self.rows);
            let bytes = column_bytes(column, source, first * CRC_LEN, end.saturating_sub(first) * CRC_LEN)?;
            *run = CrcRun { first, end, bytes };
        }
        let at = usize::try_from((row - run.first) * CRC_LEN).unwrap_or(usize::MAX);
        let crc = run.bytes.get(at..).and_then(|rest| rest.first_chunk());
        Ok(Some(crc.map_or(0, |crc| u32::from_le_bytes(*crc))))
    }

    /// The checked statistics of a chunk; `None` without them.
    pub(crate) fn row_stats(&self, source: &dyn ByteSource, row: u64) -> Result<Option<[u8; 48]>, ErrorKind> {
        let (Some(stats), Some(crcs)) = (&self.block.row_stats, &self.block.stats_crc32c) else {
            return Ok(None);
        };
        let run = row / RUN_ROWS;
        let (first, end) = run_rows(run, self.rows);
        if !is_set(&self.stats_runs, run) {
            let bytes = column_bytes(stats, source, first * STATS_LEN, (end - first) * STATS_LEN)?;
            let expected = crc_entry(crcs, source, run)?;
            let span = match stats {
                Column::At { span, .. } => span.slice(first * STATS_LEN, bytes.len() as u64).unwrap_or(*span),
                Column::Inline(_) => Span::empty(0),
            };
            Mismatch::check_crc32c(expected, checksum::crc32c(&bytes)).map_err(|mismatch| {
                ErrorKind::Common(CommonError::Checksum {
                    region: Region::StatsRun { first, end },
                    span,
                    mismatch,
                })
            })?;
            set(&self.stats_runs, run);
        }
        let bytes = column_bytes(stats, source, row * STATS_LEN, STATS_LEN)?;
        let mut out = [0; 48];
        out.copy_from_slice(&bytes);
        Ok(Some(out))
    }
}

/// The stored checksums of the chunks of a run, read at once.
#[derive(Debug, Default)]
pub(crate) struct CrcRun {
    first: u64,
    end: u64,
    bytes: Bytes,
}

/// The rows of a run.
pub(crate) fn run_rows(run: u64, rows: u64) -> (u64, u64) {
    let first = run.saturating_mul(RUN_ROWS);
    (first, first.saturating_add(RUN_ROWS).min(rows))
}

/// Bytes of a column. The parser of the block has checked the length of the column.
pub(crate) fn column_bytes(
    column: &Column,
    source: &dyn ByteSource,
    offset: u64,
    len: u64,
) -> Result<Bytes, ErrorKind> {
    match column {
        Column::Inline(bytes) => {
            let range = Span::at(offset, len).and_then(Span::to_range).unwrap_or_default();
            Ok(Bytes::copy_from_slice(bytes.get(range).unwrap_or_default()))
        }
        Column::At { span, .. } => {
            let past_end = tercet_core::SourceError::PastEnd { span: *span, len: source.len() };
            Ok(source.read_at(span.slice(offset, len).ok_or(past_end)?)?)
        }
    }
}

fn crc_entry(column: &Column, source: &dyn ByteSource, number: u64) -> Result<u32, ErrorKind> {
    let bytes = match column {
        // The hot path: no allocation.
        Column::Inline(bytes) => {
            let at = usize::try_from(number * CRC_LEN).unwrap_or(usize::MAX);
            return Ok(bytes
                .get(at..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |crc| u32::from_le_bytes(*crc)));
        }
        Column::At { .. } => column_bytes(column, source, number * CRC_LEN, CRC_LEN)?,
    };
    Ok(bytes.first_chunk().map_or(0, |crc| u32::from_le_bytes(*crc)))
}

fn is_set(bits: &[AtomicU64], n: u64) -> bool {
    word(bits, n).is_some_and(|word| word.load(Ordering::Acquire) & (1 << (n % 64)) != 0)
}

fn set(bits: &[AtomicU64], n: u64) {
    if let Some(word) = word(bits, n) {
        word.fetch_or(1 << (n % 64), Ordering::Release);
    }
}

fn word(bits: &[AtomicU64], n: u64) -> Option<&AtomicU64> {
    usize::try_from(n / 64).ok().and_then(|word| bits.get(word))
}
