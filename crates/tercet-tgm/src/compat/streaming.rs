//! Writing of messages object by object.

use std::io::{Seek, Write};

use super::error::Result;
use super::options::EncodeOptions;
use super::types::{DataObjectDescriptor, GlobalMetadata, Section, entry_to_ours};
use crate::encode::PreEncoded;

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
