//! Frames compressed with a dictionary.
//!
//! There are two kinds of dictionaries, which the caller must know. *Raw content* is plain history; its frames have the
//! dictionary ID 1, which libzstd neither writes nor accepts for raw content, so it is inserted into the header and removed
//! again here. A *trained* dictionary has its own header with its ID, and tables.

#[cfg(feature = "zstd")]
mod header;
#[cfg(feature = "zstd")]
mod prepared;
#[cfg(test)]
#[cfg(feature = "zstd")]
mod tests;

#[cfg(feature = "zstd")]
use prepared::Prepared;

use crate::CodecError;

/// IDs of trained dictionaries.
pub const TRAINED_IDS: std::ops::Range<u32> = 32_768..1 << 31;

/// The dictionary ID of frames with raw content.
pub const RAW_ID: u32 = 1;

/// Magic of a trained dictionary.
#[cfg(feature = "zstd")]
const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// Maximum bytes that a thread caches for frames of raw content; larger ones are worth an allocation.
#[cfg(feature = "zstd")]
const KEPT_BYTES: usize = 1 << 20;

/// A dictionary, digested for each level on first use.
pub struct Dictionary {
    bytes: Vec<u8>,
    /// The ID of a trained dictionary.
    trained_id: Option<u32>,
    #[cfg(feature = "zstd")]
    prepared: Prepared,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.bytes.len();
        let mut debug = f.debug_struct("Dictionary");
        debug.field("bytes", &bytes).field("trained_id", &self.trained_id).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Raw content, even if it looks like a trained dictionary.
    pub fn raw(content: Vec<u8>) -> Self {
        Self {
            bytes: content,
            trained_id: None,
            #[cfg(feature = "zstd")]
            prepared: Prepared::default(),
        }
    }

    /// The bytes of the dictionary.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The dictionary ID in frames.
    pub fn id(&self) -> u32 {
        self.trained_id.unwrap_or(RAW_ID)
    }

    /// Whether it is a trained dictionary.
    pub fn is_trained(&self) -> bool {
        self.trained_id.is_some()
    }
}

#[cfg(feature = "zstd")]
impl Dictionary {
    /// A dictionary of [`train`]. Rejects bytes without the header and the tables of such a dictionary, and IDs outside
    /// [`TRAINED_IDS`].
    pub fn trained(bytes: Vec<u8>) -> Result<Self, CodecError> {
        let refused = |found: String, allowed| CodecError::Parameter {
            codec: "zstd",
            name: "a dictionary with",
            found,
            allowed,
        };
        let [MAGIC, id, ..] = bytes.as_chunks::<4>().0 else {
            let found = format!("{} bytes and no magic", bytes.len());
            return Err(refused(found, "a trained one begins with 37 a4 30 ec and its number"));
        };
        let id = u32::from_le_bytes(*id);
        if !TRAINED_IDS.contains(&id) {
            return Err(refused(format!("number {id}"), "trained ones are 32768 to 2147483647"));
        }
        let prepared = Prepared::default();
        if prepared.for_decoding(&bytes).is_none() {
            return Err(refused("unreadable tables".to_owned(), "the trainer makes readable ones"));
        }
        Ok(Self { bytes, trained_id: Some(id), prepared })
    }

    /// Appends one frame of `raw` to `out`, with content size, checksum and dictionary ID.
    pub fn encode(&self, raw: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
        use super::frame::{self, Rules};

        let start = out.len();
        if self.is_prefix_only() {
            frame::encode_with_prefix(&self.bytes, raw, level, out)?;
        } else {
            let prepared = self.prepared.for_encoding(&self.bytes, level)?;
            frame::encode(raw, Rules::Prepared(&prepared), out)?;
        }
        if !self.is_trained() {
            header::insert_raw_id(out, start)?;
        }
        Ok(())
    }

    /// Decodes the frames in `stored` into exactly `raw.len()` bytes. Frames with another dictionary ID are rejected, and for a
    /// trained dictionary also those without.
    pub fn decode(&self, stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
        let expected = raw.len();
        self.decode_to(stored, raw, expected)
    }

    /// Replaces the content of `raw` by the `len` bytes of `stored`, otherwise like [`decode`](Self::decode). After an error `raw`
    /// is empty.
    pub fn decode_new(&self, stored: &[u8], len: usize, raw: &mut Vec<u8>) -> Result<(), CodecError> {
        super::into_new(len, raw, |raw| self.decode_to(stored, raw, len))
    }

    fn decode_to<B: ::zstd::zstd_safe::WriteBuf + ?Sized>(
        &self,
        stored: &[u8],
        raw: &mut B,
        len: usize,
    ) -> Result<(), CodecError> {
        use std::cell::RefCell;

        use ::zstd::zstd_safe::{DCtx, get_error_name};

        thread_local! {
            static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
            // The frames without the ID of their raw content.
            static NAMELESS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let expected = len as u64;
        let no_memory = CodecError::OutOfMemory { codec: "zstd", bytes: self.bytes.len() as u64 };
        let mut decode = |frames: &[u8]| {
            let result = if self.is_prefix_only() {
                let Some(mut decoder) = DCtx::try_create() else { return Err(no_memory.clone()) };
                decoder.ref_prefix(&self.bytes).and_then(|_| decoder.decompress(raw, frames))
            } else {
                let Some(dictionary) = self.prepared.for_decoding(&self.bytes) else {
                    return Err(no_memory.clone());
                };
                DECODER.with_borrow_mut(|kept| {
                    let decoder = match kept {
                        Some(decoder) => decoder,
                        None => kept.insert(DCtx::try_create().ok_or_else(|| no_memory.clone())?),
                    };
                    Ok(decoder.decompress_using_ddict(raw, frames, dictionary))
                })?
            };
            match result {
                Ok(found) if found as u64 == expected => Ok(()),
                Ok(found) => Err(CodecError::WrongLength { codec: "zstd", expected, found: found as u64 }),
                Err(code) => Err(header::failed(get_error_name(code).to_owned())),
            }
        };
        if let Some(id) = self.trained_id {
            header::insist_on(stored, id)?;
            return decode(stored);
        }
        NAMELESS.with_borrow_mut(|frames| {
            frames.clear();
            let result = header::remove_raw_id(stored, frames).and_then(|()| decode(frames));
            if frames.capacity() > KEPT_BYTES {
                *frames = Vec::new();
            }
            result
        })
    }

    /// Whether libzstd would take raw content for a trained dictionary.
    fn is_prefix_only(&self) -> bool {
        !self.is_trained() && self.bytes.starts_with(&MAGIC)
    }
}

/// Shorter samples are ignored by [`train`].
#[cfg(feature = "zstd")]
const SHORTEST_SAMPLE: usize = 8;

/// Minimum number of samples.
#[cfg(feature = "zstd")]
const MIN_SAMPLES: usize = 8;

/// Trains a dictionary of at most `max_bytes` for payloads like `samples`; `None` if they are too few or too small.
/// Deterministic.
#[cfg(feature = "zstd")]
pub fn train(samples: &[&[u8]], max_bytes: usize) -> Result<Option<Vec<u8>>, CodecError> {
    use ::zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode::{
        ZSTD_error_dictionaryCreation_failed as CREATION_FAILED, ZSTD_error_srcSize_wrong as WRONG_SIZE,
    };
    use ::zstd::zstd_safe::{get_error_name, train_from_buffer};

    // The trainer reads eight bytes at a time, and reads past its samples if the training part (the first three quarters) is
    // shorter than that. Such samples are useless anyway.
    let samples: Vec<&[u8]> =
        samples.iter().copied().filter(|sample| sample.len() >= SHORTEST_SAMPLE).collect();
    if samples.len() < MIN_SAMPLES {
        return Ok(None);
    }
    let sizes: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
    // The trainer keeps the last quarter of the samples for its own test, and reads past the others if they have fewer than
    // eight bytes together.
    let trained_on = samples.len() / 4 * 3 + samples.len() % 4 * 3 / 4;
    if sizes[..trained_on].iter().sum::<usize>() < 8 {
        return Ok(None);
    }
    let mut dictionary = Vec::new();
    dictionary
        .try_reserve_exact(max_bytes)
        .map_err(|_| CodecError::OutOfMemory { codec: "zstd", bytes: max_bytes as u64 })?;
    match train_from_buffer(&mut dictionary, &samples.concat(), &sizes) {
        Ok(_) => {}
        // Codes are negated.
        Err(code) if [WRONG_SIZE as usize, CREATION_FAILED as usize].contains(&code.wrapping_neg()) => {
            return Ok(None);
        }
        Err(code) => {
            return Err(CodecError::Encode { codec: "zstd", detail: get_error_name(code).to_owned() });
        }
    }
    // Never returns a dictionary that would be rejected.
    Dictionary::trained(dictionary).map(|dictionary| Some(dictionary.bytes))
}

#[cfg(not(feature = "zstd"))]
impl Dictionary {
    /// A dictionary of [`train`].
    pub fn trained(_bytes: Vec<u8>) -> Result<Self, CodecError> {
        Err(not_built())
    }

    /// Appends one frame of `raw` to `out`.
    pub fn encode(&self, _raw: &[u8], _level: i32, _out: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(not_built())
    }

    /// Decodes the frames in `stored` into exactly `raw.len()` bytes.
    pub fn decode(&self, _stored: &[u8], _raw: &mut [u8]) -> Result<(), CodecError> {
        Err(not_built())
    }

    /// Replaces the content of `raw` by the `len` bytes of `stored`.
    pub fn decode_new(&self, _stored: &[u8], _len: usize, _raw: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(not_built())
    }
}

/// Trains a dictionary of at most `max_bytes` for payloads like `samples`.
#[cfg(not(feature = "zstd"))]
pub fn train(_samples: &[&[u8]], _max_bytes: usize) -> Result<Option<Vec<u8>>, CodecError> {
    Err(not_built())
}

#[cfg(not(feature = "zstd"))]
fn not_built() -> CodecError {
    CodecError::NotBuilt { codec: "zstd", feature: "zstd" }
}
