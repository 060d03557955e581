//! Octets of a section, numbered from 1 as in the WMO manual, and bits.

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not follow the format.
    Malformed(String),
    /// It uses a part of the format that is not supported.
    Unsupported(String),
}

impl Fault {
    pub(super) fn malformed<T>(detail: impl Into<String>) -> Result<T, Self> {
        Err(Self::Malformed(detail.into()))
    }

    pub(super) fn unsupported<T>(detail: impl Into<String>) -> Result<T, Self> {
        Err(Self::Unsupported(detail.into()))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Malformed(detail) | Self::Unsupported(detail)) = self;
        f.write_str(detail)
    }
}

/// The octets of a section. The first has the number 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Octets<'a> {
    pub(super) section: u8,
    pub(super) bytes: &'a [u8],
}

impl<'a> Octets<'a> {
    pub(super) fn new(section: u8, bytes: &'a [u8]) -> Self {
        Self { section, bytes }
    }

    pub(super) fn take(&self, at: usize, count: usize) -> Result<&'a [u8], Fault> {
        at.checked_sub(1).and_then(|start| self.bytes.get(start..start.checked_add(count)?)).ok_or_else(
            || {
                Fault::Malformed(format!(
                    "section {} has {} octets, but octet {} is needed",
                    self.section,
                    self.bytes.len(),
                    at.saturating_add(count).saturating_sub(1)
                ))
            },
        )
    }

    /// An unsigned number of up to 8 octets.
    pub(super) fn unsigned(&self, at: usize, count: usize) -> Result<u64, Fault> {
        Ok(self.take(at, count)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn u8(&self, at: usize) -> Result<u8, Fault> {
        Ok(self.take(at, 1)?[0])
    }

    pub(super) fn u16(&self, at: usize) -> Result<u16, Fault> {
        self.take(at, 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&self, at: usize) -> Result<u32, Fault> {
        self.take(at, 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A number of up to 7 octets whose first bit is its sign.
    pub(super) fn signed(&self, at: usize, count: usize) -> Result<i64, Fault> {
        let value = self.unsigned(at, count)?;
        Ok(sign_magnitude(value, u32::try_from(count * 8).unwrap_or(64)))
    }

    /// An IEEE float.
    pub(super) fn ieee(&self, at: usize) -> Result<f64, Fault> {
        Ok(f64::from(f32::from_bits(self.u32(at)?)))
    }

    /// An IBM float: sign, power of 16, fraction of 24 bits.
    pub(super) fn ibm(&self, at: usize) -> Result<f64, Fault> {
        let bits = self.u32(at)?;
        let power = i32::try_from(bits >> 24 & 0x7f).unwrap_or(0) - 64 - 6;
        let value = f64::from(bits & 0x00ff_ffff) * 16f64.powi(power);
        Ok(if bits >> 31 == 1 { -value } else { value })
    }
}

/// The number of `bits` bits whose first bit is its sign.
pub(super) fn sign_magnitude(value: u64, bits: u32) -> i64 {
    if bits == 0 {
        return 0;
    }
    let sign = 1u64 << (bits - 1).min(63);
    let magnitude = i64::try_from(value & (sign - 1)).unwrap_or(i64::MAX);
    if value & sign == 0 { magnitude } else { -magnitude }
}

/// Bits of bytes, most significant first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether this number of values of a width is left.
    pub(super) fn has(&self, count: u64, width: u32) -> bool {
        let left = (self.bytes.len() as u64).saturating_mul(8).saturating_sub(self.at as u64);
        count.saturating_mul(width.into()) <= left
    }

    /// The next value of at most 57 bits; bits after the end are 0. Callers check with [`Bits::has`] first.
    pub(super) fn next(&mut self, width: u32) -> u64 {
        if width == 0 {
            return 0;
        }
        let byte = self.at / 8;
        let word = if let Some(word) = self.bytes.get(byte..byte + 8) {
            word.try_into().map_or(0, u64::from_be_bytes)
        } else {
            let mut word = [0; 8];
            let rest = self.bytes.get(byte..).unwrap_or_default();
            word[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(word)
        };
        let shift = u32::try_from(self.at % 8).unwrap_or(0);
        self.at += width as usize;
        word << shift >> (64 - width)
    }

    /// Continues with the next whole byte.
    pub(super) fn align(&mut self) {
        self.at = self.at.div_ceil(8) * 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_manual_says() {
        let octets = Octets::new(1, &[0x80, 5, 0x42, 0x7b, 0, 0]);
        assert_eq!(octets.signed(1, 2), Ok(-5));
        assert_eq!(octets.unsigned(1, 2), Ok(0x8005));
        // IBM: 0x427b0000 is 123.
        assert_eq!(octets.ibm(3), Ok(123.0));
        assert!(octets.u8(7).is_err() && octets.u8(0).is_err() && octets.u32(4).is_err());
    }

    #[test]
    fn bits_are_most_significant_first() {
        let mut bits = Bits::new(&[0b1010_0001, 0xff, 0x80]);
        assert_eq!((bits.next(3), bits.next(5), bits.next(9)), (0b101, 1, 0x1ff));
        assert!(bits.has(7, 1) && !bits.has(8, 1));
        bits.align();
        assert!(!bits.has(1, 1));
        assert_eq!(bits.next(8), 0);
    }
}
