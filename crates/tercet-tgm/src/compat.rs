//! The functions and types of the format's own documentation.
//!
//! For programs written against those names: metadata values are `ciborium::Value` in `BTreeMap`s, all errors are
//! [`TensogramError`]. Buffers are borrowed. The rest of this crate offers more: errors with byte ranges, the parts of a
//! message that disagree, arrays with shapes. `From` and `TryFrom` convert metadata and descriptors; they move strings and
//! never touch payloads.
//!
//! Hashes are verified by default (`verify_hash`).
//!
//! ```
//! use tercet_tgm::compat::{
//!     DataObjectDescriptor, Dtype, EncodeOptions, GlobalMetadata, Result, TensogramFile, scan, verify_canonical_cbor,
//! };
//!
//! # fn main() -> Result<()> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("huge.tgm");
//! let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [3]);
//! let mut file = TensogramFile::create(&path)?;
//! for _ in 0..3 {
//!     file.append(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &EncodeOptions::default())?;
//! }
//!
//! // No I/O here
//! let file = TensogramFile::open(&path)?;
//!
//! // Streaming scan happens here (once): reads preamble chunks, seeks forward
//! let count = file.message_count()?;
//!
//! // O(1) seek + read
//! let message = file.read_message(count - 1)?;
//! assert_eq!(scan(&message), [(0, message.len())]);
//! verify_canonical_cbor(&[0xa0])?;
//! # Ok(())
//! # }
//! ```
//!
//! All other names of that documentation:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use tercet_tgm::compat::{
//!     DataObjectDescriptor, DecodeOptions, DecodePhase, DecodedMessage, Dtype, EncodeOptions, FrameType, GlobalMetadata,
//!     HashFrame, IndexFrame, MessageParts, Result, StreamingEncoder, TensogramError, assemble_message,
//!     build_hash_frame_cbor, build_index_frame, canonicalize, compute_message_flags, compute_object_offsets, decode,
//!     decode_metadata, encode_message, scan_file, verify_canonical_cbor,
//! };
//!
//! # fn main() -> Result<()> {
//! // `extra`, `reserved`, the entries of `base` and `params` are `BTreeMap<String, ciborium::Value>`.
//! let mut metadata = GlobalMetadata::default();
//! let section: &mut BTreeMap<String, ciborium::Value> = &mut metadata.extra;
//! section.insert("centre".to_owned(), "ecmf".into());
//! assert!(metadata.base.is_empty() && metadata.reserved.is_empty());
//! let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [3]);
//! let params: &BTreeMap<String, ciborium::Value> = &descriptor.params;
//! assert!(params.is_empty());
//!
//! // Deterministic CBOR: serde, canonicalize, write.
//! let mut value = ciborium::Value::serialized(&metadata).unwrap();
//! canonicalize(&mut value)?;
//! let mut cbor = Vec::new();
//! ciborium::into_writer(&value, &mut cbor).unwrap();
//! verify_canonical_cbor(&cbor)?;
//! assert_eq!(value.deserialized::<GlobalMetadata>().unwrap(), metadata);
//!
//! // The encoder and its helpers
//! let message = encode_message(&metadata, &[(&descriptor, &[1, 2, 3])], &EncodeOptions::default())?;
//! verify_canonical_cbor(&build_hash_frame_cbor(&[7])?)?;
//! assert_eq!(compute_object_offsets(64, &[50, 60])?, [64, 120]);
//! let (index, offsets) = build_index_frame(64, 0, &[50, 60])?;
//! verify_canonical_cbor(&index)?;
//! assert_eq!(offsets.len(), 2);
//! compute_message_flags([FrameType::HeaderMetadata], true);
//! let parts = MessageParts {
//!     metadata: cbor,
//!     objects: Vec::new(),
//!     index: (false, false),
//!     hashes: (false, false),
//!     hash: true,
//! };
//! let mut assembled = Vec::new();
//! assemble_message(&parts, &mut assembled)?;
//! assert_eq!(decode_metadata(&assembled)?.extra["centre"].as_text(), Some("ecmf"));
//! StreamingEncoder::new(Vec::new(), &metadata, &EncodeOptions::default())?.finish()?;
//! verify_canonical_cbor(&HashFrame::default().to_cbor())?;
//! verify_canonical_cbor(&IndexFrame::default().to_cbor())?;
//!
//! // Decoding and scanning
//! let (_, objects): DecodedMessage = decode(&message, &DecodeOptions::default())?;
//! assert_eq!(objects[0].1, [1, 2, 3]);
//! assert_eq!(decode_metadata(&message)?.base.len(), 1);
//! assert_eq!(scan_file(&mut std::io::Cursor::new(&message))?, [(0, message.len())]);
//! assert!(DecodePhase::Header < DecodePhase::Body && DecodePhase::Body < DecodePhase::Footer);
//!
//! // The error hierarchy
//! match decode(&message[..30], &DecodeOptions::default()).unwrap_err() {
//!     TensogramError::Framing(_) => {}
//!     TensogramError::Metadata(_)
//!     | TensogramError::Encoding(_)
//!     | TensogramError::Compression(_)
//!     | TensogramError::Object(_)
//!     | TensogramError::Io(_)
//!     | TensogramError::HashMismatch { expected: _, actual: _ } => unreachable!(),
//!     other => panic!("{other}"),
//! }
//! # Ok(())
//! # }
//! ```
#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::needless_pass_by_value,
    clippy::iter_not_returning_iterator,
    reason = "the signatures of the documentation"
)]

pub mod decode;
pub mod encode;
mod error;
#[cfg(any(unix, windows))]
mod file;
pub mod framing;
mod iter;
mod meta_value;
mod options;
#[cfg(any(unix, windows))]
pub mod remote;
pub mod shuffle;
pub mod simple_packing;
pub mod streaming;
mod types;
mod validate;

pub use crate::dtype::ByteOrder;
pub use crate::encode::{MessageParts, ObjectParts, compute_message_flags};
pub use crate::index_and_hash::{HashFrame, IndexFrame};
pub use crate::pipeline::MaskMethod;
pub use crate::validate::{
    Code as IssueCode, FileIssue, FileReport as FileValidationReport, Issue as ValidationIssue,
    Level as ValidationLevel, MessageReport as ValidationReport,
};
pub use crate::wire::frame::FrameHeader;
pub use crate::wire::ids::{
    END_MAGIC, FrameFlags, FrameKind as FrameType, MAGIC, MessageFlags, VERSION as WIRE_VERSION,
};
pub use crate::wire::order::DecodePhase;
pub use crate::wire::postamble::Postamble;
pub use crate::wire::preamble::Preamble;
pub use decode::{
    DecodedMaskSet, DecodedMessage, DecodedObject, DecodedObjectWithMasks, data_object_inline_hashes, decode,
    decode_descriptors, decode_metadata, decode_object, decode_range, decode_with_masks, scan, scan_file,
};
pub use encode::{
    assemble_message, build_hash_frame_cbor, build_index_frame, compute_object_offsets, encode,
    encode_message, encode_pre_encoded,
};
pub use error::{Digest, Result, TensogramError};
#[cfg(any(unix, windows))]
pub use file::{FileMessageIter, MessageLayout, ObjectOfMessage, TensogramFile};
pub use iter::{MessageIter, ObjectIter, messages, objects, objects_metadata};
pub use meta_value::{MetaType, MetaValue};
pub use options::{
    AggregateHashPolicy, CompressionBackend, DecodeOptions, EncodeOptions, RemoteScanOptions, ValidateOptions,
};
#[cfg(any(unix, windows))]
pub use remote::is_remote_url;
pub use simple_packing::{SimplePackingParams, compute_params as compute_packing_params};
pub use streaming::StreamingEncoder;
pub use tercet_core::Severity as IssueSeverity;
pub use types::{DataObjectDescriptor, Dtype, GlobalMetadata, MaskDescriptor, MasksMetadata, Section};
#[cfg(any(unix, windows))]
pub use validate::validate_file;
pub use validate::{validate_buffer, validate_message};

/// The key of what the library adds to the metadata.
pub const RESERVED_KEY: &str = crate::metadata::RESERVED;

/// The name of the hash algorithm.
pub const HASH_ALGORITHM_NAME: &str = crate::consistency::ALGORITHM;

/// Sorts all maps by the encoded bytes of their keys. Duplicate keys are an error.
pub fn canonicalize(value: &mut ciborium::Value) -> Result<()> {
    let mut ours = types::to_ours(value)?;
    crate::cbor::canonicalize(&mut ours)?;
    *value = ours.into();
    Ok(())
}

/// Whether bytes are one CBOR item in the canonical form of RFC 8949 §4.2.1.
pub fn verify_canonical_cbor(bytes: &[u8]) -> Result<()> {
    Ok(crate::cbor::verify_canonical_cbor(bytes)?)
}

/// The hash of bytes in hexadecimal.
pub fn compute_hash(bytes: &[u8]) -> String {
    format!("{:016x}", tercet_core::checksum::xxh3(bytes))
}

/// The keys other than `_reserved_` that all entries of `base` share, and the rest of each entry.
pub fn compute_common(base: &[Section]) -> Result<(Section, Vec<Section>)> {
    let base = base.iter().map(types::entry_to_ours).collect::<Result<_>>()?;
    let (common, rest) = crate::GlobalMetadata { base, ..crate::GlobalMetadata::default() }.common();
    Ok((types::entry_from_ours(common), rest.into_iter().map(types::entry_from_ours).collect()))
}

#[cfg(test)]
mod tests;
