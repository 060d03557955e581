//! The zone map entry of one chunk.

use std::collections::BTreeMap;

use tercet_core::tensor::f16;
use tercet_core::{Element, ElementType, with_element};

use super::values::Distinct;

/// Scans the chunks of a dataset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub(super) dtype: ElementType,
    /// The bits of the fill value.
    pub(super) fill: Option<u64>,
    /// Whether distinct values are collected.
    pub(super) values: bool,
}

/// The zone map entry of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChunkZone {
    pub(super) zone: Zone,
    /// The distinct elements that are not null, as bits; `None` if too many or not collected.
    pub(super) values: Option<Vec<u64>>,
}

/// The range of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    /// Elements that are NaN or the fill value.
    pub(super) nulls: u64,
    /// Min and max of the other elements, as bits.
    pub(super) range: Option<(u64, u64)>,
}

impl Scan {
    /// Scans the little-endian bytes of a chunk.
    pub(crate) fn chunk(&self, bytes: &[u8]) -> ChunkZone {
        with_element!(self.dtype, |T| scan::<T>(*self, bytes))
    }
}

fn scan<T: Zoned>(how: Scan, bytes: &[u8]) -> ChunkZone {
    let mut nulls = 0;
    // Sort key, then bits.
    let (mut least, mut greatest) = ((u64::MAX, None), (0, None));
    let mut distinct = how.values.then(Distinct::default);
    for element in bytes.chunks_exact(size_of::<T>()) {
        let element = bytemuck::pod_read_unaligned::<T>(element).swap_le();
        let bits = element.bits();
        if element.is_missing() || how.fill == Some(bits) {
            nulls += 1;
            continue;
        }
        let rank = element.rank();
        if rank <= least.0 {
            least = (rank, Some(bits));
        }
        if rank >= greatest.0 {
            greatest = (rank, Some(bits));
        }
        if let Some(values) = &mut distinct
            && !values.add(bits)
        {
            distinct = None;
        }
    }
    let zone = Zone { nulls, range: least.1.zip(greatest.1) };
    ChunkZone { zone, values: distinct.map(Distinct::into_vec) }
}

/// The bits of the fill value: the first of three attributes, if it parses as the element type.
pub(super) fn fill_bits(dtype: ElementType, attrs: &BTreeMap<String, String>) -> Option<u64> {
    let text = ["_FillValue", "missing_value", "fill_value"].into_iter().find_map(|key| attrs.get(key))?;
    with_element!(dtype, |T| <T as Zoned>::parse(text.trim()).map(Zoned::bits))
}

/// An element type with the order of zone maps.
trait Zoned: Element {
    /// The stored bytes of the element, in the low bits.
    fn bits(self) -> u64;
    /// The sort key of the element; floats have IEEE total order.
    fn rank(self) -> u64;
    /// Parses an element.
    fn parse(text: &str) -> Option<Self>;
    /// Whether the element is NaN.
    fn is_missing(self) -> bool {
        false
    }
}

macro_rules! zoned_unsigned {
    ($($type:ty),*) => {$(
        impl Zoned for $type {
            fn bits(self) -> u64 {
                self.into()
            }
            fn rank(self) -> u64 {
                self.into()
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}

macro_rules! zoned_signed {
    ($($type:ty),*) => {$(
        impl Zoned for $type {
            fn bits(self) -> u64 {
                self.cast_unsigned().into()
            }
            fn rank(self) -> u64 {
                i64::from(self).cast_unsigned() ^ (1 << 63)
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}

macro_rules! zoned_float {
    ($($type:ty, $bits:ty, $parse:expr;)*) => {$(
        impl Zoned for $type {
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn rank(self) -> u64 {
                let (bits, sign) = (self.to_bits(), 1 << (<$bits>::BITS - 1));
                // Negative numbers sort first, large magnitudes before small ones.
                if bits & sign == 0 { (bits | sign).into() } else { (!bits).into() }
            }
            fn parse(text: &str) -> Option<Self> {
                $parse(text)
            }
            fn is_missing(self) -> bool {
                self.is_nan()
            }
        }
    )*};
}

zoned_unsigned!(u8, u16, u32, u64);
zoned_signed!(i16, i32, i64);
zoned_float! {
    f16, u16, |text: &str| text.parse().ok().map(Self::from_f32);
    f32, u32, |text: &str| text.parse().ok();
    f64, u64, |text: &str| text.parse().ok();
}
