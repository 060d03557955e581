//! Slow, obvious rounding of floats.

use std::cmp::Ordering;

use tercet_core::tensor::f16;

/// Nearest f16, by comparing all candidates; ties to even.
pub fn nearest_half(x: f64) -> f16 {
    if x.is_nan() || x.is_infinite() {
        return f16::from_f64_const(x);
    }
    // The value after the largest represents infinity.
    let value = |bits: u16| if bits == 0x7c00 { 65_536.0 } else { f64::from(f16::from_bits(bits)) };
    let near = f16::from_f64_const(x.abs()).to_bits();
    let candidates = near.saturating_sub(1)..=(near + 1).min(0x7c00);
    let distance = |bits: u16| (value(bits) - x.abs()).abs();
    let best = candidates.fold(near, |best, bits| match distance(bits).total_cmp(&distance(best)) {
        Ordering::Less => bits,
        Ordering::Equal if bits & 1 == 0 => bits,
        _ => best,
    });
    f16::from_bits(best | if x.is_sign_negative() { 0x8000 } else { 0 })
}
