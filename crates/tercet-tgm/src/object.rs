//! Data objects: descriptor and payload.

mod range;
mod selection;
mod spans;
mod stored;
mod streamed;
mod values;

use bytes::Bytes;
use tercet_core::checksum::Xxh3;
use tercet_core::limits::check_limit;
use tercet_core::tensor::Buffer;
use tercet_core::threads::install;
use tercet_core::{ByteSource, Shape, Span};

use crate::cbor::{CborError, CborErrorKind};
use crate::consistency::{check_hash, compare};
use crate::descriptor::DataObjectDescriptor;
use crate::dtype::{ByteOrder, swap_in_place};
use crate::error::{Error, ErrorKind};
use crate::options::ReadOptions;
use crate::pipeline::MaskKind;
use crate::verification_cache::VerificationCache;
use crate::wire::frame::Frame;
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags};
pub use range::Ranges;
pub use selection::Selected;
use spans::{ObjectSpans, read_descriptor};
use stored::StoredBytes;
pub use streamed::StreamedObject;
use tercet_core::{DType, Tensor};
pub(crate) use values::Values;

/// The number of bytes hashed and copied at a time, while they are in the cache.
const PIECE: usize = 64 << 10;
/// The number of bytes per request when only the hash of a remote object is computed.
const REMOTE_PIECE: usize = 8 << 20;

/// The packed bits of masks: the first element is the highest bit of the first byte.
pub type Bitmaps = Vec<(MaskKind, Vec<u8>)>;

/// A data object of a message.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    source: &'a dyn ByteSource,
    options: &'a ReadOptions,
    verification_cache: &'a VerificationCache,
    message: u64,
    frame: Frame,
    spans: ObjectSpans,
    descriptor: DataObjectDescriptor,
    /// Whether the szip offsets were checked by the writer of the message.
    trusts_offsets: bool,
}

/// A decoded array. Its length was computed from type and shape.
pub(crate) fn tensor(dtype: DType, shape: Vec<u64>, bytes: Buffer) -> Result<Tensor, ErrorKind> {
    let shape = Shape::new(shape);
    let found = bytes.len() as u64;
    let expected = shape.elements().and_then(|elements| dtype.byte_len(elements)).unwrap_or(u64::MAX);
    Tensor::from_buffer(dtype, shape, bytes).map_err(|_| ErrorKind::BufferSize { expected, found })
}

/// Whether the CBOR is only truncated: more bytes may complete it.
fn is_truncated(error: &CborError) -> bool {
    matches!(error.reason, CborErrorKind::Truncated { .. })
}

/// Verifies the hash of an object frame in pieces. A frame without a hash passes.
pub(crate) fn verify_frame(source: &dyn ByteSource, message: u64, frame: &Frame) -> Result<(), ErrorKind> {
    let Some(expected) = frame.hash() else { return Ok(()) };
    let mut hash = Xxh3::new();
    hash_span(source, frame.body(), &mut hash)?;
    compare(message, frame, expected, hash.digest())
}

pub(crate) fn hash_span(source: &dyn ByteSource, span: Span, hash: &mut Xxh3) -> Result<(), ErrorKind> {
    if let Some(view) = source.view(span) {
        hash.update(view);
        return Ok(());
    }
    let most = if source.is_remote() { REMOTE_PIECE } else { PIECE };
    let mut piece = vec![0; most.min(span.len_usize().unwrap_or(most))];
    let mut at = span.start();
    while at < span.end() {
        let len = (span.end() - at).min(piece.len() as u64);
        let part = &mut piece[..usize::try_from(len).unwrap_or_default()];
        source.read_into(at, part)?;
        hash.update(part);
        at += len;
    }
    Ok(())
}

impl<'a> Object<'a> {
    pub(crate) fn open(
        source: &'a dyn ByteSource,
        options: &'a ReadOptions,
        verification_cache: &'a VerificationCache,
        message: u64,
        frame: Frame,
    ) -> Result<Self, ErrorKind> {
        let from = frame.cbor_offset.max(FRAME_HEADER_LEN);
        let start = frame.span.start().saturating_add(from);
        let all = Span::between(start, frame.body().end()).unwrap_or(Span::empty(start));
        let after = frame.header.flags.contains(FrameFlags::DESCRIPTOR_AFTER);
        let (descriptor, spans) = if after || source.view(all).is_some() {
            check_limit(
                "a descriptor",
                if after { all.len() } else { 0 },
                options.common.limits.metadata_bytes,
            )?;
            read_descriptor(message, &frame, &StoredBytes::read(source, all)?, options)?
        } else {
            Self::descriptor_first(source, options, message, &frame, all)?
        };
        Ok(Self {
            source,
            options,
            verification_cache,
            message,
            frame,
            spans,
            descriptor,
            trusts_offsets: false,
        })
    }

    /// Reads a descriptor before its payload. Its length is known only after parsing it.
    fn descriptor_first(
        source: &dyn ByteSource,
        options: &ReadOptions,
        message: u64,
        frame: &Frame,
        all: Span,
    ) -> Result<(DataObjectDescriptor, ObjectSpans), ErrorKind> {
        let mut len = all.len().min(PIECE as u64);
        loop {
            let bytes = source.read_at(all.slice(0, len).unwrap_or(all))?;
            match read_descriptor(message, frame, &bytes, options) {
                Err(ErrorKind::Cbor { error, .. }) if is_truncated(&error) && len < all.len() => {
                    len = len.saturating_mul(8).min(all.len());
                    check_limit("a descriptor", len, options.common.limits.metadata_bytes)?;
                }
                read => return read,
            }
        }
    }

    /// Sets whether stored szip offsets are trusted.
    pub(crate) fn with_trusted_offsets(mut self, trusted: bool) -> Self {
        self.trusts_offsets = trusted;
        self
    }

    /// The number of the object in its message, from 0.
    pub fn index(&self) -> u64 {
        self.frame.object.into()
    }

    /// The descriptor. The hash of the object covers it too, but is verified only when the payload is read.
    pub fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// The frame.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The byte range of the payload in the file, without masks.
    pub fn payload_span(&self) -> Span {
        self.spans.payload
    }

    /// The byte range of the masks in the file: from the end of the payload to the end of its region.
    pub fn masks_span(&self) -> Span {
        let end = self.spans.region.end();
        Span::between(self.spans.payload.end(), end).unwrap_or(Span::empty(end))
    }

    /// The byte range of the descriptor in the file.
    pub fn descriptor_span(&self) -> Span {
        self.spans.descriptor
    }

    /// The region in error messages.
    pub(crate) fn region(&self) -> crate::region::Region {
        self.frame.region(self.message)
    }

    /// The read options.
    pub(crate) fn options(&self) -> &ReadOptions {
        self.options
    }

    /// An error with the location of the file.
    pub(crate) fn named(&self, fault: ErrorKind) -> Error {
        self.error(fault)
    }

    /// The bytes of the descriptor, including trailing bytes.
    pub(crate) fn descriptor_bytes(&self) -> Result<Bytes, Error> {
        self.source.read_at(self.spans.descriptor).map_err(|error| self.error(error.into()))
    }

    /// Verifies the hash. An object without a hash passes.
    pub fn verify(&self) -> Result<(), Error> {
        verify_frame(self.source, self.message, &self.frame).map_err(|fault| self.error(fault))?;
        self.verification_cache.insert_verified(&self.frame);
        Ok(())
    }

    /// The payload as stored, without masks.
    pub fn payload(&self) -> Result<Bytes, Error> {
        self.part(self.spans.payload)
    }

    /// The payload as stored, with masks.
    pub fn stored(&self) -> Result<Bytes, Error> {
        self.part(self.spans.region)
    }

    /// A part of the body, after verification of the body.
    fn part(&self, part: Span) -> Result<Bytes, Error> {
        let read = || {
            let body = self.body()?;
            if self.options.common.verify {
                check_hash(self.message, &self.frame, &body)?;
            }
            match self.slice(&body, part) {
                StoredBytes::View(_) => Ok(self.source.read_at(part)?),
                StoredBytes::Read(bytes) => Ok(bytes),
            }
        };
        read().map_err(|fault| self.error(fault))
    }

    /// The bytes between header and tail of the frame.
    fn body(&self) -> Result<StoredBytes<'a>, ErrorKind> {
        let body = self.frame.body();
        check_limit("the payload", body.len(), self.options.common.limits.array_bytes)?;
        Ok(StoredBytes::read(self.source, body)?)
    }

    /// A part of the body.
    fn slice(&self, body: &StoredBytes<'a>, part: Span) -> StoredBytes<'a> {
        let start = usize::try_from(part.start() - self.frame.body().start()).unwrap_or(usize::MAX);
        let len = part.len_usize().unwrap_or(usize::MAX);
        body.slice(start..start.saturating_add(len))
    }

    /// The decoder of the values.
    fn values(&self) -> Result<Values, ErrorKind> {
        Values::new(self.frame.region(self.message), &self.descriptor, self.spans.payload, self.options)
    }

    /// The limit for the decoded array.
    fn array_limit(&self) -> u64 {
        self.options.common.limits.for_file(self.source.len()).array_bytes
    }

    /// The limit for an array that is decoded to check it.
    pub(crate) fn chunk_limit(&self) -> u64 {
        self.options.common.limits.for_file(self.source.len()).chunk_bytes
    }

    /// The length of the decoded array in bytes.
    pub fn decoded_len(&self) -> Result<u64, Error> {
        Ok(self.values().map_err(|fault| self.error(fault))?.len())
    }

    /// Decodes the object.
    pub fn decode(&self) -> Result<Tensor, Error> {
        let fill = || {
            let values = self.values()?;
            let mut bytes = Buffer::zeroed(check_limit("the array", values.len(), self.array_limit())?)?;
            self.fill(&values, &mut bytes)?;
            self.array(bytes)
        };
        install(self.options.common.threads, fill).map_err(|fault: ErrorKind| self.error(fault))
    }

    /// Decodes the object to the bytes of its values, little-endian.
    pub fn decode_to_vec(&self) -> Result<Vec<u8>, Error> {
        let fill = || {
            let values = self.values()?;
            let len = check_limit("the array", values.len(), self.array_limit())?;
            // Untouched pages cost nothing.
            let zeroed = bytemuck::allocation::try_zeroed_vec(len);
            let mut bytes = zeroed.map_err(|()| tercet_core::tensor::OutOfMemory { bytes: len })?;
            self.fill(&values, &mut bytes)?;
            Ok(bytes)
        };
        install(self.options.common.threads, fill).map_err(|fault: ErrorKind| self.error(fault))
    }

    /// Decodes the object with zeros in place of non-finite values; also returns the masks of those values.
    pub fn decode_with_masks(&self) -> Result<(Tensor, Bitmaps), Error> {
        let fill = || {
            let values = self.values()?;
            let mut bytes = Buffer::zeroed(check_limit("the array", values.len(), self.array_limit())?)?;
            let masks = self.with_stored(|stored| {
                values.decode_payload(stored, &[], &mut bytes)?;
                values.bits(stored)
            })?;
            Ok((self.array(bytes)?, masks))
        };
        install(self.options.common.threads, fill).map_err(|fault: ErrorKind| self.error(fault))
    }

    fn array(&self, bytes: Buffer) -> Result<Tensor, ErrorKind> {
        tensor(self.descriptor.dtype, self.descriptor.shape.clone(), bytes)
    }

    /// Decodes the array into a buffer of exactly its size, little-endian.
    ///
    /// After an error the contents of the buffer are unspecified.
    pub fn decode_into(&self, out: &mut [u8]) -> Result<(), Error> {
        let fill = || {
            let values = self.values()?;
            if values.len() != out.len() as u64 {
                return Err(ErrorKind::BufferSize { expected: values.len(), found: out.len() as u64 });
            }
            self.fill(&values, out)
        };
        install(self.options.common.threads, fill).map_err(|fault| self.error(fault))
    }

    fn fill(&self, values: &Values, out: &mut [u8]) -> Result<(), ErrorKind> {
        if !values.is_plain() {
            return self.with_stored(|stored| values.decode(stored, out));
        }
        match self.frame.hash().filter(|_| self.options.common.verify) {
            Some(expected) => {
                self.fill_checked(out, expected)?;
                self.verification_cache.insert_verified(&self.frame);
            }
            None => self.source.read_into(self.spans.payload.start(), out)?,
        }
        if self.descriptor.stored_order() == ByteOrder::Big {
            swap_in_place(out, self.descriptor.dtype.swap_unit());
        }
        Ok(())
    }

    /// Runs `work` on payload and masks while their hash is verified in parallel. The result is returned only if
    /// the hash matches.
    fn with_stored<T: Send>(
        &self,
        work: impl FnOnce(&StoredBytes<'a>) -> Result<T, ErrorKind> + Send,
    ) -> Result<T, ErrorKind> {
        let body = self.body()?;
        let stored = self.slice(&body, self.spans.region);
        if !self.options.common.verify || self.verification_cache.is_verified(&self.frame) {
            return work(&stored);
        }
        let check = || check_hash(self.message, &self.frame, &body);
        let (checked, done) = rayon::join(check, || work(&stored));
        checked?;
        self.verification_cache.insert_verified(&self.frame);
        done
    }

    /// Copies and hashes in pieces, so that memory is read once.
    fn fill_checked(&self, out: &mut [u8], expected: u64) -> Result<(), ErrorKind> {
        let payload = self.spans.payload;
        if self.source.is_remote() {
            // One request instead of many.
            let body = self.body()?;
            check_hash(self.message, &self.frame, &body)?;
            out.copy_from_slice(&self.slice(&body, payload));
            return Ok(());
        }
        let body = self.frame.body();
        let before = Span::between(body.start(), payload.start()).unwrap_or(Span::empty(body.start()));
        let after = Span::between(payload.end(), body.end()).unwrap_or(Span::empty(body.end()));
        let mut hash = Xxh3::new();
        hash_span(self.source, before, &mut hash)?;
        let view = self.source.view(payload);
        let mut at = 0;
        for piece in out.chunks_mut(PIECE) {
            match view {
                Some(bytes) => piece.copy_from_slice(&bytes[at..at + piece.len()]),
                None => self.source.read_into(payload.start() + at as u64, piece)?,
            }
            hash.update(piece);
            at += piece.len();
        }
        hash_span(self.source, after, &mut hash)?;
        compare(self.message, &self.frame, expected, hash.digest())
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}
