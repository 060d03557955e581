//! Writes superblock, directory, index, columns of the integrity block, zone maps and footer.

use std::io::{BufWriter, Write};

use serde_json::json;
use tercet_core::checksum::{crc32c, crc32c_append};
use tercet_core::{CommonError, Sink, Span};

use crate::error::ErrorKind;
use crate::layout::LayoutError;
use crate::metadata::{HistoryRow, Metadata};
use crate::metadata_limits::{INLINE_BYTES, SPILL_BYTES};
use crate::wire::block::{Block, Column, INLINE_COLUMN_BYTES, find_digits, runs};
use crate::wire::footer::{Json, SpanRef, Tail};
use crate::wire::ids::{RUN_ROWS, align8};
use crate::wire::index::IndexHeader;
use crate::writer::{MISSING, Writer};
use crate::zones::ZoneMaps;

/// Writes everything but payloads and returns the length of the file.
pub(super) fn write<S: Sink>(writer: &mut Writer<S>) -> Result<u64, ErrorKind> {
    let (catalog_crc, index_crcs) = write_head(writer)?;
    if !writer.has_footer() {
        return Ok(writer.end);
    }
    let mut end = writer.end;
    let mut metadata = writer.layout.metadata.clone();
    if writer.options.has_block() {
        let mut layout = writer.layout.clone();
        let labels = layout.take_long_labels();
        metadata = layout.metadata;
        let columns = Columns::for_writer(writer, index_crcs);
        let rows = writer.row_count();
        let (mut block, pieces, new_end) = columns.layout(rows, end);
        for (offset, bytes) in pieces {
            writer.write_at(offset, &bytes)?;
        }
        end = new_end;
        block.catalog_crc32c = Some(catalog_crc);
        block.labels = labels;
        metadata.block = Some(block.to_value());
    }
    let zones = match writer.zones.take() {
        Some(zones) => Some(write_zones(writer, &zones, &metadata, end)?),
        None => None,
    };
    let end = zones.as_ref().map_or(end, |zones| zones.end);
    let footer =
        encode_footer(&writer.layout.history, metadata, &writer.layout.unknown, zones.as_ref(), end)?;
    writer.write_at(end, &footer)?;
    Ok(end + footer.len() as u64)
}

/// Writes superblock, directory and index; returns their checksums for the integrity block.
fn write_head<S: Sink>(writer: &mut Writer<S>) -> Result<(u32, Vec<u32>), ErrorKind> {
    let mut head = writer.superblock().encode();
    if writer.layout.datasets.is_empty() {
        let crc = crc32c(&head);
        writer.write_at(0, &head)?;
        return Ok((crc, Vec::new()));
    }
    head.extend((writer.directory.len() as u64).to_le_bytes());
    head.extend(&writer.directory);
    head.resize(usize::try_from(writer.index_offset).unwrap_or(usize::MAX), 0);
    let header = IndexHeader { entry_count: writer.row_count(), budget: writer.layout.budget };
    head.extend(header.encode());
    let catalog_crc = crc32c(&head);
    writer.write_at(0, &head)?;

    // One run at a time: the index of a large file does not fit in memory.
    let mut offset = head.len() as u64;
    let mut index_crcs = Vec::new();
    let mut run = Vec::new();
    let mut rows_in_run = 0;
    for number in 0..writer.rows.codecs.len() {
        let Some(row) = writer.row_at(number) else { continue };
        row.encode(&mut run);
        rows_in_run += 1;
        if rows_in_run == RUN_ROWS {
            index_crcs.push(crc32c(&run));
            writer.write_at(offset, &run)?;
            offset += run.len() as u64;
            run.clear();
            rows_in_run = 0;
        }
    }
    if rows_in_run > 0 {
        index_crcs.push(crc32c(&run));
        writer.write_at(offset, &run)?;
    }
    Ok((catalog_crc, index_crcs))
}

/// The columns of the integrity block, not yet placed.
pub(crate) struct Columns {
    index_crc32c: Vec<u8>,
    row_crc32c: Vec<u8>,
    row_stats: Option<Vec<u8>>,
    stats_crc32c: Option<Vec<u8>>,
    /// The length limit of inline columns.
    inline_bytes: u64,
}

impl Columns {
    fn for_writer<S: Sink>(writer: &Writer<S>, index_crcs: Vec<u32>) -> Self {
        let rows = &writer.rows;
        let kept = |row: &usize| rows.codecs[*row] != MISSING;
        let numbers = || (0..rows.codecs.len()).filter(kept);
        let crcs = numbers().map(|row| rows.crcs[row]).collect();
        let stats: Option<Vec<u8>> =
            writer.options.statistics.then(|| numbers().flat_map(|row| rows.stats[row]).collect());
        // The size check of the footer allows at most the default length.
        let inline_bytes = writer.options.inline_column_bytes.min(INLINE_COLUMN_BYTES);
        Self { inline_bytes, ..Self::new(index_crcs, crcs, stats) }
    }

    pub(crate) fn new(index_crcs: Vec<u32>, row_crcs: Vec<u32>, row_stats: Option<Vec<u8>>) -> Self {
        let le = |numbers: Vec<u32>| numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let run_bytes = usize::try_from(RUN_ROWS).unwrap_or(usize::MAX) * 48;
        let stats_crcs = row_stats.as_ref().map(|stats| stats.chunks(run_bytes).map(crc32c).collect());
        Self {
            index_crc32c: le(index_crcs),
            row_crc32c: le(row_crcs),
            row_stats,
            stats_crc32c: stats_crcs.map(le),
            inline_bytes: INLINE_COLUMN_BYTES,
        }
    }

    /// Places each column inline, or after the payloads, which end at `end`. Returns the block, the
    /// bytes to write, and their end.
    pub(crate) fn layout(self, rows: u64, end: u64) -> (Block, Vec<(u64, Vec<u8>)>, u64) {
        debug_assert_eq!(self.index_crc32c.len() as u64, 4 * runs(rows));
        let mut pieces = Vec::new();
        let mut end = end;
        let mut column = |bytes: Vec<u8>| {
            if bytes.len() as u64 <= self.inline_bytes {
                return Column::Inline(bytes);
            }
            // The layout was checked: sizes do not overflow.
            let offset = align8(end).unwrap_or(end);
            let padding = usize::try_from(offset - end).unwrap_or(0);
            let span = Span::at(offset, bytes.len() as u64).unwrap_or(Span::empty(offset));
            let crc32c = crc32c(&bytes);
            pieces.push((end, [&[0; 8][..padding], &bytes].concat()));
            end = span.end();
            Column::At { span, crc32c }
        };
        let block = Block {
            rows: Some(rows),
            index_crc32c: Some(column(self.index_crc32c)),
            row_crc32c: Some(column(self.row_crc32c)),
            row_stats: self.row_stats.map(&mut column),
            stats_crc32c: self.stats_crc32c.map(&mut column),
            ..Block::default()
        };
        (block, pieces, end)
    }
}

/// The written spills of footer version 2.
struct ZoneSpills {
    zone_maps: SpanRef,
    secondary_index: Option<SpanRef>,
    /// The end of the spills.
    end: u64,
    /// The checksum of the spills.
    crc32c: u32,
}

/// Writes zone maps and secondary indexes at `start`.
fn write_zones<S: Sink>(
    writer: &mut Writer<S>,
    zones: &ZoneMaps,
    metadata: &Metadata,
    start: u64,
) -> Result<ZoneSpills, ErrorKind> {
    let mut spill = Spill { writer, at: start, crc32c: 0, fault: None };
    spill.text(|out| zones.write_zones(out))?;
    let middle = spill.at;
    spill.text(|out| zones.write_indexes(metadata, out))?;
    let end = spill.at;
    Ok(ZoneSpills {
        zone_maps: SpanRef { offset: start, len: middle - start },
        secondary_index: (end > middle).then_some(SpanRef { offset: middle, len: end - middle }),
        end,
        crc32c: spill.crc32c,
    })
}

/// A spill that is written while it is serialized.
struct Spill<'w, S> {
    writer: &'w mut Writer<S>,
    at: u64,
    crc32c: u32,
    /// The error, which an I/O error cannot carry.
    fault: Option<ErrorKind>,
}

impl<S: Sink> Spill<'_, S> {
    fn text(
        &mut self,
        make: impl FnOnce(&mut BufWriter<&mut Self>) -> serde_json::Result<()>,
    ) -> Result<(), ErrorKind> {
        let mut out = BufWriter::with_capacity(1 << 16, &mut *self);
        let made = make(&mut out).map_err(std::io::Error::from).and_then(|()| out.flush());
        // The rest of the buffer must not be written after a failure.
        let _ = out.into_parts();
        made.map_err(|error| self.fault.take().unwrap_or(ErrorKind::Common(CommonError::Write(error))))
    }
}

impl<S: Sink> Write for Spill<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Err(fault) = self.writer.write_at(self.at, bytes) {
            self.fault = Some(fault);
            return Err(std::io::Error::other("the spill cannot be written"));
        }
        self.at += bytes.len() as u64;
        self.crc32c = crc32c_append(self.crc32c, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of a footer at `start`, after the spills of version 2: the metadata spill if one is needed, JSON,
/// tail. The checksum of the footer is set if the metadata has an integrity block.
fn encode_footer(
    history: &[HistoryRow],
    metadata: Metadata,
    unknown: &serde_json::Map<String, serde_json::Value>,
    zones: Option<&ZoneSpills>,
    start: u64,
) -> Result<Vec<u8>, ErrorKind> {
    let has_block = metadata.block.is_some();
    let text_of = |value: &Json| {
        serde_json::to_vec(value).map_err(|error| ErrorKind::Common(CommonError::Write(error.into())))
    };
    let metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
    let span_json = |span: Option<SpanRef>| span.map(|span| json!({"offset": span.offset, "len": span.len}));
    let mut parts = Json {
        history: history.to_vec(),
        metadata,
        metadata_ref: None,
        zone_maps_ref: span_json(zones.map(|zones| zones.zone_maps)),
        secondary_index_ref: span_json(zones.and_then(|zones| zones.secondary_index)),
        unknown: unknown.clone(),
    };
    let mut text = text_of(&parts)?;
    let mut footer = Vec::new();
    if text.len() > INLINE_BYTES
        && let Some(metadata) = parts.metadata.take()
    {
        footer = serde_json::to_vec(&metadata)
            .map_err(|error| ErrorKind::Common(CommonError::Write(error.into())))?;
        if footer.len() > SPILL_BYTES {
            return Err(LayoutError::MetadataSize { found: footer.len(), allowed: SPILL_BYTES }.into());
        }
        parts.metadata_ref = Some(SpanRef { offset: start, len: footer.len() as u64 });
        text = text_of(&parts)?;
    }
    if text.len() > INLINE_BYTES {
        return Err(LayoutError::HistorySize { found: text.len(), allowed: INLINE_BYTES }.into());
    }
    let tail =
        Tail { history_json_len: text.len() as u64, history_version: if zones.is_some() { 2 } else { 1 } };
    footer.extend(text);
    footer.extend(tail.encode());
    if has_block {
        let digits = find_digits(&footer).ok_or(LayoutError::Marker)?;
        let crc = crc32c_append(zones.map_or(0, |zones| zones.crc32c), &footer);
        footer[digits].copy_from_slice(format!("{crc:08x}").as_bytes());
    }
    Ok(footer)
}
