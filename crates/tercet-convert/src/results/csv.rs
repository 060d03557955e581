//! Results as comma-separated values.

use std::borrow::Cow;
use std::io::{self, Write};

use tercet_core::tensor::f16;
use tercet_core::{DType, Tensor};
use tercet_tet::{LazyValues, ResultArray, ResultDim, ResultValues, Results};

use super::refused;
use crate::Error;

/// Writes a header and one row for each value: its coordinates, then a column for each operation. Values that were not read
/// are in `lazy`.
pub(super) fn write(
    results: &Results,
    lazy: Option<&LazyValues<'_, '_>>,
    out: &mut impl Write,
    name: &str,
) -> Result<(), Error> {
    let Some(first) = results.arrays.first() else { return Ok(()) };
    let names = |array: &ResultArray| array.dims.iter().map(|dim| dim.name.clone()).collect::<Vec<_>>();
    if results.arrays.iter().any(|array| names(array) != names(first) || array.shape() != first.shape()) {
        let detail =
            "the results have different dimensions, and a .csv file is one table; write a .tet or .json file";
        return Err(refused(name, detail.to_owned()));
    }
    let mut table = || -> io::Result<()> {
        let columns: Vec<Column<'_>> = results.arrays.iter().flat_map(|array| columns(array, lazy)).collect();
        let places: Vec<CoordinateColumn<'_>> =
            first.dims.iter().flat_map(|dim| coordinate_columns(first, dim)).collect();
        let heads =
            places.iter().map(|place| place.head.as_str()).chain(columns.iter().map(|it| it.head.as_str()));
        row(out, heads.map(quoted))?;
        let strides = strides(&first.dims);
        for number in 0..first.len() {
            let at = |place: &CoordinateColumn<'_>| {
                let dim = first.dims.iter().position(|dim| std::ptr::eq(dim, place.dim)).unwrap_or(0);
                let extent = usize::try_from(place.dim.len).unwrap_or(usize::MAX).max(1);
                (place.text)(number / strides[dim] % extent)
            };
            let values: Option<Vec<String>> = columns.iter().map(|column| (column.text)(number)).collect();
            // The caller has the error of values that cannot be read.
            let Some(values) = values else { return Ok(()) };
            row(out, places.iter().map(at).chain(values).map(|cell| quoted(&cell).into_owned()))?;
        }
        Ok(())
    };
    table().map_err(|error| tercet_tet::Error::new(name.into(), error.into()).into())
}

/// A column with the values of a result.
struct Column<'a> {
    head: String,
    /// `None` if the value cannot be read.
    text: Box<dyn Fn(usize) -> Option<String> + 'a>,
}

/// A column with the coordinates of a dimension.
struct CoordinateColumn<'a> {
    head: String,
    dim: &'a ResultDim,
    text: Box<dyn Fn(usize) -> String + 'a>,
}

fn columns<'a>(array: &'a ResultArray, lazy: Option<&'a LazyValues<'_, '_>>) -> Vec<Column<'a>> {
    let head = array.name.clone();
    match &array.values {
        ResultValues::Numbers(tensor) => {
            vec![Column { head, text: Box::new(move |at| Some(element(tensor, at))) }]
        }
        ResultValues::Unread(_) => {
            let text = move |at: usize| lazy.and_then(|values| values.with(at as u64, element));
            vec![Column { head, text: Box::new(text) }]
        }
        ResultValues::Flags(tensor) => {
            let flags = tensor.as_slice::<u8>().unwrap_or_default();
            let text = move |at: usize| Some(flags.get(at).is_some_and(|&flag| flag > 0).to_string());
            vec![Column { head, text: Box::new(text) }]
        }
        ResultValues::Positions(axes) => axes
            .iter()
            .flat_map(|axis| {
                let coordinate = move |at: usize| Some(axis.text(at).unwrap_or_default());
                let index =
                    move |at: usize| Some(axis.index(at).map(|at| at.to_string()).unwrap_or_default());
                [
                    Column { head: format!("{}_{}", array.name, axis.axis), text: Box::new(coordinate) },
                    Column { head: format!("{}_{}_index", array.name, axis.axis), text: Box::new(index) },
                ]
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn coordinate_columns<'a>(array: &'a ResultArray, dim: &'a ResultDim) -> Vec<CoordinateColumn<'a>> {
    let is_bin = std::ptr::eq(dim, array.dims.last().unwrap_or(dim));
    if let Some(edges) = array.edges.as_ref().filter(|_| is_bin) {
        let edge =
            |offset: usize| move |at: usize| edges.get(at + offset).map(f64::to_string).unwrap_or_default();
        return vec![
            CoordinateColumn { head: "from".to_owned(), dim, text: Box::new(edge(0)) },
            CoordinateColumn { head: "to".to_owned(), dim, text: Box::new(edge(1)) },
        ];
    }
    let text = move |at: usize| match &dim.coordinates {
        Some(coordinates) if at < coordinates.len() => coordinates.text(at),
        _ => at.to_string(),
    };
    vec![CoordinateColumn { head: dim.name.clone(), dim, text: Box::new(text) }]
}

/// The number of values of each position of a dimension.
fn strides(dims: &[ResultDim]) -> Vec<usize> {
    let after = |number: usize| dims[number + 1..].iter().map(|dim| dim.len).product::<u64>();
    (0..dims.len()).map(|number| usize::try_from(after(number)).unwrap_or(usize::MAX).max(1)).collect()
}

fn row<T: AsRef<str>>(out: &mut impl Write, cells: impl Iterator<Item = T>) -> io::Result<()> {
    for (number, cell) in cells.enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        out.write_all(cell.as_ref().as_bytes())?;
    }
    out.write_all(b"\n")
}

/// A cell in quotes if it has characters of the format.
fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\"")).into()
    } else {
        cell.into()
    }
}

/// The shortest text of an element.
fn element(tensor: &Tensor, at: usize) -> String {
    macro_rules! text {
        ($type:ty) => {
            tensor.as_slice::<$type>().and_then(|values| values.get(at)).map(ToString::to_string)
        };
    }
    let text = match tensor.dtype() {
        DType::F16 => {
            tensor.as_slice::<f16>().and_then(|values| values.get(at)).map(|half| half.to_f32().to_string())
        }
        DType::F32 => text!(f32),
        DType::F64 => text!(f64),
        DType::I16 => text!(i16),
        DType::I32 => text!(i32),
        DType::I64 => text!(i64),
        DType::U8 => text!(u8),
        DType::U16 => text!(u16),
        DType::U32 => text!(u32),
        DType::U64 => text!(u64),
        _ => None,
    };
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(quoted("oslo"), "oslo");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
