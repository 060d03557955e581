//! Order statistics: quantiles of slots whose values fit in memory ([`Columns`]), and of larger ones, digit by digit
//! ([`Search`]). Both are exact, so the choice does not affect the result.

mod columns;
mod key;
mod search;
mod windows;

#[cfg(test)]
mod tests;

use tercet_core::ElementType;
use tercet_core::tensor::OutOfMemory;

use self::columns::Columns;
use self::key::Coding;
use crate::accumulator::Accumulator;
use crate::compute::ComputeType;

pub use self::search::{Search, SearchRoom};

/// Number of values that each slot can hold.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// The same number for all slots.
    Same {
        /// Number of slots.
        slots: usize,
        /// Values per slot.
        values: usize,
    },
    /// Start of the values of each slot, and the end of the last slot.
    Each(Vec<usize>),
}

impl Capacity {
    fn slots(&self) -> usize {
        match self {
            Self::Same { slots, .. } => *slots,
            Self::Each(starts) => starts.len().saturating_sub(1),
        }
    }
}

/// Quantile of the values of each slot: position q·(n − 1) of the sorted values, with linear interpolation. NaN for no
/// values, and if any value is NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Position between the minimum, 0, and the maximum, 1.
    pub q: f64,
    /// Element type.
    pub dtype: ElementType,
    /// Whether the result is the difference between the quantile and the nearest f64: for integers, NaN if the quantile is
    /// not an integer.
    pub is_rest: bool,
}

impl Quantile {
    /// Compute type of the accumulators.
    pub fn compute(&self) -> ComputeType {
        if let Some(coding) = Coding::narrow(self.dtype) {
            coding.compute
        } else {
            Coding::wide(self.dtype).compute
        }
    }

    /// Bytes of a value in memory.
    pub fn value_bytes(&self) -> usize {
        if Coding::narrow(self.dtype).is_some() { 4 } else { 8 }
    }

    fn value_bits(&self) -> u32 {
        if Coding::narrow(self.dtype).is_some() { 32 } else { 64 }
    }

    /// Creates an accumulator that keeps all values.
    pub fn accumulator(&self, capacity: Capacity) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        match Coding::narrow(self.dtype) {
            Some(coding) => Ok(Box::new(Columns::new(self.with_result(coding), self.q, capacity)?)),
            None => Ok(Box::new(Columns::new(self.with_result(Coding::wide(self.dtype)), self.q, capacity)?)),
        }
    }

    fn with_result<K>(&self, coding: Coding<K>) -> Coding<K> {
        Coding { is_rest: self.is_rest, ..coding }
    }
}
