//! The batches of a scan.

use std::collections::VecDeque;
use std::ops::Range;

use rayon::prelude::*;

use super::Scan;
use super::filter::Selected;
use super::pages::Pages;
use crate::column::{Column, Values};
use crate::error::{Error, ErrorKind};
use crate::file::Inner;

/// If at most one row in this many of a page matches, rows are read individually.
const SPARSE_RATIO: u64 = 8;

/// A batch of matching rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The row numbers in the file.
    pub rows: Vec<u64>,
    /// The values of the selected columns.
    pub columns: Vec<Column>,
}

/// An iterator over the batches of a scan, in row order.
#[derive(Debug)]
pub struct Batches {
    scan: Scan,
    /// The next entry of the groups of the scan.
    next_group: usize,
    /// Matching rows that are still to be skipped, and to be returned after them.
    offset: u64,
    limit: u64,
    /// Groups whose rows are known and whose values are not read yet.
    filtered: VecDeque<Units>,
    ready: VecDeque<Result<Batch, ErrorKind>>,
    pages: Pages,
    failed: bool,
}

/// The rows of a batch, in one row group.
#[derive(Debug)]
struct Unit {
    group: usize,
    /// The number of file rows that the unit covers.
    span: u64,
    ranges: Vec<Range<u64>>,
}

impl Batches {
    pub(super) fn new(scan: Scan) -> Self {
        let (offset, limit) = (scan.offset, scan.limit.unwrap_or(u64::MAX));
        Self {
            scan,
            next_group: 0,
            offset,
            limit,
            filtered: VecDeque::new(),
            ready: VecDeque::new(),
            pages: Pages::default(),
            failed: false,
        }
    }

    /// Filters the next row groups in parallel.
    fn filter(&mut self) -> Result<bool, ErrorKind> {
        let groups = self.scan.groups.len();
        if self.next_group == 0 {
            self.scan.file.inner().check_features()?;
        }
        if self.next_group >= groups || self.limit == 0 {
            return Ok(false);
        }
        // A filter with a limit often needs one group only: the others are not read ahead.
        let is_single = self.scan.limit.is_some() || !self.scan.reads_ahead;
        let ahead = if is_single { 1 } else { 2 * rayon::current_num_threads() };
        let end = groups.min(self.next_group + ahead);
        let mut found: Vec<Selected> = self.scan.groups[self.next_group..end]
            .par_iter()
            .map(|group| self.scan.selected(*group))
            .collect::<Result<_, ErrorKind>>()?;
        self.next_group = end;
        if self.scan.offset > 0 || self.scan.limit.is_some() {
            for selected in &mut found {
                selected.cut(&mut self.offset, &mut self.limit);
            }
        }
        let rows = self.scan.unit_rows();
        self.filtered.extend(found.into_iter().map(|selected| Units::new(selected, rows)));
        Ok(true)
    }

    /// The next units, at most `most`.
    fn next_units(&mut self, most: usize) -> Vec<Unit> {
        let mut out = Vec::new();
        while out.len() < most
            && let Some(units) = self.filtered.front_mut()
        {
            out.extend(units.by_ref().take(most - out.len()));
            if out.len() < most {
                self.filtered.pop_front();
            }
        }
        out
    }

    /// Reads the values of the next units in parallel.
    fn fill(&mut self) -> Result<(), ErrorKind> {
        let most = if self.scan.reads_ahead { rayon::current_num_threads() } else { 1 };
        let mut units = self.next_units(most);
        while units.is_empty() {
            if !self.filter()? {
                return Ok(());
            }
            units = self.next_units(most);
        }
        let inner = self.scan.file.inner();
        if let Some(unit) = units.first() {
            let first = unit.ranges.first().map_or(0, |range| range.start);
            self.pages.need_from(inner.group(unit.group)?.first_row + first);
        }
        let batches: Vec<Result<Batch, ErrorKind>> =
            units.par_iter().map(|unit| unit.read(inner, &self.scan.columns, &self.pages)).collect();
        self.ready.extend(batches);
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let file = self.scan.file.clone();
        if self.ready.is_empty()
            && let Err(fault) = file.inner().on_threads(|| self.fill())
        {
            self.ready.push_back(Err(fault));
        }
        let batch = self.ready.pop_front()?;
        self.failed = batch.is_err();
        Some(batch.map_err(|fault| self.scan.file.error(fault)))
    }
}

/// The units of a group: `rows` file rows each, so that few units share a page. They are made one by one, because a few bytes
/// can declare billions of rows.
#[derive(Debug)]
struct Units {
    selected: Selected,
    rows: u64,
    /// The current range and the next row in it.
    index: usize,
    at: u64,
}

impl Units {
    fn new(selected: Selected, rows: u64) -> Self {
        let at = selected.ranges.first().map_or(0, |range| range.start);
        Self { selected, rows: rows.max(1), index: 0, at }
    }
}

impl Iterator for Units {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let number = self.at / self.rows;
        let mut ranges = Vec::new();
        while let Some(range) = self.selected.ranges.get(self.index)
            && self.at / self.rows == number
        {
            let end = range.end.min((number + 1).saturating_mul(self.rows));
            ranges.push(self.at..end);
            self.at = end;
            if end == range.end {
                self.index += 1;
                self.at = self.selected.ranges.get(self.index).map_or(end, |next| next.start);
            }
        }
        let unit = Unit { group: self.selected.group, span: self.rows, ranges };
        (!unit.ranges.is_empty()).then_some(unit)
    }
}

impl Unit {
    fn read(&self, inner: &Inner, columns: &[usize], pages: &Pages) -> Result<Batch, ErrorKind> {
        let first_row = inner.group(self.group)?.first_row;
        let rows = self.ranges.iter().flat_map(|range| range.clone().map(|row| first_row + row)).collect();
        let columns = columns
            .iter()
            .map(|column| self.column(inner, *column, pages))
            .collect::<Result<_, ErrorKind>>()?;
        Ok(Batch { rows, columns })
    }

    fn column(&self, inner: &Inner, column: usize, pages: &Pages) -> Result<Column, ErrorKind> {
        let mut out = Column::empty(inner.field(column));
        let budget = inner.budget();
        let chunk = inner.chunk_reader(self.group, column);
        let table = chunk.page_table()?;
        let blob = if inner.is_blob(column) { Some(inner.blob(column)?) } else { None };
        let mut index = 0;
        let mut at = self.ranges.first().map_or(0, |range| range.start);
        let mut rows: Vec<usize> = Vec::new();
        while let Some(range) = self.ranges.get(index) {
            let page = table.page_of(at);
            let Some(entry) = table.pages.get(page) else {
                return Err(ErrorKind::NoSuchRow { row: at, rows: 0 });
            };
            let first = u64::from(entry.header.first_row);
            let end = first + u64::from(entry.header.values);
            if end <= at {
                return Err(ErrorKind::NoSuchRow { row: at, rows: end });
            }
            let relative = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
            // All matching rows in this page.
            rows.clear();
            let mut range = range.clone();
            range.start = at;
            loop {
                let upto = range.end.min(end);
                rows.extend(relative(range.start)..relative(upto));
                if upto < range.end {
                    at = upto;
                    break;
                }
                index += 1;
                match self.ranges.get(index) {
                    Some(next) if next.start < end => range = next.clone(),
                    Some(next) => {
                        at = next.start;
                        break;
                    }
                    None => break,
                }
            }
            let mark = out.values.mark();
            budget.reserve((rows.len() as u64).saturating_mul(inner.field(column).kind.memory_width()))?;
            // A few rows are read individually, unless the page is already decoded or many batches need it.
            let few = rows.len() as u64 * SPARSE_RATIO <= end - first && end - first <= 2 * self.span;
            if few && blob.is_none() && pages.cached(self.group, column, page).is_none() {
                chunk.pick_rows(page, &table, &rows, None, &mut out)?;
                budget.reserve(out.values.grown(mark))?;
                continue;
            }
            let is_whole = rows.len() as u64 == end - first;
            if is_whole && blob.is_none() && pages.cached(self.group, column, page).is_none() {
                // No other batch needs the page.
                chunk.decode_page(page, &table, &mut out)?;
                budget.reserve(out.values.grown(mark))?;
                continue;
            }
            let decoded = pages.get(inner, self.group, column, page)?;
            let before = out.len();
            decoded.take_into(&rows, &mut out);
            if let Some(blob) = blob {
                let base = blob.first_of_group(self.group) + table.present_before(page);
                out.values_truncate(before);
                let Values::Bytes(strings) = &mut out.values else { continue };
                blob.take(inner, base, decoded.validity.as_ref(), &rows, strings)?;
            }
            budget.reserve(out.values.grown(mark))?;
        }
        Ok(out)
    }
}
