//! Integer types of streams.

use bytemuck::Pod;

/// An integer type of 8 to 64 bits.
///
/// Every scheme works on unsigned 64-bit numbers; decoding truncates to the type.
pub trait Integer: Pod + Ord + std::fmt::Debug + Send + Sync + private::Sealed {
    /// Whether the type is signed.
    const SIGNED: bool;

    /// The value as 64 bits, sign-extended: -1 is 2^64 - 1.
    fn widen(self) -> u64;

    /// The low bits of `wide`.
    fn narrow(wide: u64) -> Self;

    /// Conversion from little-endian to native byte order, and back.
    #[doc(hidden)]
    fn swap_if_big_endian(self) -> Self;
}

mod private {
    pub trait Sealed {}
}

macro_rules! lanes {
    ($($lane:ty, $signed:literal, |$value:ident| $widen:expr;)*) => { $(
        impl private::Sealed for $lane {}

        impl Integer for $lane {
            const SIGNED: bool = $signed;

            #[inline]
            fn widen(self) -> u64 {
                let $value = self;
                $widen
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_lossless, reason = "cuts on purpose")]
            fn narrow(wide: u64) -> Self {
                wide as Self
            }

            #[inline]
            fn swap_if_big_endian(self) -> Self {
                self.to_le()
            }
        }
    )* };
}

lanes! {
    u8, false, |value| u64::from(value);
    u16, false, |value| u64::from(value);
    u32, false, |value| u64::from(value);
    u64, false, |value| value;
    i8, true, |value| i64::from(value).cast_unsigned();
    i16, true, |value| i64::from(value).cast_unsigned();
    i32, true, |value| i64::from(value).cast_unsigned();
    i64, true, |value| value.cast_unsigned();
}
