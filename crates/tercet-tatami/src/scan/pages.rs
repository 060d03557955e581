//! Cache of decoded pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;

/// The last few decoded pages of a scan, shared by consecutive batches and by filter and output columns.
#[derive(Debug)]
pub(super) struct Pages {
    cached: Mutex<VecDeque<CachedPage>>,
    most: usize,
}

#[derive(Debug)]
struct CachedPage {
    key: (usize, usize, usize),
    rows: Arc<Column>,
}

impl Pages {
    pub(super) fn new(most: usize) -> Self {
        Self { cached: Mutex::default(), most }
    }

    /// A cached page.
    pub(super) fn cached(&self, group: usize, column: usize, page: usize) -> Option<Arc<Column>> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached
            .iter()
            .find(|cached| cached.key == (group, column, page))
            .map(|cached| Arc::clone(&cached.rows))
    }

    /// A decoded page. Blob values stay empty.
    pub(super) fn get(
        &self,
        inner: &Inner,
        group: usize,
        column: usize,
        page: usize,
    ) -> Result<Arc<Column>, ErrorKind> {
        if let Some(rows) = self.cached(group, column, page) {
            return Ok(rows);
        }
        let key = (group, column, page);
        let lock = || self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let table = inner.page_table(group, column)?;
        // The memory of the evicted page is reused if nothing refers to it, which saves page faults.
        let oldest = {
            let mut cached = lock();
            let full = cached.len() >= self.most;
            full.then(|| cached.pop_front()).flatten()
        };
        let again =
            oldest.filter(|oldest| oldest.key.1 == column).and_then(|oldest| Arc::into_inner(oldest.rows));
        let mut rows = again.map_or_else(|| Column::empty(inner.field(column)), Column::emptied);
        inner.decode_page(group, column, page, &table, &mut rows)?;
        let rows = Arc::new(rows);
        let mut cached = lock();
        cached.push_back(CachedPage { key, rows: Arc::clone(&rows) });
        Ok(rows)
    }
}
