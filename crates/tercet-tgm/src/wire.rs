//! Bytes ↔ preambles, frames, postambles. No I/O, no meaning of CBOR.
//!
//! [`walk::Walk`] is the one parser of a message: it is reported bytes and says what they are. A caller that has the bytes
//! (a stream, a file, a buffer) drives it.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub(crate) mod frame;
pub(crate) mod ids;
pub(crate) mod order;
pub(crate) mod postamble;
pub(crate) mod preamble;
pub(crate) mod walk;

/// The next multiple of 8, unless it overflows.
pub(crate) const fn align8(n: u64) -> Option<u64> {
    match n.checked_add(7) {
        Some(n) => Some(n & !7),
        None => None,
    }
}
