//! Column chunks: the pages of one column in one row group.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::{Budget, Reason, Span};

use crate::block_codec::fault;
use crate::column::Column;
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::page::decode::PageReader;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::schema::Field;
use crate::search::page_headers;
use crate::wire::footer::Chunk;
use crate::wire::page::{HEADER_LEN, PageHeader};

/// Remote chunks up to this size are fetched in one request to find their pages.
const MAX_PREFETCHED_CHUNK: u64 = 1 << 20;

/// The pages of a column chunk, whose headers agree with the footer.
#[derive(Debug)]
pub(crate) struct PageTable {
    pub(crate) pages: Vec<PageEntry>,
}

/// A page header and its offset.
#[derive(Clone, Copy, Debug)]
pub struct PageEntry {
    /// The offset of the header.
    pub offset: u64,
    /// The page header.
    pub header: PageHeader,
}

impl PageTable {
    /// The number of the page that contains a row of the group.
    pub(crate) fn page_of(&self, row: u64) -> usize {
        let starts_at_or_before = |page: &PageEntry| u64::from(page.header.first_row) <= row;
        self.pages.partition_point(starts_at_or_before).saturating_sub(1)
    }

    /// Non-null rows of the group before a page.
    pub(crate) fn present_before(&self, page: usize) -> u64 {
        let present = |page: &PageEntry| u64::from(page.header.values.saturating_sub(page.header.nulls));
        self.pages[..page].iter().map(present).sum()
    }
}

/// Group, column or page number for errors.
pub(crate) fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Reads a column chunk: the pages of a column in one row group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkReader<'a> {
    inner: &'a Inner,
    group: usize,
    column: usize,
}

impl<'a> ChunkReader<'a> {
    pub(crate) const fn new(inner: &'a Inner, group: usize, column: usize) -> Self {
        Self { inner, group, column }
    }

    /// The file.
    pub(crate) const fn inner(&self) -> &'a Inner {
        self.inner
    }

    /// The number of the column.
    pub(crate) const fn column(&self) -> usize {
        self.column
    }

    /// The number of the row group.
    pub(crate) const fn group(&self) -> usize {
        self.group
    }

    /// The entry in the footer.
    pub(crate) fn entry(&self) -> Result<&'a Chunk, ErrorKind> {
        self.inner.chunk(self.group, self.column)
    }

    /// The column.
    pub(crate) fn field(&self) -> &'a Field {
        self.inner.field(self.column)
    }

    pub(crate) fn region(&self) -> Region {
        Region::Chunk { group: number(self.group), column: number(self.column) }
    }

    /// All bytes of the chunk, page headers included.
    pub(crate) fn span(&self) -> Result<Span, ErrorKind> {
        let chunk = self.entry()?;
        let region = self.region();
        let len = chunk.pages.checked_mul(HEADER_LEN).and_then(|heads| heads.checked_add(chunk.stored_bytes));
        let Some(len) = len else {
            let reason = Reason::Overflow { what: "the bytes of the pages" };
            return Err(fault(region, "total_compressed", chunk.offset, 0, reason));
        };
        self.inner.body_span(region, chunk.offset, len)
    }

    /// The page table, cached.
    pub(crate) fn page_table(&self) -> Result<Arc<PageTable>, ErrorKind> {
        let key = (number(self.group), number(self.column));
        let lock = || self.inner.tables.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(table) = lock().get(&key) {
            return Ok(Arc::clone(table));
        }
        if let Some(table) = self.copied_page_table()? {
            let table = Arc::new(table);
            lock().insert(key, Arc::clone(&table));
            return Ok(table);
        }
        let table = Arc::new(self.own_page_table()?);
        lock().insert(key, Arc::clone(&table));
        Ok(table)
    }

    /// The page table of the copied page headers of a search segment. Damaged copies are not used.
    fn copied_page_table(&self) -> Result<Option<PageTable>, ErrorKind> {
        let Some(headers) = page_headers::of_chunk(self.inner, self.group, self.column)? else {
            return Ok(None);
        };
        let mut left = headers.chunks_exact(usize::try_from(HEADER_LEN).unwrap_or(usize::MAX));
        let next = |_| Ok(left.next().map_or(Bytes::new(), |header| headers.slice_ref(header)));
        Ok(self.walk_pages(next).ok())
    }

    /// The page table of the page headers themselves.
    pub(crate) fn own_page_table(&self) -> Result<PageTable, ErrorKind> {
        let source = &self.inner.source;
        let all = self.span()?;
        if source.is_remote() && all.len() <= MAX_PREFETCHED_CHUNK {
            // In a remote file, every page header would be a request.
            let bytes = source.read_at(all)?;
            self.walk_pages(|span| self.part(all, &bytes, span))
        } else {
            self.walk_pages(|span| Ok(source.read_at(span)?))
        }
    }

    /// Bytes of the file, sliced from `bytes` of `span` where possible.
    fn part(&self, span: Span, bytes: &Bytes, wanted: Span) -> Result<Bytes, ErrorKind> {
        if !span.contains(wanted) {
            return Ok(self.inner.source.read_at(wanted)?);
        }
        let start = usize::try_from(wanted.start() - span.start()).unwrap_or(usize::MAX);
        let end = start.saturating_add(wanted.len_usize().unwrap_or(usize::MAX));
        Ok(bytes.slice(start..end))
    }

    /// Walks the page headers and compares them with the footer.
    fn walk_pages(
        &self,
        mut fetch: impl FnMut(Span) -> Result<Bytes, ErrorKind>,
    ) -> Result<PageTable, ErrorKind> {
        let span = self.span()?;
        let chunk = self.entry()?;
        let limits = &self.inner.options.common.limits;
        let count = check_limit("a table of pages", chunk.pages, limits.table_bytes / 48)?;
        let mut pages = Vec::with_capacity(count);
        let (mut at, mut rows, mut nulls, mut stored, mut raw) = (span.start(), 0, 0, 0, 0);
        for page in 0..count {
            let region = self.page_region(page);
            let head = self.inner.body_span(region, at, HEADER_LEN)?;
            let header = PageHeader::parse(region, at, &fetch(head)?, self.inner.has_header_checksums())?;
            if u64::from(header.first_row) != rows {
                let because = "the rows of the preceding pages";
                let reason = Reason::Mismatch { found: header.first_row.into(), expected: rows, because };
                return Err(fault(region, "first_row_index", at + 20, 4, reason));
            }
            if page == 0 && header.encoding != chunk.encoding {
                let because = "the entry of the chunk in the footer";
                let (found, expected) = (header.encoding.id().into(), chunk.encoding.id().into());
                return Err(fault(
                    region,
                    "encoding",
                    at + 1,
                    1,
                    Reason::Mismatch { found, expected, because },
                ));
            }
            rows += u64::from(header.values);
            nulls += u64::from(header.nulls);
            stored += u64::from(header.stored_bytes);
            raw += u64::from(header.raw_bytes);
            pages.push(PageEntry { offset: at, header });
            at += HEADER_LEN + u64::from(header.stored_bytes);
        }
        let region = self.region();
        let sums = [
            ("num_values", rows, chunk.values),
            ("null_count", nulls, chunk.nulls),
            ("stored_size", stored, chunk.stored_bytes),
            ("uncompressed_size", raw, chunk.raw_bytes),
        ];
        for (field, found, expected) in sums {
            if found != expected {
                let because = "the entry of the chunk in the footer; this is the sum over its pages";
                let reason = Reason::Mismatch { found, expected, because };
                return Err(fault(region, field, span.start(), span.len(), reason));
            }
        }
        Ok(PageTable { pages })
    }

    fn page_region(&self, page: usize) -> Region {
        Region::Page { group: number(self.group), column: number(self.column), page: number(page) }
    }

    /// The reader of a page.
    pub(crate) fn page(&self, page: usize, entry: &PageEntry) -> PageReader<'a> {
        let before = self.inner.footer.groups.get(self.group).map_or(0, |group| group.first_row);
        PageReader {
            inner: self.inner,
            column: self.column,
            region: self.page_region(page),
            offset: entry.offset,
            header: entry.header,
            first_row: before + u64::from(entry.header.first_row),
        }
    }

    /// Appends the rows of one page to `out`. Blob values stay empty.
    pub(crate) fn decode_page(
        &self,
        page: usize,
        table: &PageTable,
        out: &mut Column,
    ) -> Result<(), ErrorKind> {
        let page = self.page(page, &table.pages[page]);
        let stored = page.stored()?;
        page.check_rows()?;
        page.decode(&stored, out)
    }

    /// Appends some rows of one page, ascending and relative to its first row, to `out`. Blob values stay empty. `stored` is the payload
    /// of the page, if it has been read.
    pub(crate) fn pick_rows(
        &self,
        page: usize,
        table: &PageTable,
        rows: &[usize],
        stored: Option<Bytes>,
        out: &mut Column,
    ) -> Result<(), ErrorKind> {
        let page = self.page(page, &table.pages[page]);
        let stored = match stored {
            Some(stored) => page.checked(stored)?,
            None => page.stored()?,
        };
        page.check_rows()?;
        page.pick(&stored, rows, out)
    }

    /// All rows, reserved from the budget.
    pub(crate) fn read(&self, budget: &Budget) -> Result<Column, ErrorKind> {
        let mut out = self.read_pages(budget)?;
        if self.inner.is_blob(self.column) {
            let blob = self.inner.blob(self.column)?;
            blob.fill(self.inner, blob.first_of_group(self.group), &mut out, 0, budget)?;
        }
        Ok(out)
    }

    /// All rows without the values of blobs.
    fn read_pages(&self, budget: &Budget) -> Result<Column, ErrorKind> {
        let span = self.span()?;
        let bytes = self.inner.source.read_at(span)?;
        let part = |wanted: Span| self.part(span, &bytes, wanted);
        let table = self.walk_pages(part)?;
        let field = self.field();
        let mut out = Column::empty(field);
        let rows = self.entry()?.values;
        budget.reserve(rows.saturating_mul(field.kind.memory_width()))?;
        for (index, entry) in table.pages.iter().enumerate() {
            let page = self.page(index, entry);
            page.check_rows()?;
            let stored = page.checked(part(page.stored_span()?)?)?;
            let before = out.values.mark();
            page.decode(&stored, &mut out)?;
            // The sizes of strings and list elements are known after decoding; one page is within the page limit.
            budget.reserve(out.values.grown(before))?;
        }
        Ok(out)
    }

    /// Minimum and maximum, if the footer has them and they are reliable.
    pub(crate) fn bounds(&self) -> Option<(Scalar, Scalar)> {
        let chunk = self.entry().ok()?;
        let kind = self.field().scalar();
        let zone = chunk.zone.as_ref().filter(|zone| self.inner.trusted(kind, chunk.pages, zone))?;
        let min = Scalar::from_bytes(kind, &zone.min)?;
        let max = Scalar::from_bytes(kind, &zone.max)?;
        // Unordered bounds are ignored.
        let is_ordered = matches!(min.order(&max), Some(Ordering::Less | Ordering::Equal));
        is_ordered.then_some((min, max))
    }
}
