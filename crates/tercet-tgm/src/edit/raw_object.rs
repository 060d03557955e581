//! An object copied from one message to another as stored.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::checksum::{Mismatch, Xxh3};
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, Class, CommonError, Diagnostic as _, Progress, Span};

use crate::descriptor::DataObjectDescriptor;
use crate::error::{Error, ErrorKind};
use crate::frame_body::budget;
use crate::object::{Object, hash_span};
use crate::pipeline::with_correct_szip_offsets;
use crate::region::Region;
use crate::value::Value;
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags};

/// The number of bytes read, hashed and written at a time.
const PIECE: u64 = 1 << 20;

/// A verified object, as stored.
#[derive(Clone, Debug)]
pub(crate) struct RawObject {
    source: Arc<dyn ByteSource>,
    /// The region in error messages.
    error_region: Region,
    /// Payload and masks.
    region: Span,
    descriptor: DataObjectDescriptor,
    /// The descriptor: the stored bytes, or the changed ones.
    cbor: Bytes,
    /// The hash of payload, masks and descriptor, if known.
    hash: Option<u64>,
    /// Whether it had a hash in its source.
    is_hashed: bool,
}

impl RawObject {
    /// Copies an object of a message, after verification.
    pub(crate) fn new(source: &Arc<dyn ByteSource>, object: &Object<'_>) -> Result<Self, Error> {
        verify_object(object)?;
        Self::from_verified(source, object)
    }

    /// Copies an object that was verified before.
    pub(crate) fn from_verified(source: &Arc<dyn ByteSource>, object: &Object<'_>) -> Result<Self, Error> {
        let read = || {
            let (payload, masks) = (object.payload_span(), object.masks_span());
            let region = Span::between(payload.start(), masks.end()).unwrap_or(payload);
            let is_after = object.frame().header.flags.contains(FrameFlags::DESCRIPTOR_AFTER);
            let mut raw = Self {
                source: Arc::clone(source),
                error_region: object.region(),
                region,
                descriptor: object.descriptor().clone(),
                cbor: source.read_at(object.descriptor_span())?,
                // The written frame has the descriptor after the payload.
                hash: object.frame().hash().filter(|_| is_after),
                is_hashed: object.frame().hash().is_some(),
            };
            raw.repair_szip_offsets(object)?;
            Ok(raw)
        };
        read().map_err(|fault: ErrorKind| Error::new(source.name().clone(), fault))
    }

    /// Readers trust the szip offsets in messages of this library, and other writers store wrong ones.
    fn repair_szip_offsets(&mut self, object: &Object<'_>) -> Result<(), ErrorKind> {
        if self.descriptor.compression != "szip" {
            return Ok(());
        }
        check_limit("the payload", object.payload_span().len(), object.options().common.limits.array_bytes)?;
        let payload = self.source.read_at(object.payload_span())?;
        if let Some(right) = with_correct_szip_offsets(&self.descriptor, &payload) {
            self.change(right);
        }
        Ok(())
    }

    pub(crate) fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// Whether its hash was verified. A new hash would certify bytes that were not verified.
    pub(crate) fn is_hashed(&self) -> bool {
        self.is_hashed
    }

    /// Changes the descriptor of the same payload.
    pub(crate) fn change(&mut self, descriptor: DataObjectDescriptor) {
        self.cbor = descriptor.to_cbor().into();
        self.descriptor = descriptor;
        self.hash = None;
    }

    /// The length of payload, masks and descriptor.
    pub(crate) fn body_len(&self) -> Option<u64> {
        self.region.len().checked_add(self.cbor.len() as u64)
    }

    /// The length of payload and masks.
    pub(crate) fn region_len(&self) -> u64 {
        self.region.len()
    }

    /// The hash of the frame.
    pub(crate) fn hash(&self) -> Result<u64, Error> {
        if let Some(hash) = self.hash {
            return Ok(hash);
        }
        let mut hash = Xxh3::new();
        hash_span(&*self.source, self.region, &mut hash).map_err(|fault| self.error(fault))?;
        hash.update(&self.cbor);
        Ok(hash.digest())
    }

    /// Passes payload, masks and descriptor to `sink` in pieces. They are compared with the known hash: the file
    /// may have changed since it was verified.
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
                self.error(
                    CommonError::Checksum { region: self.error_region, span: self.region, mismatch }.into(),
                )
            })?;
        }
        put(&self.cbor)
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}

/// Verifies an object: its hash, and what must hold even without one.
///
/// The hash covers neither the flag for the position of the descriptor nor its offset. If payload and descriptor do not
/// fill the body of the frame exactly, the object is decoded to check them.
pub(crate) fn verify_object(object: &Object<'_>) -> Result<(), Error> {
    object.verify()?;
    check_structure(object)
}

/// The checks of [`verify_object`] apart from the hash.
pub(crate) fn check_structure(object: &Object<'_>) -> Result<(), Error> {
    if !fills_its_frame(object)? {
        let named = |fault: ErrorKind| object.named(fault);
        check_limit("the array", object.decoded_len()?, object.chunk_limit())
            .map_err(|over| named(over.into()))?;
        return object.decode().map(drop);
    }
    match object.decoded_len() {
        // An object that cannot be decoded here may still be valid.
        Err(error) if error.class() != Class::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Checks an object without a hash: a compressed payload must decode, within the limits.
pub(crate) fn check_decodes(object: &Object<'_>) -> Result<(), Error> {
    if object.frame().hash().is_some() || object.descriptor().is_plain() {
        return Ok(());
    }
    match object.decoded_len() {
        Ok(len) => {
            check_limit("the array", len, object.chunk_limit()).map_err(|over| object.named(over.into()))?
        }
        Err(_) => return Ok(()),
    };
    match object.decode() {
        Err(error) if error.class() != Class::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Whether descriptor and payload fill the body of the frame exactly.
fn fills_its_frame(object: &Object<'_>) -> Result<bool, Error> {
    let frame = object.frame();
    if !frame.header.flags.contains(FrameFlags::DESCRIPTOR_AFTER) {
        return Ok(frame.cbor_offset == FRAME_HEADER_LEN);
    }
    let bytes = object.descriptor_bytes()?;
    // If the last byte of the payload reads as a tag, it would be parsed as part of the descriptor.
    let decoded = crate::cbor::decode(&bytes, &budget(object.options()));
    Ok(decoded.is_ok_and(|(value, used)| used == bytes.len() && matches!(value, Value::Map(_))))
}
