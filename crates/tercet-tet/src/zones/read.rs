//! Reads zone maps and value postings for a planner.
//!
//! They only prune chunks, and only where their meaning is unambiguous; entries that do not parse or contradict
//! the catalog are ignored.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use tercet_core::ByteSource as _;

use crate::file::{Dataset, File};
use crate::stats::Stats;

/// Longer spills are not parsed.
const LONGEST: u64 = 64 << 20;

/// The zone map entries and value postings of one dataset.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// By chunk number.
    zones: HashMap<u64, ZoneHint>,
    /// Tile numbers by the hexadecimal bytes of a value, if every value is listed.
    postings: Option<HashMap<String, Vec<u64>>>,
}

/// The zone map of one chunk.
#[derive(Debug)]
pub(crate) struct ZoneHint {
    /// The entry as JSON.
    pub(crate) entry: Value,
    /// Count and range of the elements that are not null; `None` if all are null.
    pub(crate) stats: Option<Stats>,
}

#[derive(Deserialize)]
struct ZoneMaps {
    version: u64,
    chunks: Vec<Value>,
}

#[derive(Deserialize)]
struct Entry {
    dataset_id: u64,
    chunk_index: Vec<u64>,
    element_count: u64,
    null_count: u64,
    min_le: Option<String>,
    max_le: Option<String>,
}

#[derive(Deserialize)]
struct Indexes {
    version: u64,
    indexes: Vec<Index>,
}

#[derive(Deserialize)]
struct Index {
    kind: String,
    dataset_id: Option<u64>,
    #[serde(default)]
    postings: Vec<Posting>,
}

#[derive(Deserialize)]
struct Posting {
    value_le: Option<String>,
    #[serde(default)]
    chunks: Vec<Vec<u64>>,
}

impl Hints {
    /// Reads the entries of a dataset.
    pub(crate) fn read(dataset: &Dataset<'_>) -> Self {
        let mut hints = Self::default();
        let file = dataset.file;
        let Some(text) = spill(file, "zone_maps") else { return hints };
        hints.read_zones(dataset, &text);
        if let Some(text) = spill(file, "secondary_indexes") {
            hints.read_postings(dataset, &text);
        }
        hints
    }

    /// The entry of a chunk.
    pub(crate) fn zone(&self, chunk: u64) -> Option<&ZoneHint> {
        self.zones.get(&chunk)
    }

    /// Whether a chunk may contain one of some values, given as hexadecimal bytes.
    pub(crate) fn may_hold(&self, chunk: u64, values: &[String]) -> bool {
        let Some(postings) = &self.postings else { return true };
        values.iter().any(|value| postings.get(value).is_some_and(|chunks| chunks.contains(&chunk)))
    }

    fn read_zones(&mut self, dataset: &Dataset<'_>, text: &[u8]) {
        let Ok(maps) = serde_json::from_slice::<ZoneMaps>(text) else { return };
        let Ok(grid) = dataset.checked_grid() else { return };
        if maps.version != 1 {
            return;
        }
        for value in maps.chunks {
            let Ok(entry) = Entry::deserialize(&value) else { continue };
            if entry.dataset_id != dataset.id() as u64 {
                continue;
            }
            let Some(chunk) = grid.linear(&entry.chunk_index) else { continue };
            let size = grid.element().size();
            if entry.element_count != grid.chunk_bytes_at(&entry.chunk_index) / size as u64 {
                continue;
            }
            let stats = match (&entry.min_le, &entry.max_le) {
                (None, None) if entry.null_count == entry.element_count => None,
                (Some(min), Some(max)) => {
                    let Some((mut bytes, max)) = unhex(min, size).zip(unhex(max, size)) else { continue };
                    bytes.extend(max);
                    let range = Stats::compute(grid.element(), &bytes).range;
                    Some(Stats { count: entry.element_count, nan_count: entry.null_count, range })
                }
                _ => continue,
            };
            self.zones.insert(chunk, ZoneHint { entry: value, stats });
        }
    }

    fn read_postings(&mut self, dataset: &Dataset<'_>, text: &[u8]) {
        let Ok(indexes) = serde_json::from_slice::<Indexes>(text) else { return };
        let Ok(grid) = dataset.checked_grid() else { return };
        if indexes.version != 1 {
            return;
        }
        let own =
            |index: &Index| index.kind == "value_postings" && index.dataset_id == Some(dataset.id() as u64);
        let Some(index) = indexes.indexes.into_iter().find(own) else { return };
        let mut postings = HashMap::new();
        for posting in index.postings {
            let Some(value) = posting.value_le else { return };
            let chunks: Option<Vec<u64>> = posting.chunks.iter().map(|chunk| grid.linear(chunk)).collect();
            let Some(chunks) = chunks else { return };
            postings.insert(value, chunks);
        }
        self.postings = Some(postings);
    }
}

/// The bytes of a version 2 spill.
fn spill(file: &File, name: &str) -> Option<bytes::Bytes> {
    let footer = file.catalog.footer.as_ref()?;
    if footer.tail.history_version != 2 {
        return None;
    }
    let spans = footer.json.zone_spills(file.catalog.head_end(), footer.json_span);
    let (_, span) = spans.into_iter().find(|(other, _)| *other == name)?;
    let span = span.filter(|span| span.len() <= LONGEST.min(file.options.limits.metadata_bytes))?;
    file.source.read_at(span).ok()
}

/// Parses lowercase hexadecimal bytes.
fn unhex(text: &str, size: usize) -> Option<Vec<u8>> {
    if text.len() != 2 * size {
        return None;
    }
    (0..size).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect()
}
