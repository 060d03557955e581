//! `.tgm` messages: tensors with metadata, in files and streams.
//!
//! A message consists of frames with tensors and metadata, each with a hash. It can be written before its length is
//! known and read before its end has arrived. A file is a sequence of messages:
//!
//! ```text
//! 0          24                                                                     total_length
//! ┌──────────┬──────────┬───────┬────────┬──────────┬────────┬───┬─────────────────┬───────────┐
//! │ preamble │ metadata │ index │ hashes │ preceder │ object │ … │ footer frames   │ postamble │
//! └──────────┴──────────┴───────┴────────┴──────────┴────────┴───┴─────────────────┴───────────┘
//!              header frames               body frames             metadata, hashes, index
//!
//! preceder: optional metadata of the next object, for streaming writers
//! frame:    FR │ type │ version │ flags │ total_length │ body … │ [cbor_offset] │ hash │ ENDF
//! ```
//!
//! ```
//! use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, Writer, WriterOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("forecast.tgm");
//! let mut metadata = GlobalMetadata::default();
//! metadata.extra.insert("centre".to_owned(), "ecmf".into());
//! let descriptor = DataObjectDescriptor::new(DType::F32, [2, 2]);
//! let payload: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
//! let mut writer = Writer::create(&path, WriterOptions::new())?;
//! writer.message(&metadata, &[(&descriptor, &payload)], &EncodeOptions::new())?;
//! writer.finish()?;
//!
//! let file = File::open(&path)?;
//! let message = file.message(0)?;
//! assert_eq!(message.metadata().extra["centre"], "ecmf".into());
//! assert_eq!(message.object(0)?.decode()?.to_vec::<f32>(), Some(vec![1.0, 2.0, 3.0, 4.0]));
//! # Ok::<(), tercet_tgm::Error>(())
//! ```
//!
//! Every frame is verified against its hash, and index, hash lists, flags and postamble against the frames.
//! [`ReadOptions`] can turn that off.
//!
//! | module | contents |
//! |---|---|
//! | `wire` | bytes ↔ preamble, frames, postamble; no I/O |
//! | `value`, `cbor`, `metadata`, `descriptor`, `index_and_hash` | CBOR ↔ contents of frames; no offsets |
//! | `scan`, `layout`, `message`, `object`, `file` | random access: file → messages → objects → arrays |
//! | `index` | message index of a file: positions and key values, in a message at its end |
//! | `decoder`, `follow` | streams: byte chunks → events → complete messages; skips damage |
//! | `encode`, `writer` | arrays → messages → files; [`EncodeOptions`], [`Writer`] |
//! | `pipeline`, [`precision`] | encoding, filter and compression: [`Pipeline::builder`]; choice by an error bound |
//! | `asynchronous` | async API, with the feature `async` |
//! | [`edit`], [`mod@salvage`] | editing without decoding; recovery of damaged files |
//! | `verify`, `validate`, `outline` | verification; byte layout |
//! | [`compat`] | the functions and types of the format documentation |
#![deny(clippy::disallowed_methods)]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test values are small")
)]

/// The guide is compiled and run with the tests.
#[cfg(all(doctest, feature = "async"))]
#[doc = include_str!("../../../docs/guide/tgm-tail-and-async.md")]
mod guide {}

#[cfg(feature = "async")]
mod asynchronous;
pub mod cbor;
pub mod compat;
mod consistency;
mod contents;
mod decoder;
mod descriptor;
mod dtype;
pub mod edit;
mod encode;
mod error;
mod fields;
mod file;
mod follow;
mod frame_body;
mod gaps;
mod index;
mod index_and_hash;
mod indexed_message;
mod layout;
mod message;
mod message_view;
mod metadata;
mod object;
mod options;
mod outline;
mod pipeline;
pub mod precision;
mod region;
pub mod salvage;
mod scan;
mod summary;
mod validate;
mod value;
mod verification_cache;
mod verify;
mod window;
mod wire;
#[cfg(any(unix, windows))]
mod writer;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncDecoder, AsyncStreamingEncoder};
pub use cbor::{CborError, CborErrorKind, canonicalize, verify_canonical_cbor};
pub use contents::{ArrayKind, Contents, KeyRange};
pub use decoder::{Decoder, Event};
pub use descriptor::DataObjectDescriptor;
pub use dtype::{ByteOrder, DTYPES};
pub use encode::{
    EncodeError, EncodeOptions, ObjectValues, Placement, PreEncoded, Provenance, Stamp, StreamingEncoder,
    encode_message, encode_message_into, encode_pre_encoded,
};
pub use error::{Contradiction, Error, ErrorKind};
pub use fields::{ArrayStats, Field};
pub use file::{File, Messages};
pub use follow::{FileChange, FollowEvent, FollowedMessage, Follower};
#[cfg(any(unix, windows))]
pub use follow::{Follow, FollowOptions};
pub use gaps::{Gap, GapKind};
#[cfg(any(unix, windows))]
pub use index::index_file_path;
pub use index::{Column, IndexBuilder, IndexError, IndexKeys, MAX_KEYS, MessageIndex};
pub use index_and_hash::{HashFrame, IndexFrame};
pub use layout::Layout;
pub use message::Message;
pub use message_view::MessageView;
pub use metadata::{Entry, GlobalMetadata, MetadataError, MetadataErrorKind};
pub use object::{Bitmaps, Object, Ranges, Selected, StreamedObject};
pub use options::ReadOptions;
pub use pipeline::{
    COMPRESSIONS, Compression, ENCODINGS, FILTERS, MaskKind, MaskMethod, Pipeline, PipelineBuildError,
    PipelineBuilder, PipelineError, SimplePacking, SzipOptions, WidenError, can_widen_to_f64,
    is_pipeline_parameter, widen_to_f64,
};
pub use region::{Part, Region};
pub use salvage::{SalvageOptions, SalvageReport, salvage};
pub use scan::{CutTail, Direction, Scan, ScanOptions, scan, scan_source};
pub use summary::{IndexSummary, Summary};
pub use tercet_codec::bytes::blosc2::Inner as Blosc2Codec;
pub use tercet_codec::bytes::sz3::Sz3 as Sz3Bound;
pub use tercet_codec::bytes::zfp::Zfp as ZfpMode;
pub use tercet_core::{DType, OutlineOptions, Tensor, VerifyOptions};
pub use validate::{
    Code, Depth, FileIssue, FileReport, Issue, Level, MessageReport, ValidateOptions, validate_bytes,
    validate_source,
};
pub use value::UnknownItem;
pub use value::Value;
pub use verify::{Report, VerifyDetails, verify};
pub use wire::frame::{Frame, FrameHeader};
pub use wire::ids::{END_MAGIC, FrameFlags, FrameKind, MAGIC, MessageFlags, VERSION};
pub use wire::order::DecodePhase;
pub use wire::postamble::Postamble;
pub use wire::preamble::Preamble;
#[cfg(any(unix, windows))]
pub use writer::{FileSink, ReindexOptions, ReindexReport, Writer, WriterOptions, Written};
