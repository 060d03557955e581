//! The foundation of the Tercet formats: byte sources, checked parsing, errors, limits, tensors, atomic files.
//!
//! This crate is format-independent. The format crates read through [`ByteSource`], parse with [`FieldReader`] under [`Limits`],
//! report [`Error`]s that point at bytes, and write through [`Sink`]:
//!
//! ```text
//! Location ─▶ ByteSource ──Span──▶ FieldReader ─▶ typed values   parsing of untrusted bytes; every error has a Site
//!                                    │
//!                                    └─ Limits, Budget           no allocation of an unchecked size
//! typed values ─▶ Sink: publish::AtomicFile, Cursor<Vec<u8>>     a file appears when it is complete
//! ```
//!
//! ```
//! use tercet_core::{ByteSource, Span, source::Memory};
//!
//! let source = Memory::new("greeting", &b"hello, world"[..]);
//! let word = source.read_at(Span::at(7, 5).unwrap()).unwrap();
//! assert_eq!(&word[..], b"world");
//! ```
//!
//! For readers who know Arrow and `object_store`: [`ByteSource`] is a blocking `get_range`/`get_ranges` for one file,
//! [`Tensor`] and [`DType`] are what `ArrayData` and `DataType` are to Arrow, and [`publish::AtomicFile`] is a
//! local `put`.
//!
//! | module | contents |
//! |---|---|
//! | [`source`] | [`ByteSource`]: files, memory maps, memory; [`Location`]: a path or a URL |
//! | [`sink`], [`publish`] | outputs; atomic files and file locks |
//! | [`field_reader`], [`span`] | checked parsing of untrusted bytes |
//! | [`diagnostic`] | [`Diagnostic`], [`Site`], [`Class`], [`Hint`], [`CommonError`]: the shared parts of every error |
//! | [`limits`] | [`Limits`] and [`Budget`]: bounds on allocations |
//! | [`checksum`] | CRC-32C, xxh3-64, [`checksum::Mismatch`] |
//! | [`clock`] | the time that writers record; `SOURCE_DATE_EPOCH` |
//! | [`finding`], [`outline`] | results of a verification; the byte layout of a file |
//! | [`progress`] | progress and cancellation |
//! | [`tensor`] | element types, shapes, selections, tensors |
//! | [`threads`] | thread pools for [`ReadOptions::threads`] |
//! | [`escape`], [`num`] | escaping of untrusted text; size conversions |
//!
//! Remote files are in the crate `tercet-remote`.
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "test values are small"))]

pub mod cf_time;
pub mod checksum;
pub mod clock;
mod common_error;
pub mod diagnostic;
pub mod escape;
pub mod field_reader;
pub mod finding;
mod hint;
pub mod limits;
mod location;
pub mod num;
mod options;
pub mod outline;
pub mod progress;
pub mod publish;
pub mod sink;
pub mod source;
pub mod span;
pub mod tensor;
pub mod threads;

pub use common_error::CommonError;
pub use diagnostic::{Class, Diagnostic, Error, Malformed, Reason, Region, Site};
pub use field_reader::FieldReader;
pub use finding::{Finding, FindingSite, Report, Severity};
pub use hint::Hint;
pub use limits::{Budget, Limits};
pub use location::{Location, redact_url};
pub use options::{ReadOptions, VerifyOptions};
pub use outline::{Outline, OutlineOptions};
pub use progress::Progress;
pub use sink::Sink;
pub use source::{ByteSource, SourceError};
pub use span::Span;
pub use tensor::{DType, Element, ElementType, Scalar, Selection, Shape, Tensor, TensorView};
