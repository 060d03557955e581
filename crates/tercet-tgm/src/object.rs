//! One data object: its descriptor and its payload.

use bytes::Bytes;
use tercet_core::checksum::Xxh3;
use tercet_core::limits::within;
use tercet_core::tensor::Buffer;
use tercet_core::{ByteSource, Shape, Span};

use crate::array::Array;
use crate::body::budget;
use crate::cbor::{CborError, CborWhy};
use crate::check::{check_hash, compare};
use crate::descriptor::DataObjectDescriptor;
use crate::dtype::{ByteOrder, swap_in_place};
use crate::fault::{Error, Fault};
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::wire::frame::Frame;
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags};

/// Bytes that are hashed and copied while they are in the cache.
const PIECE: usize = 64 << 10;

/// A data object of a message.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    source: &'a dyn ByteSource,
    options: &'a ReadOptions,
    message: u64,
    frame: Frame,
    place: Place,
    descriptor: DataObjectDescriptor,
}

/// Where the parts of an object frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The descriptor.
    pub(crate) descriptor: Span,
    /// Payload and masks.
    pub(crate) region: Span,
    /// The payload alone.
    pub(crate) payload: Span,
}

impl Place {
    /// Finds the parts of a frame whose descriptor is `descriptor_len` bytes long when it stands first.
    fn of(frame: &Frame, descriptor_len: u64) -> Self {
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

/// Reads the descriptor of an object frame from the bytes that hold it: everything from `cbor_offset` to the tail.
pub(crate) fn read_descriptor(
    message: u64,
    frame: &Frame,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(DataObjectDescriptor, Place), Fault> {
    let region = Region { message, part: Part::Descriptor { object: frame.object } };
    let start = frame.span.start().saturating_add(frame.cbor_offset);
    let span = Span::at(start, bytes.len() as u64).unwrap_or(Span::empty(start));
    let (value, used) =
        crate::cbor::decode(bytes, &budget(options)).map_err(|error| Fault::Cbor { region, span, error })?;
    let mut place = Place::of(frame, used as u64);
    let wrong = |error| Fault::Metadata { region, span: place.descriptor, error };
    let descriptor = DataObjectDescriptor::from_value(value).map_err(wrong)?;
    let len = descriptor.payload_len_in(place.region.len()).map_err(wrong)?;
    place.payload = Span::at(place.region.start(), len).unwrap_or(place.region);
    Ok((descriptor, place))
}

/// The payload in the order of its elements, without what this build cannot decode.
pub(crate) fn refuse_undecodable(region: Region, descriptor: &DataObjectDescriptor) -> Result<(), Fault> {
    let stages = [
        ("encoding", &descriptor.encoding),
        ("filter", &descriptor.filter),
        ("compression", &descriptor.compression),
    ];
    for (stage, name) in stages {
        if name != "none" {
            return Err(Fault::Undecodable { region, stage, name: name.as_str().into() });
        }
    }
    if !descriptor.is_plain() {
        return Err(Fault::Undecodable { region, stage: "masks", name: "present".into() });
    }
    Ok(())
}

/// Bytes that the decoded array has, checked against its payload.
pub(crate) fn decoded_len(
    region: Region,
    descriptor: &DataObjectDescriptor,
    payload: Span,
) -> Result<u64, Fault> {
    let expected = descriptor.elements().and_then(|elements| descriptor.dtype.payload_len(elements));
    let (found, expected) = (payload.len(), expected.unwrap_or(u64::MAX));
    if found == expected {
        return Ok(found);
    }
    Err(Fault::PayloadLength { region, span: payload, found, expected })
}

/// Whether more bytes could mend it.
fn is_cut(error: &CborError) -> bool {
    matches!(error.why, CborWhy::Truncated { .. })
}

/// Compares the hash of an object frame with its bytes, piece by piece. A frame without a hash passes.
pub(crate) fn verify_frame(source: &dyn ByteSource, message: u64, frame: &Frame) -> Result<(), Fault> {
    let Some(expected) = frame.hash() else { return Ok(()) };
    let mut hash = Xxh3::new();
    hash_span(source, frame.body(), &mut hash)?;
    compare(message, frame, expected, hash.digest())
}

fn hash_span(source: &dyn ByteSource, span: Span, hash: &mut Xxh3) -> Result<(), Fault> {
    if source.is_zero_copy() {
        hash.update(&source.read_at(span)?);
        return Ok(());
    }
    let mut piece = vec![0; PIECE.min(span.len_usize().unwrap_or(PIECE))];
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
        message: u64,
        frame: Frame,
    ) -> Result<Self, Fault> {
        let from = frame.cbor_offset.max(FRAME_HEADER_LEN);
        let start = frame.span.start().saturating_add(from);
        let all = Span::between(start, frame.body().end()).unwrap_or(Span::empty(start));
        let after = frame.header.flags.contains(FrameFlags::DESCRIPTOR_AFTER);
        let (descriptor, place) = if after || source.is_zero_copy() {
            within("a descriptor", if after { all.len() } else { 0 }, options.limits.metadata_bytes)?;
            read_descriptor(message, &frame, &source.read_at(all)?, options)?
        } else {
            Self::descriptor_first(source, options, message, &frame, all)?
        };
        Ok(Self { source, options, message, frame, place, descriptor })
    }

    /// Reads a descriptor that stands before its payload, whose length only its own bytes tell.
    fn descriptor_first(
        source: &dyn ByteSource,
        options: &ReadOptions,
        message: u64,
        frame: &Frame,
        all: Span,
    ) -> Result<(DataObjectDescriptor, Place), Fault> {
        let mut len = all.len().min(PIECE as u64);
        loop {
            let bytes = source.read_at(all.slice(0, len).unwrap_or(all))?;
            match read_descriptor(message, frame, &bytes, options) {
                Err(Fault::Cbor { error, .. }) if is_cut(&error) && len < all.len() => {
                    len = len.saturating_mul(8).min(all.len());
                    within("a descriptor", len, options.limits.metadata_bytes)?;
                }
                read => return read,
            }
        }
    }

    /// The number of the object in its message, from 0.
    pub fn index(&self) -> u64 {
        self.frame.object.into()
    }

    /// What it is. The hash of the object covers these bytes too, but is compared only when the payload is read.
    pub fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// Its frame.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Where its payload is in the file, without masks.
    pub fn payload_span(&self) -> Span {
        self.place.payload
    }

    /// Where its masks are in the file: everything between the payload and the end of its region.
    pub fn masks_span(&self) -> Span {
        let end = self.place.region.end();
        Span::between(self.place.payload.end(), end).unwrap_or(Span::empty(end))
    }

    /// Where its descriptor is in the file.
    pub fn descriptor_span(&self) -> Span {
        self.place.descriptor
    }

    /// Compares its hash with its bytes. An object without a hash passes.
    pub fn verify(&self) -> Result<(), Error> {
        verify_frame(self.source, self.message, &self.frame).map_err(|fault| self.error(fault))
    }

    /// Its payload as it is stored, without masks.
    pub fn payload(&self) -> Result<Bytes, Error> {
        self.part(self.place.payload)
    }

    /// Its payload as it is stored, with its masks.
    pub fn stored(&self) -> Result<Bytes, Error> {
        self.part(self.place.region)
    }

    /// A part of the body, once the whole of it is checked.
    fn part(&self, part: Span) -> Result<Bytes, Error> {
        let read = || {
            let body = self.frame.body();
            within("the payload", body.len(), self.options.limits.array_bytes)?;
            let bytes = self.source.read_at(body)?;
            if self.options.verify {
                check_hash(self.message, &self.frame, &bytes)?;
            }
            let start = usize::try_from(part.start() - body.start()).unwrap_or(usize::MAX);
            let len = part.len_usize().unwrap_or(usize::MAX);
            Ok(bytes.slice(start..start + len))
        };
        read().map_err(|fault| self.error(fault))
    }

    /// Bytes of the decoded array.
    pub fn decoded_len(&self) -> Result<u64, Error> {
        let region = self.frame.region(self.message);
        refuse_undecodable(region, &self.descriptor)
            .and_then(|()| decoded_len(region, &self.descriptor, self.place.payload))
            .map_err(|fault| self.error(fault))
    }

    /// The array.
    pub fn decode(&self) -> Result<Array, Error> {
        let len = self.decoded_len()?;
        let fill = || {
            let len = within("the array", len, self.options.limits.array_bytes)?;
            let mut bytes = Buffer::zeroed(len)?;
            self.fill(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = fill().map_err(|fault: Fault| self.error(fault))?;
        Ok(Array::new(self.descriptor.dtype, Shape::new(self.descriptor.shape.clone()), bytes))
    }

    /// Decodes the array into a buffer of exactly its size, little-endian.
    ///
    /// What is in the buffer after an error is not to be used.
    pub fn decode_into(&self, out: &mut [u8]) -> Result<(), Error> {
        let expected = self.decoded_len()?;
        if expected != out.len() as u64 {
            return Err(self.error(Fault::BufferSize { expected, found: out.len() as u64 }));
        }
        self.fill(out).map_err(|fault| self.error(fault))
    }

    fn fill(&self, out: &mut [u8]) -> Result<(), Fault> {
        match self.frame.hash().filter(|_| self.options.verify) {
            Some(expected) => self.fill_checked(out, expected)?,
            None => self.source.read_into(self.place.payload.start(), out)?,
        }
        if self.descriptor.stored_order() == ByteOrder::Big {
            swap_in_place(out, self.descriptor.dtype.swap_unit());
        }
        Ok(())
    }

    /// Copies and hashes piece by piece, so that memory is passed over once.
    fn fill_checked(&self, out: &mut [u8], expected: u64) -> Result<(), Fault> {
        let body = self.frame.body();
        let payload = self.place.payload;
        let before = Span::between(body.start(), payload.start()).unwrap_or(Span::empty(body.start()));
        let after = Span::between(payload.end(), body.end()).unwrap_or(Span::empty(body.end()));
        let mut hash = Xxh3::new();
        hash_span(self.source, before, &mut hash)?;
        let mapped = if self.source.is_zero_copy() { Some(self.source.read_at(payload)?) } else { None };
        let mut at = 0;
        for piece in out.chunks_mut(PIECE) {
            match &mapped {
                Some(bytes) => piece.copy_from_slice(&bytes[at..at + piece.len()]),
                None => self.source.read_into(payload.start() + at as u64, piece)?,
            }
            hash.update(piece);
            at += piece.len();
        }
        hash_span(self.source, after, &mut hash)?;
        compare(self.message, &self.frame, expected, hash.digest())
    }

    fn error(&self, fault: Fault) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}

/// An object that came by in a stream, with its bytes.
#[derive(Clone, Debug)]
pub struct StreamedObject {
    pub(crate) message: u64,
    pub(crate) frame: Frame,
    pub(crate) descriptor: DataObjectDescriptor,
    pub(crate) payload: Bytes,
    pub(crate) payload_span: Span,
}

impl StreamedObject {
    /// Understands the body of an object frame.
    pub(crate) fn parse(
        message: u64,
        frame: Frame,
        body: &Bytes,
        options: &ReadOptions,
    ) -> Result<Self, Fault> {
        let inside = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(body.len());
        let from = inside(frame.cbor_offset.saturating_sub(FRAME_HEADER_LEN));
        let (descriptor, place) = read_descriptor(message, &frame, &body[from..], options)?;
        let offset = |position: u64| inside(position.saturating_sub(frame.body().start()));
        let payload = body.slice(offset(place.payload.start())..offset(place.payload.end()));
        Ok(Self { message, frame, descriptor, payload, payload_span: place.payload })
    }

    /// The number of the object in its message, from 0.
    pub fn index(&self) -> u64 {
        self.frame.object.into()
    }

    /// What it is.
    pub fn descriptor(&self) -> &DataObjectDescriptor {
        &self.descriptor
    }

    /// Its payload as it is stored, without masks.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The array.
    pub fn decode(&self) -> Result<Array, Fault> {
        let region = self.frame.region(self.message);
        refuse_undecodable(region, &self.descriptor)?;
        decoded_len(region, &self.descriptor, self.payload_span)?;
        let mut bytes = Buffer::zeroed(self.payload.len())?;
        bytes.copy_from_slice(&self.payload);
        if self.descriptor.stored_order() == ByteOrder::Big {
            swap_in_place(&mut bytes, self.descriptor.dtype.swap_unit());
        }
        Ok(Array::new(self.descriptor.dtype, Shape::new(self.descriptor.shape.clone()), bytes))
    }
}
