//! The first 32 bytes (`docs/spec/tet.md`, superblock).

use serde::Serialize;
use tercet_core::{FieldReader, Malformed, Reason, Span};

use super::ids::{FLAG_FOOTER, LAYOUT_VERSION, MAGIC, SUPERBLOCK_LEN};
use crate::Region;

/// The fields of the first 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Superblock {
    /// Always 1.
    pub layout_version: u32,
    /// The number of datasets.
    pub dataset_count: u32,
    /// Bit 0: the file ends with a footer.
    pub flags: u32,
    /// The offset of the chunk index.
    pub chunk_index_offset: u64,
    /// The length of the chunk index.
    pub chunk_index_length: u64,
}

impl Superblock {
    /// Parses the superblock of a file of `file_len` bytes.
    pub(crate) fn parse(bytes: &[u8], file_len: u64) -> Result<Self, Malformed<Region>> {
        let mut fields = FieldReader::new(Region::Superblock, 0, bytes);
        fields.magic("magic", MAGIC)?;
        let layout_version = fields.u32_le("layout_version")?;
        if layout_version != LAYOUT_VERSION {
            let reason = Reason::UnknownVersion { found: layout_version.into(), known: "1" };
            return Err(fields.fault("layout_version", 4, reason));
        }
        let dataset_count = fields.u32_le("dataset_count")?;
        let flags = fields.u32_le("flags")?;
        let chunk_index_offset = fields.u64_le("chunk_index_offset")?;
        let chunk_index_length = fields.u64_le("chunk_index_length")?;
        let index = Span::at(chunk_index_offset, chunk_index_length);
        if index.is_none_or(|span| span.end() > file_len) {
            let reason = Reason::OutOfBounds {
                offset: chunk_index_offset,
                len: chunk_index_length,
                end: file_len,
                what: "the file's bytes",
            };
            return Err(fields.fault("chunk_index_length", 16, reason));
        }
        Ok(Self { layout_version, dataset_count, flags, chunk_index_offset, chunk_index_length })
    }

    /// Encodes the 32 bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend(MAGIC);
        out.extend(self.layout_version.to_le_bytes());
        out.extend(self.dataset_count.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.chunk_index_offset.to_le_bytes());
        out.extend(self.chunk_index_length.to_le_bytes());
        out
    }

    /// The superblock of a file without datasets.
    pub(crate) fn empty() -> Self {
        Self {
            layout_version: LAYOUT_VERSION,
            dataset_count: 0,
            flags: 0,
            chunk_index_offset: SUPERBLOCK_LEN,
            chunk_index_length: 0,
        }
    }

    /// Whether the file ends with a footer.
    pub fn has_footer(&self) -> bool {
        self.flags & FLAG_FOOTER != 0
    }

    /// The span of the chunk index.
    pub(crate) fn index_span(&self) -> Span {
        Span::at(self.chunk_index_offset, self.chunk_index_length)
            .unwrap_or(Span::empty(self.chunk_index_offset))
    }
}
