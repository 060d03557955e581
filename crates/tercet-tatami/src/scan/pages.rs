//! Pages that were just decoded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;

/// The last few pages of a scan: neighbouring batches, and filter and answer, share them.
#[derive(Debug)]
pub(super) struct Pages {
    kept: Mutex<VecDeque<Kept>>,
    most: usize,
}

#[derive(Debug)]
struct Kept {
    place: (usize, usize, usize),
    rows: Arc<Column>,
}

impl Pages {
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// A page that is there already.
    pub(super) fn kept(&self, group: usize, column: usize, page: usize) -> Option<Arc<Column>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.place == (group, column, page)).map(|kept| Arc::clone(&kept.rows))
    }

    /// A page, decoded. Blob values are left empty.
    pub(super) fn get(
        &self,
        inner: &Inner,
        group: usize,
        column: usize,
        page: usize,
    ) -> Result<Arc<Column>, ErrorKind> {
        if let Some(rows) = self.kept(group, column, page) {
            return Ok(rows);
        }
        let place = (group, column, page);
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let table = inner.page_table(group, column)?;
        // The memory of the evicted page is reused if nothing refers to it: it would come back from the
        // system page by page.
        let oldest = {
            let mut kept = lock();
            let full = kept.len() >= self.most;
            full.then(|| kept.pop_front()).flatten()
        };
        let again =
            oldest.filter(|oldest| oldest.place.1 == column).and_then(|oldest| Arc::into_inner(oldest.rows));
        let mut rows = again.map_or_else(|| Column::empty(inner.field(column)), Column::emptied);
        inner.decode_page(group, column, page, &table, &mut rows)?;
        let rows = Arc::new(rows);
        let mut kept = lock();
        kept.push_back(Kept { place, rows: Arc::clone(&rows) });
        Ok(rows)
    }
}
