//! The options of the documentation.

use std::num::NonZeroUsize;

use crate::encode::Placement;
use crate::options::ReadOptions;
use crate::pipeline::MaskMethod;
use crate::validate::{Depth, Level};

/// The implementation of a codec. This library has one of each, in Rust: both values mean the same here, and give the same
/// bytes as each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionBackend {
    /// A C library.
    #[default]
    Ffi,
    /// Rust.
    Pure,
}

/// How messages are decoded.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// Whether hashes are verified. They are by default.
    pub verify_hash: bool,
    /// Whether values have the byte order of this host; otherwise that of the descriptor.
    pub native_byte_order: bool,
    /// The implementation of codecs; it changes nothing.
    pub compression_backend: CompressionBackend,
    /// The number of threads; 0 is the default of the library.
    pub threads: u32,
    /// Whether NaN and infinities are restored; otherwise they are zeros.
    pub restore_non_finite: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            verify_hash: true,
            native_byte_order: true,
            compression_backend: CompressionBackend::default(),
            threads: 0,
            restore_non_finite: true,
        }
    }
}

impl From<&DecodeOptions> for ReadOptions {
    fn from(options: &DecodeOptions) -> Self {
        Self::new()
            .with_verify(options.verify_hash)
            .with_restore_non_finite(options.restore_non_finite)
            .with_threads(threads(options.threads))
    }
}

fn threads(threads: u32) -> Option<NonZeroUsize> {
    usize::try_from(threads).ok().and_then(NonZeroUsize::new)
}

/// The position of the hash list in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AggregateHashPolicy {
    /// Before the objects in a complete message, after them in a stream.
    #[default]
    Auto,
    /// Not written.
    None,
    /// Before the objects.
    Header,
    /// After the objects.
    Footer,
    /// Before and after them.
    Both,
}

/// How messages are encoded.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// Whether every frame has a hash.
    pub hashing: bool,
    /// The position of the hash list.
    pub aggregate_hash: AggregateHashPolicy,
    /// The implementation of codecs; it changes nothing.
    pub compression_backend: CompressionBackend,
    /// The number of threads; 0 is the default of the library.
    pub threads: u32,
    /// Store NaN in a mask. Otherwise NaN is an error.
    pub allow_nan: bool,
    /// Store infinities in masks. Otherwise they are an error.
    pub allow_inf: bool,
    /// The compression of NaN masks.
    pub nan_mask_method: MaskMethod,
    /// The compression of masks of positive infinity.
    pub pos_inf_mask_method: MaskMethod,
    /// The compression of masks of negative infinity.
    pub neg_inf_mask_method: MaskMethod,
    /// Masks up to this size in bytes are not compressed.
    pub small_mask_threshold_bytes: usize,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            hashing: true,
            aggregate_hash: AggregateHashPolicy::Auto,
            compression_backend: CompressionBackend::default(),
            threads: 0,
            allow_nan: false,
            allow_inf: false,
            nan_mask_method: MaskMethod::default(),
            pos_inf_mask_method: MaskMethod::default(),
            neg_inf_mask_method: MaskMethod::default(),
            small_mask_threshold_bytes: 128,
        }
    }
}

impl From<&EncodeOptions> for crate::EncodeOptions {
    fn from(options: &EncodeOptions) -> Self {
        Self {
            hash: options.hashing,
            hashes: match options.aggregate_hash {
                AggregateHashPolicy::Auto => Placement::Auto,
                AggregateHashPolicy::None => Placement::None,
                AggregateHashPolicy::Header => Placement::Header,
                AggregateHashPolicy::Footer => Placement::Footer,
                AggregateHashPolicy::Both => Placement::Both,
            },
            allow_nan: options.allow_nan,
            allow_inf: options.allow_inf,
            nan_mask: options.nan_mask_method,
            pos_inf_mask: options.pos_inf_mask_method,
            neg_inf_mask: options.neg_inf_mask_method,
            small_mask_threshold: options.small_mask_threshold_bytes as u64,
            threads: threads(options.threads),
            ..Self::new()
        }
    }
}

/// The depth of a validation.
#[derive(Clone, Copy, Debug)]
pub struct ValidateOptions {
    /// The highest level. Each level includes the previous ones.
    pub max_level: Level,
    /// Whether CBOR must be canonical.
    pub check_canonical: bool,
    /// Only structure and hashes; nothing is decoded.
    pub checksum_only: bool,
}

impl Default for ValidateOptions {
    fn default() -> Self {
        Self { max_level: Level::Integrity, check_canonical: false, checksum_only: false }
    }
}

impl From<&ValidateOptions> for crate::ValidateOptions {
    fn from(options: &ValidateOptions) -> Self {
        let depth = match options.max_level {
            _ if options.checksum_only => Depth::Checksum,
            Level::Structure => Depth::Quick,
            Level::Metadata | Level::Integrity => Depth::Default,
            Level::Fidelity => Depth::Full,
        };
        Self::new().with_depth(depth).with_canonical(options.check_canonical)
    }
}

/// How a remote file is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteScanOptions {
    /// Whether messages are found from both ends at once.
    pub bidirectional: bool,
}

impl Default for RemoteScanOptions {
    fn default() -> Self {
        Self { bidirectional: true }
    }
}
