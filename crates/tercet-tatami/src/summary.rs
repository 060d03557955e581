//! The summary of a file: header and footer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::date;
use serde::{Serialize, Serializer};
use tercet_core::Span;

use crate::chunk::PageEntry;
use crate::error::Error;
use crate::file::File;
use crate::format::{self, Chunk, Codec, Encoding, Inverted, Role, Zone, file_flags, offers, requires};
use crate::scalar::Scalar;
use crate::schema::{Field, Type};

impl File {
    /// Header and footer. Nothing is read: the result is `Ok`, as it is for the formats that read.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(Summary::new(self, &[]))
    }

    /// The summary with all page headers, which are read.
    pub fn summary_with_pages(&self) -> Result<Summary, Error> {
        let columns = 0..self.schema().len();
        let group = |group| columns.clone().map(|column| self.pages(group, column)).collect::<Result<_, _>>();
        let pages = (0..self.group_count()).map(group).collect::<Result<Vec<_>, Error>>()?;
        Ok(Summary::new(self, &pages))
    }
}

/// The header and footer of a file, serializable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The path or URL of the file.
    #[serde(rename = "file")]
    pub location: String,
    /// The length of the file in bytes.
    #[serde(rename = "bytes")]
    pub file_len: u64,
    /// The format version: `1.1`.
    pub version: String,
    /// The number of rows.
    pub rows: u64,
    /// `document-store` or `search-segment`.
    pub role: &'static str,
    /// The header.
    pub header: HeaderSummary,
    /// The features that a reader needs.
    #[serde(rename = "required_features")]
    pub features: RequiredFeatures,
    /// Sizes before and after compression.
    pub statistics: SizeSummary,
    /// The columns.
    pub columns: Vec<ColumnSummary>,
    /// The row groups.
    pub groups: Vec<GroupSummary>,
    /// The dictionaries.
    pub dictionaries: Vec<DictionarySummary>,
    /// The bloom filters.
    pub blooms: Vec<BloomSummary>,
    /// The inverted region of a search segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverted: Option<InvertedSummary>,
    /// Keys and values.
    pub metadata: Vec<[String; 2]>,
    /// The bytes of the footer.
    pub footer: Span,
    /// The checksum of the footer, in hex.
    pub footer_crc32c: String,
    /// The tags of unknown sections of the footer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_sections: Vec<u64>,
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HeaderSummary {
    /// The names of the flags.
    pub flags: Vec<&'static str>,
    /// The bits of unknown flags.
    pub unknown_flags: u16,
    /// The algorithm of checksums.
    pub checksum: u8,
    /// The default codec.
    pub default_codec: Codec,
    /// The intended size of a page.
    pub page_size_hint: u32,
    /// The ID of the file.
    pub uuid: Option<String>,
    /// The time of creation in milliseconds since 1970.
    pub created_millis: u64,
    /// The time of creation in UTC.
    pub created: Option<String>,
    /// The ID of the program that wrote the file.
    pub creator_id: u32,
    /// The offset of the footer.
    pub footer_offset: u64,
}

/// The features that a reader needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RequiredFeatures {
    /// Whether readers without Tercet features can read the file.
    pub reference: bool,
    /// The names of the features.
    pub features: Vec<String>,
    /// Whether the file has a features section.
    pub declared: bool,
    /// Optional features that the file has.
    pub offers: Vec<String>,
}

/// Sizes before and after compression.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeSummary {
    /// Bytes before compression.
    pub uncompressed: u64,
    /// Bytes after compression.
    pub compressed: u64,
    /// The compression ratio.
    pub ratio: f64,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Name and type.
    #[serde(flatten)]
    pub field: Field,
    /// The number of values.
    pub values: u64,
    /// The number of nulls.
    pub nulls: u64,
    /// The number of pages.
    pub pages: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Bytes after compression.
    pub stored_bytes: u64,
    /// The dictionaries of the column.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceSummary>,
    /// The blobs of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobSummary>,
}

/// A dictionary that a column uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ResourceSummary {
    /// The use of the dictionary.
    pub role: &'static str,
    /// The number of the dictionary.
    pub dictionary: u64,
}

/// The blobs of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BlobSummary {
    /// The codec.
    pub codec: Codec,
    /// The number of the dictionary.
    pub dictionary: Option<u64>,
    /// The number of blobs.
    pub values: u64,
    /// The runs of blobs.
    pub runs: Vec<RunSummary>,
}

/// A run of blobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The offset in the file.
    pub offset: u64,
    /// The number of blobs.
    pub values: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Bytes after compression.
    pub stored_bytes: u64,
}

/// A row group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupSummary {
    /// The first row.
    pub first_row: u64,
    /// The number of rows.
    pub rows: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The min and max of the sort key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_bounds: Option<Bounds>,
    /// The column chunks.
    pub chunks: Vec<ChunkSummary>,
}

/// The min and max of values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bounds {
    /// The smallest value.
    pub min: Value,
    /// The largest value.
    pub max: Value,
}

/// A column chunk.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChunkSummary {
    /// The offset in the file.
    pub offset: u64,
    /// The number of values.
    pub values: u64,
    /// The number of nulls.
    pub nulls: u64,
    /// The number of pages.
    pub page_count: u64,
    /// The encoding of the first page.
    pub encoding: Encoding,
    /// The codec of the first page.
    pub codec: Codec,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Bytes after compression.
    pub stored_bytes: u64,
    /// The zone map: min and max.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Bounds>,
    /// The number of the bloom filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bloom: Option<u64>,
    /// The offset of the page index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_index_offset: Option<u64>,
    /// The pages, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageSummary>>,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PageSummary {
    /// The offset in the file.
    pub offset: u64,
    /// The first row, in its row group.
    pub first_row: u32,
    /// The number of rows.
    pub rows: u32,
    /// The number of nulls.
    pub nulls: u32,
    /// The encoding.
    pub encoding: Encoding,
    /// The codec.
    pub codec: Codec,
    /// Whether the header has a mark of its own.
    pub marked: bool,
    /// The flags.
    pub flags: u8,
    /// Bytes before compression.
    pub raw_bytes: u32,
    /// Bytes after compression.
    pub stored_bytes: u32,
}

/// A dictionary.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DictionarySummary {
    /// The offset in the file.
    pub offset: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
}

/// A bloom filter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BloomSummary {
    /// The offset in the file.
    pub offset: u64,
    /// The size in bytes.
    pub payload_bytes: u64,
    /// The kind of filter.
    pub kind: u8,
}

/// The parts of the inverted region.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InvertedSummary {
    /// The number of terms.
    pub terms: u64,
    /// The number of documents.
    pub docs: u64,
    /// The term dictionary.
    pub term_dict: PartSummary,
    /// The posting lists.
    pub postings: PartSummary,
    /// The skip tables.
    pub skips: PartSummary,
    /// The live-docs record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<PartSummary>,
}

/// A part of the inverted region.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartSummary {
    /// The offset in the file.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Summary {
    fn new(file: &File, pages: &[Vec<Vec<PageEntry>>]) -> Self {
        let (head, footer) = (file.header(), file.footer());
        let statistics = footer.statistics;
        Self {
            location: file.name().to_string(),
            file_len: file.len(),
            version: format!("{}.{}", head.major, head.minor),
            rows: head.rows,
            role: if head.has(file_flags::ROLE_SEARCH_SEG) { "search-segment" } else { "document-store" },
            header: header(file),
            features: required_features(file),
            statistics: SizeSummary {
                uncompressed: statistics.raw_bytes,
                compressed: statistics.stored_bytes,
                ratio: (ratio(statistics.raw_bytes, statistics.stored_bytes) * 1e4).round() / 1e4,
            },
            columns: (0..footer.schema.len()).map(|index| column(file, index)).collect(),
            groups: footer
                .groups
                .iter()
                .enumerate()
                .map(|(index, entry)| group(file, entry, pages.get(index)))
                .collect(),
            dictionaries: footer
                .dictionaries
                .iter()
                .map(|entry| DictionarySummary { offset: entry.offset, raw_bytes: entry.raw_bytes })
                .collect(),
            blooms: footer
                .indexes
                .iter()
                .map(|entry| BloomSummary {
                    offset: entry.offset,
                    payload_bytes: entry.payload_bytes,
                    kind: entry.kind,
                })
                .collect(),
            inverted: footer.inverted.as_ref().map(inverted),
            metadata: footer.pairs.iter().map(|(key, value)| [key.clone(), value.clone()]).collect(),
            footer: file.footer_span(),
            footer_crc32c: format!("{:08x}", file.footer_crc()),
            unknown_sections: footer.unknown.clone(),
        }
    }
}

fn header(file: &File) -> HeaderSummary {
    let header = file.header();
    let known = file_flags::SORTED
        | file_flags::HAS_BLOB_REGION
        | file_flags::HAS_DICT_REGION
        | file_flags::HAS_INDEX_REGION
        | file_flags::ROLE_SEARCH_SEG
        | file_flags::BLOCK_TREE;
    HeaderSummary {
        flags: file_flags::names(header.flags),
        unknown_flags: header.flags & !known,
        checksum: header.checksum,
        default_codec: header.default_codec,
        page_size_hint: header.page_size_hint,
        uuid: (header.uuid != [0; 16]).then(|| uuid_text(&header.uuid)),
        created_millis: header.created_millis,
        created: (header.created_millis > 0).then(|| utc(header.created_millis)).flatten(),
        creator_id: header.creator_id,
        footer_offset: header.footer_offset,
    }
}

fn required_features(file: &File) -> RequiredFeatures {
    let features = file.footer().features.as_ref();
    let bits = features.map_or(0, |features| features.offers);
    let names = [(offers::HEADER_SUMS, "header_checksums"), (offers::FLOAT_ZONES, "float_zones")];
    RequiredFeatures {
        reference: file.required_features() == 0,
        features: requires::names(file.required_features()),
        declared: features.is_some(),
        offers: names
            .into_iter()
            .filter(|(bit, _)| bits & bit != 0)
            .map(|(_, name)| name.to_owned())
            .collect(),
    }
}

fn column(file: &File, index: usize) -> ColumnSummary {
    let footer = file.footer();
    let chunks = || footer.groups.iter().filter_map(|group| group.chunks.get(index));
    let sum = |number: fn(&Chunk) -> u64| total(chunks().map(number));
    let resources = footer.features.iter().flat_map(|features| &features.resources);
    let blob = footer.blobs.iter().find(|blob| blob.column == index as u64);
    ColumnSummary {
        field: footer.schema.fields()[index].clone(),
        values: sum(|chunk| chunk.values),
        nulls: sum(|chunk| chunk.nulls),
        pages: sum(|chunk| chunk.pages),
        raw_bytes: sum(|chunk| chunk.raw_bytes),
        stored_bytes: sum(|chunk| chunk.stored_bytes),
        resources: resources
            .filter(|used| used.column == index as u64)
            .map(|used| ResourceSummary { role: role_name(used.role), dictionary: used.dictionary })
            .collect(),
        blob: blob.map(|blob| BlobSummary {
            codec: blob.codec,
            dictionary: (blob.dictionary > 0).then_some(blob.dictionary),
            values: total(blob.runs.iter().map(|run| run.values)),
            runs: blob
                .runs
                .iter()
                .map(|run| RunSummary {
                    offset: run.offset,
                    values: run.values,
                    raw_bytes: run.raw_bytes,
                    stored_bytes: run.stored_bytes,
                })
                .collect(),
        }),
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Values => "value dictionary",
        Role::Symbols => "symbol table",
        Role::Pages => "page dictionary",
        Role::Unknown(_) => "unknown",
    }
}

fn group(file: &File, group: &format::Group, pages: Option<&Vec<Vec<PageEntry>>>) -> GroupSummary {
    let schema = file.schema();
    let key = schema.sort_key().map(|key| schema.fields()[key].kind);
    let chunks = group.chunks.iter().enumerate().map(|(column, chunk)| ChunkSummary {
        offset: chunk.offset,
        values: chunk.values,
        nulls: chunk.nulls,
        page_count: chunk.pages,
        encoding: chunk.encoding,
        codec: chunk.codec,
        raw_bytes: chunk.raw_bytes,
        stored_bytes: chunk.stored_bytes,
        zone: chunk.zone.as_ref().map(|zone| bounds(schema.fields()[column].scalar(), zone)),
        bloom: chunk.bloom,
        page_index_offset: chunk.page_index,
        pages: pages.and_then(|pages| pages.get(column)).map(|pages| pages.iter().map(page).collect()),
    });
    GroupSummary {
        first_row: group.first_row,
        rows: group.rows,
        bytes: group.total_bytes,
        sort_bounds: key.zip(group.bounds.as_ref()).map(|(kind, zone)| bounds(kind, zone)),
        chunks: chunks.collect(),
    }
}

fn bounds(kind: Type, zone: &Zone) -> Bounds {
    let value = |bytes: &[u8]| Value(kind, Scalar::from_bytes(kind, bytes));
    Bounds { min: value(&zone.min), max: value(&zone.max) }
}

/// A scalar as JSON: bytes in base64, NaN and infinities as strings, invalid bytes as null.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(Type, Option<Scalar>);

impl Value {
    /// The scalar; `None` if its bytes are invalid.
    pub fn scalar(&self) -> Option<&Scalar> {
        self.1.as_ref()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let float = |value: f64, to: S| {
            if value.is_finite() { to.serialize_f64(value) } else { to.collect_str(&value) }
        };
        match &self.1 {
            None => to.serialize_none(),
            Some(Scalar::Bool(value)) => to.serialize_bool(*value),
            Some(Scalar::Int8(value)) => to.serialize_i8(*value),
            Some(Scalar::Int16(value)) => to.serialize_i16(*value),
            Some(Scalar::Int32(value)) => to.serialize_i32(*value),
            Some(Scalar::Int64(value)) => to.serialize_i64(*value),
            Some(Scalar::UInt8(value)) => to.serialize_u8(*value),
            Some(Scalar::UInt16(value)) => to.serialize_u16(*value),
            Some(Scalar::UInt32(value)) => to.serialize_u32(*value),
            Some(Scalar::UInt64(value)) => to.serialize_u64(*value),
            // The shortest digits of the float32, not of the nearest float64.
            Some(Scalar::Float32(value)) => float(value.to_string().parse().unwrap_or(f64::from(*value)), to),
            Some(Scalar::Float64(value)) => float(*value, to),
            Some(Scalar::Bytes(value)) if self.0 == Type::String => {
                to.collect_str(&String::from_utf8_lossy(value))
            }
            Some(Scalar::Bytes(value)) => to.serialize_str(&STANDARD.encode(value)),
        }
    }
}

fn page(entry: &PageEntry) -> PageSummary {
    let header = &entry.header;
    PageSummary {
        offset: entry.offset,
        first_row: header.first_row,
        rows: header.values,
        nulls: header.nulls,
        encoding: header.encoding,
        codec: header.codec,
        marked: header.marked,
        flags: header.flags,
        raw_bytes: header.raw_bytes,
        stored_bytes: header.stored_bytes,
    }
}

fn inverted(inverted: &Inverted) -> InvertedSummary {
    let part = |offset, bytes| PartSummary { offset, bytes };
    InvertedSummary {
        terms: inverted.num_terms,
        docs: inverted.num_docs,
        term_dict: part(inverted.term_dict_offset, inverted.term_dict_length),
        postings: part(inverted.postings_offset, inverted.postings_length),
        skips: part(inverted.skips_offset, inverted.skips_length),
        live: (inverted.live_length > 0).then(|| part(inverted.live_offset, inverted.live_length)),
    }
}

/// A saturating sum of untrusted numbers.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// The compression ratio; 1 without payloads.
#[expect(clippy::cast_precision_loss, reason = "four decimals are printed")]
fn ratio(raw: u64, stored: u64) -> f64 {
    if stored == 0 { 1.0 } else { raw as f64 / stored as f64 }
}

fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(*uuid));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A time in milliseconds since 1970 in UTC, up to the year 9999.
fn utc(millis: u64) -> Option<String> {
    let seconds = i64::try_from(millis / 1000).ok()?;
    let day = date(1970, 1, 1).checked_add(jiff::Span::new().try_days(seconds / 86_400).ok()?).ok()?;
    let second = seconds % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!("{day}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_uuids_are_formatted() {
        assert_eq!(utc(1_700_000_000_123).as_deref(), Some("2023-11-14T22:13:20.123Z"));
        assert_eq!(utc(253_402_300_799_999).as_deref(), Some("9999-12-31T23:59:59.999Z"));
        assert_eq!(utc(253_402_300_800_000), None);
        assert_eq!(utc(u64::MAX), None);
        assert_eq!(uuid_text(&[0xab; 16]), "abababab-abab-abab-abab-abababababab");
    }
}
