//! Arrays as tables: a row per position of the outer axes, a column per position of the last axis.

use std::collections::BTreeSet;

use tercet::core::escape;
use tercet::core::tensor::AxisSlice;
use tercet::tet::{Coordinates, Dataset};

use super::result::{AnswerContext, List, Operation, Write, member};
use crate::render::Table;

/// Rows printed of a table.
const ROWS: usize = 32;
/// Columns printed of the last axis.
const COLUMNS: usize = 8;

/// An axis of a table.
pub(super) struct Head<'a> {
    pub(super) name: String,
    extent: usize,
    labels: Labels<'a>,
}

/// The labels of the positions of an axis.
enum Labels<'a> {
    Numbers,
    Selected { slice: AxisSlice, coordinates: Option<Coordinates> },
    Groups(Vec<&'a str>),
}

impl<'a> Head<'a> {
    /// An axis whose positions are numbers.
    pub(super) fn numbered(name: impl Into<String>, extent: u64) -> Self {
        Self { name: name.into(), extent: to_usize(extent), labels: Labels::Numbers }
    }

    /// The selected positions of an axis of a dataset.
    fn selected(dataset: &Dataset<'a>, axis: usize, slice: AxisSlice) -> Self {
        // Coordinates that cannot be read are not shown: the values are.
        let labels = Labels::Selected { slice, coordinates: dataset.coordinates(axis).ok().flatten() };
        Self { name: axis_name(Some(dataset), axis), extent: to_usize(slice.count()), labels }
    }

    /// The groups of an axis, if its labels make that many.
    fn grouped(dataset: &Dataset<'a>, axis: usize, slice: AxisSlice, groups: u64) -> Option<Self> {
        let labels = dataset.labels(axis)?;
        let step = usize::try_from(slice.step).ok()?;
        let selected = labels.get(usize::try_from(slice.start).ok()?..usize::try_from(slice.stop).ok()?)?;
        let mut seen = BTreeSet::new();
        let distinct = selected.iter().map(String::as_str).step_by(step).filter(|label| seen.insert(*label));
        let words: Vec<&str> = distinct.collect();
        let fits = words.len() as u64 == groups;
        let (name, extent) = (axis_name(Some(dataset), axis), words.len());
        fits.then_some(Self { name, extent, labels: Labels::Groups(words) })
    }

    /// The label of a position.
    pub(super) fn label(&self, at: usize) -> String {
        match &self.labels {
            Labels::Numbers => at.to_string(),
            Labels::Groups(words) => {
                words.get(at).map_or_else(|| at.to_string(), |label| escape::name(label).into_owned())
            }
            Labels::Selected { slice, coordinates } => {
                let position = slice.start.saturating_add((at as u64).saturating_mul(slice.step));
                let coordinates = coordinates.as_ref().filter(|all| position < all.len() as u64);
                match coordinates {
                    Some(all) => escape::name(&all.text(to_usize(position))).into_owned(),
                    None => position.to_string(),
                }
            }
        }
    }
}

fn to_usize(extent: u64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

/// The name of an axis.
pub(super) fn axis_name(dataset: Option<&Dataset<'_>>, axis: usize) -> String {
    let name = dataset.and_then(|dataset| dataset.axis_name(axis)).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("axis {axis}"), |name| escape::name(name).into_owned())
}

/// The axes of the selection.
pub(super) fn selection_heads<'a>(context: &AnswerContext<'a>) -> Vec<Head<'a>> {
    let (Some(plan), Some(dataset)) = (&context.answer.read_plan, context.dataset()) else {
        return Vec::new();
    };
    let slices = plan.selection().axes().iter().enumerate();
    slices.map(|(axis, slice)| Head::selected(&dataset, axis, *slice)).collect()
}

/// The axes of a result of these extents.
pub(super) fn result_heads<'a>(
    context: &AnswerContext<'a>,
    operation: &Operation<'_>,
    shape: &[u64],
) -> Vec<Head<'a>> {
    known_heads(context, operation, shape).unwrap_or_else(|| {
        let axes = shape.iter().enumerate();
        axes.map(|(axis, extent)| Head::numbered(axis_name(None, axis), *extent)).collect()
    })
}

fn known_heads<'a>(
    context: &AnswerContext<'a>,
    operation: &Operation<'_>,
    shape: &[u64],
) -> Option<Vec<Head<'a>>> {
    let (plan, dataset) = (context.answer.read_plan.as_ref()?, context.dataset()?);
    let reduced = operation.axis_numbers();
    let window = window_axis(context, &dataset);
    let slices = plan.selection().axes().iter().enumerate();
    let kept: Vec<_> = slices.filter(|(axis, _)| !reduced.contains(axis) || window == Some(*axis)).collect();
    if kept.len() != shape.len() {
        return None;
    }
    let heads = kept.into_iter().zip(shape).map(|((axis, slice), extent)| {
        if window == Some(axis) {
            return Head::numbered(format!("{} window", axis_name(Some(&dataset), axis)), *extent);
        }
        if slice.count() == *extent {
            return Head::selected(&dataset, axis, *slice);
        }
        Head::grouped(&dataset, axis, *slice, *extent)
            .unwrap_or_else(|| Head::numbered(axis_name(Some(&dataset), axis), *extent))
    });
    Some(heads.collect())
}

/// The axis that windows move along.
fn window_axis(context: &AnswerContext<'_>, dataset: &Dataset<'_>) -> Option<usize> {
    let axis = member(context.query, "window")?.get("axis")?;
    match axis.as_str() {
        None => usize::try_from(axis.as_u64()?).ok(),
        Some(word) => {
            let named = (0..dataset.shape().len()).find(|axis| dataset.axis_name(*axis) == Some(word));
            named.or_else(|| word.parse().ok())
        }
    }
}

/// The label on each axis of a flat position in row-major order.
pub(super) fn position_labels(heads: &[Head<'_>], mut number: usize) -> Vec<String> {
    let mut labels: Vec<String> = Vec::with_capacity(heads.len());
    for head in heads.iter().rev() {
        let extent = head.extent.max(1);
        labels.push(head.label(number % extent));
        number /= extent;
    }
    labels.reverse();
    labels
}

/// A table and what it omits.
pub(super) struct ArrayTable {
    pub(super) title: Option<String>,
    pub(super) table: Table,
    pub(super) omitted: Option<String>,
}

/// Formats arrays of one shape. One-dimensional arrays share a table.
pub(super) fn tables(heads: &[Head<'_>], lists: &[(&str, List<'_>)], write: Write) -> Vec<ArrayTable> {
    match heads {
        [] => Vec::new(),
        [head] => vec![columns(head, lists, write)],
        [outer @ .., last] => {
            let title = |name: &str| (lists.len() > 1).then(|| name.to_owned());
            let one = |(name, list): &(&str, List<'_>)| matrix(title(name), outer, last, *list, write);
            lists.iter().map(one).collect()
        }
    }
}

fn columns(head: &Head<'_>, lists: &[(&str, List<'_>)], write: Write) -> ArrayTable {
    let mut names = vec![head.name.clone()];
    names.extend(lists.iter().map(|(name, _)| format!(">{name}")));
    let mut table = table(&names);
    // Positions without a value have no row.
    let total = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(0).min(head.extent);
    let rows = total.min(ROWS);
    for row in 0..rows {
        let cells = lists.iter().map(|(_, list)| list.text(row, write).unwrap_or_default());
        table.row(std::iter::once(head.label(row)).chain(cells));
    }
    ArrayTable { title: None, table, omitted: omitted(rows, total, "rows") }
}

fn matrix(
    title: Option<String>,
    outer: &[Head<'_>],
    last: &Head<'_>,
    list: List<'_>,
    write: Write,
) -> ArrayTable {
    let width = last.extent.max(1);
    let shown = if width > COLUMNS { COLUMNS - 1 } else { width };
    let dots = || (shown < width).then(|| "…".to_owned());
    let mut names: Vec<String> = outer.iter().map(|head| head.name.clone()).collect();
    if let Some(corner) = names.last_mut() {
        *corner = format!("{corner} \\ {}", last.name);
    }
    names.extend((0..shown).map(|column| format!(">{}", last.label(column))));
    names.extend(dots());
    let mut table = table(&names);
    let total = list.len().div_ceil(width);
    let rows = total.min(ROWS);
    for row in 0..rows {
        let text = |column| list.text(row * width + column, write).unwrap_or_default();
        table.row(position_labels(outer, row).into_iter().chain((0..shown).map(text)).chain(dots()));
    }
    let parts = [omitted(rows, total, "rows"), omitted(shown, width, "columns")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    ArrayTable { title, table, omitted: (!parts.is_empty()).then(|| parts.join(", ")) }
}

fn table(names: &[String]) -> Table {
    Table::new(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn omitted(shown: usize, total: usize, what: &str) -> Option<String> {
    (shown < total).then(|| format!("{shown} of {total} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::significant;

    fn numbers(len: u16) -> Vec<f64> {
        (0..len).map(f64::from).collect()
    }

    #[test]
    fn positions_are_those_of_the_array() {
        let letters = Coordinates::from_labels(["a", "b", "c", "d", "e"].map(str::to_owned).to_vec());
        let slice = AxisSlice { start: 1, stop: 5, step: 2 };
        let head = |coordinates| {
            let labels = Labels::Selected { slice, coordinates };
            Head { name: "x".into(), extent: 2, labels }
        };
        assert_eq!(position_labels(&[head(Some(letters)), head(None)], 2), ["d", "1"]);
        assert_eq!(position_labels(&[Head::numbered("y", 3), head(None)], 5), ["2", "3"]);
    }

    #[test]
    fn long_and_wide_tables_report_what_they_omit() {
        let values = numbers(1000);
        let all = [("mean", List::Numbers(&values))];
        let long = tables(&[Head::numbered("x", 1000)], &all, significant);
        assert_eq!(long[0].omitted.as_deref(), Some("32 of 1000 rows"));
        let wide = tables(&[Head::numbered("x", 50), Head::numbered("y", 20)], &all, significant);
        assert_eq!(wide[0].omitted.as_deref(), Some("32 of 50 rows, 7 of 20 columns"));
        assert!(wide[0].table.to_string().contains("x \\ y"));
        let part = tables(&[Head::numbered("x", 300), Head::numbered("y", 400)], &all, significant);
        assert_eq!(
            part[0].omitted.as_deref(),
            Some("7 of 400 columns"),
            "rows without values are not counted"
        );
    }
}
