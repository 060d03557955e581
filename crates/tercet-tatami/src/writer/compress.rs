//! Compression of payloads.

use tercet_codec::bytes::zstd::Dictionary;
use tercet_codec::bytes::{lz4, zstd};

use super::WriterOptions;
use crate::error::ErrorKind;
use crate::wire::ids::Codec;

/// Minimum gain of compression in the native profile; otherwise a page is stored uncompressed, which is faster to read.
const MIN_GAIN_PERCENT: u64 = 2;

/// Compression settings of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compressor {
    pub(crate) codec: Codec,
    level: i32,
    /// Whether pages may be stored uncompressed.
    native: bool,
}

/// The chosen compression of a page.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) codec: Codec,
    /// The compressed payload; `None` if it is stored uncompressed.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Choice {
    /// The stored size of a payload.
    pub(crate) fn stored_len(&self, payload: &[u8]) -> usize {
        self.bytes.as_ref().map_or(payload.len(), Vec::len)
    }
}

impl Compressor {
    pub(crate) fn new(options: &WriterOptions) -> Self {
        Self { codec: options.codec, level: options.level, native: options.is_native() }
    }

    /// The shortest compression of a payload, with a dictionary if there is one.
    pub(crate) fn payload(
        self,
        payload: &[u8],
        dictionary: Option<&Dictionary>,
    ) -> Result<Choice, ErrorKind> {
        let stays = Choice { codec: Codec::None, bytes: None };
        if self.codec == Codec::None || self.native && payload.is_empty() {
            return Ok(stays);
        }
        let (mut codec, mut bytes) = (self.codec, Vec::new());
        match codec {
            Codec::Lz4 => lz4::block::encode(payload, &mut bytes)?,
            _ => zstd::encode_frame(payload, self.level, &mut bytes)?,
        }
        if let Some(dictionary) = dictionary {
            let mut with = Vec::new();
            dictionary.encode(payload, self.level, &mut with)?;
            if with.len() < bytes.len() {
                (codec, bytes) = (Codec::ZstdDict, with);
            }
        }
        if self.native && !is_worthwhile(payload.len(), bytes.len()) {
            return Ok(stays);
        }
        // Compressors over-allocate, and many pages are buffered.
        bytes.shrink_to_fit();
        Ok(Choice { codec, bytes: Some(bytes) })
    }

    /// Compresses a run of blob values. All runs of a column have the same codec, so none is stored uncompressed.
    pub(super) fn run(self, payload: &[u8], dictionary: Option<&Dictionary>) -> Result<Vec<u8>, ErrorKind> {
        let mut out = Vec::new();
        match (self.codec, dictionary) {
            (Codec::None, _) => out.extend_from_slice(payload),
            (Codec::Lz4, _) => lz4::block::encode(payload, &mut out)?,
            (_, Some(dictionary)) => dictionary.encode(payload, self.level, &mut out)?,
            (_, None) => zstd::encode_long_distance(payload, self.level, &mut out)?,
        }
        Ok(out)
    }

    /// Compresses a dictionary record, regardless of the codec of the pages, as all readers expect.
    pub(crate) fn record(self, payload: &[u8]) -> Result<(Codec, Vec<u8>), ErrorKind> {
        if !zstd::is_built_in() {
            return Ok((Codec::None, payload.to_vec()));
        }
        let mut out = Vec::new();
        zstd::encode_frame(payload, self.level, &mut out)?;
        Ok((Codec::Zstd, out))
    }
}

/// Whether the gain of compression is worth the decompression.
pub(super) fn is_worthwhile(raw: usize, stored: usize) -> bool {
    stored as u64 * 100 <= raw as u64 * (100 - MIN_GAIN_PERCENT)
}
