//! The obvious decoder: bit by bit, as the format is specified.

use super::super::{Szip, flags};

/// A decoded stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) raw: Vec<u8>,
    /// Start of every interval.
    pub(super) starts: Vec<u64>,
    /// The bit after the last block.
    pub(super) end: u64,
}

struct Bits<'a> {
    stored: &'a [u8],
    at: u64,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u64> {
        let byte = self.stored.get((self.at / 8) as usize)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    fn number(&mut self, bits: u32) -> Option<u64> {
        (0..bits).try_fold(0, |number, _| Some(number << 1 | self.bit()?))
    }

    fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
        }
        Some(zeros)
    }
}

/// Decodes `samples` samples; `None` if that is impossible. Trailing bits are ignored.
pub(super) fn decode(stored: &[u8], szip: &Szip, samples: usize) -> Option<Slow> {
    let has = |flag| szip.flags() & flag != 0;
    let mut bits = Bits { stored, at: 0 };
    let mut slow = Slow { raw: Vec::new(), starts: Vec::new(), end: 0 };
    let mut done = 0;
    while done < samples {
        slow.starts.push(bits.at);
        let wanted = (samples - done).min(szip.interval_samples() as usize);
        let values = interval(&mut bits, szip, wanted)?;
        let range = 1i64 << szip.bits();
        let lowest = if has(flags::SIGNED) { -range / 2 } else { 0 };
        let plain = |value: u64| {
            let value = value.cast_signed();
            if value >= range + lowest { value - range } else { value }
        };
        let mut sample = 0;
        for (index, &value) in values[..wanted].iter().enumerate() {
            sample = if !has(flags::PREPROCESS) || index == 0 {
                plain(value)
            } else {
                next(sample, value.cast_signed(), lowest, lowest + range - 1)
            };
            let bytes = szip.sample_bytes();
            if has(flags::MSB) {
                slow.raw.extend_from_slice(&sample.to_be_bytes()[8 - bytes..]);
            } else {
                slow.raw.extend_from_slice(&sample.to_le_bytes()[..bytes]);
            }
        }
        done += wanted;
        if has(flags::PAD_INTERVALS) {
            while !bits.at.is_multiple_of(8) {
                (bits.bit()? == 0).then_some(())?;
            }
        }
    }
    slow.end = bits.at;
    Some(slow)
}

/// The sample after `last` with this mapped difference.
fn next(last: i64, mapped: i64, lowest: i64, highest: i64) -> i64 {
    let nearer = (last - lowest).min(highest - last);
    if mapped > 2 * nearer {
        if nearer == last - lowest { last + mapped - nearer } else { last - mapped + nearer }
    } else if mapped % 2 == 0 {
        last + mapped / 2
    } else {
        last - (mapped + 1) / 2
    }
}

/// The coded values of an interval, whole blocks of them.
fn interval(bits: &mut Bits<'_>, szip: &Szip, wanted: usize) -> Option<Vec<u64>> {
    let has = |flag| szip.flags() & flag != 0;
    let (width, block, rsi) = (szip.bits(), szip.block() as usize, szip.rsi() as usize);
    let id_bits = match (width, has(flags::RESTRICTED)) {
        (1 | 2, true) => 1,
        (3 | 4, true) => 2,
        (..=8, _) => 3,
        (..=16, _) => 4,
        _ => 5,
    };
    let mut values = Vec::new();
    while values.len() < wanted {
        let first = has(flags::PREPROCESS) && values.is_empty();
        let index = values.len() / block;
        let id = bits.number(id_bits)?;
        if id == (1 << id_bits) - 1 {
            for _ in 0..block {
                values.push(bits.number(width)?);
            }
            continue;
        }
        let pairs = id == 0 && bits.bit()? == 1;
        let start = values.len();
        if first {
            values.push(bits.number(width)?);
        }
        if id > 0 {
            let split = id as u32 - 1;
            let count = block - usize::from(first);
            let quotients: Vec<u64> = (0..count).map(|_| bits.unary()).collect::<Option<_>>()?;
            for quotient in quotients {
                values.push(quotient << split | bits.number(split)?);
            }
        } else if pairs {
            for pair in 0..block / 2 {
                let code = bits.unary()?;
                (code <= 90).then_some(())?;
                let sum = (0..=code).rfind(|sum| sum * (sum + 1) / 2 <= code)?;
                let second = code - sum * (sum + 1) / 2;
                // The pair of the reference counts, too.
                ((sum - second) >> width == 0).then_some(())?;
                if pair > 0 || !first {
                    values.push(sum - second);
                }
                values.push(second);
            }
        } else {
            let zeros = bits.unary()?;
            let count = match zeros {
                0..4 => zeros as usize + 1,
                4 => (64 - index % 64).min(rsi - index),
                _ => zeros as usize,
            };
            (count <= rsi - index).then_some(())?;
            values.resize(start + count * block, 0);
        }
        values[start..].iter().all(|value| value >> width == 0).then_some(())?;
    }
    Some(values)
}
