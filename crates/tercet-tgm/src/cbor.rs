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
pub(crate) use decode::tagged;
pub(crate) use encode::{bignum, without_zeros};
pub use encode::{encode, encode_into};
pub(crate) use encode::{head, text};

/// The maximum nesting depth, including the outermost container. A tag counts as a container.
pub const MAX_DEPTH: usize = 256;

/// CBOR that cannot be read, or that is not canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CborError {
    /// The offset of the item, from 0; 0 for a value in memory.
    pub at: usize,
    /// The error.
    pub reason: CborErrorKind,
}

const _: () = assert!(size_of::<CborError>() <= 48);

impl CborError {
    pub(crate) const fn new(at: usize, reason: CborErrorKind) -> Self {
        Self { at, reason }
    }

    /// Whether the CBOR is not malformed, but exceeds a limit of the reader.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self.reason, CborErrorKind::Limit(_))
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
            reason @ (CborErrorKind::Duplicate(_) | CborErrorKind::Depth | CborErrorKind::Limit(_)) => {
                reason.fmt(f)
            }
            reason => write!(f, "{reason} at byte {} of the CBOR", self.at),
        }
    }
}

impl std::error::Error for CborError {}

/// The errors of CBOR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CborErrorKind {
    /// The bytes end before the item does.
    #[error("an item needs {need} bytes, but only {have} are available")]
    Truncated {
        /// The minimum number of bytes of the item.
        need: u64,
        /// The number of bytes available.
        have: u64,
    },
    /// A string that is not UTF-8.
    #[error("a string is not valid UTF-8")]
    NotUtf8,
    /// Containers nested too deeply.
    #[error("containers are nested more than {MAX_DEPTH} deep")]
    Depth,
    /// A simple value other than false, true, null and undefined.
    #[error("the simple value {0} has no meaning")]
    Simple(u8),
    /// An initial byte that CBOR reserves.
    #[error("the reserved initial byte 0x{0:02x}")]
    Reserved(u8),
    /// A break where no item of indefinite length can end.
    #[error("a break outside an indefinite-length item")]
    UnexpectedBreak,
    /// A chunk of an indefinite-length string that is not a definite-length string of the same type.
    #[error("a chunk of a string starts with 0x{0:02x}")]
    Chunk(u8),
    /// The item exceeds the limits of the caller.
    #[error("{0}")]
    Limit(LimitExceeded),
    /// The bytes are valid, but not in canonical form.
    #[error("not canonical: {0}")]
    NotCanonical(NonCanonical),
    /// A map in memory has a duplicate key. Holds the printed form of the key.
    #[error("the map key `{}` is a duplicate", tercet_core::escape::name(.0))]
    Duplicate(String),
    /// Bytes after the item.
    #[error("{0} trailing bytes")]
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
    /// A string, array or map has an indefinite length.
    #[error("an item has an indefinite length")]
    Indefinite,
    /// A map key sorts before the previous key.
    #[error("a map key sorts before the previous one")]
    KeyOrder,
    /// A map key equals the previous key.
    #[error("a map key is a duplicate")]
    DuplicateKey,
}
