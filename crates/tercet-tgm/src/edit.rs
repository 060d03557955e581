//! Editing of messages without decoding: set, merge, split, reshuffle.
//!
//! Payloads and masks are copied as stored, so no lossy codec runs again and non-finite values need no permission. An
//! object with an unchanged descriptor keeps its bytes and its hash. Copied bytes are verified first; what the library
//! adds (`_reserved_`) is rebuilt.
//!
//! Every operation returns a [`MessageBuilder`]: a message whose length and hashes are known, with payloads that are still
//! in their source. Writing it copies them in pieces, with memory for one piece.
//!
//! ```
//! use tercet_tgm::edit::{Change, Changes, set};
//! use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, Message, encode_message};
//!
//! let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
//! let bytes = encode_message(&GlobalMetadata::default(), &[(&descriptor, &[7, 8, 9])], &EncodeOptions::new())?;
//! let message = Message::from_bytes("example", bytes)?;
//! let changes = Changes::new(vec![Change::new("mars.step", "6")?])?;
//! let changed = set(&message, &changes, &EncodeOptions::new())?.to_bytes()?;
//! let changed = Message::from_bytes("changed", changed)?;
//! assert_eq!(changed.metadata().get("mars.step"), Some(&"6".into()));
//! assert_eq!(changed.object(0)?.decode()?.bytes(), [7, 8, 9]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod error;
mod merge;
mod path;
mod raw_object;
mod set;

pub use builder::MessageBuilder;
pub use error::{EditError, Origin};
pub use merge::{Merge, Strategy};
pub use path::{Change, Changes};
pub(crate) use raw_object::{RawObject, check_decodes, check_structure, verify_object};
pub use set::set;

use crate::encode::EncodeOptions;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::metadata::GlobalMetadata;
use crate::wire::ids::FrameKind;
use crate::wire::order::DecodePhase;

/// Verifies the hash of every object and checks payloads against descriptors, as far as possible without decoding.
pub fn check(message: &Message) -> Result<(), Error> {
    message.objects().try_for_each(|object| verify_object(&object?))
}

/// A message with one object of another: its entry in `base` and all of `_extra_` are kept.
pub fn split(message: &Message, object: u64, options: &EncodeOptions) -> Result<MessageBuilder, Error> {
    let raw = RawObject::new(message.source(), &message.object(object)?)?;
    let metadata = message.metadata();
    let entry = usize::try_from(object).ok().and_then(|at| metadata.base.get(at));
    let metadata = GlobalMetadata {
        base: entry.into_iter().cloned().collect(),
        extra: metadata.extra.clone(),
        ..GlobalMetadata::default()
    };
    MessageBuilder::new(message.name(), metadata.without_reserved(), vec![raw], options)
}

/// Whether length, metadata and index are before the objects, and nothing is after them.
pub fn is_header_style(message: &Message) -> Result<bool, Error> {
    let layout = message.layout()?;
    let has_index = layout.frames.iter().any(|frame| frame.kind == FrameKind::HeaderIndex);
    let is_ahead = |kind| kind == FrameKind::NTensor || DecodePhase::for_frame(kind) == DecodePhase::Header;
    Ok(layout.preamble.known_length().is_some()
        && layout.frames.iter().all(|frame| is_ahead(frame.kind))
        && (has_index || layout.object_count() == 0))
}

/// The message with index, hashes and all metadata before the objects; `None` if it is stored that way
/// already.
pub fn reshuffle(message: &Message, options: &EncodeOptions) -> Result<Option<MessageBuilder>, Error> {
    if is_header_style(message)? {
        return Ok(None);
    }
    let objects = raw(message)?;
    MessageBuilder::new(message.name(), message.metadata().without_reserved(), objects, options).map(Some)
}

/// All objects of a message, verified.
fn raw(message: &Message) -> Result<Vec<RawObject>, Error> {
    message.objects().map(|object| RawObject::new(message.source(), &object?)).collect()
}

/// An error with the location of a message.
fn error(message: &Message, fault: ErrorKind) -> Error {
    Error::new(message.name().clone(), fault)
}
