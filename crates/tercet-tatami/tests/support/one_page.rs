//! Files of one page, built byte by byte.

use std::sync::Arc;

use tercet_core::checksum::crc32c;
use tercet_tatami::format::{
    Chunk, Codec, Encoding, Features, Footer, Group, Header, Kind, PageHeader, Statistics, requires,
};
use tercet_tatami::{Field, Schema};

/// A file of one uncompressed page with the native mark. Row and null counts are those of the page; `change` edits the
/// footer.
pub(crate) fn file(
    field: Field,
    encoding: Encoding,
    flags: u8,
    [rows, nulls]: [u32; 2],
    payload: &[u8],
    change: impl FnOnce(&mut Footer),
) -> Vec<u8> {
    let len = payload.len() as u64;
    let header = PageHeader {
        kind: Kind::Data,
        encoding,
        codec: Codec::None,
        marked: true,
        flags,
        values: rows,
        raw_bytes: len as u32,
        stored_bytes: len as u32,
        nulls,
        first_row: 0,
        payload_crc: crc32c(payload),
    };
    let chunk = Chunk {
        offset: 64,
        stored_bytes: len,
        raw_bytes: len,
        values: rows.into(),
        nulls: nulls.into(),
        pages: 1,
        encoding,
        codec: Codec::None,
        zone: None,
        bloom: None,
        page_index: None,
    };
    let group =
        Group { first_row: 0, rows: rows.into(), total_bytes: 32 + len, bounds: None, chunks: vec![chunk] };
    let mut footer = Footer {
        schema: Arc::new(Schema::new(vec![field]).unwrap()),
        groups: vec![group],
        blobs: Vec::new(),
        dictionaries: Vec::new(),
        indexes: Vec::new(),
        inverted: None,
        access: None,
        positions: None,
        page_headers: None,
        pairs: Vec::new(),
        statistics: Statistics { rows: rows.into(), raw_bytes: len, stored_bytes: len },
        features: Some(Features {
            requires: requires::LIST | requires::FLOAT,
            offers: 1,
            resources: Vec::new(),
        }),
        unknown: Vec::new(),
    };
    change(&mut footer);
    let rows = footer.statistics.rows;
    let footer = footer.to_bytes();
    let head = Header {
        major: 1,
        minor: 1,
        flags: 0,
        checksum: 1,
        default_codec: Codec::Zstd,
        page_size_hint: 0,
        uuid: [0; 16],
        rows,
        footer_offset: 96 + len,
        created_millis: 0,
        creator_id: 0,
    };
    let tail = [&(footer.len() as u32).to_le_bytes()[..], &crc32c(&footer).to_le_bytes(), b"TAT1"].concat();
    [&head.to_bytes(), &header.to_bytes()[..], payload, &footer, &tail].concat()
}
