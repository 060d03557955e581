//! Writing of row groups.

use std::ops::Range;

use rayon::prelude::*;
use tercet_core::Sink;

use super::chunk::{self, Page};
use super::group::{self, Group};
use super::{Profile, Writer};
use crate::column::Column;
use crate::error::ErrorKind;
use crate::page::encode::widen;
use crate::prune::key::{PageBounds, PageIndex};
use crate::schema::{Field, Schema, Type};
use crate::search::page_headers;
use crate::wire::footer::{self, Zone};
use crate::wire::ids::{Codec, Encoding};
use crate::wire::page::PageHeader;

/// Maximum length of zone map bounds; zones with longer bounds are omitted. They are not truncated, because bounds must be
/// values of the column, and page statistics are truncated anyway.
const ZONE_BYTES: usize = 1024;

/// Bytes of values encoded in parallel: several columns, or some pages of a large one.
const WINDOW_BYTES: u64 = 32 << 20;

impl<S: Sink> Writer<S> {
    /// Writes the buffered row group; `is_last` if no rows follow.
    pub(super) fn flush(&mut self, is_last: bool) -> Result<(), ErrorKind> {
        let mut group = std::mem::replace(&mut self.group, Group::new(&self.schema));
        if group.rows == 0 {
            return Ok(());
        }
        let start = self.at;
        let mut chunks = Vec::with_capacity(group.columns.len());
        for window in windows(&self.schema, &group) {
            let columns: Vec<Column> = group.columns[window.clone()].iter_mut().map(std::mem::take).collect();
            self.write_columns(window, &columns, &mut chunks, is_last)?;
        }
        if self.options.profile == Profile::Native {
            let is_long = |zone: &Zone| zone.min.len().max(zone.max.len()) > ZONE_BYTES;
            for (field, chunk) in self.schema.fields().iter().zip(&mut chunks) {
                // Key lookups use the zone maps of the sort key.
                chunk.zone = chunk.zone.take().filter(|zone| field.sort_key || !is_long(zone));
            }
        }
        let bounds = self.schema.sort_key().and_then(|key| chunks[key].zone.clone());
        self.groups.push(footer::Group {
            first_row: self.rows - group.rows as u64,
            rows: group.rows as u64,
            total_bytes: self.at - start,
            bounds,
            chunks,
        });
        Ok(())
    }

    /// Writes some columns of a group: several columns in parallel, or a large one in windows of pages.
    fn write_columns(
        &mut self,
        window: Range<usize>,
        columns: &[Column],
        chunks: &mut Vec<footer::Chunk>,
        is_last: bool,
    ) -> Result<(), ErrorKind> {
        let options = self.options.clone();
        let cuts: Vec<Vec<Range<usize>>> = self.columns[window.clone()]
            .iter()
            .zip(columns)
            .map(|(writer, column)| {
                let max_rows = usize::try_from(options.page_max_values).unwrap_or(usize::MAX);
                group::page_ranges(&writer.field, column, max_rows, options.page_max_bytes.into())
            })
            .collect();
        let has_filter = |field: &Field| field.bloom && !field.sort_key && field.kind != Type::BlobRef;
        let filters: Vec<Option<Vec<u8>>> = self.columns[window.clone()]
            .par_iter()
            .zip(columns)
            .map(|(writer, column)| {
                has_filter(&writer.field).then(|| chunk::filter(column, options.is_native())).flatten()
            })
            .collect();
        if let ([column], [cuts]) = (columns, &cuts[..]) {
            let mut chunk = UnfinishedChunk::new(self.at, self.columns[window.start].field.scalar());
            for some in page_windows(&self.columns[window.start].field, column, cuts) {
                let is_last = is_last && some.last() == cuts.last();
                let pages = self.columns[window.start].pages(column, some, &options, is_last)?;
                self.write_pages(window.start, pages, &mut chunk)?;
            }
            return self.end_chunk(window.start, chunk, filters.into_iter().next().flatten(), chunks);
        }
        let made: Vec<Vec<Page>> = self.columns[window.clone()]
            .par_iter_mut()
            .zip(columns.par_iter().zip(&cuts))
            .map(|(writer, (column, cuts))| writer.pages(column, cuts, &options, is_last))
            .collect::<Result<_, ErrorKind>>()?;
        for ((index, pages), filter) in window.zip(made).zip(filters) {
            let mut chunk = UnfinishedChunk::new(self.at, self.columns[index].field.scalar());
            self.write_pages(index, pages, &mut chunk)?;
            self.end_chunk(index, chunk, filter, chunks)?;
        }
        Ok(())
    }

    fn write_pages(
        &mut self,
        column: usize,
        pages: Vec<Page>,
        chunk: &mut UnfinishedChunk,
    ) -> Result<(), ErrorKind> {
        for page in pages {
            chunk.add(&page, self.at);
            let header = page.header.to_bytes();
            if let Some(headers) = self.page_headers.as_mut().filter(|_| column < page_headers::COLUMNS) {
                headers.extend_from_slice(&header);
            }
            self.write(&header)?;
            self.write(&page.stored)?;
        }
        Ok(())
    }

    /// Finishes a chunk: page index of the sort key, bloom filter.
    fn end_chunk(
        &mut self,
        column: usize,
        chunk: UnfinishedChunk,
        filter: Option<Vec<u8>>,
        chunks: &mut Vec<footer::Chunk>,
    ) -> Result<(), ErrorKind> {
        let mut entry = chunk.entry;
        self.totals.raw += entry.raw_bytes;
        self.totals.stored += entry.stored_bytes;
        let field = &self.schema.fields()[column];
        if field.sort_key && field.kind != Type::BlobRef {
            entry.page_index = Some(self.at);
            let payload = chunk.index.to_bytes();
            self.write(&PageHeader::for_index(&payload).to_bytes())?;
            self.write(&payload)?;
        }
        if let Some(payload) = filter {
            let header = PageHeader::for_index(&payload).to_bytes();
            let offset = self.blooms.push(&[&header, &payload])?;
            let payload_bytes = payload.len() as u64;
            self.indexes.push(footer::IndexEntry { offset, payload_bytes, kind: 0 });
            entry.bloom = Some(self.indexes.len() as u64);
        }
        chunks.push(entry);
        Ok(())
    }
}

/// An unfinished chunk.
#[derive(Debug)]
struct UnfinishedChunk {
    entry: footer::Chunk,
    index: PageIndex,
    /// The type of the column.
    kind: Type,
}

impl UnfinishedChunk {
    fn new(offset: u64, kind: Type) -> Self {
        let entry = footer::Chunk {
            offset,
            stored_bytes: 0,
            raw_bytes: 0,
            values: 0,
            nulls: 0,
            pages: 0,
            encoding: Encoding::Plain,
            codec: Codec::None,
            zone: None,
            bloom: None,
            page_index: None,
        };
        Self { entry, index: PageIndex { pages: Vec::new() }, kind }
    }

    fn add(&mut self, page: &Page, offset: u64) {
        let (entry, header) = (&mut self.entry, &page.header);
        if entry.pages == 0 {
            (entry.encoding, entry.codec) = (header.encoding, header.codec);
        }
        entry.stored_bytes += u64::from(header.stored_bytes);
        entry.raw_bytes += u64::from(header.raw_bytes);
        entry.values += u64::from(header.values);
        entry.nulls += u64::from(header.nulls);
        entry.pages += 1;
        widen(&mut entry.zone, page.zone.as_ref(), self.kind);
        let zone = page.zone.clone();
        self.index.pages.push(PageBounds { first_row: header.first_row.into(), offset, zone });
    }
}

/// Columns that are encoded together: consecutive small ones, or one large one.
fn windows(schema: &Schema, group: &Group) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for (index, (field, column)) in schema.fields().iter().zip(&group.columns).enumerate() {
        let bytes = group::estimate(field, column, &(0..column.len()));
        match out.last_mut() {
            Some(last) if held + bytes <= WINDOW_BYTES => {
                last.end = index + 1;
                held += bytes;
            }
            _ => {
                out.push(index..index + 1);
                held = bytes;
            }
        }
    }
    out
}

/// Pages of a column that are encoded together.
fn page_windows<'a>(field: &Field, column: &Column, cuts: &'a [Range<usize>]) -> Vec<&'a [Range<usize>]> {
    let mut out = Vec::new();
    let (mut start, mut held) = (0, 0);
    for (index, rows) in cuts.iter().enumerate() {
        let bytes = group::estimate(field, column, rows);
        if index > start && held + bytes > WINDOW_BYTES {
            out.push(&cuts[start..index]);
            (start, held) = (index, 0);
        }
        held += bytes;
    }
    if start < cuts.len() {
        out.push(&cuts[start..]);
    }
    out
}
