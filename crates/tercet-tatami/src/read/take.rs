//! Rows by number.

use std::collections::VecDeque;

use bytes::Bytes;
use rayon::prelude::*;

use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};

/// Pages that are read together from a remote file.
const PAGES_AT_ONCE: usize = 64;

/// A requested row and its position in the result.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    group: usize,
    /// Relative to the row group.
    row: u64,
    position: usize,
}

impl File {
    /// Reads rows by number, in the given order. Only their pages are read.
    pub fn take(&self, rows: &[u64], columns: &[usize]) -> Result<Vec<Column>, Error> {
        self.check_columns(columns)?;
        let inner = self.inner();
        let wanted = locate(inner, rows).map_err(|fault| self.error(fault))?;
        let take = || {
            columns
                .par_iter()
                .map(|column| take_column(inner, *column, &wanted))
                .collect::<Result<_, ErrorKind>>()
        };
        inner.on_threads(take).map_err(|fault| self.error(fault))
    }
}

/// Locates rows, in file order.
fn locate(inner: &Inner, rows: &[u64]) -> Result<Vec<Wanted>, ErrorKind> {
    let groups = &inner.footer.groups;
    let mut wanted = Vec::with_capacity(rows.len());
    for (position, row) in rows.iter().enumerate() {
        if *row >= inner.header.rows {
            return Err(ErrorKind::NoSuchRow { row: *row, rows: inner.header.rows });
        }
        // Empty groups start where the next one does: the last group that starts at or before the row contains it.
        let group = groups.partition_point(|group| group.first_row <= *row).saturating_sub(1);
        wanted.push(Wanted { group, row: row - groups[group].first_row, position });
    }
    wanted.sort_by_key(|wanted| (wanted.group, wanted.row));
    Ok(wanted)
}

fn take_column(inner: &Inner, column: usize, wanted: &[Wanted]) -> Result<Column, ErrorKind> {
    // Values are read in file order, so that each page is decoded once, and then reordered.
    let mut found = Column::empty(inner.field(column));
    let budget = inner.budget();
    let (mut left, mut rows) = (wanted, Vec::new());
    // Numbers of blob values; those of a run are read together.
    let mut pending = Vec::new();
    // Pages that have been read.
    let mut fetched = VecDeque::new();
    while let Some(first) = left.first() {
        let chunk = inner.chunk_reader(first.group, column);
        let table = chunk.page_table()?;
        let page = table.page_of(first.row);
        let Some(entry) = table.pages.get(page) else {
            return Err(ErrorKind::NoSuchRow { row: first.row, rows: 0 });
        };
        let start = u64::from(entry.header.first_row);
        let end = start + u64::from(entry.header.values);
        let here = left.partition_point(|wanted| wanted.group == first.group && wanted.row < end);
        let (now, later) = left.split_at(here.max(1));
        if inner.is_blob(column) {
            let validity = {
                let page = chunk.page(page, entry);
                page.decode_validity(&page.stored()?)?
            };
            let blob = inner.blob(column)?;
            let base = blob.first_of_group(first.group) + table.present_before(page);
            for wanted in now {
                let at = usize::try_from(wanted.row - start).unwrap_or(usize::MAX);
                let present = validity.as_ref().is_none_or(|validity| validity.get(at));
                let before = validity.as_ref().map_or(at, |validity| validity.ones_in(0, at)) as u64;
                match &mut found.validity {
                    Some(all) => all.push(present),
                    None if present => {}
                    None => {
                        let mut all = crate::column::Bitmap::filled(pending.len(), true);
                        all.push(false);
                        found.validity = Some(all);
                    }
                }
                pending.push(present.then_some(base + before));
            }
        } else {
            if fetched.is_empty() {
                fetched = fetch_pages(inner, column, left)?;
            }
            rows.clear();
            rows.extend(now.iter().map(|wanted| usize::try_from(wanted.row - start).unwrap_or(usize::MAX)));
            chunk.pick_rows(page, &table, &rows, fetched.pop_front(), &mut found)?;
        }
        left = later;
    }
    if let crate::column::Values::Bytes(strings) = &mut found.values
        && !pending.is_empty()
    {
        inner.blob(column)?.pick(inner, &pending, strings, &budget)?;
    }
    let mut order = vec![0; wanted.len()];
    for (index, wanted) in wanted.iter().enumerate() {
        order[wanted.position] = index;
    }
    if order.iter().enumerate().all(|(position, index)| position == *index) {
        return Ok(found);
    }
    Ok(found.take(&order))
}

/// Reads the next pages with wanted rows; none if the source is not remote, where pages are read one by one.
fn fetch_pages(inner: &Inner, column: usize, wanted: &[Wanted]) -> Result<VecDeque<Bytes>, ErrorKind> {
    let mut spans = Vec::new();
    let mut left = wanted;
    while let Some(first) = left.first().filter(|_| inner.source.is_remote() && spans.len() < PAGES_AT_ONCE) {
        let chunk = inner.chunk_reader(first.group, column);
        let table = chunk.page_table()?;
        let page = table.page_of(first.row);
        let Some(entry) = table.pages.get(page) else { break };
        spans.push(chunk.page(page, entry).stored_span()?);
        let end = u64::from(entry.header.first_row) + u64::from(entry.header.values);
        let here = left.partition_point(|wanted| wanted.group == first.group && wanted.row < end);
        left = &left[here.max(1)..];
    }
    if spans.is_empty() { Ok(VecDeque::new()) } else { Ok(inner.source.read_many(&spans)?.into()) }
}
