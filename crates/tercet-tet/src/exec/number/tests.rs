use tercet_core::tensor::f16;

use super::Number;

#[test]
fn halves_widen_exactly() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        let (single, double) = (half.rank(), Number::to_f64(half));
        if half.is_nan() {
            assert!(single.is_nan() && double.is_nan(), "{bits:#x}");
        } else {
            assert_eq!(single.to_bits(), half.to_f32_const().to_bits(), "{bits:#x}");
            assert_eq!(double.to_bits(), half.to_f64_const().to_bits(), "{bits:#x}");
            assert_eq!(f16::nearest_f64(double).to_bits(), bits);
        }
    }
}

#[test]
fn halves_are_rounded_once() {
    // A tie, and numbers that are not ties but become ties as f32.
    let (tie, little) = (1.0 + 2f64.powi(-11), 2f64.powi(-40));
    assert_eq!(f16::nearest_f64(tie), f16::from_f32(1.0));
    assert_eq!(f16::nearest_f64(tie + little), f16::from_f32(1.0 + 2f32.powi(-10)));
    assert_eq!(f16::nearest_f64(-tie - little), f16::from_f32(-1.0 - 2f32.powi(-10)));
    let upper_tie = 1.0 + 2f64.powi(-10) + 2f64.powi(-11);
    assert_eq!(f16::nearest_f64(upper_tie - little), f16::from_f32(1.0 + 2f32.powi(-10)));
    assert_eq!(f16::nearest_f64(65519.99), f16::MAX);
    assert!(f16::nearest_f64(65520.0).is_infinite() && f16::nearest_f64(1e300).is_infinite());
    assert!(f16::nearest_f64(f64::NAN).is_nan());
}
