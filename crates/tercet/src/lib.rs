//! Tercet reads and writes three container formats for scientific data and documents.
//!
//! | format | content | module |
//! |---|---|---|
//! | `.tet` | chunked n-dimensional arrays in a file | [`tet`] |
//! | `.tgm` | messages of tensors, in a file or a stream | [`tgm`] |
//! | `.tatami` | tables in columns, and full-text search | [`tatami`] |
//!
//! [`open`] takes a path or a URL and detects the format:
//!
//! ```
//! use tercet::Format;
//! use tercet::tet::{Layout, Writer, WriterOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("empty.tet");
//! Writer::create(&path, Layout::new(), WriterOptions::new())?.finish()?;
//!
//! let container = tercet::open(&path)?;
//! assert_eq!(container.format(), Format::Tet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | I want to … | use |
//! |---|---|
//! | open any container | [`open`], [`open_with`], then `match` on [`Container`] |
//! | read arrays | [`tet::File::open`], then `dataset(name)` |
//! | read messages | [`tgm::File::open`], then `messages()` |
//! | filter messages by metadata | [`MessageFilter`] |
//! | read tables | [`tatami::File::open`], then `scan()` |
//! | describe a file | [`summary`], which serializes to JSON |
//! | see the byte layout of a file | [`outline`] |
//! | check a file for damage | [`verify`] |
//! | recover the intact parts of a damaged file | [`salvage`] |
//! | detect a format | [`detect`], [`detect_source`], [`OtherFormat::detect`] |
//! | convert Parquet and Arrow tables | [`arrow`] |
//! | convert arrays, tables and documents of other formats | [`convert`] |
//! | compare files, hash their contents | [`convert::diff`], [`convert::content_hash`] |
//! | write and search a catalog of many files | [`convert::catalog`] |
//! | plot arrays | [`plot`] |
//! | values of arrays for display | [`raster`] |
//!
//! Each format module has the same shape: `File::open`, `File::open_with` with `ReadOptions`, `File::from_source` for any
//! [`ByteSource`](core::ByteSource), `Writer::create` and `finish`, `verify`. Errors name the file, the region and the bytes;
//! [`Diagnostic`](core::Diagnostic) gives their class and a hint.
//!
//! The program `examples/any_file.rs` opens, describes and verifies any file.

mod container;
mod error;
mod format;
mod message_filter;
mod other_format;
pub mod plot;
pub mod prelude;
pub mod raster;
#[cfg(any(unix, windows))]
mod salvage;
#[cfg(any(unix, windows))]
mod source;
#[cfg(all(feature = "remote", any(unix, windows)))]
mod store;
mod summary;

#[cfg(feature = "arrow")]
pub use tercet_arrow as arrow;
pub use tercet_convert as convert;
pub use tercet_core as core;
#[cfg(all(feature = "remote", any(unix, windows)))]
pub use tercet_remote as remote;
pub use tercet_tatami as tatami;
pub use tercet_tet as tet;
pub use tercet_tgm as tgm;

pub use container::{Container, Report, verify_source};
#[cfg(any(unix, windows))]
pub use container::{open, open_with, outline, summary, verify};
pub use error::{Error, ErrorKind, OutputIsInput, UnknownFormat};
pub use format::{Format, HEAD_LEN, detect, detect_source};
pub use message_filter::{MessageFilter, MessageFilterError};
pub use other_format::{OtherFormat, OtherFormatSupport, is_plain_text};
#[cfg(any(unix, windows))]
pub use salvage::{SalvageOptions, SalvageReport, salvage};
#[cfg(all(feature = "remote", any(unix, windows)))]
pub use store::{is_store_url, open_store_url};
pub use summary::Summary;
pub use tercet_core::{Location, OutlineOptions, ReadOptions, VerifyOptions};

/// Doctests of the README and the guides.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/open-and-inspect.md")]
    struct OpenAndInspect;
    #[doc = include_str!("../../../docs/guide/mmap-read-patterns.md")]
    struct MmapReadPatterns;
    #[doc = include_str!("../../../docs/guide/compute.md")]
    struct Compute;
    #[doc = include_str!("../../../docs/guide/query.md")]
    struct Query;
    #[doc = include_str!("../../../docs/guide/tgm.md")]
    struct Tgm;
}
