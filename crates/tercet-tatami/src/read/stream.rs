//! Streams of batches with one page per column in memory.

use std::sync::Arc;

use crate::chunk::PageTable;
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};

/// An iterator over batches of rows.
#[derive(Debug)]
pub struct Stream {
    file: File,
    cursors: Vec<Cursor>,
    batch_rows: usize,
    done: u64,
    end: u64,
    skips_deleted: bool,
    failed: bool,
}

impl File {
    /// Streams all rows of some columns, at most `batch_rows` at a time, with one page per column in memory.
    pub fn stream(&self, columns: &[usize], batch_rows: usize) -> Result<Stream, Error> {
        let mut stream = self.stream_all(columns, batch_rows)?;
        stream.skips_deleted = self.live().is_some();
        Ok(stream)
    }

    /// Streams all rows, including those of [`without_rows`](Self::without_rows).
    pub(crate) fn stream_all(&self, columns: &[usize], batch_rows: usize) -> Result<Stream, Error> {
        self.check_columns(columns)?;
        let cursors = columns.iter().map(|column| Cursor::new(*column)).collect();
        let end = self.rows();
        Ok(Stream {
            file: self.clone(),
            cursors,
            batch_rows: batch_rows.max(1),
            done: 0,
            end,
            skips_deleted: false,
            failed: false,
        })
    }
}

impl Stream {
    /// Stops after `rows` rows.
    pub fn with_limit(mut self, rows: u64) -> Self {
        self.end = self.end.min(rows);
        self
    }
}

impl Iterator for Stream {
    type Item = Result<Vec<Column>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let left = usize::try_from(self.end - self.done).unwrap_or(usize::MAX);
            let rows = self.batch_rows.min(left);
            if rows == 0 || self.failed {
                return None;
            }
            let inner = self.file.inner();
            let batch: Result<Vec<Column>, ErrorKind> =
                self.cursors.iter_mut().map(|cursor| cursor.next(inner, rows)).collect();
            match batch {
                Ok(batch) => {
                    let read = self.done..self.done + rows as u64;
                    self.done = read.end;
                    let batch = self.without_deleted(batch, read);
                    if batch.first().is_none_or(|column| !column.is_empty()) {
                        return Some(Ok(batch));
                    }
                }
                Err(fault) => {
                    self.failed = true;
                    return Some(Err(self.file.error(fault)));
                }
            }
        }
    }
}

impl Stream {
    /// Drops deleted rows of a batch of the rows `read`.
    fn without_deleted(&self, batch: Vec<Column>, read: std::ops::Range<u64>) -> Vec<Column> {
        let Some(live) = self.file.live().filter(|_| self.skips_deleted) else { return batch };
        let rows = read.end - read.start;
        let kept = live.relative_to(read);
        if let [all] = &kept[..]
            && all.end - all.start == rows
        {
            return batch;
        }
        let position = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        let cut = |(column, cursor): (Column, &Cursor)| {
            let mut out = Column::empty(self.file.inner().field(cursor.column));
            for range in &kept {
                out.extend_from(&column, position(range.start), position(range.end));
            }
            out
        };
        batch.into_iter().zip(&self.cursors).map(cut).collect()
    }
}

/// The position of a stream in one column.
#[derive(Debug)]
struct Cursor {
    column: usize,
    group: usize,
    page: usize,
    table: Option<Arc<PageTable>>,
    /// The current page and the next row in it.
    rows: Column,
    at: usize,
    /// The number of the next blob value.
    ordinal: u64,
}

impl Cursor {
    fn new(column: usize) -> Self {
        Self { column, group: 0, page: 0, table: None, rows: Column::default(), at: 0, ordinal: 0 }
    }

    /// The next `count` rows.
    fn next(&mut self, inner: &Inner, count: usize) -> Result<Column, ErrorKind> {
        let mut out = Column::empty(inner.field(self.column));
        let budget = inner.budget();
        while out.len() < count {
            if self.at == self.rows.len() {
                self.load(inner)?;
            }
            let upto = self.rows.len().min(self.at + count - out.len());
            let (before, mark) = (out.len(), out.values.mark());
            out.extend_from(&self.rows, self.at, upto);
            budget.reserve(out.values.grown(mark))?;
            if inner.is_blob(self.column) {
                inner.fill_blobs(self.column, self.ordinal, &mut out, before, &budget)?;
                let present = match &out.validity {
                    Some(validity) => validity.ones_in(before, out.len()),
                    None => out.len() - before,
                };
                self.ordinal += present as u64;
            }
            self.at = upto;
        }
        Ok(out)
    }

    /// Decodes the next page that has rows.
    fn load(&mut self, inner: &Inner) -> Result<(), ErrorKind> {
        loop {
            inner.group(self.group)?;
            let table = if let Some(table) = &self.table {
                Arc::clone(table)
            } else {
                let table = inner.page_table(self.group, self.column)?;
                self.table = Some(Arc::clone(&table));
                table
            };
            if self.page == table.pages.len() {
                (self.group, self.page, self.table) = (self.group + 1, 0, None);
                continue;
            }
            self.rows = Column::empty(inner.field(self.column));
            self.at = 0;
            inner.decode_page(self.group, self.column, self.page, &table, &mut self.rows)?;
            self.page += 1;
            if !self.rows.is_empty() {
                return Ok(());
            }
        }
    }
}
