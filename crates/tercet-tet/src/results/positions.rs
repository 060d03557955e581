//! Positions of minima and maxima as coordinates of the reduced axes.

use super::{Request, axis_title};
use crate::compute::{Coordinates, Reduced};
use crate::error::Error;
use crate::query::resolved::Role;

/// The positions of minima or maxima on one reduced axis.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AxisPositions {
    /// The name of the axis, or `dim_0` and so on.
    pub axis: String,
    /// Positions in the selection, row-major over the dimensions of the result; −1 for none.
    pub indices: Vec<i64>,
    /// The coordinates of the selected positions; without coordinates, their numbers in the dataset.
    pub coordinates: Coordinates,
    /// Whether the axis has coordinates.
    pub has_coordinates: bool,
}

impl AxisPositions {
    /// The position of a result in the selection.
    pub fn index(&self, result: usize) -> Option<usize> {
        usize::try_from(*self.indices.get(result)?).ok()
    }

    /// The coordinate of a result as text.
    pub fn text(&self, result: usize) -> Option<String> {
        self.index(result).map(|index| self.coordinates.text(index))
    }
}

impl Request<'_> {
    /// The positions of a result of `arg_min` or `arg_max` on each reduced axis, with their coordinates. Positions within groups
    /// are an error.
    pub fn positions(&self, reduced: &Reduced) -> Result<Vec<AxisPositions>, Error> {
        positions(self, reduced.tensor.as_slice::<i64>().unwrap_or_default())
    }
}

/// Splits flat indices among the reduced axes, and looks their coordinates up.
pub(super) fn positions(request: &Request<'_>, indices: &[i64]) -> Result<Vec<AxisPositions>, Error> {
    let Some(operation) = &request.resolved.operation else { return Ok(Vec::new()) };
    let slices = request.resolved.selection.axes();
    let mut found = Vec::new();
    let mut stride = 1u64;
    for (axis, role) in operation.roles.iter().enumerate().rev() {
        let extent = match role {
            Role::Kept => continue,
            Role::Reduced => slices[axis].count(),
            Role::Rolling(rolling) => rolling.size,
            Role::Grouped(_) => {
                return Err(
                    request.refuse("the position of a minimum or maximum within groups is not defined")
                );
            }
        };
        if request.resolved.dropped.contains(&axis) {
            continue;
        }
        // The number of results after a dimension.
        let number = request.output_axes().iter().position(|&other| other == axis);
        let below: u64 =
            number.map_or(1, |number| request.dims[number + 1..].iter().map(|dim| dim.len).product());
        let place = |(result, &index): (usize, &i64)| -> i64 {
            let Ok(index) = u64::try_from(index) else { return -1 };
            let within = index / stride % extent;
            let start = match role {
                Role::Rolling(rolling) => {
                    let window = result as u64 / below.max(1) % rolling.count.max(1);
                    rolling.first.saturating_add_unsigned(window * rolling.step)
                }
                _ => 0,
            };
            start.saturating_add_unsigned(within)
        };
        let indices = indices.iter().enumerate().map(place).collect();
        let slice = slices[axis];
        let coordinates = request.dataset.readable_coordinates(axis)?;
        let has_coordinates = coordinates.is_some();
        let reversed = request.resolved.reversed[axis];
        let coordinates = coordinates.map_or_else(
            || {
                let number = |at: u64| slice.start + at * slice.step;
                let numbers = (0..slice.count()).map(|at| {
                    let at = if reversed { slice.count() - 1 - at } else { at };
                    number(at).to_string()
                });
                Coordinates::from_labels(numbers.collect())
            },
            |all| all.selected(slice, reversed),
        );
        let axis = axis_title(&request.dataset, axis);
        found.push(AxisPositions { axis, indices, coordinates, has_coordinates });
        stride = stride.saturating_mul(extent);
    }
    found.reverse();
    Ok(found)
}
