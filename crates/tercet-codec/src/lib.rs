//! Codecs: byte transforms without I/O, independent of files and containers.
//!
//! Every decoder is given the exact output length, so that a decompression bomb is rejected before it is expanded. Large
//! inputs are processed in parallel on the current rayon pool; the output never depends on the number of threads.
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

/// Codec error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// The codec is not part of this build.
    #[error("{codec} is not part of this build (cargo feature `{feature}`)")]
    NotBuilt {
        /// The name of the codec.
        codec: &'static str,
        /// The cargo feature that enables it.
        feature: &'static str,
    },
    /// The library cannot compress.
    #[error("{codec} cannot compress: {detail}")]
    Encode {
        /// The name of the codec.
        codec: &'static str,
        /// The message of the library.
        detail: String,
    },
    /// The bytes are not a valid stream of this codec.
    #[error("{codec} cannot decode: {detail}")]
    Decode {
        /// The name of the codec.
        codec: &'static str,
        /// The message of the library.
        detail: String,
    },
    /// An invalid codec parameter.
    #[error("invalid {codec} {name} {found}: {allowed}")]
    Parameter {
        /// The name of the codec.
        codec: &'static str,
        /// The name of the parameter.
        name: &'static str,
        /// The value given.
        found: String,
        /// The valid values.
        allowed: &'static str,
    },
    /// Out of memory.
    #[error("{codec}: out of memory ({bytes} bytes)")]
    OutOfMemory {
        /// The name of the codec.
        codec: &'static str,
        /// Number of bytes requested.
        bytes: u64,
    },
    /// The stream decodes to another length.
    #[error("{codec} decodes to {found} bytes instead of {expected}")]
    WrongLength {
        /// The name of the codec.
        codec: &'static str,
        /// The declared length.
        expected: u64,
        /// The decoded length.
        found: u64,
    },
}

impl CodecError {
    /// Whether the codec is missing in this build.
    pub fn is_not_built(&self) -> bool {
        matches!(self, Self::NotBuilt { .. })
    }
}
