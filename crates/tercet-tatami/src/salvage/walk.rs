//! Rebuilds a lost footer from the records.
//!
//! A crashed writer or a truncated copy leaves pages without a footer. The schema is stored only in the footer, so the caller
//! provides it; the rest follows from the records: the row numbers of the pages of a chunk are consecutive, the next chunk
//! starts at 0 again, and runs and dictionaries follow in a fixed order.

use std::sync::Arc;

use tercet_core::checksum::crc32c;
use tercet_core::{ByteSource, FieldReader, Span};

use crate::error::ErrorKind;
use crate::region::Region;
use crate::schema::{Schema, Type};
use crate::wire::footer::{
    BlobColumn, Chunk, DictionaryEntry, Features, Footer, Group, Resource, Run, Statistics,
};
use crate::wire::header;
use crate::wire::ids::{Codec, DictionaryKind, Encoding, Kind, Role, offers};
use crate::wire::page::{HEADER_LEN, PageHeader};

/// A rebuilt footer and the end of the last record.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) footer: Footer,
    pub(super) end: u64,
}

/// Rebuilds the footer of a file with these columns. Incomplete row groups are dropped.
pub(super) fn rebuild(source: &dyn ByteSource, schema: Arc<Schema>) -> Result<Rebuilt, ErrorKind> {
    let mut walk = Walk { source, at: header::LEN, has_checksum: None };
    let mut groups = Vec::new();
    let mut uses = vec![Uses::default(); schema.len()];
    let mut first_row = 0;
    while let Some(group) = walk.group(&schema, first_row, &mut uses)? {
        first_row += group.rows;
        groups.push(group);
    }
    let mut blobs = Vec::new();
    for (column, _) in schema.fields().iter().enumerate().filter(|(_, field)| field.kind == Type::BlobRef) {
        let wanted: u64 =
            groups.iter().map(|group| group.chunks[column].values - group.chunks[column].nulls).sum();
        blobs.push(walk.runs(column as u64, wanted)?);
    }
    let mut dictionaries = Vec::new();
    let mut kinds = Vec::new();
    while let Some((offset, header)) = walk.record(Kind::Dictionary)? {
        dictionaries.push(DictionaryEntry { offset, raw_bytes: header.raw_bytes.into() });
        kinds.push(DictionaryKind::from_id(header.encoding.id()));
    }
    let resources = assign(&mut blobs, &uses, &kinds);
    // Drop row groups with missing blob values.
    let kept = complete_groups(&groups, &blobs);
    groups.truncate(kept);
    for blob in &mut blobs {
        let column = usize::try_from(blob.column).unwrap_or(usize::MAX);
        let wanted: u64 =
            groups.iter().map(|group| group.chunks[column].values - group.chunks[column].nulls).sum();
        trim(blob, wanted);
    }
    let rows = groups.last().map_or(0, |group| group.first_row + group.rows);
    let has_checksum = walk.has_checksum == Some(true);
    let features = has_checksum.then_some(Features { requires: 0, offers: offers::HEADER_SUMS, resources });
    let footer = Footer {
        schema,
        groups,
        blobs,
        dictionaries,
        indexes: Vec::new(),
        inverted: None,
        access: None,
        positions: None,
        page_headers: None,
        pairs: Vec::new(),
        statistics: Statistics { rows, raw_bytes: 0, stored_bytes: 0 },
        features,
        unknown: Vec::new(),
    };
    Ok(Rebuilt { footer, end: walk.at })
}

/// Dictionary use of the pages of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    values: bool,
    symbols: bool,
    pages: bool,
}

struct Walk<'a> {
    source: &'a dyn ByteSource,
    at: u64,
    /// Whether record headers have checksums, by the first record.
    has_checksum: Option<bool>,
}

impl Walk<'_> {
    /// The header at the current position, if plausible.
    fn peek(&mut self) -> Result<Option<PageHeader>, ErrorKind> {
        let Some(span) = Span::at(self.at, HEADER_LEN).filter(|span| span.end() <= self.source.len()) else {
            return Ok(None);
        };
        let bytes = self.source.read_at(span)?;
        let mut fields = FieldReader::new(Region::Footer, self.at, &bytes[28..]);
        let sum_fits = fields.u32_le("header_crc")? == crc32c(&bytes[..28]);
        let has_checksum = *self.has_checksum.get_or_insert(sum_fits);
        if has_checksum && !sum_fits {
            return Ok(None);
        }
        let header = PageHeader::parse(Region::Footer, self.at, &bytes, false)?;
        let fits = header.span(self.at).is_some_and(|span| span.end() <= self.source.len());
        let sane = !matches!(header.kind, Kind::Unknown(_)) && header.present().is_some();
        Ok((fits && sane).then_some(header))
    }

    fn skip(&mut self, header: &PageHeader) {
        self.at += HEADER_LEN + u64::from(header.stored_bytes);
    }

    /// The next record, if it is of this kind.
    fn record(&mut self, kind: Kind) -> Result<Option<(u64, PageHeader)>, ErrorKind> {
        let Some(header) = self.peek()?.filter(|header| header.kind == kind) else { return Ok(None) };
        let offset = self.at;
        self.skip(&header);
        Ok(Some((offset, header)))
    }

    /// The next row group, if it is complete.
    fn group(
        &mut self,
        schema: &Schema,
        first_row: u64,
        uses: &mut [Uses],
    ) -> Result<Option<Group>, ErrorKind> {
        let start = self.at;
        let mut chunks = Vec::with_capacity(schema.len());
        let mut rows = None;
        let mut seen = uses.to_vec();
        for (column, field) in schema.fields().iter().enumerate() {
            let chunk = self.chunk(rows, &mut seen[column])?;
            let Some(mut chunk) = chunk.filter(|chunk| *rows.get_or_insert(chunk.values) == chunk.values)
            else {
                self.at = start;
                return Ok(None);
            };
            // Only sort key chunks have a page index, but the caller may not declare the sort key.
            if let Some((offset, _)) = self.record(Kind::Index)?
                && field.sort_key
            {
                chunk.page_index = Some(offset);
            }
            chunks.push(chunk);
        }
        uses.copy_from_slice(&seen);
        let rows = rows.unwrap_or(0);
        Ok(Some(Group { first_row, rows, total_bytes: self.at - start, bounds: None, chunks }))
    }

    /// The pages of one chunk, with consecutive row numbers. The first chunk of a group defines its rows.
    fn chunk(&mut self, rows: Option<u64>, uses: &mut Uses) -> Result<Option<Chunk>, ErrorKind> {
        let mut chunk: Option<Chunk> = None;
        while let Some(header) = self.peek()?.filter(|header| header.kind == Kind::Data) {
            let before = chunk.as_ref().map_or(0, |chunk| chunk.values);
            if u64::from(header.first_row) != before || header.values == 0 || rows == Some(before) {
                break;
            }
            let chunk = chunk.get_or_insert(Chunk {
                offset: self.at,
                stored_bytes: 0,
                raw_bytes: 0,
                values: 0,
                nulls: 0,
                pages: 0,
                encoding: header.encoding,
                codec: header.codec,
                zone: None,
                bloom: None,
                page_index: None,
            });
            chunk.stored_bytes += u64::from(header.stored_bytes);
            chunk.raw_bytes += u64::from(header.raw_bytes);
            chunk.values += u64::from(header.values);
            chunk.nulls += u64::from(header.nulls);
            chunk.pages += 1;
            uses.values |= header.encoding == Encoding::Dictionary;
            uses.symbols |= header.encoding == Encoding::Fsst;
            uses.pages |= header.codec == Codec::ZstdDict;
            self.skip(&header);
        }
        Ok(chunk)
    }

    /// The runs of a blob column, until they have as many values as the column.
    fn runs(&mut self, column: u64, wanted: u64) -> Result<BlobColumn, ErrorKind> {
        let mut blob = BlobColumn { column, dictionary: 0, codec: Codec::Zstd, runs: Vec::new() };
        let mut values = 0;
        while values < wanted {
            let Some((offset, header)) = self.record(Kind::Run)? else { break };
            if blob.runs.is_empty() {
                blob.codec = header.codec;
            }
            values += u64::from(header.values);
            blob.runs.push(Run {
                offset,
                stored_bytes: header.stored_bytes.into(),
                raw_bytes: header.raw_bytes.into(),
                values: header.values.into(),
            });
        }
        Ok(blob)
    }
}

/// Assigns dictionaries to columns, in the order in which writers store them.
fn assign(blobs: &mut [BlobColumn], uses: &[Uses], kinds: &[Option<DictionaryKind>]) -> Vec<Resource> {
    let mut next = 0;
    let mut take = |wanted: &[DictionaryKind]| {
        let found = kinds.get(next).copied().flatten().filter(|kind| wanted.contains(kind))?;
        next += 1;
        Some((found, next as u64))
    };
    for blob in blobs.iter_mut().filter(|blob| blob.codec == Codec::ZstdDict) {
        if let Some((_, number)) = take(&[DictionaryKind::Raw, DictionaryKind::Trained]) {
            blob.dictionary = number;
        }
    }
    let mut resources = Vec::new();
    for (column, uses) in uses.iter().enumerate() {
        let roles = [
            (uses.values, Role::Values, &[DictionaryKind::Values][..]),
            (uses.symbols, Role::Symbols, &[DictionaryKind::Symbols]),
            (uses.pages, Role::Pages, &[DictionaryKind::Raw, DictionaryKind::Trained]),
        ];
        for (used, role, kinds) in roles {
            if used && let Some((_, dictionary)) = take(kinds) {
                resources.push(Resource { column: column as u64, role, dictionary });
            }
        }
    }
    resources
}

/// The number of row groups with all blob values.
fn complete_groups(groups: &[Group], blobs: &[BlobColumn]) -> usize {
    let mut kept = groups.len();
    for blob in blobs {
        let column = usize::try_from(blob.column).unwrap_or(usize::MAX);
        let have: u64 = blob.runs.iter().map(|run| run.values).sum();
        let mut sum = 0;
        let fits = groups.iter().take_while(|group| {
            sum += group.chunks[column].values - group.chunks[column].nulls;
            sum <= have
        });
        kept = kept.min(fits.count());
    }
    kept
}

/// Drops runs after the last required value. A run with surplus values is kept.
fn trim(blob: &mut BlobColumn, wanted: u64) {
    let mut sum = 0;
    blob.runs.retain(|run| {
        let needed = sum < wanted;
        sum += run.values;
        needed
    });
}
