//! Products that neither overflow nor underflow on the way.

use super::single::Single;
use crate::exec::number::Number;

/// Πx; 1 for no values. Zero, infinities and NaN by the rules of floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product;

/// `mantissa · 2^exponent`; the mantissa stays near 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    /// Takes the exponent out of the mantissa, unless that is zero or not finite.
    #[inline]
    fn normalize(&mut self) {
        const BIAS: i64 = 1023;
        let bits = self.mantissa.to_bits();
        let exponent = (bits >> 52 & 0x7ff).cast_signed();
        if exponent == 0x7ff || self.mantissa == 0.0 {
            return;
        }
        if exponent == 0 {
            // Subnormal.
            self.mantissa *= 2f64.powi(64);
            self.exponent -= 64;
            return self.normalize();
        }
        self.mantissa = f64::from_bits(bits & !(0x7ff << 52) | BIAS.cast_unsigned() << 52);
        self.exponent += exponent - BIAS;
    }

    fn multiply(&mut self, other: Self) {
        self.mantissa *= other.mantissa;
        self.exponent += other.exponent;
        self.normalize();
    }

    fn value(self) -> f64 {
        let mut value = self.mantissa;
        // In steps that a float can hold; the last one rounds.
        let mut left = self.exponent.clamp(-5000, 5000);
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        while left > 1000 {
            value *= 2f64.powi(1000);
            left -= 1000;
        }
        if left < -1000 {
            // Rounded once: the mantissa is exact until the result is subnormal.
            let below = left.max(-2200) + 1000;
            value *= 2f64.powi(i32::try_from(below / 2).unwrap_or(0))
                * 2f64.powi(i32::try_from(below - below / 2).unwrap_or(0));
            left = -1000;
        }
        value * 2f64.powi(i32::try_from(left).unwrap_or(0))
    }
}

impl Single for Product {
    type State<T: Number> = Scaled;

    fn start<T: Number>(&self) -> Scaled {
        Scaled { mantissa: 1.0, exponent: 0 }
    }

    #[inline]
    fn add<T: Number>(&self, state: &mut Scaled, value: T, _: u64) {
        let mut value = Scaled { mantissa: value.to_f64(), exponent: 0 };
        value.normalize();
        state.multiply(value);
    }

    fn merge<T: Number>(&self, state: &mut Scaled, later: &Scaled) {
        state.multiply(*later);
    }

    fn finish<T: Number>(&self, state: &Scaled, put: &mut dyn FnMut(f64)) {
        put(state.value() + 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(values: &[f64]) -> f64 {
        let mut state = Single::start::<f64>(&Product);
        Product.add_all(&mut state, values, 0);
        state.value()
    }

    #[test]
    fn partial_products_do_not_overflow() {
        assert_eq!(product(&[2f64.powi(1000), 2f64.powi(1000), 2f64.powi(-1000), 2f64.powi(-1000)]), 1.0);
        assert_eq!(product(&[2f64.powi(-1000), 2f64.powi(-1000), 2f64.powi(1000), 2f64.powi(1000)]), 1.0);
        assert_eq!(product(&[2.0; 1023]), 2f64.powi(1023));
        assert_eq!(product(&[2.0; 1024]), f64::INFINITY);
        assert_eq!(product(&[-2.0; 1025]), f64::NEG_INFINITY);
        assert_eq!(product(&[0.5; 1074]), f64::from_bits(1));
        assert_eq!(product(&[0.5; 1060]), f64::from_bits(1 << 14));
        assert_eq!(product(&[0.5; 1080]), 0.0);
        assert_eq!(product(&vec![0.5; 100_000]), 0.0);
        assert_eq!(product(&[f64::from_bits(1), 2f64.powi(1000)]), 2f64.powi(-74));
        assert_eq!(product(&[3.0, 5.0, -7.0]), -105.0);
        assert!(product(&[0.0, f64::INFINITY]).is_nan());
        assert_eq!(product(&[f64::INFINITY, -1.0]), f64::NEG_INFINITY);
        assert_eq!(product(&[]), 1.0);
    }
}
