//! Decoding: payload → values.

use std::borrow::Cow;

use tercet_codec::bits::{rle, roaring};
use tercet_codec::bytes::{blosc2, lz4, sz3, szip, zfp, zstd};
use tercet_codec::{CodecError, shuffle};

use super::error::PipelineError;
use super::masks::MaskKind;
use super::{Codec, Pipeline};
use crate::dtype::{ByteOrder, swap_in_place};

/// The name of intermediate buffers in errors.
const BETWEEN: &str = "the pipeline";

impl Pipeline {
    /// Decodes a payload into exactly [`decoded_len`](Self::decoded_len) bytes, little-endian, and applies the
    /// masks.
    pub(crate) fn decode(
        &self,
        stored: &[u8],
        masks: &[(MaskKind, Vec<u8>)],
        values: &mut [u8],
    ) -> Result<(), PipelineError> {
        if let Some(packing) = &self.packing {
            let mut buffer = Vec::new();
            let mut packed = Cow::Borrowed(self.decompressed(stored, &mut buffer)?);
            if let Some(size) = self.shuffle {
                let mut unshuffled = zeroed(self.encoded_len)?;
                shuffle::unshuffle(&packed, size, &mut unshuffled)?;
                packed = Cow::Owned(unshuffled);
            }
            let masks: Vec<_> = masks.iter().map(|(kind, bits)| (kind.value(), &**bits)).collect();
            return Ok(packing.unpack_masked(&packed, 0, values, &masks)?);
        }
        match self.shuffle {
            None => self.decompress(stored, values)?,
            Some(size) => {
                let mut buffer = Vec::new();
                shuffle::unshuffle(self.decompressed(stored, &mut buffer)?, size, values)?;
            }
        }
        self.to_little_endian(values);
        for (kind, bits) in masks {
            self.restore(*kind, bits, 0, values);
        }
        Ok(())
    }

    /// The decompressed bytes: the payload itself without compression, else in `buffer`.
    fn decompressed<'a>(&self, stored: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8], PipelineError> {
        if matches!(self.codec, Codec::None) {
            return self.same_length(stored).map(|()| stored);
        }
        *buffer = zeroed(self.encoded_len)?;
        self.decompress(stored, buffer)?;
        Ok(buffer)
    }

    fn same_length(&self, stored: &[u8]) -> Result<(), PipelineError> {
        let (expected, found) = (self.encoded_len, stored.len() as u64);
        if expected == found {
            return Ok(());
        }
        Err(CodecError::WrongLength { codec: "the payload", expected, found }.into())
    }

    fn decompress(&self, stored: &[u8], out: &mut [u8]) -> Result<(), PipelineError> {
        match &self.codec {
            Codec::None => {
                self.same_length(stored)?;
                out.copy_from_slice(stored);
            }
            Codec::Zstd { .. } => zstd::decode(stored, out)?,
            Codec::Lz4 => lz4::decode(stored, out)?,
            Codec::Blosc2(_) => blosc2::decode(stored, out)?,
            Codec::Szip(szip, offsets) => {
                szip::decode(stored, szip, offsets.as_deref(), out)?;
            }
            Codec::Zfp(zfp) => zfp::decode(stored, zfp, out)?,
            Codec::Sz3(_) => sz3::decode(stored, out)?,
            Codec::Rle => rle::decode_counted(stored, out)?,
            Codec::Roaring => roaring::decode_counted(stored, out)?,
        }
        Ok(())
    }

    /// Converts decoded values to little-endian.
    pub(super) fn to_little_endian(&self, values: &mut [u8]) {
        if self.keeps_bytes() && self.order == ByteOrder::Big {
            swap_in_place(values, self.dtype.swap_unit());
        }
    }
}

/// An intermediate buffer. Its length was checked against the limits.
pub(super) fn zeroed(len: u64) -> Result<Vec<u8>, PipelineError> {
    let refused = || CodecError::OutOfMemory { codec: BETWEEN, bytes: len };
    let len = usize::try_from(len).map_err(|_| refused())?;
    // Untouched pages cost nothing.
    Ok(bytemuck::allocation::try_zeroed_vec(len).map_err(|()| refused())?)
}
