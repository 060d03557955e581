//! Element types of arrays.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::ElementType;

/// The type of an array's elements, with the names of NumPy.
///
/// A container format stores some of these types and refuses the others. [`element`](Self::element) gives the
/// numeric types that [`with_element!`](crate::with_element) dispatches on.
///
/// ```
/// use tercet_core::DType;
///
/// assert_eq!(DType::F32.name(), "float32");
/// assert_eq!("f32".parse(), Ok(DType::F32));
/// assert_eq!(DType::Bitmask.byte_len(10), Some(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 half precision.
    F16,
    /// The upper 16 bits of a single-precision float.
    BF16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Real and imaginary part in single precision.
    C64,
    /// Real and imaginary part in double precision.
    C128,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// One byte, 0 or 1.
    Bool,
    /// One bit. The first element of each byte is its highest bit.
    Bitmask,
}

impl DType {
    /// Every element type.
    pub const ALL: [Self; 16] = [
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
        Self::Bitmask,
    ];

    /// The name in NumPy: `float32`, `uint8`. Bitmasks are `bitmask`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::Bitmask => "bitmask",
        }
    }

    /// The short name: `f32`, `u8`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C64 => "c64",
            Self::C128 => "c128",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::Bitmask => "bitmask",
        }
    }

    /// The type with this [`name`](Self::name); short names are refused.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bits of one element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bitmask => 1,
            Self::I8 | Self::U8 | Self::Bool => 8,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 16,
            Self::F32 | Self::I32 | Self::U32 => 32,
            Self::F64 | Self::C64 | Self::I64 | Self::U64 => 64,
            Self::C128 => 128,
        }
    }

    /// Bytes of one element; none for bitmasks.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Bitmask => None,
            _ => Some((self.bits() / 8) as usize),
        }
    }

    /// Bytes of `n` elements, unless the number overflows.
    pub const fn byte_len(self, n: u64) -> Option<u64> {
        match self {
            Self::Bitmask => Some(n.div_ceil(8)),
            _ => n.checked_mul((self.bits() / 8) as u64),
        }
    }

    /// Bytes that a change of the byte order reverses together: half an element of a complex type, 1 where there is
    /// nothing to reverse.
    pub const fn swap_unit(self) -> usize {
        match self {
            Self::Bitmask | Self::Bool | Self::I8 | Self::U8 => 1,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::C64 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::C128 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether elements are real floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// The numeric type that [`with_element!`](crate::with_element) dispatches on, if this is one.
    pub const fn element(self) -> Option<ElementType> {
        match self {
            Self::F16 => Some(ElementType::F16),
            Self::F32 => Some(ElementType::F32),
            Self::F64 => Some(ElementType::F64),
            Self::I16 => Some(ElementType::I16),
            Self::I32 => Some(ElementType::I32),
            Self::I64 => Some(ElementType::I64),
            Self::U8 => Some(ElementType::U8),
            Self::U16 => Some(ElementType::U16),
            Self::U32 => Some(ElementType::U32),
            Self::U64 => Some(ElementType::U64),
            Self::BF16 | Self::C64 | Self::C128 | Self::I8 | Self::Bool | Self::Bitmask => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Accepts names and short names.
impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        let mut all = Self::ALL.into_iter();
        all.find(|dtype| dtype.name() == text || dtype.short_name() == text).ok_or(UnknownDType)
    }
}

impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A name that is not an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDType;

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown element type")
    }
}

impl std::error::Error for UnknownDType {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(dtype.short_name().parse(), Ok(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!("f128".parse::<DType>(), Err(UnknownDType));
        assert_eq!(DType::from_name("f32"), None);
        assert_eq!(DType::from_name("Float32"), None);
    }

    #[test]
    fn element_types_have_the_same_size() {
        for dtype in DType::ALL {
            if let Some(element) = dtype.element() {
                assert_eq!(Some(element.size()), dtype.size());
                assert_eq!(element.size(), dtype.swap_unit());
                assert_eq!(element.name(), dtype.short_name());
                assert_eq!(DType::from(element), dtype);
            }
        }
        let elements = DType::ALL.into_iter().filter_map(DType::element).count();
        assert_eq!(elements, ElementType::ALL.len());
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(DType::Bitmask.byte_len(10), Some(2));
        assert_eq!(DType::Bitmask.byte_len(u64::MAX), Some(1 << 61));
        assert_eq!(DType::C128.byte_len(3), Some(48));
        assert_eq!(DType::U8.byte_len(u64::MAX), Some(u64::MAX));
        assert_eq!(DType::U16.byte_len(1 << 63), None);
    }
}
