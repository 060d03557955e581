//! Rebuilds the footer of a file without one from its records.
//!
//! A writer that dies, or a truncated copy, leaves pages without a footer. Names and types of
//! the columns are stored nowhere else, so the caller provides them; the rest follows from the records: pages of a chunk
//! continue each other's row numbers, a chunk ends where they start again, runs and dictionaries follow in a fixed order.

use std::sync::Arc;

use tercet_core::checksum::crc32c;
use tercet_core::{ByteSource, Fields, Span};

use crate::error::ErrorKind;
use crate::region::Region;
use crate::schema::{Schema, Type};
use crate::wire::footer::{
    BlobColumn, Chunk, DictionaryEntry, Features, Footer, Group, Resource, Run, Statistics,
};
use crate::wire::header;
use crate::wire::ids::{Codec, DictionaryKind, Encoding, Kind, Role, offers};
use crate::wire::page::{HEADER_LEN, PageHeader};

/// A footer that fits the records of a file, and where the last of them ends.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) footer: Footer,
    pub(super) end: u64,
}

/// Rebuilds the footer of a file with these columns. Incomplete row groups are dropped.
pub(super) fn rebuild(source: &dyn ByteSource, schema: Arc<Schema>) -> Result<Rebuilt, ErrorKind> {
    let mut walk = Walk { source, at: header::LEN, guarded: None };
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
    // Rows without blob values cannot be recognized by the run directory: drop the groups that have them.
    let kept = whole_groups(&groups, &blobs);
    groups.truncate(kept);
    for blob in &mut blobs {
        let column = usize::try_from(blob.column).unwrap_or(usize::MAX);
        let wanted: u64 =
            groups.iter().map(|group| group.chunks[column].values - group.chunks[column].nulls).sum();
        trim(blob, wanted);
    }
    let rows = groups.last().map_or(0, |group| group.first_row + group.rows);
    let guarded = walk.guarded == Some(true);
    let features = guarded.then_some(Features { requires: 0, offers: offers::HEADER_SUMS, resources });
    let footer = Footer {
        schema,
        groups,
        blobs,
        dictionaries,
        indexes: Vec::new(),
        inverted: None,
        pairs: Vec::new(),
        statistics: Statistics { rows, raw_bytes: 0, stored_bytes: 0 },
        features,
        unknown: Vec::new(),
    };
    Ok(Rebuilt { footer, end: walk.at })
}

/// The dictionaries that the pages of a column use.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    values: bool,
    symbols: bool,
    pages: bool,
}

struct Walk<'a> {
    source: &'a dyn ByteSource,
    at: u64,
    /// Whether record headers have checksums; the first one decides.
    guarded: Option<bool>,
}

impl Walk<'_> {
    /// The header at the current position, if something plausible is there.
    fn peek(&mut self) -> Result<Option<PageHeader>, ErrorKind> {
        let Some(span) = Span::at(self.at, HEADER_LEN).filter(|span| span.end() <= self.source.len()) else {
            return Ok(None);
        };
        let bytes = self.source.read_at(span)?;
        let mut fields = Fields::new(Region::Footer, self.at, &bytes[28..]);
        let sum_fits = fields.u32_le("header_crc")? == crc32c(&bytes[..28]);
        let guarded = *self.guarded.get_or_insert(sum_fits);
        if guarded && !sum_fits {
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

    /// The next row group, if all its chunks are there.
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
            // Only the chunks of a sort key have one, but the caller may not know that there was a sort key.
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

    /// The pages of one chunk: row numbers continue from page to page. The first chunk of a group defines its rows.
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

    /// The runs of a blob column, until they hold as many values as its rows.
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

/// Gives dictionaries to those who need one, in the order in which writers store them.
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

/// How many row groups have all their blob values.
fn whole_groups(groups: &[Group], blobs: &[BlobColumn]) -> usize {
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

/// Drops runs after the last value that is needed. A run with more values stays, and the surplus is not counted.
fn trim(blob: &mut BlobColumn, wanted: u64) {
    let mut sum = 0;
    blob.runs.retain(|run| {
        let needed = sum < wanted;
        sum += run.values;
        needed
    });
}
