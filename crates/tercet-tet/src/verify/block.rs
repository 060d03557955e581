//! Checks of the integrity block, and of everything it covers.

use tercet_core::{Finding, Span, checksum};

use super::payloads::{DamagedChunk, decode, for_rows, list, stored};
use super::{Check, Context, failure, run_list, run_site};
use crate::Region;
use crate::catalog::Catalog;
use crate::error::ErrorKind;
use crate::integrity::{LostBlock, column_bytes, find_lost_block, run_rows};
use crate::stats::{Stats, magnitude};
use crate::wire::block::{Block, CRC_LEN, Column, STATS_LEN, runs};

impl Check<'_> {
    pub(super) fn check_block(&mut self, context: &Context<'_>) -> Result<(), ErrorKind> {
        let catalog = context.catalog;
        let value = catalog.footer.as_ref().and_then(|footer| footer.block.as_ref());
        let Some(block) = catalog.block() else {
            if let Some(lost) = find_lost_block(catalog, self.source, &self.options.limits)? {
                return self.check_lost_block(context, lost);
            }
            self.note(match value {
                Some(_) => context.at_metadata(Finding::warn(
                    "tercet_block",
                    "of an unknown version: the file is unprotected",
                )),
                None => Finding::pass("tercet_block").with_message("absent: the file is unprotected"),
            });
            return Ok(());
        };
        let mut problems = block.problems.clone();
        self.check_columns(&block, &mut problems)?;
        self.note(if problems.is_empty() {
            let stats = if block.row_stats.is_some() { "with" } else { "without" };
            let rows = catalog.index.entry_count;
            Finding::pass("tercet_block").with_message(format!("{rows} chunk(s), {stats} statistics"))
        } else {
            let (region, span) = (Region::Block, catalog.footer_span());
            Finding::fail("tercet_block", problems.join("; ")).with_site(region.to_string(), Some(span))
        });
        let footer = catalog.check_footer(self.source);
        self.note_result("tercet_footer", footer)?;
        let checked = catalog.check_catalog(self.source, &block);
        if !self.note_result("tercet_catalog", checked)? {
            return Ok(());
        }
        self.check_rows(context, &block)
    }

    /// Reports a block that no reader finds, and checks the chunks against it, so that no repair accepts damaged ones.
    fn check_lost_block(&mut self, context: &Context<'_>, lost: LostBlock) -> Result<(), ErrorKind> {
        self.note(failure("tercet_block", &lost.error()));
        let Some(footer) = lost.footer else { return Ok(()) };
        let mut catalog = Catalog::read_head(self.source, &self.options.limits)?;
        if catalog.set_footer(footer).is_err() {
            return Ok(());
        }
        match catalog.block() {
            Some(block) if block.rows == Some(catalog.index.entry_count) => self.check_rows(context, &block),
            _ => Ok(()),
        }
    }

    /// Checks index rows, payloads and statistics.
    fn check_rows(&mut self, context: &Context<'_>, block: &Block) -> Result<(), ErrorKind> {
        self.check_index_runs(context, block)?;
        // Invalid rows have no payload to check.
        if super::first_bad_row(context).is_none() {
            self.check_payload_crcs(context, block)?;
            if self.options.deep {
                self.check_stats(context, block)?;
            }
        }
        Ok(())
    }

    fn note_result(&mut self, check: &'static str, result: Result<(), ErrorKind>) -> Result<bool, ErrorKind> {
        match result {
            Ok(()) => self.note(Finding::pass(check)),
            Err(kind) if kind.is_not_damage() => return Err(kind),
            Err(fault) => {
                self.note(failure(check, &fault));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks referenced columns against their own checksums.
    fn check_columns(&self, block: &Block, problems: &mut Vec<String>) -> Result<(), ErrorKind> {
        let columns = [
            ("index_crc32c", &block.index_crc32c),
            ("row_crc32c", &block.row_crc32c),
            ("row_stats", &block.row_stats),
            ("stats_crc32c", &block.stats_crc32c),
        ];
        for (name, column) in columns {
            if let Some(Column::At { span, crc32c }) = column {
                let actual = checksum::crc32c(&self.source.read_at(*span)?);
                if actual != *crc32c {
                    problems.push(format!(
                        "{name} (bytes {span}): checksum {crc32c:08x} expected, {actual:08x} found"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_index_runs(&mut self, context: &Context<'_>, block: &Block) -> Result<(), ErrorKind> {
        let Some(column) = &block.index_crc32c else { return Ok(()) };
        let rows = context.catalog.index.entry_count;
        let mut bad = Vec::new();
        for run in 0..runs(rows) {
            let expected = column_bytes(column, self.source, run * CRC_LEN, CRC_LEN)?;
            let actual = checksum::crc32c(&self.source.read_at(context.rows.run_span(run))?);
            if expected[..] != actual.to_le_bytes() {
                bad.push(run);
            }
        }
        self.note(if bad.is_empty() {
            Finding::pass("tercet_index")
        } else {
            let detail = format!(
                "{} run(s) of rows are damaged or were changed: rows {}",
                bad.len(),
                run_list(&bad, rows)
            );
            let (region, span) = run_site(context, bad[0]);
            Finding::fail("tercet_index", detail).with_site(region.to_string(), Some(span))
        });
        Ok(())
    }

    fn check_payload_crcs(&mut self, context: &Context<'_>, block: &Block) -> Result<(), ErrorKind> {
        let Some(column) = &block.row_crc32c else { return Ok(()) };
        let crcs = column_bytes(column, self.source, 0, context.table.len() as u64 * CRC_LEN)?;
        let bad = for_rows(self, context, context.table.len(), |number, row| {
            let actual = checksum::crc32c(&stored(self.source, row, &self.options.limits)?);
            let expected = crcs
                .get(number * 4..)
                .and_then(|rest| rest.first_chunk())
                .map(|crc| u32::from_le_bytes(*crc));
            Ok(match expected {
                Some(expected) if expected == actual => None,
                expected => {
                    let end = row.payload_offset.saturating_add(row.stored_byte_len);
                    let span = Span::between(row.payload_offset, end).unwrap_or(Span::empty(end));
                    let expected = expected.unwrap_or(0);
                    Some(format!("bytes {span}: checksum {expected:08x} expected, {actual:08x} found"))
                }
            })
        })?;
        self.note(verdict(context, "tercet_payloads", &bad, "payload(s)"));
        Ok(())
    }

    fn check_stats(&mut self, context: &Context<'_>, block: &Block) -> Result<(), ErrorKind> {
        let (Some(stats), Some(crcs)) = (&block.row_stats, &block.stats_crc32c) else { return Ok(()) };
        let rows = context.catalog.index.entry_count;
        let mut bad_runs = Vec::new();
        for run in 0..runs(rows) {
            let (first, end) = run_rows(run, rows);
            let bytes = column_bytes(stats, self.source, first * STATS_LEN, (end - first) * STATS_LEN)?;
            let expected = column_bytes(crcs, self.source, run * CRC_LEN, CRC_LEN)?;
            if expected[..] != checksum::crc32c(&bytes).to_le_bytes() {
                bad_runs.push(run);
            }
        }
        if !bad_runs.is_empty() {
            let detail = format!("statistics of rows {} are damaged", run_list(&bad_runs, rows));
            let (first, end) = run_rows(bad_runs[0], rows);
            let span = match stats {
                Column::At { span, .. } => span.slice(first * STATS_LEN, (end - first) * STATS_LEN),
                Column::Inline(_) => None,
            };
            let region = Region::StatsRun { first, end }.to_string();
            self.note(Finding::fail("tercet_stats", detail).with_site(region, span));
            return Ok(());
        }
        let all = column_bytes(stats, self.source, 0, rows * STATS_LEN)?;
        let bad = for_rows(self, context, context.table.len(), |number, row| {
            let grid =
                usize::try_from(row.dataset_id).ok().and_then(|id| context.grids.get(id)?.as_ref().ok());
            let known = all.get(number * 48..).and_then(|rest| rest.first_chunk());
            let (Some(grid), Some(known)) = (grid, known) else { return Ok(None) };
            // A wrong length is reported by another check, and so is a chunk that does not
            // decode.
            let coords = &row.chunk_index[..grid.rank()];
            if grid.linear(coords).map(|_| grid.chunk_bytes_at(coords)) != Some(row.raw_byte_len) {
                return Ok(None);
            }
            let Ok(raw) = decode(self.source, row, &self.options.limits)? else { return Ok(None) };
            let (known, actual) =
                (Stats::decode(grid.element(), known), Stats::compute(grid.element(), &raw));
            let agrees =
                known.encode() == actual.encode() || known.agrees(&actual, magnitude(grid.element(), &raw));
            Ok((!agrees).then(|| "the statistics are not those of the chunk".to_owned()))
        })?;
        self.note(verdict(context, "tercet_stats", &bad, "chunk(s)"));
        Ok(())
    }
}

fn verdict(context: &Context<'_>, check: &'static str, bad: &[DamagedChunk], what: &str) -> Finding {
    match bad.first() {
        None => Finding::pass(check).with_message(format!("checked {} {what}", context.table.len())),
        Some(first) => context.at_payload(Finding::fail(check, list(bad)), first.row),
    }
}
