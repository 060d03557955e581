//! Encoding of complete messages.

#[cfg(any(unix, windows))]
use std::borrow::Cow;
#[cfg(any(unix, windows))]
use std::sync::Arc;

#[cfg(any(unix, windows))]
use rayon::prelude::*;
use tercet_core::checksum::{Xxh3, xxh3};
use tercet_core::threads::install;

use super::error::EncodeError;
use super::index::{build_index_frame, compute_object_offsets, padded_len};
use super::input::{EncodedObject, ObjectParts, PreEncoded, check_metadata};
#[cfg(any(unix, windows))]
use super::input::{ObjectValues, Streamed};
use super::options::EncodeOptions;
use crate::consistency::ALGORITHM;
use crate::descriptor::DataObjectDescriptor;
use crate::error::{Error, ErrorKind};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::metadata::{Entry, GlobalMetadata};
use crate::wire::align8;
use crate::wire::frame::{FrameHeader, FrameTail};
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags, FrameKind, MessageFlags, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;

/// The number of bytes copied and hashed at a time, while they are in the cache.
const PIECE: usize = 64 << 10;

/// The location of a new message in errors.
pub(crate) const NAME: &str = "new message";

/// Encodes a message. Values are in the byte order of their descriptors, by default little-endian.
pub fn encode_message(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    encode_message_into(metadata, objects, options, &mut out)?;
    Ok(out)
}

/// Appends an encoded message to a buffer, which can be reused.
pub fn encode_message_into(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let make = || assemble(metadata, EncodedObject::all(objects, options)?, options, out);
    install(options.threads, make).map_err(|error| Error::new(NAME.into(), ErrorKind::from(error)))
}

/// Writes an encoded message to a sink, without a copy of its payloads, and returns its metadata. Nothing is written if
/// the message cannot be encoded. `name` is that of the output in errors.
#[cfg(any(unix, windows))]
pub(crate) fn encode_message_to(
    name: &Arc<str>,
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, ObjectValues<'_>)],
    options: &EncodeOptions,
    mut write: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<GlobalMetadata, Error> {
    let failed = |error: EncodeError| Error::new(Arc::clone(name), error.into());
    let make = || {
        let mut objects = EncodedObject::all_from(name, objects, options)?;
        let streams: Vec<_> = objects.iter_mut().map(|object| object.streamed.take()).collect();
        let (metadata, parts) = parts_of(metadata, objects, options).map_err(failed)?;
        Ok::<_, Error>((metadata, parts, streams))
    };
    let (metadata, parts, streams) = install(options.threads, make)?;
    let mut write = |piece: &[u8]| write(piece).map_err(|error| Error::new(Arc::clone(name), error.into()));
    for piece in install(options.threads, || pieces(&parts, &streams)).map_err(failed)? {
        match piece {
            Piece::Bytes(bytes) => write(&bytes)?,
            Piece::Streamed(streamed) => streamed.copy(&mut write)?,
        }
    }
    Ok(metadata)
}

/// A part of a message.
#[cfg(any(unix, windows))]
enum Piece<'p> {
    Bytes(Cow<'p, [u8]>),
    Streamed(&'p Streamed<'p>),
}

/// Encodes a message of payloads that are already encoded.
pub fn encode_pre_encoded(
    metadata: &GlobalMetadata,
    objects: &[PreEncoded<'_>],
    options: &EncodeOptions,
) -> Result<Vec<u8>, Error> {
    let make = || {
        let ready =
            objects.iter().zip(0..).map(|(o, i)| EncodedObject::pre_encoded(i, o.descriptor, o.payload));
        let ready = ready.collect::<Result<Vec<_>, EncodeError>>()?;
        let mut out = Vec::new();
        assemble(metadata, ready, options, &mut out)?;
        Ok(out)
    };
    make().map_err(|error: EncodeError| Error::new(NAME.into(), ErrorKind::from(error)))
}

/// The CBOR of a hash frame.
pub(crate) fn build_hash_frame_cbor(hashes: &[u64]) -> Vec<u8> {
    let hashes = hashes.iter().map(|hash| format!("{hash:016x}")).collect();
    HashFrame { algorithm: ALGORITHM.to_owned(), hashes }.to_cbor()
}

/// The preamble flags of a message with these frames.
pub fn compute_message_flags(kinds: impl IntoIterator<Item = FrameKind>, hashed: bool) -> MessageFlags {
    let start = if hashed { MessageFlags::HASHES_PRESENT } else { MessageFlags::default() };
    kinds.into_iter().filter_map(FrameKind::flag).fold(start, MessageFlags::with)
}

/// The parts of a message to be assembled.
#[derive(Clone, Debug)]
pub struct MessageParts<'a> {
    /// The metadata as CBOR.
    pub metadata: Vec<u8>,
    /// The objects.
    pub objects: Vec<ObjectParts<'a>>,
    /// Whether an index is before and after the objects.
    pub index: (bool, bool),
    /// Whether a hash list is before and after the objects.
    pub hashes: (bool, bool),
    /// Whether every frame has a hash.
    pub hash: bool,
}

fn assemble(
    metadata: &GlobalMetadata,
    objects: Vec<EncodedObject<'_>>,
    options: &EncodeOptions,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    assemble_message(&parts_of(metadata, objects, options)?.1, out)
}

/// The complete metadata, and the parts of the message.
fn parts_of<'a>(
    metadata: &GlobalMetadata,
    objects: Vec<EncodedObject<'a>>,
    options: &EncodeOptions,
) -> Result<(GlobalMetadata, MessageParts<'a>), EncodeError> {
    check_metadata(metadata)?;
    if metadata.base.len() > objects.len() {
        let (entries, objects) = (metadata.base.len() as u64, objects.len() as u64);
        return Err(EncodeError::TooManyEntries { entries, objects });
    }
    let mut metadata = metadata.clone();
    metadata.base.resize_with(objects.len(), Entry::new);
    for ((entry, object), number) in metadata.base.iter_mut().zip(&objects).zip(0..) {
        object.enrich(number, entry)?;
    }
    metadata.reserved = options.provenance.section();
    let none = (false, false);
    let parts = MessageParts {
        metadata: metadata.to_cbor(),
        index: if objects.is_empty() { none } else { options.index.in_one_piece() },
        hashes: if objects.is_empty() || !options.hash { none } else { options.hashes.in_one_piece() },
        hash: options.hash,
        objects: objects.into_iter().map(|object| object.parts).collect(),
    };
    Ok((metadata, parts))
}

/// The message of [`assemble_message`] in pieces; payloads are borrowed or streamed. They are hashed first, because the hash
/// list may be before them.
#[cfg(any(unix, windows))]
fn pieces<'p>(
    parts: &'p MessageParts<'_>,
    streams: &'p [Option<Streamed<'_>>],
) -> Result<Vec<Piece<'p>>, EncodeError> {
    let objects: Vec<(&ObjectParts<'_>, Option<&Streamed<'_>>)> =
        parts.objects.iter().zip(streams.iter().map(Option::as_ref)).collect();
    let size = |(object, streamed): (&ObjectParts<'_>, Option<&Streamed<'_>>)| ObjectSize {
        payload: streamed.map_or(object.payload.len() as u64, |streamed| streamed.span.len()),
        cbor: object.cbor.len() as u64,
    };
    let hash = |(object, streamed): &(&ObjectParts<'_>, Option<&Streamed<'_>>)| {
        if !parts.hash {
            return 0;
        }
        let mut hash = streamed.and_then(|streamed| streamed.hash.clone()).unwrap_or_else(Xxh3::new);
        hash.update(&object.payload);
        hash.update(&object.cbor);
        hash.digest()
    };
    let hashes: Vec<u64> = objects.par_iter().map(hash).collect();
    let sizes: Vec<ObjectSize> = objects.iter().map(|object| size(*object)).collect();
    // The message without its payloads, which follow the headers of their frames.
    let (before, offsets, lengths) = before_objects(parts, &sizes, &hashes)?;
    let mut position = before.len() as u64;
    let mut pieces = Vec::with_capacity(2 * parts.objects.len() + 1);
    let mut current = before;
    for (((object, streamed), size), hash) in objects.into_iter().zip(sizes).zip(&hashes) {
        let len = size.frame_len().ok_or(EncodeError::TooLarge)?;
        let end = position.checked_add(len).and_then(align8).ok_or(EncodeError::TooLarge)?;
        current.extend(size.header(parts.hash).to_bytes());
        pieces.push(Piece::Bytes(Cow::Owned(std::mem::take(&mut current))));
        pieces.push(match streamed {
            Some(streamed) => Piece::Streamed(streamed),
            None => Piece::Bytes(Cow::Borrowed(&*object.payload)),
        });
        current.extend_from_slice(&object.cbor);
        current.extend(size.tail(*hash).to_bytes());
        let padding = end - position - len;
        current.extend(std::iter::repeat_n(0, usize::try_from(padding).unwrap_or_default()));
        position = end;
    }
    let first_footer_offset = position;
    let mut footer = Vec::new();
    if parts.hashes.1 {
        put_frame(&mut footer, 0, FrameKind::FooterHash, &build_hash_frame_cbor(&hashes), parts.hash);
    }
    if parts.index.1 {
        let index = IndexFrame { offsets, lengths };
        put_frame(&mut footer, 0, FrameKind::FooterIndex, &index.to_cbor(), parts.hash);
    }
    let total_length = position + footer.len() as u64 + POSTAMBLE_LEN;
    footer.extend(Postamble { first_footer_offset, total_length }.to_bytes());
    current.extend(footer);
    pieces.push(Piece::Bytes(Cow::Owned(current)));
    if let Some(Piece::Bytes(first)) = pieces.first_mut() {
        first.to_mut()[16..24].copy_from_slice(&total_length.to_be_bytes());
    }
    Ok(pieces)
}

/// The lengths of payload and descriptor of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectSize {
    pub(super) payload: u64,
    pub(super) cbor: u64,
}

impl ObjectSize {
    fn new(object: &ObjectParts<'_>) -> Self {
        Self { payload: object.payload.len() as u64, cbor: object.cbor.len() as u64 }
    }

    /// The length of the frame, without padding.
    pub(super) fn frame_len(self) -> Option<u64> {
        let body = self.payload.checked_add(self.cbor)?;
        body.checked_add(FRAME_HEADER_LEN + FrameKind::NTensor.tail_len())
    }

    /// The header of the frame. Its length must be valid.
    pub(super) fn header(self, hashed: bool) -> FrameHeader {
        let flags = FrameFlags::DESCRIPTOR_AFTER;
        let flags = if hashed { flags.with(FrameFlags::HASH_PRESENT) } else { flags };
        FrameHeader::new(FrameKind::NTensor, flags, self.frame_len().unwrap_or(u64::MAX))
    }

    /// The tail of the frame.
    pub(super) fn tail(self, hash: u64) -> FrameTail {
        FrameTail { cbor_offset: Some(FRAME_HEADER_LEN.saturating_add(self.payload)), hash }
    }
}

/// Appends preamble, frames and postamble to a buffer.
///
/// The layout is computed before the first byte is written, so hashes are computed while payloads are copied; the hash
/// list before the objects is filled in at the end.
pub(crate) fn assemble_message(parts: &MessageParts<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let base = out.len();
    let blank = vec![0; parts.objects.len()];
    let sizes: Vec<ObjectSize> = parts.objects.iter().map(ObjectSize::new).collect();
    let (head, offsets, lengths) = before_objects(parts, &sizes, &blank)?;
    reserve(parts, &offsets, &lengths, head.len(), out)?;
    out.extend_from_slice(&head);
    let hashes: Vec<u64> =
        parts.objects.iter().map(|object| put_object(out, base, object, parts.hash)).collect();
    let list = build_hash_frame_cbor(&hashes);
    if parts.hashes.0 {
        // The last frame before the objects.
        let mut frame = Vec::new();
        put_frame(&mut frame, 0, FrameKind::HeaderHash, &list, parts.hash);
        let at = base + head.len() - frame.len();
        out[at..at + frame.len()].copy_from_slice(&frame);
    }
    let first_footer = (out.len() - base) as u64;
    if parts.hashes.1 {
        put_frame(out, base, FrameKind::FooterHash, &list, parts.hash);
    }
    if parts.index.1 {
        let index = IndexFrame { offsets, lengths };
        put_frame(out, base, FrameKind::FooterIndex, &index.to_cbor(), parts.hash);
    }
    end(out, base, first_footer);
    Ok(())
}

/// The bytes before the objects, and the offsets and lengths of the objects.
type BeforeObjects = (Vec<u8>, Vec<u64>, Vec<u64>);

/// The bytes before the objects, without the length of the message, and the offsets and lengths of the objects.
fn before_objects(
    parts: &MessageParts<'_>,
    sizes: &[ObjectSize],
    hashes: &[u64],
) -> Result<BeforeObjects, EncodeError> {
    let lengths = sizes.iter().map(|size| size.frame_len()).collect::<Option<Vec<_>>>();
    let lengths = lengths.ok_or(EncodeError::TooLarge)?;
    // The length of the hash list does not depend on the hashes.
    let list = build_hash_frame_cbor(hashes);
    let header_hashes = if parts.hashes.0 { padded(&list)? } else { 0 };
    let before = PREAMBLE_LEN + padded(&parts.metadata)?;
    let (index, offsets) = if parts.index.0 {
        build_index_frame(before, header_hashes, &lengths)?
    } else {
        let start = before.checked_add(header_hashes);
        let offsets = start.and_then(|start| compute_object_offsets(start, &lengths));
        (Vec::new(), offsets.ok_or(EncodeError::TooLarge)?)
    };
    let kinds = [
        (true, FrameKind::HeaderMetadata),
        (parts.index.0, FrameKind::HeaderIndex),
        (parts.hashes.0, FrameKind::HeaderHash),
        (parts.hashes.1, FrameKind::FooterHash),
        (parts.index.1, FrameKind::FooterIndex),
    ];
    let flags = compute_message_flags(kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind), parts.hash);
    let mut head =
        Vec::with_capacity(usize::try_from(before + header_hashes).unwrap_or(0) + index.len() + 64);
    head.extend(Preamble { flags, reserved: 0, total_length: 0 }.to_bytes());
    put_frame(&mut head, 0, FrameKind::HeaderMetadata, &parts.metadata, parts.hash);
    if parts.index.0 {
        put_frame(&mut head, 0, FrameKind::HeaderIndex, &index, parts.hash);
    }
    if parts.hashes.0 {
        put_frame(&mut head, 0, FrameKind::HeaderHash, &list, parts.hash);
    }
    Ok((head, offsets, lengths))
}

/// Reserves memory for the message.
fn reserve(
    parts: &MessageParts<'_>,
    offsets: &[u64],
    lengths: &[u64],
    head: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let last = offsets.last().zip(lengths.last());
    let end = last.map_or(Some(head as u64), |(at, len)| at.checked_add(*len));
    let footer = POSTAMBLE_LEN + 64 + 96 * (parts.objects.len() as u64 + 1);
    let total = end.and_then(|end| end.checked_add(footer)).and_then(|total| usize::try_from(total).ok());
    let total = total.ok_or(EncodeError::TooLarge)?;
    out.try_reserve_exact(total).map_err(|_| EncodeError::TooLarge)
}

fn padded(body: &[u8]) -> Result<u64, EncodeError> {
    padded_len(body.len() as u64).ok_or(EncodeError::TooLarge)
}

/// Appends a frame around a CBOR body, with its padding.
pub(crate) fn put_frame(out: &mut Vec<u8>, base: usize, kind: FrameKind, body: &[u8], hashed: bool) {
    let flags = if hashed { FrameFlags::HASH_PRESENT } else { FrameFlags::default() };
    let total = FRAME_HEADER_LEN + body.len() as u64 + kind.tail_len();
    out.extend(FrameHeader::new(kind, flags, total).to_bytes());
    out.extend_from_slice(body);
    let hash = if hashed { xxh3(body) } else { 0 };
    out.extend(FrameTail { cbor_offset: None, hash }.to_bytes());
    pad(out, base);
}

/// Appends the frame of an object and returns its hash; 0 if it has none.
fn put_object(out: &mut Vec<u8>, base: usize, object: &ObjectParts<'_>, hashed: bool) -> u64 {
    let size = ObjectSize::new(object);
    out.extend(size.header(hashed).to_bytes());
    let mut hash = Xxh3::new();
    if hashed {
        for piece in object.payload.chunks(PIECE) {
            out.extend_from_slice(piece);
            hash.update(piece);
        }
        hash.update(&object.cbor);
    } else {
        out.extend_from_slice(&object.payload);
    }
    out.extend_from_slice(&object.cbor);
    let hash = if hashed { hash.digest() } else { 0 };
    out.extend(size.tail(hash).to_bytes());
    pad(out, base);
    hash
}

/// Pads the message that starts at `base` to a multiple of 8 bytes.
pub(super) fn pad(out: &mut Vec<u8>, base: usize) {
    let len = (out.len() - base) as u64;
    let padding = align8(len).map_or(0, |next| next - len);
    out.extend(std::iter::repeat_n(0, usize::try_from(padding).unwrap_or_default()));
}

/// Appends the postamble and writes the length into the preamble.
fn end(out: &mut Vec<u8>, base: usize, first_footer_offset: u64) {
    let total_length = (out.len() - base) as u64 + POSTAMBLE_LEN;
    out.extend(Postamble { first_footer_offset, total_length }.to_bytes());
    out[base + 16..base + 24].copy_from_slice(&total_length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Placement;
    use tercet_core::source::Slice;
    use tercet_core::{DType, Span};

    /// All ways of assembly return the same bytes.
    #[test]
    fn pieces_are_the_message() {
        let descriptor = DataObjectDescriptor::new(DType::U8, [5]);
        let places =
            [Placement::Auto, Placement::None, Placement::Header, Placement::Footer, Placement::Both];
        for objects in 0..4 {
            let objects: Vec<(&_, &[u8])> = vec![(&descriptor, &[1, 2, 3, 4, 5]); objects];
            for (index, hashes) in places.into_iter().flat_map(|index| places.map(|hashes| (index, hashes))) {
                for hash in [true, false] {
                    let options = EncodeOptions { hash, hashes, index, ..EncodeOptions::new() }
                        .with_provenance(crate::Provenance::Off);
                    let metadata = GlobalMetadata::default();
                    let expected = encode_message(&metadata, &objects, &options).unwrap();
                    let mut found = Vec::new();
                    let write = |piece: &[u8]| {
                        found.extend_from_slice(piece);
                        Ok(())
                    };
                    let name = NAME.into();
                    let bytes: Vec<_> =
                        objects.iter().map(|(of, values)| (*of, ObjectValues::Bytes(values))).collect();
                    let complete = encode_message_to(&name, &metadata, &bytes, &options, write).unwrap();
                    assert_eq!(found, expected, "{index:?} {hashes:?} {hash}");
                    // The values are in the middle of a file.
                    let file = Slice::new("values", &[0, 1, 2, 3, 4, 5, 0, 0]);
                    let span = Span::at(1, 5).unwrap();
                    let sources: Vec<_> =
                        objects.iter().map(|(of, _)| (*of, ObjectValues::Source(&file, span))).collect();
                    let mut streamed = Vec::new();
                    let write = |piece: &[u8]| {
                        streamed.extend_from_slice(piece);
                        Ok(())
                    };
                    encode_message_to(&name, &metadata, &sources, &options, write).unwrap();
                    assert_eq!(streamed, expected, "{index:?} {hashes:?} {hash}");
                    let read = crate::Message::from_bytes("new", found).unwrap();
                    assert_eq!(read.metadata(), &complete);
                }
            }
        }
    }
}
