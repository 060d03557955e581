//! The front door: any container, recognised by its first bytes.
//!
//! | format | what it is | crate |
//! |---|---|---|
//! | `.tet` | chunked arrays at rest | [`tet`] |
//! | `.tgm` | messages of tensors in motion | [`tgm`] |
//! | `.tatami` | records in columns | [`tatami`] |
//!
//! ```
//! use tercet::{Container, Format, detect};
//! use tercet::tet::{Layout, WriterOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("empty.tet");
//! Layout::new().create(&path, WriterOptions::new())?.seal()?;
//!
//! assert_eq!(detect(b"TETR\x01\0\0\0"), Some(Format::Tet));
//! assert_eq!(detect(b"TENSOGRM"), Some(Format::Tgm));
//! let container = Container::open(&path)?;
//! assert_eq!(container.format(), Format::Tet);
//! println!("{:?}", container.outline(None)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whoever knows the format uses its crate directly: `tercet::tet::File::open(path)`, `tercet::tgm::File::open(path)`.

mod container;
mod error;
mod format;

#[cfg(feature = "arrow")]
pub use tercet_arrow as arrow;
pub use tercet_convert as convert;
pub use tercet_core as core;
#[cfg(all(feature = "remote", any(unix, windows)))]
pub use tercet_remote as remote;
pub use tercet_tatami as tatami;
pub use tercet_tet as tet;
pub use tercet_tgm as tgm;

pub use container::{Container, Report, VerifyOptions, verify};
pub use error::{Error, Unrecognised};
pub use format::{Format, HEAD_LEN, detect, format_of};

/// The Rust of the documents compiles, and runs where it can.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/open-and-inspect.md")]
    struct OpenAndInspect;
    #[doc = include_str!("../../../docs/guide/mmap-read-patterns.md")]
    struct MmapReadPatterns;
    #[doc = include_str!("../../../docs/guide/query.md")]
    struct Query;
    #[doc = include_str!("../../../docs/guide/tgm.md")]
    struct Tgm;
}
