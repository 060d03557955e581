//! How a file is written.

use crate::wire::block::INLINE_COLUMN_BYTES;
use crate::wire::ids::Codec;

/// How the chunks of a dataset are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are: read without decoding, and without a copy.
    #[default]
    Raw,
    /// As zstd frames.
    Zstd {
        /// From fast (negative) to small (22).
        level: i32,
    },
}

impl Compression {
    pub(crate) fn codec(self) -> Codec {
        match self {
            Self::Raw => Codec::Raw,
            Self::Zstd { .. } => Codec::Zstd,
        }
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one independent part is written")]
pub struct WriterOptions {
    /// What the file may use.
    pub profile: Profile,
    /// Write the integrity block.
    pub checksums: bool,
    /// Write chunk statistics into the integrity block.
    pub statistics: bool,
    /// Add a history row that tells how the file came to be.
    pub record_history: bool,
    /// Columns of the integrity block up to this many bytes stand in the footer's text, longer ones behind the
    /// payloads. Readers take both at any size.
    pub inline_column_bytes: u64,
    /// Write zone maps and secondary indexes: footer version 2.
    pub zone_maps: bool,
}

/// What a file may use beyond the common format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Everything; other implementations still read the file.
    #[default]
    Tercet,
    /// Byte for byte what the reference implementation writes: no integrity block, no alignment, no own history.
    Interop,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Tercet,
            checksums: true,
            statistics: true,
            record_history: true,
            inline_column_bytes: INLINE_COLUMN_BYTES,
            zone_maps: false,
        }
    }
}

impl WriterOptions {
    /// Integrity block, statistics, history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Byte for byte what the reference implementation writes.
    pub fn interop() -> Self {
        Self {
            profile: Profile::Interop,
            checksums: false,
            statistics: false,
            record_history: false,
            ..Self::default()
        }
    }

    /// Sets whether the integrity block is written.
    pub fn with_checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Sets whether chunk statistics are written.
    pub fn with_statistics(mut self, statistics: bool) -> Self {
        self.statistics = statistics;
        self
    }

    /// Sets whether a history row is added.
    pub fn with_history(mut self, record: bool) -> Self {
        self.record_history = record;
        self
    }

    /// Sets how long a column of the integrity block may be to stand in the footer's text: at most 12288 bytes.
    pub fn with_inline_column_bytes(mut self, bytes: u64) -> Self {
        self.inline_column_bytes = bytes.min(INLINE_COLUMN_BYTES);
        self
    }

    /// Sets whether zone maps and secondary indexes are written, by which the reference implementation skips chunks
    /// in filtered queries. They make the footer one of version 2 and, being text, take about 200 bytes for each
    /// chunk, and more where the same few values or labels lead to many chunks.
    ///
    /// Next to an integrity block they are read, and checked, whenever the file is opened.
    ///
    /// They go with either profile; the reference's own writers for whole arrays always write them. A
    /// [`Rewrite`](crate::Rewrite) copies chunks without looking at their values and leaves them out.
    pub fn with_zone_maps(mut self, zone_maps: bool) -> Self {
        self.zone_maps = zone_maps;
        self
    }

    pub(crate) fn has_block(&self) -> bool {
        self.checksums && self.profile == Profile::Tercet
    }
}
