//! The description of one file, its writing, and its entry in the manifest.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tercet_core::{ElementType, Shape, Sink, TensorView};
use tercet_tet::{Compression, DatasetId, HistoryRow, Layout, MemoryBudget, Rewrite, Writer, WriterOptions};

use crate::Failure;
use crate::values::{self, Pattern};

/// The time of all events: files are the same in every run.
pub const EPOCH: u64 = 1_700_000_000;

/// One array of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Array {
    /// The name.
    pub name: String,
    /// The element type.
    pub dtype: ElementType,
    /// The shape.
    pub shape: Vec<u64>,
    /// The chunk shape.
    pub chunk_shape: Vec<u64>,
    /// The zstd level; `None` for raw chunks.
    pub zstd: Option<i32>,
    /// The pattern of the values.
    pub pattern: Pattern,
    /// The seed of the values.
    pub seed: u32,
    /// The attributes.
    pub attrs: BTreeMap<String, String>,
    /// The axis names, if any.
    pub dim_names: Vec<String>,
    /// Labels by axis name or number.
    pub labels: BTreeMap<String, Vec<String>>,
}

impl Array {
    /// A raw array of mixed values.
    pub fn new(name: &str, dtype: ElementType, shape: &[u64], chunk_shape: &[u64]) -> Self {
        Self {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            chunk_shape: chunk_shape.to_vec(),
            zstd: None,
            pattern: Pattern::Mixed,
            seed: 1,
            attrs: BTreeMap::new(),
            dim_names: Vec::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Compressed, at a level that follows from the seed.
    #[must_use]
    pub fn compressed(mut self, level: i32) -> Self {
        self.zstd = Some(level);
        self
    }

    /// With other values.
    #[must_use]
    pub fn valued(mut self, pattern: Pattern, seed: u32) -> Self {
        (self.pattern, self.seed) = (pattern, seed);
        self
    }

    /// With an attribute.
    #[must_use]
    pub fn attr(mut self, key: &str, value: &str) -> Self {
        self.attrs.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With axis names.
    #[must_use]
    pub fn dims(mut self, names: &[&str]) -> Self {
        self.dim_names = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// With labels `prefix0`, `prefix1`, … on an axis.
    #[must_use]
    pub fn labelled(mut self, axis: &str, prefix: &str, count: u64) -> Self {
        self.labels.insert(axis.to_owned(), (0..count).map(|n| format!("{prefix}{n}")).collect());
        self
    }

    fn declare(&self, layout: &mut Layout) -> Result<DatasetId, Failure> {
        let id = layout.dataset(&self.name, self.dtype, &self.shape, &self.chunk_shape)?;
        if let Some(level) = self.zstd {
            layout.compress(id, Compression::Zstd { level })?;
        }
        for (key, value) in &self.attrs {
            layout.attr(id, key, value)?;
        }
        if !self.dim_names.is_empty() {
            layout.dims(id, self.dim_names.iter().map(String::as_str))?;
        }
        for (axis, labels) in &self.labels {
            layout.labels(id, axis, labels.clone())?;
        }
        Ok(id)
    }

    fn bytes(&self) -> Vec<u8> {
        let elements = Shape::from(&self.shape[..]).elements().unwrap_or(0);
        values::array(self.dtype, self.pattern, self.seed, elements)
    }
}

/// Tercet extensions in the footer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Options {
    /// Checksums and statistics.
    Default,
    /// Checksums only.
    NoStatistics,
    /// No integrity block.
    NoChecksums,
    /// Byte for byte what the reference writes.
    Interop,
}

impl Options {
    fn writer(self) -> WriterOptions {
        match self {
            Self::Default => WriterOptions::new(),
            Self::NoStatistics => WriterOptions::new().with_statistics(false),
            Self::NoChecksums => WriterOptions::new().with_checksums(false).with_history(false),
            Self::Interop => WriterOptions::interop(),
        }
    }
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The file name.
    pub file: String,
    /// The extensions.
    pub options: Options,
    /// The arrays of the finished file.
    pub datasets: Vec<Array>,
    /// The history of the finished file: `[op, source]`.
    pub history: Vec<[String; 2]>,
    /// Hundredths of a percent of memory, and bytes.
    pub budget: [u32; 2],
    /// The producer.
    pub tool: Option<String>,
    /// Chunks are written last first, and datasets alternate.
    pub shuffled: bool,
    /// Arrays added by a second program.
    #[serde(skip)]
    pub appended: Vec<Array>,
    /// Names of arrays that are removed again.
    #[serde(skip)]
    pub dropped: Vec<String>,
}

impl Plan {
    /// A file of these arrays.
    pub fn new(file: impl Into<String>, options: Options, datasets: Vec<Array>) -> Self {
        let file = format!("{}.tet", file.into());
        Self {
            file,
            options,
            datasets,
            history: Vec::new(),
            budget: [0, 0],
            tool: None,
            shuffled: false,
            appended: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Writes the file and returns the description of its final state.
    pub fn write(mut self, dir: &Path) -> Result<Self, Failure> {
        let path = dir.join(&self.file);
        self.create(&path)?;
        if !self.appended.is_empty() {
            self.append(&path)?;
        }
        if !self.dropped.is_empty() {
            self.drop_some(&path)?;
        }
        Ok(self)
    }

    fn create(&mut self, path: &Path) -> Result<(), Failure> {
        let mut layout = Layout::new();
        let ids =
            self.datasets.iter().map(|array| array.declare(&mut layout)).collect::<Result<Vec<_>, _>>()?;
        if self.history.is_empty() && !matches!(self.options, Options::Interop | Options::NoChecksums) {
            self.history.push(["create".to_owned(), "interop".to_owned()]);
        }
        for [op, source] in &self.history {
            layout.history(HistoryRow::at(op, source, EPOCH))?;
        }
        if let Some(tool) = &self.tool {
            layout.file_info(tool, "0.0.1", EPOCH);
        }
        let [percent, bytes] = self.budget;
        layout.memory_budget(MemoryBudget { percent_bps: percent.try_into()?, bytes })?;
        let mut writer = Writer::create(path, layout, self.options.writer().with_overwrite(true))?;
        if self.shuffled {
            fill_backwards(&mut writer, &self.datasets, &ids)?;
        } else {
            fill(&mut writer, &self.datasets, &ids)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn append(&mut self, path: &Path) -> Result<(), Failure> {
        let mut rewrite = Rewrite::open(path)?;
        let layout = rewrite.layout();
        let ids = self.appended.iter().map(|array| array.declare(layout)).collect::<Result<Vec<_>, _>>()?;
        self.rewrite(rewrite, "append", &ids)?;
        self.datasets.append(&mut self.appended);
        Ok(())
    }

    fn drop_some(&mut self, path: &Path) -> Result<(), Failure> {
        let mut rewrite = Rewrite::open(path)?;
        for name in &self.dropped {
            rewrite.drop_dataset(name)?;
        }
        self.rewrite(rewrite, "drop", &[])?;
        self.datasets.retain(|array| !self.dropped.contains(&array.name));
        Ok(())
    }

    fn rewrite(&mut self, rewrite: Rewrite, op: &str, ids: &[DatasetId]) -> Result<(), Failure> {
        let row = HistoryRow::at(op, "interop", EPOCH);
        let silent = tercet_core::progress::NoProgress;
        let mut writer = rewrite.start(row, self.options.writer().with_history(true), &silent)?;
        fill(&mut writer, &self.appended[..ids.len()], ids)?;
        writer.finish()?;
        self.history.push([op.to_owned(), "interop".to_owned()]);
        Ok(())
    }
}

fn fill<S: Sink>(writer: &mut Writer<S>, arrays: &[Array], ids: &[DatasetId]) -> Result<(), Failure> {
    for (array, &id) in arrays.iter().zip(ids) {
        let bytes = array.bytes();
        writer.array(id, TensorView::new(array.dtype, &array.shape, &bytes)?)?;
    }
    Ok(())
}

/// Writes chunk by chunk, the last first, alternating between datasets.
fn fill_backwards<S: Sink>(
    writer: &mut Writer<S>,
    arrays: &[Array],
    ids: &[DatasetId],
) -> Result<(), Failure> {
    let counts: Vec<u64> = ids.iter().map(|&id| writer.grid(id).chunk_count()).collect();
    let max = counts.iter().copied().max().unwrap_or(0);
    for linear in (0..max).rev() {
        for ((array, &id), &count) in arrays.iter().zip(ids).zip(&counts) {
            if linear < count {
                let (coords, shape, bytes) = cut(writer, array, id, linear);
                writer.chunk(id, &coords, TensorView::new(array.dtype, &shape, &bytes)?)?;
            }
        }
    }
    Ok(())
}

/// The coordinates, extents and bytes of one chunk, copied element by element.
fn cut<S: Sink>(
    writer: &Writer<S>,
    array: &Array,
    id: DatasetId,
    linear: u64,
) -> (Vec<u64>, Vec<u64>, Vec<u8>) {
    let grid = writer.grid(id);
    let coords = grid.coords(linear)[..grid.rank()].to_vec();
    let shape = grid.chunk_shape_at(&coords);
    let elements = shape.iter().product();
    let mut bytes = Vec::new();
    for mut rest in 0..elements {
        let mut index = 0;
        let mut stride = 1;
        for axis in (0..shape.len()).rev() {
            index += (coords[axis] * array.chunk_shape[axis] + rest % shape[axis]) * stride;
            rest /= shape[axis];
            stride *= array.shape[axis];
        }
        let bits = values::bits(array.dtype, array.pattern, array.seed, index);
        bytes.extend_from_slice(&bits.to_le_bytes()[..array.dtype.size()]);
    }
    (coords, shape, bytes)
}
