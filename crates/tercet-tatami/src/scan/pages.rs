//! Cache of decoded pages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;

/// Maximum memory of the pages. One page of each column is needed to read batches that are smaller than pages; pages beyond this
/// size are decoded for each batch.
const MAX_BYTES: u64 = 128 << 20;

/// The decoded pages that the next batches of a scan may need.
#[derive(Debug, Default)]
pub(super) struct Pages {
    cache: Mutex<Cache>,
    /// The first row of the current batches: pages before it are not needed again.
    floor: AtomicU64,
}

#[derive(Debug, Default)]
struct Cache {
    columns: BTreeMap<usize, Vec<CachedPage>>,
    bytes: u64,
}

#[derive(Debug)]
struct CachedPage {
    group: usize,
    page: usize,
    /// The row of the file after its last one.
    end: u64,
    bytes: u64,
    rows: Arc<Column>,
}

impl Cache {
    /// Takes a page of a column that is not needed again.
    fn take_stale(&mut self, column: usize, floor: u64) -> Option<Arc<Column>> {
        let pages = self.columns.get_mut(&column)?;
        let stale = pages.iter().position(|page| page.end <= floor)?;
        let stale = pages.swap_remove(stale);
        self.bytes -= stale.bytes;
        Some(stale.rows)
    }

    /// Drops all pages that are not needed again.
    fn drop_stale(&mut self, floor: u64) {
        for pages in self.columns.values_mut() {
            pages.retain(|page| page.end > floor);
        }
        self.bytes = self.columns.values().flatten().map(|page| page.bytes).sum();
    }
}

impl Pages {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the first row of the file that is still needed.
    pub(super) fn need_from(&self, row: u64) {
        self.floor.store(row, Ordering::Relaxed);
    }

    /// A cached page.
    pub(super) fn cached(&self, group: usize, column: usize, page: usize) -> Option<Arc<Column>> {
        let cache = self.lock();
        let mut pages = cache.columns.get(&column)?.iter();
        pages.find(|cached| (cached.group, cached.page) == (group, page)).map(|page| Arc::clone(&page.rows))
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
        let chunk = inner.chunk_reader(group, column);
        let table = chunk.page_table()?;
        let floor = self.floor.load(Ordering::Relaxed);
        // The memory of another page is reused if nothing refers to it, which saves page faults.
        let again = self.lock().take_stale(column, floor).and_then(Arc::into_inner);
        let mut rows = again.map_or_else(|| Column::empty(inner.field(column)), Column::emptied);
        chunk.decode_page(page, &table, &mut rows)?;
        let (bytes, rows) = (rows.memory_bytes(), Arc::new(rows));
        let mut cache = self.lock();
        if cache.bytes + bytes > MAX_BYTES {
            cache.drop_stale(floor);
        }
        if cache.bytes + bytes <= MAX_BYTES {
            let first = table.pages.get(page).map_or(0, |entry| u64::from(entry.header.first_row));
            let end = inner.group(group)?.first_row + first + rows.len() as u64;
            let cached = CachedPage { group, page, end, bytes, rows: Arc::clone(&rows) };
            cache.columns.entry(column).or_default().push(cached);
            cache.bytes += bytes;
        }
        Ok(rows)
    }
}
