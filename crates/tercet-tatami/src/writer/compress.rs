//! Payloads to stored bytes.

use tercet_codec::bytes::zstd::Dictionary;
use tercet_codec::bytes::{lz4, zstd};

use super::WriterOptions;
use crate::error::ErrorKind;
use crate::wire::ids::Codec;

/// A page of the native profile is stored uncompressed unless compression removes this much of it: reading it back costs
/// more than a few bytes are worth.
const LEAST_GAIN_PERCENT: u64 = 2;

/// How the payloads of a file are compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compressor {
    pub(crate) codec: Codec,
    level: i32,
    /// Whether a page may be stored as it is.
    native: bool,
}

/// How a page is stored.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) codec: Codec,
    /// The compressed payload; none if it is stored as it is.
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

    /// The shortest way of storing a payload, with a dictionary if there is one.
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
        if self.native && !pays(payload.len(), bytes.len()) {
            return Ok(stays);
        }
        // Compressors allocate more than they need, and many pages are buffered.
        bytes.shrink_to_fit();
        Ok(Choice { codec, bytes: Some(bytes) })
    }

    /// A run of blob values. All runs of a column have one codec, so that none stays as it is.
    pub(super) fn run(self, payload: &[u8], dictionary: Option<&Dictionary>) -> Result<Vec<u8>, ErrorKind> {
        let mut out = Vec::new();
        match (self.codec, dictionary) {
            (Codec::None, _) => out.extend_from_slice(payload),
            (Codec::Lz4, _) => lz4::block::encode(payload, &mut out)?,
            (_, Some(dictionary)) => dictionary.encode(payload, self.level, &mut out)?,
            (_, None) => zstd::encode_far(payload, self.level, &mut out)?,
        }
        Ok(out)
    }

    /// A dictionary record: compressed whatever the codec of the pages is, so that all readers find it as they expect.
    pub(super) fn record(self, payload: &[u8]) -> Result<(Codec, Vec<u8>), ErrorKind> {
        if !zstd::is_built_in() {
            return Ok((Codec::None, payload.to_vec()));
        }
        let mut out = Vec::new();
        zstd::encode_frame(payload, self.level, &mut out)?;
        Ok((Codec::Zstd, out))
    }
}

/// Whether a payload became so much shorter that reading it back is worth it.
pub(super) fn pays(raw: usize, stored: usize) -> bool {
    stored as u64 * 100 <= raw as u64 * (100 - LEAST_GAIN_PERCENT)
}
