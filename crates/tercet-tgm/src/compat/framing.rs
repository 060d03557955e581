//! Messages as frames: payloads as they are stored.

use super::decode::BUFFER;
pub use super::decode::{scan, scan_file};
use super::error::Result;
use super::types::{DataObjectDescriptor, GlobalMetadata};
use crate::message_view::MessageView;

/// A message whose payloads are not decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedMessage<'a> {
    /// The metadata of the message.
    pub global_metadata: GlobalMetadata,
    /// For each object its descriptor, its payload as it is stored, without masks, and the offset of its frame.
    pub objects: Vec<(DataObjectDescriptor, &'a [u8], usize)>,
}

/// Parses the frames of the message at the start of a buffer. Nothing is decoded or copied; the hashes of objects are not
/// verified.
pub fn decode_message(buffer: &[u8]) -> Result<DecodedMessage<'_>> {
    let message = MessageView::open(BUFFER, buffer)?;
    let mut objects = Vec::new();
    for object in message.objects() {
        let object = object?;
        let payload = object.payload_span().to_range().and_then(|range| buffer.get(range));
        let offset = usize::try_from(object.frame().span.start()).unwrap_or(usize::MAX);
        objects.push((object.descriptor().clone().try_into()?, payload.unwrap_or_default(), offset));
    }
    Ok(DecodedMessage { global_metadata: message.into_metadata().into(), objects })
}
