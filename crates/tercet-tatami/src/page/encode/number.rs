//! Integers and floats.
//!
//! Integers are decided by sizes before the codec. Packed floats are shorter but often compress worse, so that with a codec
//! stored sizes decide. Bytes of 1,048,576 values in pages of the default size, codec Zstandard level 3, where packed is the
//! shortest of PLAIN, `BITPACK_FOR`, DELTA and RLE before the codec:
//!
//! | column of doubles | packed | packed, stored | PLAIN, stored | split, stored |
//! |---|---|---|---|---|
//! | integers below 10,000 | 8,257,568 | 3,020,300 | 2,580,526 | 1,955,315 |
//! | products / 100 | 8,257,568 | 4,347,925 | 3,946,395 | 5,186,440 |
//! | evenly from 0 to 1 | 7,422,110 | 7,422,110 | 7,881,708 | 7,086,830 |
//! | a sine | 8,388,606 | 7,847,516 | 7,906,876 | 5,977,511 |
//! | a random walk | 6,594,644 | 3,268,938 | 4,566,897 | 5,993,853 |
//! | seconds and milliseconds | 3,145,887 | 2,980,558 | 3,632,557 | 3,028,861 |
//!
//! The rule: one page in [`MEASURED_PAGES`] of a column is compressed all three ways, the shortest wins (PLAIN before packed before
//! split), and the pages until the next such one follow it.

use bytemuck::Pod;
use bytes::Bytes;
use tercet_codec::ints::{self, CASCADE, Lane, Scheme};

use super::{Bounds, Stream, Tools, encoding_of};
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::{Codec, Encoding};
use crate::writer::{Compressor, WriterOptions};

/// A fixed-width value, and the integer with its bits.
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

/// Encodings that are tried for floats besides a dictionary.
const FLOAT_CASCADE: [Scheme; 4] = [Scheme::Plain, Scheme::BitpackFor, Scheme::Delta, Scheme::Rle];

/// Appends values in the shortest encoding.
pub(super) fn encode<T: Number>(
    values: &[T],
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<Stream, ErrorKind> {
    let bounds = bounds(values);
    let lanes: &[T::Lane] = bytemuck::cast_slice(values);
    if lanes.is_empty() {
        return Ok(Stream::new(Encoding::Plain, bounds));
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
        return Ok(Stream::new(Encoding::Dictionary, bounds));
    }
    if T::FLOAT && tools.floats.compressor.is_some() {
        let (scheme, split) = tools.floats.encode(lanes, scheme, out)?;
        return Ok(Stream { encoding: encoding_of(scheme), split, bounds });
    }
    ints::encode(scheme, lanes, out)?;
    Ok(Stream::new(encoding_of(scheme), bounds))
}

/// One page in this many is compressed with every encoding.
const MEASURED_PAGES: u32 = 16;

/// How the floats of a column are stored best.
#[derive(Debug)]
pub(super) struct FloatTools {
    /// None where there is no choice: other values, lists, other readers, no codec.
    compressor: Option<Compressor>,
    best: Way,
    /// Pages so far.
    pages: u32,
}

/// A way of storing floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    /// In the shortest encoding before the codec.
    Packed,
    /// PLAIN with its bytes transposed.
    Split,
}

impl FloatTools {
    pub(super) fn new(kind: Type, options: &WriterOptions) -> Self {
        let has_choice = options.is_native() && kind.is_float() && options.codec != Codec::None;
        Self { compressor: has_choice.then(|| Compressor::new(options)), best: Way::Plain, pages: 0 }
    }

    /// Appends floats in the shortest encoding; returns the encoding, and whether they are byte-split.
    fn encode<T: Lane>(
        &mut self,
        lanes: &[T],
        packed: Scheme,
        out: &mut Vec<u8>,
    ) -> Result<(Scheme, bool), ErrorKind> {
        if self.pages.is_multiple_of(MEASURED_PAGES) {
            self.best = self.measure(lanes, packed)?;
        }
        self.pages = self.pages.wrapping_add(1);
        put_way(self.best, lanes, packed, out)?;
        let scheme = if self.best == Way::Packed { packed } else { Scheme::Plain };
        Ok((scheme, self.best == Way::Split))
    }

    fn measure<T: Lane>(&self, lanes: &[T], packed: Scheme) -> Result<Way, ErrorKind> {
        let Some(compressor) = self.compressor else { return Ok(Way::Plain) };
        let mut best = (Way::Plain, usize::MAX);
        for way in [Way::Plain, Way::Packed, Way::Split] {
            if way == Way::Packed && packed == Scheme::Plain {
                continue;
            }
            let mut payload = Vec::new();
            put_way(way, lanes, packed, &mut payload)?;
            let stored = compressor.payload(&payload, None)?.stored_len(&payload);
            if stored < best.1 {
                best = (way, stored);
            }
        }
        Ok(best.0)
    }
}

fn put_way<T: Lane>(way: Way, lanes: &[T], packed: Scheme, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
    match way {
        Way::Plain => ints::encode(Scheme::Plain, lanes, out)?,
        Way::Packed => ints::encode(packed, lanes, out)?,
        Way::Split => {
            let mut plain = Vec::new();
            ints::encode(Scheme::Plain, lanes, &mut plain)?;
            let start = out.len();
            out.resize(start + plain.len(), 0);
            tercet_codec::shuffle::shuffle(&plain, size_of::<T>(), &mut out[start..])?;
        }
    }
    Ok(())
}

/// The minimum and maximum, the first of equal values. NaN is neither.
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
