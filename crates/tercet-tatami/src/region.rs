//! File regions, for errors.

use std::fmt;

/// A region of a `.tatami` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Region {
    /// The first 64 bytes.
    Header,
    /// The last 12 bytes.
    Trailer,
    /// The footer, before the trailer.
    Footer,
    /// One section of the footer.
    Section {
        /// Its tag.
        tag: u64,
    },
    /// The entry of a row group in the footer.
    Group {
        /// Its number.
        group: u32,
    },
    /// The pages of one column in one row group.
    Chunk {
        /// The row group.
        group: u32,
        /// The column.
        column: u32,
    },
    /// One page.
    Page {
        /// The row group.
        group: u32,
        /// The column.
        column: u32,
        /// Its number in the chunk.
        page: u32,
    },
    /// The page index of the sort key.
    PageIndex {
        /// The row group.
        group: u32,
    },
    /// A run of blob values.
    Run {
        /// The column.
        column: u32,
        /// Its number in the column.
        run: u32,
    },
    /// A dictionary.
    Dictionary {
        /// Its number, 0-based.
        index: u32,
    },
    /// A bloom filter.
    Bloom {
        /// Its number, 0-based.
        index: u32,
    },
    /// A part of the inverted region.
    Inverted {
        /// Which part.
        part: &'static str,
    },
    /// The sidecar that maps terms to the segments of a cluster.
    Routing,
    /// The manifest of a collection.
    Manifest {
        /// The record number, 0-based.
        record: Option<u32>,
    },
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Trailer => f.write_str("trailer"),
            Self::Footer => f.write_str("footer"),
            Self::Section { tag } => match section_name(*tag) {
                Some(name) => write!(f, "footer › {name}"),
                None => write!(f, "footer › section {tag}"),
            },
            Self::Group { group } => write!(f, "footer › row group {group}"),
            Self::Chunk { group, column } => write!(f, "row group {group} › column {column}"),
            Self::Page { group, column, page } => {
                write!(f, "row group {group} › column {column} › page {page}")
            }
            Self::PageIndex { group } => write!(f, "row group {group} › page index"),
            Self::Run { column, run } => write!(f, "blob region › column {column} › run {run}"),
            Self::Dictionary { index } => write!(f, "dictionary {index}"),
            Self::Bloom { index } => write!(f, "bloom filter {index}"),
            Self::Inverted { part } => write!(f, "inverted region › {part}"),
            Self::Routing => f.write_str("routing"),
            Self::Manifest { record: None } => f.write_str("manifest"),
            Self::Manifest { record: Some(record) } => write!(f, "manifest › record {record}"),
        }
    }
}

impl tercet_core::Region for Region {}

/// The name of a section of the footer.
pub(crate) const fn section_name(tag: u64) -> Option<&'static str> {
    match tag {
        1 => Some("schema"),
        2 => Some("row groups"),
        3 => Some("blob descriptors"),
        4 => Some("dictionary descriptors"),
        5 => Some("index descriptors"),
        6 => Some("key-value pairs"),
        7 => Some("statistics"),
        8 => Some("inverted descriptor"),
        crate::wire::footer::FEATURES => Some("features"),
        crate::wire::footer::ACCESS => Some("access index"),
        crate::wire::footer::POSITIONS => Some("positions"),
        _ => None,
    }
}
