//! Results as text: one line for one value, tables for arrays.

use tercet::core::escape;
use tercet::core::num::{counted, saturating_usize};
use tercet::tet::{ResultArray, ResultDim, ResultValues, Results};

use super::query::element;
use crate::failure::Failure;
use crate::render::{Table, exact, human_size, significant};
use crate::ui::{DIM, HEADING, Ui, paint};

/// Rows printed by default.
pub(crate) const ROWS: u64 = 32;
/// Columns printed of the last dimension.
const COLUMNS: usize = 8;
/// Maximum width of a histogram bar.
const BAR: f64 = 24.0;

/// Prints results, of tables at most `limit` rows.
pub(crate) fn print(results: &Results, limit: u64, out: &mut Ui) -> Result<(), Failure> {
    let limit = saturating_usize(limit);
    if results.arrays.iter().all(|array| array.dims.is_empty()) {
        return print_scalars(results, out);
    }
    let (lists, others): (Vec<_>, Vec<_>) =
        results.arrays.iter().partition(|array| array.dims.len() == 1 && array.edges.is_none());
    let same = lists.windows(2).all(|pair| pair[0].dims[0].name == pair[1].dims[0].name);
    if same {
        print_columns(&lists, limit, out)?;
    } else {
        lists.iter().try_for_each(|list| print_columns(&[list], limit, out))?;
    }
    for array in others {
        if !out.is_quiet() && array.edges.is_none() {
            out.line(paint(HEADING, format_args!("{}:", title(array))))?;
        }
        match (&array.dims[..], &array.edges) {
            ([], _) => out.line(text(array, 0, significant))?,
            ([_], Some(edges)) => print_histogram(array, edges, limit, out)?,
            _ => print_matrix(array, limit, out)?,
        }
    }
    out.summary(paint(DIM, about(results)))
}

/// One line for each value.
fn print_scalars(results: &Results, out: &mut Ui) -> Result<(), Failure> {
    let dataset = escape::name(&results.dataset);
    for (number, array) in results.arrays.iter().enumerate() {
        if out.is_quiet() {
            out.line(text(array, 0, exact))?;
            continue;
        }
        let units = array.units().map(|units| format!(" {}", escape::name(units))).unwrap_or_default();
        let units = if units == " 1" { String::new() } else { units };
        let note = if number == 0 { format!("  ({})", counts(results)) } else { String::new() };
        let value = text(array, 0, significant);
        out.line(format_args!("{} of {dataset}: {value}{units}{}", array.name, paint(DIM, note)))?;
    }
    Ok(())
}

/// `mean [K]`
fn title(array: &ResultArray) -> String {
    let name = escape::name(&array.name);
    match array.units().filter(|units| *units != "1") {
        Some(units) => format!("{name} [{}]", escape::name(units)),
        None => name.into_owned(),
    }
}

/// How many values were used and skipped.
fn counts(results: &Results) -> String {
    let values = counted(results.elements, "value");
    let mut parts = vec![values];
    for [below, above] in results.arrays.iter().filter_map(|array| array.outside) {
        for (count, side) in [(below, "below"), (above, "above")].into_iter().filter(|(count, _)| *count > 0)
        {
            parts.push(format!("{count} {side} the range"));
        }
    }
    for nan in results.arrays.iter().filter_map(|array| array.nan).filter(|nan| *nan > 0) {
        parts.push(format!("{nan} NaN in no bin"));
    }
    if results.skipped > 0 {
        parts.push(format!("{} skipped", counted(results.skipped, "missing value")));
    }
    parts.join(", ")
}

fn about(results: &Results) -> String {
    let read = results.execution.as_ref().map(|execution| match execution.bytes_read {
        0 => "; read nothing but chunk statistics".to_owned(),
        bytes => format!("; read {}", human_size(bytes)),
    });
    let single = results
        .single
        .iter()
        .map(|(name, coordinates)| format!("{}={}", escape::name(name), escape::name(&coordinates.text(0))));
    let parts: Vec<String> = single.chain([counts(results)]).collect();
    format!("({}{})", parts.join(", "), read.unwrap_or_default())
}

fn print_columns(arrays: &[&ResultArray], limit: usize, out: &mut Ui) -> Result<(), Failure> {
    let Some(first) = arrays.first() else { return Ok(()) };
    let mut heads = vec![escape::name(&first.dims[0].name).into_owned()];
    heads.extend(arrays.iter().map(|array| format!(">{}", title(array))));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    let total = first.len();
    for row in 0..total.min(limit) {
        let cells = arrays.iter().map(|array| text(array, row, significant));
        table.row(std::iter::once(label(&first.dims[0], row)).chain(cells));
    }
    out.line(table)?;
    omitted(total, limit, "rows", out)
}

fn print_histogram(array: &ResultArray, edges: &[f64], limit: usize, out: &mut Ui) -> Result<(), Failure> {
    let ResultValues::Numbers(tensor) = &array.values else { return Ok(()) };
    let counts: Vec<i64> = tensor.to_vec().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "the length of a bar")]
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let mut table = Table::new(&[">from", ">to", ">count", ""]);
    for (bin, &count) in counts.iter().enumerate().take(limit) {
        let edge = |at: usize| edges.get(at).map(|edge| significant(*edge)).unwrap_or_default();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the width of a bar"
        )]
        let bar = "▇".repeat((count as f64 / most * BAR).round() as usize);
        table.row([edge(bin), edge(bin + 1), count.to_string(), bar]);
    }
    out.line(table)?;
    omitted(counts.len(), limit, "bins", out)
}

/// One row per position of the outer dimensions, one column per position of the last one.
fn print_matrix(array: &ResultArray, limit: usize, out: &mut Ui) -> Result<(), Failure> {
    let Some((last, outer)) = array.dims.split_last() else { return Ok(()) };
    let width = saturating_usize(last.len).max(1);
    let shown = if width > COLUMNS { COLUMNS - 1 } else { width };
    let dots = || (shown < width).then(|| "…".to_owned());
    let mut heads: Vec<String> = outer.iter().map(|dim| escape::name(&dim.name).into_owned()).collect();
    let corner = format!(
        "{}{}",
        heads.pop().map(|name| format!("{name} \\ ")).unwrap_or_default(),
        escape::name(&last.name)
    );
    heads.push(corner);
    heads.extend((0..shown).map(|column| format!(">{}", label(last, column))));
    heads.extend(dots());
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    let total = array.len() / width;
    for row in 0..total.min(limit) {
        let mut rest = row;
        let mut labels: Vec<String> = Vec::with_capacity(outer.len());
        for dim in outer.iter().rev() {
            let extent = saturating_usize(dim.len).max(1);
            labels.push(label(dim, rest % extent));
            rest /= extent;
        }
        labels.reverse();
        let cells = (0..shown).map(|column| text(array, row * width + column, significant));
        table.row(labels.into_iter().chain(cells).chain(dots()));
    }
    out.line(table)?;
    omitted(total, limit, "rows", out)?;
    if shown < width && !out.is_quiet() {
        let text = format!("({shown} of {width} columns; `-o FILE` writes all)");
        out.line(paint(DIM, text))?;
    }
    Ok(())
}

fn omitted(total: usize, limit: usize, what: &str, out: &mut Ui) -> Result<(), Failure> {
    if total <= limit || out.is_quiet() {
        return Ok(());
    }
    out.line(paint(DIM, format_args!("({limit} of {total} {what}; `-n 0` prints all)")))
}

/// The label of a position of a dimension.
fn label(dim: &ResultDim, position: usize) -> String {
    match dim.coordinates.as_ref().filter(|coordinates| position < coordinates.len()) {
        Some(coordinates) => escape::name(&coordinates.text(position)).into_owned(),
        None => position.to_string(),
    }
}

/// A value as text.
fn text(array: &ResultArray, at: usize, write: fn(f64) -> String) -> String {
    match &array.values {
        ResultValues::Numbers(tensor) => element(tensor, at, write).unwrap_or_default(),
        ResultValues::Flags(tensor) => {
            let flag = tensor.as_slice::<u8>().and_then(|flags| flags.get(at));
            flag.is_some_and(|&flag| flag > 0).to_string()
        }
        ResultValues::Positions(axes) => {
            let place = |axis: &tercet::tet::AxisPositions| {
                let text = axis.text(at).map(|text| escape::name(&text).into_owned());
                let text = text.unwrap_or_else(|| "none".to_owned());
                if axes.len() > 1 { format!("{}={text}", escape::name(&axis.axis)) } else { text }
            };
            let places: Vec<String> = axes.iter().map(place).collect();
            let index = |axis: &tercet::tet::AxisPositions| axis.index(at).map(|index| index.to_string());
            let indices: Option<Vec<String>> = axes.iter().map(index).collect();
            // Tables with many columns have no room for positions.
            match indices.filter(|_| array.dims.len() < 2) {
                Some(indices) => format!("{} (position {})", places.join(", "), indices.join(", ")),
                None => places.join(", "),
            }
        }
        _ => String::new(),
    }
}
