//! Magic bytes, sizes and closed sets of numbers.

use serde::Serialize;
use tercet_core::ElementType;

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8; 4] = b"TETR";
/// The first bytes of the chunk index.
pub(crate) const INDEX_MAGIC: &[u8; 4] = b"TIDX";
/// The last bytes of a file with a footer.
pub(crate) const FOOTER_MAGIC: &[u8; 4] = b"THST";

/// The only layout version.
pub(crate) const LAYOUT_VERSION: u32 = 1;
/// The only index version.
pub(crate) const INDEX_VERSION: u32 = 1;

pub(crate) const SUPERBLOCK_LEN: u64 = 32;
/// The offset of the first dataset record, after the superblock and the length of the directory.
pub(crate) const RECORDS_AT: u64 = 40;
/// The shortest dataset record: an empty name and one axis.
pub(crate) const RECORD_MIN_LEN: u64 = 32;
pub(crate) const INDEX_HEADER_LEN: u64 = 32;
pub(crate) const ROW_LEN: u64 = 104;
pub(crate) const TAIL_LEN: u64 = 16;

/// `flags` bit: the file ends with a footer.
pub(crate) const FLAG_FOOTER: u32 = 1;

/// The largest rank of a dataset.
pub const MAX_RANK: usize = 8;

/// Index rows covered by one checksum of the integrity block.
pub(crate) const RUN_ROWS: u64 = 1024;

/// The next multiple of 8.
pub(crate) const fn align8(n: u64) -> Option<u64> {
    match n.checked_add(7) {
        Some(up) => Some(up & !7),
        None => None,
    }
}

/// The tag of an element type in a dataset record.
pub(crate) const fn dtype_tag(dtype: ElementType) -> u32 {
    match dtype {
        ElementType::F32 => 1,
        ElementType::F64 => 2,
        ElementType::I32 => 3,
        ElementType::I64 => 4,
        ElementType::U8 => 5,
        ElementType::U16 => 6,
        ElementType::I16 => 7,
        ElementType::U32 => 8,
        ElementType::F16 => 9,
        ElementType::U64 => 10,
    }
}

/// The element type of a tag; `None` for an unknown tag.
pub(crate) fn dtype_of(tag: u32) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|&dtype| dtype_tag(dtype) == tag)
}

/// The codec of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Not compressed.
    Raw,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// The number in an index row.
    pub const fn id(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
        }
    }

    /// The codec of a number; `None` for an unknown number.
    pub const fn from_id(id: u32) -> Option<Self> {
        match id {
            0 => Some(Self::Raw),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// `raw` or `zstd`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_one_to_ten() {
        let mut tags: Vec<u32> = ElementType::ALL.into_iter().map(dtype_tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (1..=10).collect::<Vec<_>>());
        assert_eq!(dtype_of(0), None);
        assert_eq!(dtype_of(11), None);
    }

    #[test]
    fn alignment_does_not_wrap() {
        assert_eq!([0, 1, 8, 9].map(align8), [Some(0), Some(8), Some(8), Some(16)]);
        assert_eq!(align8(u64::MAX), None);
    }
}
