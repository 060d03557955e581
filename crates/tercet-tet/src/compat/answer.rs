//! [`Answer`]: the result of a query as the reference implementation prints it.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use tercet_core::{ElementType, Tensor};

use crate::compute::Preview;
use crate::plan::ReadPlan;
use crate::wire::index::MemoryBudget;

/// The answer to a query: borrows its result.
///
/// Serializes to the JSON of the reference implementation, which starts with the constants `"status": "planned"` and
/// `"accepted": true`.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The value in the query.
    pub layout_version: Option<u32>,
    /// The value in the query.
    pub dataset: &'a str,
    /// The number of axes of the selection.
    pub selection_axes: Option<usize>,
    /// The operation; axes are numbers if the dataset is known.
    pub operation: Option<serde_json::Value>,
    /// A message for people.
    pub message: String,
    /// The path or URL of the file.
    pub tet_file: Option<&'a str>,
    /// The catalog entry of the dataset.
    pub catalog: Option<Catalog>,
    /// The chunks that are read.
    pub read_plan: Option<&'a ReadPlan>,
    /// The results.
    pub execution: Option<Execution<'a>>,
    /// How the results are computed, if requested.
    pub explain: Option<Explain<'a>>,
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("status", "planned")?;
        map.serialize_entry("accepted", &true)?;
        map.serialize_entry("layout_version", &self.layout_version)?;
        map.serialize_entry("dataset", &self.dataset)?;
        map.serialize_entry("selection_axes", &self.selection_axes)?;
        map.serialize_entry("operation", &self.operation)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(tet_file) = &self.tet_file {
            map.serialize_entry("tet_file", tet_file)?;
        }
        if let Some(catalog) = &self.catalog {
            map.serialize_entry("catalog", catalog)?;
        }
        if let Some(read_plan) = &self.read_plan {
            map.serialize_entry("read_plan", read_plan)?;
        }
        if let Some(execution) = &self.execution {
            map.serialize_entry("execution", execution)?;
        }
        if let Some(explain) = &self.explain {
            map.serialize_entry("explain", explain)?;
        }
        map.end()
    }
}

/// The catalog entry of the dataset of a query.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// `None` if the file has no dataset of this name.
    pub found: Option<MatchedDataset>,
    /// The memory budget in the index header.
    pub file_execution: MemoryBudget,
    /// The dataset names, if the dataset is not found.
    pub available_datasets: Vec<String>,
}

/// A dataset in the catalog.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the answer")]
pub struct MatchedDataset {
    pub dataset_index: usize,
    pub dtype: ElementType,
    pub dtype_tag: u32,
    pub shape: Vec<u64>,
    pub chunk_shape: Vec<u64>,
    pub chunk_index_rows: u64,
    pub bytes: u64,
}

/// The results of a query.
#[derive(Debug, Default)]
pub struct Execution<'a> {
    /// Stored bytes of the chunks read, every pass counted.
    pub total_bytes_read_from_disk: u64,
    /// The first elements of the selection, or of the result of a transform.
    pub preview: Option<&'a Preview>,
    /// Results and further members, in order: `operation_mean`, `operation_reduced_shape`, …
    pub results: Vec<(&'static str, Value<'a>)>,
    /// The memory strategy.
    pub memory_strategy: &'static str,
    /// Optional members, in order.
    pub details: Vec<(&'static str, Value<'a>)>,
}

/// A member of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Value<'a> {
    Flag(bool),
    Count(u64),
    /// NaN and infinities are written as `null`.
    Number(f64),
    Index(Option<u64>),
    Text(Cow<'a, str>),
    Shape(Vec<u64>),
    Numbers(Cow<'a, [f64]>),
    /// 1 and 0, written as `true` and `false`; NaN, written as `null`, if a window has too few positions.
    #[serde(serialize_with = "serialize_flags")]
    Flags(Cow<'a, [f64]>),
    /// −1, written as `null`, for no index.
    #[serde(serialize_with = "serialize_indices")]
    Indices(Cow<'a, [i64]>),
    Json(serde_json::Value),
}

/// How an answer is computed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explain<'a> {
    /// The steps, in order.
    pub steps: &'a [String],
    /// Chunks answered from statistics.
    pub chunks_by_statistics: u64,
    /// Chunks that are read.
    pub chunks_by_payload: u64,
    /// Chunks pruned by a filter.
    pub chunks_skipped: u64,
    /// The number of threads.
    pub threads: usize,
}

impl<'a> Execution<'a> {
    /// A result by its name: `operation_mean`, `operation_reduced_shape`, …
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        let mut all = self.results.iter().chain(&self.details);
        all.find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("matched", &self.found.is_some())?;
        if let Some(found) = &self.found {
            map.serialize_entry("dataset_index", &found.dataset_index)?;
            map.serialize_entry("dtype", &found.dtype_tag)?;
            map.serialize_entry("shape", &found.shape)?;
            map.serialize_entry("chunk_shape", &found.chunk_shape)?;
            map.serialize_entry("chunk_index_rows", &found.chunk_index_rows)?;
            // The reference implementation has this member for these types only.
            if !matches!(found.dtype, ElementType::U32 | ElementType::U64 | ElementType::F16) {
                map.serialize_entry(&format!("dataset_{}_bytes", found.dtype), &found.bytes)?;
            }
        }
        map.serialize_entry("file_execution", &self.file_execution)?;
        if self.found.is_none() {
            map.serialize_entry("available_datasets", &self.available_datasets)?;
        }
        map.end()
    }
}

/// The order of the preview members.
const PREVIEWS: [ElementType; 10] = [
    ElementType::F32,
    ElementType::F64,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::I16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F16,
];

impl Serialize for Execution<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("total_bytes_read_from_disk", &self.total_bytes_read_from_disk)?;
        for dtype in PREVIEWS {
            let own = self.preview.filter(|preview| preview.dtype == dtype);
            let values = own.and_then(|preview| preview.values.as_ref());
            map.serialize_entry(&format!("{dtype}_preview"), &PreviewValues(values))?;
            let truncated = own.is_some_and(|preview| preview.truncated);
            map.serialize_entry(&format!("{dtype}_preview_truncated"), &truncated)?;
        }
        for (name, value) in &self.results {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("memory_strategy", self.memory_strategy)?;
        for (name, value) in &self.details {
            map.serialize_entry(name, value)?;
        }
        // Constants of the reference implementation, whose readers expect them after the device.
        if self.get("device_used").is_some() {
            for name in ["device_gpu_reduce", "device_gpu_pipeline", "device_gpu_multi"] {
                map.serialize_entry(name, &false)?;
            }
        }
        map.end()
    }
}

fn serialize_flags<S: Serializer>(flags: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(flags.iter().map(|flag| (!flag.is_nan()).then_some(*flag > 0.0)))
}

fn serialize_indices<S: Serializer>(indices: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(indices.iter().map(|&index| u64::try_from(index).ok()))
}

struct PreviewValues<'a>(Option<&'a Tensor>);

impl Serialize for PreviewValues<'_> {
    /// Half floats are written as their bits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(tensor) = self.0 else { return [0u8; 0].serialize(serializer) };
        if let Some(halves) = tensor.as_slice::<tercet_core::tensor::f16>() {
            return serializer.collect_seq(halves.iter().map(|half| half.to_bits()));
        }
        macro_rules! try_types {
            ($($type:ty),*) => {$(
                if let Some(values) = tensor.as_slice::<$type>() {
                    return values.serialize(serializer);
                }
            )*};
        }
        try_types!(f32, f64, i32, i64, u8, u16, i16, u32, u64);
        [0u8; 0].serialize(serializer)
    }
}
