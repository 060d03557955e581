//! A message of stored objects, ready to be written.

use std::io::Write;
use std::sync::Arc;

use tercet_core::Progress;

use super::raw_object::RawObject;
use crate::encode::{
    EncodeError, EncodeOptions, build_hash_frame_cbor, build_index_frame, check_metadata,
    compute_message_flags, compute_object_offsets, padded_len, put_frame,
};
use crate::error::Error;
use crate::index_and_hash::IndexFrame;
use crate::metadata::{Entry, GlobalMetadata, RESERVED};
use crate::value::Value;
use crate::wire::align8;
use crate::wire::frame::{FrameHeader, FrameTail};
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags, FrameKind, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;

/// A message with a fixed layout that is not written yet. Its payloads are still in their sources.
#[derive(Clone, Debug)]
pub struct MessageBuilder {
    metadata: GlobalMetadata,
    /// The bytes before the objects.
    head: Vec<u8>,
    objects: Vec<ObjectLayout>,
    /// The bytes after the objects.
    tail: Vec<u8>,
    len: u64,
    is_hashed: bool,
}

/// An object and its frame.
#[derive(Clone, Debug)]
struct ObjectLayout {
    raw: RawObject,
    header: FrameHeader,
    /// The hash, if the message has hashes.
    hash: Option<u64>,
}

impl MessageBuilder {
    /// Lays out a message. `metadata` is that of the user; the library adds its own.
    ///
    /// The message has hashes if `options` request them and every object had one. `name` is the location in errors that do
    /// not concern an object.
    pub(crate) fn new(
        name: &Arc<str>,
        mut metadata: GlobalMetadata,
        objects: Vec<RawObject>,
        options: &EncodeOptions,
    ) -> Result<Self, Error> {
        let named = |error: EncodeError| Error::new(Arc::clone(name), error.into());
        check_metadata(&metadata).map_err(named)?;
        metadata.base.resize_with(objects.len(), Entry::new);
        for (entry, object) in metadata.base.iter_mut().zip(&objects) {
            let section: Entry = [("tensor".to_owned(), object.descriptor().tensor_entry())].into();
            entry.insert(RESERVED.to_owned(), Value::from(section));
        }
        metadata.reserved = options.provenance.section();
        let is_hashed = options.hash && objects.iter().all(RawObject::is_hashed);
        let options = &options.clone().with_hash(is_hashed);
        let objects = objects.into_iter().map(|raw| ObjectLayout::new(name, raw, options.hash));
        Self::lay_out(metadata, objects.collect::<Result<_, _>>()?, options).map_err(named)
    }

    fn lay_out(
        metadata: GlobalMetadata,
        objects: Vec<ObjectLayout>,
        options: &EncodeOptions,
    ) -> Result<Self, EncodeError> {
        let none = (false, false);
        let is_empty = objects.is_empty();
        let index_at = if is_empty { none } else { options.index.in_one_piece() };
        let list_at = if is_empty || !options.hash { none } else { options.hashes.in_one_piece() };
        let too_large = || EncodeError::TooLarge;
        let padded = |body: &[u8]| padded_len(body.len() as u64).ok_or_else(too_large);
        let body = metadata.to_cbor();
        let hashes: Vec<u64> = objects.iter().filter_map(|object| object.hash).collect();
        let list = build_hash_frame_cbor(&hashes);
        let lengths: Vec<u64> = objects.iter().map(|object| object.header.total_length).collect();
        let before = PREAMBLE_LEN + padded(&body)?;
        let between = if list_at.0 { padded(&list)? } else { 0 };
        let (index, offsets) = if index_at.0 {
            build_index_frame(before, between, &lengths)?
        } else {
            let start = before.checked_add(between).ok_or_else(too_large)?;
            (Vec::new(), compute_object_offsets(start, &lengths).ok_or_else(too_large)?)
        };
        let kinds = [
            (true, FrameKind::HeaderMetadata),
            (index_at.0, FrameKind::HeaderIndex),
            (list_at.0, FrameKind::HeaderHash),
            (list_at.1, FrameKind::FooterHash),
            (index_at.1, FrameKind::FooterIndex),
        ];
        let there = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind);
        let flags = compute_message_flags(there, options.hash);
        let mut head: Vec<u8> = vec![0; Preamble { flags, reserved: 0, total_length: 0 }.to_bytes().len()];
        put_frame(&mut head, 0, FrameKind::HeaderMetadata, &body, options.hash);
        if index_at.0 {
            put_frame(&mut head, 0, FrameKind::HeaderIndex, &index, options.hash);
        }
        if list_at.0 {
            put_frame(&mut head, 0, FrameKind::HeaderHash, &list, options.hash);
        }
        let end =
            offsets.last().zip(lengths.last()).and_then(|(at, len)| at.checked_add(*len)?.checked_add(7));
        let first_footer_offset = if is_empty { head.len() as u64 } else { end.ok_or_else(too_large)? & !7 };
        let mut tail = Vec::new();
        if list_at.1 {
            put_frame(&mut tail, 0, FrameKind::FooterHash, &list, options.hash);
        }
        if index_at.1 {
            let index = IndexFrame { offsets, lengths };
            put_frame(&mut tail, 0, FrameKind::FooterIndex, &index.to_cbor(), options.hash);
        }
        let total_length = first_footer_offset.checked_add(tail.len() as u64 + POSTAMBLE_LEN);
        let total_length = total_length.filter(|&total| total <= 1 << 63).ok_or_else(too_large)?;
        tail.extend(Postamble { first_footer_offset, total_length }.to_bytes());
        let preamble = Preamble { flags, reserved: 0, total_length }.to_bytes();
        head[..preamble.len()].copy_from_slice(&preamble);
        Ok(Self { metadata, head, objects, tail, len: total_length, is_hashed: options.hash })
    }

    /// The metadata.
    pub fn metadata(&self) -> &GlobalMetadata {
        &self.metadata
    }

    /// Whether the frames have hashes.
    pub fn is_hashed(&self) -> bool {
        self.is_hashed
    }

    /// The number of objects.
    pub fn object_count(&self) -> u64 {
        self.objects.len() as u64
    }

    /// The length of the message in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: a message without objects has bytes too.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes the message. Payloads are read now and compared with the hashes that are written.
    pub fn write_to(&self, sink: &mut dyn Write, progress: &dyn Progress) -> Result<(), Error> {
        self.send(progress, &mut |bytes| {
            sink.write_all(bytes).map_err(|error| Error::new("output".into(), error.into()))
        })
    }

    /// The bytes of the message.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let room = usize::try_from(self.len).ok().filter(|&len| out.try_reserve_exact(len).is_ok());
        if room.is_none() {
            return Err(Error::new("new message".into(), EncodeError::TooLarge.into()));
        }
        self.write_to(&mut out, &tercet_core::progress::NoProgress)?;
        Ok(out)
    }

    /// Passes the bytes of the message to `sink`, in order.
    pub(crate) fn send(
        &self,
        progress: &dyn Progress,
        put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        put(&self.head)?;
        for object in &self.objects {
            put(&object.header.to_bytes())?;
            object.raw.send(object.hash, progress, put)?;
            put(&object.end())?;
        }
        put(&self.tail)
    }
}

impl ObjectLayout {
    fn new(name: &Arc<str>, raw: RawObject, hashed: bool) -> Result<Self, Error> {
        let kind = FrameKind::NTensor;
        let total = raw.body_len().and_then(|body| body.checked_add(FRAME_HEADER_LEN + kind.tail_len()));
        let total = total.ok_or_else(|| Error::new(Arc::clone(name), EncodeError::TooLarge.into()))?;
        let flags = FrameFlags::DESCRIPTOR_AFTER;
        let flags = if hashed { flags.with(FrameFlags::HASH_PRESENT) } else { flags };
        let hash = if hashed { Some(raw.hash()?) } else { None };
        Ok(Self { raw, header: FrameHeader::new(kind, flags, total), hash })
    }

    /// The tail of the frame and its padding.
    fn end(&self) -> Vec<u8> {
        let cbor_offset = Some(FRAME_HEADER_LEN + self.raw.region_len());
        let mut end: Vec<u8> = FrameTail { cbor_offset, hash: self.hash.unwrap_or(0) }.to_bytes().collect();
        let total = self.header.total_length;
        let padding = align8(total).map_or(0, |next| next - total);
        end.extend(std::iter::repeat_n(0, usize::try_from(padding).unwrap_or_default()));
        end
    }
}
