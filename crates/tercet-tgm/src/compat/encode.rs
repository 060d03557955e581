//! Encoding with the names of the documentation.

use super::error::Result;
use super::options::EncodeOptions;
use super::types::{DataObjectDescriptor, GlobalMetadata};
use crate::encode::{self, MessageParts, PreEncoded};

/// Calls `work` with the descriptors of this crate. Payloads are not copied.
pub(super) fn with_ours<T>(
    objects: &[(&DataObjectDescriptor, &[u8])],
    work: impl FnOnce(&[(&crate::DataObjectDescriptor, &[u8])]) -> Result<T>,
) -> Result<T> {
    let descriptors: Vec<crate::DataObjectDescriptor> =
        objects.iter().map(|(descriptor, _)| (*descriptor).try_into()).collect::<Result<_>>()?;
    let objects: Vec<_> = descriptors.iter().zip(objects.iter().map(|(_, values)| *values)).collect();
    work(&objects)
}

/// Encodes a message.
pub fn encode(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>> {
    let metadata = metadata.try_into()?;
    with_ours(objects, |objects| Ok(encode::encode_message(&metadata, objects, &options.into())?))
}

/// [`encode()`]; the name in the documentation of the encoder.
pub fn encode_message(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>> {
    encode(metadata, objects, options)
}

/// Encodes a message of payloads that are already encoded. Their bytes are stored unchanged.
pub fn encode_pre_encoded(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>> {
    let metadata = metadata.try_into()?;
    with_ours(objects, |objects| {
        let objects: Vec<_> =
            objects.iter().map(|&(descriptor, payload)| PreEncoded { descriptor, payload }).collect();
        Ok(encode::encode_pre_encoded(&metadata, &objects, &options.into())?)
    })
}

/// The body of a hash frame.
pub fn build_hash_frame_cbor(hashes: &[u64]) -> Result<Vec<u8>> {
    Ok(encode::build_hash_frame_cbor(hashes))
}

/// The body of the index frame of a message, and the offsets of its objects. Before the index are `before` bytes, between the
/// index and the objects `between`.
pub fn build_index_frame(before: u64, between: u64, lengths: &[u64]) -> Result<(Vec<u8>, Vec<u64>)> {
    Ok(encode::build_index_frame(before, between, lengths)?)
}

/// The offsets of objects of these lengths, multiples of 8.
pub fn compute_object_offsets(start: u64, lengths: &[u64]) -> Result<Vec<u64>> {
    encode::compute_object_offsets(start, lengths).ok_or_else(|| crate::EncodeError::TooLarge.into())
}

/// Appends preamble, frames and postamble to a buffer.
pub fn assemble_message(parts: &MessageParts<'_>, out: &mut Vec<u8>) -> Result<()> {
    Ok(encode::assemble_message(parts, out)?)
}
