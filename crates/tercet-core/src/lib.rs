//! The vocabulary shared by every Tercet format: bytes in, errors out.
//!
//! Nothing here knows a format. What is here is used by all of them:
//!
//! ```text
//! ByteSource ──Span──▶ Fields ──▶ values        (untrusted bytes, every failure has a Site)
//!                        │
//!                        └─ Limits, Budget      (no allocation on the word of a file alone)
//! values ──▶ Sink / publish::AtomicFile             (a file appears whole or not at all)
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
//! | module | what it holds |
//! |---|---|
//! | [`source`] | [`ByteSource`] and its files, maps and memory |
//! | [`sink`], `publish` | where bytes go; atomic files and locks |
//! | [`fields`], [`span`] | checked reading of untrusted bytes |
//! | [`diagnose`] | [`Site`], [`Class`], [`Diagnose`]: what every error tells |
//! | [`limits`] | [`Limits`] and [`Budget`] |
//! | [`checksum`] | CRC-32C and [`checksum::Mismatch`] |
//! | [`outline`], [`finding`] | a file as a tree of spans; results of checks |
//! | [`progress`] | progress and cancellation |
//! | [`tensor`] | element types, shapes, selections, views |
//! | [`escape`] | names made safe for a terminal |
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "test values are small"))]

pub mod checksum;
mod common_error;
pub mod diagnose;
pub mod escape;
pub mod fields;
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

pub use common_error::CommonError;
pub use diagnose::{Class, Diagnose, Error, Malformed, Reason, Region, Site};
pub use fields::Fields;
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
