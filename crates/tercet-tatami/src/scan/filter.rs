//! The matching rows of a row group.

use std::ops::Range;

use super::pages::Pages;
use super::prune::{GroupPlan, Segment, Verdict};
use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::predicate::{Leaf, Mask, Predicate, RowTriState};
use crate::wire::ids::Encoding;

/// Selected rows of a row group, relative to it, ascending.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    pub(super) group: usize,
    pub(super) ranges: Vec<Range<u64>>,
}

impl Selected {
    /// All rows of a plan without a filter.
    pub(super) fn all(plan: &GroupPlan) -> Self {
        let mut out = Self { group: plan.group, ranges: Vec::new() };
        for segment in &plan.segments {
            out.push(segment.rows.clone());
        }
        out
    }

    /// Drops the first `offset` rows and all after `limit` rows; both are reduced by what was dropped and kept.
    pub(super) fn cut(&mut self, offset: &mut u64, limit: &mut u64) {
        let mut kept = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            let skipped = (range.end - range.start).min(*offset);
            *offset -= skipped;
            let start = range.start + skipped;
            let end = range.end.min(start.saturating_add(*limit));
            *limit -= end - start;
            if start < end {
                kept.push(start..end);
            }
        }
        self.ranges = kept;
    }

    fn push(&mut self, range: Range<u64>) {
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    fn push_mask(&mut self, start: u64, mask: &Mask) {
        for row in mask.positions() {
            let row = start + row as u64;
            self.push(row..row + 1);
        }
    }
}

/// Matching rows: a range, or a mask relative to its start.
enum Matches {
    All(Range<u64>),
    Some(u64, Mask),
}

/// The matching rows of a row group; undecided rows are tested by value.
pub(super) fn select(inner: &Inner, predicate: &Predicate, plan: &GroupPlan) -> Result<Selected, ErrorKind> {
    let mut out = Selected { group: plan.group, ranges: Vec::new() };
    walk(inner, predicate, plan, &mut |matches| match matches {
        Matches::All(rows) => out.push(rows),
        Matches::Some(start, mask) => out.push_mask(start, &mask),
    })?;
    Ok(out)
}

/// The number of matching rows of a row group.
pub(super) fn count(inner: &Inner, predicate: &Predicate, plan: &GroupPlan) -> Result<u64, ErrorKind> {
    let mut sum = 0;
    walk(inner, predicate, plan, &mut |matches| {
        sum += match matches {
            Matches::All(rows) => rows.end - rows.start,
            Matches::Some(_, mask) => mask.count() as u64,
        };
    })?;
    Ok(sum)
}

fn walk(
    inner: &Inner,
    predicate: &Predicate,
    plan: &GroupPlan,
    each: &mut dyn FnMut(Matches),
) -> Result<(), ErrorKind> {
    let pages = Pages::default();
    let first_row = inner.group(plan.group)?.first_row;
    // The rows tested last: those of a page are tested together, even if only scattered ones are selected.
    let mut tested: (Range<u64>, Mask) = (0..0, Mask::filled(0, false));
    for (number, segment) in plan.segments.iter().enumerate() {
        match segment.verdict {
            Verdict::Never(_) => {}
            Verdict::Always => each(Matches::All(segment.rows.clone())),
            Verdict::Maybe => {
                let mut at = segment.rows.start;
                while at < segment.rows.end {
                    if !tested.0.contains(&at) {
                        let page_end = next_page_end(inner, predicate, plan.group, at)?;
                        let rows = at..last_undecided(&plan.segments[number..], page_end);
                        pages.need_from(first_row + at);
                        tested = (rows.clone(), test_rows(inner, predicate, plan, rows, &pages)?);
                    }
                    let (rows, mask) = &tested;
                    let end = rows.end.min(segment.rows.end);
                    let relative = |row: u64| usize::try_from(row - rows.start).unwrap_or(usize::MAX);
                    if rows.start == at && rows.end == end {
                        each(Matches::Some(at, mask.clone()));
                    } else {
                        each(Matches::Some(at, mask.part(relative(at)..relative(end))));
                    }
                    at = end;
                }
            }
        }
    }
    Ok(())
}

/// The end of the undecided rows before `end`; the first segment has such rows.
fn last_undecided(segments: &[Segment], end: u64) -> u64 {
    let before = segments.iter().take_while(|segment| segment.rows.start < end);
    let undecided = before.filter(|segment| segment.verdict == Verdict::Maybe);
    undecided.last().map_or(end, |segment| segment.rows.end.min(end))
}

/// The first page end of a filter column after a row.
fn next_page_end(inner: &Inner, predicate: &Predicate, group: usize, row: u64) -> Result<u64, ErrorKind> {
    let mut next = u64::MAX;
    for column in predicate.columns() {
        let table = inner.chunk_reader(group, column).page_table()?;
        let page = table.page_of(row);
        let end = table
            .pages
            .get(page)
            .map_or(u64::MAX, |page| u64::from(page.header.first_row) + u64::from(page.header.values));
        next = next.min(end.max(row + 1));
    }
    Ok(next)
}

/// Tests rows that are in one page of each filter column.
fn test_rows(
    inner: &Inner,
    predicate: &Predicate,
    plan: &GroupPlan,
    rows: Range<u64>,
    pages: &Pages,
) -> Result<Mask, ErrorKind> {
    let group = plan.group;
    let truth = predicate.evaluate(&mut |leaf| match leaf {
        Leaf::Test(number, column, test) => {
            if let Some(values) = plan.dictionary_answer(number)
                && inner.field(column).kind.is_bytes()
                && let Some(truth) = test_codes(inner, group, column, rows.clone(), values)?
            {
                return Ok(truth);
            }
            with_rows(inner, group, column, rows.clone(), pages, |column| test.rows(column))
        }
        Leaf::Columns(pair) => with_rows(inner, group, pair.left, rows.clone(), pages, |left| {
            with_rows(inner, group, pair.right, rows.clone(), pages, |right| pair.rows(left, right))
        })?,
    })?;
    Ok(truth.yes)
}

/// Tests strings of a dictionary page by their codes, without reading the strings; `None` for other pages.
fn test_codes(
    inner: &Inner,
    group: usize,
    column: usize,
    rows: Range<u64>,
    values: &Mask,
) -> Result<Option<RowTriState>, ErrorKind> {
    let chunk = inner.chunk_reader(group, column);
    let table = chunk.page_table()?;
    let number = table.page_of(rows.start);
    let Some(entry) = table.pages.get(number) else { return Ok(None) };
    let header = &entry.header;
    if header.encoding != Encoding::Dictionary {
        return Ok(None);
    }
    let first = u64::from(header.first_row);
    let relative = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
    let (from, to) = (relative(rows.start), relative(rows.end));
    let page = chunk.page(number, entry);
    let stored = page.stored()?;
    page.check_rows()?;
    let (codes, validity) = page.decode_codes(&stored)?;
    let Some(codes) = codes.get(from..to) else { return Ok(None) };
    let yes = Mask::from_fn(codes.len(), |row| values.get(codes[row] as usize));
    let present = match &validity {
        Some(validity) => Mask::from_fn(codes.len(), |row| validity.get(from + row)),
        None => Mask::filled(codes.len(), true),
    };
    Ok(Some(RowTriState::from_present(yes, &present)))
}

/// Passes rows of one page of a column to a function.
fn with_rows<T>(
    inner: &Inner,
    group: usize,
    column: usize,
    rows: Range<u64>,
    pages: &Pages,
    test: impl FnOnce(&Column) -> T,
) -> Result<T, ErrorKind> {
    if inner.is_blob(column) {
        return Ok(test(&inner.chunk_reader(group, column).read_rows(rows)?));
    }
    let table = inner.chunk_reader(group, column).page_table()?;
    let page = table.page_of(rows.start);
    let decoded = pages.get(inner, group, column, page)?;
    let first = table.pages.get(page).map_or(0, |page| u64::from(page.header.first_row));
    let relative = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
    let (from, to) = (relative(rows.start), relative(rows.end));
    if from == 0 && to == decoded.len() {
        return Ok(test(&decoded));
    }
    let mut part = Column::empty(inner.field(column));
    part.extend_from(&decoded, from, to);
    Ok(test(&part))
}
