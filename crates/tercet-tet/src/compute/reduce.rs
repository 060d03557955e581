//! Reductions and their results.

use std::collections::HashMap;

use tercet_core::num::counted;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::{AxisSlice, FromVecError, Scalar};
use tercet_core::{Shape, Tensor};

use super::request::{self, Execution, Plan, Request};
use super::weights::AxisWeights;
use super::{Axis, Coordinates, Group, Select, Weights, Window};
use crate::error::{Error, ErrorKind};
use crate::exec::reduce::{Computed, Numbers};
use crate::file::Dataset;
use crate::query::operation::Kind;
use crate::query::resolved::{Operation, Role};

/// A reduction to be run.
#[derive(Debug)]
pub struct Reduce<'f> {
    select: Select<'f>,
    ops: Vec<Kind>,
    axes: Vec<Result<usize, Error>>,
    groups: Vec<Group>,
    window: Option<Window>,
    weights: Option<Weights>,
}

/// Result of one operation.
#[derive(Debug)]
pub struct Reduced {
    /// Operation.
    pub op: Kind,
    /// Values as f64; indices as i64, −1 for no index. One dimension for each of `dims`, followed by the bins of a
    /// histogram or the two dimensions of a matrix.
    pub tensor: Tensor,
    /// Exact results of integers, in an integer type: minima and maxima in the element type, sums in 64 bits, and medians and
    /// quantiles of 64-bit integers. `None` if a result is missing, does not fit or is not an integer.
    pub exact: Option<Tensor>,
    /// Remaining dimensions.
    pub dims: Vec<Dim>,
    /// Number of elements that were reduced, after filters.
    pub elements: u64,
    /// Number of missing elements that were skipped.
    pub skipped: u64,
    /// Number of elements of each result as u64, if requested: one dimension for each of `dims`.
    pub counts: Option<Tensor>,
    /// Bin edges of a histogram over all axes.
    pub edges: Option<Vec<f64>>,
    /// Number of values below and above the range of a histogram, which are in no bin.
    pub outside: Option<[u64; 2]>,
    /// How the result was computed.
    pub execution: Execution,
}

/// A dimension of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    /// Name of the axis.
    pub name: Option<String>,
    /// Labels of its positions or groups.
    pub labels: Option<Vec<String>>,
    /// Number of positions, groups or windows.
    pub len: u64,
    /// Coordinates of its positions or groups; of windows, those of their last positions.
    pub coordinates: Option<Coordinates>,
}

impl<'f> Reduce<'f> {
    pub(super) fn new(select: Select<'f>, ops: Vec<Kind>) -> Self {
        Self { select, ops, axes: Vec::new(), groups: Vec::new(), window: None, weights: None }
    }

    /// Reduces these axes; without any, all axes that have neither groups nor windows.
    pub fn over<'a, A: Into<Axis<'a>>>(mut self, axes: impl IntoIterator<Item = A>) -> Self {
        self.axes = axes.into_iter().map(|axis| self.select.axis(axis.into())).collect();
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

    /// Weights the positions of a reduced axis: for `sum`, `mean`, `var` and `std`. Minima, maxima and counts have no
    /// weights; other operations are refused.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Gives the histograms of all results the same bins: from the minimum to the maximum of all selected values. Without
    /// it, and without a range, each result has bins of its own.
    pub fn with_shared_bins(mut self) -> Result<Self, Error> {
        let is_open = |op: &Kind| matches!(op, Kind::Histogram { range: None, .. });
        if !self.ops.iter().any(is_open) {
            return Ok(self);
        }
        let bounds = self.select.reduce([Kind::Min, Kind::Max]).run_all()?;
        let bound = |number: usize| {
            let found: Option<&Reduced> = bounds.get(number);
            found
                .and_then(|one| one.tensor.to_vec::<f64>()?.first().copied())
                .filter(|bound| bound.is_finite())
        };
        if let (Some(min), Some(max)) = (bound(0), bound(1)) {
            for op in self.ops.iter_mut().filter(|op| is_open(op)) {
                if let Kind::Histogram { range, .. } = op {
                    *range = Some((min, max));
                }
            }
        }
        Ok(self)
    }

    /// Computes the number of elements of each result as well.
    pub fn with_counts(mut self) -> Self {
        self.select.settings.counts = true;
        self
    }

    /// The request: planned and run in the same way as a query document.
    pub fn request(self) -> Result<Request<'f>, Error> {
        let Self { select, ops, axes, groups, window, weights } = self;
        let axes = axes.into_iter().collect::<Result<Vec<usize>, Error>>()?;
        let (roles, names) = roles(&select, &ops, &axes, &groups, window.as_ref())?;
        if let Some(twice) = (1..axes.len()).find(|&at| axes[..at].contains(&axes[at])) {
            return Err(select.refuse(&format!("axis {} is given twice", select.axis_text(axes[twice]))));
        }
        for op in &ops {
            check(&select, *op, &axes, &roles)?;
        }
        let resolve_fill = |kind: Kind| {
            let Kind::NullCount { fill: None } = kind else { return Ok(kind) };
            let fill = crate::query::fill_value_of(&select.dataset).ok_or_else(|| {
                let dataset = select.dataset.name().into();
                select.dataset.file.error(ErrorKind::NoNullValue { dataset })
            })?;
            Ok(Kind::NullCount { fill: Some(fill) })
        };
        let ops = ops.into_iter().map(resolve_fill).collect::<Result<Vec<Kind>, Error>>()?;
        let Some(&first) = ops.first() else { return Err(select.refuse("no operation given")) };
        let mut dims = reduced_dims(&select.dataset, &select.axes, &select.reversed, &roles, &names)?;
        name_groups(&select, &groups, &roles, &mut dims)?;
        let mut operation = Operation { kind: first, axes, roles };
        check_reversed(&select.dataset, &select.reversed, &operation)?;
        let weights = weights.map(|weights| weights.resolve(&select)).transpose()?;
        if let Some(weights) = &weights {
            AxisWeights::partial_kinds(&ops).map_err(|detail| select.refuse(&detail))?;
            let roles = weights.partial_roles(&operation.roles);
            operation.roles = roles.map_err(|detail| select.refuse(detail))?;
        }
        let mut request = select.bind(Some(operation), ops, dims)?;
        request.weights = weights;
        Ok(request)
    }

    /// Plans the reduction. No values are read.
    pub fn plan(self) -> Result<Plan, Error> {
        self.request()?.plan()
    }

    /// Runs the reduction; returns the result of the first operation.
    pub fn run(self) -> Result<Reduced, Error> {
        let dataset = self.select.dataset;
        let first = self.run_all()?.into_iter().next();
        first.ok_or_else(|| super::refuse(&dataset, "no operation given"))
    }

    /// Runs the reduction; returns one result per operation. Operations share one visit of the chunks if possible.
    pub fn run_all(self) -> Result<Vec<Reduced>, Error> {
        let dataset = self.select.dataset;
        match self.request()?.run(&NoProgress)?.computed {
            request::Computed::Reduced(results) => Ok(results),
            _ => Err(super::refuse(&dataset, "the request is not a reduction")),
        }
    }
}

/// Number of elements of each result.
pub(super) struct Counts(Vec<u64>);

impl Counts {
    pub(super) fn new(computed: &Computed) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts are whole numbers"
        )]
        let count = |count: &f64| *count as u64;
        Self(match &computed.numbers {
            Numbers::Values(values) => values.iter().map(count).collect(),
            _ => Vec::new(),
        })
    }
}

/// Converts the result of a computation to an array.
pub(super) fn reduced(
    op: Kind,
    computed: Computed,
    dims: Vec<Dim>,
    counts: Option<&Counts>,
    execution: Execution,
) -> Result<Reduced, ErrorKind> {
    let mut shape: Vec<u64> = dims.iter().map(|dim| dim.len).collect();
    let counts = counts.map(|counts| tensor(shape.clone(), counts.0.clone())).transpose()?;
    let (elements, skipped) = (computed.elements, computed.skipped);
    let (mut edges, mut outside, mut dims) = (None, None, dims);
    let tensor = match computed.numbers {
        Numbers::Indices(indices) => tensor(shape, indices)?,
        Numbers::Values(values) => tensor(shape, values)?,
        Numbers::Flags(flags) => {
            let number = |flag: Option<bool>| flag.map_or(f64::NAN, |flag| f64::from(u8::from(flag)));
            tensor(shape, flags.into_iter().map(number).collect())?
        }
        Numbers::Histogram { counts, edges: found, outside: outliers } => {
            (edges, outside) = (found, outliers);
            let outputs = shape.iter().product::<u64>().max(1);
            shape.push(counts.len() as u64 / outputs);
            tensor(shape, counts)?
        }
        Numbers::Matrix { values, order } => {
            dims.clear();
            tensor(vec![order as u64; 2], values)?
        }
    };
    Ok(Reduced { op, tensor, exact: None, dims, elements, skipped, counts, edges, outside, execution })
}

fn tensor<T: Scalar>(shape: Vec<u64>, values: Vec<T>) -> Result<Tensor, ErrorKind> {
    Tensor::from_vec(Shape::new(shape), values).map_err(|error| match error {
        FromVecError::Memory(error) => error.into(),
        // The executor returns one value per output element.
        FromVecError::Shape(_) => tercet_core::tensor::CopyError.into(),
    })
}

/// Rejects invalid combinations.
fn check(select: &Select<'_>, op: Kind, axes: &[usize], roles: &[Role]) -> Result<(), Error> {
    let has_windows = roles.iter().any(|role| matches!(role, Role::Rolling(_)));
    let refused = match op {
        Kind::Transform { .. } => Some("transforms are not reductions"),
        Kind::Covariance | Kind::Correlation if roles.len() != 2 || axes.len() != 1 => {
            Some("covariances need 2 axes, one of them reduced")
        }
        Kind::Covariance | Kind::Correlation if select.filter.is_some() || select.included.is_some() => {
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
    refused.map_or(Ok(()), |detail| Err(select.refuse(detail)))
}

/// Rejects negative steps where the order of positions matters.
pub(crate) fn check_reversed(
    dataset: &Dataset<'_>,
    reversed: &[bool],
    operation: &Operation,
) -> Result<(), Error> {
    let is_transform = matches!(operation.kind, Kind::Transform { .. });
    for (axis, role) in operation.roles.iter().enumerate().filter(|(axis, _)| reversed[*axis]) {
        let what = match role {
            _ if is_transform => "a transform",
            Role::Kept | Role::Reduced => continue,
            Role::Grouped(_) => "groups",
            Role::Rolling(_) => "windows",
        };
        let detail = format!("a negative step on axis {axis} is not supported for {what}");
        return Err(super::refuse(dataset, &detail));
    }
    Ok(())
}

/// Names of the groups of some axes.
type GroupNames = Vec<(usize, Vec<String>)>;

/// Role of each axis, and the names of groups.
fn roles(
    select: &Select<'_>,
    ops: &[Kind],
    axes: &[usize],
    groups: &[Group],
    window: Option<&Window>,
) -> Result<(Vec<Role>, GroupNames), Error> {
    let mut special: HashMap<usize, Role> = HashMap::new();
    let mut names = Vec::new();
    for group in groups {
        let axis = select.axis(group.axis.as_axis())?;
        let coordinates = select.coordinates(axis)?;
        let count = usize::try_from(select.axes[axis].count()).unwrap_or(usize::MAX);
        let (groups, found) = group
            .groups(count, coordinates.as_ref())
            .map_err(|detail| select.refuse(&format!("axis {}: {detail}", select.axis_text(axis))))?;
        names.push((axis, found));
        if special.insert(axis, Role::Grouped(groups)).is_some() {
            return Err(select.refuse(&format!("axis {} has groups of two kinds", select.axis_text(axis))));
        }
    }
    if let Some(window) = window {
        let axis = select.axis(window.axis.as_axis())?;
        if special.insert(axis, windowed(select, axis, window)?).is_some() {
            return Err(
                select.refuse(&format!("axis {} has both groups and windows", select.axis_text(axis)))
            );
        }
    }
    // Matrices have the dimension that is not reduced twice.
    let drops = !ops.iter().any(|op| matches!(op, Kind::Covariance | Kind::Correlation));
    let is_dropped = |axis| drops && select.is_dropped(axis);
    let roles = (0..select.axes.len()).map(|axis| match special.remove(&axis) {
        Some(role) => role,
        None if axes.contains(&axis) || axes.is_empty() || is_dropped(axis) => Role::Reduced,
        None => Role::Kept,
    });
    Ok((roles.collect(), names))
}

/// Remaining dimensions of a reduction of selected positions.
pub(crate) fn reduced_dims(
    dataset: &Dataset<'_>,
    axes: &[AxisSlice],
    reversed: &[bool],
    roles: &[Role],
    names: &[(usize, Vec<String>)],
) -> Result<Vec<Dim>, Error> {
    let mut dims = Vec::new();
    for (axis, role) in roles.iter().enumerate() {
        let Some(len) = role.output_len(axes[axis].count()) else { continue };
        let coordinates = match role {
            Role::Kept => {
                let coordinates = dataset.readable_coordinates(axis)?;
                coordinates.map(|all| all.selected(axes[axis], reversed[axis]))
            }
            Role::Rolling(rolling) => match rolling.last_positions() {
                Some(last) => {
                    let coordinates = dataset.readable_coordinates(axis)?;
                    coordinates.map(|all| all.selected(axes[axis], false).at(&last))
                }
                None => None,
            },
            _ => None,
        };
        let labels = match (&coordinates, role) {
            (Some(coordinates), _) => {
                Some((0..coordinates.len()).map(|position| coordinates.text(position)).collect())
            }
            (None, Role::Kept | Role::Rolling(_)) => None,
            _ => names.iter().find(|(other, _)| *other == axis).map(|(_, names)| names.clone()),
        };
        let coordinates = match (coordinates, &labels) {
            (None, Some(labels)) => Some(Coordinates::from_labels(labels.clone())),
            (None, None) => positions(axes[axis], reversed[axis], role),
            (coordinates, _) => coordinates,
        };
        dims.push(Dim { name: dataset.axis_name(axis).map(str::to_owned), labels, len, coordinates });
    }
    Ok(dims)
}

/// Positions in the dataset as coordinates of an axis that has none, unless the results have the same numbers.
fn positions(slice: AxisSlice, reversed: bool, role: &Role) -> Option<Coordinates> {
    let position = |number: u64| slice.start + number * slice.step;
    let count = slice.count();
    let positions: Vec<u64> = match role {
        Role::Kept if reversed => (0..count).rev().map(position).collect(),
        Role::Kept if slice.start > 0 || slice.step > 1 => (0..count).map(position).collect(),
        Role::Rolling(rolling) => {
            rolling.last_positions()?.iter().map(|&last| position(last as u64)).collect()
        }
        _ => return None,
    };
    Some(Coordinates::from_labels(positions.iter().map(u64::to_string).collect()))
}

/// Names dimensions of groups by a part of their times after that part.
fn name_groups(select: &Select<'_>, groups: &[Group], roles: &[Role], dims: &mut [Dim]) -> Result<(), Error> {
    for group in groups {
        let axis = select.axis(group.axis.as_axis())?;
        let before = roles[..axis].iter().filter(|role| !matches!(role, Role::Reduced)).count();
        if let (Some(name), Some(dim)) = (group.dim_name(), dims.get_mut(before)) {
            dim.name = Some(name.to_owned());
        }
    }
    Ok(())
}

fn windowed(select: &Select<'_>, axis: usize, window: &Window) -> Result<Role, Error> {
    let count = select.axes[axis].count();
    let span = &window.span;
    if span.size == 0 || span.size > count || span.step == 0 {
        let detail = if span.size == 0 || span.step == 0 {
            "size and step of windows must be at least 1".to_owned()
        } else {
            let (size, axis) = (span.size, select.axis_text(axis));
            format!("windows of {size} positions are longer than axis {axis}: {}", counted(count, "position"))
        };
        return Err(select.refuse(&detail));
    }
    let most = (select.dataset.file.options.limits.table_bytes / 4).min(u32::MAX.into());
    if !span.rolling && count > most {
        return Err(select.refuse(&format!("{count} positions in bins, but at most {most} can be")));
    }
    Ok(span.role(count))
}
