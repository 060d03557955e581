//! Frame headers and tails.

use tercet_core::{FieldReader, Malformed, Reason};

use super::ids::{FRAME_END, FRAME_HEADER_LEN, FRAME_MAGIC, FRAME_VERSION, FrameFlags, FrameKind};
use crate::region::{Part, Region};

/// The first 16 bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The type number.
    pub code: u16,
    /// The version of the frame. Writers set 1, readers ignore it.
    pub version: u16,
    /// The flags.
    pub flags: FrameFlags,
    /// The length of the frame, with header and tail, without padding.
    pub total_length: u64,
}

impl FrameHeader {
    /// A header with the version that writers set.
    pub(crate) fn new(kind: FrameKind, flags: FrameFlags, total_length: u64) -> Self {
        Self { code: kind.code(), version: FRAME_VERSION, flags, total_length }
    }

    /// Parses a header at offset `at` of the file.
    pub(crate) fn parse(region: Region, at: u64, bytes: &[u8]) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(region, at, bytes);
        fields.magic("magic", FRAME_MAGIC)?;
        let code = fields.u16_be("type")?;
        let version = fields.u16_be("version")?;
        let flags = FrameFlags(fields.u16_be("flags")?);
        let total_length = fields.u64_be("total_length")?;
        let tail = FrameKind::from_code(code).map_or(12, FrameKind::tail_len);
        if total_length < FRAME_HEADER_LEN.saturating_add(tail) {
            let allowed = if tail == 20 { "at least 36" } else { "at least 28" };
            return Err(fields.fault("total_length", 8, Reason::OutOfRange { found: total_length, allowed }));
        }
        Ok(Self { code, version, flags, total_length })
    }

    /// The type, if it is known.
    pub fn kind(&self) -> Option<FrameKind> {
        FrameKind::from_code(self.code)
    }

    /// The length of the tail.
    pub(crate) fn tail_len(&self) -> u64 {
        self.kind().map_or(12, FrameKind::tail_len)
    }

    /// The encoded header.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        let fields: [&[u8]; 5] = [
            FRAME_MAGIC,
            &self.code.to_be_bytes(),
            &self.version.to_be_bytes(),
            &self.flags.0.to_be_bytes(),
            &self.total_length.to_be_bytes(),
        ];
        for (to, from) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        out
    }
}

/// The last bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameTail {
    /// The offset of the descriptor from the start of the frame. Data objects only.
    pub(crate) cbor_offset: Option<u64>,
    /// The hash slot.
    pub(crate) hash: u64,
}

impl FrameTail {
    /// Parses the tail of a frame: the last [`FrameHeader::tail_len`] bytes, at offset `at`.
    pub(crate) fn parse(
        region: Region,
        header: &FrameHeader,
        at: u64,
        bytes: &[u8],
    ) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(region, at, bytes);
        let mut cbor_offset = None;
        if header.kind() == Some(FrameKind::NTensor) {
            let offset = fields.u64_be("cbor_offset")?;
            let end = header.total_length.saturating_sub(header.tail_len());
            if offset < FRAME_HEADER_LEN || offset > end {
                let reason = Reason::OutOfRange { found: offset, allowed: "inside the body of its frame" };
                return Err(fields.fault("cbor_offset", 8, reason));
            }
            cbor_offset = Some(offset);
        }
        let hash = fields.u64_be("hash")?;
        fields.magic("end_marker", FRAME_END)?;
        Ok(Self { cbor_offset, hash })
    }

    /// The encoded tail: 12 bytes, or 20 with an offset.
    pub(crate) fn to_bytes(self) -> impl Iterator<Item = u8> {
        let offset = self.cbor_offset.map(u64::to_be_bytes);
        offset.into_iter().flatten().chain(self.hash.to_be_bytes()).chain(*FRAME_END)
    }
}

/// A frame of a message: header, tail and byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The position among the frames of the message, from 0.
    pub index: u32,
    /// The type.
    pub kind: FrameKind,
    /// The header.
    pub header: FrameHeader,
    /// The byte range in the file or buffer, without padding.
    pub span: tercet_core::Span,
    /// The hash slot.
    pub hash_slot: u64,
    /// The offset of the descriptor from the start of the frame. 0 for all but data objects.
    pub cbor_offset: u64,
    /// The number of the data object; for a preceder, of the next object; else 0.
    pub object: u32,
}

impl Frame {
    /// The hash of the body, if the frame has one.
    pub fn hash(&self) -> Option<u64> {
        self.header.flags.contains(FrameFlags::HASH_PRESENT).then_some(self.hash_slot)
    }

    /// The bytes that the hash covers: from header to tail.
    pub fn body(&self) -> tercet_core::Span {
        let end = self.span.end().saturating_sub(self.kind.tail_len());
        let start = self.span.start().saturating_add(FRAME_HEADER_LEN).min(end);
        tercet_core::Span::between(start, end).unwrap_or(tercet_core::Span::empty(start))
    }

    /// The region in error messages.
    pub(crate) fn region(&self, message: u64) -> Region {
        let part = match self.kind {
            FrameKind::NTensor => Part::Object { object: self.object },
            kind => Part::Typed { index: self.index, kind },
        };
        Region { message, part }
    }
}
