//! CBOR (RFC 8949): a lenient reader, a canonical writer and checks of the canonical form.

use tercet_core::limits::LimitExceeded;

mod canonical;
mod decode;
mod encode;
mod head;
#[cfg(test)]
mod tests;

pub(crate) use canonical::check_writable;
pub use canonical::{canonicalize, key_order, verify_canonical_cbor};
pub use decode::decode;
#[cfg(feature = "ciborium")]
pub(crate) use decode::tagged;
#[cfg(feature = "ciborium")]
pub(crate) use encode::{bignum, without_zeros};
pub use encode::{encode, encode_into};
pub(crate) use encode::{head, text};

/// The most containers inside each other, the outermost included. A tag counts as one.
pub const MAX_DEPTH: usize = 256;

/// CBOR that cannot be read, or that is not canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CborError {
    /// The byte at which the item starts, from 0. 0 when the item is a value in memory.
    pub at: usize,
    /// What is wrong with it.
    pub reason: CborErrorKind,
}

const _: () = assert!(size_of::<CborError>() <= 48);

impl CborError {
    pub(crate) const fn new(at: usize, reason: CborErrorKind) -> Self {
        Self { at, reason }
    }
}

impl From<Box<CborError>> for CborError {
    fn from(error: Box<CborError>) -> Self {
        *error
    }
}

impl std::fmt::Display for CborError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reason {
            reason @ (CborErrorKind::Duplicate(_) | CborErrorKind::Depth) => reason.fmt(f),
            reason => write!(f, "{reason} at byte {} of the CBOR", self.at),
        }
    }
}

impl std::error::Error for CborError {}

/// The ways CBOR can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CborErrorKind {
    /// The bytes end before the item does.
    #[error("an item needs {need} bytes, but only {have} are there")]
    Truncated {
        /// The fewest bytes that can follow the start of the item.
        need: u64,
        /// Bytes that do.
        have: u64,
    },
    /// A text that is not UTF-8.
    #[error("a string is not valid UTF-8")]
    NotUtf8,
    /// Containers too deep inside each other.
    #[error("more than {MAX_DEPTH} containers inside each other")]
    Depth,
    /// A simple value other than false, true, null and undefined.
    #[error("the simple value {0} has no meaning")]
    Simple(u8),
    /// An initial byte that CBOR reserves.
    #[error("the reserved initial byte 0x{0:02x}")]
    Reserved(u8),
    /// A break where no item of indefinite length can end.
    #[error("a break where nothing can end")]
    UnexpectedBreak,
    /// A part of a string of indefinite length that is not a definite string of the same type.
    #[error("a part of a string starts with 0x{0:02x}")]
    Chunk(u8),
    /// The item is larger than the caller allows.
    #[error("{0}")]
    Limit(LimitExceeded),
    /// The bytes are valid, but not in canonical form.
    #[error("not canonical: {0}")]
    NotCanonical(NonCanonical),
    /// A map in memory has a key twice. Holds the printed form of the key.
    #[error("the map key `{}` occurs twice", tercet_core::escape::name(.0))]
    Duplicate(String),
    /// Bytes after the item.
    #[error("{0} bytes left over")]
    Leftover(usize),
}

/// The rules of RFC 8949, section 4.2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NonCanonical {
    /// An integer, a length or a tag has a shorter form.
    #[error("an integer, length or tag has a shorter form")]
    LongArgument,
    /// A float has a shorter form, or is a NaN other than `f97e00`.
    #[error("a float has a shorter form")]
    LongFloat,
    /// A bignum starts with a zero byte or fits into an integer.
    #[error("a bignum has a shorter form")]
    LongBignum,
    /// A string, array or map has no definite length.
    #[error("a length is indefinite")]
    Indefinite,
    /// A map key sorts before the key in front of it.
    #[error("a map key sorts before the one in front of it")]
    KeyOrder,
    /// A map key equals the key in front of it.
    #[error("a map key occurs twice")]
    DuplicateKey,
}
