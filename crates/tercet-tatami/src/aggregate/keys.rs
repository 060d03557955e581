//! The keys of groups.

use std::cmp::Ordering;

use hashbrown::HashMap;

use crate::column::{Column, Values};
use crate::scalar::Scalar;

/// The distinct keys, numbered in the order of their first rows.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The number of each key, by its bytes.
    numbers: HashMap<Box<[u8]>, u32>,
    /// The values of each key.
    values: Vec<Vec<Option<Scalar>>>,
    /// The key of the current row.
    current: Vec<u8>,
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds the key without columns.
    pub(super) fn insert_empty(&mut self) {
        self.values.push(Vec::new());
    }

    pub(super) fn value(&self, key: u32, column: usize) -> Option<&Scalar> {
        self.values.get(key as usize)?.get(column)?.as_ref()
    }

    /// Appends the number of the key of each row to `out`; `reserve` is called with the length of each new key.
    pub(super) fn assign<T, E>(
        &mut self,
        columns: &[Column],
        rows: usize,
        out: &mut Vec<u32>,
        reserve: impl Fn(u64) -> Result<T, E>,
    ) -> Result<(), E> {
        for row in 0..rows {
            self.current.clear();
            for column in columns {
                append_key(column, row, &mut self.current);
            }
            let number = if let Some(number) = self.numbers.get(&self.current[..]) {
                *number
            } else {
                reserve(self.current.len() as u64)?;
                // The budget ends before 2^32 keys: each takes more than 16 bytes, and budgets are below 64 GiB.
                let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
                self.numbers.insert(self.current.as_slice().into(), number);
                self.values.push(columns.iter().map(|column| column.scalar(row)).collect());
                number
            };
            out.push(number);
        }
        Ok(())
    }

    /// The numbers of the keys, ordered by value: nulls first, NaN last. `is_decimal` marks columns of decimals stored as bytes.
    pub(super) fn sorted(&self, is_decimal: &[bool]) -> Vec<u32> {
        let mut out: Vec<u32> = (0..).take(self.values.len()).collect();
        out.sort_by(|one, other| {
            let pairs = self.values[*one as usize].iter().zip(&self.values[*other as usize]);
            pairs
                .zip(is_decimal)
                .map(|((one, other), is_decimal)| match (one, other) {
                    (Some(Scalar::Bytes(one)), Some(Scalar::Bytes(other))) if *is_decimal => {
                        order_decimals(one, other)
                    }
                    (one, other) => order(one.as_ref(), other.as_ref()),
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        out
    }
}

fn order(one: Option<&Scalar>, other: Option<&Scalar>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.order(other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan())),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Two's complement, most significant byte first, of one length: negative numbers come after the others by their bytes.
pub(super) fn order_decimals(one: &[u8], other: &[u8]) -> Ordering {
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    is_negative(other).cmp(&is_negative(one)).then_with(|| one.cmp(other))
}

/// Appends the bytes of a value: equal for equal values, for all NaN, and for both zeros.
fn append_key(column: &Column, row: usize, out: &mut Vec<u8>) {
    if !column.is_present(row) {
        out.push(0);
        return;
    }
    out.push(1);
    match &column.values {
        Values::Bool(values) => out.push(values[row].into()),
        Values::Int8(values) => out.extend(values[row].to_le_bytes()),
        Values::Int16(values) => out.extend(values[row].to_le_bytes()),
        Values::Int32(values) => out.extend(values[row].to_le_bytes()),
        Values::Int64(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt8(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt16(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt32(values) => out.extend(values[row].to_le_bytes()),
        Values::UInt64(values) => out.extend(values[row].to_le_bytes()),
        Values::Float32(values) => {
            let value = values[row];
            out.extend(if value.is_nan() { f32::NAN } else { value + 0.0 }.to_le_bytes());
        }
        Values::Float64(values) => {
            let value = values[row];
            out.extend(if value.is_nan() { f64::NAN } else { value + 0.0 }.to_le_bytes());
        }
        Values::Bytes(values) => {
            let value = values.get(row);
            out.extend((value.len() as u64).to_le_bytes());
            out.extend(value);
        }
        // Refused before.
        Values::List(_) => {}
    }
}
