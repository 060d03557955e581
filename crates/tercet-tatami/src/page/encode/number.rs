//! Integers and floats.
//!
//! The encoding of integers is chosen by encoded size. Packed floats are shorter but often compress worse, so with a codec
//! the compressed size decides. Bytes of 1,048,576 values in pages of the default size with Zstandard level 3, where packed is
//! the shortest of PLAIN, `BITPACK_FOR`, DELTA and RLE before compression:
//!
//! | float64 column | packed | packed, compressed | PLAIN, compressed | split, compressed |
//! |---|---|---|---|---|
//! | integers below 10,000 | 8,257,568 | 3,020,300 | 2,580,526 | 1,955,315 |
//! | products / 100 | 8,257,568 | 4,347,925 | 3,946,395 | 5,186,440 |
//! | uniform in 0..1 | 7,422,110 | 7,422,110 | 7,881,708 | 7,086,830 |
//! | a sine | 8,388,606 | 7,847,516 | 7,906,876 | 5,977,511 |
//! | a random walk | 6,594,644 | 3,268,938 | 4,566,897 | 5,993,853 |
//! | seconds and milliseconds | 3,145,887 | 2,980,558 | 3,632,557 | 3,028,861 |
//!
//! One page in [`MEASURED_PAGES`] of a column is compressed in all three encodings; the shortest (PLAIN before packed before
//! split) is used until the next measured page.

use bytemuck::Pod;
use bytes::Bytes;
use tercet_codec::ints::{self, CASCADE, Integer, Scheme};

use super::{Bounds, Stream, Tools, encoding_of};
use crate::error::ErrorKind;
use crate::schema::Type;
use crate::wire::footer::Zone;
use crate::wire::ids::{Codec, Encoding};
use crate::writer::{Compressor, WriterOptions};

/// A fixed-width value that can be reinterpreted as an integer.
pub(crate) trait Number: Pod + PartialOrd {
    /// The integer of the same width.
    type Integer: Integer;
    /// Whether the type is a float.
    const FLOAT: bool;
}

macro_rules! numbers {
    ($($number:ty, $lane:ty, $float:literal;)*) => { $(
        impl Number for $number {
            type Integer = $lane;
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

/// Candidate encodings for floats, besides a dictionary.
const FLOAT_CASCADE: [Scheme; 4] = [Scheme::Plain, Scheme::BitpackFor, Scheme::Delta, Scheme::Rle];

/// Appends values in the shortest encoding.
pub(super) fn encode<T: Number>(
    values: &[T],
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<Stream, ErrorKind> {
    let bounds = bounds(values);
    let lanes: &[T::Integer] = bytemuck::cast_slice(values);
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
        return Ok(Stream { split, ..Stream::new(encoding_of(scheme), bounds) });
    }
    ints::encode(scheme, lanes, out)?;
    Ok(Stream::new(encoding_of(scheme), bounds))
}

/// One page in this many is compressed with every encoding.
const MEASURED_PAGES: u32 = 16;

/// Chooses the encoding of the floats of a column.
#[derive(Debug)]
pub(super) struct FloatTools {
    /// `None` if there is no choice: other types, lists, interop profile, no codec.
    compressor: Option<Compressor>,
    best: FloatEncoding,
    /// Pages so far.
    pages: u32,
}

/// Encoding of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloatEncoding {
    Plain,
    /// The shortest encoding before compression.
    Packed,
    /// PLAIN, byte-split.
    Split,
}

impl FloatTools {
    pub(super) fn new(kind: Type, options: &WriterOptions) -> Self {
        let has_choice = options.is_native() && kind.is_float() && options.codec != Codec::None;
        Self {
            compressor: has_choice.then(|| Compressor::new(options)),
            best: FloatEncoding::Plain,
            pages: 0,
        }
    }

    /// Appends floats in the shortest encoding; returns the encoding, and whether they are byte-split.
    fn encode<T: Integer>(
        &mut self,
        lanes: &[T],
        packed: Scheme,
        out: &mut Vec<u8>,
    ) -> Result<(Scheme, bool), ErrorKind> {
        if self.pages.is_multiple_of(MEASURED_PAGES) {
            self.best = self.measure(lanes, packed)?;
        }
        self.pages = self.pages.wrapping_add(1);
        put_as(self.best, lanes, packed, out)?;
        let scheme = if self.best == FloatEncoding::Packed { packed } else { Scheme::Plain };
        Ok((scheme, self.best == FloatEncoding::Split))
    }

    fn measure<T: Integer>(&self, lanes: &[T], packed: Scheme) -> Result<FloatEncoding, ErrorKind> {
        let Some(compressor) = self.compressor else { return Ok(FloatEncoding::Plain) };
        let mut best = (FloatEncoding::Plain, usize::MAX);
        for way in [FloatEncoding::Plain, FloatEncoding::Packed, FloatEncoding::Split] {
            if way == FloatEncoding::Packed && packed == Scheme::Plain {
                continue;
            }
            let mut payload = Vec::new();
            put_as(way, lanes, packed, &mut payload)?;
            let stored = compressor.payload(&payload, None)?.stored_len(&payload);
            if stored < best.1 {
                best = (way, stored);
            }
        }
        Ok(best.0)
    }
}

fn put_as<T: Integer>(
    way: FloatEncoding,
    lanes: &[T],
    packed: Scheme,
    out: &mut Vec<u8>,
) -> Result<(), ErrorKind> {
    match way {
        FloatEncoding::Plain => ints::encode(Scheme::Plain, lanes, out)?,
        FloatEncoding::Packed => ints::encode(packed, lanes, out)?,
        FloatEncoding::Split => {
            let mut plain = Vec::new();
            ints::encode(Scheme::Plain, lanes, &mut plain)?;
            let start = out.len();
            out.resize(start + plain.len(), 0);
            tercet_codec::shuffle::shuffle(&plain, size_of::<T>(), &mut out[start..])?;
        }
    }
    Ok(())
}

/// Minimum and maximum without NaN; the first of equal values.
fn bounds<T: Number>(values: &[T]) -> Bounds {
    // Only NaN differs from itself.
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
    let lane: T::Integer = bytemuck::cast(value);
    bytemuck::bytes_of(&lane.swap_if_big_endian()).to_vec()
}
