//! What a query answers.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use tercet_core::{ElementType, Tensor};

use crate::plan::ReadPlan;
use crate::wire::index::MemoryBudget;

/// The answer to a query, as it is printed.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Always `planned`.
    pub status: &'static str,
    /// Always true: what is not accepted is an error.
    pub accepted: bool,
    /// As in the query.
    pub layout_version: Option<u32>,
    /// As in the query.
    pub dataset: String,
    /// The number of slices of the query.
    pub selection_axes: Option<usize>,
    /// The operation with its axes as numbers, where they are known.
    pub operation: Option<serde_json::Value>,
    /// What happened, in words. Not for programs.
    pub message: String,
    /// The file, as it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tet_file: Option<String>,
    /// What the file says of the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Catalog>,
    /// The chunks that are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_plan: Option<ReadPlan>,
    /// The results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// How the results are computed, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
}

/// Where the dataset is.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// `None` if the file has no dataset of this name.
    pub found: Option<Found>,
    /// The author's advice on memory.
    pub file_execution: MemoryBudget,
    /// The names there are, if the dataset was not found.
    pub available_datasets: Vec<String>,
}

/// A dataset that was found.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the answer")]
pub struct Found {
    pub dataset_index: usize,
    pub dtype: ElementType,
    pub dtype_tag: u32,
    pub shape: Vec<u64>,
    pub chunk_shape: Vec<u64>,
    pub chunk_index_rows: u64,
    pub bytes: u64,
}

/// What was computed.
#[derive(Debug, Default)]
pub struct Execution {
    /// Stored bytes of chunks that were read, every pass counted.
    pub total_bytes_read_from_disk: u64,
    /// The first cells of the selection, or of the result of a transform.
    pub preview: Option<Preview>,
    /// Results and further members, in order: `operation_mean`, `operation_reduced_shape`, …
    pub results: Vec<(&'static str, Value)>,
    /// How memory was used.
    pub memory_strategy: &'static str,
    /// Members that not every answer has, in order.
    pub details: Vec<(&'static str, Value)>,
    /// The result of a transform that was kept in memory.
    pub tensor: Option<Tensor>,
}

/// A member of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Value {
    Flag(bool),
    Count(u64),
    /// NaN and infinities are written as `null`.
    Number(f64),
    Index(Option<u64>),
    Text(String),
    Shape(Vec<u64>),
    Numbers(Vec<f64>),
    /// `None` where a window has too few positions.
    Flags(Vec<Option<bool>>),
    Indices(Vec<Option<u64>>),
    Json(serde_json::Value),
}

/// The first cells.
#[derive(Debug)]
pub struct Preview {
    /// The cells, in one dimension.
    pub cells: Option<Tensor>,
    /// The type of the dataset.
    pub dtype: ElementType,
    /// Whether there are more.
    pub truncated: bool,
}

/// How an answer is computed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explain {
    /// What is done, one step after the other.
    pub steps: Vec<String>,
    /// Chunks whose statistics stand for their values.
    pub chunks_by_statistics: u64,
    /// Chunks whose payload is read.
    pub chunks_by_payload: u64,
    /// Chunks that a filter leaves out.
    pub chunks_skipped: u64,
    /// Threads that may work.
    pub threads: usize,
}

impl Execution {
    /// A result by its name: `operation_mean`, `operation_reduced_shape`, …
    pub fn get(&self, name: &str) -> Option<&Value> {
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
            // Programs know the member for these types only.
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

/// The order in which the previews of the element types are written.
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

impl Serialize for Execution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("total_bytes_read_from_disk", &self.total_bytes_read_from_disk)?;
        for dtype in PREVIEWS {
            let own = self.preview.as_ref().filter(|preview| preview.dtype == dtype);
            let cells = own.and_then(|preview| preview.cells.as_ref());
            map.serialize_entry(&format!("{dtype}_preview"), &PreviewCells(cells))?;
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
        map.end()
    }
}

struct PreviewCells<'a>(Option<&'a Tensor>);

impl Serialize for PreviewCells<'_> {
    /// Half floats are written as their bits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(tensor) = self.0 else { return [0u8; 0].serialize(serializer) };
        if let Some(halves) = tensor.as_slice::<tercet_core::tensor::f16>() {
            return serializer.collect_seq(halves.iter().map(|half| half.to_bits()));
        }
        macro_rules! try_types {
            ($($type:ty),*) => {$(
                if let Some(cells) = tensor.as_slice::<$type>() {
                    return cells.serialize(serializer);
                }
            )*};
        }
        try_types!(f32, f64, i32, i64, u8, u16, i16, u32, u64);
        [0u8; 0].serialize(serializer)
    }
}
