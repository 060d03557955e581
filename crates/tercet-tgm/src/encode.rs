//! Encoding of messages.
//!
//! [`encode_message`] encodes a complete message with its index before the objects; [`StreamingEncoder`] writes object
//! by object to any `Write`, with its index after them.
//!
//! A complete message is assembled by five functions: [`build_hash_frame_cbor`], [`build_index_frame`],
//! [`compute_object_offsets`], [`compute_message_flags`] and [`assemble_message`].

mod assemble;
mod error;
mod index;
mod input;
mod options;
mod provenance;
mod stream;

#[cfg(feature = "async")]
pub(crate) use assemble::NAME;
#[cfg(any(unix, windows))]
pub(crate) use assemble::encode_message_to;
pub(crate) use assemble::put_frame;
pub use assemble::{
    MessageParts, compute_message_flags, encode_message, encode_message_into, encode_pre_encoded,
};
pub(crate) use assemble::{assemble_message, build_hash_frame_cbor};
pub use error::EncodeError;
pub(crate) use index::padded_len;
pub(crate) use index::{build_index_frame, compute_object_offsets};
pub use input::{ObjectParts, ObjectValues, PreEncoded};
pub(crate) use input::{check_metadata, check_values};
pub use options::{EncodeOptions, Placement};
pub use provenance::{Provenance, Stamp};
pub use stream::StreamingEncoder;
