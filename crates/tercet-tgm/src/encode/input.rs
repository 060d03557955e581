//! Objects to be encoded.

use std::borrow::Cow;

use rayon::prelude::*;

use super::error::EncodeError;
use super::options::EncodeOptions;
use crate::cbor;
use crate::descriptor::DataObjectDescriptor;
use crate::metadata::{Entry, GlobalMetadata};
use crate::pipeline::{self, NONE};
use crate::precision::{self, PRECISION};
use crate::value::Value;

/// The reserved key.
pub(super) const RESERVED: &str = "_reserved_";

/// A payload that is already encoded. Its bytes are stored unchanged.
#[derive(Clone, Copy, Debug)]
pub struct PreEncoded<'a> {
    /// The descriptor, with all parameters of the pipeline.
    pub descriptor: &'a DataObjectDescriptor,
    /// The bytes: the payload, then the masks at the offsets in the descriptor.
    pub payload: &'a [u8],
}

/// The contents of an object frame.
#[derive(Clone, Debug)]
pub struct ObjectParts<'a> {
    /// The descriptor as CBOR.
    pub cbor: Vec<u8>,
    /// The payload and its masks.
    pub payload: Cow<'a, [u8]>,
}

/// An encoded object.
#[derive(Debug)]
pub(super) struct EncodedObject<'a> {
    pub(super) descriptor: Cow<'a, DataObjectDescriptor>,
    pub(super) parts: ObjectParts<'a>,
    /// The entry `precision` of its metadata.
    precision: Option<Value>,
}

impl<'a> EncodedObject<'a> {
    /// Checks and encodes an object.
    pub(super) fn prepare(
        object: u64,
        descriptor: &'a DataObjectDescriptor,
        values: &'a [u8],
        options: &EncodeOptions,
    ) -> Result<Self, EncodeError> {
        if descriptor.masks.is_some() {
            return Err(EncodeError::ReservedMasks { object });
        }
        check_descriptor(object, descriptor)?;
        check_length(object, descriptor, values.len() as u64)?;
        if let Some(bound) = options.max_error {
            return Self::check_limit(object, descriptor, values, bound, options);
        }
        let encoded = pipeline::encode(descriptor, values, options);
        let (descriptor, payload) =
            encoded.map_err(|error| EncodeError::Pipeline { object, error: Box::new(error) })?;
        let parts = ObjectParts { cbor: descriptor.to_cbor(), payload };
        Ok(Self { descriptor, parts, precision: None })
    }

    /// Encodes an object within an error bound: with the pipeline of its descriptor, or else with the smallest candidate.
    fn check_limit(
        object: u64,
        descriptor: &DataObjectDescriptor,
        values: &[u8],
        bound: f64,
        options: &EncodeOptions,
    ) -> Result<Self, EncodeError> {
        if !(bound.is_finite() && bound >= 0.0) {
            return Err(EncodeError::Bound { found: bound });
        }
        let wrong = |error| EncodeError::Pipeline { object, error: Box::new(error) };
        let chosen = if is_bare(descriptor) {
            precision::choose(descriptor, values, bound, options)
        } else {
            precision::measure(descriptor, values, options)
        };
        let chosen = chosen.map_err(wrong)?;
        if chosen.error > bound {
            return Err(EncodeError::Inexact { object, found: chosen.error, bound });
        }
        let precision = Some(chosen.record(bound));
        let descriptor: Cow<'_, DataObjectDescriptor> = Cow::Owned(chosen.trial.descriptor);
        let payload = Cow::Owned(chosen.trial.stored);
        let parts = ObjectParts { cbor: descriptor.to_cbor(), payload };
        Ok(Self { descriptor, parts, precision })
    }

    /// Checks and encodes the objects of a message in parallel.
    pub(super) fn all(
        objects: &[(&'a DataObjectDescriptor, &'a [u8])],
        options: &EncodeOptions,
    ) -> Result<Vec<Self>, EncodeError> {
        let one = |(at, (descriptor, values)): (usize, &(&'a DataObjectDescriptor, &'a [u8]))| {
            Self::prepare(at as u64, descriptor, values, options)
        };
        // Starting another thread takes longer than encoding small objects.
        if objects.len() < 2 || objects.iter().all(|(_, values)| values.len() < 64 << 10) {
            return objects.iter().enumerate().map(one).collect();
        }
        let ready: Vec<_> = objects.par_iter().enumerate().map(one).collect();
        ready.into_iter().collect()
    }

    /// Checks an object whose payload is already encoded.
    pub(super) fn pre_encoded(
        object: u64,
        descriptor: &'a DataObjectDescriptor,
        payload: &'a [u8],
    ) -> Result<Self, EncodeError> {
        check_descriptor(object, descriptor)?;
        let found = descriptor.payload_len_in(payload.len() as u64);
        let found = found.map_err(|error| EncodeError::Descriptor { object, error })?;
        // Only an object without a pipeline has a length that follows from its shape.
        if is_bare(descriptor) {
            check_length(object, descriptor, found)?;
        }
        let payload_len = usize::try_from(found).unwrap_or(usize::MAX).min(payload.len());
        // Readers trust the szip offsets in messages of this library.
        pipeline::check_szip_offsets(descriptor, &payload[..payload_len])
            .map_err(|error| EncodeError::Pipeline { object, error: Box::new(error) })?;
        let parts = ObjectParts { cbor: descriptor.to_cbor(), payload: Cow::Borrowed(payload) };
        Ok(Self { descriptor: Cow::Borrowed(descriptor), parts, precision: None })
    }

    /// Adds the reserved entries to the metadata of the object.
    pub(super) fn enrich(&self, object: u64, entry: &mut Entry) -> Result<(), EncodeError> {
        let section: Entry = [("tensor".to_owned(), self.descriptor.tensor_entry())].into();
        entry.insert(RESERVED.to_owned(), Value::from(section));
        if let Some(precision) = &self.precision
            && entry.insert(PRECISION.to_owned(), precision.clone()).is_some()
        {
            return Err(EncodeError::ReservedPrecision { object });
        }
        Ok(())
    }
}

/// Whether a descriptor has no pipeline.
fn is_bare(descriptor: &DataObjectDescriptor) -> bool {
    [&descriptor.encoding, &descriptor.filter, &descriptor.compression].into_iter().all(|name| name == NONE)
}

/// Rejects a descriptor that readers would not accept.
fn check_descriptor(object: u64, descriptor: &DataObjectDescriptor) -> Result<(), EncodeError> {
    descriptor.check_for_writing().map_err(|error| EncodeError::Descriptor { object, error })?;
    check_values(&descriptor.params, 1, |key| format!("object {object}: {key}"))
}

/// Rejects a payload whose length does not match the shape.
fn check_length(object: u64, descriptor: &DataObjectDescriptor, found: u64) -> Result<(), EncodeError> {
    let expected = descriptor.elements().and_then(|n| descriptor.dtype.byte_len(n));
    let expected = expected.unwrap_or(u64::MAX);
    if found == expected { Ok(()) } else { Err(EncodeError::PayloadLength { object, found, expected }) }
}

/// Rejects values that no reader would accept; `depth` is their nesting depth.
pub(crate) fn check_values(
    entry: &Entry,
    depth: usize,
    path: impl Fn(&str) -> String,
) -> Result<(), EncodeError> {
    for (key, value) in entry {
        cbor::check_writable(value, depth)
            .map_err(|error| EncodeError::Value { path: path(key).into(), error })?;
    }
    Ok(())
}

/// Rejects reserved keys and values that no reader would accept.
pub(crate) fn check_metadata(metadata: &GlobalMetadata) -> Result<(), EncodeError> {
    for (object, entry) in metadata.base.iter().enumerate() {
        check_values(entry, 3, |key| format!("base[{object}].{key}"))?;
    }
    check_values(&metadata.extra, 2, str::to_owned)?;
    let refused = |path: String| Err(EncodeError::Reserved { path: path.into() });
    if !metadata.reserved.is_empty() {
        return refused("the message".to_owned());
    }
    match metadata.base.iter().position(|entry| entry.contains_key(RESERVED)) {
        Some(object) => refused(format!("base[{object}]")),
        None => Ok(()),
    }
}
