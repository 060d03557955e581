//! 256-bit integers, for decimals.

use std::fmt::Write as _;

/// Digits per division.
const CHUNK_DIGITS: usize = 18;
const CHUNK: u64 = 1_000_000_000_000_000_000;

/// A 256-bit integer in sign and magnitude. Zero is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Int256 {
    negative: bool,
    /// The magnitude, least significant first.
    limbs: [u64; 4],
}

impl Int256 {
    /// Parses digits; `None` on overflow.
    pub(crate) fn from_digits(negative: bool, digits: impl Iterator<Item = u8>) -> Option<Self> {
        let mut out = Self::default();
        for digit in digits {
            out.grow(10, u64::from(digit.wrapping_sub(b'0')))?;
        }
        out.negative = negative && out.limbs != [0; 4];
        Some(out)
    }

    /// Multiplies the magnitude and adds to it.
    fn grow(&mut self, factor: u64, add: u64) -> Option<()> {
        let mut carry = u128::from(add);
        for limb in &mut self.limbs {
            let sum = u128::from(*limb) * u128::from(factor) + carry;
            *limb = low(sum);
            carry = sum >> 64;
        }
        (carry == 0).then_some(())
    }

    /// The sum; `None` on overflow.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        if self.negative == other.negative {
            let (mut out, mut carries) = (self, false);
            for (limb, add) in out.limbs.iter_mut().zip(other.limbs) {
                let (sum, one) = limb.overflowing_add(add);
                let (sum, two) = sum.overflowing_add(u64::from(carries));
                (*limb, carries) = (sum, one || two);
            }
            return (!carries).then_some(out);
        }
        // The magnitudes are compared from the most significant limb.
        let is_less = self.limbs.iter().rev().lt(other.limbs.iter().rev());
        let (mut out, less) = if is_less { (other, self) } else { (self, other) };
        let mut borrows = false;
        for (limb, subtract) in out.limbs.iter_mut().zip(less.limbs) {
            let (difference, one) = limb.overflowing_sub(subtract);
            let (difference, two) = difference.overflowing_sub(u64::from(borrows));
            (*limb, borrows) = (difference, one || two);
        }
        out.negative &= out.limbs != [0; 4];
        Some(out)
    }

    /// The nearest float of this number divided by a power of ten.
    pub(crate) fn to_f64(self, scale: i8) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.digits(), -i32::from(scale)).parse().unwrap_or(f64::NAN)
    }

    /// The predecessor.
    pub(crate) fn before(mut self) -> Option<Self> {
        if self.negative || self.limbs == [0; 4] {
            self.grow(1, 1)?;
            self.negative = true;
            return Some(self);
        }
        for limb in &mut self.limbs {
            let (less, borrows) = limb.overflowing_sub(1);
            *limb = less;
            if !borrows {
                break;
            }
        }
        Some(self)
    }

    pub(crate) fn to_i64(self) -> Option<i64> {
        if self.limbs[1..] != [0; 3] {
            return None;
        }
        let magnitude = i128::from(self.limbs[0]);
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// Two's complement, big-endian, in the given number of bytes (at most 32); `None` on overflow.
    pub(crate) fn to_bytes(self, width: usize) -> Option<Vec<u8>> {
        let mut limbs = self.limbs;
        if self.negative {
            negate(&mut limbs);
        }
        let mut bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        let fill = if self.negative { 0xff } else { 0 };
        // Truncated bytes must be the sign extension.
        let cut = bytes.get(width..)?.iter().all(|byte| *byte == fill);
        let sign = bytes.get(width.checked_sub(1)?)? >> 7 == fill & 1;
        bytes.truncate(width);
        bytes.reverse();
        (cut && sign).then_some(bytes)
    }

    /// Parses two's complement, big-endian.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let negative = bytes.first()? >> 7 == 1;
        if bytes.len() > 32 {
            return None;
        }
        let mut padded = [if negative { 0xff } else { 0 }; 32];
        padded[32 - bytes.len()..].copy_from_slice(bytes);
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().rev().zip(padded.chunks_exact(8)) {
            *limb = u64::from_be_bytes(chunk.try_into().ok()?);
        }
        if negative {
            negate(&mut limbs);
        }
        Some(Self { negative, limbs })
    }

    pub(crate) const fn is_negative(self) -> bool {
        self.negative
    }

    /// The digits of the magnitude.
    pub(crate) fn digits(self) -> String {
        let (mut limbs, mut chunks) = (self.limbs, Vec::new());
        while limbs != [0; 4] {
            let mut rest = 0;
            for limb in limbs.iter_mut().rev() {
                let part = u128::from(rest) << 64 | u128::from(*limb);
                *limb = low(part / u128::from(CHUNK));
                rest = low(part % u128::from(CHUNK));
            }
            chunks.push(rest);
        }
        let mut out = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            // Writing to a String cannot fail.
            let _ = write!(out, "{chunk:0CHUNK_DIGITS$}");
        }
        out
    }
}

impl From<i128> for Int256 {
    fn from(value: i128) -> Self {
        let magnitude = value.unsigned_abs();
        Self { negative: value < 0, limbs: [low(magnitude), low(magnitude >> 64), 0, 0] }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn low(value: u128) -> u64 {
    value as u64
}

fn negate(limbs: &mut [u64; 4]) {
    let mut carries = true;
    for limb in limbs {
        let (sum, overflows) = (!*limb).overflowing_add(u64::from(carries));
        (*limb, carries) = (sum, overflows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(number: Int256) -> String {
        format!("{}{}", if number.is_negative() { "-" } else { "" }, number.digits())
    }

    #[test]
    fn small_numbers_equal_i128() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128;
        for round in 0..2000 {
            seed = seed.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            let value = seed.cast_signed() >> (round % 128);
            for value in [value, i128::MIN, i128::MAX, 0, -1, i128::from(i64::MIN), i128::from(i64::MAX)] {
                let wide = Int256::from(value);
                assert_eq!(display(wide), value.to_string());
                assert_eq!(wide.to_bytes(16).unwrap(), value.to_be_bytes());
                assert_eq!(Int256::from_bytes(&value.to_be_bytes()), Some(wide));
                assert_eq!(wide.to_i64(), i64::try_from(value).ok());
                let digits = value.unsigned_abs().to_string();
                assert_eq!(Int256::from_digits(value < 0, digits.bytes()), Some(wide));
                let other = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (round % 64);
                if let Some(sum) = value.checked_add(other) {
                    assert_eq!(wide.checked_add(Int256::from(other)), Some(Int256::from(sum)));
                }
                assert_eq!(wide.to_f64(0).to_bits(), value.to_string().parse::<f64>().unwrap().to_bits());
                if let Some(before) = value.checked_sub(1) {
                    assert_eq!(wide.before(), Some(Int256::from(before)));
                }
                assert_eq!(wide.to_bytes(8).is_some(), i64::try_from(value).is_ok());
            }
        }
    }

    #[test]
    fn large_numbers_round_trip() {
        let most = "9".repeat(76);
        for negative in [false, true] {
            let wide = Int256::from_digits(negative, most.bytes()).unwrap();
            assert_eq!(wide.digits(), most);
            assert_eq!(Int256::from_bytes(&wide.to_bytes(32).unwrap()), Some(wide));
            assert_eq!(wide.to_bytes(16), None);
        }
        assert_eq!(Int256::from_digits(false, "9".repeat(78).bytes()), None);
        let [positive, negative] = [false, true].map(|sign| Int256::from_digits(sign, most.bytes()).unwrap());
        assert_eq!(positive.checked_add(negative), Some(Int256::default()));
        assert_eq!(negative.checked_add(positive), Some(Int256::default()));
        let twice = positive.checked_add(positive).unwrap();
        assert_eq!(twice.digits(), format!("1{}8", "9".repeat(75)));
        assert_eq!(twice.checked_add(negative), Some(positive));
        let largest = Int256 { negative: false, limbs: [u64::MAX; 4] };
        assert_eq!(largest.checked_add(Int256::from(1)), None);
        assert_eq!(largest.checked_add(Int256::from(-1)).unwrap().limbs[0], u64::MAX - 1);
        assert_eq!(Int256::from(-125).to_f64(2).to_bits(), (-1.25f64).to_bits());
        assert_eq!(Int256::from_digits(true, "000".bytes()), Some(Int256::default()));
    }
}
