//! IDs of encodings, codecs, record kinds and flags.

use std::fmt;

use serde::{Serialize, Serializer};

/// Encoding of the non-null values of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// Fixed width, or length-prefixed.
    Plain,
    /// Runs of repeated values.
    Rle,
    /// Codes into the value dictionary of the column.
    Dictionary,
    /// Differences from the minimum, bit-packed.
    BitpackFor,
    /// Differences, bit-packed.
    Delta,
    /// Group varint.
    GroupVarint,
    /// Bit-packed, with exceptions (PFOR).
    PforDelta,
    /// FSST codes of the symbol table of the column.
    Fsst,
    /// One bit per value.
    Bitmap,
    /// Unknown ID.
    Unknown(u8),
}

impl Encoding {
    /// The encoding of an ID.
    pub const fn from_id(id: u8) -> Self {
        match id {
            0 => Self::Plain,
            1 => Self::Rle,
            2 => Self::Dictionary,
            3 => Self::BitpackFor,
            4 => Self::Delta,
            5 => Self::GroupVarint,
            6 => Self::PforDelta,
            7 => Self::Fsst,
            8 => Self::Bitmap,
            other => Self::Unknown(other),
        }
    }

    /// Its ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Rle => 1,
            Self::Dictionary => 2,
            Self::BitpackFor => 3,
            Self::Delta => 4,
            Self::GroupVarint => 5,
            Self::PforDelta => 6,
            Self::Fsst => 7,
            Self::Bitmap => 8,
            Self::Unknown(id) => id,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Rle => "rle",
            Self::Dictionary => "dictionary",
            Self::BitpackFor => "bitpack_for",
            Self::Delta => "delta",
            Self::GroupVarint => "groupvarint",
            Self::PforDelta => "pfordelta",
            Self::Fsst => "fsst",
            Self::Bitmap => "bitmap",
            Self::Unknown(id) => return write!(f, "enc({id})"),
        })
    }
}

impl Serialize for Encoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Compression of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Codec {
    /// Uncompressed.
    None,
    /// One raw LZ4 block.
    Lz4,
    /// One Zstandard frame.
    Zstd,
    /// One Zstandard frame with a dictionary.
    ZstdDict,
    /// Unknown ID.
    Unknown(u8),
}

impl Codec {
    /// The codec of an ID without the mark bit.
    pub const fn from_id(id: u8) -> Self {
        match id {
            0 => Self::None,
            1 => Self::Lz4,
            2 => Self::Zstd,
            3 => Self::ZstdDict,
            other => Self::Unknown(other),
        }
    }

    /// Its ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
            Self::ZstdDict => 3,
            Self::Unknown(id) => id,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::ZstdDict => "zstd_dict",
            Self::Unknown(id) => return write!(f, "codec({id})"),
        })
    }
}

impl Serialize for Codec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bit of the codec byte that makes older readers reject pages that they would misread.
pub(crate) const MARK: u8 = 0x80;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page of values.
    Data,
    /// A dictionary.
    Dictionary,
    /// A page index, a bloom filter or a part of the inverted region.
    Index,
    /// A run of blob values.
    Run,
    /// Unknown ID.
    Unknown(u8),
}

impl Kind {
    /// The kind of an ID.
    pub const fn from_id(id: u8) -> Self {
        match id {
            0 => Self::Data,
            1 => Self::Dictionary,
            2 => Self::Index,
            3 => Self::Run,
            other => Self::Unknown(other),
        }
    }

    /// Its ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Dictionary => 1,
            Self::Index => 2,
            Self::Run => 3,
            Self::Unknown(id) => id,
        }
    }
}

/// Flags of a page header.
pub mod page_flags {
    /// Page statistics precede the payload.
    pub const BOUNDS: u8 = 0x01;
    /// The payload starts with a validity bitmap.
    pub const NULLS: u8 = 0x02;
    /// The values are byte-split (transposed).
    pub const SPLIT: u8 = 0x04;
}

/// Flags of the file header, with the names of the format specification.
pub mod file_flags {
    /// `FlagSorted`: the schema has a sort key.
    pub const SORTED: u16 = 0x01;
    /// `FlagHasBlobRegion`: the schema has a BLOBREF column.
    pub const HAS_BLOB_REGION: u16 = 0x02;
    /// `FlagHasDictRegion`: the file has a dictionary.
    pub const HAS_DICT_REGION: u16 = 0x04;
    /// `FlagHasIndexRegion`: the file has a bloom filter or an inverted region.
    pub const HAS_INDEX_REGION: u16 = 0x08;
    /// `FlagRoleSearchSeg`: the file is a search segment.
    pub const ROLE_SEARCH_SEG: u16 = 0x10;
    /// The term dictionary is a block tree.
    pub const BLOCK_TREE: u16 = 0x20;

    /// The names of the set bits.
    pub fn names(flags: u16) -> Vec<&'static str> {
        [
            (SORTED, "FlagSorted"),
            (HAS_BLOB_REGION, "FlagHasBlobRegion"),
            (HAS_DICT_REGION, "FlagHasDictRegion"),
            (HAS_INDEX_REGION, "FlagHasIndexRegion"),
            (ROLE_SEARCH_SEG, "FlagRoleSearchSeg"),
            (BLOCK_TREE, "FlagBlockTree"),
        ]
        .into_iter()
        .filter_map(|(bit, name)| (flags & bit != 0).then_some(name))
        .collect()
    }
}

/// The kind of a dictionary record, stored in its encoding byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DictionaryKind {
    /// Raw content.
    Raw,
    /// A trained Zstandard dictionary.
    Trained,
    /// The values of a column.
    Values,
    /// The symbol table of a column.
    Symbols,
}

impl DictionaryKind {
    /// The kind of an ID.
    pub(crate) const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::Raw),
            1 => Some(Self::Trained),
            2 => Some(Self::Values),
            7 => Some(Self::Symbols),
            _ => None,
        }
    }

    /// Its ID.
    pub(crate) const fn id(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Trained => 1,
            Self::Values => 2,
            Self::Symbols => 7,
        }
    }
}

/// The role of a dictionary for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Values of DICTIONARY codes.
    Values,
    /// Symbols of FSST codes.
    Symbols,
    /// Compression dictionary of `ZSTD_DICT` pages.
    Pages,
    /// Unknown ID.
    Unknown(u8),
}

impl Role {
    /// The role of an ID.
    pub const fn from_id(id: u8) -> Self {
        match id {
            1 => Self::Values,
            2 => Self::Symbols,
            3 => Self::Pages,
            other => Self::Unknown(other),
        }
    }

    /// Its ID.
    pub const fn id(self) -> u8 {
        match self {
            Self::Values => 1,
            Self::Symbols => 2,
            Self::Pages => 3,
            Self::Unknown(id) => id,
        }
    }
}

/// Features that a file requires.
pub mod requires {
    /// DICTIONARY pages.
    pub const DICTIONARY: u64 = 1;
    /// FSST pages.
    pub const FSST: u64 = 1 << 1;
    /// LZ4 payloads.
    pub const LZ4: u64 = 1 << 2;
    /// `ZSTD_DICT` data pages.
    pub const ZSTD_DICT: u64 = 1 << 3;
    /// A trained dictionary in a blob column.
    pub const TRAINED: u64 = 1 << 4;
    /// LIST columns.
    pub const LIST: u64 = 1 << 5;
    /// Floats in encodings other than PLAIN, or byte-split.
    pub const FLOAT: u64 = 1 << 6;
    /// Page statistics before an uncompressed payload.
    pub const BOUNDS: u64 = 1 << 7;
    /// All known bits.
    pub const KNOWN: u64 = (1 << 8) - 1;

    /// The names of the set bits, ascending; unknown ones as `bit N`.
    pub fn names(bits: u64) -> Vec<String> {
        const NAMES: [&str; 8] =
            ["dictionary", "fsst", "lz4", "zstd_dict", "trained", "list", "float", "bounds"];
        (0..64)
            .filter(|bit| bits & (1 << bit) != 0)
            .map(|bit| NAMES.get(bit).map_or_else(|| format!("bit {bit}"), |name| (*name).to_owned()))
            .collect()
    }
}

/// Features that a file offers.
pub mod offers {
    /// Every record header has a checksum.
    pub const HEADER_SUMS: u64 = 1;
    /// Zones of floats exclude NaN and cover every other value.
    pub const FLOAT_ZONES: u64 = 1 << 1;
}
