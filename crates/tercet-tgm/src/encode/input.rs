//! Objects on their way into a message.

use super::error::EncodeError;
use crate::cbor;
use crate::descriptor::DataObjectDescriptor;
use crate::metadata::{Entry, GlobalMetadata};
use crate::value::Value;

/// The key that belongs to the library.
pub(super) const RESERVED: &str = "_reserved_";

/// A payload that went through its pipeline already. Its bytes are stored as they are.
#[derive(Clone, Copy, Debug)]
pub struct PreEncoded<'a> {
    /// What the bytes are, with all parameters of their pipeline.
    pub descriptor: &'a DataObjectDescriptor,
    /// The bytes: payload, then masks where the descriptor says.
    pub payload: &'a [u8],
}

/// What the frame of an object holds.
#[derive(Clone, Debug)]
pub struct ObjectParts<'a> {
    /// The descriptor as CBOR.
    pub cbor: Vec<u8>,
    /// The payload, with its masks.
    pub payload: &'a [u8],
}

/// An object that passed every check.
#[derive(Debug)]
pub(super) struct Ready<'a> {
    pub(super) descriptor: &'a DataObjectDescriptor,
    pub(super) parts: ObjectParts<'a>,
}

impl<'a> Ready<'a> {
    /// Checks an object whose payload is to be encoded.
    pub(super) fn of(
        object: u64,
        descriptor: &'a DataObjectDescriptor,
        payload: &'a [u8],
    ) -> Result<Self, EncodeError> {
        for (stage, name) in stages(descriptor) {
            if name != "none" {
                return Err(EncodeError::Unsupported { object, stage, name: name.into() });
            }
        }
        if descriptor.masks.is_some() {
            return Err(EncodeError::Unsupported { object, stage: "masks", name: "given".into() });
        }
        Self::pre_encoded(object, descriptor, payload)
    }

    /// Checks an object whose payload is encoded already.
    pub(super) fn pre_encoded(
        object: u64,
        descriptor: &'a DataObjectDescriptor,
        payload: &'a [u8],
    ) -> Result<Self, EncodeError> {
        let wrong = |error| EncodeError::Descriptor { object, error };
        descriptor.check_for_writing().map_err(wrong)?;
        check_values(&descriptor.params, 1, |key| format!("object {object}: {key}"))?;
        let found = descriptor.payload_len_in(payload.len() as u64).map_err(wrong)?;
        // Only what is stored plainly has a length that its shape tells.
        if stages(descriptor).iter().all(|(_, name)| *name == "none") {
            let expected = descriptor.elements().and_then(|n| descriptor.dtype.payload_len(n));
            let expected = expected.unwrap_or(u64::MAX);
            if found != expected {
                return Err(EncodeError::PayloadLength { object, found, expected });
            }
        }
        Ok(Self { descriptor, parts: ObjectParts { cbor: descriptor.to_cbor(), payload } })
    }
}

fn stages(descriptor: &DataObjectDescriptor) -> [(&'static str, &str); 3] {
    [
        ("encoding", &descriptor.encoding),
        ("filter", &descriptor.filter),
        ("compression", &descriptor.compression),
    ]
}

/// Refuses values that no reader would accept; `depth` containers are around them.
pub(super) fn check_values(
    entry: &Entry,
    depth: usize,
    place: impl Fn(&str) -> String,
) -> Result<(), EncodeError> {
    for (key, value) in entry {
        cbor::check_writable(value, depth)
            .map_err(|error| EncodeError::Value { place: place(key).into(), error })?;
    }
    Ok(())
}

/// Refuses keys that belong to the library, and values that no reader would accept.
pub(super) fn check_metadata(metadata: &GlobalMetadata) -> Result<(), EncodeError> {
    for (object, entry) in metadata.base.iter().enumerate() {
        check_values(entry, 3, |key| format!("base[{object}].{key}"))?;
    }
    check_values(&metadata.extra, 2, str::to_owned)?;
    let refused = |place: String| Err(EncodeError::Reserved { place: place.into() });
    if !metadata.reserved.is_empty() {
        return refused("the message".to_owned());
    }
    match metadata.base.iter().position(|entry| entry.contains_key(RESERVED)) {
        Some(object) => refused(format!("base[{object}]")),
        None => Ok(()),
    }
}

/// Adds what the library knows about an object to its entry.
pub(super) fn enrich(entry: &mut Entry, descriptor: &DataObjectDescriptor) {
    let section: Entry = [("tensor".to_owned(), descriptor.tensor_entry())].into();
    entry.insert(RESERVED.to_owned(), Value::from(section));
}
