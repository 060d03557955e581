//! Element types and the one dispatch over them.

use std::fmt;
use std::str::FromStr;

use bytemuck::Pod;
pub use half::f16;
use serde::Serialize;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl DType {
    /// Every element type.
    pub const ALL: [Self; 10] = [
        Self::F16,
        Self::F32,
        Self::F64,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// The short name: `f32`, `u8`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(UnknownDType)
    }
}

/// A name that is no element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDType;

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown element type")
    }
}

impl std::error::Error for UnknownDType {}

/// A Rust type that is the element of an array.
pub trait Element: Pod + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// Its element type.
    const DTYPE: DType;
    /// Converts between the little-endian form of files and the form of this host, in either direction.
    fn swap_le(self) -> Self;
}

macro_rules! elements {
    ($($type:ty = $dtype:ident, $bits:ty;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn swap_le(self) -> Self {
                bytemuck::cast(bytemuck::cast::<Self, $bits>(self).to_le())
            }
        }
    )*};
}

elements! {
    f16 = F16, u16;
    f32 = F32, u32;
    f64 = F64, u64;
    i16 = I16, u16;
    i32 = I32, u32;
    i64 = I64, u64;
    u8 = U8, u8;
    u16 = U16, u16;
    u32 = U32, u32;
    u64 = U64, u64;
}

/// Runs generic code for the element type of a [`DType`]: the only such dispatch in the workspace.
///
/// ```
/// use tercet_core::{DType, with_element};
///
/// let size = with_element!(DType::F16, |T| size_of::<T>());
/// assert_eq!(size, 2);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = $crate::tensor::f16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatch_agrees_with_the_table() {
        for dtype in DType::ALL {
            assert_eq!(with_element!(dtype, |T| T::DTYPE), dtype);
            assert_eq!(with_element!(dtype, |T| size_of::<T>()), dtype.size());
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        assert_eq!("f128".parse::<DType>(), Err(UnknownDType));
    }
}
