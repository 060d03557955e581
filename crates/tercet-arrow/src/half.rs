//! Conversion between float16 and float32 that keeps every bit, including NaN payloads.

use half::f16;

/// Widens to float32.
pub(crate) fn widen(value: f16) -> f32 {
    if !value.is_nan() {
        return value.to_f32();
    }
    // Hardware conversions quiet signalling NaNs: move the bits instead.
    let bits = u32::from(value.to_bits());
    f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x03ff) << 13)
}

/// Narrows to float16; `None` if the value is not representable.
pub(crate) fn narrow(value: f32) -> Option<f16> {
    let narrow = if value.is_nan() {
        let bits = value.to_bits();
        let sign = u16::try_from(bits >> 31).ok()? << 15;
        f16::from_bits(sign | 0x7c00 | u16::try_from(bits >> 13 & 0x03ff).ok()?)
    } else {
        f16::from_f32(value)
    };
    (widen(narrow).to_bits() == value.to_bits()).then_some(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float16_round_trips() {
        for bits in 0..=u16::MAX {
            let wide = widen(f16::from_bits(bits));
            assert_eq!(narrow(wide).map(f16::to_bits), Some(bits));
        }
        for value in [1e10, 1.0e-10, 0.1, f32::from_bits(0x7f80_0001)] {
            assert_eq!(narrow(value), None, "{value}");
        }
    }
}
