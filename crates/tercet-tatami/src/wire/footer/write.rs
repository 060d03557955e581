//! Serializer of the footer.

use super::{
    ACCESS, BLOBS, BlobColumn, DICTIONARIES, FEATURES, Features, Footer, GROUPS, Group, HAS_BLOOM,
    HAS_BOUNDS, HAS_PAGE_INDEX, HAS_ZONE, INDEXES, INVERTED, Inverted, PAGE_HEADERS, PAIRS, POSITIONS,
    SCHEMA, STATISTICS, Statistics, Zone,
};
use crate::schema::{Schema, Type};
use crate::wire::cursor::{put, put_bytes};

impl Footer {
    /// The bytes of the footer, without the trailer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0];
        let mut section = |tag: u64, body: &[u8]| {
            put(tag, &mut out);
            put_bytes(body, &mut out);
        };
        section(SCHEMA, &put_schema(&self.schema));
        section(GROUPS, &put_groups(&self.groups));
        if self.schema.fields().iter().any(|field| field.kind == Type::BlobRef) {
            section(BLOBS, &put_blobs(&self.blobs));
        }
        if !self.dictionaries.is_empty() {
            let entries = self.dictionaries.iter().flat_map(|entry| [entry.offset, entry.raw_bytes]);
            section(DICTIONARIES, &put_all([self.dictionaries.len() as u64].into_iter().chain(entries)));
        }
        if !self.indexes.is_empty() {
            let entries = self
                .indexes
                .iter()
                // The kind is less than 128, so its varint is the same byte.
                .flat_map(|entry| [entry.offset, entry.payload_bytes, u64::from(entry.kind)]);
            section(INDEXES, &put_all([self.indexes.len() as u64].into_iter().chain(entries)));
        }
        if let Some(inverted) = &self.inverted {
            section(INVERTED, &put_all(inverted.numbers().into_iter()));
        }
        let mut pairs = Vec::new();
        put(self.pairs.len() as u64, &mut pairs);
        for (key, value) in &self.pairs {
            put_bytes(key.as_bytes(), &mut pairs);
            put_bytes(value.as_bytes(), &mut pairs);
        }
        section(PAIRS, &pairs);
        let Statistics { rows, raw_bytes, stored_bytes } = self.statistics;
        section(STATISTICS, &put_all([rows, raw_bytes, stored_bytes].into_iter()));
        if let Some(features) = &self.features {
            section(FEATURES, &put_features(features));
        }
        for (tag, record) in
            [(ACCESS, &self.access), (POSITIONS, &self.positions), (PAGE_HEADERS, &self.page_headers)]
        {
            let Some(record) = record else { continue };
            let mut body = vec![1];
            for number in [record.offset, record.length, record.root_length] {
                put(number, &mut body);
            }
            body.extend_from_slice(&record.root_crc.to_le_bytes());
            section(tag, &body);
        }
        out
    }
}

fn put_all(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.for_each(|number| put(number, &mut out));
    out
}

fn put_schema(schema: &Schema) -> Vec<u8> {
    let mut out = Vec::new();
    put(schema.len() as u64, &mut out);
    for field in schema.fields() {
        put_bytes(field.name.as_bytes(), &mut out);
        out.extend([field.kind.id(), field.flags(), field.element.map_or(0, Type::id)]);
    }
    out
}

fn put_groups(groups: &[Group]) -> Vec<u8> {
    let mut out = Vec::new();
    put(groups.len() as u64, &mut out);
    for group in groups {
        for number in [group.first_row, group.rows, group.total_bytes] {
            put(number, &mut out);
        }
        out.push(if group.bounds.is_some() { HAS_BOUNDS } else { 0 });
        put_zone(group.bounds.as_ref(), &mut out);
        put(group.chunks.len() as u64, &mut out);
        for (column, chunk) in group.chunks.iter().enumerate() {
            let numbers = [
                column as u64,
                chunk.offset,
                chunk.stored_bytes,
                chunk.raw_bytes,
                chunk.values,
                chunk.nulls,
                chunk.pages,
            ];
            for number in numbers {
                put(number, &mut out);
            }
            let flags = [
                (chunk.zone.is_some(), HAS_ZONE),
                (chunk.bloom.is_some(), HAS_BLOOM),
                (chunk.page_index.is_some(), HAS_PAGE_INDEX),
            ];
            let flags = flags.into_iter().filter_map(|(set, bit)| set.then_some(bit)).sum();
            out.extend([chunk.encoding.id(), chunk.codec.id(), flags]);
            put_zone(chunk.zone.as_ref(), &mut out);
            for number in [chunk.bloom, chunk.page_index].into_iter().flatten() {
                put(number, &mut out);
            }
        }
    }
    out
}

fn put_zone(zone: Option<&Zone>, out: &mut Vec<u8>) {
    if let Some(zone) = zone {
        put_bytes(&zone.min, out);
        put_bytes(&zone.max, out);
    }
}

fn put_blobs(blobs: &[BlobColumn]) -> Vec<u8> {
    let mut out = Vec::new();
    put(blobs.len() as u64, &mut out);
    for blob in blobs {
        put(blob.column, &mut out);
        put(blob.dictionary, &mut out);
        out.push(blob.codec.id());
        put(blob.runs.len() as u64, &mut out);
        for run in &blob.runs {
            let numbers = [run.offset, run.stored_bytes, run.raw_bytes, run.values];
            for number in numbers {
                put(number, &mut out);
            }
        }
    }
    out
}

fn put_features(features: &Features) -> Vec<u8> {
    let mut out = vec![1];
    put(features.requires, &mut out);
    put(features.offers, &mut out);
    put(features.resources.len() as u64, &mut out);
    for resource in &features.resources {
        put(resource.column, &mut out);
        out.push(resource.role.id());
        put(resource.dictionary, &mut out);
    }
    out
}

impl Inverted {
    fn numbers(&self) -> [u64; 10] {
        [
            self.term_dict_offset,
            self.term_dict_length,
            self.postings_offset,
            self.postings_length,
            self.skips_offset,
            self.skips_length,
            self.num_terms,
            self.num_docs,
            self.live_offset,
            self.live_length,
        ]
    }
}
