//! Page reader of Parquet column chunks that validates pages before they are decoded.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use tercet_core::Class;

use super::thrift::{Item, Stop, varint, walk};
use crate::error::Error;
use crate::source::SourceReader;

/// Number of bytes of a page header to read at first, and at most.
const HEAD_LEN: u64 = 1 << 12;
const MAX_HEAD_LEN: u64 = 16 << 20;
/// Largest compression ratio: a Zstandard block expands at least 4 bytes to at most 128 KiB.
const RATIO: i64 = 32 << 10;
/// Page size that is always accepted: pages of nulls compress to nothing.
const FREE_BYTES: i64 = 1 << 20;

/// All row groups of a file.
pub(super) struct Groups {
    pub(super) reader: Arc<Checked>,
    pub(super) metadata: Arc<ParquetMetaData>,
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        let rows =
            self.metadata.row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let (reader, metadata) = (Arc::clone(&self.reader), Arc::clone(&self.metadata));
        Ok(Box::new(Chunks { reader, metadata, column, group: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The column chunks of a column, one per row group.
struct Chunks {
    reader: Arc<Checked>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    group: usize,
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.group)?;
        self.group += 1;
        let chunk = group.columns().get(self.column)?;
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(Arc::clone(&self.reader), chunk, rows, None);
        let leaf = chunk.column_descr();
        Some(pages.map(|inner| {
            let levels = [leaf.max_rep_level(), leaf.max_def_level()];
            Box::new(Pages { inner, levels, most: chunk.num_values() }) as Box<dyn PageReader>
        }))
    }
}

impl PageIterator for Chunks {}

struct Pages {
    inner: SerializedPageReader<Checked>,
    /// Maximum repetition and definition levels.
    levels: [i16; 2],
    /// Number of values of the column chunk.
    most: i64,
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            check(page, self.levels, self.most).map_err(ParquetError::General)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

/// Checks the number of values of a page against its bytes.
fn check(page: &Page, levels: [i16; 2], most: i64) -> std::result::Result<(), String> {
    let (bytes, count) = (page.buffer(), page.num_values());
    if page.is_dictionary_page() {
        // A value takes at least one bit.
        if u64::from(count) > bytes.len() as u64 * 8 {
            return Err(format!("dictionary page declares {count} values in {} bytes", bytes.len()));
        }
        return Ok(());
    }
    if i64::from(count) > most {
        return Err(format!("page declares {count} values, but its column chunk has {most}"));
    }
    let encoding = page.encoding();
    if !matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY) {
        return Ok(());
    }
    let short = || "truncated page: no values".to_owned();
    let values = values_after_levels(page, levels).ok_or_else(short)?;
    let rest = lengths(values, count)?;
    if encoding == Encoding::DELTA_BYTE_ARRAY {
        lengths(rest, count)?;
    }
    Ok(())
}

/// The values of a page, after its levels.
fn values_after_levels(page: &Page, levels: [i16; 2]) -> Option<&[u8]> {
    match page {
        Page::DataPage { buf, num_values, rep_level_encoding, def_level_encoding, .. } => {
            let mut left: &[u8] = buf;
            for (level, encoding) in levels.into_iter().zip([rep_level_encoding, def_level_encoding]) {
                if level <= 0 {
                    continue;
                }
                let len = if *encoding == Encoding::RLE {
                    let (len, rest) = left.split_first_chunk::<4>()?;
                    left = rest;
                    u64::from(u32::from_le_bytes(*len))
                } else {
                    let bits = 16 - u64::from(level.leading_zeros());
                    (u64::from(*num_values) * bits).div_ceil(8)
                };
                left = left.get(usize::try_from(len).ok()?..)?;
            }
            Some(left)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let len = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            buf.get(usize::try_from(len).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// Skips delta-encoded lengths, for which parquet allocates at once; returns the bytes after them.
fn lengths(bytes: &[u8], most: u32) -> std::result::Result<&[u8], String> {
    let message = |stop| match stop {
        Stop::Short => "truncated string lengths".to_owned(),
        Stop::Wrong(message) => message,
    };
    let (block, left) = varint(bytes).map_err(message)?;
    let (parts, left) = varint(left).map_err(message)?;
    let (count, left) = varint(left).map_err(message)?;
    let (_first, mut left) = varint(left).map_err(message)?;
    if count > u64::from(most) {
        return Err(format!("declares {count} string lengths, but the page has {most} values"));
    }
    let per_part = block.checked_div(parts).filter(|per_part| *per_part > 0 && *per_part <= 1 << 31);
    let per_part =
        per_part.ok_or_else(|| format!("invalid delta block: {block} values in {parts} miniblocks"))?;
    let mut missing = count.saturating_sub(1);
    while missing > 0 {
        let (_least, rest) = varint(left).map_err(message)?;
        let widths = usize::try_from(parts).ok().and_then(|parts| rest.split_at_checked(parts));
        let (widths, mut rest) = widths.ok_or_else(|| message(Stop::Short))?;
        for width in widths {
            if missing == 0 {
                break;
            }
            let len = usize::try_from(u64::from(*width) * per_part / 8).ok();
            rest = len.and_then(|len| rest.get(len..)).ok_or_else(|| message(Stop::Short))?;
            missing = missing.saturating_sub(per_part);
        }
        left = rest;
    }
    Ok(left)
}

/// A reader that validates page headers before parquet parses them.
pub(super) struct Checked {
    pub(super) reading: SourceReader,
    /// Maximum uncompressed page size.
    pub(super) most: u64,
}

impl Length for Checked {
    fn len(&self) -> u64 {
        self.reading.len()
    }
}

impl ChunkReader for Checked {
    type T = Head;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Head { reading: self.reading.clone(), most: self.most, start, bytes: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.reading.get_bytes(start, length)
    }
}

/// A page header. Fetched on the first read: parquet opens some headers that it does not read.
pub(super) struct Head {
    reading: SourceReader,
    most: u64,
    start: u64,
    bytes: Option<io::Cursor<Bytes>>,
}

impl Read for Head {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = match &mut self.bytes {
            Some(bytes) => bytes,
            none => none.insert(io::Cursor::new(head(&self.reading, self.start, self.most)?)),
        };
        bytes.read(into)
    }
}

/// Reads the page header at a position.
fn head(reading: &SourceReader, start: u64, most: u64) -> io::Result<Bytes> {
    let left = reading.len().saturating_sub(start);
    let mut len = HEAD_LEN.min(left);
    loop {
        let bytes = reading.get_bytes(start, usize::try_from(len).unwrap_or(0)).map_err(io::Error::other)?;
        let mut sizes = [0; 2];
        let walked = walk(&bytes, &mut |path, item| {
            match (path, item) {
                ([2], Item::Number(size)) => sizes[0] = size,
                ([3], Item::Number(size)) => sizes[1] = size,
                _ => {}
            }
            Ok(())
        });
        let wrong = |message: String| {
            let message = format!("page header at byte {start}: {message}");
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        let [plain, packed] = sizes;
        match walked {
            Ok(_) if plain > packed.saturating_mul(RATIO).max(FREE_BYTES) => {
                return wrong(format!("declares {plain} uncompressed bytes for {packed} compressed bytes"));
            }
            Ok(_) if u64::try_from(plain).is_ok_and(|plain| plain > most) => {
                let message = format!("page at byte {start}: {plain} bytes exceed the limit of {most}");
                let name = Arc::clone(reading.name());
                reading.fail(Error::Format { name, class: Class::Limit, message: message.clone() });
                return Err(io::Error::other(message));
            }
            Ok(end) => return Ok(bytes.slice(..end)),
            Err(Stop::Wrong(message)) => return wrong(message),
            Err(Stop::Short) if len == left || len >= MAX_HEAD_LEN => {
                return wrong("truncated".to_owned());
            }
            Err(Stop::Short) => len = (len * 8).min(left).min(MAX_HEAD_LEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;

    use super::*;

    #[test]
    fn string_lengths_are_validated_before_allocation() {
        // Blocks of 128 in four miniblocks, three lengths; the first is 5, the others differ by one and two bits.
        let good = [0x80, 1, 4, 3, 10, 2, 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 99];
        assert_eq!(lengths(&good, 3), Ok(&[99][..]));
        assert!(lengths(&good, 2).unwrap_err().contains("3 string lengths"));
        for len in 0..good.len() - 1 {
            assert!(lengths(&good[..len], 3).is_err(), "{len}");
        }
        assert!(lengths(&[0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 10], 3).is_err());
        assert!(lengths(&[0x80, 1, 0, 3, 10, 2, 2, 0, 0, 0], 3).is_err());
    }

    #[test]
    fn page_headers_are_validated_before_they_are_parsed() {
        let read = |bytes: &[u8]| {
            let reading = SourceReader::new(Arc::new(Memory::new("page", bytes.to_vec())));
            let mut out = Vec::new();
            Checked { reading, most: 1 << 40 }.get_read(0).unwrap().read_to_end(&mut out).map(|_| out)
        };
        // A page of 8 bytes, 100 uncompressed; the last byte is not part of the header.
        assert_eq!(read(&[0x15, 0, 0x15, 0xc8, 1, 0x15, 16, 0, 9]).unwrap().len(), 8);
        let large = read(&[0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 16, 0]).unwrap_err();
        assert!(large.to_string().contains("2147483647 uncompressed bytes"), "{large}");
        // A statistic of 2^60 bytes.
        let long = [0x15, 0, 0x5c, 0x5c, 0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0];
        assert!(read(&long).unwrap_err().to_string().contains("truncated"));
        // A statistic of 8000 bytes, which takes a second read.
        let head = [&[0x15, 0, 0x5c, 0x5c, 0x18, 0xc0, 0x3e][..], &[7; 8000], &[0, 0, 0, 1]].concat();
        assert_eq!(read(&head).unwrap().len(), head.len() - 1);
    }
}
