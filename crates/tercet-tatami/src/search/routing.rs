//! Routing: sidecar files with the segments of a cluster for each term, as other programs write them.
//!
//! ```text
//! portable  uvarint documents, shards, documents of each, terms │ per term: bytes, uvarint df, postings, (shard, df, max_freq) …
//! mappable  128-byte header │ u64 documents of each shard │ u32 term offsets │ u64 dfs │ u64 posting offsets
//!           u32 shards │ u32 dfs │ u32 max_freqs │ terms; each section on a multiple of 8
//! ```

use std::collections::BTreeMap;

use tercet_core::{FieldReader, Malformed, Reason};

use super::segment::Segment;
use crate::error::Error;
use crate::region::Region;
use crate::wire::cursor::{Varints as _, put, put_bytes};

const REGION: Region = Region::Routing;
const MAGIC: &[u8; 4] = b"TATR";
const HEADER_LEN: usize = 128;

/// The term statistics of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routing {
    /// Number of documents in all segments.
    pub documents: u64,
    /// Number of documents in each segment.
    pub shards: Vec<u64>,
    /// The routes of each term, by segment.
    pub terms: BTreeMap<Vec<u8>, Vec<Route>>,
}

/// The statistics of a term in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The segment.
    pub shard: u32,
    /// Documents of the segment with the term.
    pub documents: u32,
    /// Maximum frequency in a document.
    pub max_frequency: u32,
}

impl Routing {
    /// Builds the routing of segments from their term dictionaries.
    pub fn build(segments: &[Segment]) -> Result<Self, Error> {
        let shards: Vec<u64> = segments.iter().map(Segment::live_document_count).collect();
        let mut terms: BTreeMap<Vec<u8>, Vec<Route>> = BTreeMap::new();
        for (shard, segment) in segments.iter().enumerate() {
            let mut names = Vec::new();
            segment.for_each_term(|term, _| names.push(term.to_vec()))?;
            for term in names {
                let Some(stats) = segment.term_stats_of(&term)? else { continue };
                let route = Route {
                    shard: u32::try_from(shard).unwrap_or(u32::MAX),
                    documents: u32::try_from(stats.documents).unwrap_or(u32::MAX),
                    max_frequency: stats.max_frequency,
                };
                terms.entry(term).or_default().push(route);
            }
        }
        Ok(Self { documents: shards.iter().sum(), shards, terms })
    }

    /// The portable form.
    pub fn to_portable(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.documents, &mut out);
        put(self.shards.len() as u64, &mut out);
        self.shards.iter().for_each(|documents| put(*documents, &mut out));
        put(self.terms.len() as u64, &mut out);
        for (term, routes) in &self.terms {
            put_bytes(term, &mut out);
            put(found(routes), &mut out);
            put(routes.len() as u64, &mut out);
            for route in routes {
                for number in [route.shard, route.documents, route.max_frequency] {
                    put(number.into(), &mut out);
                }
            }
        }
        out
    }

    /// Parses the portable form.
    pub fn parse_portable(bytes: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(REGION, 0, bytes);
        let documents = fields.uvarint("total_docs")?;
        let count = fields.count("shard_count", 1)?;
        let shards = (0..count).map(|_| fields.uvarint("shard_docs")).collect::<Result<Vec<u64>, _>>()?;
        let count = fields.count("term_count", 3)?;
        let mut out = Self { documents, shards, terms: BTreeMap::new() };
        for _ in 0..count {
            let term = fields.bytes("term")?.to_vec();
            let df = fields.uvarint("global_df")?;
            let count = fields.count("posting_count", 3)?;
            let mut routes = Vec::with_capacity(count);
            for _ in 0..count {
                let mut next = |field| {
                    let value = fields.uvarint(field)?;
                    u32::try_from(value).map_err(|_| {
                        fields.fault(field, 1, Reason::OutOfRange { found: value, allowed: "32 bits" })
                    })
                };
                let route =
                    Route { shard: next("shard")?, documents: next("df")?, max_frequency: next("max_freq")? };
                routes.push(route);
            }
            out.take(term, routes, df, &fields)?;
        }
        fields.finish()?;
        Ok(out)
    }

    fn take(
        &mut self,
        term: Vec<u8>,
        routes: Vec<Route>,
        df: u64,
        fields: &FieldReader<'_, Region>,
    ) -> Result<(), Malformed<Region>> {
        let ordered = self.terms.last_key_value().is_none_or(|(last, _)| *last < term)
            && routes.is_sorted_by(|one, other| one.shard < other.shard)
            && routes.last().is_none_or(|last| (last.shard as usize) < self.shards.len());
        if !ordered {
            let rule = "terms and their shards are in order, and the shards exist";
            return Err(fields.fault("term", 0, Reason::Unexpected { rule }));
        }
        let sum = found(&routes);
        if df != sum {
            let because = "the sum over its shards";
            return Err(fields.fault("global_df", 0, Reason::Mismatch { found: df, expected: sum, because }));
        }
        self.terms.insert(term, routes);
        Ok(())
    }

    /// The mappable form.
    pub fn to_mappable(&self) -> Vec<u8> {
        let routes: Vec<&Route> = self.terms.values().flatten().collect();
        let mut sections: Vec<Vec<u8>> = Vec::new();
        sections.push(self.shards.iter().flat_map(|documents| documents.to_le_bytes()).collect());
        let mut at = 0u32;
        let mut offsets = at.to_le_bytes().to_vec();
        for term in self.terms.keys() {
            at = at.saturating_add(u32::try_from(term.len()).unwrap_or(u32::MAX));
            offsets.extend(at.to_le_bytes());
        }
        sections.push(offsets);
        sections.push(self.terms.values().flat_map(|routes| found(routes).to_le_bytes()).collect());
        let mut at = 0u64;
        let mut offsets = at.to_le_bytes().to_vec();
        for routes in self.terms.values() {
            at += routes.len() as u64;
            offsets.extend(at.to_le_bytes());
        }
        sections.push(offsets);
        sections.push(routes.iter().flat_map(|route| route.shard.to_le_bytes()).collect());
        sections.push(routes.iter().flat_map(|route| route.documents.to_le_bytes()).collect());
        sections.push(routes.iter().flat_map(|route| route.max_frequency.to_le_bytes()).collect());
        sections.push(self.terms.keys().flatten().copied().collect());

        let mut out = vec![0; HEADER_LEN];
        let mut numbers =
            vec![self.documents, self.shards.len() as u64, self.terms.len() as u64, routes.len() as u64];
        for section in sections {
            out.resize(out.len().next_multiple_of(8), 0);
            numbers.push(out.len() as u64);
            out.extend(section);
        }
        numbers.push(out.len() as u64);
        out[..4].copy_from_slice(MAGIC);
        out[4..8].copy_from_slice(&1u32.to_le_bytes());
        for (slot, number) in out[16..HEADER_LEN].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Parses the mappable form.
    pub fn parse_mappable(bytes: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(REGION, 0, bytes);
        fields.magic("magic", MAGIC)?;
        let version = fields.u32_le("version")?;
        if version != 1 {
            return Err(fields.fault(
                "version",
                4,
                Reason::UnknownVersion { found: version.into(), known: "1" },
            ));
        }
        let order = fields.byte("endianness")?;
        if order != 0 {
            let reason = Reason::OutOfRange { found: order.into(), allowed: "0 (little endian)" };
            return Err(fields.fault("endianness", 1, reason));
        }
        fields.skip("reserved", 7)?;
        let documents = fields.u64_le("total_docs")?;
        let shards = fields.u64_le("shards")?;
        let terms = fields.u64_le("terms")?;
        let postings = fields.u64_le("postings")?;
        let section_offsets: Vec<u64> = (0..8).map(|_| fields.u64_le("section")).collect::<Result<_, _>>()?;
        let size = fields.u64_le("file_size")?;
        if size != bytes.len() as u64 {
            let because = "the length of the file";
            let reason = Reason::Mismatch { found: size, expected: bytes.len() as u64, because };
            return Err(fields.fault("file_size", 8, reason));
        }
        let section = |at: usize, count: u64, width: u64| {
            let start = usize::try_from(section_offsets[at]).ok();
            let len = count.checked_mul(width).and_then(|len| usize::try_from(len).ok());
            let end = start.zip(len).and_then(|(start, len)| start.checked_add(len));
            let found = start.zip(end).and_then(|(start, end)| bytes.get(start..end));
            found.ok_or_else(|| {
                let reason = Reason::OutOfBounds {
                    offset: section_offsets[at],
                    len: count.saturating_mul(width),
                    end: bytes.len() as u64,
                    what: "the bytes of the file",
                };
                fields.fault("section", 0, reason)
            })
        };
        let numbers = |at, count: u64, width: u64| -> Result<Vec<u64>, Malformed<Region>> {
            let values = section(at, count, width)?.chunks_exact(usize::try_from(width).unwrap_or(8));
            Ok(values
                .map(|value| value.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
                .collect())
        };
        let term_offsets = numbers(1, terms.saturating_add(1), 4)?;
        let dfs = numbers(2, terms, 8)?;
        let post_offsets = numbers(3, terms.saturating_add(1), 8)?;
        let (at_shard, at_df, at_max) =
            (numbers(4, postings, 4)?, numbers(5, postings, 4)?, numbers(6, postings, 4)?);
        let text = section(7, term_offsets.last().copied().unwrap_or(0), 1)?;
        let mut out = Self { documents, shards: numbers(0, shards, 8)?, terms: BTreeMap::new() };
        for (term, df) in dfs.iter().enumerate() {
            let range = |offsets: &[u64]| {
                let offset = |at: usize| usize::try_from(offsets[at]).unwrap_or(usize::MAX);
                offset(term)..offset(term + 1)
            };
            let term = text.get(range(&term_offsets));
            let list = range(&post_offsets);
            let (Some(term), Some(shards)) = (term, at_shard.get(list.clone())) else {
                let rule = "offsets ascend within their section";
                return Err(fields.fault("offset", 0, Reason::Unexpected { rule }));
            };
            let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            let routes = shards.iter().zip(&at_df[list.clone()]).zip(&at_max[list]);
            let routes = routes.map(|((shard, df), most)| Route {
                shard: short(*shard),
                documents: short(*df),
                max_frequency: short(*most),
            });
            out.take(term.to_vec(), routes.collect(), *df, &fields)?;
        }
        Ok(out)
    }
}

/// The document frequency of a term in all segments.
fn found(routes: &[Route]) -> u64 {
    routes.iter().map(|route| u64::from(route.documents)).sum()
}
