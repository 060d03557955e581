//! Row ranges of a row group.

use std::ops::Range;

use crate::chunk::ChunkReader;
use crate::column::Column;
use crate::error::ErrorKind;

/// The last decoded page of a column, by row group and page number.
#[derive(Debug, Default)]
pub(crate) struct LastPage(Option<(usize, usize, Column)>);

impl ChunkReader<'_> {
    /// Reads rows, relative to the row group. Only their pages are decoded.
    pub(crate) fn read_rows(&self, rows: Range<u64>) -> Result<Column, ErrorKind> {
        self.read_next_rows(rows, &mut LastPage::default())
    }

    /// The same for consecutive ranges of one column; a page shared by several ranges is decoded once.
    pub(crate) fn read_next_rows(&self, rows: Range<u64>, last: &mut LastPage) -> Result<Column, ErrorKind> {
        let (inner, group, column) = (self.inner(), self.group(), self.column());
        let table = self.page_table()?;
        let mut out = Column::empty(self.field());
        let budget = inner.budget();
        let mut at = rows.start;
        while at < rows.end {
            let index = table.page_of(at);
            let Some(entry) = table.pages.get(index) else {
                return Err(ErrorKind::NoSuchRow { row: at, rows: 0 });
            };
            let first = u64::from(entry.header.first_row);
            let end = rows.end.min(first + u64::from(entry.header.values));
            if end <= at {
                return Err(ErrorKind::NoSuchRow { row: at, rows: first + u64::from(entry.header.values) });
            }
            let page = match last.0.take() {
                Some((of_group, of_page, page)) if (of_group, of_page) == (group, index) => page,
                _ => {
                    let mut page = Column::empty(self.field());
                    self.decode_page(index, &table, &mut page)?;
                    page
                }
            };
            let relative = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
            let (from, to) = (relative(at), relative(end));
            let (before, mark) = (out.len(), out.values.mark());
            out.extend_from(&page, from, to);
            budget.reserve(out.values.grown(mark))?;
            if inner.is_blob(column) {
                let skipped =
                    page.validity.as_ref().map_or(from, |validity| validity.ones_in(0, from)) as u64;
                let blob = inner.blob(column)?;
                let base = blob.first_of_group(group) + table.present_before(index);
                blob.fill(inner, base + skipped, &mut out, before, &budget)?;
            }
            at = end;
            last.0 = Some((group, index, page));
        }
        Ok(out)
    }
}
