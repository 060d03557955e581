//! Readers of columns, row groups and single rows.

use rayon::prelude::*;
use tercet_core::Budget;

use crate::chunk::PageEntry;
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::File;

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
                .map(|(index, group)| inner.chunk_reader(*group, columns[*index]).read(&budgets[*index]))
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
        let table =
            self.inner().chunk_reader(group, column).page_table().map_err(|fault| self.error(fault))?;
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
                .map(|column| inner.chunk_reader(group, *column).read(&inner.budget()))
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
