//! [`Catalog`]: superblock, directory, index header and footer, read when a file is opened.

use bytes::Bytes;
use tercet_core::checksum::{self, Mismatch};
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, CommonError, Limits, Malformed, Reason, Site, Span};

use crate::error::{ErrorKind, StaleBlockError};
use crate::integrity::find_lost_block;
use crate::metadata::{HistoryRow, Metadata};
use crate::metadata_limits::INLINE_BYTES;
use crate::wire::block::{Block, ZERO_DIGITS, find_digits};
use crate::wire::directory::{self, Record};
use crate::wire::footer::{self, Json, Tail};
use crate::wire::ids::{INDEX_HEADER_LEN, RECORDS_AT, SUPERBLOCK_LEN, TAIL_LEN, align8};
use crate::wire::index::{IndexHeader, MemoryBudget};
use crate::wire::superblock::Superblock;
use crate::{Region, grid::Grid};

/// The parsed structure of a file, without chunk index rows.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) file_len: u64,
    pub(crate) superblock: Superblock,
    pub(crate) directory: Span,
    pub(crate) records: Vec<Record>,
    pub(crate) index: IndexHeader,
    pub(crate) footer: Option<Footer>,
    /// The end of the payloads.
    pub(crate) payload_end: u64,
    /// The limit for metadata.
    metadata_bytes: u64,
}

/// A parsed footer.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    pub(crate) tail: Tail,
    /// The span of the JSON, for its checksum and the outline.
    pub(crate) json_span: Span,
    /// The JSON without its metadata.
    pub(crate) json: Json,
    /// Whether the JSON has metadata or a reference to it.
    pub(crate) has_metadata: bool,
    /// From the JSON or from the spill; without the integrity block.
    pub(crate) metadata: Metadata,
    pub(crate) spill: Option<Span>,
    /// The member `tercet` of the metadata.
    pub(crate) block: Option<serde_json::Value>,
}

impl Catalog {
    /// Reads and checks everything but the integrity block.
    pub(crate) fn read(source: &dyn ByteSource, limits: &Limits) -> Result<Self, ErrorKind> {
        let mut catalog = Self::read_head(source, limits)?;
        if !catalog.superblock.has_footer() {
            return Ok(catalog);
        }
        let footer = Footer::read(source, catalog.head_end(), limits)?;
        catalog.set_footer(footer)?;
        Ok(catalog)
    }

    /// For recovery: finds an integrity block whose name or footer flag is damaged.
    pub(crate) fn with_lost_block(
        mut self,
        source: &dyn ByteSource,
        limits: &Limits,
    ) -> Result<Self, ErrorKind> {
        if self.block().is_none()
            && let Some(footer) = find_lost_block(&self, source, limits)?.and_then(|lost| lost.footer)
        {
            self.set_footer(footer)?;
        }
        Ok(self)
    }

    /// Sets the footer and the end of the payloads before it.
    pub(crate) fn set_footer(&mut self, footer: Footer) -> Result<(), ErrorKind> {
        let index_end = self.head_end();
        let payload_end = footer.payload_end(index_end);
        self.payload_end = payload_end.filter(|&end| end >= index_end).ok_or_else(|| {
            // The spills are longer than the bytes before the JSON.
            let site = Site { region: Region::FooterJson, field: "history_json", span: footer.json_span };
            Malformed { site, reason: Reason::Overflow { what: "the sum of the lengths of JSON and spills" } }
        })?;
        self.footer = Some(footer);
        Ok(())
    }

    /// Reads and checks everything before the payloads, as if there were no footer.
    pub(crate) fn read_head(source: &dyn ByteSource, limits: &Limits) -> Result<Self, ErrorKind> {
        let file_len = source.len();
        let head = source.read_at(Span::first(SUPERBLOCK_LEN.min(file_len)))?;
        let superblock = Superblock::parse(&head, file_len)?;
        let (directory, records, index) = read_directory(source, &superblock, limits)?;
        let (footer, payload_end, metadata_bytes) = (None, file_len, limits.metadata_bytes);
        Ok(Self { file_len, superblock, directory, records, index, footer, payload_end, metadata_bytes })
    }

    /// The history; empty without a footer.
    pub(crate) fn history(&self) -> &[HistoryRow] {
        self.footer.as_ref().map_or(&[], |footer| &footer.json.history)
    }

    /// The bytes that `catalog_crc32c` covers.
    pub(crate) fn checked_span(&self) -> Span {
        if self.records.is_empty() {
            return Span::first(SUPERBLOCK_LEN);
        }
        Span::first(self.superblock.chunk_index_offset.saturating_add(INDEX_HEADER_LEN))
    }

    /// The bytes that `footer_crc32c` covers.
    pub(crate) fn footer_span(&self) -> Span {
        Span::between(self.payload_end, self.file_len).unwrap_or(Span::empty(self.file_len))
    }

    /// The span in which referenced columns must be.
    pub(crate) fn column_space(&self) -> Span {
        let index_end = self.head_end();
        Span::between(index_end, self.payload_end).unwrap_or(Span::empty(index_end))
    }

    /// The end of everything before the payloads.
    pub(crate) fn head_end(&self) -> u64 {
        // Without datasets the offset of the index is not used.
        if self.records.is_empty() { SUPERBLOCK_LEN } else { self.superblock.index_span().end() }
    }

    /// The grids of all datasets, in order.
    pub(crate) fn grids(&self) -> Vec<Result<Grid, crate::error::DatasetError>> {
        self.records.iter().map(Grid::from_record).collect()
    }

    /// The integrity block, if the file has one of version 1. Nothing is checked against it.
    pub(crate) fn block(&self) -> Option<Block> {
        let value = self.footer.as_ref()?.block.as_ref()?;
        Block::parse(value, self.index.entry_count, self.column_space())
    }

    /// Checks the footer against its checksum.
    pub(crate) fn check_footer(&self, source: &dyn ByteSource) -> Result<(), ErrorKind> {
        let span = self.footer_span();
        // Spills of version 2 may have any length.
        check_limit("the footer", span.len(), self.metadata_bytes)?;
        let bytes = source.read_at(span)?;
        let stale = || ErrorKind::StaleIntegrityBlock {
            region: Region::Footer,
            span,
            reason: StaleBlockError::NoDigits,
        };
        let digits = find_digits(&bytes).ok_or_else(stale)?;
        let expected = std::str::from_utf8(&bytes[digits.clone()]).ok().and_then(checksum::parse_hex8);
        let mut actual = checksum::crc32c(&bytes[..digits.start]);
        actual = checksum::crc32c_append(actual, ZERO_DIGITS);
        actual = checksum::crc32c_append(actual, &bytes[digits.end..]);
        Mismatch::check_crc32c(expected.ok_or_else(stale)?, actual).map_err(|mismatch| {
            ErrorKind::Common(CommonError::Checksum { region: Region::Footer, span, mismatch })
        })
    }

    /// Checks superblock, directory and index header against the block.
    pub(crate) fn check_catalog(&self, source: &dyn ByteSource, block: &Block) -> Result<(), ErrorKind> {
        let span = self.checked_span();
        let actual = self.index.entry_count;
        if block.rows != Some(actual) {
            let reason = StaleBlockError::Rows { expected: block.rows, actual };
            return Err(ErrorKind::StaleIntegrityBlock { region: Region::Catalog, span, reason });
        }
        let crc = checksum::crc32c(&source.read_at(span)?);
        let expected = block.catalog_crc32c.unwrap_or(!crc);
        Mismatch::check_crc32c(expected, crc).map_err(|mismatch| {
            ErrorKind::Common(CommonError::Checksum { region: Region::Catalog, span, mismatch })
        })
    }
}

fn read_directory(
    source: &dyn ByteSource,
    superblock: &Superblock,
    limits: &Limits,
) -> Result<(Span, Vec<Record>, IndexHeader), ErrorKind> {
    if superblock.dataset_count == 0 {
        let none = IndexHeader { entry_count: 0, budget: MemoryBudget::default() };
        return Ok((Span::empty(SUPERBLOCK_LEN), Vec::new(), none));
    }
    let site = |field, span| Site { region: Region::Directory, field, span };
    let len_span = Span::between(SUPERBLOCK_LEN, RECORDS_AT).unwrap_or(Span::empty(SUPERBLOCK_LEN));
    let file_len = source.len();
    if file_len < RECORDS_AT {
        let have = file_len - SUPERBLOCK_LEN;
        return Err(Malformed {
            site: site("dataset_blob_len", len_span),
            reason: Reason::Truncated { need: 8, have },
        }
        .into());
    }
    let mut blob_len = [0; 8];
    source.read_into(SUPERBLOCK_LEN, &mut blob_len)?;
    let blob_len = u64::from_le_bytes(blob_len);
    let Some(directory) = Span::at(RECORDS_AT, blob_len).filter(|span| span.end() <= file_len) else {
        let reason = Reason::OutOfBounds {
            offset: RECORDS_AT,
            len: blob_len,
            end: file_len,
            what: "the file's bytes",
        };
        return Err(Malformed { site: site("dataset_blob_len", len_span), reason }.into());
    };
    check_limit("the dataset directory", blob_len, limits.metadata_bytes)?;
    let records = directory::parse(&source.read_at(directory)?, superblock.dataset_count)?;

    let expected = align8(directory.end()).unwrap_or(u64::MAX);
    let index = superblock.index_span();
    let fault = |field, start, reason| {
        let span = Span::at(start, 8).unwrap_or(Span::empty(start));
        Malformed { site: Site { region: Region::Superblock, field, span }, reason }
    };
    if index.start() != expected {
        let because = "the index follows the directory";
        let reason = Reason::Mismatch { found: index.start(), expected, because };
        return Err(fault("chunk_index_offset", 16, reason).into());
    }
    let Some(header) = index.slice(0, INDEX_HEADER_LEN) else {
        let reason = Reason::Truncated { need: INDEX_HEADER_LEN, have: index.len() };
        return Err(fault("chunk_index_length", 24, reason).into());
    };
    let header = IndexHeader::parse(&source.read_at(header)?, index)?;
    Ok((directory, records, header))
}

impl Footer {
    pub(crate) fn read(source: &dyn ByteSource, index_end: u64, limits: &Limits) -> Result<Self, ErrorKind> {
        let (tail, json_span) = read_tail(source)?;
        check_text(json_span, limits)?;
        let mut json = Json::parse(&source.read_at(json_span)?, json_span)?;
        let has_metadata = json.metadata.is_some() || json.metadata_ref.is_some();
        let mut metadata = json.metadata.take().unwrap_or_default();
        let mut spill = None;
        if let Some(span_ref) = json.metadata_ref {
            // With both, the spill counts.
            let span = footer::spill_span(span_ref, index_end, json_span)?;
            check_text(span, limits)?;
            metadata = footer::parse_spill(&source.read_at(span)?, span)?;
            spill = Some(span);
        }
        let block = metadata.block.take();
        Ok(Self { tail, json_span, json, has_metadata, metadata, spill, block })
    }

    /// The end of the payloads: the start of the JSON minus the lengths of the spills.
    pub(crate) fn payload_end(&self, index_end: u64) -> Option<u64> {
        let spilled = self.json.spilled(self.tail.history_version, index_end, self.json_span)?;
        self.json_span.start().checked_sub(spilled)
    }
}

/// Bytes of memory per byte of JSON: 110 were measured for a hostile file of tiny objects.
const TEXT_GROWTH: u64 = 128;

/// Checks the memory that JSON may need, before it is parsed. 64 KiB, the limit of the format, is always read.
pub(crate) fn check_text(span: Span, limits: &Limits) -> Result<(), ErrorKind> {
    if span.len() > INLINE_BYTES as u64 {
        check_limit("the footer JSON", span.len().saturating_mul(TEXT_GROWTH), limits.metadata_bytes)?;
    }
    Ok(())
}

/// Reads the last 16 bytes and finds the JSON.
pub(crate) fn read_tail(source: &dyn ByteSource) -> Result<(Tail, Span), ErrorKind> {
    let len = source.len();
    let bytes: Bytes = match len.checked_sub(TAIL_LEN).and_then(|start| Span::between(start, len)) {
        Some(span) => source.read_at(span)?,
        None => Bytes::new(),
    };
    Ok(Tail::parse(&bytes, len)?)
}
