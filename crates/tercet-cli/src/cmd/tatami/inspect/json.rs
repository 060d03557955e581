//! The JSON output of `inspect`: header and footer.

use serde::Serialize;
use serde_json::Value as Json;
use tercet::core::Span;
use tercet::tatami::wire::footer::{Chunk, Inverted, Zone};
use tercet::tatami::wire::ids::{Codec, Encoding, Role, file_flags, offers, requires};
use tercet::tatami::{Field, File, PageEntry, Scalar, Type};

use super::text::{ratio, role};
use crate::cmd::tatami::open::total;
use crate::cmd::tatami::scalars;
use crate::failure::Failure;
use crate::render::utc_of_millis;

/// The JSON of a file.
#[derive(Serialize)]
pub(super) struct FileJson<'a> {
    file: &'a str,
    bytes: u64,
    version: String,
    rows: u64,
    role: &'static str,
    header: Header,
    needs: Needs,
    statistics: Statistics,
    columns: Vec<Column<'a>>,
    groups: Vec<Group>,
    dictionaries: Vec<Dictionary>,
    blooms: Vec<Bloom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inverted: Option<Parts>,
    metadata: Vec<[&'a str; 2]>,
    footer: Span,
    footer_crc32c: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_sections: Vec<u64>,
}

#[derive(Serialize)]
struct Header {
    flags: Vec<&'static str>,
    unknown_flags: u16,
    checksum: u8,
    default_codec: Codec,
    page_size_hint: u32,
    uuid: Option<String>,
    created_millis: u64,
    created: Option<String>,
    creator_id: u32,
    footer_offset: u64,
}

#[derive(Serialize)]
struct Needs {
    /// Whether the reference implementation can read the file.
    reference: bool,
    features: Vec<String>,
    /// Whether the file records its required features.
    declared: bool,
    offers: Vec<String>,
}

#[derive(Serialize)]
struct Statistics {
    uncompressed: u64,
    compressed: u64,
    ratio: f64,
}

#[derive(Serialize)]
struct Column<'a> {
    #[serde(flatten)]
    field: &'a Field,
    values: u64,
    nulls: u64,
    pages: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Resource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<Blob>,
}

#[derive(Serialize)]
struct Resource {
    role: &'static str,
    dictionary: u64,
}

#[derive(Serialize)]
struct Blob {
    codec: Codec,
    dictionary: Option<u64>,
    values: u64,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    offset: u64,
    values: u64,
    raw_bytes: u64,
    stored_bytes: u64,
}

#[derive(Serialize)]
struct Group {
    first_row: u64,
    rows: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_bounds: Option<Bounds>,
    chunks: Vec<ChunkJson>,
}

#[derive(Serialize)]
struct Bounds {
    min: Json,
    max: Json,
}

#[derive(Serialize)]
struct ChunkJson {
    offset: u64,
    values: u64,
    nulls: u64,
    page_count: u64,
    encoding: Encoding,
    codec: Codec,
    raw_bytes: u64,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<Bounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bloom: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_index_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<Vec<Page>>,
}

#[derive(Serialize)]
struct Page {
    offset: u64,
    first_row: u32,
    rows: u32,
    nulls: u32,
    encoding: Encoding,
    codec: Codec,
    marked: bool,
    flags: u8,
    raw_bytes: u32,
    stored_bytes: u32,
}

#[derive(Serialize)]
struct Dictionary {
    offset: u64,
    raw_bytes: u64,
}

#[derive(Serialize)]
struct Bloom {
    offset: u64,
    payload_bytes: u64,
    kind: u8,
}

/// The sections of the inverted index.
#[derive(Serialize)]
struct Parts {
    terms: u64,
    docs: u64,
    term_dict: Part,
    postings: Part,
    skips: Part,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Part>,
}

#[derive(Serialize)]
struct Part {
    offset: u64,
    bytes: u64,
}

impl<'a> FileJson<'a> {
    pub(super) fn read(file: &'a File, pages: bool) -> Result<Self, Failure> {
        let (head, footer) = (file.header(), file.footer());
        let statistics = footer.statistics;
        Ok(Self {
            file: file.name(),
            bytes: file.len_bytes(),
            version: format!("{}.{}", head.major, head.minor),
            rows: head.rows,
            role: role(file),
            header: header(file),
            needs: needs(file),
            statistics: Statistics {
                uncompressed: statistics.raw_bytes,
                compressed: statistics.stored_bytes,
                ratio: (ratio(statistics.raw_bytes, statistics.stored_bytes) * 1e4).round() / 1e4,
            },
            columns: (0..footer.schema.len()).map(|index| column(file, index)).collect(),
            groups: (0..footer.groups.len())
                .map(|index| group(file, index, pages))
                .collect::<Result<_, _>>()?,
            dictionaries: footer
                .dictionaries
                .iter()
                .map(|entry| Dictionary { offset: entry.offset, raw_bytes: entry.raw_bytes })
                .collect(),
            blooms: footer
                .indexes
                .iter()
                .map(|entry| Bloom {
                    offset: entry.offset,
                    payload_bytes: entry.payload_bytes,
                    kind: entry.kind,
                })
                .collect(),
            inverted: footer.inverted.as_ref().map(inverted),
            metadata: footer.pairs.iter().map(|(key, value)| [key.as_str(), value.as_str()]).collect(),
            footer: file.footer_span(),
            footer_crc32c: format!("{:08x}", file.footer_crc()),
            unknown_sections: footer.unknown.clone(),
        })
    }
}

fn header(file: &File) -> Header {
    let header = file.header();
    let known = file_flags::SORTED
        | file_flags::HAS_BLOB_REGION
        | file_flags::HAS_DICT_REGION
        | file_flags::HAS_INDEX_REGION
        | file_flags::ROLE_SEARCH_SEG
        | file_flags::BLOCK_TREE;
    Header {
        flags: file_flags::names(header.flags),
        unknown_flags: header.flags & !known,
        checksum: header.checksum,
        default_codec: header.default_codec,
        page_size_hint: header.page_size_hint,
        uuid: (header.uuid != [0; 16]).then(|| uuid::Uuid::from_bytes(header.uuid).to_string()),
        created_millis: header.created_millis,
        created: (header.created_millis > 0).then(|| utc_of_millis(header.created_millis)).flatten(),
        creator_id: header.creator_id,
        footer_offset: header.footer_offset,
    }
}

fn needs(file: &File) -> Needs {
    let features = file.footer().features.as_ref();
    let bits = features.map_or(0, |features| features.offers);
    let names = [(offers::HEADER_SUMS, "header_checksums"), (offers::FLOAT_ZONES, "float_zones")];
    Needs {
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

fn column(file: &File, index: usize) -> Column<'_> {
    let footer = file.footer();
    let chunks = || footer.groups.iter().filter_map(|group| group.chunks.get(index));
    let sum = |number: fn(&Chunk) -> u64| total(chunks().map(number));
    let resources = footer.features.iter().flat_map(|features| &features.resources);
    let blob = footer.blobs.iter().find(|blob| blob.column == index as u64);
    Column {
        field: &footer.schema.fields()[index],
        values: sum(|chunk| chunk.values),
        nulls: sum(|chunk| chunk.nulls),
        pages: sum(|chunk| chunk.pages),
        raw_bytes: sum(|chunk| chunk.raw_bytes),
        stored_bytes: sum(|chunk| chunk.stored_bytes),
        resources: resources
            .filter(|used| used.column == index as u64)
            .map(|used| Resource { role: role_name(used.role), dictionary: used.dictionary })
            .collect(),
        blob: blob.map(|blob| Blob {
            codec: blob.codec,
            dictionary: (blob.dictionary > 0).then_some(blob.dictionary),
            values: total(blob.runs.iter().map(|run| run.values)),
            runs: blob
                .runs
                .iter()
                .map(|run| Run {
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

fn group(file: &File, index: usize, pages: bool) -> Result<Group, Failure> {
    let schema = file.schema();
    let group = &file.footer().groups[index];
    let key = schema.sort_key().map(|key| schema.fields()[key].kind);
    let chunks = group.chunks.iter().enumerate().map(|(column, chunk)| {
        let kind = schema.fields()[column].scalar();
        let pages = pages.then(|| file.pages(index, column)).transpose()?;
        Ok(ChunkJson {
            offset: chunk.offset,
            values: chunk.values,
            nulls: chunk.nulls,
            page_count: chunk.pages,
            encoding: chunk.encoding,
            codec: chunk.codec,
            raw_bytes: chunk.raw_bytes,
            stored_bytes: chunk.stored_bytes,
            zone: chunk.zone.as_ref().map(|zone| bounds(kind, zone)),
            bloom: chunk.bloom,
            page_index_offset: chunk.page_index,
            pages: pages.map(|pages| pages.iter().map(page).collect()),
        })
    });
    Ok(Group {
        first_row: group.first_row,
        rows: group.rows,
        bytes: group.total_bytes,
        sort_bounds: key.zip(group.bounds.as_ref()).map(|(kind, zone)| bounds(kind, zone)),
        chunks: chunks.collect::<Result<_, Failure>>()?,
    })
}

/// Min and max as values; null for invalid bytes.
fn bounds(kind: Type, zone: &Zone) -> Bounds {
    let value = |bytes: &[u8]| {
        Scalar::from_bytes(kind, bytes).map_or(Json::Null, |scalar| scalars::json(kind, &scalar))
    };
    Bounds { min: value(&zone.min), max: value(&zone.max) }
}

fn page(entry: &PageEntry) -> Page {
    let header = &entry.header;
    Page {
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

fn inverted(inverted: &Inverted) -> Parts {
    let part = |offset, bytes| Part { offset, bytes };
    Parts {
        terms: inverted.num_terms,
        docs: inverted.num_docs,
        term_dict: part(inverted.term_dict_offset, inverted.term_dict_length),
        postings: part(inverted.postings_offset, inverted.postings_length),
        skips: part(inverted.skips_offset, inverted.skips_length),
        live: (inverted.live_length > 0).then(|| part(inverted.live_offset, inverted.live_length)),
    }
}
