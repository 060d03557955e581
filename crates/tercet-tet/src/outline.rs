//! [`File::outline`]: the byte layout as a tree of named spans.

use tercet_core::{ByteSource as _, Outline, OutlineOptions, Span, escape};

use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::wire::block::{Block, Column};
use crate::wire::directory::Record;
use crate::wire::ids::{Codec, INDEX_HEADER_LEN, RECORDS_AT, ROW_LEN, SUPERBLOCK_LEN, TAIL_LEN, dtype_of};
use crate::wire::index::Row;

/// Characters printed of a longer string.
const MAX_TEXT_CHARS: usize = 120;
/// The value of a reserved field, until its bytes are read.
const IGNORED: &str = "ignored";

impl File {
    /// The byte layout of the file as a tree: every field of every table with its span and value.
    ///
    /// [`OutlineOptions::max_rows`] limits the rows of the chunk index and the payloads.
    pub fn outline(&self, options: OutlineOptions) -> Result<Outline, Error> {
        let drawn = self.draw(options.max_rows.unwrap_or(u64::MAX)).and_then(|mut root| {
            // With a row limit, bytes without a leaf may be payloads that are not shown.
            if options.max_rows.is_none_or(|rows| rows >= self.chunk_count()) {
                root.fill_gaps("unused bytes");
            }
            self.show_ignored(&mut root)?;
            Ok(root)
        });
        drawn.map_err(|fault| self.error(fault))
    }

    /// Shows the bytes of reserved fields: other writers may use them.
    fn show_ignored(&self, node: &mut Outline) -> Result<(), ErrorKind> {
        if node.value.as_deref() == Some(IGNORED) {
            let bytes = self.source.read_at(node.span)?;
            let zero = bytes.iter().all(|&byte| byte == 0);
            let text = if zero { "0".to_owned() } else { format!("`{}`", bytes.escape_ascii()) };
            node.value = Some(format!("{text} (ignored)"));
        }
        node.parts.iter_mut().try_for_each(|part| self.show_ignored(part))
    }

    fn draw(&self, max_rows: u64) -> Result<Outline, ErrorKind> {
        let mut root = Outline::region("file", Span::first(self.len()));
        root.parts.push(self.draw_superblock());
        if !self.catalog.records.is_empty() {
            root.parts.push(self.draw_directory());
            let index = self.catalog.superblock.index_span();
            let directory_end = self.catalog.directory.end();
            if let Some(padding) = Span::between(directory_end, index.start()).filter(|span| !span.is_empty())
            {
                root.parts.push(Outline::leaf("padding", padding, IGNORED));
            }
            let (index, payloads) = self.draw_index(max_rows)?;
            root.parts.push(index);
            root.parts.push(payloads);
        }
        if self.catalog.footer.is_some() {
            root.parts.push(self.draw_footer()?);
        }
        Ok(root)
    }

    fn draw_superblock(&self) -> Outline {
        let block = self.superblock();
        let mut out = Outline::region("superblock", Span::first(SUPERBLOCK_LEN));
        out.field("magic", 4, "TETR");
        out.field("layout_version", 4, block.layout_version);
        out.field("dataset_count", 4, block.dataset_count);
        let footer = if block.has_footer() { " (footer)" } else { "" };
        out.field("flags", 4, format!("{:#x}{footer}", block.flags));
        out.field("chunk_index_offset", 8, block.chunk_index_offset);
        out.field("chunk_index_length", 8, block.chunk_index_length);
        out
    }

    fn draw_directory(&self) -> Outline {
        let directory = self.catalog.directory;
        let whole = Span::between(SUPERBLOCK_LEN, directory.end()).unwrap_or(directory);
        let mut out = Outline::region("dataset directory", whole);
        out.field("dataset_blob_len", 8, directory.len());
        let mut start = RECORDS_AT;
        for (number, record) in self.catalog.records.iter().enumerate() {
            let drawn = draw_record(number, record, start);
            start = drawn.span.end();
            out.parts.push(drawn);
        }
        out
    }

    fn draw_index(&self, max_rows: u64) -> Result<(Outline, Outline), ErrorKind> {
        let span = self.catalog.superblock.index_span();
        let mut index = Outline::region("chunk index", span);
        let header = span.slice(0, INDEX_HEADER_LEN).unwrap_or(span);
        let mut head = Outline::region("header", header);
        head.field("magic", 4, "TIDX");
        head.field("index_version", 4, 1);
        head.field("entry_count", 8, self.chunk_count());
        head.field("memory_budget_percent_bps", 2, self.catalog.index.budget.percent_bps);
        head.field("reserved", 2, IGNORED);
        head.field("memory_budget_bytes", 4, self.catalog.index.budget.bytes);
        head.field("reserved", 8, IGNORED);
        index.parts.push(head);

        let space = self.catalog.column_space();
        let mut payloads = Outline::region("payloads", space);
        let rows = self.chunk_count().min(max_rows);
        for number in 0..rows {
            let row = self.rows.get(&self.row_context(), number)?;
            let start = self.rows.row_start(number);
            index.parts.push(self.draw_row(number, start, &row));
            if let Ok((codec, span)) = row.check(number, start, self.catalog.payload_end) {
                let value = format!("{}, {} bytes decoded", codec.name(), row.raw_byte_len);
                payloads.parts.push(Outline::leaf(format!("payload {number}"), span, value));
            }
        }
        if rows < self.chunk_count() {
            let rest = self.chunk_count() - rows;
            let start = self.rows.row_start(rows);
            let span = Span::between(start, span.end()).unwrap_or(Span::empty(start));
            index.parts.push(Outline::leaf(format!("{rest} more rows"), span, "not shown"));
        }
        payloads.parts.sort_by_key(|part| part.span);
        if let Some(block) = self.catalog.block() {
            payloads.parts.extend(draw_columns(&block));
        }
        Ok((index, payloads))
    }

    fn draw_row(&self, number: u64, start: u64, row: &Row) -> Outline {
        let span = Span::at(start, ROW_LEN).unwrap_or(Span::empty(start));
        let mut out = Outline::region(format!("row {number}"), span);
        let dataset = usize::try_from(row.dataset_id).ok().and_then(|id| self.catalog.records.get(id));
        let name = dataset.map_or_else(|| "none".into(), |record| escape::name(&record.name));
        out.field("dataset_id", 8, format!("{} (`{name}`)", row.dataset_id));
        for (axis, coordinate) in row.chunk_index.iter().enumerate() {
            out.field(format!("chunk_index[{axis}]"), 8, coordinate);
        }
        out.field("payload_offset", 8, row.payload_offset);
        out.field("raw_byte_len", 8, row.raw_byte_len);
        out.field("stored_byte_len", 8, row.stored_byte_len);
        let codec = Codec::from_id(row.codec).map_or("unknown", Codec::name);
        out.field("codec", 4, format!("{} ({codec})", row.codec));
        out.field("reserved", 4, IGNORED);
        out
    }

    fn draw_footer(&self) -> Result<Outline, ErrorKind> {
        let catalog = &self.catalog;
        let mut out = Outline::region("footer", catalog.footer_span());
        let Some(footer) = &catalog.footer else { return Ok(out) };
        if footer.tail.history_version == 2 {
            for (name, span) in footer.json.zone_spills(catalog.head_end(), footer.json_span) {
                if let Some(span) = span {
                    out.parts.push(Outline::leaf(name, span, format!("{} bytes of JSON", span.len())));
                }
            }
        }
        if let Some(span) = footer.spill {
            out.parts.push(Outline::leaf("metadata_spill", span, self.text(span)?));
        }
        out.parts.push(Outline::leaf("history_json", footer.json_span, self.text(footer.json_span)?));
        let tail = Span::between(self.len().saturating_sub(TAIL_LEN), self.len());
        let mut drawn = Outline::region("tail", tail.unwrap_or(Span::empty(self.len())));
        drawn.field("history_json_len", 8, footer.tail.history_json_len);
        drawn.field("history_version", 4, footer.tail.history_version);
        drawn.field("magic", 4, "THST");
        out.parts.push(drawn);
        Ok(out)
    }

    /// The start of a string in the file.
    fn text(&self, span: Span) -> Result<String, ErrorKind> {
        let bytes = self.source.read_at(span)?;
        let text = String::from_utf8_lossy(&bytes);
        let prefix: String = text.chars().take(MAX_TEXT_CHARS).collect();
        let more = if prefix.len() < text.len() { "…" } else { "" };
        Ok(format!("{}{more}", escape::name(&prefix)))
    }
}

fn draw_record(number: usize, record: &Record, start: u64) -> Outline {
    let mut out = Outline::region(format!("dataset {number}"), Span::empty(start));
    let name_len = record.name.len() as u64;
    out.field("name_len", 4, name_len);
    let dtype = dtype_of(record.dtype_tag).map_or("unknown", tercet_core::ElementType::name);
    out.field("dtype", 4, format!("{} ({dtype})", record.dtype_tag));
    out.field("ndim", 4, record.shape.len());
    out.field("reserved", 4, IGNORED);
    out.field("name", name_len, format!("`{}`", escape::name(&record.name)));
    let padding = (16 + name_len).wrapping_neg() & 7;
    if padding > 0 {
        out.field("padding", padding, IGNORED);
    }
    for (axis, extent) in record.shape.iter().enumerate() {
        out.field(format!("shape[{axis}]"), 8, extent);
    }
    for (axis, extent) in record.chunk_shape.iter().enumerate() {
        out.field(format!("chunk_shape[{axis}]"), 8, extent);
    }
    let end = out.parts.last().map_or(start, |last| last.span.end());
    out.span = Span::between(start, end).unwrap_or(Span::empty(start));
    out
}

/// The columns of the integrity block that are stored outside its JSON.
fn draw_columns(block: &Block) -> Vec<Outline> {
    let columns = [
        ("index_crc32c", &block.index_crc32c),
        ("row_crc32c", &block.row_crc32c),
        ("row_stats", &block.row_stats),
        ("stats_crc32c", &block.stats_crc32c),
    ];
    let drawn = columns.into_iter().filter_map(|(name, column)| match column {
        Some(Column::At { span, crc32c }) => {
            Some(Outline::leaf(name, *span, format!("column, checksum {crc32c:08x}")))
        }
        _ => None,
    });
    drawn.collect()
}
