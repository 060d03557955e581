//! Objects of a stream.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::limits::check_limit;
use tercet_core::tensor::Buffer;
use tercet_core::threads::install;

use super::spans::{ObjectSpans, read_descriptor};
use super::tensor;
use super::values::Values;
use crate::descriptor::DataObjectDescriptor;
use crate::error::{Error, ErrorKind};
use crate::options::ReadOptions;
use crate::wire::frame::Frame;
use crate::wire::ids::FRAME_HEADER_LEN;
use tercet_core::Tensor;

/// A data object of a stream, with its bytes.
#[derive(Clone, Debug)]
pub struct StreamedObject {
    /// The name of the stream.
    name: Arc<str>,
    message: u64,
    frame: Frame,
    descriptor: DataObjectDescriptor,
    options: ReadOptions,
    spans: ObjectSpans,
    /// Payload and masks.
    stored: Bytes,
}

impl StreamedObject {
    /// Parses the body of an object frame.
    pub(crate) fn parse(
        name: &Arc<str>,
        message: u64,
        frame: Frame,
        body: &Bytes,
        options: &ReadOptions,
    ) -> Result<Self, ErrorKind> {
        let inside = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(body.len());
        let from = inside(frame.cbor_offset.saturating_sub(FRAME_HEADER_LEN));
        let (descriptor, spans) = read_descriptor(message, &frame, &body[from..], options)?;
        let offset = |position: u64| inside(position.saturating_sub(frame.body().start()));
        let stored = body.slice(offset(spans.region.start())..offset(spans.region.end()));
        Ok(Self { name: Arc::clone(name), message, frame, descriptor, options: *options, spans, stored })
    }

    /// The number of the object in its message, from 0.
    pub fn index(&self) -> u64 {
        self.frame.object.into()
    }

    /// The descriptor.
    pub fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// The payload as stored, without masks.
    pub fn payload(&self) -> Bytes {
        let len = self.spans.payload.len_usize().unwrap_or(usize::MAX).min(self.stored.len());
        self.stored.slice(..len)
    }

    /// Decodes the object.
    pub fn decode(&self) -> Result<Tensor, Error> {
        self.values().map_err(|kind| self.error(kind))
    }

    /// Adds the name of the stream to an error.
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }

    fn values(&self) -> Result<Tensor, ErrorKind> {
        let region = self.frame.region(self.message);
        let values = Values::new(region, &self.descriptor, self.spans.payload, &self.options)?;
        let limits = self.options.common.limits.for_file(self.stored.len() as u64);
        let mut bytes = Buffer::zeroed(check_limit("the array", values.len(), limits.array_bytes)?)?;
        install(self.options.common.threads, || values.decode(&self.stored, &mut bytes))?;
        tensor(self.descriptor.dtype, self.descriptor.shape.clone(), bytes)
    }
}
