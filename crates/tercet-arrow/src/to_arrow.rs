//! Conversion of columns to Arrow arrays. Numeric buffers are moved, not copied.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeListArray, LargeListArray, NullArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use tercet_tatami::{Bitmap, Column, Lists, Strings, Values};

use crate::dictionary::Dictionary;
use crate::error::ValueError;
use crate::from_arrow::RowError;
use crate::{half, string_arrays};

/// Converts a column to an array of a type; `dictionary` continues across batches.
pub(crate) fn array(
    column: Column,
    kind: &DataType,
    dictionary: &mut Dictionary,
) -> Result<ArrayRef, RowError> {
    if let DataType::Dictionary(key, value) = kind {
        return dictionary.coded(&column, key, value);
    }
    let rows = column.len();
    let nulls = nulls(column.validity.as_ref());
    let fixed = Fixed { kind, nulls };
    match (column.values, kind) {
        (_, DataType::Null) => match &fixed.nulls {
            Some(nulls) if nulls.null_count() == rows => Ok(Arc::new(NullArray::new(rows))),
            None if rows == 0 => Ok(Arc::new(NullArray::new(rows))),
            _ => Err((
                0,
                ValueError::PrecisionOverflow { value: "a value".to_owned(), type_name: "null".to_owned() },
            )),
        },
        (Values::Bool(values), _) => {
            Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(values), fixed.nulls)))
        }
        (Values::Int8(values), _) => Ok(fixed.made::<Int8Type>(values)),
        (Values::Int16(values), _) => Ok(fixed.made::<Int16Type>(values)),
        (Values::Int32(values), _) => Ok(int32(values, fixed)),
        (Values::Int64(values), _) => int64(values, fixed),
        (Values::UInt8(values), _) => Ok(fixed.made::<UInt8Type>(values)),
        (Values::UInt16(values), _) => Ok(fixed.made::<UInt16Type>(values)),
        (Values::UInt32(values), _) => Ok(fixed.made::<UInt32Type>(values)),
        (Values::UInt64(values), _) => Ok(fixed.made::<UInt64Type>(values)),
        (Values::Float32(values), DataType::Float16) => {
            let narrow = |(row, value): (usize, f32)| {
                half::narrow(value).ok_or_else(|| (row, ValueError::NotFloat16 { value: value.to_string() }))
            };
            Ok(fixed
                .made::<Float16Type>(values.into_iter().enumerate().map(narrow).collect::<Result<_, _>>()?))
        }
        (Values::Float32(values), _) => Ok(fixed.made::<Float32Type>(values)),
        (Values::Float64(values), _) => Ok(fixed.made::<Float64Type>(values)),
        (Values::Bytes(strings), kind) => bytes(strings, kind, fixed.nulls),
        (Values::List(lists), DataType::LargeList(field)) => {
            let elements = array(lists.elements, field.data_type(), dictionary);
            let elements = elements.map_err(|(at, reason)| {
                let row = lists.ends.iter().position(|end| at < usize::try_from(*end).unwrap_or(usize::MAX));
                (row.unwrap_or(0), reason)
            })?;
            let ends = lists.ends.iter().map(|end| i64::try_from(*end).unwrap_or(i64::MAX));
            let offsets: Vec<i64> = std::iter::once(0).chain(ends).collect();
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Ok(Arc::new(LargeListArray::new(Arc::clone(field), offsets, elements, fixed.nulls)))
        }
        (Values::List(lists), DataType::FixedSizeList(field, len)) => {
            fixed_lists(*lists, field, *len, fixed.nulls, dictionary)
        }
        (Values::List(_), kind) => Err((
            0,
            ValueError::PrecisionOverflow { value: "a list".to_owned(), type_name: kind.to_string() },
        )),
    }
}

/// Converts to fixed-size lists. Null lists take the space of their elements.
fn fixed_lists(
    lists: Lists,
    field: &FieldRef,
    len: i32,
    nulls: Option<NullBuffer>,
    dictionary: &mut Dictionary,
) -> Result<ArrayRef, RowError> {
    let rows = lists.ends.len();
    let expected = usize::try_from(len).unwrap_or(0);
    let mut wanted = Vec::with_capacity(rows.saturating_mul(expected));
    for row in 0..rows {
        let range = lists.range(row);
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            wanted.extend(std::iter::repeat_n(0, expected));
        } else if range.len() == expected {
            wanted.extend(range);
        } else {
            return Err((row, ValueError::ListLengthMismatch { found: range.len(), expected }));
        }
    }
    let elements = if lists.elements.is_empty() {
        let mut values = lists.elements.values;
        values.push_zeros(wanted.len());
        Column::new(values)
    } else {
        lists.elements.take(&wanted)
    };
    let elements = array(elements, field.data_type(), dictionary);
    let elements = elements.map_err(|(at, reason)| (at.checked_div(expected).unwrap_or(0), reason))?;
    let array = FixedSizeListArray::try_new(Arc::clone(field), len, elements, nulls);
    Ok(Arc::new(array.map_err(|_| (0, ValueError::ListLengthMismatch { found: 0, expected }))?))
}

fn nulls(validity: Option<&Bitmap>) -> Option<NullBuffer> {
    let validity = validity?;
    let bits = BooleanBuffer::new(Buffer::from(validity.as_bytes().to_vec()), 0, validity.len());
    Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
}

/// Type and nulls of a primitive array.
struct Fixed<'a> {
    kind: &'a DataType,
    nulls: Option<NullBuffer>,
}

impl Fixed<'_> {
    fn made<T: ArrowPrimitiveType>(self, values: Vec<T::Native>) -> ArrayRef {
        let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), self.nulls);
        Arc::new(array.with_data_type(self.kind.clone()))
    }
}

fn int32(values: Vec<i32>, fixed: Fixed<'_>) -> ArrayRef {
    match fixed.kind {
        DataType::Date32 => fixed.made::<Date32Type>(values),
        DataType::Time32(TimeUnit::Second) => fixed.made::<Time32SecondType>(values),
        DataType::Time32(_) => fixed.made::<Time32MillisecondType>(values),
        DataType::Decimal32(..) => fixed.made::<Decimal32Type>(values),
        DataType::Decimal128(..) => {
            fixed.made::<Decimal128Type>(values.into_iter().map(i128::from).collect())
        }
        DataType::Decimal256(..) => fixed
            .made::<Decimal256Type>(values.into_iter().map(|value| i256::from_i128(value.into())).collect()),
        _ => fixed.made::<Int32Type>(values),
    }
}

fn int64(values: Vec<i64>, fixed: Fixed<'_>) -> Result<ArrayRef, RowError> {
    Ok(match fixed.kind {
        DataType::Date64 => fixed.made::<Date64Type>(values),
        DataType::Time64(TimeUnit::Microsecond) => fixed.made::<Time64MicrosecondType>(values),
        DataType::Time64(_) => fixed.made::<Time64NanosecondType>(values),
        DataType::Duration(TimeUnit::Second) => fixed.made::<DurationSecondType>(values),
        DataType::Duration(TimeUnit::Millisecond) => fixed.made::<DurationMillisecondType>(values),
        DataType::Duration(TimeUnit::Microsecond) => fixed.made::<DurationMicrosecondType>(values),
        DataType::Duration(TimeUnit::Nanosecond) => fixed.made::<DurationNanosecondType>(values),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => fixed.made::<TimestampSecondType>(coarser(values, 1_000_000, "seconds")?),
            TimeUnit::Millisecond => {
                fixed.made::<TimestampMillisecondType>(coarser(values, 1_000, "milliseconds")?)
            }
            TimeUnit::Microsecond => fixed.made::<TimestampMicrosecondType>(values),
            TimeUnit::Nanosecond => {
                let finer = |(row, value): (usize, i64)| {
                    value.checked_mul(1000).ok_or((row, ValueError::TimestampOverflow { value, unit: "us" }))
                };
                fixed.made::<TimestampNanosecondType>(
                    values.into_iter().enumerate().map(finer).collect::<Result<_, _>>()?,
                )
            }
        },
        DataType::Decimal64(..) => fixed.made::<Decimal64Type>(values),
        DataType::Decimal128(..) => {
            fixed.made::<Decimal128Type>(values.into_iter().map(i128::from).collect())
        }
        DataType::Decimal256(..) => fixed
            .made::<Decimal256Type>(values.into_iter().map(|value| i256::from_i128(value.into())).collect()),
        _ => fixed.made::<Int64Type>(values),
    })
}

fn coarser(values: Vec<i64>, micros: i64, unit: &'static str) -> Result<Vec<i64>, RowError> {
    let exact = |(row, value): (usize, i64)| match value % micros {
        0 => Ok(value / micros),
        _ => Err((row, ValueError::FractionalUnit { micros: value, unit })),
    };
    values.into_iter().enumerate().map(exact).collect()
}

fn bytes(strings: Strings, kind: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, RowError> {
    match kind {
        DataType::Utf8View => string_arrays::views(strings, nulls, true),
        DataType::BinaryView => string_arrays::views(strings, nulls, false),
        DataType::LargeUtf8 => string_arrays::large(&strings, nulls, true),
        DataType::FixedSizeBinary(len) => string_arrays::fixed(&strings, nulls, *len),
        DataType::Decimal128(..) => {
            let values = digits::<16, _>(&strings, nulls.as_ref(), i128::from_be_bytes)?;
            Ok(Fixed { kind, nulls }.made::<Decimal128Type>(values))
        }
        DataType::Decimal256(..) => {
            let values = digits::<32, _>(&strings, nulls.as_ref(), i256::from_be_bytes)?;
            Ok(Fixed { kind, nulls }.made::<Decimal256Type>(values))
        }
        _ => string_arrays::large(&strings, nulls, false),
    }
}

fn digits<const N: usize, T: Default>(
    strings: &Strings,
    nulls: Option<&NullBuffer>,
    number: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, RowError> {
    let value = |(row, bytes): (usize, &[u8])| {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(T::default());
        }
        let found = bytes.len();
        bytes.try_into().map(&number).map_err(|_| (row, ValueError::LengthMismatch { found, expected: N }))
    };
    strings.iter().enumerate().map(value).collect()
}
