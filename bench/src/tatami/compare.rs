//! Comparison of the values of both sides.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimestampMicrosecondType, UInt16Type};
use tercet_tatami::{Column, Values};

/// The first row where a column and an array differ; the number of rows if one is shorter.
pub fn difference(column: &Column, array: &ArrayRef) -> Option<usize> {
    if column.len() != array.len() {
        return Some(column.len().min(array.len()));
    }
    if column.nulls() != 0 || array.null_count() != 0 {
        return Some(0);
    }
    let numbers = |same: bool| if same { None } else { Some(0) };
    match (&column.values, array.data_type()) {
        (Values::Int64(ours), DataType::Int64) => {
            numbers(ours[..] == array.as_primitive::<Int64Type>().values()[..])
        }
        (Values::Int32(ours), DataType::Int32) => {
            numbers(ours[..] == array.as_primitive::<Int32Type>().values()[..])
        }
        (Values::UInt16(ours), DataType::UInt16) => {
            numbers(ours[..] == array.as_primitive::<UInt16Type>().values()[..])
        }
        (Values::Int64(ours), DataType::Timestamp(..)) => {
            numbers(ours[..] == array.as_primitive::<TimestampMicrosecondType>().values()[..])
        }
        (Values::Bytes(ours), kind) => {
            let theirs: Box<dyn Iterator<Item = &[u8]>> = match kind {
                DataType::Utf8 => Box::new(array.as_string::<i32>().iter().flatten().map(str::as_bytes)),
                DataType::Utf8View => Box::new(array.as_string_view().iter().flatten().map(str::as_bytes)),
                DataType::Binary => Box::new(array.as_binary::<i32>().iter().flatten()),
                _ => return Some(0),
            };
            ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs)
        }
        _ => Some(0),
    }
}

/// Panics where a column and an array differ.
pub fn assert_same(what: &str, columns: &[Column], arrays: &[ArrayRef]) {
    assert_eq!(columns.len(), arrays.len(), "{what}: the number of columns");
    for (index, (column, array)) in columns.iter().zip(arrays).enumerate() {
        let row = difference(column, array);
        assert!(row.is_none(), "{what}: column {index} differs from row {row:?} on");
    }
}
