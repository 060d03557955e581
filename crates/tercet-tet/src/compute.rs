//! Typed computations on a dataset.
//!
//! ```no_run
//! use tercet_tet::{File, Group, Op};
//!
//! let file = File::open("era5.tet")?;
//! let t2m = file.dataset("t2m")?;
//! let part = t2m.select().sel("level", 850)?.sel("lat", 60.0..=30.0)?.isel("time", ..24)?;
//! let map = part.mean(["time"]).run()?.tensor;
//! let stats = part.reduce([Op::Mean, Op::Max]).over(["lat", "lon"]).run_all()?;
//! let by_month = part.mean(["time"]).group_by(Group::labels("time", |label| label[..7].to_owned())).run()?;
//! # Ok::<(), tercet_tet::Error>(())
//! ```

mod blocks;
mod coordinates;
mod expression;
mod filter;
mod parts;
mod positions;
mod reduce;
mod request;
mod stream;
mod transform;
mod weights;
mod window;

pub use blocks::BlockMeans;
pub use coordinates::{CoordinateValues, Coordinates, Label, LabelSelection};
pub use expression::ExpressionError;
pub use filter::Comparison;
pub use positions::{Axis, PositionRange};
pub use reduce::{Dim, Reduce, Reduced};
pub use request::{Computed, Execution, Outcome, OutputFile, Plan, Preview, Request};
pub use stream::{LazyValues, missing_values};
pub use transform::{Transform, Transformed};
pub use weights::Weights;
pub use window::{Group, TimePart, Window};

pub(crate) use filter::compare;
pub(crate) use reduce::{check_reversed, reduced_dims};
pub(crate) use request::{Settings, ValueMode};
pub(crate) use window::{WindowSpan, groups_of};

use std::fmt;
use std::path::Path;

use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{Progress, Selection, Tensor};

use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use crate::query::operation::{Kind, Method};
use crate::query::resolved::{Filter, Operation, Positions, Resolved, Role, Values};

/// A selection of a dataset, with filters, to read or to compute on.
#[derive(Clone, Debug)]
pub struct Select<'f> {
    dataset: Dataset<'f>,
    axes: Vec<AxisSlice>,
    /// Axes whose positions are in descending order.
    reversed: Vec<bool>,
    /// Axes of which a single position is selected, by one label or number.
    single: Vec<bool>,
    /// Whether results have a dimension for such axes.
    keeps_single: bool,
    filter: Option<Filter>,
    /// Axis of a label filter, and a mask of its included positions.
    included: Option<(usize, Vec<bool>)>,
    /// Filters that cannot be combined.
    conflict: Option<String>,
    settings: Settings,
    /// Cancels reads.
    progress: ReadProgress<'f>,
}

/// The progress of reads.
#[derive(Clone, Copy)]
struct ReadProgress<'f>(&'f dyn Progress);

impl fmt::Debug for ReadProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadProgress")
    }
}

impl<'f> Dataset<'f> {
    /// Selects the entire dataset, to be narrowed and computed on.
    pub fn select(&self) -> Select<'f> {
        let axes = self.shape().iter().map(|&stop| AxisSlice { start: 0, stop, step: 1 }).collect();
        let settings = Settings::default();
        let none = vec![false; self.shape().len()];
        Select {
            dataset: *self,
            axes,
            reversed: none.clone(),
            single: none,
            keeps_single: false,
            filter: None,
            included: None,
            conflict: None,
            settings,
            progress: ReadProgress(&NoProgress),
        }
    }
}

impl<'f> Select<'f> {
    /// The selection with these positions, without filters. Dropped axes have a single position.
    fn with_positions(
        mut self,
        axes: Vec<AxisSlice>,
        reversed: Vec<bool>,
        dropped: &[usize],
        settings: Settings,
    ) -> Self {
        for &axis in dropped {
            self.single[axis] = true;
        }
        Self { axes, reversed, settings, ..self }
    }

    /// The dataset.
    pub fn dataset(&self) -> Dataset<'f> {
        self.dataset
    }

    /// Selects positions of an axis, relative to the current selection: `3`, `..24`, `10..20`, or an
    /// [`IndexSlice`](tercet_core::tensor::IndexSlice).
    pub fn isel<'a>(
        self,
        axis: impl Into<Axis<'a>>,
        positions: impl Into<PositionRange>,
    ) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let count = self.axes[axis].count();
        let range = positions.into().0;
        let (slice, is_reversed) =
            range.resolve(axis, count).map_err(|error| self.dataset.file.error(error.into()))?;
        let mut narrowed = self.narrowed(axis, slice.start, slice.stop, slice.step)?;
        narrowed.reversed[axis] ^= is_reversed;
        narrowed.single[axis] |= range.is_single;
        Ok(narrowed)
    }

    /// Selects positions of an axis by label: one label, an inclusive range of labels, or the nearest label. Labels are
    /// those of [`Dataset::coordinates`]; numbers are compared as numbers, and ISO times as times. A time with fewer parts
    /// than the labels have, as `2024-06` is for days, is a range.
    pub fn sel<'a>(
        self,
        axis: impl Into<Axis<'a>>,
        labels: impl Into<LabelSelection>,
    ) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let Some(coordinates) = self.coordinates(axis)? else {
            let name = self.axis_text(axis);
            return Err(self.refuse(&format!(
                "axis {name} has neither labels nor a coordinate dataset; it has positions only"
            )));
        };
        let labels = labels.into();
        let (start, stop) = coordinates
            .find(&labels)
            .map_err(|error| self.refuse(&format!("axis {}: {error}", self.axis_text(axis))))?;
        let mut narrowed = self.narrowed(axis, start, stop, 1)?;
        narrowed.single[axis] |= coordinates.is_single(&labels, (start, stop));
        Ok(narrowed)
    }

    /// Keeps the axes of which a single position is selected, by one label or number, as dimensions of extent 1. By default
    /// results have no dimension for them, as in xarray and NumPy.
    pub fn keep_single(mut self) -> Self {
        self.keeps_single = true;
        self
    }

    /// The shape of the selection, without dropped axes.
    pub fn shape(&self) -> Vec<u64> {
        let kept = self.axes.iter().enumerate().filter(|(axis, _)| !self.is_dropped(*axis));
        kept.map(|(_, slice)| slice.count()).collect()
    }

    /// The axes of the dataset that are dimensions of results.
    pub fn kept_axes(&self) -> Vec<usize> {
        (0..self.axes.len()).filter(|&axis| !self.is_dropped(axis)).collect()
    }

    /// Whether positions of an axis are in descending order, by a negative step.
    pub fn is_reversed(&self) -> bool {
        self.reversed.contains(&true)
    }

    /// Whether results have no dimension for an axis because a single position of it is selected.
    fn is_dropped(&self, axis: usize) -> bool {
        self.single[axis] && !self.keeps_single
    }

    /// Coordinates of the selected positions of an axis.
    pub fn coordinates<'a>(&self, axis: impl Into<Axis<'a>>) -> Result<Option<Coordinates>, Error> {
        let axis = self.axis(axis.into())?;
        let coordinates = self.dataset.coordinates(axis)?;
        Ok(coordinates.map(|all| all.selected(self.axes[axis], self.reversed[axis])))
    }

    /// Coordinates of the selected positions of an axis; `None` if they are damaged or invalid.
    pub fn readable_coordinates<'a>(&self, axis: impl Into<Axis<'a>>) -> Result<Option<Coordinates>, Error> {
        let axis = self.axis(axis.into())?;
        let coordinates = self.dataset.readable_coordinates(axis)?;
        Ok(coordinates.map(|all| all.selected(self.axes[axis], self.reversed[axis])))
    }

    /// Selects every `step`th position of an axis.
    pub fn step<'a>(self, axis: impl Into<Axis<'a>>, step: u64) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let count = self.axes[axis].count();
        self.narrowed(axis, 0, count, step)
    }

    /// Selects by slices, one for each of the leading axes: `10:20,::2`, `...,-1`. They are positions of the dataset. Results
    /// have no dimension for an axis of a single number.
    pub fn slices(mut self, text: &str) -> Result<Self, Error> {
        let parsed = Selection::parse_indexed(text, self.dataset.shape())
            .map_err(|error| self.dataset.file.error(error.into()))?;
        if self
            .axes
            .iter()
            .zip(self.dataset.shape())
            .any(|(slice, &stop)| *slice != AxisSlice { start: 0, stop, step: 1 })
        {
            return Err(
                self.refuse("slices after another selection: they are positions of the whole dataset")
            );
        }
        self.axes = parsed.selection.axes().to_vec();
        (self.reversed, self.single) = (parsed.reversed, parsed.single);
        Ok(self)
    }

    /// Filters values by a comparison, in addition to earlier ones.
    pub fn filter(mut self, comparison: Comparison) -> Self {
        let filter = self.filter.get_or_insert_default();
        if let Err(conflict) = filter::add(filter, comparison) {
            self.conflict.get_or_insert(conflict);
        }
        self
    }

    /// Filters the positions of one axis by a predicate on their labels, in addition to earlier ones of that axis.
    pub fn with_labels<'a>(
        mut self,
        axis: impl Into<Axis<'a>>,
        predicate: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let axis = self.axis(axis.into())?;
        let Some(coordinates) = self.dataset.coordinates(axis)? else {
            return Err(self.refuse(&format!("axis {} has no labels", self.axis_text(axis))));
        };
        // In the order of the dataset.
        let coordinates = coordinates.selected(self.axes[axis], false);
        let mut included: Vec<bool> =
            (0..coordinates.len()).map(|place| predicate(&coordinates.text(place))).collect();
        match &self.included {
            Some((other, _)) if *other != axis => {
                return Err(self.refuse(&format!("filters by labels of axis {other} and of axis {axis}")));
            }
            Some((_, earlier)) => included.iter_mut().zip(earlier).for_each(|(own, other)| *own &= other),
            None => {}
        }
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
        self.settings.execution.memory_budget_bytes = Some(bytes.max(1));
        self
    }

    /// Sets whether computations skip missing values: NaN, and by the CF conventions the fill values and values outside
    /// of the valid range. Enabled by default; otherwise missing values are NaN, and so are results from them.
    pub fn skipna(mut self, skip: bool) -> Self {
        self.settings.values = ValueMode::Decoded { skip_missing: skip };
        self
    }

    /// Computes with the stored values: packed ones are not decoded, and fill values are ordinary values.
    pub fn raw(mut self) -> Self {
        self.settings.values = ValueMode::Stored;
        self
    }

    /// Sets whether results may replace existing files. By default an existing file is an error.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.settings.overwrite = overwrite;
        self
    }

    /// Reports the progress of reads, and lets it cancel them. Computations take their own progress.
    pub fn with_progress(mut self, progress: &'f dyn Progress) -> Self {
        self.progress = ReadProgress(progress);
        self
    }

    /// The selection.
    pub fn selection(&self) -> Result<Selection, Error> {
        Selection::new(self.axes.clone(), self.dataset.shape())
            .map_err(|error| self.dataset.file.error(error.into()))
    }

    /// Reads the selection. Excluded values become NaN, or the fill value of integers.
    pub fn read(&self) -> Result<Tensor, Error> {
        if self.filter.is_none() && self.included.is_none() {
            let read = self.dataset.read_counted(&self.selection()?, (None, self.progress.0));
            let mut tensor = read.map_err(|kind| self.dataset.file.error(kind))?;
            reverse(&mut tensor, &self.reversed);
            let dropped = drop_axes(tensor, |axis| self.is_dropped(axis));
            return dropped.map_err(|kind| self.dataset.file.error(kind));
        }
        match self.request()?.run(self.progress.0)?.computed {
            Computed::Read(tensor) => Ok(tensor),
            _ => Err(self.refuse("the request is not a read")),
        }
    }

    /// Writes the selection to a new file: row-major, little-endian, no header. Excluded values become NaN, or the fill
    /// value of integers. An existing file needs [`overwrite`](Self::overwrite).
    pub fn write_raw(&self, path: impl AsRef<Path>) -> Result<OutputFile, Error> {
        let mut select = self.clone();
        select.refuse_reversed("a raw file")?;
        let path = select.allow(path.as_ref())?;
        let mut request = select.request()?;
        request.resolved.spill = Some(path);
        match request.run(&NoProgress)?.computed {
            Computed::Written(file) => Ok(file),
            _ => Err(self.refuse("the request writes no file")),
        }
    }

    /// Creates a reduction by one or more operations.
    pub fn reduce(&self, ops: impl IntoIterator<Item = Kind>) -> Reduce<'f> {
        Reduce::new(self.clone(), ops.into_iter().collect())
    }

    /// Creates a transform.
    pub fn transform(&self, method: Method) -> Transform<'f> {
        Transform::new(self.clone(), method)
    }

    /// The request that reads the selection.
    pub fn request(&self) -> Result<Request<'f>, Error> {
        let dims = self.dims()?;
        self.clone().bind(None, Vec::new(), dims)
    }

    /// The dimensions of the selection.
    fn dims(&self) -> Result<Vec<Dim>, Error> {
        let role = |axis| if self.is_dropped(axis) { Role::Reduced } else { Role::Kept };
        let roles: Vec<Role> = (0..self.axes.len()).map(role).collect();
        reduced_dims(&self.dataset, &self.axes, &self.reversed, &roles, &[])
    }

    /// Plans a read of the selection. No values are read.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.request()?.plan()
    }

    /// Allows a path of this process for output. Documents may write next to the file only.
    fn allow(&mut self, path: &Path) -> Result<String, Error> {
        // A path that cannot be completed is refused when it is opened.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.settings.allowed.extend(path.parent().map(Path::to_owned));
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| self.refuse(&format!("the path `{}` is not UTF-8", path.display())))
    }

    /// Refuses negative steps.
    fn refuse_reversed(&self, what: &str) -> Result<(), Error> {
        match self.reversed.iter().position(|&reversed| reversed) {
            Some(axis) => {
                let axis = self.axis_text(axis);
                Err(self.refuse(&format!("a negative step on axis {axis} is not supported for {what}")))
            }
            None => Ok(()),
        }
    }

    /// An axis for messages.
    fn axis_text(&self, axis: usize) -> String {
        match self.dataset.axis_name(axis) {
            Some(name) => format!("`{}`", tercet_core::escape::name(name)),
            None => axis.to_string(),
        }
    }

    fn narrowed(mut self, axis: usize, start: u64, stop: u64, step: u64) -> Result<Self, Error> {
        let slice = self.axes[axis];
        if start >= stop || stop > slice.count() || step == 0 {
            let count = slice.count();
            let axis = self.axis_text(axis);
            let detail = if start >= stop || step == 0 {
                format!("axis {axis}: the selection has no positions")
            } else {
                format!("axis {axis}: the selection ends at {stop}, but there are {count} positions")
            };
            return Err(self.refuse(&detail));
        }
        // In the order of the dataset.
        let (start, stop) = if self.reversed[axis] {
            let last = AxisSlice { start, stop, step }.last();
            (slice.count() - 1 - last, slice.count() - start)
        } else {
            (start, stop)
        };
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
            Axis::Name(name) => self.dataset.axis(name),
        }
    }

    fn refuse(&self, detail: &str) -> Error {
        refuse(&self.dataset, detail)
    }

    /// Binds an operation to the selection.
    fn bind(
        self,
        operation: Option<Operation>,
        ops: Vec<Kind>,
        dims: Vec<Dim>,
    ) -> Result<Request<'f>, Error> {
        if let Some(conflict) = &self.conflict {
            return Err(self.refuse(conflict));
        }
        let dropped = (0..self.axes.len()).filter(|&axis| self.is_dropped(axis)).collect();
        let mut resolved = Resolved {
            selection: self.selection()?,
            dropped: dropped_axes(dropped, operation.as_ref()),
            reversed: self.reversed,
            operation,
            filter: self.filter,
            positions: self.included.map(|(axis, counts)| Positions { axis, counts: counts.into() }),
            fill: crate::query::fill_value_of(&self.dataset),
            values: Values::default(),
            spill: None,
            write: None,
            group_count: None,
            window_count: None,
        };
        let mode = self.settings.values;
        mode.apply(&self.dataset, &mut resolved).map_err(|kind| self.dataset.file.error(kind))?;
        Ok(Request { dataset: self.dataset, resolved, ops, dims, settings: self.settings, weights: None })
    }
}

fn refuse(dataset: &Dataset<'_>, detail: &str) -> Error {
    let detail = tercet_core::escape::name(detail).to_string().into();
    dataset.file.error(ErrorKind::Compute { dataset: dataset.name().into(), detail })
}

/// The axes that are not dimensions of the result, of those of which a single position is selected: of a reduction those that
/// have neither groups nor windows.
pub(crate) fn dropped_axes(mut single: Vec<usize>, operation: Option<&Operation>) -> Vec<usize> {
    if let Some(operation) = operation.filter(|operation| !matches!(operation.kind, Kind::Transform { .. })) {
        single.retain(|&axis| matches!(operation.roles[axis], Role::Reduced));
    }
    single
}

/// An array without some axes of extent 1.
pub(crate) fn drop_axes(tensor: Tensor, is_dropped: impl Fn(usize) -> bool) -> Result<Tensor, ErrorKind> {
    let shape = tensor.shape().clone();
    let mut axes = 0..;
    let kept = |_: &&u64| axes.next().is_none_or(|axis| !is_dropped(axis));
    let kept: Vec<u64> = shape.iter().filter(kept).copied().collect();
    if kept.len() == shape.len() {
        return Ok(tensor);
    }
    tensor.reshape(tercet_core::Shape::new(kept)).map_err(|_| tercet_core::tensor::CopyError.into())
}

/// Reverses the order of the positions of some axes.
pub(crate) fn reverse(tensor: &mut Tensor, reversed: &[bool]) {
    let shape = tensor.shape().clone();
    for axis in (0..shape.len()).filter(|&axis| reversed.get(axis) == Some(&true)) {
        let below: u64 = shape[axis + 1..].iter().product();
        let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        // The element types of datasets have whole bytes.
        let row = usize_of(below) * tensor.dtype().size().unwrap_or(1);
        let count = usize_of(shape[axis]);
        for part in tensor.bytes_mut().chunks_exact_mut((row * count).max(1)) {
            for position in 0..count / 2 {
                let (front, back) = part.split_at_mut((count - 1 - position) * row);
                front[position * row..(position + 1) * row].swap_with_slice(&mut back[..row]);
            }
        }
    }
}

/// Defines one method per operation.
macro_rules! operations {
    ($($name:ident = $kind:expr, $text:literal;)*) => {
        impl<'f> Select<'f> {$(
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
