//! CCSDS 121.0-B-3 adaptive entropy coding, known as szip.
//!
//! A stream is bare bits, most significant first; its parameters are a [`Szip`]:
//!
//! ```text
//! stream    interval*                zeros up to a byte at the very end
//! interval  block × rsi              the last one may be shorter; with preprocessing it begins with a whole sample
//! block     id, values               block_size samples, the last block completed by its last sample
//!           id 1…                    split: quotients in unary, then the id − 1 low bits of every value
//!           id 0, bit 1              second extension: pairs of small values in unary
//!           id 0, bit 0              one or more blocks of zeros
//!           id all ones              values as they are
//! ```
//!
//! [`encode`] writes the shortest form of every block; its bytes equal those of libaec. [`decode`] expects the stream to end
//! with the samples. [`index()`] finds the intervals by skipping over blocks without decoding them, and [`decode_from`]
//! decodes them one by one. Positions stored by a container are hints: they let [`decode`] use several threads, are
//! verified, and never change a value.
//!
//! ```
//! use tercet_codec::bytes::szip::{Szip, decode, encode, flags};
//!
//! let szip = Szip::new(16, 16, 128, flags::PREPROCESS)?;
//! let raw: Vec<u8> = (0..5000u16).flat_map(|value| (value / 3).to_le_bytes()).collect();
//! let mut stored = Vec::new();
//! let starts = encode(&raw, &szip, &mut stored)?;
//! let mut back = vec![0; raw.len()];
//! let noticed = decode(&stored, &szip, Some(&starts), &mut back)?;
//! assert_eq!((back, noticed.offsets_right), (raw, Some(true)));
//! # Ok::<(), tercet_codec::CodecError>(())
//! ```

#![expect(clippy::inline_always, reason = "what a kernel enters must be compiled with its instructions")]
#![expect(clippy::cast_possible_truncation, reason = "masks and shifts bound the fields of a bit stream")]

mod bits;
mod container;
mod decode;
mod encode;
mod kernel;
mod layout;
mod pack;
mod skip;
#[cfg(test)]
mod tests;
mod unpack;

#[cfg(target_arch = "x86_64")]
mod arch;

pub use decode::{Decoded, decode, decode_from, index};
pub use encode::encode;

use layout::Layout;

use crate::CodecError;

/// Flag bits; higher ones are ignored.
pub mod flags {
    /// Samples are signed.
    pub const SIGNED: u64 = 1;
    /// Samples of 17 to 24 bits take three bytes. They always do here, with or without this flag.
    pub const THREE_BYTES: u64 = 2;
    /// Samples are big-endian.
    pub const MSB: u64 = 4;
    /// Differences of neighbours are coded instead of samples.
    pub const PREPROCESS: u64 = 8;
    /// Fewer options with shorter ids, for samples of at most 4 bits.
    pub const RESTRICTED: u64 = 16;
    /// Every interval ends on a byte.
    pub const PAD_INTERVALS: u64 = 32;
    /// Any even block size is accepted.
    pub const ANY_BLOCK: u64 = 64;
}

/// Parameters of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Szip {
    bits: u32,
    block: u32,
    rsi: u32,
    flags: u64,
}

/// Maximum block size of streams with [`flags::ANY_BLOCK`].
const MAX_BLOCK: u64 = 1 << 16;

/// Inputs below this size are not worth several threads; smaller in tests.
const WORTH_THREADS: usize = if cfg!(test) { 1 << 15 } else { 1 << 18 };

impl Szip {
    /// Parameters for reading; see [`Szip::check_for_writing`].
    pub fn new(bits: u32, block: u64, rsi: u64, flags: u64) -> Result<Self, CodecError> {
        let refuse = |name, found: u64, allowed| {
            Err(CodecError::Parameter { codec: "szip", name, found: found.to_string(), allowed })
        };
        if !(1..=32).contains(&bits) {
            return refuse("sample bits", bits.into(), "1 to 32");
        }
        if flags & flags::ANY_BLOCK == 0 {
            if !matches!(block, 8 | 16 | 32 | 64) {
                return refuse("a block size of", block, "8, 16, 32 or 64");
            }
        } else if !(2..=MAX_BLOCK).contains(&block) || block % 2 == 1 {
            return refuse("a block size of", block, "an even number from 2 to 65536");
        }
        if !(1..=4096).contains(&rsi) {
            return refuse("a reference sample interval of", rsi, "1 to 4096");
        }
        if flags & flags::RESTRICTED != 0 && bits > 4 {
            return refuse("the restricted flag with sample bits", bits.into(), "1 to 4");
        }
        Ok(Self { bits, block: block as u32, rsi: rsi as u32, flags })
    }

    /// Rejects parameters that can be read but should not be written: padded intervals, which other writers declare and do not
    /// write, so that readers cannot rely on them.
    pub fn check_for_writing(&self) -> Result<(), CodecError> {
        if self.promises_padding() {
            return Err(CodecError::Parameter {
                codec: "szip",
                name: "flags",
                found: self.flags.to_string(),
                allowed: "bit 32 (padded intervals) is for reading only",
            });
        }
        Ok(())
    }

    /// Bits per sample.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Samples per block.
    pub fn block(&self) -> u64 {
        self.block.into()
    }

    /// Blocks per interval.
    pub fn rsi(&self) -> u64 {
        self.rsi.into()
    }

    /// The flags.
    pub fn flags(&self) -> u64 {
        self.flags
    }

    /// Bytes per sample in memory: 1 to 4.
    pub fn sample_bytes(&self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    /// Samples per interval.
    pub fn interval_samples(&self) -> u64 {
        u64::from(self.block) * u64::from(self.rsi)
    }

    /// Number of intervals of a stream of `samples` samples.
    pub fn intervals(&self, samples: u64) -> u64 {
        samples.div_ceil(self.interval_samples())
    }

    /// Whether the flags declare padded intervals, which only [`decode`] of the whole stream can confirm: before that,
    /// [`index()`] and [`decode_from`] could follow padding that does not exist.
    pub fn promises_padding(&self) -> bool {
        self.has(flags::PAD_INTERVALS)
    }

    /// The same parameters for a stream whose intervals are not padded despite [`flags::PAD_INTERVALS`]; see
    /// [`Decoded::padding_missing`].
    pub fn without_padding(self) -> Self {
        Self { flags: self.flags & !flags::PAD_INTERVALS, ..self }
    }

    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    fn layout(&self) -> Layout {
        let restricted = self.has(flags::RESTRICTED);
        Layout {
            bits: self.bits,
            id_bits: match self.bits {
                1..=2 if restricted => 1,
                3..=4 if restricted => 2,
                0..=8 => 3,
                9..=16 => 4,
                _ => 5,
            },
            block: self.block as usize,
            rsi: self.rsi as usize,
            preprocess: self.has(flags::PREPROCESS),
            max: u32::MAX >> (32 - self.bits),
            sign: if self.has(flags::SIGNED) { 1 << (self.bits - 1) } else { 0 },
            pad: self.promises_padding(),
        }
    }
}

/// Runs `$body` with `$container` as the type of the samples and `$kernel` as the best kernel for this CPU.
macro_rules! dispatch {
    ($szip:expr, $container:ident, $kernel:ident => $body:expr) => {{
        use $crate::bytes::szip::container::Bytes;
        match ($szip.sample_bytes(), $szip.flags() & $crate::bytes::szip::flags::MSB != 0) {
            (1, _) => dispatch!(@kernel Bytes<1, false>, $container, $kernel => $body),
            (2, false) => dispatch!(@kernel Bytes<2, false>, $container, $kernel => $body),
            (2, true) => dispatch!(@kernel Bytes<2, true>, $container, $kernel => $body),
            (3, false) => dispatch!(@kernel Bytes<3, false>, $container, $kernel => $body),
            (3, true) => dispatch!(@kernel Bytes<3, true>, $container, $kernel => $body),
            (_, false) => dispatch!(@kernel Bytes<4, false>, $container, $kernel => $body),
            (_, true) => dispatch!(@kernel Bytes<4, true>, $container, $kernel => $body),
        }
    }};
    (@kernel $bytes:ty, $container:ident, $kernel:ident => $body:expr) => {{
        type $container = $bytes;
        dispatch!(@kernel $kernel => $body)
    }};
    (@kernel $kernel:ident => $body:expr) => {{
        #[cfg(target_arch = "x86_64")]
        match $crate::bytes::szip::arch::Avx2::new() {
            Some($kernel) if !$crate::bytes::szip::only_portable() => $body,
            _ => {
                let $kernel = $crate::bytes::szip::kernel::Portable;
                $body
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let $kernel = $crate::bytes::szip::kernel::Portable;
            $body
        }
    }};
}
use dispatch;

/// Whether tests use the portable kernel.
#[cfg(target_arch = "x86_64")]
fn only_portable() -> bool {
    #[cfg(test)]
    return tests::only_portable();
    #[cfg(not(test))]
    false
}
