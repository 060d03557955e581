//! Page reader of Parquet column chunks that validates pages before they are decoded.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use tercet_core::Class;

use super::page_check::PageCheck;
use super::thrift::{Item, Stop, walk};
use crate::error::{Error, ErrorKind};
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
        // The library asserts this.
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        if start < 0 || chunk.compressed_size() < 0 {
            return Some(Err(ParquetError::General("column chunk of negative offset or length".to_owned())));
        }
        let pages = SerializedPageReader::new(Arc::clone(&self.reader), chunk, rows, None);
        let check = PageCheck::new(chunk.column_descr(), chunk.num_values());
        Some(pages.map(|inner| Box::new(Pages { inner: Some(inner), check }) as Box<dyn PageReader>))
    }
}

impl PageIterator for Chunks {}

/// The pages of a column chunk.
struct Pages {
    /// Has a decompressor, of about 200 KB for Zstandard, so it is dropped after the last page: tables may have thousands of columns.
    inner: Option<SerializedPageReader<Checked>>,
    check: PageCheck,
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(inner) = &mut self.inner else { return Ok(None) };
        let page = inner.get_next_page()?;
        if let Some(page) = &page {
            self.check.check(page).map_err(ParquetError::General)?;
        }
        // Errors of the next header are reported when its page is read.
        if page.is_none() || matches!(inner.peek_next_page(), Ok(None)) {
            self.inner = None;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.as_mut().map_or(Ok(None), PageReader::peek_next_page)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.as_mut().map_or(Ok(()), PageReader::skip_next_page)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.as_mut().map_or(Ok(true), PageReader::at_record_boundary)
    }
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
                let kind = ErrorKind::Format { class: Class::Limit, message: message.clone() };
                reading.fail(Error::new(name, kind));
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
