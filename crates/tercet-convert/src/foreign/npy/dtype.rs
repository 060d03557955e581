//! Numeric element types of `.npy` files.

use tercet_core::ElementType;

/// Numeric element type. Complex numbers are pairs: real part, then imaginary part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Element {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    C64,
    C128,
}

impl Element {
    /// Every element type.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
    ];

    /// NumPy type string, little-endian: `<f4`, `|u1`, …
    pub const fn descr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::C64 => "<c8",
            Self::C128 => "<c16",
        }
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// The shared element type, if there is one.
    pub const fn core(self) -> Option<ElementType> {
        match self {
            Self::I16 => Some(ElementType::I16),
            Self::I32 => Some(ElementType::I32),
            Self::I64 => Some(ElementType::I64),
            Self::U8 => Some(ElementType::U8),
            Self::U16 => Some(ElementType::U16),
            Self::U32 => Some(ElementType::U32),
            Self::U64 => Some(ElementType::U64),
            Self::F16 => Some(ElementType::F16),
            Self::F32 => Some(ElementType::F32),
            Self::F64 => Some(ElementType::F64),
            Self::Bool | Self::I8 | Self::C64 | Self::C128 => None,
        }
    }

    /// Parses a type code without byte order: `f4`, `b1`, ….
    pub(super) fn parse(kind: &str) -> Option<Self> {
        match kind {
            "?" => Some(Self::Bool),
            _ => Self::ALL.into_iter().find(|element| &element.descr()[1..] == kind),
        }
    }

    /// Converts elements of the file in place: to little-endian numbers, and to bools of 0 and 1.
    pub(super) fn finish(self, swapped: bool, out: &mut [u8]) {
        match self {
            Self::Bool => out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
            _ if swapped => swap(self.swap_unit(), out),
            _ => {}
        }
    }

    /// Number of bytes that a swap reverses together: the parts of a complex number are swapped separately.
    const fn swap_unit(self) -> usize {
        match self {
            Self::C64 | Self::C128 => self.size() / 2,
            _ => self.size(),
        }
    }
}

impl From<ElementType> for Element {
    fn from(dtype: ElementType) -> Self {
        match dtype {
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

fn swap(unit: usize, out: &mut [u8]) {
    // With a constant size each loop is vectorized.
    fn each<const N: usize>(out: &mut [u8]) {
        out.as_chunks_mut::<N>().0.iter_mut().for_each(|element| element.reverse());
    }
    match unit {
        2 => each::<2>(out),
        4 => each::<4>(out),
        8 => each::<8>(out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_types_are_the_same_both_ways() {
        for dtype in ElementType::ALL {
            let element = Element::from(dtype);
            assert_eq!((element.core(), element.size()), (Some(dtype), dtype.size()));
        }
        assert_eq!(
            Element::ALL.iter().filter(|element| element.core().is_some()).count(),
            ElementType::ALL.len()
        );
    }

    #[test]
    fn names_tell_the_size() {
        for element in Element::ALL {
            let (order, kind) = element.descr().split_at(1);
            assert_eq!(kind[1..].parse(), Ok(element.size()), "{kind}");
            assert_eq!(order == "|", element.size() == 1, "{kind}");
            assert_eq!(Element::parse(kind), Some(element));
        }
        assert_eq!(Element::parse("?"), Some(Element::Bool));
        assert_eq!(Element::parse("f3"), None);
    }

    #[test]
    fn parts_of_complex_numbers_are_swapped_each() {
        let mut bytes: Vec<u8> = (0..16).collect();
        Element::C128.finish(true, &mut bytes);
        assert_eq!(bytes, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]);
        Element::C64.finish(true, &mut bytes[..8]);
        assert_eq!(bytes[..8], [4, 5, 6, 7, 0, 1, 2, 3]);
    }
}
