//! The byte ranges of an object frame, and its descriptor.

use tercet_core::Span;

use crate::descriptor::DataObjectDescriptor;
use crate::error::ErrorKind;
use crate::frame_body::budget;
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::wire::frame::Frame;
use crate::wire::ids::FrameFlags;

/// The byte ranges of the parts of an object frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectSpans {
    /// The descriptor.
    pub(crate) descriptor: Span,
    /// Payload and masks.
    pub(crate) region: Span,
    /// The payload alone.
    pub(crate) payload: Span,
}

impl ObjectSpans {
    /// The parts of a frame; `descriptor_len` is the length of a descriptor before the payload.
    pub(super) fn new(frame: &Frame, descriptor_len: u64) -> Self {
        let body = frame.body();
        let split = frame.span.start().saturating_add(frame.cbor_offset).clamp(body.start(), body.end());
        let between = |start: u64, end: u64| Span::between(start, end).unwrap_or(Span::empty(start));
        let (descriptor, region) = if frame.header.flags.contains(FrameFlags::DESCRIPTOR_AFTER) {
            (between(split, body.end()), between(body.start(), split))
        } else {
            let end = split.saturating_add(descriptor_len).min(body.end());
            (between(split, end), between(end, body.end()))
        };
        Self { descriptor, region, payload: region }
    }
}

/// Reads the descriptor of an object frame from the bytes between `cbor_offset` and the tail.
pub(crate) fn read_descriptor(
    message: u64,
    frame: &Frame,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(DataObjectDescriptor, ObjectSpans), ErrorKind> {
    let region = Region { message, part: Part::Descriptor { object: frame.object } };
    let start = frame.span.start().saturating_add(frame.cbor_offset);
    let span = Span::at(start, bytes.len() as u64).unwrap_or(Span::empty(start));
    let (value, used) = crate::cbor::decode(bytes, &budget(options)).map_err(|error| ErrorKind::Cbor {
        region,
        span,
        error,
    })?;
    let mut spans = ObjectSpans::new(frame, used as u64);
    let wrong = |error| ErrorKind::Metadata { region, span: spans.descriptor, error };
    let descriptor = DataObjectDescriptor::from_value(value).map_err(wrong)?;
    let len = descriptor.payload_len_in(spans.region.len()).map_err(wrong)?;
    spans.payload = Span::at(spans.region.start(), len).unwrap_or(spans.region);
    Ok((descriptor, spans))
}
