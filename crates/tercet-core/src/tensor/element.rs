//! Numeric element types and the one dispatch over them.

use std::fmt;

use bytemuck::Pod;
pub use half::{bf16, f16};
use serde::Serialize;

use super::DType;

/// A numeric element type. [`with_element!`](crate::with_element) dispatches on it.
///
/// The types that `.tet` files store and compute with. [`DType`] has all element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ElementType {
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

impl ElementType {
    /// Every numeric element type.
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

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<ElementType> for DType {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F16 => Self::F16,
            ElementType::F32 => Self::F32,
            ElementType::F64 => Self::F64,
            ElementType::I16 => Self::I16,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::U8 => Self::U8,
            ElementType::U16 => Self::U16,
            ElementType::U32 => Self::U32,
            ElementType::U64 => Self::U64,
        }
    }
}

/// Element types are equal to themselves among all types.
impl PartialEq<ElementType> for DType {
    fn eq(&self, other: &ElementType) -> bool {
        *self == Self::from(*other)
    }
}

/// A Rust type that can be the element of an array.
pub trait Scalar: Pod + fmt::Debug + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;
    /// Converts between the little-endian form of files and the form of this host, in either direction.
    fn swap_le(self) -> Self;
}

/// A Rust type of one of the numeric [`ElementType`]s.
pub trait Element: Scalar + PartialOrd {
    /// The element type.
    const ELEMENT: ElementType;
}

macro_rules! scalars {
    ($($type:ty = $dtype:ident, $bits:ty;)*) => {$(
        impl Scalar for $type {
            const DTYPE: DType = DType::$dtype;
            fn swap_le(self) -> Self {
                bytemuck::cast(bytemuck::cast::<Self, $bits>(self).to_le())
            }
        }
    )*};
}

scalars! {
    f16 = F16, u16;
    bf16 = BF16, u16;
    f32 = F32, u32;
    f64 = F64, u64;
    i8 = I8, u8;
    i16 = I16, u16;
    i32 = I32, u32;
    i64 = I64, u64;
    u8 = U8, u8;
    u16 = U16, u16;
    u32 = U32, u32;
    u64 = U64, u64;
}

macro_rules! elements {
    ($($type:ty = $element:ident;)*) => {$(
        impl Element for $type {
            const ELEMENT: ElementType = ElementType::$element;
        }
    )*};
}

elements! {
    f16 = F16;
    f32 = F32;
    f64 = F64;
    i16 = I16;
    i32 = I32;
    i64 = I64;
    u8 = U8;
    u16 = U16;
    u32 = U32;
    u64 = U64;
}

/// Runs generic code for a numeric [`ElementType`](crate::tensor::ElementType): the only such dispatch in the
/// workspace.
///
/// ```
/// use tercet_core::tensor::ElementType;
/// use tercet_core::with_element;
///
/// let size = with_element!(ElementType::F16, |T| size_of::<T>());
/// assert_eq!(size, 2);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            $crate::tensor::ElementType::F16 => {
                type $T = $crate::tensor::f16;
                $body
            }
            $crate::tensor::ElementType::F32 => {
                type $T = f32;
                $body
            }
            $crate::tensor::ElementType::F64 => {
                type $T = f64;
                $body
            }
            $crate::tensor::ElementType::I16 => {
                type $T = i16;
                $body
            }
            $crate::tensor::ElementType::I32 => {
                type $T = i32;
                $body
            }
            $crate::tensor::ElementType::I64 => {
                type $T = i64;
                $body
            }
            $crate::tensor::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::tensor::ElementType::U16 => {
                type $T = u16;
                $body
            }
            $crate::tensor::ElementType::U32 => {
                type $T = u32;
                $body
            }
            $crate::tensor::ElementType::U64 => {
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
        for element in ElementType::ALL {
            assert_eq!(with_element!(element, |T| T::ELEMENT), element);
            assert_eq!(with_element!(element, |T| size_of::<T>()), element.size());
            assert_eq!(with_element!(element, |T| T::DTYPE), element);
        }
    }
}
