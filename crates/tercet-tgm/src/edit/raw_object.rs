//! One object on its way from a message into another.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::checksum::{Mismatch, Xxh3};
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Class, CommonError, Diagnose as _, Progress, Span};

use crate::descriptor::DataObjectDescriptor;
use crate::error::{Error, ErrorKind};
use crate::frame_body::budget;
use crate::object::{Object, hash_span};
use crate::pipeline::with_right_szip_offsets;
use crate::region::Region;
use crate::value::Value;
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags};

/// Bytes that are read, hashed and written at a time.
const PIECE: u64 = 1 << 20;

/// An object that was checked, as its bytes are stored.
#[derive(Clone, Debug)]
pub(crate) struct RawObject {
    source: Arc<dyn ByteSource>,
    /// What errors call it.
    called: Region,
    /// Payload and masks.
    region: Span,
    descriptor: DataObjectDescriptor,
    /// The descriptor: the stored bytes, unless it changed.
    cbor: Bytes,
    /// The hash of payload, masks and descriptor, if that is known already.
    hash: Option<u64>,
    /// Whether it had a hash where it comes from.
    is_hashed: bool,
}

impl RawObject {
    /// Takes an object of a message, unless it is damaged.
    pub(crate) fn new(source: &Arc<dyn ByteSource>, object: &Object<'_>) -> Result<Self, Error> {
        prove(object)?;
        Self::proven(source, object)
    }

    /// Takes an object that was proven before.
    pub(crate) fn proven(source: &Arc<dyn ByteSource>, object: &Object<'_>) -> Result<Self, Error> {
        let read = || {
            let (payload, masks) = (object.payload_span(), object.masks_span());
            let region = Span::between(payload.start(), masks.end()).unwrap_or(payload);
            let is_after = object.frame().header.flags.contains(FrameFlags::DESCRIPTOR_AFTER);
            let mut raw = Self {
                source: Arc::clone(source),
                called: object.region(),
                region,
                descriptor: object.descriptor().clone(),
                cbor: source.read_at(object.descriptor_span())?,
                // The frame that is written has the descriptor after the payload.
                hash: object.frame().hash().filter(|_| is_after),
                is_hashed: object.frame().hash().is_some(),
            };
            raw.mend_szip_offsets(object)?;
            Ok(raw)
        };
        read().map_err(|fault: ErrorKind| Error::new(source.name().clone(), fault))
    }

    /// Readers believe the positions of szip intervals in a message of ours, and other writers get some of them wrong.
    fn mend_szip_offsets(&mut self, object: &Object<'_>) -> Result<(), ErrorKind> {
        if self.descriptor.compression != "szip" {
            return Ok(());
        }
        check_limit("the payload", object.payload_span().len(), object.options().limits.array_bytes)?;
        let payload = self.source.read_at(object.payload_span())?;
        if let Some(right) = with_right_szip_offsets(&self.descriptor, &payload) {
            self.change(right);
        }
        Ok(())
    }

    pub(crate) fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// Whether a hash proved it. A new hash would vouch for bytes that no one checked.
    pub(crate) fn is_hashed(&self) -> bool {
        self.is_hashed
    }

    /// Describes the same payload in other words.
    pub(crate) fn change(&mut self, descriptor: DataObjectDescriptor) {
        self.cbor = descriptor.to_cbor().into();
        self.descriptor = descriptor;
        self.hash = None;
    }

    /// Bytes of payload, masks and descriptor.
    pub(crate) fn body_len(&self) -> Option<u64> {
        self.region.len().checked_add(self.cbor.len() as u64)
    }

    /// Bytes of payload and masks.
    pub(crate) fn region_len(&self) -> u64 {
        self.region.len()
    }

    /// The hash of its frame.
    pub(crate) fn hash(&self) -> Result<u64, Error> {
        if let Some(hash) = self.hash {
            return Ok(hash);
        }
        let mut hash = Xxh3::new();
        hash_span(&*self.source, self.region, &mut hash).map_err(|fault| self.error(fault))?;
        hash.update(&self.cbor);
        Ok(hash.digest())
    }

    /// Hands over payload, masks and descriptor, piece by piece. They must have the hash that was known before: the file
    /// may have changed since it was checked.
    pub(crate) fn send(
        &self,
        expected: Option<u64>,
        progress: &dyn Progress,
        put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut hash = Xxh3::new();
        let mut at = self.region.start();
        while at < self.region.end() {
            progress.check().map_err(|stop| self.error(stop.into()))?;
            let len = (self.region.end() - at).min(PIECE);
            let piece = self.source.read_at(Span::at(at, len).unwrap_or(Span::empty(at)));
            let piece = piece.map_err(|error| self.error(error.into()))?;
            if expected.is_some() {
                hash.update(&piece);
            }
            put(&piece)?;
            progress.advance(len);
            at += len;
        }
        if let Some(expected) = expected {
            hash.update(&self.cbor);
            Mismatch::check_xxh3(expected, hash.digest()).map_err(|mismatch| {
                self.error(CommonError::Checksum { region: self.called, span: self.region, mismatch }.into())
            })?;
        }
        put(&self.cbor)
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}

/// Refuses an object that is not what it was: by its hash, and by what must be so even without one.
///
/// No hash covers the flag that says on which side of the payload the descriptor is, nor the offset of the
/// descriptor. Where the two do not share the body of the frame exactly, only decoding states whether they are right.
pub(crate) fn prove(object: &Object<'_>) -> Result<(), Error> {
    object.verify()?;
    sound(object)
}

/// What [`prove`] asks besides the hash.
pub(crate) fn sound(object: &Object<'_>) -> Result<(), Error> {
    if !fills_its_frame(object)? {
        let named = |fault: ErrorKind| object.named(fault);
        let limit = object.options().limits.chunk_bytes;
        check_limit("the array", object.decoded_len()?, limit).map_err(|over| named(over.into()))?;
        return object.decode().map(drop);
    }
    match object.decoded_len() {
        // What cannot be decoded here may be right all the same.
        Err(error) if error.class() != Class::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// What else can be asked of an object without a hash: what is compressed must decode.
pub(crate) fn decodes(object: &Object<'_>) -> Result<(), Error> {
    if object.frame().hash().is_some() || object.descriptor().is_plain() {
        return Ok(());
    }
    let limit = object.options().limits.chunk_bytes;
    if !object.decoded_len().is_ok_and(|len| check_limit("the array", len, limit).is_ok()) {
        return Ok(());
    }
    match object.decode() {
        Err(error) if error.class() != Class::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Whether descriptor and payload have no byte between, before or after them.
fn fills_its_frame(object: &Object<'_>) -> Result<bool, Error> {
    let frame = object.frame();
    if !frame.header.flags.contains(FrameFlags::DESCRIPTOR_AFTER) {
        return Ok(frame.cbor_offset == FRAME_HEADER_LEN);
    }
    let bytes = object.descriptor_bytes()?;
    // A last byte of the payload that reads as a tag would pass for a part of the descriptor.
    let decoded = crate::cbor::decode(&bytes, &budget(object.options()));
    Ok(decoded.is_ok_and(|(value, used)| used == bytes.len() && matches!(value, Value::Map(_))))
}
