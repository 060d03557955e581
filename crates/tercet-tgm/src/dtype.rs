//! Element types of messages and their byte order.

use std::fmt;

use serde::{Deserialize, Serialize};
use tercet_codec::finite::Float;
use tercet_core::DType;

/// The element types of the format: all but `bool`.
pub const DTYPES: [DType; 15] = [
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bitmask,
];

/// The floating-point type of real elements, or of the parts of complex elements.
pub(crate) const fn float_type(dtype: DType) -> Option<Float> {
    match dtype {
        DType::F16 => Some(Float::F16),
        DType::BF16 => Some(Float::Bf16),
        DType::F32 => Some(Float::F32),
        DType::F64 => Some(Float::F64),
        DType::C64 => Some(Float::C64),
        DType::C128 => Some(Float::C128),
        _ => None,
    }
}

/// The byte order of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ByteOrder {
    /// Big-endian.
    Big,
    /// Little-endian.
    Little,
}

impl ByteOrder {
    /// The byte order of this host.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The byte order of this host.
    pub const fn native() -> Self {
        Self::NATIVE
    }

    /// The name in descriptors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Little => "little",
        }
    }
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reverses the bytes of every unit of `unit` bytes. An incomplete unit at the end is unchanged.
pub(crate) fn swap_in_place(bytes: &mut [u8], unit: usize) {
    // The arms are loops over integers, which compile to vector shuffles.
    match unit {
        0 | 1 => {}
        2 => bytes.as_chunks_mut().0.iter_mut().for_each(|b| *b = u16::from_le_bytes(*b).to_be_bytes()),
        4 => bytes.as_chunks_mut().0.iter_mut().for_each(|b| *b = u32::from_le_bytes(*b).to_be_bytes()),
        8 => bytes.as_chunks_mut().0.iter_mut().for_each(|b| *b = u64::from_le_bytes(*b).to_be_bytes()),
        _ => bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_type_but_bool_is_in_the_format() {
        let missing: Vec<DType> = DType::ALL.into_iter().filter(|dtype| !DTYPES.contains(dtype)).collect();
        assert_eq!(missing, [DType::Bool]);
    }

    proptest! {
        #[test]
        fn units_are_reversed(bytes in vec(any::<u8>(), 0..100), unit in 0_usize..17) {
            let mut swapped = bytes.clone();
            swap_in_place(&mut swapped, unit);
            let end = bytes.len() / unit.max(1) * unit.max(1);
            for (at, byte) in swapped.into_iter().enumerate() {
                let unit = unit.max(1);
                let from = if at < end { at / unit * unit + unit - 1 - at % unit } else { at };
                prop_assert_eq!(byte, bytes[from]);
            }
        }
    }
}
