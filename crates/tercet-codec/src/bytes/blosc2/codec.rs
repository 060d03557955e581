//! Compressors of single streams.
//!
//! LZ4 and Zstandard streams are decoded by the libraries that this crate already uses, where they are built in: they are
//! faster and better tested on hostile input than those inside the Blosc2 library. The encoded bytes are the same either
//! way.

use blosc2_pure_rs::codecs;

use super::Inner;

/// Number of each compressor in frames.
pub(super) const fn number(inner: Inner) -> u8 {
    match inner {
        Inner::BloscLz => 0,
        Inner::Lz4 => 1,
        Inner::Lz4hc => 2,
        Inner::Zlib => 4,
        Inner::Zstd => 5,
    }
}

/// Number of each stream format in chunks.
pub(super) const fn format(inner: Inner) -> u8 {
    match inner {
        Inner::BloscLz => 0,
        Inner::Lz4 | Inner::Lz4hc => 1,
        Inner::Zlib => 3,
        Inner::Zstd => 4,
    }
}

/// A compressor that decodes the stream format of that number.
pub(super) const fn reader(format: u8) -> Option<Inner> {
    match format {
        0 => Some(Inner::BloscLz),
        1 => Some(Inner::Lz4),
        3 => Some(Inner::Zlib),
        4 => Some(Inner::Zstd),
        _ => None,
    }
}

/// Compresses into `room`; `None` if the stream does not fit.
pub(super) fn compress(inner: Inner, level: u8, raw: &[u8], room: &mut [u8]) -> Option<usize> {
    #[cfg(feature = "zstd")]
    if inner == Inner::Zstd {
        return zstd::compress(level, raw, room);
    }
    let len = codecs::compress_block(number(inner), level, raw, room);
    usize::try_from(len).ok().filter(|&len| 0 < len && len <= room.len())
}

/// Decompresses a stream that must fill `raw`; returns whether it did.
pub(super) fn decompress(inner: Inner, stream: &[u8], raw: &mut [u8]) -> bool {
    match inner {
        #[cfg(feature = "lz4")]
        Inner::Lz4 | Inner::Lz4hc => {
            lz4_flex::block::decompress_into(stream, raw).is_ok_and(|len| len == raw.len())
        }
        #[cfg(feature = "zstd")]
        Inner::Zstd => crate::bytes::zstd::decode(stream, raw).is_ok(),
        other => {
            let len = codecs::decompress_block(number(other), stream, raw);
            usize::try_from(len).is_ok_and(|len| len == raw.len())
        }
    }
}

#[cfg(feature = "zstd")]
mod zstd {
    use std::cell::RefCell;

    use ::zstd::bulk::Compressor;

    /// Zstandard levels of the Blosc levels.
    fn level_of(level: u8) -> i32 {
        if level < 9 { i32::from(level) * 2 - 1 } else { 22 }
    }

    pub(super) fn compress(level: u8, raw: &[u8], room: &mut [u8]) -> Option<usize> {
        thread_local! {
            static KEPT: RefCell<Option<(u8, Compressor<'static>)>> = const { RefCell::new(None) };
        }
        KEPT.with_borrow_mut(|kept| {
            let mut compressor = match kept.take() {
                Some((kept_level, compressor)) if kept_level == level => compressor,
                _ => Compressor::new(level_of(level)).ok()?,
            };
            let len = compressor.compress_to_buffer(raw, room).ok();
            *kept = Some((level, compressor));
            len
        })
    }
}
