//! [`WriterOptions`] and [`Compression`].

use crate::wire::block::INLINE_COLUMN_BYTES;
use crate::wire::ids::Codec;

/// The compression of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// None: chunks are read without decoding and without a copy.
    #[default]
    None,
    /// Zstandard.
    Zstd {
        /// The level, from fast (negative) to small (22).
        level: i32,
    },
    /// Chosen from a sample of the values when they are written: Zstandard at level 3 if it shrinks the sample to 75 % or
    /// less, else none. For [rounded](crate::Rounding) values any shrinking is enough.
    Auto,
}

/// The compression that a writer chose for [`Compression::Auto`], and the sample that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressionChoice {
    /// The compression of the dataset.
    pub compression: Compression,
    /// The length of the sample in bytes.
    pub sample_bytes: u64,
    /// The length of the sample, compressed.
    pub compressed_bytes: u64,
}

impl CompressionChoice {
    /// The compressed length as a fraction of the length: 0.75 is 75 %.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn ratio(&self) -> f64 {
        self.compressed_bytes as f64 / self.sample_bytes.max(1) as f64
    }
}

impl Compression {
    pub(crate) fn codec(self) -> Codec {
        match self {
            // A choice that was not made stores chunks as they are.
            Self::None | Self::Auto => Codec::Raw,
            Self::Zstd { .. } => Codec::Zstd,
        }
    }
}

/// Options for writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option")]
pub struct WriterOptions {
    /// The features that the file may use.
    pub profile: Profile,
    /// Write the integrity block.
    pub checksums: bool,
    /// Write chunk statistics into the integrity block.
    pub statistics: bool,
    /// Add a history row for the creation of the file.
    pub record_history: bool,
    /// Columns of the integrity block up to this length in bytes are stored in the footer JSON, longer ones after the
    /// payloads. Readers accept both at any size.
    pub inline_column_bytes: u64,
    /// Write zone maps and secondary indexes: footer version 2.
    pub zone_maps: bool,
    /// Replace an existing file.
    pub overwrite: bool,
}

/// The features that a file may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// All features; other implementations still read the file.
    #[default]
    Native,
    /// Byte for byte the output of the reference implementation: no integrity block, no alignment, no history row.
    Interop,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::Native,
            checksums: true,
            statistics: true,
            record_history: true,
            inline_column_bytes: INLINE_COLUMN_BYTES,
            zone_maps: false,
            overwrite: false,
        }
    }
}

impl WriterOptions {
    /// The defaults: integrity block, statistics, history row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Byte for byte the output of the reference implementation.
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

    /// Sets the length limit of columns in the footer JSON, at most 12288 bytes.
    pub fn with_inline_column_bytes(mut self, bytes: u64) -> Self {
        self.inline_column_bytes = bytes.min(INLINE_COLUMN_BYTES);
        self
    }

    /// Sets whether zone maps and secondary indexes are written. The reference implementation skips chunks with them
    /// in filtered queries. They require footer version 2 and take about 200 bytes per
    /// chunk, more if few distinct values or labels occur in many chunks.
    ///
    /// With an integrity block they are read and checked whenever the file is opened.
    ///
    /// Both profiles allow them; the reference implementation always writes them for whole arrays. A
    /// [`Rewrite`](crate::Rewrite) copies chunks without their values and drops zone maps.
    pub fn with_zone_maps(mut self, zone_maps: bool) -> Self {
        self.zone_maps = zone_maps;
        self
    }

    /// Sets whether an existing file is replaced.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    pub(crate) fn has_block(&self) -> bool {
        self.checksums && self.profile == Profile::Native
    }
}
