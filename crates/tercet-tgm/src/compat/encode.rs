//! Encoding with the names of the documentation.

use std::io::{Seek, Write};

use super::error::{Result, TensogramError};
use super::options::EncodeOptions;
use super::types::{DataObjectDescriptor, GlobalMetadata, Section, entry_to_ours};
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

/// Writes one message to any `Write`, object by object.
#[derive(Debug)]
pub struct StreamingEncoder<W>(crate::StreamingEncoder<W>);

impl<W: Write> StreamingEncoder<W> {
    /// Starts a message: writes the preamble and the first metadata frame.
    pub fn new(sink: W, metadata: &GlobalMetadata, options: &EncodeOptions) -> Result<Self> {
        Ok(Self(crate::StreamingEncoder::new(sink, &metadata.try_into()?, options.into())?))
    }

    /// Sets metadata of the next object.
    pub fn write_preceder(&mut self, entry: Section) -> Result<()> {
        Ok(self.0.write_preceder(entry_to_ours(&entry)?)?)
    }

    /// Encodes and writes an object.
    pub fn write_object(&mut self, descriptor: &DataObjectDescriptor, values: &[u8]) -> Result<()> {
        Ok(self.0.write_object(&descriptor.try_into()?, values)?)
    }

    /// Writes an object whose payload is already encoded.
    pub fn write_object_pre_encoded(
        &mut self,
        descriptor: &DataObjectDescriptor,
        payload: &[u8],
    ) -> Result<()> {
        let descriptor = &descriptor.try_into()?;
        Ok(self.0.write_pre_encoded(PreEncoded { descriptor, payload })?)
    }

    /// The number of objects written.
    pub fn object_count(&self) -> usize {
        usize::try_from(self.0.object_count()).unwrap_or(usize::MAX)
    }

    /// The number of bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.0.bytes_written()
    }

    /// Ends the message. The preamble has no length, because a stream cannot seek.
    pub fn finish(self) -> Result<W> {
        Ok(self.0.finish()?)
    }
}

impl<W: Write + Seek> StreamingEncoder<W> {
    /// Ends the message and seeks back to write its length into the preamble.
    pub fn finish_backfilled(self) -> Result<W> {
        Ok(self.0.finish_with_length()?)
    }
}

/// The parameters of `simple_packing`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimplePackingParams {
    /// The minimum of the values.
    pub reference_value: f64,
    /// The power of two of a step.
    pub binary_scale_factor: i32,
    /// The power of ten by which values are multiplied.
    pub decimal_scale_factor: i32,
    /// Bits per value.
    pub bits_per_value: u32,
}

impl SimplePackingParams {
    /// The parameters of a descriptor.
    pub fn to_params(&self) -> Section {
        use ciborium::Value;
        [
            ("sp_reference_value".to_owned(), Value::Float(self.reference_value)),
            ("sp_binary_scale_factor".to_owned(), self.binary_scale_factor.into()),
            ("sp_decimal_scale_factor".to_owned(), self.decimal_scale_factor.into()),
            ("sp_bits_per_value".to_owned(), self.bits_per_value.into()),
        ]
        .into()
    }
}

/// The parameters of `simple_packing` for values.
pub fn compute_packing_params(
    values: &[f64],
    bits_per_value: u32,
    decimal_scale_factor: i32,
) -> Result<SimplePackingParams> {
    let little: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let packing =
        tercet_codec::pack::Packing::for_values(&little, bits_per_value, decimal_scale_factor, false);
    let packing = packing.map_err(|error| TensogramError::Encoding(error.to_string()))?;
    Ok(SimplePackingParams {
        reference_value: packing.reference,
        binary_scale_factor: packing.binary_scale,
        decimal_scale_factor: packing.decimal_scale,
        bits_per_value: packing.bits,
    })
}
