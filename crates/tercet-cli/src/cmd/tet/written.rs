//! The summary of written datasets.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tercet::core::{ByteSource, DType, ElementType, Shape, escape};
use tercet::tet::{Codec, CompressionChoice, File, ReadOptions, Rounding};

use crate::args::limits;
use crate::failure::Failure;
use crate::input;
use crate::render::{Table, human_size, significant};
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
    /// The sample that decided the codec.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounding: Option<RoundingJson>,
}

/// How a dataset was stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storage {
    /// The compression, if it was chosen from a sample.
    pub(crate) choice: Option<CompressionChoice>,
    /// The rounding, and the maximum error that was found.
    pub(crate) rounding: Option<(Rounding, f64)>,
}

#[derive(Debug, Serialize)]
struct SampleJson {
    bytes: u64,
    compressed_bytes: u64,
    /// The compressed length as a fraction of the length.
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct RoundingJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_bits: Option<u32>,
    max_abs_error: f64,
}

impl Written {
    /// Reads the summary of the datasets `added`.
    pub(crate) fn read(path: &Path, added: &[&str]) -> Result<Self, Failure> {
        Self::from_source(input::open(path)?, added)
    }

    /// Reads the summary of the datasets `added` from an open file.
    pub(crate) fn from_source(source: Arc<dyn ByteSource>, added: &[&str]) -> Result<Self, Failure> {
        Self::from_file(&open(source)?, added)
    }

    /// Reads the summary of the datasets `added`.
    pub(crate) fn from_file(file: &File, added: &[&str]) -> Result<Self, Failure> {
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
        let datasets = added.iter().map(|name| Added::read(file, name, &sums)).collect::<Result<_, _>>()?;
        let path = file.name().to_owned();
        Ok(Self { path, bytes: file.len(), dataset_count: file.datasets().len(), datasets })
    }

    /// Adds how the datasets were stored, in their order.
    pub(crate) fn with_storage(mut self, storage: &[Storage]) -> Self {
        for (added, storage) in self.datasets.iter_mut().zip(storage) {
            added.sample = storage.choice.map(|choice| SampleJson {
                bytes: choice.sample_bytes,
                compressed_bytes: choice.compressed_bytes,
                ratio: (choice.ratio() * 1e4).round() / 1e4,
            });
            added.rounding = storage.rounding.map(|(rounding, max_abs_error)| match rounding {
                Rounding::MaxError(error) => {
                    RoundingJson { max_error: Some(error), keep_bits: None, max_abs_error }
                }
                Rounding::KeepBits(bits) => {
                    RoundingJson { max_error: None, keep_bits: Some(bits), max_abs_error }
                }
            });
        }
        self
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
        for added in &self.datasets {
            for reason in added.reasons() {
                out.line(format_args!("{}: {reason}", escape::name(&added.name)))?;
            }
        }
        let (path, size) = (escape::name(&self.path), human_size(self.bytes));
        let count = self.dataset_count;
        let plural = if count == 1 { "" } else { "s" };
        out.line(format_args!("{path}: {count} dataset{plural}, {size}"))
    }
}

/// Opens a written file.
pub(crate) fn open(source: Arc<dyn ByteSource>) -> Result<File, Failure> {
    Ok(File::from_source(source, ReadOptions::new().with_limits(limits()))?)
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
            sample: None,
            rounding: None,
        })
    }

    /// Why the dataset is stored in this way, one line each.
    fn reasons(&self) -> impl Iterator<Item = String> {
        let codec = self.sample.as_ref().map(|sample| {
            let size = human_size(sample.bytes);
            let percent = match sample.ratio * 100.0 {
                percent if percent < 1.0 => "less than 1 %".to_owned(),
                percent => format!("{percent:.0} %"),
            };
            match (self.codec, sample.ratio >= 1.0) {
                ("raw", true) => format!("raw chunks, because zstd does not shrink a sample of {size}"),
                ("raw", false) => {
                    format!("raw chunks, because zstd shrinks a sample of {size} to {percent} only")
                }
                (codec, _) => format!("{codec}, because it shrinks a sample of {size} to {percent}"),
            }
        });
        let rounding = self.rounding.as_ref().map(|rounding| {
            let found = significant(rounding.max_abs_error);
            match (rounding.max_error, rounding.keep_bits) {
                (Some(error), _) => format!("rounded, maximum error {error}; max error found: {found}"),
                (None, bits) => {
                    format!("rounded to {} mantissa bits; max error found: {found}", bits.unwrap_or(0))
                }
            }
        });
        codec.into_iter().chain(rounding)
    }
}
