//! `NetCDF` classic files: CDF-1, CDF-2 (64-bit offset) and CDF-5.
//!
//! ```text
//! header: "CDF" version, records, dimensions, attributes, variables   big-endian, padded to 4 bytes
//! values of variables without the unlimited dimension, one after the other
//! record 0: one piece of every variable with it; record 1; …
//! ```

mod header;
mod read;
mod write;

#[cfg(test)]
mod tests;

use tercet_core::DType;

use crate::arrays::Kind;

pub(crate) use read::NetCdf;
pub(crate) use write::NetCdfSink;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// CDF-1: offsets of 32 bits.
    Classic,
    /// CDF-2: offsets of 64 bits.
    Offset64,
    /// CDF-5: sizes of 64 bits, unsigned and 64-bit integers.
    Cdf5,
}

impl Version {
    /// The byte after `CDF`.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Classic => 1,
            Self::Offset64 => 2,
            Self::Cdf5 => 5,
        }
    }

    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "NetCDF classic",
            Self::Offset64 => "NetCDF 64-bit offset",
            Self::Cdf5 => "NetCDF CDF-5",
        }
    }
}

/// The element types and their numbers.
const TYPES: [(u32, Kind); 11] = [
    (1, Kind::Number(DType::I8)),
    (2, Kind::Char),
    (3, Kind::Number(DType::I16)),
    (4, Kind::Number(DType::I32)),
    (5, Kind::Number(DType::F32)),
    (6, Kind::Number(DType::F64)),
    (7, Kind::Number(DType::U8)),
    (8, Kind::Number(DType::U16)),
    (9, Kind::Number(DType::U32)),
    (10, Kind::Number(DType::I64)),
    (11, Kind::Number(DType::U64)),
];

/// The types that CDF-1 and CDF-2 have.
const CLASSIC_TYPES: u32 = 6;

/// The number of a type; `None` if a version does not have it.
pub(crate) fn type_number(kind: Kind, version: Version) -> Option<u32> {
    let (number, _) = TYPES.into_iter().find(|(_, found)| *found == kind)?;
    (version == Version::Cdf5 || number <= CLASSIC_TYPES).then_some(number)
}

/// A length padded to four bytes.
const fn padded(len: u64) -> u64 {
    len.saturating_add(3) / 4 * 4
}

/// Reverses the bytes of elements of this type: files are big-endian.
fn swap(dtype: DType, bytes: &mut [u8]) {
    match dtype.swap_unit() {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|unit| unit.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|unit| unit.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|unit| unit.reverse()),
        _ => {}
    }
}
