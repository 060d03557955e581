//! Dictionary encoding of columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeListArray, LargeListArray, PrimitiveArray,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use tercet_tatami::{Column, Values};

use crate::error::ValueError;
use crate::from_arrow::RowError;
use crate::to_arrow;

/// Dictionary values in the order of their first row. It only grows: keys stay valid in later batches, as the Arrow file format
/// requires.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary {
    numbers: HashMap<Box<[u8]>, usize>,
    values: Option<Column>,
    array: Option<ArrayRef>,
}

impl Dictionary {
    /// Encodes a column; new values are appended to the dictionary.
    pub(crate) fn coded(
        &mut self,
        column: &Column,
        key: &DataType,
        value: &DataType,
    ) -> Result<ArrayRef, RowError> {
        match key {
            DataType::Int8 => self.numbered::<Int8Type>(column, value),
            DataType::Int16 => self.numbered::<Int16Type>(column, value),
            DataType::Int64 => self.numbered::<Int64Type>(column, value),
            DataType::UInt8 => self.numbered::<UInt8Type>(column, value),
            DataType::UInt16 => self.numbered::<UInt16Type>(column, value),
            DataType::UInt32 => self.numbered::<UInt32Type>(column, value),
            DataType::UInt64 => self.numbered::<UInt64Type>(column, value),
            _ => self.numbered::<Int32Type>(column, value),
        }
    }

    /// The same array with all values that the dictionary has by now.
    pub(crate) fn completed(&self, array: &ArrayRef) -> ArrayRef {
        let Some(values) = &self.array else { return Arc::clone(array) };
        match array.data_type() {
            DataType::Dictionary(..) => array.as_any_dictionary().with_values(Arc::clone(values)),
            DataType::LargeList(field) => {
                let lists = array.as_list::<i64>();
                let elements = self.completed(lists.values());
                let nulls = lists.nulls().cloned();
                Arc::new(LargeListArray::new(Arc::clone(field), lists.offsets().clone(), elements, nulls))
            }
            DataType::FixedSizeList(field, len) => {
                let lists = array.as_fixed_size_list();
                let elements = self.completed(lists.values());
                Arc::new(FixedSizeListArray::new(Arc::clone(field), *len, elements, lists.nulls().cloned()))
            }
            _ => Arc::clone(array),
        }
    }

    fn numbered<K: ArrowDictionaryKeyType>(
        &mut self,
        column: &Column,
        value: &DataType,
    ) -> Result<ArrayRef, RowError> {
        let (mut keys, mut new) = (Vec::with_capacity(column.len()), Vec::new());
        let mut bytes = Vec::new();
        for row in 0..column.len() {
            if !column.is_present(row) {
                keys.push(None);
                continue;
            }
            bytes.clear();
            push_bytes(&column.values, row, &mut bytes);
            let next = self.numbers.len();
            let known = self.numbers.get(bytes.as_slice()).copied();
            let number = known.unwrap_or_else(|| {
                self.numbers.insert(bytes.as_slice().into(), next);
                new.push(row);
                next
            });
            let Some(key) = K::Native::from_usize(number) else {
                return Err((
                    row,
                    ValueError::DictionaryKeyOverflow { max: number, key_type: K::DATA_TYPE.to_string() },
                ));
            };
            keys.push(Some(key));
        }
        let array = self.grown(column, &new, value)?;
        let keys: PrimitiveArray<K> = keys.into_iter().collect();
        // Every key has a value.
        let coded = DictionaryArray::try_new(keys, array).map_err(|_| (0, ValueError::InvalidUtf8))?;
        Ok(Arc::new(coded))
    }

    /// The dictionary values, extended by some rows of a column.
    fn grown(&mut self, column: &Column, new: &[usize], value: &DataType) -> Result<ArrayRef, RowError> {
        if let Some(array) = self.array.as_ref().filter(|_| new.is_empty()) {
            return Ok(Arc::clone(array));
        }
        let mut more = column.take(new);
        more.validity = None;
        let values = match self.values.take() {
            Some(mut values) => {
                values.extend_from(&more, 0, more.len());
                values
            }
            None => more,
        };
        let array = to_arrow::array(values.clone(), value, &mut Self::default());
        // The row of the batch: values of earlier batches were valid.
        let first = values.len() - new.len();
        self.values = Some(values);
        let array = array.map_err(|(at, reason)| {
            (at.checked_sub(first).and_then(|at| new.get(at)).copied().unwrap_or(0), reason)
        })?;
        self.array = Some(Arc::clone(&array));
        Ok(array)
    }
}

/// Appends the bytes of a value, for hashing.
fn push_bytes(values: &Values, row: usize, out: &mut Vec<u8>) {
    match values {
        Values::Bool(values) => out.push(u8::from(values[row])),
        Values::Int8(values) => out.extend(values[row].to_le_bytes()),
        Values::Int16(values) => out.extend(values[row].to_le_bytes()),
        Values::Int32(values) => out.extend(values[row].to_le_bytes()),
        Values::Int64(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt8(values) => out.push(values[row]),
        Values::UInt16(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt32(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt64(values) => out.extend(values[row].to_le_bytes()),
        Values::Float32(values) => out.extend(values[row].to_le_bytes()),
        Values::Float64(values) => out.extend(values[row].to_le_bytes()),
        Values::Bytes(strings) => out.extend_from_slice(strings.get(row)),
        // Dictionaries of lists are unsupported.
        Values::List(_) => {}
    }
}
