//! Objects to be encoded.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use rayon::prelude::*;
use tercet_codec::finite::{self, Float};
use tercet_core::checksum::Xxh3;
use tercet_core::{ByteSource, SourceError, Span};

use super::error::EncodeError;
use super::options::EncodeOptions;
use crate::cbor;
use crate::descriptor::DataObjectDescriptor;
use crate::dtype::{ByteOrder, float_type};
use crate::error::Error;
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

/// The values of an object to be encoded, in the byte order of its descriptor.
#[derive(Clone, Copy, Debug)]
pub enum ObjectValues<'a> {
    /// Values in memory.
    Bytes(&'a [u8]),
    /// Values in a source. If the object has no pipeline and no masks, they are copied in pieces; otherwise they are read into
    /// memory.
    Source(&'a dyn ByteSource, Span),
}

impl ObjectValues<'_> {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Source(_, span) => span.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A payload that is copied from a source in pieces.
#[derive(Clone, Debug)]
pub(super) struct Streamed<'a> {
    source: &'a dyn ByteSource,
    pub(super) span: Span,
    /// The hash of the bytes, if they were read to be checked or hashed.
    pub(super) hash: Option<Xxh3>,
}

/// The number of bytes of a streamed payload in memory.
const PIECE: usize = 1 << 20;

impl<'a> Streamed<'a> {
    /// Reads the values once. `None` if they must be in memory to be encoded: those with non-finite numbers.
    fn check(
        source: &'a dyn ByteSource,
        span: Span,
        float: Option<Float>,
        hashed: bool,
    ) -> Result<Option<Self>, Error> {
        // Values that are checked must be those that are copied.
        let mut hash = (hashed || float.is_some()).then(Xxh3::new);
        let mut is_finite = true;
        if let Some(hash) = &mut hash {
            Self::read(source, span, |piece| {
                is_finite &= float.is_none_or(|float| finite::first(piece, float, false, false).is_none());
                hash.update(piece);
                Ok(is_finite)
            })?;
        }
        Ok(is_finite.then_some(Self { source, span, hash }))
    }

    /// Passes the values to a function in pieces, until it returns false.
    fn read(
        source: &dyn ByteSource,
        span: Span,
        mut take: impl FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let len = usize::try_from(span.len()).unwrap_or(PIECE).min(PIECE);
        let mut buffer = vec![0; len];
        let mut at = span.start();
        while at < span.end() {
            let len = usize::try_from(span.end() - at).unwrap_or(PIECE).min(PIECE);
            let piece = &mut buffer[..len];
            source.read_into(at, piece).map_err(|error| failed(source, error))?;
            if !take(piece)? {
                break;
            }
            at += len as u64;
        }
        Ok(())
    }

    /// Copies the values. They must be those that were checked.
    pub(super) fn copy(&self, mut write: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut hash = Xxh3::new();
        Self::read(self.source, self.span, |piece| {
            if self.hash.is_some() {
                hash.update(piece);
            }
            write(piece).map(|()| true)
        })?;
        if self.hash.as_ref().is_some_and(|checked| checked.digest() != hash.digest()) {
            let error = io::Error::other("the file changed while it was read");
            return Err(failed(self.source, SourceError::Read { span: self.span, error }));
        }
        Ok(())
    }
}

/// An error of reading the values.
fn failed(source: &dyn ByteSource, error: SourceError) -> Error {
    Error::new(Arc::clone(source.name()), error.into())
}

/// An encoded object.
#[derive(Debug)]
pub(super) struct EncodedObject<'a> {
    pub(super) descriptor: Cow<'a, DataObjectDescriptor>,
    /// The contents; the payload is empty if it is streamed.
    pub(super) parts: ObjectParts<'a>,
    pub(super) streamed: Option<Streamed<'a>>,
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
        Ok(Self { descriptor, parts, streamed: None, precision: None })
    }

    /// Checks an object; encodes it, unless its values can be streamed. `hashed`: whether streamed values are hashed now.
    /// `name` is that of the output in errors.
    pub(super) fn prepare_from(
        name: &Arc<str>,
        object: u64,
        descriptor: &'a DataObjectDescriptor,
        values: ObjectValues<'a>,
        options: &EncodeOptions,
        hashed: bool,
    ) -> Result<Self, Error> {
        let named = |error: EncodeError| Error::new(Arc::clone(name), error.into());
        let (source, span) = match values {
            ObjectValues::Bytes(values) => {
                return Self::prepare(object, descriptor, values, options).map_err(named);
            }
            ObjectValues::Source(source, span) => (source, span),
        };
        check_descriptor(object, descriptor).map_err(named)?;
        check_length(object, descriptor, span.len()).map_err(named)?;
        let float = float_type(descriptor.dtype);
        let is_little = descriptor.stored_order() == ByteOrder::Little || float.is_none();
        let is_copied = descriptor.is_plain() && options.max_error.is_none() && is_little;
        if is_copied && let Some(streamed) = Streamed::check(source, span, float, hashed)? {
            let parts = ObjectParts { cbor: descriptor.to_cbor(), payload: Cow::Borrowed(&[]) };
            let descriptor = Cow::Borrowed(descriptor);
            return Ok(Self { descriptor, parts, streamed: Some(streamed), precision: None });
        }
        let mut values = Vec::new();
        let len = usize::try_from(span.len()).unwrap_or(usize::MAX);
        values.try_reserve_exact(len).map_err(|_| failed(source, SourceError::TooLarge { span }))?;
        values.resize(len, 0);
        source.read_into(span.start(), &mut values).map_err(|error| failed(source, error))?;
        let Self { descriptor, parts, precision, .. } =
            EncodedObject::prepare(object, descriptor, &values, options).map_err(named)?.into_owned();
        Ok(Self { descriptor, parts, streamed: None, precision })
    }

    fn into_owned(self) -> EncodedObject<'static> {
        let ObjectParts { cbor, payload } = self.parts;
        EncodedObject {
            descriptor: Cow::Owned(self.descriptor.into_owned()),
            parts: ObjectParts { cbor, payload: Cow::Owned(payload.into_owned()) },
            streamed: None,
            precision: self.precision,
        }
    }

    /// The length of the payload.
    pub(super) fn payload_len(&self) -> u64 {
        self.streamed.as_ref().map_or(self.parts.payload.len() as u64, |streamed| streamed.span.len())
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
        Ok(Self { descriptor, parts, streamed: None, precision })
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

    /// Checks the objects of a message, and encodes those that are not streamed, in parallel. `name` is that of the output in
    /// errors.
    #[cfg(any(unix, windows))]
    pub(super) fn all_from(
        name: &Arc<str>,
        objects: &[(&'a DataObjectDescriptor, ObjectValues<'a>)],
        options: &EncodeOptions,
    ) -> Result<Vec<Self>, Error> {
        let one = |(at, (descriptor, values)): (usize, &(&'a DataObjectDescriptor, ObjectValues<'a>))| {
            Self::prepare_from(name, at as u64, descriptor, *values, options, options.hash)
        };
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
        Ok(Self { descriptor: Cow::Borrowed(descriptor), parts, streamed: None, precision: None })
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
