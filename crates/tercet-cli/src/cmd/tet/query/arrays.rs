//! Arrays as tables: a row per position of the outer axes, a column per position of the last axis.

use tercet::core::escape;
use tercet::tet::{Coordinates, Dataset, Dim, Request};

use super::result::{List, Operation, Write};
use crate::render::Table;

/// Rows printed of a table.
const ROWS: usize = 32;
/// Columns printed of the last axis.
const COLUMNS: usize = 8;

/// An axis of a table.
pub(super) struct Head {
    pub(super) name: String,
    extent: usize,
    coordinates: Option<Coordinates>,
}

impl Head {
    /// An axis whose positions are numbers.
    pub(super) fn numbered(name: impl Into<String>, extent: u64) -> Self {
        Self { name: name.into(), extent: to_usize(extent), coordinates: None }
    }

    fn new(dim: &Dim, axis: usize) -> Self {
        let name = display_name(dim.name.as_deref(), axis);
        Self { name, extent: to_usize(dim.len), coordinates: dim.coordinates.clone() }
    }

    /// The label of a position.
    pub(super) fn label(&self, at: usize) -> String {
        match self.coordinates.as_ref().filter(|coordinates| at < coordinates.len()) {
            Some(coordinates) => escape::name(&coordinates.text(at)).into_owned(),
            None => at.to_string(),
        }
    }
}

fn to_usize(extent: u64) -> usize {
    usize::try_from(extent).unwrap_or(usize::MAX)
}

fn display_name(name: Option<&str>, axis: usize) -> String {
    let name = name.filter(|name| !name.is_empty());
    name.map_or_else(|| format!("axis {axis}"), |name| escape::name(name).into_owned())
}

/// The name of an axis.
pub(super) fn axis_name(dataset: Option<&Dataset<'_>>, axis: usize) -> String {
    display_name(dataset.and_then(|dataset| dataset.axis_name(axis)), axis)
}

/// The axes of the selection.
pub(super) fn selection_heads(request: &Request<'_>) -> Vec<Head> {
    // Coordinates that cannot be read are not shown: the values are.
    let dims = request.selection_dims().unwrap_or_default();
    dims.iter().enumerate().map(|(axis, dim)| Head::new(dim, axis)).collect()
}

/// The axes of the results of a request; of the statistics of a transform.
pub(super) fn result_heads(request: &Request<'_>, operation: &Operation) -> Vec<Head> {
    if operation.is_transform() {
        let reduced = operation.axis_numbers();
        let heads = selection_heads(request).into_iter().enumerate();
        return heads.filter(|(axis, _)| !reduced.contains(axis)).map(|(_, head)| head).collect();
    }
    let axes = request.dims().iter().zip(request.output_axes());
    let heads = axes.map(|(dim, axis)| match request.window_axis() {
        Some(window) if window == axis => {
            Head::numbered(format!("{} window", display_name(dim.name.as_deref(), axis)), dim.len)
        }
        _ => Head::new(dim, axis),
    });
    heads.collect()
}

/// The label on each axis of a flat position in row-major order.
pub(super) fn position_labels(heads: &[Head], mut number: usize) -> Vec<String> {
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
pub(super) fn tables(heads: &[Head], lists: &[(&str, List<'_>)], write: Write) -> Vec<ArrayTable> {
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

fn columns(head: &Head, lists: &[(&str, List<'_>)], write: Write) -> ArrayTable {
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

fn matrix(title: Option<String>, outer: &[Head], last: &Head, list: List<'_>, write: Write) -> ArrayTable {
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
        let letters = Coordinates::from_labels(["b", "d"].map(str::to_owned).to_vec());
        let head = |coordinates| Head { name: "x".into(), extent: 2, coordinates };
        assert_eq!(position_labels(&[head(Some(letters)), head(None)], 2), ["d", "0"]);
        assert_eq!(position_labels(&[Head::numbered("y", 3), head(None)], 5), ["2", "1"]);
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
