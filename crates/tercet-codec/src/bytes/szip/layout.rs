//! Derived parameters of a stream: field widths, ranges, and the rules shared by encoder and decoder.

use super::bits::window;

/// The derived parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bits of a sample.
    pub(super) bits: u32,
    /// Bits of an option id.
    pub(super) id_bits: u32,
    /// Samples per block.
    pub(super) block: usize,
    /// Blocks per interval.
    pub(super) rsi: usize,
    /// Whether differences are coded instead of samples.
    pub(super) preprocess: bool,
    /// The maximum coded value, all ones.
    pub(super) max: u32,
    /// The sign bit of signed samples, 0 for unsigned ones. Added to a sample it makes the range start at 0.
    pub(super) sign: u32,
    /// Whether every interval ends on a byte.
    pub(super) pad: bool,
}

impl Layout {
    /// The option ID of an uncompressed block.
    #[inline(always)]
    pub(super) fn raw_id(&self) -> u32 {
        (1 << self.id_bits) - 1
    }

    /// The maximum split that has an option ID; `None` with IDs of one bit.
    #[inline(always)]
    pub(super) fn max_split(&self) -> Option<u32> {
        self.raw_id().checked_sub(2)
    }

    /// Samples per interval.
    #[inline(always)]
    pub(super) fn interval(&self) -> usize {
        self.block * self.rsi
    }

    /// The end of an interval whose last block ends at `end`: the padding must be zero.
    #[inline(always)]
    pub(super) fn close(&self, stored: &[u8], end: u64) -> Result<u64, Fault> {
        if end > stored.len() as u64 * 8 {
            return Err(Fault::Ended);
        }
        let spare = (8 - end % 8) % 8;
        if !self.pad || spare == 0 {
            return Ok(end);
        }
        if window(stored, end) >> (64 - spare) != 0 {
            return Err(Fault::Padding);
        }
        Ok(end + spare)
    }

    /// Number of blocks of a zero-block run that is coded as `zeros` before a one in block `index`.
    #[inline(always)]
    pub(super) fn run(&self, zeros: u64, index: usize) -> Result<usize, Fault> {
        let left = self.rsi - index;
        let count = match zeros {
            0..4 => zeros + 1,
            // The rest of the segment.
            4 => return Ok(left.min(SEGMENT - index % SEGMENT)),
            _ => zeros,
        };
        usize::try_from(count).ok().filter(|&count| count <= left).ok_or(Fault::Run)
    }
}

/// Blocks per segment: a zero-block run ends with its segment.
pub(super) const SEGMENT: usize = 64;

/// Maximum pair code that readers accept.
pub(super) const MAX_PAIR: u64 = 90;

/// The two values of every pair code of the second extension.
pub(super) const PAIRS: [(u8, u8); MAX_PAIR as usize + 1] = {
    let mut pairs = [(0, 0); MAX_PAIR as usize + 1];
    let (mut code, mut sum, mut second) = (0, 0, 0);
    while code < pairs.len() {
        pairs[code] = (sum - second, second);
        code += 1;
        (sum, second) = if second == sum { (sum + 1, 0) } else { (sum, second + 1) };
    }
    pairs
};

/// Error of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Truncated stream.
    Ended,
    /// A value that does not fit a sample.
    Value,
    /// A zero-block run that exceeds its interval.
    Run,
    /// An invalid pair code.
    Pair,
    /// Padding that is not zero.
    Padding,
    /// Trailing bytes after the last sample.
    TrailingBytes,
}

impl Fault {
    /// The message.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Ended => "truncated stream",
            Self::Value => "a value does not fit the sample",
            Self::Run => "a run of zero blocks exceeds its interval",
            Self::Pair => "invalid pair code",
            Self::Padding => "the padding is not zero",
            Self::TrailingBytes => "bytes follow the last sample",
        }
    }
}
