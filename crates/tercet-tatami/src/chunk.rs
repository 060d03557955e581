//! Column chunks: the pages of one column in one row group.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::{Budget, Reason, Span};

use crate::block_codec::fault;
use crate::column::{Bitmap, Column};
use crate::error::ErrorKind;
use crate::file::Inner;
use crate::page::decode::Page;
use crate::region::Region;
use crate::schema::Type;
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

impl Inner {
    /// All bytes of a chunk, page headers included.
    pub(crate) fn chunk_span(&self, group: usize, column: usize) -> Result<Span, ErrorKind> {
        let chunk = self.chunk(group, column)?;
        let region = Region::Chunk { group: number(group), column: number(column) };
        let len = chunk.pages.checked_mul(HEADER_LEN).and_then(|heads| heads.checked_add(chunk.stored_bytes));
        let Some(len) = len else {
            let reason = Reason::Overflow { what: "the bytes of the pages" };
            return Err(fault(region, "total_compressed", chunk.offset, 0, reason));
        };
        self.body_span(region, chunk.offset, len)
    }

    /// The page table of a chunk, cached.
    pub(crate) fn page_table(&self, group: usize, column: usize) -> Result<Arc<PageTable>, ErrorKind> {
        let key = (number(group), number(column));
        let lock = || self.tables.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(table) = lock().get(&key) {
            return Ok(Arc::clone(table));
        }
        let all = self.chunk_span(group, column)?;
        let table = if self.source.is_remote() && all.len() <= MAX_PREFETCHED_CHUNK {
            // In a remote file, every page header would be a request.
            let bytes = self.source.read_at(all)?;
            self.walk_pages(group, column, |span| self.part(all, &bytes, span))?
        } else {
            self.walk_pages(group, column, |span| Ok(self.source.read_at(span)?))?
        };
        let table = Arc::new(table);
        lock().insert(key, Arc::clone(&table));
        Ok(table)
    }

    /// Bytes of the file, sliced from `bytes` of `span` where possible.
    fn part(&self, span: Span, bytes: &Bytes, wanted: Span) -> Result<Bytes, ErrorKind> {
        if !span.contains(wanted) {
            return Ok(self.source.read_at(wanted)?);
        }
        let start = usize::try_from(wanted.start() - span.start()).unwrap_or(usize::MAX);
        let end = start.saturating_add(wanted.len_usize().unwrap_or(usize::MAX));
        Ok(bytes.slice(start..end))
    }

    /// Walks the page headers and compares them with the footer.
    fn walk_pages(
        &self,
        group: usize,
        column: usize,
        fetch: impl Fn(Span) -> Result<Bytes, ErrorKind>,
    ) -> Result<PageTable, ErrorKind> {
        let span = self.chunk_span(group, column)?;
        let chunk = self.chunk(group, column)?;
        let count =
            check_limit("a table of pages", chunk.pages, self.options.common.limits.table_bytes / 48)?;
        let mut pages = Vec::with_capacity(count);
        let (mut at, mut rows, mut nulls, mut stored, mut raw) = (span.start(), 0, 0, 0, 0);
        for page in 0..count {
            let region = Region::Page { group: number(group), column: number(column), page: number(page) };
            let head = self.body_span(region, at, HEADER_LEN)?;
            let header = PageHeader::parse(region, at, &fetch(head)?, self.has_header_checksums())?;
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
        let region = Region::Chunk { group: number(group), column: number(column) };
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

    /// A page, ready to be decoded.
    pub(crate) fn page(&self, group: usize, column: usize, page: usize, entry: &PageEntry) -> Page<'_> {
        let before = self.footer.groups.get(group).map_or(0, |group| group.first_row);
        Page {
            inner: self,
            column,
            region: Region::Page { group: number(group), column: number(column), page: number(page) },
            offset: entry.offset,
            header: entry.header,
            first_row: before + u64::from(entry.header.first_row),
        }
    }

    /// The stored payload of a page, verified.
    pub(crate) fn stored_page(&self, page: &Page<'_>) -> Result<Bytes, ErrorKind> {
        let start = page.offset + HEADER_LEN;
        let span = self.body_span(page.region, start, page.header.stored_bytes.into())?;
        let stored = self.source.read_at(span)?;
        self.check_payload(page.region, span, &page.header, &stored)?;
        Ok(stored)
    }

    /// Appends the rows of one page to `out`. Blob values stay empty.
    pub(crate) fn decode_page(
        &self,
        group: usize,
        column: usize,
        page: usize,
        table: &PageTable,
        out: &mut Column,
    ) -> Result<(), ErrorKind> {
        let page = self.page(group, column, page, &table.pages[page]);
        let stored = self.stored_page(&page)?;
        self.check_rows(&page)?;
        page.decode(&stored, out)
    }

    /// The dictionary codes of a page, and its validity.
    pub(crate) fn decode_codes(
        &self,
        group: usize,
        column: usize,
        page: usize,
        table: &PageTable,
    ) -> Result<(Vec<u32>, Option<Bitmap>), ErrorKind> {
        let page = self.page(group, column, page, &table.pages[page]);
        let stored = self.stored_page(&page)?;
        self.check_rows(&page)?;
        page.decode_codes(&stored)
    }

    /// Appends some rows of one page, ascending and relative to its first row, to `out`. Blob values stay empty.
    pub(crate) fn pick_rows(
        &self,
        group: usize,
        column: usize,
        page: usize,
        table: &PageTable,
        rows: &[usize],
        out: &mut Column,
    ) -> Result<(), ErrorKind> {
        let page = self.page(group, column, page, &table.pages[page]);
        let stored = self.stored_page(&page)?;
        self.check_rows(&page)?;
        page.pick(&stored, rows, out)
    }

    /// The validity of one page; `None` if all rows are valid.
    pub(crate) fn page_validity(
        &self,
        group: usize,
        column: usize,
        page: usize,
        table: &PageTable,
    ) -> Result<Option<Bitmap>, ErrorKind> {
        let page = self.page(group, column, page, &table.pages[page]);
        page.decode_validity(&self.stored_page(&page)?)
    }

    /// Rejects a page whose rows exceed the memory limit: few bytes can encode many equal values.
    pub(crate) fn check_rows(&self, page: &Page<'_>) -> Result<(), ErrorKind> {
        let width = self.field(page.column).kind.memory_width();
        let bytes = u64::from(page.header.values).saturating_mul(width);
        check_limit("the values of a page", bytes, self.page_limit())?;
        Ok(())
    }

    /// The rows of a column in one row group, reserved from the budget. Blob values stay empty.
    pub(crate) fn read_chunk(
        &self,
        group: usize,
        column: usize,
        budget: &Budget,
    ) -> Result<Column, ErrorKind> {
        let span = self.chunk_span(group, column)?;
        let bytes = self.source.read_at(span)?;
        let part = |wanted: Span| self.part(span, &bytes, wanted);
        let table = self.walk_pages(group, column, part)?;
        let field = self.field(column);
        let mut out = Column::empty(field);
        let rows = self.chunk(group, column)?.values;
        budget.reserve(rows.saturating_mul(field.kind.memory_width()))?;
        for (index, entry) in table.pages.iter().enumerate() {
            let page = self.page(group, column, index, entry);
            self.check_rows(&page)?;
            let start = entry.offset + HEADER_LEN;
            let span = self.body_span(page.region, start, entry.header.stored_bytes.into())?;
            let stored = part(span)?;
            self.check_payload(page.region, span, &entry.header, &stored)?;
            let before = out.values.mark();
            page.decode(&stored, &mut out)?;
            // The sizes of strings and list elements are known after decoding; one page is within the page limit.
            budget.reserve(out.values.grown(before))?;
        }
        Ok(out)
    }

    /// Whether a column is stored in the blob region.
    pub(crate) fn is_blob(&self, column: usize) -> bool {
        self.field(column).kind == Type::BlobRef
    }
}
