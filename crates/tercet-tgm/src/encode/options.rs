//! Options of encoding.

use std::num::NonZeroUsize;

use super::error::EncodeError;
use super::provenance::Provenance;
use crate::pipeline::MaskMethod;

/// The position of an index or a hash list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
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

impl Placement {
    /// Whether it is before and after the objects of a complete message.
    pub(crate) fn in_one_piece(self) -> (bool, bool) {
        match self {
            Self::Auto | Self::Header => (true, false),
            Self::None => (false, false),
            Self::Footer => (false, true),
            Self::Both => (true, true),
        }
    }

    /// Whether it is after the objects of a stream.
    pub(super) fn in_a_stream(self, what: &'static str) -> Result<bool, EncodeError> {
        match self {
            Self::Auto | Self::Footer => Ok(true),
            Self::None => Ok(false),
            Self::Header | Self::Both => Err(EncodeError::Placement { what }),
        }
    }
}

/// How messages are encoded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// Whether every frame has a hash.
    pub hash: bool,
    /// The position of the hash list. Not written without hashes.
    pub hashes: Placement,
    /// The position of the index.
    pub index: Placement,
    /// Whether the message records when and by which program it was written.
    pub provenance: Provenance,
    /// Store NaN in a mask. Otherwise NaN is an error.
    pub allow_nan: bool,
    /// Store infinities in masks. Otherwise they are an error.
    pub allow_inf: bool,
    /// The compression of NaN masks.
    pub nan_mask: MaskMethod,
    /// The compression of masks of positive infinity.
    pub pos_inf_mask: MaskMethod,
    /// The compression of masks of negative infinity.
    pub neg_inf_mask: MaskMethod,
    /// Masks up to this size in bytes are not compressed.
    pub small_mask_threshold: u64,
    /// The maximum absolute error of decoded values. An object without a pipeline gets the smallest one within the bound;
    /// an object whose pipeline exceeds the bound is rejected.
    pub max_error: Option<f64>,
    /// The number of threads; see [`tercet_core::ReadOptions::threads`].
    pub threads: Option<NonZeroUsize>,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            hash: true,
            hashes: Placement::Auto,
            index: Placement::Auto,
            provenance: Provenance::default(),
            allow_nan: false,
            allow_inf: false,
            nan_mask: MaskMethod::Auto,
            pos_inf_mask: MaskMethod::Auto,
            neg_inf_mask: MaskMethod::Auto,
            small_mask_threshold: 128,
            max_error: None,
            threads: None,
        }
    }
}

impl EncodeOptions {
    /// Hashes, index and hash list in their default positions, provenance recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether frames have hashes.
    pub fn with_hash(mut self, hash: bool) -> Self {
        self.hash = hash;
        self
    }

    /// Sets the position of the hash list.
    pub fn with_hashes(mut self, placement: Placement) -> Self {
        self.hashes = placement;
        self
    }

    /// Sets the position of the index.
    pub fn with_index(mut self, placement: Placement) -> Self {
        self.index = placement;
        self
    }

    /// Sets the provenance. `None` and a fixed stamp make the bytes reproducible.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets whether NaN and infinities are stored.
    pub fn with_allowed(mut self, nan: bool, inf: bool) -> Self {
        self.allow_nan = nan;
        self.allow_inf = inf;
        self
    }

    /// Sets the compression of all masks.
    pub fn with_masks(mut self, method: MaskMethod) -> Self {
        self.nan_mask = method;
        self.pos_inf_mask = method;
        self.neg_inf_mask = method;
        self
    }

    /// Sets the maximum error; see [`precision`](crate::precision).
    pub fn with_max_error(mut self, bound: Option<f64>) -> Self {
        self.max_error = bound;
        self
    }

    /// Sets the size up to which masks are not compressed.
    pub fn with_small_mask_threshold(mut self, bytes: u64) -> Self {
        self.small_mask_threshold = bytes;
        self
    }

    /// Sets the number of threads. The encoded bytes do not depend on it.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }
}
