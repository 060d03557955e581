//! Locates the chunks of a resolved query: which are touched, where they are stored, and which can be pruned.

use tercet_core::{Scalar as _, with_element};

use super::predicate::{Predicate, fill_value};
use crate::error::ErrorKind;
use crate::file::Dataset;
use crate::plan::{PlannedChunk, ReadPlan};
use crate::query::resolved::{Filter, Positions, Resolved};
use crate::stats::Stats;
use crate::zones::read::Hints;

/// Plans the reads of a query. Statistics and zone maps prune chunks only if they may be used.
pub(crate) fn locate(
    dataset: &Dataset<'_>,
    resolved: &Resolved,
    statistics: bool,
) -> Result<ReadPlan, ErrorKind> {
    let grid = dataset.checked_grid()?;
    let selection = &resolved.selection;
    dataset.check_touched(grid, selection)?;
    let rank = grid.rank();
    let mut by_label = 0;
    let mut chunks = Vec::new();
    for number in grid.touched_numbers(selection) {
        let coords = grid.coords(number);
        if resolved
            .positions
            .as_ref()
            .is_some_and(|positions| !touches(positions, resolved, dataset, &coords))
        {
            by_label += 1;
            continue;
        }
        let chunk_ref = dataset.find_chunk(&coords[..rank])?;
        chunks.push(PlannedChunk { number, stored: chunk_ref, zone: None });
    }
    let chosen = resolved.filter.is_some() || resolved.positions.is_some();
    let (mut by_zone, mut by_index) = (0, 0);
    if chosen && statistics {
        (by_zone, by_index) = prune(dataset, resolved, &mut chunks)?;
    }
    let mut plan = ReadPlan::new(grid, selection, chunks);
    plan.zone_filter_skipped = by_zone;
    plan.index_filter_skipped = by_index + by_label;
    if chosen {
        plan.contiguous = None;
    }
    Ok(plan)
}

/// Whether a chunk has an included position.
fn touches(positions: &Positions, resolved: &Resolved, dataset: &Dataset<'_>, coords: &[u64]) -> bool {
    let Ok(grid) = dataset.checked_grid() else { return true };
    let (low, high) = grid.window(positions.axis, coords[positions.axis]);
    let Some((first, count)) = resolved.selection.axes()[positions.axis].hits(low, high) else {
        return false;
    };
    let range = usize::try_from(first).and_then(|first| Ok(first..first + usize::try_from(count)?));
    range.is_ok_and(|range| positions.counts[range].iter().any(|&counts| counts))
}

/// Prunes the chunks in which no element can pass the filter.
fn prune(
    dataset: &Dataset<'_>,
    resolved: &Resolved,
    chunks: &mut Vec<PlannedChunk>,
) -> Result<(u64, u64), ErrorKind> {
    let hints = Hints::read(dataset);
    let grid = dataset.checked_grid()?;
    for chunk in chunks.iter_mut() {
        chunk.zone = hints.zone(chunk.number).map(|zone| Box::new(zone.entry.clone()));
    }
    // Filters of decoded values do not apply to the statistics of stored ones.
    let Some(filter) = resolved.filter.as_ref().filter(|_| resolved.values.decode.is_none()) else {
        return Ok((0, 0));
    };
    let (mut by_zone, mut by_index) = (0, 0);
    with_element!(grid.element(), |T| {
        let predicate = Predicate::<T>::new(filter, resolved.fills());
        // Missing values are counted, so a chunk that may have some is visited.
        let missing = resolved.missing_filter(grid.element());
        let missing = missing.map(|missing| Predicate::<T>::new(&missing, resolved.fills()));
        let wanted = filter.eq.and_then(fill_value::<T>).map(|value| {
            let bytes = |value: T| hex(bytemuck::bytes_of(&value.swap_le()));
            // Both zeros are equal to zero.
            let other = if value == T::default() { negative_zero::<T>() } else { value };
            [bytes(value), bytes(other)]
        });
        let mut kept = Vec::with_capacity(chunks.len());
        for chunk in chunks.drain(..) {
            let linear = chunk.number;
            let stats = stats(dataset, &chunk)?;
            if missing.as_ref().is_some_and(|one| stats.as_ref().is_none_or(|stats| !one.passes_all(stats))) {
                kept.push(chunk);
                continue;
            }
            let zone = hints.zone(linear).filter(|_| compares(filter));
            if stats.is_some_and(|stats| !predicate.may_match(&stats))
                || zone.is_some_and(|zone| zone.stats.is_none_or(|stats| !predicate.may_match(&stats)))
            {
                by_zone += 1;
            } else if wanted.as_ref().is_some_and(|values| !hints.may_hold(linear, values)) {
                by_index += 1;
            } else {
                kept.push(chunk);
            }
        }
        *chunks = kept;
    });
    Ok((by_zone, by_index))
}

fn stats(dataset: &Dataset<'_>, chunk: &PlannedChunk) -> Result<Option<Stats>, ErrorKind> {
    let file = dataset.file;
    let (Some(checker), Some(dtype)) = (&file.checker, dataset.element()) else { return Ok(None) };
    let bytes = checker.row_stats(&file.source, chunk.stored.row)?;
    Ok(bytes.map(|bytes| Stats::decode(dtype, &bytes)))
}

/// Whether null elements cannot pass: zone maps cover non-null elements only.
fn compares(filter: &Filter) -> bool {
    [filter.eq, filter.lt, filter.le, filter.gt, filter.ge].iter().any(Option::is_some)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
    }
    text
}

/// Negative zero, for types that have one.
fn negative_zero<T: super::number::Number>() -> T {
    let mut bytes = vec![0u8; size_of::<T>()];
    if T::FLOAT
        && let Some(last) = bytes.last_mut()
    {
        *last = 0x80;
    }
    bytemuck::pod_read_unaligned::<T>(&bytes).swap_le()
}
