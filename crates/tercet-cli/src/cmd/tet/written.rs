//! The summary of written datasets.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, DType, ElementType, Shape, escape};
use tercet::tet::{Codec, File, ReadOptions};

use crate::args::limits;
use crate::failure::Failure;
use crate::input;
use crate::render::{Table, human_size};
use crate::ui::Ui;

/// A written file and its new datasets.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    path: String,
    /// The size of the file.
    bytes: u64,
    dataset_count: usize,
    /// The added datasets.
    datasets: Vec<Added>,
}

#[derive(Debug, Serialize)]
struct Added {
    name: String,
    dtype: Option<ElementType>,
    shape: Shape,
    chunk_shape: Shape,
    chunks: u64,
    codec: &'static str,
    raw_bytes: u64,
    stored_bytes: u64,
    ratio: f64,
}

impl Written {
    /// Reads the summary of the datasets `added`.
    pub(crate) fn read(path: &Path, added: &[&str]) -> Result<Self, Failure> {
        Self::from_source(input::open(path)?, added)
    }

    /// Reads the summary of the datasets `added` from an open file.
    pub(crate) fn from_source(source: Arc<dyn ByteSource>, added: &[&str]) -> Result<Self, Failure> {
        let file = File::from_source(source, ReadOptions::new().with_limits(limits()))?;
        let mut sums = vec![Sums::default(); file.datasets().len()];
        file.for_each_row(|_, row| {
            let dataset = usize::try_from(row.dataset_id).unwrap_or(usize::MAX);
            if let Some(sums) = sums.get_mut(dataset) {
                sums.chunks += 1;
                sums.raw += row.raw_byte_len;
                sums.stored += row.stored_byte_len;
                sums.compressed |= row.codec != Codec::Raw.id();
            }
        })?;
        let datasets = added.iter().map(|name| Added::read(&file, name, &sums)).collect::<Result<_, _>>()?;
        let path = file.name().to_owned();
        Ok(Self { path, bytes: file.len(), dataset_count: file.datasets().len(), datasets })
    }

    /// Prints the datasets and the file size as a table, or JSON.
    pub(crate) fn show(&self, json: bool, out: &mut Ui) -> Result<(), Failure> {
        if json {
            return out.json(self);
        }
        if out.is_quiet() {
            return Ok(());
        }
        let heads = ["dataset", "type", "shape", "chunk", ">chunks", "codec", ">raw", ">stored", ">ratio"];
        let mut table = Table::new(&heads);
        for added in &self.datasets {
            table.row([
                escape::name(&added.name).into_owned(),
                added.dtype.map_or("?", ElementType::name).to_owned(),
                added.shape.to_string(),
                added.chunk_shape.to_string(),
                added.chunks.to_string(),
                added.codec.to_owned(),
                human_size(added.raw_bytes),
                human_size(added.stored_bytes),
                format!("{:.2}", added.ratio),
            ]);
        }
        out.line(table)?;
        let (path, size) = (escape::name(&self.path), human_size(self.bytes));
        let count = self.dataset_count;
        let plural = if count == 1 { "" } else { "s" };
        out.line(format_args!("{path}: {count} dataset{plural}, {size}"))
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    chunks: u64,
    raw: u64,
    stored: u64,
    compressed: bool,
}

impl Added {
    fn read(file: &File, name: &str, sums: &[Sums]) -> Result<Self, Failure> {
        let dataset = file.dataset(name)?;
        let Sums { chunks, raw, stored, compressed } = sums.get(dataset.id()).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two decimals")]
        let ratio = if stored == 0 { 1.0 } else { raw as f64 / stored as f64 };
        Ok(Self {
            name: name.to_owned(),
            dtype: dataset.dtype().and_then(DType::element),
            shape: dataset.shape().into(),
            chunk_shape: dataset.chunk_shape().into(),
            chunks,
            codec: if compressed { "zstd" } else { "raw" },
            raw_bytes: raw,
            stored_bytes: stored,
            ratio: (ratio * 1e4).round() / 1e4,
        })
    }
}
