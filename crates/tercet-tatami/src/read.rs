//! Readers of columns, row groups and single rows.

use rayon::prelude::*;
use tercet_core::{Budget, Class, CommonError, Diagnostic as _, Limits};

use crate::chunk::PageEntry;
use crate::column::{Column, Values};
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};

mod range;
mod take;

pub(crate) use range::LastPage;

impl File {
    /// All rows of a column.
    pub fn read_column(&self, column: usize) -> Result<Column, Error> {
        let mut columns = self.read_columns(&[column])?;
        Ok(columns.pop().unwrap_or_default())
    }

    /// All rows of some columns, decoded in parallel.
    pub fn read_columns(&self, columns: &[usize]) -> Result<Vec<Column>, Error> {
        let inner = self.inner();
        self.check_columns(columns)?;
        let groups = self.group_count();
        let budgets: Vec<Budget> = columns.iter().map(|_| inner.budget()).collect();
        let work: Vec<(usize, usize)> =
            (0..columns.len()).flat_map(|index| (0..groups).map(move |group| (index, group))).collect();
        let read = || {
            work.par_iter()
                .map(|(index, group)| inner.read_group_column(*group, columns[*index], &budgets[*index]))
                .collect::<Result<Vec<Column>, ErrorKind>>()
        };
        let parts = inner.on_threads(read).map_err(|fault| self.error(fault))?;
        let mut parts = parts.into_iter();
        let mut out = Vec::with_capacity(columns.len());
        for column in columns {
            let mut joined =
                parts.next().filter(|_| groups > 0).unwrap_or_else(|| Column::empty(inner.field(*column)));
            for part in parts.by_ref().take(groups.saturating_sub(1)) {
                joined.extend_from(&part, 0, part.len());
            }
            out.push(joined);
        }
        Ok(out)
    }

    /// The page headers of a column in one row group.
    pub fn pages(&self, group: usize, column: usize) -> Result<Vec<PageEntry>, Error> {
        self.check_columns(&[column])?;
        let table = self.inner().page_table(group, column).map_err(|fault| self.error(fault))?;
        Ok(table.pages.clone())
    }

    /// The rows of some columns in one row group, decoded in parallel.
    pub fn read_group(&self, group: usize, columns: &[usize]) -> Result<Vec<Column>, Error> {
        self.check_columns(columns)?;
        let inner = self.inner();
        inner.group(group).map_err(|fault| self.error(fault))?;
        let read = || {
            columns
                .par_iter()
                .map(|column| inner.read_group_column(group, *column, &inner.budget()))
                .collect::<Result<_, ErrorKind>>()
        };
        inner.on_threads(read).map_err(|fault| self.error(fault))
    }

    pub(crate) fn check_columns(&self, columns: &[usize]) -> Result<(), Error> {
        self.inner().check_features().map_err(|fault| self.error(fault))?;
        let count = self.schema().len();
        match columns.iter().find(|column| **column >= count) {
            None => Ok(()),
            Some(column) => Err(self.error(ErrorKind::NoSuchColumn {
                name: column.to_string().into(),
                available: self.schema().some_names(),
            })),
        }
    }
}

impl Inner {
    /// The rows of a column in one row group, blob values included.
    pub(crate) fn read_group_column(
        &self,
        group: usize,
        column: usize,
        budget: &Budget,
    ) -> Result<Column, ErrorKind> {
        let mut out = self.read_chunk(group, column, budget)?;
        if self.is_blob(column) {
            let first = self.blob(column)?.first_of_group(group);
            self.fill_blobs(column, first, &mut out, 0, budget)?;
        }
        Ok(out)
    }

    /// The memory budget of one returned column.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new("the values of a column", self.options.common.limits.array_bytes)
    }

    /// The limit for one decoded page or record.
    pub(crate) fn page_limit(&self) -> u64 {
        self.options.common.limits.chunk_bytes
    }

    /// Whether an error is not caused by the file: I/O failed, out of memory, or the caller lowered the limits. A size
    /// beyond the default limits may be damaged itself.
    pub(crate) fn is_not_damage(&self, fault: &ErrorKind) -> bool {
        let (limits, default) = (self.options.common.limits, Limits::default().for_file(self.source.len()));
        let lowered = limits.chunk_bytes < default.chunk_bytes || limits.array_bytes < default.array_bytes;
        match fault {
            ErrorKind::Common(CommonError::OutOfMemory(_)) => true,
            fault => match fault.class() {
                Class::Io => true,
                Class::Limit => lowered,
                _ => false,
            },
        }
    }

    pub(crate) fn blob(&self, column: usize) -> Result<&crate::blob::BlobReader, ErrorKind> {
        let at = self.blobs.binary_search_by_key(&column, |blob| blob.column).ok();
        at.map(|at| &self.blobs[at]).ok_or_else(|| ErrorKind::NoSuchColumn {
            name: self.field(column).name.as_ref().into(),
            available: self.footer.schema.some_names(),
        })
    }

    /// Reads the blob values of the non-null rows from `start` on; the first value has the number `first`.
    pub(crate) fn fill_blobs(
        &self,
        column: usize,
        first: u64,
        out: &mut Column,
        start: usize,
        budget: &Budget,
    ) -> Result<(), ErrorKind> {
        let rows = out.len();
        let present = match &out.validity {
            Some(validity) => validity.ones_in(start, rows),
            None => rows - start,
        };
        let Values::Bytes(strings) = &mut out.values else { return Ok(()) };
        strings.views_mut().truncate(start);
        self.blob(column)?.read(self, first, first + present as u64, strings, budget)?;
        if present == rows - start {
            return Ok(());
        }
        if let Some(validity) = &out.validity {
            let views = strings.views_mut();
            let mut from = start + present;
            views.resize(rows, crate::column::View::EMPTY);
            for row in (start..rows).rev() {
                let view = if validity.get(row) {
                    from -= 1;
                    views[from]
                } else {
                    crate::column::View::EMPTY
                };
                views[row] = view;
            }
        }
        Ok(())
    }
}
