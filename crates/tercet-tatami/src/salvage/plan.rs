//! Which rows of a damaged file are intact in every column.

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::Progress;

use crate::chunk::PageTable;
use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;

/// Intact rows of one row group, relative to it.
pub(super) type Ranges = Vec<Range<u64>>;

/// The intact rows of a row group, and the errors in the others.
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) rows: u64,
    pub(super) good: Ranges,
    pub(super) faults: Vec<ErrorKind>,
}

/// Checks every page and run. Fails on I/O errors only.
pub(super) fn plan(inner: &Inner, group: usize, progress: &dyn Progress) -> Result<GroupPlan, ErrorKind> {
    let rows = inner.group(group)?.rows;
    let check = || {
        (0..inner.footer.schema.len())
            .into_par_iter()
            .map(|column| {
                progress.check()?;
                let found = column_ranges(inner, group, column, rows);
                progress.advance(inner.chunk(group, column).map_or(0, |chunk| chunk.stored_bytes));
                found
            })
            .collect::<Result<Vec<(Ranges, Vec<ErrorKind>)>, ErrorKind>>()
    };
    let columns = inner.on_threads(check)?;
    // All rows, intersected with each column.
    let mut good = Vec::new();
    push(&mut good, 0..rows);
    let mut faults = Vec::new();
    for (ranges, found) in columns {
        good = intersect(&good, &ranges);
        faults.extend(found);
    }
    Ok(GroupPlan { rows, good, faults })
}

fn column_ranges(
    inner: &Inner,
    group: usize,
    column: usize,
    rows: u64,
) -> Result<(Ranges, Vec<ErrorKind>), ErrorKind> {
    let table = match inner.chunk_reader(group, column).page_table() {
        Ok(table) => table,
        Err(fault) if inner.is_not_damage(&fault) => return Err(fault),
        Err(fault) => return Ok((Vec::new(), vec![fault])),
    };
    let (mut good, mut faults): (Ranges, Vec<ErrorKind>) = (Vec::new(), Vec::new());
    for (page, entry) in table.pages.iter().enumerate() {
        let first = u64::from(entry.header.first_row);
        let end = (first + u64::from(entry.header.values)).min(rows);
        let seen = if inner.is_blob(column) {
            blob_rows(inner, (group, column, page), &table, &mut good, &mut faults)
        } else {
            inner.chunk_reader(group, column).read_rows(first..end).map(|_| push(&mut good, first..end))
        };
        match seen {
            Ok(()) => {}
            Err(fault) if inner.is_not_damage(&fault) => return Err(fault),
            Err(fault) => faults.push(fault),
        }
    }
    Ok((good, faults))
}

/// Intact rows of a blob page, whose values may be in several runs: null rows, and those with an intact run.
fn blob_rows(
    inner: &Inner,
    (group, column, page): (usize, usize, usize),
    table: &PageTable,
    good: &mut Ranges,
    faults: &mut Vec<ErrorKind>,
) -> Result<(), ErrorKind> {
    let header = &table.pages[page].header;
    let mut rows = Column::empty(inner.field(column));
    inner.chunk_reader(group, column).decode_page(page, table, &mut rows)?;
    let blob = inner.blob(column)?;
    let first_value = blob.first_of_group(group) + table.present_before(page);
    let values = first_value..first_value + u64::from(header.values - header.nulls);
    let mut lost: Ranges = Vec::new();
    for (run, held) in blob.runs_of(values.start, values.end) {
        match blob.check_run(inner, run) {
            Ok(()) => {}
            Err(fault) if inner.is_not_damage(&fault) => return Err(fault),
            Err(fault) => {
                faults.push(fault);
                push(&mut lost, held);
            }
        }
    }
    let first_row = u64::from(header.first_row);
    let (mut value, mut lost) = (values.start, lost.into_iter().peekable());
    for row in 0..u64::from(header.values) {
        let at = usize::try_from(row).unwrap_or(usize::MAX);
        if !rows.is_present(at) {
            push(good, first_row + row..first_row + row + 1);
            continue;
        }
        lost.next_if(|range| range.end <= value);
        if lost.peek().is_none_or(|range| value < range.start) {
            push(good, first_row + row..first_row + row + 1);
        }
        value += 1;
    }
    Ok(())
}

/// Appends a range, merged with the last one if adjacent.
fn push(ranges: &mut Ranges, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ if range.is_empty() => {}
        _ => ranges.push(range),
    }
}

/// The intersection of two lists of ranges.
fn intersect(a: &[Range<u64>], b: &[Range<u64>]) -> Ranges {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = x.start.max(y.start)..x.end.min(y.end);
        if !both.is_empty() {
            push(&mut out, both);
        }
        if x.end < y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(bits: &[bool]) -> Ranges {
        let mut out = Vec::new();
        for (at, bit) in (0..).zip(bits) {
            if *bit {
                push(&mut out, at..at + 1);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn intersection_equals_that_of_sets(bits in prop::collection::vec(any::<(bool, bool)>(), 0..60)) {
            let (a, b): (Vec<bool>, Vec<bool>) = bits.iter().copied().unzip();
            let both: Vec<bool> = bits.iter().map(|(a, b)| *a && *b).collect();
            prop_assert_eq!(intersect(&ranges(&a), &ranges(&b)), ranges(&both));
        }
    }
}
