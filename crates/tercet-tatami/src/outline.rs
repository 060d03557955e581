//! The byte layout of a file.

use tercet_core::num::counted;
use tercet_core::{Outline, OutlineOptions, Span};

use crate::chunk::number;
use crate::error::Error;
use crate::file::{File, Inner};
use crate::region::section_name;
use crate::wire::footer::TRAILER_LEN;
use crate::wire::header;
use crate::wire::ids::file_flags;
use crate::wire::page::{HEADER_LEN, PageHeader};

/// Maximum number of footer sections listed; the others are summarized.
const MAX_SECTIONS: usize = 1000;

impl File {
    /// The byte layout of the file as a tree, in file order.
    pub fn outline(&self, options: OutlineOptions) -> Result<Outline, Error> {
        Outliner { inner: self.inner() }.outline(options).map_err(|fault| self.error(fault))
    }
}

fn span(start: u64, end: u64) -> Span {
    Span::between(start, end).unwrap_or(Span::empty(start))
}

/// Outlines the parts of a file.
struct Outliner<'a> {
    inner: &'a Inner,
}

impl Outliner<'_> {
    fn outline(&self, options: OutlineOptions) -> Result<Outline, crate::ErrorKind> {
        let OutlineOptions { max_rows, pages, .. } = options;
        let most = max_rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let mut root = Outline::region("file", Span::first(self.inner.source.len()));
        root.parts.push(self.header_outline());
        for (group, entry) in self.inner.footer.groups.iter().enumerate().take(most) {
            let start = entry.chunks.iter().map(|chunk| chunk.offset).min().unwrap_or(header::LEN);
            let site = crate::Region::Group { group: number(group) };
            let group_span = self.inner.body_span(site, start, entry.total_bytes)?;
            let mut region = Outline::region(format!("row group {group}"), group_span);
            for (column, chunk) in entry.chunks.iter().enumerate() {
                let name = &self.inner.field(column).name;
                let chunk_span = self.inner.chunk_reader(group, column).span()?;
                let mut part = Outline::region(format!("chunk {name}"), chunk_span);
                part.value = Some(format!(
                    "{} rows, {} nulls, {} pages, {}, {}",
                    chunk.values, chunk.nulls, chunk.pages, chunk.encoding, chunk.codec
                ));
                if pages {
                    for (index, entry) in
                        self.inner.chunk_reader(group, column).page_table()?.pages.iter().enumerate()
                    {
                        part.parts.push(page_outline(index, entry.offset, &entry.header));
                    }
                }
                region.parts.push(part);
                if let Some(offset) = chunk.page_index {
                    region.parts.push(self.record_outline("page index", offset, None)?);
                }
            }
            root.parts.push(region);
        }
        if most < self.inner.footer.groups.len() {
            root.parts.push(self.more_groups(most));
        }
        let mut rest = Vec::new();
        for blob in &self.inner.footer.blobs {
            for (run, entry) in blob.runs.iter().enumerate().take(most) {
                let column = u32::try_from(blob.column).unwrap_or(u32::MAX);
                let site = crate::Region::Run { column, run: number(run) };
                let len = entry.stored_bytes.saturating_add(HEADER_LEN);
                let name = format!("blob run {run} of column {}", blob.column);
                rest.push(Outline::leaf(
                    name,
                    self.inner.body_span(site, entry.offset, len)?,
                    format!("{}, {} raw", counted(entry.values, "value"), counted(entry.raw_bytes, "byte")),
                ));
            }
            if let Some(next) = blob.runs.get(most) {
                let last = blob.runs.last().unwrap_or(next);
                let end = last.offset.saturating_add(last.stored_bytes).saturating_add(HEADER_LEN);
                let hidden = counted((blob.runs.len() - most) as u64, "more blob run");
                let name = format!("{hidden} of column {}", blob.column);
                rest.push(Outline::leaf(name, self.span_in_file(next.offset, end), "not shown"));
            }
        }
        for (index, entry) in self.inner.footer.dictionaries.iter().enumerate() {
            let value = format!("{} raw", counted(entry.raw_bytes, "byte"));
            rest.push(self.record_outline(&format!("dictionary {index}"), entry.offset, Some(value))?);
        }
        for (index, entry) in self.inner.footer.indexes.iter().enumerate() {
            rest.push(self.record_outline(&format!("bloom filter {index}"), entry.offset, None)?);
        }
        if let Some(inverted) = &self.inner.footer.inverted {
            let parts = [
                ("term dictionary", inverted.term_dict_offset),
                ("postings", inverted.postings_offset),
                ("skip tables", inverted.skips_offset),
                ("live documents", inverted.live_offset),
            ];
            for (name, offset) in parts.into_iter().filter(|(_, offset)| *offset > 0) {
                rest.push(self.record_outline(name, offset, None)?);
            }
        }
        if let Some(access) = &self.inner.footer.access {
            rest.push(self.record_outline("access index", access.offset, None)?);
        }
        if let Some(positions) = &self.inner.footer.positions {
            rest.push(self.record_outline("positions", positions.offset, None)?);
        }
        if let Some(headers) = &self.inner.footer.page_headers {
            rest.push(self.record_outline("page headers", headers.offset, None)?);
        }
        rest.sort_by_key(|part| part.span.start());
        root.parts.extend(rest);
        root.parts.push(self.footer_outline()?);
        let mut trailer = Outline::region(
            "trailer",
            span(self.inner.footer_span.end(), self.inner.footer_span.end() + TRAILER_LEN),
        );
        trailer.field("footer_length", 4, self.inner.footer_span.len());
        trailer.field("footer_crc", 4, format_args!("{:08x}", self.inner.footer_crc));
        trailer.field("magic", 4, "TAT1");
        root.parts.push(trailer);
        // With a row limit, bytes without a leaf may be runs that are not shown.
        if self.inner.footer.blobs.iter().all(|blob| blob.runs.len() <= most)
            && self.inner.footer.groups.len() <= most
        {
            root.fill_gaps("unused bytes");
        }
        Ok(root)
    }

    /// The row groups from `first` on, as one leaf.
    fn more_groups(&self, first: usize) -> Outline {
        let hidden = self.inner.footer.groups.get(first..).unwrap_or_default();
        let starts = hidden.iter().flat_map(|group| group.chunks.iter().map(|chunk| chunk.offset));
        let start = starts.min().unwrap_or(header::LEN);
        let bytes = hidden.iter().fold(0, |sum: u64, group| sum.saturating_add(group.total_bytes));
        let name = counted(hidden.len() as u64, "more row group");
        Outline::leaf(name, self.span_in_file(start, start.saturating_add(bytes)), "not shown")
    }

    /// A span of declared offsets, which may be past the end of a damaged file.
    fn span_in_file(&self, start: u64, end: u64) -> Span {
        let len = self.inner.source.len();
        span(start.min(len), end.min(len))
    }

    fn header_outline(&self) -> Outline {
        let header = &self.inner.header;
        let mut region = Outline::region("header", Span::first(header::LEN));
        region.field("magic", 4, "TAT1");
        region.field("major_version", 2, header.major);
        region.field("minor_version", 2, header.minor);
        region.field(
            "flags",
            2,
            format_args!("{:#06x} {}", header.flags, file_flags::names(header.flags).join(" ")),
        );
        region.field("checksum_algorithm", 1, header.checksum);
        region.field("default_codec", 1, header.default_codec);
        region.field("page_size_hint", 4, header.page_size_hint);
        region.field("uuid", 16, hex(&header.uuid));
        region.field("row_count", 8, header.rows);
        region.field("footer_offset", 8, header.footer_offset);
        region.field("created_millis", 8, header.created_millis);
        region.field("creator_id", 4, header.creator_id);
        region.field("header_crc", 4, "checked");
        region
    }

    fn record_outline(
        &self,
        name: &str,
        offset: u64,
        value: Option<String>,
    ) -> Result<Outline, crate::ErrorKind> {
        let region = crate::Region::Footer;
        let head = self.inner.body_span(region, offset, HEADER_LEN)?;
        let header = PageHeader::parse(
            region,
            offset,
            &self.inner.source.read_at(head)?,
            self.inner.has_header_checksums(),
        )?;
        let record_span =
            self.inner.body_span(region, offset, HEADER_LEN + u64::from(header.stored_bytes))?;
        let value = value.unwrap_or_else(|| counted(header.stored_bytes.into(), "byte"));
        Ok(Outline::leaf(name, record_span, value))
    }

    fn footer_outline(&self) -> Result<Outline, crate::ErrorKind> {
        use tercet_core::FieldReader;

        use crate::wire::cursor::Varints as _;

        let mut region = Outline::region("footer", self.inner.footer_span);
        let bytes = self.inner.source.read_at(self.inner.footer_span)?;
        let mut fields = FieldReader::new(crate::Region::Footer, self.inner.footer_span.start(), &bytes);
        let codec = fields.byte("footer_codec")?;
        region.field("footer_codec", 1, codec);
        let mut more: Option<(u64, u64)> = None;
        while fields.remaining() > 0 {
            let start = fields.position();
            let tag = fields.uvarint("section_tag")?;
            let len = fields.uvarint("section_length")?;
            fields.skip("section_body", len)?;
            if region.parts.len() >= MAX_SECTIONS {
                more.get_or_insert((start, 0)).1 += 1;
                continue;
            }
            let name = section_name(tag).map_or_else(|| format!("section {tag}"), str::to_owned);
            region.parts.push(Outline::leaf(name, span(start, fields.position()), counted(len, "byte")));
        }
        if let Some((start, count)) = more {
            let name = counted(count, "more section");
            region.parts.push(Outline::leaf(name, span(start, fields.position()), "not listed"));
        }
        Ok(region)
    }
}

fn page_outline(index: usize, offset: u64, header: &PageHeader) -> Outline {
    let page_span = header.span(offset).unwrap_or(Span::empty(offset));
    let mark = if header.marked { ", marked" } else { "" };
    Outline::leaf(
        format!("page {index}"),
        page_span,
        format_args!(
            "rows {}..{}, {} nulls, {}, {}{mark}, {} of {} bytes",
            header.first_row,
            u64::from(header.first_row) + u64::from(header.values),
            header.nulls,
            header.encoding,
            header.codec,
            header.stored_bytes,
            header.raw_bytes
        ),
    )
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}
