//! Magic bytes, frame types and flags.

use std::fmt;

use serde::Serialize;

/// The first bytes of a message.
pub const MAGIC: &[u8; 8] = b"TENSOGRM";
/// The last bytes of a message.
pub const END_MAGIC: &[u8; 8] = b"39277777";
/// The first bytes of a frame.
pub(crate) const FRAME_MAGIC: &[u8; 2] = b"FR";
/// The last bytes of a frame.
pub(crate) const FRAME_END: &[u8; 4] = b"ENDF";
/// The supported format version.
pub const VERSION: u16 = 3;
/// The frame version that writers set; readers ignore it.
pub(crate) const FRAME_VERSION: u16 = 1;

/// The length of a preamble.
pub(crate) const PREAMBLE_LEN: u64 = 24;
/// The length of a postamble.
pub(crate) const POSTAMBLE_LEN: u64 = 24;
/// The minimum length of a message.
pub(crate) const MIN_MESSAGE: u64 = 48;
/// The length of a frame header.
pub(crate) const FRAME_HEADER_LEN: u64 = 16;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FrameKind {
    /// Metadata before the objects.
    HeaderMetadata,
    /// The index, before the objects.
    HeaderIndex,
    /// The hash list, before the objects.
    HeaderHash,
    /// The hash list, after the objects.
    FooterHash,
    /// The index, after the objects.
    FooterIndex,
    /// Metadata after the objects.
    FooterMetadata,
    /// Metadata of the next object.
    PrecederMetadata,
    /// A data object.
    #[serde(rename = "ntensor")]
    NTensor,
}

impl FrameKind {
    /// Every type.
    pub const ALL: [Self; 8] = [
        Self::HeaderMetadata,
        Self::HeaderIndex,
        Self::HeaderHash,
        Self::FooterHash,
        Self::FooterIndex,
        Self::FooterMetadata,
        Self::PrecederMetadata,
        Self::NTensor,
    ];

    /// The type number. 4 is reserved.
    pub const fn code(self) -> u16 {
        match self {
            Self::HeaderMetadata => 1,
            Self::HeaderIndex => 2,
            Self::HeaderHash => 3,
            Self::FooterHash => 5,
            Self::FooterIndex => 6,
            Self::FooterMetadata => 7,
            Self::PrecederMetadata => 8,
            Self::NTensor => 9,
        }
    }

    /// The type with this number.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The length of the tail.
    pub(crate) const fn tail_len(self) -> u64 {
        match self {
            Self::NTensor => 20,
            _ => 12,
        }
    }

    /// The preamble flag that announces frames of this type. Data objects have none.
    pub(crate) const fn flag(self) -> Option<MessageFlags> {
        match self {
            Self::HeaderMetadata => Some(MessageFlags::HEADER_METADATA),
            Self::HeaderIndex => Some(MessageFlags::HEADER_INDEX),
            Self::HeaderHash => Some(MessageFlags::HEADER_HASHES),
            Self::FooterHash => Some(MessageFlags::FOOTER_HASHES),
            Self::FooterIndex => Some(MessageFlags::FOOTER_INDEX),
            Self::FooterMetadata => Some(MessageFlags::FOOTER_METADATA),
            Self::PrecederMetadata => Some(MessageFlags::PRECEDER_METADATA),
            Self::NTensor => None,
        }
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeaderMetadata => "header_metadata",
            Self::HeaderIndex => "header_index",
            Self::HeaderHash => "header_hash",
            Self::FooterHash => "footer_hash",
            Self::FooterIndex => "footer_index",
            Self::FooterMetadata => "footer_metadata",
            Self::PrecederMetadata => "preceder_metadata",
            Self::NTensor => "ntensor",
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The flags of a preamble.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MessageFlags(pub u16);

impl MessageFlags {
    /// A metadata frame is before the objects.
    pub const HEADER_METADATA: Self = Self(0x0001);
    /// A metadata frame is after the objects.
    pub const FOOTER_METADATA: Self = Self(0x0002);
    /// An index is before the objects.
    pub const HEADER_INDEX: Self = Self(0x0004);
    /// An index is after the objects.
    pub const FOOTER_INDEX: Self = Self(0x0008);
    /// A hash list is before the objects.
    pub const HEADER_HASHES: Self = Self(0x0010);
    /// A hash list is after the objects.
    pub const FOOTER_HASHES: Self = Self(0x0020);
    /// Objects may have preceders.
    pub const PRECEDER_METADATA: Self = Self(0x0040);
    /// Every frame has a hash.
    pub const HASHES_PRESENT: Self = Self(0x0080);

    /// Every flag with its name, lowest bit first.
    pub const NAMED: [(Self, &'static str); 8] = [
        (Self::HEADER_METADATA, "HEADER_METADATA"),
        (Self::FOOTER_METADATA, "FOOTER_METADATA"),
        (Self::HEADER_INDEX, "HEADER_INDEX"),
        (Self::FOOTER_INDEX, "FOOTER_INDEX"),
        (Self::HEADER_HASHES, "HEADER_HASHES"),
        (Self::FOOTER_HASHES, "FOOTER_HASHES"),
        (Self::PRECEDER_METADATA, "PRECEDER_METADATA"),
        (Self::HASHES_PRESENT, "HASHES_PRESENT"),
    ];

    /// Whether all of these flags are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The union of both flags.
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

impl fmt::Display for MessageFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

impl fmt::Debug for MessageFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageFlags({self})")
    }
}

/// The flags of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameFlags(pub u16);

impl FrameFlags {
    /// The descriptor is after the payload. Data objects only.
    pub const DESCRIPTOR_AFTER: Self = Self(0x0001);
    /// The frame has a hash of its body.
    pub const HASH_PRESENT: Self = Self(0x0002);

    /// Whether all of these flags are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The union of both flags.
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

impl fmt::Display for FrameFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_types_are_one_to_one() {
        for kind in FrameKind::ALL {
            assert_eq!(FrameKind::from_code(kind.code()), Some(kind));
        }
        for code in [0, 4, 10, u16::MAX] {
            assert_eq!(FrameKind::from_code(code), None);
        }
    }
}
