//! The footer: a sequence of sections, and the trailer that locates them.
//!
//! ```text
//! u8 codec = 0 │ uvarint tag, uvarint length, body │ … │ u32 length │ u32 CRC-32C │ "TAT1"
//! ```

mod write;

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::{FieldReader, Malformed, Reason};

use super::cursor::Varints as _;
use super::ids::{Codec, Encoding, Role};
use crate::error::ErrorKind;
use crate::region::Region;
use crate::schema::{Field, Schema, Type};

/// Length of the trailer.
pub(crate) const TRAILER_LEN: u64 = 12;

/// Tag of the schema.
pub(crate) const SCHEMA: u64 = 1;
/// Tag of the row groups.
pub(crate) const GROUPS: u64 = 2;
/// Tag of the blob descriptors.
pub(crate) const BLOBS: u64 = 3;
/// Tag of the dictionary descriptors.
pub(crate) const DICTIONARIES: u64 = 4;
/// Tag of the index descriptors.
pub(crate) const INDEXES: u64 = 5;
/// Tag of the key-value pairs.
pub(crate) const PAIRS: u64 = 6;
/// Tag of the statistics.
pub(crate) const STATISTICS: u64 = 7;
/// Tag of the inverted descriptor.
pub(crate) const INVERTED: u64 = 8;
/// Tag of the features section, which only Tercet writes.
pub(crate) const FEATURES: u64 = 21571;

/// Tag of the access index of a search segment, which only Tercet writes.
pub(crate) const ACCESS: u64 = 21572;

/// Tag of the positions of a search segment, which only Tercet writes.
pub(crate) const POSITIONS: u64 = 21573;

/// Tag of the copied page headers of a search segment, which only Tercet writes.
pub(crate) const PAGE_HEADERS: u64 = 21574;

/// Known section tags.
const TAGS: [u64; 12] = [
    SCHEMA,
    GROUPS,
    BLOBS,
    DICTIONARIES,
    INDEXES,
    PAIRS,
    STATISTICS,
    INVERTED,
    FEATURES,
    ACCESS,
    POSITIONS,
    PAGE_HEADERS,
];

/// The contents of the footer.
#[derive(Clone, Debug)]
pub struct Footer {
    /// The columns.
    pub schema: Arc<Schema>,
    /// The row groups.
    pub groups: Vec<Group>,
    /// The blob descriptor of each BLOBREF column.
    pub blobs: Vec<BlobColumn>,
    /// Dictionary descriptors.
    pub dictionaries: Vec<DictionaryEntry>,
    /// Bloom filter descriptors.
    pub indexes: Vec<IndexEntry>,
    /// The inverted descriptor.
    pub inverted: Option<Inverted>,
    /// The access index of the inverted region.
    pub access: Option<AccessSection>,
    /// The positions of the terms, a record of the same form whose root is at its end.
    pub positions: Option<AccessSection>,
    /// Copies of the page headers of the document columns, a record of the same form without a root.
    pub page_headers: Option<AccessSection>,
    /// Key-value pairs, in order.
    pub pairs: Vec<(String, String)>,
    /// Rows and bytes.
    pub statistics: Statistics,
    /// Required and offered features.
    pub features: Option<Features>,
    /// Tags of unknown sections.
    pub unknown: Vec<u64>,
}

/// Minimum and maximum, as stored scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The minimum.
    pub min: Bytes,
    /// The maximum.
    pub max: Bytes,
}

/// One row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The file row number of its first row.
    pub first_row: u64,
    /// Its rows.
    pub rows: u64,
    /// Its size in the file.
    pub total_bytes: u64,
    /// Bounds of the sort key.
    pub bounds: Option<Zone>,
    /// Its chunks, in the order of the columns.
    pub chunks: Vec<Chunk>,
}

/// The pages of one column in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of the first page.
    pub offset: u64,
    /// Compressed size of the payloads.
    pub stored_bytes: u64,
    /// Uncompressed size of the payloads.
    pub raw_bytes: u64,
    /// Rows, including nulls.
    pub values: u64,
    /// Null rows.
    pub nulls: u64,
    /// Pages.
    pub pages: u64,
    /// The encoding of the first page.
    pub encoding: Encoding,
    /// The codec of the first page.
    pub codec: Codec,
    /// Zone map of the values.
    pub zone: Option<Zone>,
    /// The number of its bloom filter, 1-based.
    pub bloom: Option<u64>,
    /// Offset of its page index.
    pub page_index: Option<u64>,
}

/// The blob values of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobColumn {
    /// The column.
    pub column: u64,
    /// The number of its dictionary, 1-based; 0 for none.
    pub dictionary: u64,
    /// The codec of all runs.
    pub codec: Codec,
    /// Its runs.
    pub runs: Vec<Run>,
}

/// One run of blob values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of its record.
    pub offset: u64,
    /// Compressed size of its payload.
    pub stored_bytes: u64,
    /// Uncompressed size of its payload.
    pub raw_bytes: u64,
    /// Number of values.
    pub values: u64,
}

/// A dictionary descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryEntry {
    /// Offset of its record.
    pub offset: u64,
    /// Uncompressed size.
    pub raw_bytes: u64,
}

/// An index descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Offset of its record.
    pub offset: u64,
    /// Size of its payload.
    pub payload_bytes: u64,
    /// 0 for a bloom filter.
    pub kind: u8,
}

/// The inverted descriptor: record offsets and payload lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the format specification")]
pub struct Inverted {
    pub term_dict_offset: u64,
    pub term_dict_length: u64,
    pub postings_offset: u64,
    pub postings_length: u64,
    pub skips_offset: u64,
    pub skips_length: u64,
    pub num_terms: u64,
    pub num_docs: u64,
    pub live_offset: u64,
    pub live_length: u64,
}

/// The access index of a search segment: offset of its record, length of its payload, and length and checksum of its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the format specification")]
pub struct AccessSection {
    pub offset: u64,
    pub length: u64,
    pub root_length: u64,
    pub root_crc: u32,
}

/// Rows and bytes of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows.
    pub rows: u64,
    /// Uncompressed size of pages, runs and dictionaries.
    pub raw_bytes: u64,
    /// Compressed size of the same.
    pub stored_bytes: u64,
}

/// Features that the file requires and offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// See [`requires`](super::ids::requires).
    pub requires: u64,
    /// See [`offers`](super::ids::offers).
    pub offers: u64,
    /// Dictionaries that columns use.
    pub resources: Vec<Resource>,
}

/// A dictionary that a column uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The column.
    pub column: u64,
    /// The role.
    pub role: Role,
    /// The number of the dictionary, 1-based.
    pub dictionary: u64,
}

type Result<T, E = Malformed<Region>> = std::result::Result<T, E>;

impl Footer {
    /// Parses the footer at the file offset `base`. Its checksum is already verified.
    pub fn parse(bytes: &Bytes, base: u64) -> Result<Self, ErrorKind> {
        let mut fields = FieldReader::new(Region::Footer, base, bytes);
        let codec = fields.byte("footer_codec")?;
        if codec != 0 {
            let reason = Reason::OutOfRange { found: codec.into(), allowed: "0 (not compressed)" };
            return Err(fields.fault("footer_codec", 1, reason).into());
        }
        // A footer can have millions of tiny sections: only known ones are kept.
        let mut sections: [Option<FieldReader<'_, Region>>; TAGS.len()] = Default::default();
        let mut unknown = Vec::new();
        while fields.remaining() > 0 {
            let tag = fields.uvarint("section_tag")?;
            let len = fields.uvarint("section_length")?;
            let start = fields.position();
            let body = fields.take("section_body", len)?;
            match TAGS.iter().position(|known| *known == tag) {
                // The last of duplicate sections is used.
                Some(at) => sections[at] = Some(FieldReader::new(Region::Section { tag }, start, body)),
                None => unknown.push(tag),
            }
        }
        let mut found = |tag| sections[TAGS.iter().position(|known| *known == tag)?].take();
        let Some(mut section) = found(SCHEMA) else {
            let reason = Reason::Unexpected { rule: "a footer has a schema section" };
            return Err(fields.fault("schema", 0, reason).into());
        };
        let schema = schema(&mut section)?;
        let groups = match found(GROUPS) {
            Some(mut section) => groups(&mut section, bytes, &schema)?,
            None => Vec::new(),
        };
        let blobs = found(BLOBS).map_or(Ok(Vec::new()), |mut section| blobs(&mut section))?;
        let dictionaries =
            found(DICTIONARIES).map_or(Ok(Vec::new()), |mut section| dictionaries(&mut section))?;
        let indexes = found(INDEXES).map_or(Ok(Vec::new()), |mut section| indexes(&mut section))?;
        let inverted = found(INVERTED).map(|mut section| inverted(&mut section)).transpose()?;
        let positions = found(POSITIONS).map(|mut section| access(&mut section)).transpose()?.flatten();
        let page_headers = found(PAGE_HEADERS).map(|mut section| access(&mut section)).transpose()?.flatten();
        let access = found(ACCESS).map(|mut section| access(&mut section)).transpose()?.flatten();
        let pairs = found(PAIRS).map_or(Ok(Vec::new()), |mut section| pairs(&mut section))?;
        let statistics =
            found(STATISTICS).map_or(Ok(Statistics::default()), |mut section| statistics(&mut section))?;
        let features = found(FEATURES).map(|mut section| features(&mut section)).transpose()?;
        unknown.sort_unstable();
        unknown.dedup();
        let schema = Arc::new(schema);
        Ok(Self {
            schema,
            groups,
            blobs,
            dictionaries,
            indexes,
            inverted,
            access,
            positions,
            page_headers,
            pairs,
            statistics,
            features,
            unknown,
        })
    }
}

fn schema(fields: &mut FieldReader<'_, Region>) -> Result<Schema, ErrorKind> {
    let count = fields.count("field_count", 4)?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let name = fields.text("field_name")?;
        let kind = kind(fields, "field_type")?;
        let flags = fields.byte("field_flags")?;
        // Columns other than lists ignore it, so any value may be stored.
        let element = if kind == Type::List {
            self::kind(fields, "element_type")?
        } else {
            fields.byte("element_type")?;
            Type::Bool
        };
        out.push(Field::from_wire(name, kind, flags, element));
    }
    Ok(Schema::new(out)?)
}

fn kind(fields: &mut FieldReader<'_, Region>, field: &'static str) -> Result<Type> {
    let id = fields.byte(field)?;
    let reason = Reason::OutOfRange { found: id.into(), allowed: "a type ID, 0 to 15" };
    Type::from_id(id).ok_or_else(|| fields.fault(field, 1, reason))
}

fn zone(fields: &mut FieldReader<'_, Region>, footer: &Bytes, names: [&'static str; 2]) -> Result<Zone> {
    let min = footer.slice_ref(fields.bytes(names[0])?);
    let max = footer.slice_ref(fields.bytes(names[1])?);
    Ok(Zone { min, max })
}

const HAS_BOUNDS: u8 = 1;
const HAS_ZONE: u8 = 1;
const HAS_BLOOM: u8 = 2;
const HAS_PAGE_INDEX: u8 = 4;

fn groups(fields: &mut FieldReader<'_, Region>, footer: &Bytes, schema: &Schema) -> Result<Vec<Group>> {
    let count = fields.count("group_count", 5)?;
    let mut out = Vec::with_capacity(count);
    let mut next_row = 0u64;
    for _ in 0..count {
        let before = fields.position();
        let first_row = fields.uvarint("first_row")?;
        let len = fields.position() - before;
        let because = "the rows of the preceding groups";
        if first_row != next_row {
            let reason = Reason::Mismatch { found: first_row, expected: next_row, because };
            return Err(fields.fault("first_row", len, reason));
        }
        let rows = fields.uvarint("num_rows")?;
        next_row = first_row
            .checked_add(rows)
            .ok_or_else(|| fields.fault("num_rows", 1, Reason::Overflow { what: "the sum of the rows" }))?;
        let total_bytes = fields.uvarint("total_bytes")?;
        let flags = fields.byte("group_flags")?;
        let bounds =
            (flags & HAS_BOUNDS != 0).then(|| zone(fields, footer, ["sort_min", "sort_max"])).transpose()?;
        let chunks = chunks(fields, footer, schema, rows)?;
        out.push(Group { first_row, rows, total_bytes, bounds, chunks });
    }
    Ok(out)
}

fn chunks(
    fields: &mut FieldReader<'_, Region>,
    footer: &Bytes,
    schema: &Schema,
    rows: u64,
) -> Result<Vec<Chunk>> {
    let count = fields.count("chunk_count", 10)?;
    if count != schema.len() {
        let because = "the number of columns";
        let reason = Reason::Mismatch { found: count as u64, expected: schema.len() as u64, because };
        return Err(fields.fault("chunk_count", 1, reason));
    }
    let mut out = Vec::with_capacity(count);
    for index in 0..count as u64 {
        let column = fields.uvarint("column_id")?;
        if column != index {
            let reason =
                Reason::Mismatch { found: column, expected: index, because: "the order of the columns" };
            return Err(fields.fault("column_id", 1, reason));
        }
        let offset = fields.uvarint("first_page_offset")?;
        let stored_bytes = fields.uvarint("total_compressed")?;
        let raw_bytes = fields.uvarint("total_uncompressed")?;
        let values = fields.uvarint("num_values")?;
        if values != rows {
            let reason = Reason::Mismatch { found: values, expected: rows, because: "the rows of the group" };
            return Err(fields.fault("num_values", 1, reason));
        }
        let nulls = fields.uvarint("null_count")?;
        if nulls > values {
            let reason = Reason::OutOfRange { found: nulls, allowed: "at most the number of rows" };
            return Err(fields.fault("null_count", 1, reason));
        }
        let pages = fields.uvarint("num_pages")?;
        let encoding = Encoding::from_id(fields.byte("encoding")?);
        let codec = Codec::from_id(fields.byte("codec")?);
        let flags = fields.byte("chunk_flags")?;
        let has = |flag: u8| flags & flag != 0;
        let zone = has(HAS_ZONE).then(|| zone(fields, footer, ["zone_min", "zone_max"])).transpose()?;
        let bloom = has(HAS_BLOOM).then(|| fields.uvarint("bloom_ref")).transpose()?;
        let page_index = has(HAS_PAGE_INDEX).then(|| fields.uvarint("page_index_offset")).transpose()?;
        out.push(Chunk {
            offset,
            stored_bytes,
            raw_bytes,
            values,
            nulls,
            pages,
            encoding,
            codec,
            zone,
            bloom,
            page_index,
        });
    }
    Ok(out)
}

fn blobs(fields: &mut FieldReader<'_, Region>) -> Result<Vec<BlobColumn>> {
    let count = fields.count("column_count", 4)?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let column = fields.uvarint("column_id")?;
        let dictionary = fields.uvarint("dict_index")?;
        let codec = Codec::from_id(fields.byte("record_codec")?);
        let count = fields.count("run_count", 4)?;
        let mut runs = Vec::with_capacity(count);
        for _ in 0..count {
            runs.push(Run {
                offset: fields.uvarint("record_offset")?,
                stored_bytes: fields.uvarint("compressed_size")?,
                raw_bytes: fields.uvarint("uncompressed_size")?,
                values: fields.uvarint("num_values")?,
            });
        }
        out.push(BlobColumn { column, dictionary, codec, runs });
    }
    Ok(out)
}

fn dictionaries(fields: &mut FieldReader<'_, Region>) -> Result<Vec<DictionaryEntry>> {
    let count = fields.count("dictionary_count", 2)?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let offset = fields.uvarint("record_offset")?;
        out.push(DictionaryEntry { offset, raw_bytes: fields.uvarint("raw_length")? });
    }
    Ok(out)
}

fn indexes(fields: &mut FieldReader<'_, Region>) -> Result<Vec<IndexEntry>> {
    let count = fields.count("index_count", 3)?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let offset = fields.uvarint("record_offset")?;
        let payload_bytes = fields.uvarint("payload_length")?;
        out.push(IndexEntry { offset, payload_bytes, kind: fields.byte("kind")? });
    }
    Ok(out)
}

fn inverted(fields: &mut FieldReader<'_, Region>) -> Result<Inverted> {
    let mut out = Inverted {
        term_dict_offset: fields.uvarint("term_dict_offset")?,
        term_dict_length: fields.uvarint("term_dict_length")?,
        postings_offset: fields.uvarint("postings_offset")?,
        postings_length: fields.uvarint("postings_length")?,
        skips_offset: fields.uvarint("skips_offset")?,
        skips_length: fields.uvarint("skips_length")?,
        num_terms: fields.uvarint("num_terms")?,
        num_docs: fields.uvarint("num_docs")?,
        ..Inverted::default()
    };
    // Files of older writers end here: every document is live.
    if fields.remaining() > 0 {
        out.live_offset = fields.uvarint("live_offset")?;
        out.live_length = fields.uvarint("live_length")?;
    }
    Ok(out)
}

/// `None` for a later version, which is another record.
fn access(fields: &mut FieldReader<'_, Region>) -> Result<Option<AccessSection>> {
    if fields.byte("version")? != 1 {
        return Ok(None);
    }
    let offset = fields.uvarint("offset")?;
    let length = fields.uvarint("length")?;
    let root_length = fields.uvarint("root_length")?;
    Ok(Some(AccessSection { offset, length, root_length, root_crc: fields.u32_le("root_crc")? }))
}

fn pairs(fields: &mut FieldReader<'_, Region>) -> Result<Vec<(String, String)>> {
    let count = fields.count("pair_count", 2)?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        // The format does not require pairs to be UTF-8.
        let key = String::from_utf8_lossy(fields.bytes("key")?).into_owned();
        out.push((key, String::from_utf8_lossy(fields.bytes("value")?).into_owned()));
    }
    Ok(out)
}

fn statistics(fields: &mut FieldReader<'_, Region>) -> Result<Statistics> {
    Ok(Statistics {
        rows: fields.uvarint("row_count")?,
        raw_bytes: fields.uvarint("uncompressed_total")?,
        stored_bytes: fields.uvarint("compressed_total")?,
    })
}

fn features(fields: &mut FieldReader<'_, Region>) -> Result<Features> {
    let version = fields.byte("version")?;
    if version == 0 {
        let reason = Reason::OutOfRange { found: 0, allowed: "1 or more" };
        return Err(fields.fault("version", 1, reason));
    }
    let requires = fields.uvarint("requires")?;
    let offers = fields.uvarint("offers")?;
    let count = fields.count("resource_count", 3)?;
    let mut resources: Vec<Resource> = Vec::with_capacity(count);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..count {
        let column = fields.uvarint("column_id")?;
        let role = Role::from_id(fields.byte("role")?);
        let dictionary = fields.uvarint("dict_index")?;
        if !seen.insert((column, role.id())) {
            let reason = Reason::Unexpected { rule: "a column has one dictionary for each role" };
            return Err(fields.fault("role", 1, reason));
        }
        resources.push(Resource { column, role, dictionary });
    }
    Ok(Features { requires, offers, resources })
}
