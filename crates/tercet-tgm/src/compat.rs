//! The names of the format's own documentation, as thin wrappers over this crate.
//!
//! For programs written against those names. The rest of this crate offers more: errors with byte ranges, the
//! parts of a message that disagree, and values without a copy.
//!
//! ```
//! use tercet_tgm::compat::{EncodeOptions, Result, TensogramFile, encode, scan, verify_canonical_cbor};
//! use tercet_tgm::{DataObjectDescriptor, DType, GlobalMetadata};
//!
//! # fn main() -> Result<()> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("huge.tgm");
//! let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
//! let mut file = TensogramFile::create(&path)?;
//! for _ in 0..1000 {
//!     file.append(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &EncodeOptions::default())?;
//! #   break;
//! }
//! # for _ in 1..3 { file.append(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &EncodeOptions::default())?; }
//!
//! // No I/O here
//! let file = TensogramFile::open(&path)?;
//!
//! // Streaming scan happens here (once)
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
//! use tercet_tgm::FrameKind;
//! use tercet_tgm::compat::{
//!     DataObjectDescriptor, DecodeOptions, DecodePhase, DecodedMessage, EncodeOptions, GlobalMetadata, HashFrame,
//!     IndexFrame, MessageParts, Result, StreamingEncoder, TensogramError, assemble_message, build_hash_frame_cbor,
//!     build_index_frame, canonicalize, compute_message_flags, compute_object_offsets, decode, decode_metadata,
//!     encode_message, scan_file, verify_canonical_cbor,
//! };
//!
//! # fn main() -> Result<()> {
//! // `extra`, `reserved` and the entries of `base` are maps with sorted keys; so is `params`.
//! let metadata = GlobalMetadata::default();
//! assert!(metadata.base.is_empty() && metadata.extra.is_empty() && metadata.reserved.is_empty());
//! let descriptor = DataObjectDescriptor::new(tercet_tgm::DType::U8, [3]);
//! assert!(descriptor.params.is_empty());
//!
//! // The encoder and its helpers
//! let message = encode_message(&metadata, &[(&descriptor, &[1, 2, 3])], &EncodeOptions::default())?;
//! verify_canonical_cbor(&build_hash_frame_cbor(&[7]))?;
//! assert_eq!(compute_object_offsets(64, &[50, 60]), Some(vec![64, 120]));
//! let (index, offsets) = build_index_frame(64, 0, &[50, 60])?;
//! verify_canonical_cbor(&index)?;
//! assert_eq!(offsets.len(), 2);
//! compute_message_flags([FrameKind::HeaderMetadata], true);
//! let mut assembled = Vec::new();
//! let parts = MessageParts {
//!     metadata: metadata.to_cbor(),
//!     objects: Vec::new(),
//!     index: (false, false),
//!     hashes: (false, false),
//!     hash: true,
//! };
//! assemble_message(&parts, &mut assembled)?;
//! StreamingEncoder::new(Vec::new(), &metadata, EncodeOptions::default())?.finish()?;
//! verify_canonical_cbor(&HashFrame::default().to_cbor())?;
//! verify_canonical_cbor(&IndexFrame::default().to_cbor())?;
//! canonicalize(&mut tercet_tgm::Value::Map(Vec::new()))?;
//!
//! // Decoding and scanning
//! let (_, objects): DecodedMessage = decode(&message, &DecodeOptions::default())?;
//! assert_eq!(objects[0].1, [1, 2, 3]);
//! assert_eq!(decode_metadata(&message)?.base.len(), 1);
//! assert_eq!(scan_file(&mut std::io::Cursor::new(&message))?, [(0, message.len() as u64)]);
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

mod error;
#[cfg(any(unix, windows))]
mod file;

use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tercet_core::progress::NoProgress;
use tercet_core::{ByteSource, SourceError, Span};

pub use crate::cbor::canonicalize as canonicalize_value;
pub use crate::descriptor::DataObjectDescriptor;
pub use crate::encode::{
    EncodeOptions, MessageParts, ObjectParts, StreamingEncoder, assemble_message, build_hash_frame_cbor,
    build_index_frame, compute_message_flags, compute_object_offsets,
};
pub use crate::index_and_hash::{HashFrame, IndexFrame};
pub use crate::metadata::GlobalMetadata;
pub use crate::options::ReadOptions as DecodeOptions;
pub use crate::wire::order::DecodePhase;
pub use error::{Result, TensogramError};
#[cfg(any(unix, windows))]
pub use file::TensogramFile;

use crate::message::Message;
use crate::scan::{ScanOptions, scan_source};
use crate::value::Value;

/// A decoded message: its metadata, and descriptor and values of each object.
pub type DecodedMessage = (GlobalMetadata, Vec<(DataObjectDescriptor, Vec<u8>)>);

/// The messages of a buffer: offset and length of each.
pub fn scan(buffer: &[u8]) -> Vec<(usize, usize)> {
    let pair = |span: &Span| Some((usize::try_from(span.start()).ok()?, span.len_usize()?));
    crate::scan::scan(buffer).iter().filter_map(pair).collect()
}

/// The messages of a seekable reader: offset and length of each. Reads only the framing.
pub fn scan_file<R: Read + Seek + Send>(reader: &mut R) -> Result<Vec<(u64, u64)>> {
    let len = reader.seek(SeekFrom::End(0))?;
    let source = Seeking { name: Arc::from("reader"), len, reader: Mutex::new(reader) };
    let scan = scan_source(&source, ScanOptions::default(), &NoProgress).map_err(TensogramError::from)?;
    Ok(scan.messages.iter().map(|span| (span.start(), span.len())).collect())
}

/// Encodes a message.
pub fn encode(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>> {
    Ok(crate::encode::encode_message(metadata, objects, options)?)
}

/// Encodes a message. The name in the documentation of the encoder.
pub fn encode_message(
    metadata: &GlobalMetadata,
    objects: &[(&DataObjectDescriptor, &[u8])],
    options: &EncodeOptions,
) -> Result<Vec<u8>> {
    encode(metadata, objects, options)
}

/// Decodes the first message of a buffer.
pub fn decode(buffer: &[u8], options: &DecodeOptions) -> Result<DecodedMessage> {
    let message = Message::from_bytes_with("buffer", Bytes::copy_from_slice(buffer), *options)?;
    decode_whole(&message)
}

/// The metadata of the first message of a buffer.
pub fn decode_metadata(buffer: &[u8]) -> Result<GlobalMetadata> {
    let message = Message::from_bytes("buffer", Bytes::copy_from_slice(buffer))?;
    Ok(message.metadata().clone())
}

/// Sorts all maps by the encoded bytes of their keys.
pub fn canonicalize(value: &mut Value) -> Result<()> {
    Ok(canonicalize_value(value)?)
}

/// Whether bytes are one CBOR item in the canonical form of RFC 8949 §4.2.1.
pub fn verify_canonical_cbor(bytes: &[u8]) -> Result<()> {
    Ok(crate::cbor::verify_canonical_cbor(bytes)?)
}

fn decode_whole(message: &Message) -> Result<DecodedMessage> {
    let mut objects = Vec::new();
    for (object, array) in message.objects().zip(message.decode()?) {
        objects.push((object?.descriptor().clone(), array.bytes().to_vec()));
    }
    Ok((message.metadata().clone(), objects))
}

/// A seekable reader as a source. Reads are serialized.
struct Seeking<'a, R> {
    name: Arc<str>,
    len: u64,
    reader: Mutex<&'a mut R>,
}

impl<R> fmt::Debug for Seeking<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seeking({} bytes)", self.len)
    }
}

impl<R: Read + Seek + Send> ByteSource for Seeking<'_, R> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, span: Span) -> std::result::Result<Bytes, SourceError> {
        if span.end() > self.len {
            return Err(SourceError::PastEnd { span, len: self.len });
        }
        let mut out = Vec::new();
        let len = span.len_usize().ok_or(SourceError::TooLarge { span })?;
        out.try_reserve_exact(len).map_err(|_| SourceError::TooLarge { span })?;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let read = reader
            .seek(SeekFrom::Start(span.start()))
            .and_then(|_| Read::take(&mut **reader, span.len()).read_to_end(&mut out));
        match read {
            Ok(read) if read == len => Ok(out.into()),
            Ok(_) => Err(SourceError::PastEnd { span, len: self.len }),
            Err(error) => Err(SourceError::Read { span, error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_buffers_are_scanned_equally() {
        let descriptor = DataObjectDescriptor::new(tercet_core::DType::I16, [2]);
        let one = encode(&GlobalMetadata::default(), &[(&descriptor, &[1, 0, 2, 0])], &EncodeOptions::new())
            .unwrap();
        let two = [b"junk".as_slice(), &one, b"more junk", &one].concat();
        let found = scan(&two);
        assert_eq!(found, [(4, one.len()), (13 + one.len(), one.len())]);
        let in_file = scan_file(&mut std::io::Cursor::new(&two)).unwrap();
        assert_eq!(in_file.len(), 2);
        assert_eq!(in_file[1], (found[1].0 as u64, found[1].1 as u64));
        let (metadata, objects) = decode(&one, &DecodeOptions::new()).unwrap();
        assert_eq!((metadata.base.len(), &*objects[0].1), (1, &[1, 0, 2, 0][..]));
    }

    #[test]
    fn damage_is_a_hash_mismatch() {
        let descriptor = DataObjectDescriptor::new(tercet_core::DType::U8, [4]);
        let mut message =
            encode(&GlobalMetadata::default(), &[(&descriptor, b"PLAY")], &EncodeOptions::new()).unwrap();
        let at = message.windows(4).position(|window| window == b"PLAY").unwrap();
        message[at] ^= 1;
        let error = decode(&message, &DecodeOptions::new()).unwrap_err();
        assert!(matches!(error, TensogramError::HashMismatch { .. }), "{error}");
        assert!(decode(&message, &DecodeOptions::new().with_verify(false)).is_ok());
    }
}
