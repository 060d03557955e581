//! Second-order packing of GRIB 1: integers in groups of their own length and width, each with a first-order value that is added. Integers
//! may be differences.
//!
//! ```text
//! octets of section 4:
//! 12 N1 · 14 flags · 15 N2 · 17 groups · 19 values · 21 more groups
//! general extended: 22 bits of widths · 23 bits of lengths · 24 NL · [26 bits · first values and bias] · widths · lengths
//! others:           22 widths, of 8 bits each; of constant width: one width · [secondary bitmap: 1 at the start of a group]
//! all:              first-order values · second-order values
//! ```
//!
//! The positions N1, N2 and NL have 16 bits, too few for large fields; the lists follow each other.

use super::octets::{Bits, Fault, Octets, sign_magnitude};
use super::unpack::{MAX_BITS, Scale};

/// The layout of a section with second-order packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecondOrder {
    groups: usize,
    /// The order of differences, 0 for none.
    order: usize,
    /// Every second row runs in the opposite direction.
    pub(super) is_alternating: bool,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// General extended: bits of a width, of a length, of the first values of differences.
    Extended { width: u32, length: u32, first: u32 },
    /// With a secondary bitmap; groups have one width, or each its own.
    Bitmap { has_one_width: bool },
}

/// Lists of bits that follow each other, each from a whole octet on.
struct Lists<'a> {
    bits: Bits<'a>,
}

impl Lists<'_> {
    fn read(&mut self, count: usize, width: u32) -> Result<Vec<u64>, Fault> {
        self.check(count, width)?;
        let list = (0..count).map(|_| self.bits.next(width)).collect();
        self.bits.align();
        Ok(list)
    }

    fn check(&self, count: usize, width: u32) -> Result<(), Fault> {
        if width > MAX_BITS {
            return Fault::unsupported(format!("second-order packing with integers of {width} bits"));
        }
        if self.bits.has(count as u64, width) {
            Ok(())
        } else {
            Fault::malformed("the section of second-order packing is too short")
        }
    }
}

impl SecondOrder {
    /// The octets that [`SecondOrder::edition1`] reads.
    pub(super) const HEAD: u64 = 26;

    /// The start of section 4.
    pub(super) fn edition1(section: Octets<'_>) -> Result<Self, Fault> {
        let flags = section.u8(14)?;
        let is_set = |bit: u8| flags & bit != 0;
        if is_set(0x40) {
            return Fault::unsupported("a matrix of values at each point");
        }
        let groups = usize::from(section.u16(17)?) + (usize::from(section.u8(21)?) << 16);
        let (has_bitmap, has_widths) = (is_set(0x20), is_set(0x10));
        let (form, order) = if is_set(0x08) {
            if has_bitmap || !has_widths {
                return Fault::unsupported(format!("second-order packing with flags {flags:#04x}"));
            }
            let order = 2 * usize::from(is_set(0x02)) + usize::from(is_set(0x01));
            let first = if order > 0 { section.u8(26)?.into() } else { 0 };
            (Form::Extended { width: section.u8(22)?.into(), length: section.u8(23)?.into(), first }, order)
        } else if has_bitmap {
            (Form::Bitmap { has_one_width: !has_widths }, 0)
        } else {
            return Fault::unsupported("second-order packing of GRIB 1 row by row");
        };
        Ok(Self { groups, order, is_alternating: is_set(0x04), form })
    }

    /// Decodes `count` values.
    pub(super) fn decode(&self, scale: &Scale, section: Octets<'_>, count: usize) -> Result<Vec<f64>, Fault> {
        if self.groups > count {
            return Fault::malformed(format!("{} groups for {count} values", self.groups));
        }
        let start = match self.form {
            Form::Extended { .. } if self.order == 0 => 25,
            Form::Extended { .. } => 26,
            Form::Bitmap { .. } => 21,
        };
        let rest = section.bytes.get(start..).unwrap_or_default();
        let mut lists = Lists { bits: Bits::new(rest) };
        let (mut firsts, mut bias) = (Vec::new(), 0);
        let (widths, lengths) = match self.form {
            Form::Extended { width, length, first } => {
                if self.order > 0 {
                    firsts = lists.read(self.order + 1, first)?;
                    bias = firsts.pop().map_or(0, |bias| sign_magnitude(bias, first));
                }
                (lists.read(self.groups, width)?, lists.read(self.groups, length)?)
            }
            Form::Bitmap { has_one_width } => {
                let widths = lists.read(if has_one_width { 1 } else { self.groups }, 8)?;
                let widths = if has_one_width { vec![widths[0]; self.groups] } else { widths };
                (widths, group_lengths(&lists.read(count, 1)?))
            }
        };
        let stored = lengths.iter().fold(firsts.len() as u64, |sum, length| sum.saturating_add(*length));
        if stored != count as u64 || lengths.len() != self.groups {
            return Fault::malformed(format!("groups of {stored} values instead of {count}"));
        }
        let references = lists.read(self.groups, scale.bits)?;
        let mut integers: Vec<i64> = Vec::with_capacity(count);
        for ((reference, width), length) in references.iter().zip(&widths).zip(&lengths) {
            let width = u32::try_from(*width).unwrap_or(u32::MAX);
            // At most `count`, as the sum is.
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            lists.check(length, width)?;
            let value = |_| reference.wrapping_add(lists.bits.next(width)).cast_signed();
            integers.extend((0..length).map(value));
        }
        Ok(scale.values(self.sum_up(&firsts, bias, integers).into_iter()))
    }

    /// Replaces differences by values.
    fn sum_up(&self, firsts: &[u64], bias: i64, differences: Vec<i64>) -> Vec<i64> {
        if self.order == 0 {
            return differences;
        }
        let mut values: Vec<i64> = firsts.iter().map(|value| value.cast_signed()).collect();
        values.reserve(differences.len());
        // The last value, its difference to the one before, the difference of that.
        let mut state = Vec::with_capacity(self.order);
        let mut level = values.clone();
        while let Some(last) = level.last() {
            state.push(*last);
            level = level.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
        }
        for difference in differences {
            let mut step = difference.wrapping_add(bias);
            for slot in state.iter_mut().rev() {
                *slot = slot.wrapping_add(step);
                step = *slot;
            }
            values.push(step);
        }
        values
    }
}

/// The lengths of groups whose starts are marked.
fn group_lengths(starts: &[u64]) -> Vec<u64> {
    let mut lengths: Vec<u64> = Vec::new();
    for is_start in starts {
        match lengths.last_mut() {
            Some(last) if *is_start == 0 => *last += 1,
            _ => lengths.push(1),
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { reference: 0.0, binary: 0, decimal: 0, bits: 8 };

    /// A section with flags, groups and the octets from 22 on.
    fn section(flags: u8, groups: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 21];
        bytes[13] = flags;
        bytes[16..18].copy_from_slice(&groups.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    fn decode(bytes: &[u8], count: usize) -> Result<Vec<f64>, Fault> {
        let octets = Octets::new(4, bytes);
        SecondOrder::edition1(octets)?.decode(&SCALE, octets, count)
    }

    #[test]
    fn groups_have_lengths_widths_and_first_values() {
        // Widths 4 and 0 of 8 bits, lengths 2 and 3 of 8 bits, first values 10 and 20, second 1 and 2.
        let plain = section(0x18, 2, &[8, 8, 0, 0, 4, 0, 2, 3, 10, 20, 0x12]);
        assert_eq!(decode(&plain, 5), Ok(vec![11.0, 12.0, 20.0, 20.0, 20.0]));
        assert!(decode(&plain, 6).is_err() && decode(&plain, 1).is_err());
        assert!(decode(&plain[..plain.len() - 1], 5).is_err());
        // The same groups, with a secondary bitmap; of constant width.
        let bitmap = section(0x30, 2, &[4, 0, 0b1010_0000, 10, 20, 0x12]);
        assert_eq!(decode(&bitmap, 5), Ok(vec![11.0, 12.0, 20.0, 20.0, 20.0]));
        let constant = section(0x20, 2, &[4, 0b1010_0000, 10, 20, 0x12, 0x34, 0x50]);
        assert_eq!(decode(&constant, 5), Ok(vec![11.0, 12.0, 23.0, 24.0, 25.0]));
        assert!(matches!(decode(&section(0x10, 2, &[0; 20]), 5), Err(Fault::Unsupported(_))));
        assert!(matches!(decode(&section(0x58, 2, &[0; 20]), 5), Err(Fault::Unsupported(_))));
    }

    #[test]
    fn differences_are_summed_up() {
        // One group without a width: differences are all 5, and the bias is -4.
        let differences = |flags, firsts: &[u8], length| {
            section(flags, 1, &[&[8, 8, 0, 0, 8], firsts, &[0x84, 0, length, 5]].concat())
        };
        assert_eq!(decode(&differences(0x19, &[7], 3), 4), Ok(vec![7.0, 8.0, 9.0, 10.0]));
        assert_eq!(decode(&differences(0x1a, &[1, 3], 3), 5), Ok(vec![1.0, 3.0, 6.0, 10.0, 15.0]));
        assert_eq!(decode(&differences(0x1b, &[0, 1, 4], 3), 6), Ok(vec![0.0, 1.0, 4.0, 10.0, 20.0, 35.0]));
        // The order of rows does not matter here.
        let turned = SecondOrder::edition1(Octets::new(4, &differences(0x1d, &[7], 3))).unwrap();
        assert!(turned.is_alternating && turned.order == 1);
    }
}
