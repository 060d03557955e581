//! [`Region`]: the parts of a file, as errors name them.

use std::fmt;

/// A part of a `.tet` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Region {
    /// The first 32 bytes.
    Superblock,
    /// The dataset directory.
    Directory,
    /// One record of the directory.
    Dataset {
        /// The position in the directory.
        index: u32,
    },
    /// The first 32 bytes of the chunk index.
    IndexHeader,
    /// One row of the chunk index.
    IndexRow {
        /// The number of the row.
        row: u64,
    },
    /// A run of rows of the chunk index that share a checksum.
    IndexRun {
        /// The first row.
        first: u64,
        /// The row after the last.
        end: u64,
    },
    /// The stored bytes of one chunk.
    Payload {
        /// The number of the index row.
        row: u64,
    },
    /// The 16 bytes at the end of a file with a footer.
    FooterTail,
    /// The JSON of the footer.
    FooterJson,
    /// Metadata that is too large for the footer JSON.
    MetadataSpill,
    /// Spills, JSON and tail together.
    Footer,
    /// Superblock, directory and index header together.
    Catalog,
    /// The integrity block.
    Block,
    /// A run of statistics that share a checksum.
    StatsRun {
        /// The first row.
        first: u64,
        /// The row after the last.
        end: u64,
    },
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock => f.write_str("superblock"),
            Self::Directory => f.write_str("dataset directory"),
            Self::Dataset { index } => write!(f, "dataset record {index}"),
            Self::IndexHeader => f.write_str("chunk index"),
            Self::IndexRow { row } => write!(f, "chunk index › row {row}"),
            Self::IndexRun { first, end } => write!(f, "chunk index › rows {first}..{end}"),
            Self::Payload { row } => write!(f, "payload of row {row}"),
            Self::FooterTail => f.write_str("footer tail"),
            Self::FooterJson => f.write_str("footer JSON"),
            Self::MetadataSpill => f.write_str("metadata spill"),
            Self::Footer => f.write_str("footer"),
            Self::Catalog => f.write_str("catalog"),
            Self::Block => f.write_str("integrity block"),
            Self::StatsRun { first, end } => write!(f, "statistics › rows {first}..{end}"),
        }
    }
}

impl tercet_core::Region for Region {}
