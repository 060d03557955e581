//! [`Request`]: a computation bound to its dataset. It is planned, run and reported in one place, whether it was made by
//! the typed API or by a query document.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ElementType, Progress, Selection, Tensor};
use tercet_kernel::Outliers;

use super::reduce::{Counts, reduced, reduced_dims};
use super::weights::{AxisWeights, Parts};
use super::{Dim, Reduced, Select, Transformed, parts};
use crate::cf::CfEncoding;
use crate::error::{Error, ErrorKind};
use crate::exec::integers::{self, Integers};
use crate::exec::job::{Counters, Job, held_bytes};
use crate::exec::locate::locate;
use crate::exec::memory::{self, Memory};
use crate::exec::reduce::{self, Numbers, compute, compute_all, is_linear_scan};
use crate::exec::target::Outputs;
use crate::exec::{blank, explain, preview, spill, transform};
use crate::file::Dataset;
use crate::plan::ReadPlan;
use crate::query::document::ExecutionOptions;
use crate::query::operation::Kind;
use crate::query::resolved::{Operation, Resolved, Role, Values};

/// Smaller selections use one thread by default.
const PARALLEL_BYTES: u64 = 1 << 20;

/// A computation on one dataset, ready to be planned or run.
#[derive(Clone, Debug)]
pub struct Request<'f> {
    pub(crate) dataset: Dataset<'f>,
    pub(crate) resolved: Resolved,
    /// Operations of a reduction, for the roles of the resolved one.
    pub(crate) ops: Vec<Kind>,
    /// Remaining dimensions of a reduction, or all dimensions of the selection.
    pub(crate) dims: Vec<Dim>,
    pub(crate) settings: Settings,
    /// Weights of an axis, which is kept in the roles of the operation and reduced afterwards.
    pub(crate) weights: Option<AxisWeights>,
}

/// Execution options of a request.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct Settings {
    pub(crate) parallel: Option<bool>,
    /// Whether statistics of chunks may replace their values.
    pub(crate) statistics: bool,
    pub(crate) execution: ExecutionOptions,
    /// Additional directories in which files may be written.
    pub(crate) allowed: Vec<PathBuf>,
    /// Whether existing files may be replaced.
    pub(crate) overwrite: bool,
    /// Number of elements of the preview.
    pub(crate) preview: u64,
    /// Whether the number of elements of each result is computed as well.
    pub(crate) counts: bool,
    /// How a computation treats missing and packed values.
    pub(crate) values: ValueMode,
    /// Whether a query document is read and computed as the reference does.
    pub(crate) as_reference: bool,
}

/// How a computation treats missing and packed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueMode {
    /// Packed values are decoded. Missing values are skipped, or are NaN.
    Decoded { skip_missing: bool },
    /// Stored values are used as they are.
    Stored,
}

impl ValueMode {
    /// Applies the mode to a request with an operation: reads return stored values.
    pub(crate) fn apply(self, dataset: &Dataset<'_>, resolved: &mut Resolved) -> Result<(), ErrorKind> {
        let (Some(operation), Some(dtype)) = (&resolved.operation, dataset.element()) else { return Ok(()) };
        let is_transform = matches!(operation.kind, Kind::Transform { .. });
        let Self::Decoded { skip_missing } = self else {
            if is_transform && !dtype.is_float() {
                let decode = Some(Arc::new(CfEncoding::default().decode(dtype)));
                resolved.values = Values { skip_missing: false, decode, ..Values::default() };
            }
            return Ok(());
        };
        let selects_missing = resolved.filter.is_some_and(|filter| filter.is_null);
        let encoding = dataset.read_cf_encoding()?;
        let (fill, mut values) = encoding.values(dtype, skip_missing, selects_missing);
        // Results of a transform are floats: the values are decoded where they are not floats of the same type.
        if is_transform && (!dtype.is_float() || values.valid.iter().any(Option::is_some)) {
            let decode = Some(Arc::new(encoding.decode(dtype)));
            values = Values { skip_missing, decode, ..Values::default() };
        }
        // `null_count` and filters of the query keep the fill value they had.
        resolved.fill = if values.decode.is_some() { resolved.fill } else { fill };
        resolved.values = values;
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parallel: None,
            statistics: true,
            execution: ExecutionOptions::default(),
            allowed: Vec::new(),
            overwrite: false,
            preview: 0,
            counts: false,
            values: ValueMode::Decoded { skip_missing: true },
            as_reference: false,
        }
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The result.
    pub computed: Computed,
    /// How it was computed.
    pub execution: Execution,
    /// The first elements of the selection or of the result of a transform, if a query document was run.
    pub preview: Option<Preview>,
}

/// What a request computes.
#[derive(Debug)]
pub enum Computed {
    /// The values of a selection.
    Read(Tensor),
    /// Only the preview.
    Preview,
    /// A selection that was written to a file.
    Written(OutputFile),
    /// One result per operation.
    Reduced(Vec<Reduced>),
    /// An array of the same shape.
    Transformed(Box<Transformed>),
}

/// A file that a result was written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The path; `None` for a temporary file, which is gone.
    pub path: Option<String>,
    /// The bytes of the elements.
    pub bytes: u64,
}

/// The first elements of a selection or of the result of a transform.
#[derive(Debug)]
pub struct Preview {
    /// The elements, in one dimension.
    pub values: Option<Tensor>,
    /// The element type of the dataset.
    pub dtype: tercet_core::ElementType,
    /// Whether there are more elements.
    pub truncated: bool,
}

/// How a result was computed. `Display` prints one step per line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Execution {
    /// The steps, in order.
    pub steps: Vec<String>,
    /// Stored bytes of the chunks read, every pass counted.
    pub bytes_read: u64,
    /// Chunks that were decompressed, every pass counted.
    pub chunks_decoded: u64,
    /// The decoded bytes of these chunks.
    pub bytes_decoded: u64,
    /// Chunks whose values were read by at least one operation.
    pub chunks_read: u64,
    /// Chunks answered from statistics alone.
    pub chunks_by_statistics: u64,
    /// Chunks pruned by a filter.
    pub chunks_skipped: u64,
    /// The number of threads.
    pub threads: usize,
    /// Whether several threads may be used.
    pub is_parallel: bool,
    /// The memory budget, in bytes.
    pub memory_budget: u64,
    /// The available memory, if known.
    pub available_memory: Option<u64>,
    /// Whether the selection is larger than most of the available memory.
    pub is_out_of_core: bool,
    /// Whether the dataset was read as one contiguous span.
    pub is_linear_scan: bool,
}

impl Execution {
    /// `out_of_core` if the selection is larger than most of the available memory, else `in_core`.
    pub fn io_regime(&self) -> &'static str {
        if self.is_out_of_core { "out_of_core" } else { "in_core" }
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lines(&self.steps, f)
    }
}

/// How a request will be computed. `Display` prints one step per line.
#[derive(Clone, Debug)]
pub struct Plan {
    reads: ReadPlan,
    steps: Vec<String>,
}

impl Plan {
    /// The chunks to read.
    pub fn reads(&self) -> &ReadPlan {
        &self.reads
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lines(&self.steps, f)
    }
}

fn write_lines(lines: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    lines.iter().enumerate().try_for_each(|(number, line)| {
        let end = if number + 1 < lines.len() { "\n" } else { "" };
        write!(f, "{line}{end}")
    })
}

impl<'f> Request<'f> {
    /// The dataset.
    pub fn dataset(&self) -> Dataset<'f> {
        self.dataset
    }

    /// The dimensions of the result.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// The operation, with the resolved fill value of `null_count`.
    pub fn operation_kind(&self) -> Option<Kind> {
        self.resolved.operation.as_ref().map(|operation| operation.kind)
    }

    /// The axes that are reduced, or whose statistics a transform uses; empty means all.
    pub fn operation_axes(&self) -> &[usize] {
        self.resolved.operation.as_ref().map_or(&[], |operation| &operation.axes)
    }

    /// The axis that windows move along.
    pub fn window_axis(&self) -> Option<usize> {
        let is_window = |role: &Role| match role {
            Role::Rolling(_) => true,
            Role::Grouped(groups) => groups.size > 0,
            Role::Reduced | Role::Kept => false,
        };
        self.resolved.operation.as_ref()?.roles.iter().position(is_window)
    }

    /// The selection.
    pub fn selection(&self) -> &Selection {
        &self.resolved.selection
    }

    /// The dimensions of the selection, in the order of the result.
    pub fn selection_dims(&self) -> Result<Vec<Dim>, Error> {
        let axes = self.resolved.selection.axes();
        let kept = vec![Role::Kept; axes.len()];
        reduced_dims(&self.dataset, axes, &self.resolved.reversed, &kept, &[])
    }

    /// Whether the result of a reduction is a scalar.
    pub fn is_scalar(&self) -> bool {
        self.resolved.operation.as_ref().is_some_and(Operation::is_scalar)
    }

    /// The number of groups, if positions are grouped.
    pub fn group_count(&self) -> Option<u64> {
        self.resolved.group_count
    }

    /// The number of windows, if there are windows.
    pub fn window_count(&self) -> Option<u64> {
        self.resolved.window_count
    }

    /// The selection, if the request only reads it and no values are filtered: its values can be read block by block.
    pub fn to_select(&self) -> Option<Select<'f>> {
        let resolved = &self.resolved;
        if !self.is_read() || resolved.filter.is_some() || resolved.positions.is_some() {
            return None;
        }
        let axes = resolved.selection.axes().to_vec();
        let (reversed, dropped) = (resolved.reversed.clone(), &resolved.dropped);
        Some(self.dataset.select().with_positions(axes, reversed, dropped, self.settings.clone()))
    }

    /// Whether the request is a selection that is neither computed nor written.
    pub(crate) fn is_read(&self) -> bool {
        self.resolved.operation.is_none() && self.resolved.spill.is_none()
    }

    /// Plans the request. No values are read.
    pub fn plan(&self) -> Result<Plan, Error> {
        let plan = || {
            let reads = self.locate()?;
            let steps = self.with_job(&reads, &tercet_core::progress::NoProgress, |job, _| {
                Ok(explain::steps(job, None))
            })?;
            Ok(Plan { reads, steps })
        };
        plan().map_err(|kind| self.dataset.file.error(kind))
    }

    /// Runs the request.
    pub fn run(&self, progress: &dyn Progress) -> Result<Outcome, Error> {
        let run = || self.run_with(&self.locate()?, progress);
        run().map_err(|kind| self.dataset.file.error(kind))
    }

    /// Lists the chunks to read.
    pub(crate) fn locate(&self) -> Result<ReadPlan, ErrorKind> {
        locate(&self.dataset, &self.resolved, self.settings.statistics)
    }

    /// Runs the request with its plan.
    pub(crate) fn run_with(&self, plan: &ReadPlan, progress: &dyn Progress) -> Result<Outcome, ErrorKind> {
        self.with_job(plan, progress, |job, memory| {
            let resolved = &self.resolved;
            let (computed, preview) = match (&resolved.operation, &resolved.spill) {
                (None, None) => (Computed::Read(self.read(job)?), None),
                (None, Some(path)) => {
                    let (file, values) = spill::spill(job, path, &self.outputs()?)?;
                    (Computed::Written(file), Some(self.preview_of(job, values)))
                }
                (Some(operation), _) => {
                    if let Kind::Transform { method } = operation.kind {
                        let mut made = transform::transform(job, operation, method, &self.outputs()?)?;
                        made.tensor = made.tensor.map(|tensor| self.without_dropped(tensor)).transpose()?;
                        let execution = Self::execution(job, memory);
                        let dims = self.dims.clone();
                        let (made, values) = Transformed::new(method, made, dims, execution.clone());
                        let computed = Computed::Transformed(Box::new(made));
                        let preview = Some(self.preview_of(job, values));
                        return Ok(Outcome { computed, execution, preview });
                    }
                    let (results, execution) = self.reduced(job, operation, memory)?;
                    let computed = Computed::Reduced(results);
                    let preview = Some(preview::preview(job, self.settings.preview)?);
                    return Ok(Outcome { computed, execution, preview });
                }
            };
            Ok(Outcome { computed, preview, execution: Self::execution(job, memory) })
        })
    }

    /// The first elements of the selection, without its operation.
    pub(crate) fn preview(&self, plan: &ReadPlan, progress: &dyn Progress) -> Result<Outcome, ErrorKind> {
        self.with_job(plan, progress, |job, memory| {
            let preview = Some(preview::preview(job, self.settings.preview)?);
            Ok(Outcome { computed: Computed::Preview, preview, execution: Self::execution(job, memory) })
        })
    }

    /// Reads the selection. Excluded values become NaN, or the fill value of integers.
    fn read(&self, job: &Job<'_>) -> Result<Tensor, ErrorKind> {
        let selection = &self.resolved.selection;
        let mut tensor = self.dataset.read_counted(selection, (Some(&job.counters), job.progress))?;
        blank(job, selection, tensor.bytes_mut())?;
        super::reverse(&mut tensor, &self.resolved.reversed);
        self.without_dropped(tensor)
    }

    /// An array of the selection without the axes that are not dimensions.
    fn without_dropped(&self, tensor: Tensor) -> Result<Tensor, ErrorKind> {
        super::drop_axes(tensor, |axis| self.resolved.dropped.contains(&axis))
    }

    fn preview_of(&self, job: &Job<'_>, values: Option<Tensor>) -> Preview {
        let truncated = job.plan.element_count() > self.settings.preview;
        let dtype = values.as_ref().and_then(|values| values.dtype().element());
        Preview { values, dtype: dtype.unwrap_or(job.plan.grid.element()), truncated }
    }

    fn reduced(
        &self,
        job: &Job<'_>,
        operation: &Operation,
        memory: &Memory,
    ) -> Result<(Vec<Reduced>, Execution), ErrorKind> {
        let mut kinds: Vec<Kind> = self.ops.clone();
        kinds.extend(self.settings.counts.then_some(Kind::Count));
        // Stored values are missing if they are NaN, which the same visit of the chunks counts.
        let counts_nan =
            self.propagates_missing() && self.weights.is_none() && self.resolved.values.decode.is_none();
        kinds.extend(counts_nan.then_some(Kind::NanCount));
        let mut computed = match (&self.weights, &kinds[..]) {
            (Some(weights), _) => self.weighted(job, operation, weights, &kinds)?,
            (None, &[kind]) => vec![compute(job, &Operation { kind, ..operation.clone() })?],
            (None, _) => compute_all(job, &kinds, operation)?,
        };
        let nan_counts = if counts_nan { computed.pop().map(|counts| counts.numbers) } else { None };
        kinds.truncate(computed.len());
        if self.propagates_missing() {
            let missing = match nan_counts {
                Some(Numbers::Values(counts)) => counts,
                _ => self.missing_counts(job, operation)?,
            };
            propagate_missing(&missing, &kinds, &mut computed);
        }
        let exact = kinds.iter().zip(&computed).map(|(&kind, computed)| {
            self.exact(job, &Operation { kind, ..operation.clone() }, &computed.numbers)
        });
        let exact = exact.collect::<Result<Vec<_>, ErrorKind>>()?;
        let counts = if self.settings.counts { computed.pop() } else { None };
        let counts = counts.as_ref().map(Counts::new);
        let execution = Self::execution(job, memory);
        // Remaining axes in descending order.
        let reversed: Vec<bool> = self
            .output_axes()
            .into_iter()
            .map(|axis| self.resolved.reversed[axis] && matches!(operation.roles[axis], Role::Kept))
            .collect();
        let results = self.ops.iter().zip(computed).zip(exact).map(|((&op, computed), exact)| {
            let mut result = reduced(op, computed, self.dims.clone(), counts.as_ref(), execution.clone())?;
            result.exact = exact.map(|whole| whole.tensor(&result.tensor)).transpose()?;
            super::reverse(&mut result.tensor, &reversed);
            if let Some(exact) = &mut result.exact {
                super::reverse(exact, &reversed);
            }
            if let Some(counts) = &mut result.counts {
                super::reverse(counts, &reversed);
            }
            Ok(result)
        });
        Ok((results.collect::<Result<_, ErrorKind>>()?, execution))
    }

    /// Exact results of an operation on integers, from its results as f64.
    fn exact(
        &self,
        job: &Job<'_>,
        operation: &Operation,
        numbers: &Numbers,
    ) -> Result<Option<Integers>, ErrorKind> {
        if self.settings.as_reference {
            return Ok(None);
        }
        if let Some(weights) = &self.weights {
            // Minima and maxima have no weights, and sums of weighted integers are not integers.
            if !matches!(operation.kind, Kind::Min | Kind::Max) {
                return Ok(None);
            }
            let mut roles = operation.roles.clone();
            roles[weights.axis] = Role::Reduced;
            return integers::exact(job, &Operation { roles, ..operation.clone() }, numbers);
        }
        let skip_missing = ValueMode::Decoded { skip_missing: true };
        let Numbers::Values(values) = numbers else { return Ok(None) };
        if self.settings.values != (ValueMode::Decoded { skip_missing: false })
            || self.resolved.values.decode.is_none()
            || values.iter().any(|value| value.is_nan())
        {
            return integers::exact(job, operation, numbers);
        }
        // Missing values would be NaN in f64, but there are none: the stored integers have the same results.
        let mut stored = self.clone();
        skip_missing.apply(&self.dataset, &mut stored.resolved)?;
        stored.with_job(job.plan, job.progress, |job, _| {
            let numbers = compute(job, operation)?.numbers;
            integers::exact(job, operation, &numbers)
        })
    }

    /// Whether minima and maxima of missing values are removed, because these are not skipped. Other operations return NaN
    /// by themselves, because missing values are NaN.
    fn propagates_missing(&self) -> bool {
        let is_skipping = match self.settings.values {
            ValueMode::Decoded { skip_missing } => skip_missing,
            ValueMode::Stored => self.settings.as_reference,
        };
        !is_skipping && self.may_miss() && self.ops.iter().any(ignores_nan)
    }

    /// Whether values may be missing: integers as they are stored are not.
    fn may_miss(&self) -> bool {
        self.resolved.values.decode.is_some() || self.dataset.element().is_none_or(ElementType::is_float)
    }

    /// The number of missing values of each result; of stored values, the number of NaN.
    fn missing_counts(&self, job: &Job<'_>, operation: &Operation) -> Result<Vec<f64>, ErrorKind> {
        let mut operation = operation.clone();
        if let Some(weights) = &self.weights {
            operation.roles[weights.axis] = Role::Reduced;
        }
        let counts = |job: &Job<'_>, kind: Kind| -> Result<Vec<f64>, ErrorKind> {
            match compute(job, &Operation { kind, ..operation.clone() })?.numbers {
                Numbers::Values(counts) => Ok(counts),
                _ => Ok(Vec::new()),
            }
        };
        if self.settings.values == ValueMode::Stored {
            return counts(job, Kind::NanCount);
        }
        let mut all = counts(job, Kind::Count)?;
        let mut skipping = self.clone();
        ValueMode::Decoded { skip_missing: true }.apply(&self.dataset, &mut skipping.resolved)?;
        let present = skipping.with_job(job.plan, job.progress, |job, _| counts(job, Kind::Count))?;
        all.iter_mut().zip(&present).for_each(|(all, present)| *all -= present);
        Ok(all)
    }

    /// The axes of the dataset that the dimensions of the result belong to.
    pub fn output_axes(&self) -> Vec<usize> {
        let rank = self.resolved.selection.axes().len();
        let weighted = self.weights.as_ref().map(|weights| weights.axis);
        let is_kept = |axis: &usize| match &self.resolved.operation {
            Some(operation) if !matches!(operation.kind, Kind::Transform { .. }) => {
                !matches!(operation.roles[*axis], Role::Reduced) && weighted != Some(*axis)
            }
            _ => !self.resolved.dropped.contains(axis),
        };
        (0..rank).filter(is_kept).collect()
    }

    /// Computes weighted operations. There are as many partial results as positions of the weighted axis: if those of all
    /// results are more than the budget allows, one part of the results is computed after the other.
    fn weighted(
        &self,
        job: &Job<'_>,
        operation: &Operation,
        weights: &AxisWeights,
        kinds: &[Kind],
    ) -> Result<Vec<reduce::Computed>, ErrorKind> {
        let refuse = |detail: String| ErrorKind::Compute {
            dataset: self.dataset.name().into(),
            detail: detail.into(),
        };
        let partial = AxisWeights::partial_kinds(kinds).map_err(refuse)?;
        // The driver computes up to three numbers for each partial result.
        let most = (job.budget / 4).max(1 << 20) / (3 * 8 * partial.len() as u64).max(1);
        let parts = parts::parts(job, &operation.roles, weights.axis, most);
        if parts.len() < 2 {
            return Self::weighted_part(job, operation, weights, (kinds, &partial));
        }
        let shape = job.plan.selection.shape();
        let (axes, shape): (Vec<usize>, Vec<u64>) = self
            .output_axes()
            .into_iter()
            .filter_map(|axis| Some((axis, operation.roles[axis].output_len(shape[axis])?)))
            .unzip();
        let bytes = shape.iter().fold(8, |bytes: u64, &extent| bytes.saturating_mul(extent));
        let bytes = check_limit("the result", bytes, self.dataset.file.options.limits.array_bytes)?;
        let zeros = kinds.iter().map(|_| parts::zeros(bytes / 8));
        let mut whole = zeros.collect::<Result<Vec<Vec<f64>>, OutOfMemory>>()?;
        let (mut elements, mut skipped) = (0, 0);
        for part in parts {
            let mut resolved = self.resolved.clone();
            resolved.selection = part.selection(&resolved.selection)?;
            let plan = locate(&self.dataset, &resolved, self.settings.statistics)?;
            let job_of_part = Job { plan: &plan, resolved: &resolved, counters: Counters::default(), ..*job };
            let computed = Self::weighted_part(&job_of_part, operation, weights, (kinds, &partial))?;
            job.counters.add(&job_of_part.counters);
            if let Some(first) = computed.first() {
                (elements, skipped) = (elements + first.elements, skipped + first.skipped);
            }
            let ranges = part.output_ranges(&operation.roles, &axes, &shape);
            for (whole, computed) in whole.iter_mut().zip(&computed) {
                if let Numbers::Values(values) = &computed.numbers {
                    parts::scatter(&shape, &ranges, values, whole);
                }
            }
        }
        let computed = |values| reduce::Computed { numbers: Numbers::Values(values), elements, skipped };
        Ok(whole.into_iter().map(computed).collect())
    }

    /// Computes weighted operations from partial ones, for each position of the weighted axis.
    fn weighted_part(
        job: &Job<'_>,
        operation: &Operation,
        weights: &AxisWeights,
        (kinds, partial): (&[Kind], &[Kind]),
    ) -> Result<Vec<reduce::Computed>, ErrorKind> {
        let computed = compute_all(job, partial, operation)?;
        let (elements, skipped) = computed.first().map_or((0, 0), |first| (first.elements, first.skipped));
        let values: Vec<Vec<f64>> = computed
            .into_iter()
            .map(|computed| match computed.numbers {
                Numbers::Values(values) => values,
                _ => Vec::new(),
            })
            .collect();
        let selected = job.plan.selection.axes();
        let after = operation.roles.iter().zip(selected).skip(weights.axis + 1);
        let below: u64 = after.filter_map(|(role, slice)| role.output_len(slice.count())).product();
        let below = usize::try_from(below).unwrap_or(usize::MAX);
        let parts = Parts { kinds: partial, values: &values, below };
        let combined = kinds.iter().map(|&kind| {
            let numbers = Numbers::Values(weights.combine(kind, &parts));
            reduce::Computed { numbers, elements, skipped }
        });
        Ok(combined.collect())
    }

    fn outputs(&self) -> Result<Outputs, ErrorKind> {
        let settings = &self.settings;
        let outputs = Outputs::new(self.dataset.file.path(), &settings.allowed, settings.preview)?;
        Ok(outputs.with_overwrite(settings.overwrite))
    }

    fn execution(job: &Job<'_>, memory: &Memory) -> Execution {
        let by_statistics = job.counters.by_statistics_only();
        Execution {
            steps: explain::steps(job, Some(by_statistics)),
            bytes_read: job.counters.bytes_read.load(Ordering::Relaxed),
            chunks_decoded: job.counters.chunks_decoded.load(Ordering::Relaxed),
            bytes_decoded: job.counters.bytes_decoded.load(Ordering::Relaxed),
            chunks_read: job.plan.chunks.len() as u64 - by_statistics,
            chunks_by_statistics: by_statistics,
            chunks_skipped: job.plan.zone_filter_skipped + job.plan.index_filter_skipped,
            threads: job.threads(),
            is_parallel: job.parallel,
            memory_budget: memory.budget,
            available_memory: memory.available,
            is_out_of_core: job.out_of_core,
            is_linear_scan: is_linear_scan(job),
        }
    }

    /// Calls a function with a job for the request.
    fn with_job<R: Send>(
        &self,
        plan: &ReadPlan,
        progress: &dyn Progress,
        work: impl FnOnce(&Job<'_>, &Memory) -> Result<R, ErrorKind> + Send,
    ) -> Result<R, ErrorKind> {
        let settings = &self.settings;
        let file = self.dataset.file;
        let memory = Memory::new(&settings.execution, file.memory_budget(), memory::available());
        let bytes = plan.selection_bytes();
        let parallel = settings.parallel.or(settings.execution.fold_parallel);
        let held = held_bytes(&self.dataset, plan);
        let job = Job {
            dataset: self.dataset,
            plan,
            resolved: &self.resolved,
            // One chunk must fit, and the states of about as many slots.
            budget: memory.budget.max(held.saturating_mul(2)),
            requested_budget: memory.budget,
            held,
            parallel: parallel.unwrap_or(plan.chunks.len() > 1 && bytes >= PARALLEL_BYTES),
            out_of_core: memory.is_out_of_core(bytes),
            statistics: settings.statistics,
            as_reference: settings.as_reference,
            outliers: if settings.as_reference { Outliers::InEndBins } else { Outliers::Separate },
            progress,
            counters: Counters::new(plan),
        };
        file.on_threads(|| work(&job, &memory))
    }
}

/// Whether the result of an operation does not show that a value is NaN.
fn ignores_nan(kind: &Kind) -> bool {
    matches!(kind, Kind::Min | Kind::Max | Kind::ArgMin | Kind::ArgMax)
}

/// Removes the minima and maxima of results with missing values.
fn propagate_missing(missing: &[f64], kinds: &[Kind], computed: &mut [reduce::Computed]) {
    for (_, computed) in kinds.iter().zip(computed).filter(|(kind, _)| ignores_nan(kind)) {
        for (element, _) in missing.iter().enumerate().filter(|(_, missing)| **missing > 0.0) {
            match &mut computed.numbers {
                Numbers::Values(values) => values[element] = f64::NAN,
                Numbers::Indices(indices) => indices[element] = -1,
                _ => {}
            }
        }
    }
}
