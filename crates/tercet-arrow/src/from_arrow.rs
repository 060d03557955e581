//! Conversion of Arrow arrays to columns.

use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, PrimitiveArray};
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::{DataType, TimeUnit};
use tercet_tatami::{Bitmap, Column, Field, Lists, Strings, Type, Values};

use crate::error::ValueError;
use crate::half;
use crate::options::Timestamps;
use crate::string_arrays;

/// Options of the conversion.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conversion {
    pub(crate) timestamps: Timestamps,
}

/// A row of the array, 0-based, and the error in it.
pub(crate) type RowError = (usize, ValueError);

/// Converts an array to a column of a field.
pub(crate) fn column(array: &ArrayRef, field: &Field, conversion: Conversion) -> Result<Column, RowError> {
    let column = if field.kind == Type::List {
        list(array, &Field::new("", field.scalar()), conversion)?
    } else {
        scalars(array, field.kind, conversion)?
    };
    if !field.nullable && column.nulls() > 0 {
        let row = (0..column.len()).find(|row| !column.is_present(*row)).unwrap_or(0);
        return Err((row, ValueError::UnexpectedNull));
    }
    Ok(column)
}

/// Converts an array of scalars.
fn scalars(array: &ArrayRef, kind: Type, conversion: Conversion) -> Result<Column, RowError> {
    if let DataType::Dictionary(..) = array.data_type() {
        return dictionary(array, kind, conversion);
    }
    let values = match array.data_type() {
        // All rows are null.
        DataType::Null => {
            let validity = Bitmap::filled(array.len(), false);
            return Ok(Column::new(Values::Int32(vec![0; array.len()])).with_validity(validity));
        }
        DataType::Boolean => {
            let bools = array.as_boolean();
            Values::Bool((0..bools.len()).map(|row| bools.is_valid(row) && bools.value(row)).collect())
        }
        DataType::Int8 => Values::Int8(copied::<Int8Type>(array)),
        DataType::Int16 => Values::Int16(copied::<Int16Type>(array)),
        DataType::Int32 => Values::Int32(copied::<Int32Type>(array)),
        DataType::Int64 => Values::Int64(copied::<Int64Type>(array)),
        DataType::UInt8 => Values::UInt8(copied::<UInt8Type>(array)),
        DataType::UInt16 => Values::UInt16(copied::<UInt16Type>(array)),
        DataType::UInt32 => Values::UInt32(copied::<UInt32Type>(array)),
        DataType::UInt64 => Values::UInt64(copied::<UInt64Type>(array)),
        DataType::Float16 => {
            Values::Float32(copied::<Float16Type>(array).into_iter().map(half::widen).collect())
        }
        DataType::Float32 => Values::Float32(copied::<Float32Type>(array)),
        DataType::Float64 => Values::Float64(copied::<Float64Type>(array)),
        DataType::Date32 => Values::Int32(copied::<Date32Type>(array)),
        DataType::Date64 => Values::Int64(copied::<Date64Type>(array)),
        DataType::Time32(TimeUnit::Second) => Values::Int32(copied::<Time32SecondType>(array)),
        DataType::Time32(_) => Values::Int32(copied::<Time32MillisecondType>(array)),
        DataType::Time64(TimeUnit::Microsecond) => Values::Int64(copied::<Time64MicrosecondType>(array)),
        DataType::Time64(_) => Values::Int64(copied::<Time64NanosecondType>(array)),
        DataType::Duration(TimeUnit::Second) => Values::Int64(copied::<DurationSecondType>(array)),
        DataType::Duration(TimeUnit::Millisecond) => Values::Int64(copied::<DurationMillisecondType>(array)),
        DataType::Duration(TimeUnit::Microsecond) => Values::Int64(copied::<DurationMicrosecondType>(array)),
        DataType::Duration(TimeUnit::Nanosecond) => Values::Int64(copied::<DurationNanosecondType>(array)),
        DataType::Timestamp(unit, _) => Values::Int64(times(array, *unit, conversion.timestamps)?),
        DataType::Decimal32(..) => Values::Int32(copied::<Decimal32Type>(array)),
        DataType::Decimal64(..) => Values::Int64(copied::<Decimal64Type>(array)),
        DataType::Decimal128(..) => {
            let push = |value: i128, out: &mut Strings| out.push(&value.to_be_bytes());
            digits(array.as_primitive::<Decimal128Type>(), kind, push, |value| i64::try_from(value).ok())?
        }
        DataType::Decimal256(..) => {
            let push = |value: i256, out: &mut Strings| out.push(&value.to_be_bytes());
            let number = |value: i256| value.to_i128().and_then(|value| i64::try_from(value).ok());
            digits(array.as_primitive::<Decimal256Type>(), kind, push, number)?
        }
        _ => Values::Bytes(string_arrays::from_arrow(array).unwrap_or_default()),
    };
    Ok(Column { values, validity: validity(array.nulls()) })
}

/// The values of a primitive array; zero for null rows.
fn copied<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<T::Native> {
    zeroed(array.as_primitive::<T>())
}

fn zeroed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<T::Native> {
    let mut values = array.values().to_vec();
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (value, is_valid) in values.iter_mut().zip(nulls.iter()) {
            if !is_valid {
                *value = T::Native::default();
            }
        }
    }
    values
}

fn validity(nulls: Option<&NullBuffer>) -> Option<Bitmap> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    let bits = nulls.inner().sliced();
    let mut bytes = bits.as_slice().get(..nulls.len().div_ceil(8))?.to_vec();
    if !nulls.len().is_multiple_of(8)
        && let Some(last) = bytes.last_mut()
    {
        *last &= (1 << (nulls.len() % 8)) - 1;
    }
    Bitmap::from_bytes(&bytes, nulls.len())
}

/// Timestamps in microseconds.
fn times(array: &ArrayRef, unit: TimeUnit, timestamps: Timestamps) -> Result<Vec<i64>, RowError> {
    let (values, per_micro, micros_per, name) = match unit {
        TimeUnit::Second => (copied::<TimestampSecondType>(array), 1, 1_000_000, "s"),
        TimeUnit::Millisecond => (copied::<TimestampMillisecondType>(array), 1, 1_000, "ms"),
        TimeUnit::Microsecond => return Ok(copied::<TimestampMicrosecondType>(array)),
        TimeUnit::Nanosecond => (copied::<TimestampNanosecondType>(array), 1_000, 1, "ns"),
    };
    if timestamps == Timestamps::Raw {
        return Ok(values);
    }
    let scaled = |(row, value): (usize, i64)| {
        if per_micro > 1 {
            if timestamps == Timestamps::Exact && value % per_micro != 0 {
                return Err((row, ValueError::SubMicrosecond { value, unit: name }));
            }
            return Ok(value.div_euclid(per_micro));
        }
        value.checked_mul(micros_per).ok_or((row, ValueError::TimestampOverflow { value, unit: name }))
    };
    values.into_iter().enumerate().map(scaled).collect()
}

/// Unscaled decimals: as integers if they fit, otherwise as big-endian bytes.
fn digits<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    kind: Type,
    push: impl Fn(T::Native, &mut Strings),
    number: impl Fn(T::Native) -> Option<i64>,
) -> Result<Values, RowError> {
    let values = zeroed(array);
    let too_long = |row: usize| {
        let value = format!("{:?}", array.value(row));
        (row, ValueError::PrecisionOverflow { value, type_name: array.data_type().to_string() })
    };
    let numbers = values.iter().enumerate();
    Ok(match kind {
        Type::Int32 => Values::Int32(
            numbers
                .map(|(row, value)| {
                    number(*value).and_then(|value| i32::try_from(value).ok()).ok_or_else(|| too_long(row))
                })
                .collect::<Result<_, _>>()?,
        ),
        Type::Int64 => Values::Int64(
            numbers
                .map(|(row, value)| number(*value).ok_or_else(|| too_long(row)))
                .collect::<Result<_, _>>()?,
        ),
        _ => {
            let mut strings = Strings::new();
            for (row, value) in numbers {
                if array.is_valid(row) {
                    push(*value, &mut strings);
                } else {
                    strings.push(&[]);
                }
            }
            Values::Bytes(strings)
        }
    })
}

/// Decodes a dictionary array.
fn dictionary(array: &ArrayRef, kind: Type, conversion: Conversion) -> Result<Column, RowError> {
    let coded = array.as_any_dictionary();
    let nulls = array.logical_nulls();
    if coded.values().is_empty() {
        let mut column = Column::empty(&Field::new("", kind));
        column.values.push_zeros(array.len());
        return Ok(column.with_validity(Bitmap::filled(array.len(), false)));
    }
    let values = scalars(coded.values(), kind, conversion)?;
    let mut column = values.take(&coded.normalized_keys());
    if let Some(validity) = validity(nulls.as_ref()) {
        column = blanked(&column, &validity, kind).with_validity(validity);
    }
    Ok(column)
}

/// The same values with zero or empty values for null rows.
fn blanked(column: &Column, validity: &Bitmap, kind: Type) -> Column {
    let mut out = Column::empty(&Field::new("", kind));
    let mut from = 0;
    for row in (0..column.len()).filter(|row| !validity.get(*row)) {
        out.extend_from(column, from, row);
        out.values.push_zeros(1);
        from = row + 1;
    }
    out.extend_from(column, from, column.len());
    out.validity = None;
    out
}

fn list(array: &ArrayRef, element: &Field, conversion: Conversion) -> Result<Column, RowError> {
    let (values, ranges): (ArrayRef, Vec<Range<usize>>) = match array.data_type() {
        DataType::List(_) => ranges(array.as_list::<i32>()),
        DataType::LargeList(_) => ranges(array.as_list::<i64>()),
        DataType::FixedSizeList(..) => {
            let lists = array.as_fixed_size_list();
            let len = usize::try_from(lists.value_length()).unwrap_or(0);
            (lists.values().clone(), (0..lists.len()).map(|row| row * len..(row + 1) * len).collect())
        }
        DataType::ListView(_) => {
            let lists = array.as_list_view::<i32>();
            (lists.values().clone(), views(lists.value_offsets(), lists.value_sizes()))
        }
        _ => {
            let lists = array.as_list_view::<i64>();
            (lists.values().clone(), views(lists.value_offsets(), lists.value_sizes()))
        }
    };
    let elements = scalars(&values, element.kind, conversion);
    let elements = elements.map_err(|(at, reason)| {
        let row = ranges.iter().position(|range| range.contains(&at)).unwrap_or(0);
        (row, reason)
    })?;
    let validity = validity(array.nulls());
    let is_present = |row: usize| validity.as_ref().is_none_or(|validity| validity.get(row));
    // A null row may refer to elements in Arrow; they are dropped.
    let mut ends = Vec::with_capacity(ranges.len());
    let (mut end, mut is_dense) = (0, true);
    for (row, range) in ranges.iter().enumerate() {
        if is_present(row) {
            is_dense &= range.is_empty() || range.start == end;
            end += range.len();
        }
        ends.push(end as u64);
    }
    let elements = if is_dense && end == elements.len() {
        elements
    } else {
        let wanted = ranges.iter().enumerate().filter(|(row, _)| is_present(*row));
        elements.take(&wanted.flat_map(|(_, range)| range.clone()).collect::<Vec<_>>())
    };
    Ok(Column { values: Values::List(Box::new(Lists { ends, elements })), validity })
}

/// The range of elements of all rows, and of each row.
fn ranges<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> (ArrayRef, Vec<Range<usize>>) {
    let offsets = lists.value_offsets();
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    let (first, last) = (at(0), at(lists.len()));
    let ranges = (0..lists.len()).map(|row| at(row) - first..at(row + 1) - first).collect();
    (lists.values().slice(first, last - first), ranges)
}

fn views<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O]) -> Vec<Range<usize>> {
    offsets
        .iter()
        .zip(sizes)
        .map(|(offset, size)| offset.as_usize()..offset.as_usize() + size.as_usize())
        .collect()
}
