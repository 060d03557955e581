//! The linear quantizer: differences from predictions as multiples of twice the bound.

use super::cursor::Cursor;
use super::failed;
use crate::CodecError;

/// The quantizer and the values that are stored as they are.
pub(super) struct Quantizer {
    pub(super) bound: f64,
    pub(super) radius: i32,
    stored: Vec<f64>,
    next: usize,
}

const ID: u8 = 2;

impl Quantizer {
    pub(super) fn new(bound: f64, radius: i32) -> Self {
        Self { bound, radius, stored: Vec::new(), next: 0 }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, CodecError> {
        if cursor.u8()? != ID {
            return Err(failed("an unknown quantizer"));
        }
        let (bound, radius) = (cursor.f64()?, cursor.i32()?);
        let count = cursor.count(8)?;
        let stored = cursor.take(count * 8)?.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value));
        Ok(Self { bound, radius, stored: stored.collect(), next: 0 })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(ID);
        out.extend(self.bound.to_le_bytes());
        out.extend(self.radius.to_le_bytes());
        out.extend((self.stored.len() as u64).to_le_bytes());
        out.extend(self.stored.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// The value of a symbol. 0 is a stored value.
    pub(super) fn value(&mut self, prediction: f64, symbol: i32) -> Result<f64, CodecError> {
        if symbol == 0 {
            return self.stored_value();
        }
        let steps = symbol.wrapping_sub(self.radius).wrapping_mul(2);
        Ok(prediction + f64::from(steps) * self.bound)
    }

    pub(super) fn stored_value(&mut self) -> Result<f64, CodecError> {
        let value = self.stored.get(self.next).copied();
        self.next += 1;
        value.ok_or_else(|| failed("a stored value is missing"))
    }

    /// Stores a value as it is.
    pub(super) fn store(&mut self, value: f64) -> i32 {
        self.stored.push(value);
        0
    }

    /// The symbol of a value, and the decoded value.
    pub(super) fn symbol(&mut self, value: f64, prediction: f64) -> (i32, f64) {
        let difference = value - prediction;
        let steps = (difference.abs() / self.bound + 1.0) * 0.5;
        // Also false for NaN.
        if steps < f64::from(self.radius) {
            #[expect(clippy::cast_possible_truncation, reason = "less than the radius")]
            let half = steps as i32;
            let half = if difference < 0.0 { -half } else { half };
            let decoded = prediction + f64::from(half * 2) * self.bound;
            if (decoded - value).abs() <= self.bound {
                return (self.radius + half, decoded);
            }
        }
        (self.store(value), value)
    }
}
