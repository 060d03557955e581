//! Integers and floats.

use bytemuck::Pod;
use bytes::Bytes;
use tercet_codec::ints::{self, CASCADE, Lane, Scheme};

use super::{Bounds, Tools, encoding_of};
use crate::fault::Fault;
use crate::wire::footer::Zone;
use crate::wire::ids::Encoding;

/// A fixed-width value, and the integers that stand for it in streams: its bits.
pub(crate) trait Number: Pod + PartialOrd {
    /// The integers of the same width.
    type Lane: Lane;
    /// Whether there is NaN.
    const FLOAT: bool;
}

macro_rules! numbers {
    ($($number:ty, $lane:ty, $float:literal;)*) => { $(
        impl Number for $number {
            type Lane = $lane;
            const FLOAT: bool = $float;
        }
    )* };
}

numbers! {
    i8, i8, false;
    i16, i16, false;
    i32, i32, false;
    i64, i64, false;
    u8, u8, false;
    u16, u16, false;
    u32, u32, false;
    u64, u64, false;
    f32, u32, true;
    f64, u64, true;
}

/// What floats are tried with besides a dictionary.
const FLOAT_CASCADE: [Scheme; 4] = [Scheme::Plain, Scheme::BitpackFor, Scheme::Delta, Scheme::Rle];

/// Appends values in the shortest encoding.
pub(super) fn encode<T: Number>(
    values: &[T],
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<(Encoding, Bounds), Fault> {
    let bounds = bounds(values);
    let lanes: &[T::Lane] = bytemuck::cast_slice(values);
    if lanes.is_empty() {
        return Ok((Encoding::Plain, bounds));
    }
    let (scheme, len) = match (T::FLOAT, tools.native) {
        (false, _) => ints::choose(lanes, &CASCADE),
        (true, true) => ints::choose(lanes, &FLOAT_CASCADE),
        (true, false) => (Scheme::Plain, 0),
    };
    if let Some(values) = &mut tools.values
        && let Some(trial) = values.try_numbers(lanes, len)
    {
        values.keep(&trial, out)?;
        return Ok((Encoding::Dictionary, bounds));
    }
    ints::encode(scheme, lanes, out)?;
    Ok((encoding_of(scheme), bounds))
}

/// The smallest and the largest value, the first of equal ones. NaN is neither.
fn bounds<T: Number>(values: &[T]) -> Bounds {
    // No value but NaN differs from itself.
    let is_nan = |value: &T| T::FLOAT && value.partial_cmp(value).is_none();
    let has_nan = T::FLOAT && values.iter().any(is_nan);
    let Some(&first) = values.iter().find(|value| !is_nan(value)) else {
        return Bounds { zone: None, has_nan };
    };
    let (mut min, mut max) = (first, first);
    for &value in values {
        // Both are false for NaN.
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
    }
    let scalar = |value: T| Bytes::from(plain(value));
    Bounds { zone: Some(Zone { min: scalar(min), max: scalar(max) }), has_nan }
}

/// The little-endian bytes of a value.
pub(crate) fn plain<T: Number>(value: T) -> Vec<u8> {
    let lane: T::Lane = bytemuck::cast(value);
    bytemuck::bytes_of(&lane.swap_if_big_endian()).to_vec()
}
