//! Iterators over messages and objects of buffers.

use std::iter::FusedIterator;

use super::decode::{BUFFER, DecodedObject, decode_descriptors, decoded, scan};
use super::error::Result;
use super::options::DecodeOptions;
use super::types::DataObjectDescriptor;
use crate::message_view::MessageView;
use crate::options::ReadOptions;

/// Iterator over the messages of a buffer: see [`messages`].
#[derive(Clone, Debug)]
pub struct MessageIter<'a> {
    buffer: &'a [u8],
    spans: std::vec::IntoIter<(usize, usize)>,
}

/// The bytes of each message of a buffer, without a copy. The buffer is scanned once.
pub fn messages(buffer: &[u8]) -> MessageIter<'_> {
    MessageIter { buffer, spans: scan(buffer).into_iter() }
}

impl<'a> Iterator for MessageIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (start, len) = self.spans.next()?;
        self.buffer.get(start..start + len)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for MessageIter<'_> {}
impl FusedIterator for MessageIter<'_> {}

/// Iterator over the objects of a message: see [`objects`].
#[derive(Debug)]
pub struct ObjectIter<'a> {
    message: MessageView<'a>,
    options: DecodeOptions,
    next: u64,
}

/// Descriptor and values of each object of a message. An object is decoded when it is requested.
pub fn objects(message: &[u8], options: DecodeOptions) -> Result<ObjectIter<'_>> {
    let message = MessageView::open_with(BUFFER, message, ReadOptions::from(&options))?;
    Ok(ObjectIter { message, options, next: 0 })
}

impl Iterator for ObjectIter<'_> {
    type Item = Result<DecodedObject>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.message.object_count() {
            return None;
        }
        let object = self.message.object(self.next).map_err(Into::into);
        self.next += 1;
        Some(object.and_then(|object| decoded(&object, &self.options)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.message.object_count() - self.next).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for ObjectIter<'_> {}
impl FusedIterator for ObjectIter<'_> {}

/// The descriptor of each object of a message. Nothing is decoded.
pub fn objects_metadata(message: &[u8]) -> Result<std::vec::IntoIter<DataObjectDescriptor>> {
    Ok(decode_descriptors(message)?.1.into_iter())
}
