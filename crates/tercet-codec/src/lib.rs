//! Pure transforms of bytes: no files, no containers.
//!
//! Every decoder is told the exact length it must produce, so that a hostile input is refused before it inflates. Work
//! that can be divided runs on the current rayon pool; the bytes never depend on the number of threads.
//!
//! ```
//! # #[cfg(feature = "zstd")] {
//! use tercet_codec::bytes::zstd;
//!
//! let mut stored = Vec::new();
//! zstd::encode(b"aaaaaaaaaaaaaaaa", 3, &mut stored).unwrap();
//! let mut raw = [0; 16];
//! zstd::decode(&stored, &mut raw).unwrap();
//! assert_eq!(&raw, b"aaaaaaaaaaaaaaaa");
//! # }
//! ```

pub mod bits;
pub mod bytes;
pub mod finite;
pub mod ints;
pub mod pack;
pub mod shuffle;
pub mod strings;
pub mod varint;

use thiserror::Error;

/// A transform that could not be done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// The codec is not part of this build.
    #[error("{codec} is not part of this build (cargo feature `{feature}`)")]
    NotBuilt {
        /// The codec's name.
        codec: &'static str,
        /// The cargo feature that brings it.
        feature: &'static str,
    },
    /// The library could not compress.
    #[error("{codec} cannot compress: {detail}")]
    Encode {
        /// The codec's name.
        codec: &'static str,
        /// The library's words.
        detail: String,
    },
    /// The bytes are not a stream of this codec.
    #[error("{codec} cannot decode: {detail}")]
    Decode {
        /// The codec's name.
        codec: &'static str,
        /// The library's words.
        detail: String,
    },
    /// A parameter that the codec does not take.
    #[error("{codec} does not take {name} {found}: {allowed}")]
    Parameter {
        /// The codec's name.
        codec: &'static str,
        /// What the parameter is, in words.
        name: &'static str,
        /// What was given.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// Memory could not be had.
    #[error("{codec} cannot have {bytes} bytes of memory")]
    OutOfMemory {
        /// The codec's name.
        codec: &'static str,
        /// The bytes asked for.
        bytes: u64,
    },
    /// The stream decodes to another number of bytes.
    #[error("{codec} decodes to {found} bytes instead of {expected}")]
    WrongLength {
        /// The codec's name.
        codec: &'static str,
        /// The length declared.
        expected: u64,
        /// The length decoded.
        found: u64,
    },
}

impl CodecError {
    /// Whether another build could do it.
    pub fn is_not_built(&self) -> bool {
        matches!(self, Self::NotBuilt { .. })
    }
}
