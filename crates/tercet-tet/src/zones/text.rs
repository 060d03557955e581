//! JSON of zone maps and secondary indexes, byte for byte as the reference implementation writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;

use serde::{Serialize, Serializer};

use super::DatasetZones;
use super::values::Values;
use crate::grid::Grid;
use crate::metadata::Metadata;
use crate::wire::ids::dtype_tag;

/// The digest of a standalone file.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The zone maps.
#[derive(Serialize)]
struct ZoneText<C> {
    version: u32,
    generation: u64,
    packed_sha256: &'static str,
    chunks: C,
}

#[derive(Serialize)]
struct ChunkZone {
    dataset_id: usize,
    chunk_index: Vec<u64>,
    element_count: u64,
    null_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_le: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_le: Option<String>,
}

/// The secondary indexes.
#[derive(Serialize)]
struct IndexText<I> {
    version: u32,
    generation: u64,
    packed_sha256: &'static str,
    indexes: I,
}

#[derive(Serialize)]
struct ValuePostings<P> {
    kind: &'static str,
    dataset_id: usize,
    dtype: u32,
    postings: P,
}

#[derive(Serialize)]
struct ValuePosting<C> {
    value_le: String,
    chunks: C,
}

#[derive(Serialize)]
struct SortedAxis<S> {
    kind: &'static str,
    dataset_id: usize,
    axis: usize,
    ascending: bool,
    segments: S,
}

#[derive(Serialize)]
struct Segment<C> {
    lo_le: String,
    hi_le: String,
    chunks: C,
}

#[derive(Serialize)]
struct LabelPostings<P> {
    kind: &'static str,
    dataset_id: usize,
    axis: usize,
    postings: P,
}

#[derive(Serialize)]
struct LabelPosting<'a, C> {
    label: &'a str,
    chunks: C,
}

/// An array whose elements are computed while it is serialized.
struct Each<F>(F);

impl<I: IntoIterator<Item: Serialize>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

pub(super) fn write_zones(datasets: &[DatasetZones], mut out: impl Write) -> serde_json::Result<()> {
    let chunks = Each(|| datasets.iter().enumerate().flat_map(|(id, dataset)| chunk_zones(id, dataset)));
    let text = ZoneText { version: 1, generation: 0, packed_sha256: NO_DIGEST, chunks };
    serde_json::to_writer_pretty(&mut out, &text)?;
    out.write_all(b"\n").map_err(serde_json::Error::io)
}

fn chunk_zones(dataset_id: usize, dataset: &DatasetZones) -> impl Iterator<Item = ChunkZone> {
    let size = dataset.grid.element().size();
    (0..).zip(&dataset.zones).map(move |(linear, zone)| {
        let chunk_index = coords(&dataset.grid, linear);
        ChunkZone {
            dataset_id,
            element_count: dataset.grid.chunk_shape_at(&chunk_index).iter().product(),
            chunk_index,
            null_count: zone.nulls,
            min_le: zone.range.map(|(least, _)| hex_le(least, size)),
            max_le: zone.range.map(|(_, greatest)| hex_le(greatest, size)),
        }
    })
}

/// A secondary index.
enum Index<'a> {
    Values(usize, &'a Grid, &'a Values),
    Sorted(usize, &'a Grid, usize, Vec<f64>),
    Labels(usize, &'a Grid, usize, &'a [String]),
}

/// Writes the secondary indexes; nothing without any.
pub(super) fn write_indexes(
    datasets: &[DatasetZones],
    metadata: &Metadata,
    mut out: impl Write,
) -> serde_json::Result<()> {
    let of = |(id, dataset)| indexes_of(id, dataset, metadata);
    let indexes: Vec<Index<'_>> = datasets.iter().enumerate().flat_map(of).collect();
    if indexes.is_empty() {
        return Ok(());
    }
    let text = IndexText { version: 1, generation: 0, packed_sha256: NO_DIGEST, indexes };
    serde_json::to_writer_pretty(&mut out, &text)?;
    out.write_all(b"\n").map_err(serde_json::Error::io)
}

fn indexes_of<'a>(
    id: usize,
    dataset: &'a DatasetZones,
    metadata: &'a Metadata,
) -> impl Iterator<Item = Index<'a>> {
    let grid = &dataset.grid;
    let info = metadata.datasets.get(&dataset.name);
    let labels = move |axis: usize| info?.query_labels(axis, grid.rank(), grid.shape()[axis]);
    let values = dataset.values.iter().map(move |values| Index::Values(id, grid, values));
    let sorted = (0..grid.rank())
        .filter_map(move |axis| Some(Index::Sorted(id, grid, axis, strictly_sorted(labels(axis)?)?)));
    let labels = (0..grid.rank()).filter_map(move |axis| Some(Index::Labels(id, grid, axis, labels(axis)?)));
    values.chain(sorted).chain(labels)
}

/// The labels as numbers, if all are finite and strictly increasing or decreasing.
fn strictly_sorted(labels: &[String]) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = labels
        .iter()
        .map(|label| label.parse().ok().filter(|x: &f64| x.is_finite()))
        .collect::<Option<_>>()?;
    let rising = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let falling = numbers.windows(2).all(|pair| pair[0] > pair[1]);
    (rising || falling).then_some(numbers)
}

impl Serialize for Index<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Values(dataset_id, grid, values) => {
                let posting = |(number, bits)| ValuePosting {
                    value_le: hex_le(bits, grid.element().size()),
                    chunks: Each(move || values.chunks_with(number).map(|linear| coords(grid, linear))),
                };
                ValuePostings {
                    kind: "value_postings",
                    dataset_id: *dataset_id,
                    dtype: dtype_tag(grid.element()),
                    postings: Each(|| values.by_bytes().into_iter().map(posting)),
                }
                .serialize(serializer)
            }
            Self::Sorted(dataset_id, grid, axis, numbers) => {
                let segments = segments(grid, *axis, numbers);
                let segment = |(lo_le, hi_le, step): &(String, String, u64)| {
                    let (lo_le, hi_le, step) = (lo_le.clone(), hi_le.clone(), *step);
                    Segment { lo_le, hi_le, chunks: Each(move || slab(grid, *axis, [step])) }
                };
                SortedAxis {
                    kind: "sorted_axis_range",
                    dataset_id: *dataset_id,
                    axis: *axis,
                    // A single label counts as increasing.
                    ascending: numbers.first() <= numbers.last(),
                    segments: Each(|| segments.iter().map(segment)),
                }
                .serialize(serializer)
            }
            Self::Labels(dataset_id, grid, axis, labels) => {
                let mut steps: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
                for (position, label) in (0..).zip(*labels) {
                    steps.entry(label).or_default().insert(position / grid.chunk_shape()[*axis]);
                }
                LabelPostings {
                    kind: "coord_label_postings",
                    dataset_id: *dataset_id,
                    axis: *axis,
                    postings: Each(|| {
                        steps.iter().map(|(label, steps)| LabelPosting {
                            label,
                            chunks: Each(move || slab(grid, *axis, steps.iter().copied())),
                        })
                    }),
                }
                .serialize(serializer)
            }
        }
    }
}

/// The label range of each chunk along an axis, sorted by the hex of the lower bound.
fn segments(grid: &Grid, axis: usize, numbers: &[f64]) -> Vec<(String, String, u64)> {
    let step = usize::try_from(grid.chunk_shape()[axis]).unwrap_or(usize::MAX);
    let bounds = |(number, part): (u64, &[f64])| {
        let least = part.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (hex_le(least.to_bits(), 8), hex_le(greatest.to_bits(), 8), number)
    };
    let mut segments: Vec<_> = (0..).zip(numbers.chunks(step)).map(bounds).collect();
    segments.sort();
    segments
}

/// The chunks with these coordinates (ascending) on an axis, in grid order.
pub(super) fn slab<I: IntoIterator<Item = u64> + Clone>(
    grid: &Grid,
    axis: usize,
    steps: I,
) -> impl Iterator<Item = Vec<u64>> {
    let (before, rest) = grid.counts().split_at(axis);
    let (here, after) = rest.split_first().unwrap_or((&1, &[]));
    // Products of parts of the counts stay below the number of chunks.
    let (before, after): (u64, u64) = (before.iter().product(), after.iter().product());
    (0..before)
        .flat_map(move |outer| steps.clone().into_iter().map(move |step| outer * here + step))
        .flat_map(move |slab| (0..after).map(move |inner| coords(grid, slab * after + inner)))
}

fn coords(grid: &Grid, linear: u64) -> Vec<u64> {
    grid.coords(linear)[..grid.rank()].to_vec()
}

/// The low bytes of a number in hex, lowest first.
fn hex_le(bits: u64, size: usize) -> String {
    let mut text = String::with_capacity(2 * size);
    for byte in &bits.to_le_bytes()[..size] {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
