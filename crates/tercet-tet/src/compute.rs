//! Typed computations on a dataset.
//!
//! ```no_run
//! use tercet_tet::{File, Group, Op};
//!
//! let file = File::open("era5.tet")?;
//! let t2m = file.dataset("t2m")?;
//! let part = t2m.part().sel("level", 850)?.sel("lat", 60.0..=30.0)?.isel("time", ..24)?;
//! let map = part.mean(["time"]).run()?.tensor;
//! let stats = part.reduce([Op::Mean, Op::Max]).over(["lat", "lon"]).run_all()?;
//! let by_month = part.mean(["time"]).group_by(Group::labels("time", |label| label[..7].to_owned())).run()?;
//! # Ok::<(), tercet_tet::Error>(())
//! ```

mod labels;
mod reduce;

pub use labels::{Axis, LabelRange, PositionRange};
pub use reduce::{Dim, Group, Reduce, Reduced, Window};

use std::sync::atomic::AtomicU64;

use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{Selection, Tensor};

use crate::error::{Error, ErrorKind};
use crate::exec::job::Job;
use crate::exec::locate::locate;
use crate::exec::memory::{self, Memory};
use crate::file::Dataset;
use crate::query::document::ExecutionOptions;
use crate::query::operation::{Kind, Scalar};
use crate::query::resolved::{Filter, Positions, Resolved};

/// A part of a dataset: a selection with filters, to read or to compute on.
#[derive(Clone, Debug)]
pub struct Part<'f> {
    dataset: Dataset<'f>,
    axes: Vec<AxisSlice>,
    filter: Option<Filter>,
    /// Axis of a label filter, and a mask of its included positions.
    included: Option<(usize, Vec<bool>)>,
    settings: Settings,
}

/// Execution options of a part.
#[derive(Clone, Copy, Debug)]
struct Settings {
    parallel: Option<bool>,
    statistics: bool,
    budget: Option<u64>,
}

/// A comparison of values with a number, or a null check. NaN and the fill value of the dataset fail every comparison
/// except `Ne` and `IsNull`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Comparison {
    Eq(Scalar),
    Ne(Scalar),
    Lt(Scalar),
    Le(Scalar),
    Gt(Scalar),
    Ge(Scalar),
    IsNull,
    IsNotNull,
}

impl<'f> Dataset<'f> {
    /// Selects the entire dataset, to be narrowed and computed on.
    pub fn part(&self) -> Part<'f> {
        let axes = self.shape().iter().map(|&stop| AxisSlice { start: 0, stop, step: 1 }).collect();
        let settings = Settings { parallel: None, statistics: true, budget: None };
        Part { dataset: *self, axes, filter: None, included: None, settings }
    }
}

impl<'f> Part<'f> {
    /// Selects positions of an axis, relative to the current selection: `3`, `..24`, `10..20`.
    pub fn isel<'a>(
        self,
        axis: impl Into<Axis<'a>>,
        positions: impl Into<PositionRange>,
    ) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let count = self.axes[axis].count();
        let (start, stop) = positions.into().within(count);
        self.narrowed(axis, start, stop, 1)
    }

    /// Selects positions of an axis by label: one label, or an inclusive range of labels.
    pub fn sel<'a>(self, axis: impl Into<Axis<'a>>, labels: impl Into<LabelRange>) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let names = self.labels(axis)?;
        let range = labels.into();
        let Some((start, stop)) = range.find(&names) else {
            let detail = format!("axis {axis} has no {range}");
            return Err(self.refuse(&detail));
        };
        self.narrowed(axis, start, stop, 1)
    }

    /// Selects every `step`th position of an axis.
    pub fn step<'a>(self, axis: impl Into<Axis<'a>>, step: u64) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let count = self.axes[axis].count();
        self.narrowed(axis, 0, count, step)
    }

    /// Filters values by a comparison, in addition to comparisons of other kinds. It replaces an earlier one of its kind.
    pub fn filter(mut self, comparison: Comparison) -> Self {
        let filter = self.filter.get_or_insert_default();
        match comparison {
            Comparison::Eq(number) => filter.eq = Some(number),
            Comparison::Ne(number) => filter.ne = Some(number),
            Comparison::Lt(number) => filter.lt = Some(number),
            Comparison::Le(number) => filter.le = Some(number),
            Comparison::Gt(number) => filter.gt = Some(number),
            Comparison::Ge(number) => filter.ge = Some(number),
            Comparison::IsNull => filter.is_null = true,
            Comparison::IsNotNull => filter.is_not_null = true,
        }
        self
    }

    /// Filters the positions of one axis by a predicate on their labels. A later label filter replaces an earlier one.
    pub fn with_labels<'a>(
        mut self,
        axis: impl Into<Axis<'a>>,
        predicate: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let included = self.labels(axis)?.iter().map(|label| predicate(label)).collect();
        self.included = Some((axis, included));
        Ok(self)
    }

    /// Sets whether several threads are used; by default only for larger parts. Results are identical.
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.settings.parallel = Some(parallel);
        self
    }

    /// Sets whether statistics of chunks may replace their values: enabled by default.
    pub fn statistics(mut self, statistics: bool) -> Self {
        self.settings.statistics = statistics;
        self
    }

    /// Sets the memory budget of a computation, in bytes, without its result.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.settings.budget = Some(bytes);
        self
    }

    /// The selection.
    pub fn selection(&self) -> Result<Selection, Error> {
        Selection::new(self.axes.clone(), self.dataset.shape())
            .map_err(|error| self.dataset.file.error(error.into()))
    }

    /// Reads the part. Excluded values become NaN, or the fill value of integers.
    pub fn read(&self) -> Result<Tensor, Error> {
        let selection = self.selection()?;
        let mut tensor = self.dataset.read(&selection)?;
        if self.filter.is_some() || self.included.is_some() {
            self.run(None, |job| crate::exec::blank(job, &selection, tensor.bytes_mut()))?;
        }
        Ok(tensor)
    }

    /// Creates a reduction by one or more operations.
    pub fn reduce(&self, ops: impl IntoIterator<Item = Kind>) -> Reduce<'f> {
        Reduce::new(self.clone(), ops.into_iter().collect())
    }

    /// Labels of the selected positions.
    fn labels(&self, axis: usize) -> Result<Vec<String>, Error> {
        self.labels_of(axis).ok_or_else(|| self.refuse(&format!("axis {axis} has no labels")))
    }

    fn labels_of(&self, axis: usize) -> Option<Vec<String>> {
        let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let slice = self.axes[axis];
        let labels = self.dataset.labels(axis)?.get(usize_of(slice.start)..usize_of(slice.stop))?;
        Some(labels.iter().step_by(usize_of(slice.step)).cloned().collect())
    }

    fn narrowed(mut self, axis: usize, start: u64, stop: u64, step: u64) -> Result<Self, Error> {
        let slice = self.axes[axis];
        if start >= stop || stop > slice.count() || step == 0 {
            let count = slice.count();
            let detail = format!("positions {start}..{stop} of axis {axis}, of which {count} are selected");
            return Err(self.refuse(&detail));
        }
        let position = |number: u64| slice.start + number * slice.step;
        let step = slice.step.saturating_mul(step);
        self.axes[axis] = AxisSlice { start: position(start), stop: position(stop - 1) + 1, step };
        if let Some((_, included)) = self.included.as_mut().filter(|(other, _)| *other == axis) {
            let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            let kept = included[usize_of(start)..usize_of(stop)].iter().copied();
            *included = kept.step_by(usize_of(step / slice.step)).collect();
        }
        Ok(self)
    }

    /// Number of an axis.
    fn axis(&self, axis: Axis<'_>) -> Result<usize, Error> {
        let rank = self.axes.len();
        match axis {
            Axis::Number(number) if number < rank => Ok(number),
            Axis::Number(number) => Err(self.refuse(&format!("axis {number}, but there are {rank}"))),
            Axis::Name(name) => {
                let mut found = (0..rank).filter(|&axis| self.dataset.axis_name(axis) == Some(name));
                match (found.next(), found.next()) {
                    (Some(axis), None) => Ok(axis),
                    (Some(_), Some(_)) => Err(self.refuse(&format!("several axes have the name `{name}`"))),
                    _ => Err(self.refuse(&format!("no axis has the name `{name}`"))),
                }
            }
        }
    }

    fn refuse(&self, detail: &str) -> Error {
        let detail = tercet_core::escape::name(detail).to_string().into();
        self.dataset.file.error(ErrorKind::Compute { dataset: self.dataset.name().into(), detail })
    }

    /// Runs a function on a job for the part.
    fn run<R>(
        &self,
        operation: Option<crate::query::resolved::Operation>,
        work: impl FnOnce(&Job<'_>) -> Result<R, ErrorKind>,
    ) -> Result<R, Error> {
        let selection = self.selection()?;
        let run = || {
            let included = self.included.as_ref();
            let resolved = Resolved {
                selection,
                operation,
                filter: self.filter,
                positions: included
                    .map(|(axis, counts)| Positions { axis: *axis, counts: counts[..].into() }),
                fill: crate::query::fill_value_of(&self.dataset),
                spill: None,
                write: None,
                group_count: None,
                window_count: None,
            };
            let file = self.dataset.file;
            let plan = locate(&self.dataset, &resolved, self.settings.statistics)?;
            let options =
                ExecutionOptions { memory_budget_bytes: self.settings.budget, ..ExecutionOptions::default() };
            let memory = Memory::new(&options, file.memory_budget(), memory::available());
            let bytes = plan.selection_bytes();
            let parallel = plan.chunks.len() > 1 && bytes >= crate::query::run::PARALLEL_BYTES;
            work(&Job {
                dataset: self.dataset,
                plan: &plan,
                resolved: &resolved,
                budget: memory.budget,
                parallel: self.settings.parallel.unwrap_or(parallel),
                out_of_core: memory.is_out_of_core(bytes),
                statistics: self.settings.statistics,
                progress: &NoProgress,
                by_statistics: AtomicU64::new(0),
                bytes_read: AtomicU64::new(0),
            })
        };
        run().map_err(|kind| self.dataset.file.error(kind))
    }
}

/// Defines one method per operation.
macro_rules! operations {
    ($($name:ident = $kind:expr, $text:literal;)*) => {
        impl<'f> Part<'f> {$(
            #[doc = $text]
            #[doc = " Without axes, over all of them."]
            pub fn $name<'a, A: Into<Axis<'a>>>(&self, axes: impl IntoIterator<Item = A>) -> Reduce<'f> {
                self.reduce([$kind]).over(axes)
            }
        )*}
    };
}

operations! {
    sum = Kind::Sum, "The sum over axes.";
    mean = Kind::Mean, "The mean over axes.";
    min = Kind::Min, "The minimum over axes, without NaN.";
    max = Kind::Max, "The maximum over axes, without NaN.";
    count = Kind::Count, "The number of values over axes.";
    var = Kind::Var, "The variance over axes.";
    std = Kind::Std, "The standard deviation over axes.";
    product = Kind::Product, "The product over axes.";
    median = Kind::Median, "The median over axes.";
    arg_min = Kind::ArgMin, "The index of the first minimum over axes; −1 if there is none.";
    arg_max = Kind::ArgMax, "The index of the first maximum over axes; −1 if there is none.";
    nan_mean = Kind::NanMean, "The mean over axes of the values that are not NaN.";
    nan_std = Kind::NanStd, "The standard deviation over axes of the values that are not NaN.";
    norm_l1 = Kind::NormL1, "Σ|x| over axes.";
    norm_l2 = Kind::NormL2, "√Σx² over axes.";
}
