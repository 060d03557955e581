//! The byte layout of preambles, frames and postambles. No I/O, no CBOR.
//!
//! [`walk::Walk`] is the only parser of messages. It does no I/O: a driver passes it the bytes of a stream, a file or
//! a buffer.
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
