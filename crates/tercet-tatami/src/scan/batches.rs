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
    /// Units whose rows are known and whose values are not read yet.
    units: VecDeque<Unit>,
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
        let threads = scan.file.inner().on_threads(rayon::current_num_threads);
        let pages = Pages::new(2 * (scan.columns.len() + 1) * threads);
        let (offset, limit) = (scan.offset, scan.limit.unwrap_or(u64::MAX));
        Self {
            scan,
            next_group: 0,
            offset,
            limit,
            units: VecDeque::new(),
            ready: VecDeque::new(),
            pages,
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
        let ahead = if self.scan.limit.is_some() { 1 } else { 2 * rayon::current_num_threads() };
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
        self.units.extend(found.into_iter().flat_map(|selected| units(selected, rows)));
        Ok(true)
    }

    /// Reads the values of the next units in parallel.
    fn fill(&mut self) -> Result<(), ErrorKind> {
        while self.units.is_empty() {
            if !self.filter()? {
                return Ok(());
            }
        }
        let count = self.units.len().min(rayon::current_num_threads());
        let units: Vec<Unit> = self.units.drain(..count).collect();
        let inner = self.scan.file.inner();
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

/// Splits the rows of a group into units of `rows` file rows, so that few units share a page.
fn units(selected: Selected, rows: u64) -> Vec<Unit> {
    let mut out: Vec<Unit> = Vec::new();
    let mut unit = u64::MAX;
    for range in selected.ranges {
        let mut at = range.start;
        while at < range.end {
            let number = at / rows;
            let end = range.end.min((number + 1).saturating_mul(rows));
            if number != unit {
                out.push(Unit { group: selected.group, span: rows, ranges: Vec::new() });
                unit = number;
            }
            if let Some(last) = out.last_mut() {
                last.ranges.push(at..end);
            }
            at = end;
        }
    }
    out
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
        let table = inner.page_table(self.group, column)?;
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
            // A few rows are read individually, unless the page is already decoded or many batches need it.
            let few = rows.len() as u64 * SPARSE_RATIO <= end - first && end - first <= 2 * self.span;
            if few && blob.is_none() && pages.cached(self.group, column, page).is_none() {
                inner.pick_rows(self.group, column, page, &table, &rows, &mut out)?;
                continue;
            }
            let decoded = pages.get(inner, self.group, column, page)?;
            let before = out.len();
            decoded.take_into(&rows, &mut out);
            if let Some(blob) = blob {
                let base = blob.first_of_group(self.group) + table.present_before(page);
                out.values_truncate(before);
                let Values::Bytes(strings) = &mut out.values else { continue };
                blob.gather(inner, base, decoded.validity.as_ref(), &rows, strings)?;
            }
        }
        Ok(out)
    }
}
