//! Reductions and their results.

use std::collections::HashMap;

use tercet_core::{ElementType, Shape, Tensor};

use super::{Axis, Part};
use crate::error::{Error, ErrorKind};
use crate::exec::reduce::{Computed, Numbers, compute, compute_all};
use crate::query::operation::Kind;
use crate::query::resolved::{Groups, Operation, Padding, Role, Rolling};

/// A reduction to be run.
#[derive(Debug)]
pub struct Reduce<'f> {
    part: Part<'f>,
    ops: Vec<Kind>,
    axes: Vec<Result<usize, Error>>,
    groups: Vec<Group>,
    window: Option<Window>,
}

/// Result of one operation.
#[derive(Debug)]
pub struct Reduced {
    /// Operation.
    pub op: Kind,
    /// Values as f64; indices as i64, −1 for no index. One dimension for each of `dims`, followed by the bins of a
    /// histogram or the two dimensions of a matrix.
    pub tensor: Tensor,
    /// Remaining dimensions.
    pub dims: Vec<Dim>,
    /// Number of elements that were reduced, after filters.
    pub elements: u64,
    /// Bin edges of a histogram over all axes.
    pub edges: Option<Vec<f64>>,
}

/// A dimension of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Name of the axis.
    pub name: Option<String>,
    /// Labels of its positions or groups.
    pub labels: Option<Vec<String>>,
    /// Number of positions, groups or windows.
    pub len: u64,
}

/// Groups of positions of an axis.
pub struct Group {
    axis: String,
    number: Option<usize>,
    /// Maps the number and the label of a position to the name of its group.
    key: Key,
}

type Key = Box<dyn Fn(u64, Option<&str>) -> String + Send + Sync>;

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({:?} {})", self.number, self.axis)
    }
}

impl Group {
    /// Groups positions by a function of their labels; positions without labels are in the group of "".
    pub fn labels<'a>(
        axis: impl Into<Axis<'a>>,
        key: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::new(axis.into(), Box::new(move |_, label| key(label.unwrap_or(""))))
    }

    /// Groups positions by a function of their numbers.
    pub fn positions<'a>(
        axis: impl Into<Axis<'a>>,
        key: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::new(axis.into(), Box::new(move |position, _| key(position)))
    }

    fn new(axis: Axis<'_>, key: Key) -> Self {
        match axis {
            Axis::Number(number) => Self { axis: String::new(), number: Some(number), key },
            Axis::Name(name) => Self { axis: name.to_owned(), number: None, key },
        }
    }

    fn axis(&self) -> Axis<'_> {
        self.number.map_or(Axis::Name(&self.axis), Axis::Number)
    }
}

/// Windows along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    axis: String,
    number: Option<usize>,
    size: u64,
    step: u64,
    rolling: bool,
    min_count: u64,
}

impl Window {
    /// Rolling windows of `size` positions along an axis.
    pub fn rolling<'a>(axis: impl Into<Axis<'a>>, size: u64) -> Self {
        Self::new(axis.into(), size, true)
    }

    /// Bins of `size` adjacent positions; the last one may be shorter.
    pub fn bins<'a>(axis: impl Into<Axis<'a>>, size: u64) -> Self {
        Self::new(axis.into(), size, false)
    }

    fn new(axis: Axis<'_>, size: u64, rolling: bool) -> Self {
        let (axis, number) = match axis {
            Axis::Number(number) => (String::new(), Some(number)),
            Axis::Name(name) => (name.to_owned(), None),
        };
        Self { axis, number, size, step: 1, rolling, min_count: 1 }
    }

    /// Sets the step from one rolling window to the next: 1 by default.
    pub fn step(mut self, step: u64) -> Self {
        self.step = step;
        self
    }

    /// Sets the minimum number of values of a window; with fewer, its result is NaN. 1 by default.
    pub fn min_count(mut self, count: u64) -> Self {
        self.min_count = count;
        self
    }
}

impl<'f> Reduce<'f> {
    pub(super) fn new(part: Part<'f>, ops: Vec<Kind>) -> Self {
        Self { part, ops, axes: Vec::new(), groups: Vec::new(), window: None }
    }

    /// Reduces these axes; without any, all axes that have neither groups nor windows.
    pub fn over<'a, A: Into<Axis<'a>>>(mut self, axes: impl IntoIterator<Item = A>) -> Self {
        self.axes = axes.into_iter().map(|axis| self.part.axis(axis.into())).collect();
        self
    }

    /// Groups the positions of an axis: one result per group, in the order of first occurrence.
    pub fn group_by(mut self, group: Group) -> Self {
        self.groups.push(group);
        self
    }

    /// Computes one result per window along an axis.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Runs the reduction; returns the result of the first operation.
    pub fn run(self) -> Result<Reduced, Error> {
        let part = self.part.clone();
        let first = self.run_all()?.into_iter().next();
        first.ok_or_else(|| part.refuse("no operation"))
    }

    /// Runs the reduction; returns one result per operation. Reductions share one visit of the chunks if possible.
    pub fn run_all(self) -> Result<Vec<Reduced>, Error> {
        let Self { part, ops, axes, groups, window } = self;
        let axes = axes.into_iter().collect::<Result<Vec<usize>, Error>>()?;
        let (roles, dims) = roles(&part, &axes, &groups, window.as_ref())?;
        for op in &ops {
            check(&part, *op, &axes, &roles)?;
        }
        let operation = |kind: Kind| Operation { kind, axes: axes.clone(), roles: roles.clone() };
        let Some(&first) = ops.first() else { return Ok(Vec::new()) };
        let resolve_fill = |kind: Kind| match kind {
            Kind::NullCount { fill: None } => {
                Kind::NullCount { fill: crate::query::fill_value_of(&part.dataset) }
            }
            kind => kind,
        };
        let kinds: Vec<Kind> = ops.iter().map(|&kind| resolve_fill(kind)).collect();
        let computed = part.run(Some(operation(first)), |job| match kinds[..] {
            [kind] => Ok(vec![compute(job, &operation(kind))?]),
            _ => compute_all(job, &kinds, &operation(first)),
        })?;
        let results = ops.into_iter().zip(computed).map(|(op, computed)| {
            reduced(op, computed, dims.clone()).map_err(|kind| part.dataset.file.error(kind))
        });
        results.collect()
    }
}

/// Converts the result of a computation to an array.
fn reduced(op: Kind, computed: Computed, dims: Vec<Dim>) -> Result<Reduced, ErrorKind> {
    let mut shape: Vec<u64> = dims.iter().map(|dim| dim.len).collect();
    let (elements, mut edges, mut dims) = (computed.elements, None, dims);
    let tensor = match computed.numbers {
        Numbers::Indices(indices) => {
            let mut tensor = Tensor::zeros(ElementType::I64, Shape::new(shape))?;
            let indices = indices.into_iter().map(|index| index.and_then(|index| i64::try_from(index).ok()));
            for (slot, index) in tensor.bytes_mut().chunks_exact_mut(8).zip(indices) {
                slot.copy_from_slice(&index.unwrap_or(-1).to_le_bytes());
            }
            tensor
        }
        Numbers::Values(values) => numbers(shape, values)?,
        Numbers::Flags(flags) => {
            let number = |flag: Option<bool>| flag.map_or(f64::NAN, |flag| f64::from(u8::from(flag)));
            numbers(shape, flags.into_iter().map(number).collect())?
        }
        Numbers::Histogram { counts, edges: found } => {
            edges = found;
            let cells = shape.iter().product::<u64>().max(1);
            shape.push(counts.len() as u64 / cells);
            numbers(shape, counts)?
        }
        Numbers::Matrix { values, order } => {
            dims.clear();
            numbers(vec![order as u64; 2], values)?
        }
    };
    Ok(Reduced { op, tensor, dims, elements, edges })
}

fn numbers(shape: Vec<u64>, values: Vec<f64>) -> Result<Tensor, ErrorKind> {
    let mut tensor = Tensor::zeros(ElementType::F64, Shape::new(shape))?;
    for (slot, value) in tensor.bytes_mut().chunks_exact_mut(8).zip(values) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    Ok(tensor)
}

/// Rejects invalid combinations.
fn check(part: &Part<'_>, op: Kind, axes: &[usize], roles: &[Role]) -> Result<(), Error> {
    let has_windows = roles.iter().any(|role| matches!(role, Role::Rolling(_)));
    let refused = match op {
        Kind::Transform { .. } => Some("transforms are not reductions"),
        Kind::Covariance | Kind::Correlation if roles.len() != 2 || axes.len() != 1 => {
            Some("covariances need 2 axes, one of them reduced")
        }
        Kind::Covariance | Kind::Correlation if part.filter.is_some() || part.included.is_some() => {
            Some("filters are not supported for covariances")
        }
        Kind::Histogram { bins: 0, .. } => Some("a histogram needs bins"),
        Kind::Histogram { .. } if has_windows => Some("rolling windows are not supported for histograms"),
        Kind::Histogram { range: Some((min, max)), .. }
            if !(min.is_finite() && max.is_finite() && min <= max) =>
        {
            Some("the range of a histogram is not finite and ascending")
        }
        Kind::Quantile { q } if !(0.0..=1.0).contains(&q) => Some("a quantile is not between 0 and 1"),
        _ => None,
    };
    refused.map_or(Ok(()), |detail| Err(part.refuse(detail)))
}

/// Role of each axis, and the remaining dimensions.
fn roles(
    part: &Part<'_>,
    axes: &[usize],
    groups: &[Group],
    window: Option<&Window>,
) -> Result<(Vec<Role>, Vec<Dim>), Error> {
    let rank = part.axes.len();
    let mut special: HashMap<usize, (Role, Option<Vec<String>>)> = HashMap::new();
    for group in groups {
        let axis = part.axis(group.axis())?;
        special.insert(axis, grouped(part, axis, group));
    }
    if let Some(window) = window {
        let axis = part.axis(window.number.map_or(Axis::Name(&window.axis), Axis::Number))?;
        special.insert(axis, (windowed(part, axis, window)?, None));
    }
    let mut roles = Vec::with_capacity(rank);
    let mut dims = Vec::new();
    for axis in 0..rank {
        let count = part.axes[axis].count();
        let (role, labels) = match special.remove(&axis) {
            Some(found) => found,
            None if axes.contains(&axis) || axes.is_empty() => (Role::Reduced, None),
            None => (Role::Kept, part.labels_of(axis)),
        };
        if let Some(len) = role.cells(count) {
            dims.push(Dim { name: part.dataset.axis_name(axis).map(str::to_owned), labels, len });
        }
        roles.push(role);
    }
    Ok((roles, dims))
}

fn grouped(part: &Part<'_>, axis: usize, group: &Group) -> (Role, Option<Vec<String>>) {
    let labels = part.labels_of(axis);
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::new();
    let count = usize::try_from(part.axes[axis].count()).unwrap_or(usize::MAX);
    let cells = (0..count).map(|position| {
        let label = labels.as_ref().and_then(|labels| labels.get(position)).map(String::as_str);
        let name = (group.key)(position as u64, label);
        // Positions with separate groups are held in memory: there are fewer than 2³².
        let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
        *numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        })
    });
    let cells = cells.collect();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    (Role::Grouped(Groups { cells, count, padding: None, size: 0 }), Some(names))
}

fn windowed(part: &Part<'_>, axis: usize, window: &Window) -> Result<Role, Error> {
    let count = part.axes[axis].count();
    let &Window { size, step, min_count, .. } = window;
    if size == 0 || size > count || step == 0 {
        let detail = format!("windows of {size} positions, step {step}, on axis {axis} of {count} positions");
        return Err(part.refuse(&detail));
    }
    let padding = Padding { value: None, min_count };
    if window.rolling {
        let windows = (count - size + 1).div_ceil(step);
        return Ok(Role::Rolling(Rolling { size, step, first: 0, count: windows, padding, separate: false }));
    }
    let number = |bin: u64| u32::try_from(bin).unwrap_or(u32::MAX);
    let cells = (0..count).map(|position| number(position / size)).collect();
    let bins = number(count.div_ceil(size));
    Ok(Role::Grouped(Groups { cells, count: bins, padding: Some(padding), size }))
}
