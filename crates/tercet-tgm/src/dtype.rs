//! Element types and the order of their bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use tercet_codec::finite::Float;
use tercet_core::DType;

/// The type of the elements of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Dtype {
    Float16,
    Bfloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Bitmask,
}

impl Dtype {
    /// Every element type.
    pub const ALL: [Self; 15] = [
        Self::Float16,
        Self::Bfloat16,
        Self::Float32,
        Self::Float64,
        Self::Complex64,
        Self::Complex128,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Bitmask,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Bitmask => "bitmask",
        }
    }

    /// The kind of floating-point number, if it is one.
    pub const fn float(self) -> Option<Float> {
        match self {
            Self::Float16 => Some(Float::F16),
            Self::Bfloat16 => Some(Float::Bf16),
            Self::Float32 => Some(Float::F32),
            Self::Float64 => Some(Float::F64),
            Self::Complex64 => Some(Float::C64),
            Self::Complex128 => Some(Float::C128),
            _ => None,
        }
    }

    /// Bits of one element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bitmask => 1,
            Self::Int8 | Self::Uint8 => 8,
            Self::Float16 | Self::Bfloat16 | Self::Int16 | Self::Uint16 => 16,
            Self::Float32 | Self::Int32 | Self::Uint32 => 32,
            Self::Float64 | Self::Complex64 | Self::Int64 | Self::Uint64 => 64,
            Self::Complex128 => 128,
        }
    }

    /// Bytes that a change of the byte order reverses together. 1 when there is nothing to reverse.
    pub const fn swap_unit(self) -> usize {
        match self {
            Self::Bitmask | Self::Int8 | Self::Uint8 => 1,
            Self::Float16 | Self::Bfloat16 | Self::Int16 | Self::Uint16 => 2,
            Self::Float32 | Self::Complex64 | Self::Int32 | Self::Uint32 => 4,
            Self::Float64 | Self::Complex128 | Self::Int64 | Self::Uint64 => 8,
        }
    }

    /// Bytes of `n` elements, if that is a 64-bit number.
    pub const fn payload_len(self, n: u64) -> Option<u64> {
        match self {
            Self::Bitmask => Some(n.div_ceil(8)),
            _ => n.checked_mul((self.bits() / 8) as u64),
        }
    }

    /// The element type that the whole workspace shares, if it has this one.
    pub const fn core(self) -> Option<DType> {
        match self {
            Self::Float16 => Some(DType::F16),
            Self::Float32 => Some(DType::F32),
            Self::Float64 => Some(DType::F64),
            Self::Int16 => Some(DType::I16),
            Self::Int32 => Some(DType::I32),
            Self::Int64 => Some(DType::I64),
            Self::Uint8 => Some(DType::U8),
            Self::Uint16 => Some(DType::U16),
            Self::Uint32 => Some(DType::U32),
            Self::Uint64 => Some(DType::U64),
            Self::Bfloat16 | Self::Complex64 | Self::Complex128 | Self::Int8 | Self::Bitmask => None,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(UnknownDtype)
    }
}

impl Serialize for Dtype {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A name that is no element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type")]
pub struct UnknownDtype;

/// The order of the bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ByteOrder {
    /// The most significant byte first.
    Big,
    /// The least significant byte first.
    Little,
}

impl ByteOrder {
    /// The order of this host.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The name on the wire.
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

/// Reverses the bytes of every `unit` bytes. Bytes behind the last whole unit stay as they are.
pub(crate) fn swap_in_place(bytes: &mut [u8], unit: usize) {
    // The arms are loops over whole integers, which compile to vector shuffles.
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
    fn names_are_read_back() {
        for dtype in Dtype::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(serde_json::to_value(dtype).unwrap(), dtype.to_string());
        }
        for name in ["Float32", "float32 ", "f32", ""] {
            assert_eq!(name.parse::<Dtype>(), Err(UnknownDtype));
        }
    }

    #[test]
    fn shared_types_have_the_same_width() {
        for dtype in Dtype::ALL {
            if let Some(core) = dtype.core() {
                assert_eq!(core.bits(), dtype.bits());
                assert_eq!(core.swap_unit(), dtype.swap_unit());
            }
        }
        assert_eq!(
            Dtype::ALL.iter().filter(|dtype| dtype.core().is_some()).count(),
            tercet_core::ElementType::ALL.len()
        );
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(Dtype::Bitmask.payload_len(10), Some(2));
        assert_eq!(Dtype::Bitmask.payload_len(u64::MAX), Some(1 << 61));
        assert_eq!(Dtype::Complex128.payload_len(3), Some(48));
        assert_eq!(Dtype::Uint8.payload_len(u64::MAX), Some(u64::MAX));
        assert_eq!(Dtype::Uint16.payload_len(1 << 63), None);
    }

    proptest! {
        #[test]
        fn units_are_reversed(bytes in vec(any::<u8>(), 0..100), unit in 0_usize..17) {
            let mut swapped = bytes.clone();
            swap_in_place(&mut swapped, unit);
            let whole = bytes.len() / unit.max(1) * unit.max(1);
            for (at, byte) in swapped.into_iter().enumerate() {
                let unit = unit.max(1);
                let from = if at < whole { at / unit * unit + unit - 1 - at % unit } else { at };
                prop_assert_eq!(byte, bytes[from]);
            }
        }
    }
}
