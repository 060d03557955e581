//! How messages are written.

use super::error::EncodeError;
use super::provenance::Provenance;
use crate::pipeline::MaskMethod;

/// Where an index or a hash list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Before the objects in a message of one piece, after them in a stream.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// Before the objects.
    Header,
    /// After the objects.
    Footer,
    /// Before and after them.
    Both,
}

impl Placement {
    /// Whether it is before and after the objects of a message in one piece.
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

/// How messages are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// Whether every frame carries its hash.
    pub hash: bool,
    /// Where the list of hashes is. Without hashes there is none.
    pub hashes: Placement,
    /// Where the index is.
    pub index: Placement,
    /// Whether the message says when and by what it was written.
    pub provenance: Provenance,
    /// Keep NaN, in masks beside the values. Otherwise the first one is an error.
    pub allow_nan: bool,
    /// Keep infinities, in masks beside the values. Otherwise the first one is an error.
    pub allow_inf: bool,
    /// How masks of NaN are compressed.
    pub nan_mask: MaskMethod,
    /// How masks of positive infinities are compressed.
    pub pos_inf_mask: MaskMethod,
    /// How masks of negative infinities are compressed.
    pub neg_inf_mask: MaskMethod,
    /// Masks of up to this many bytes are not compressed.
    pub small_mask_threshold: u64,
    /// How far a decoded value may be from the original. Objects whose descriptor asks for no pipeline get the smallest
    /// one that holds it; the others are refused if they do not hold it.
    pub max_error: Option<f64>,
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
            nan_mask: MaskMethod::default(),
            pos_inf_mask: MaskMethod::default(),
            neg_inf_mask: MaskMethod::default(),
            small_mask_threshold: 128,
            max_error: None,
        }
    }
}

impl EncodeOptions {
    /// Hashes on, index and hash list where readers look first, provenance recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes hashes, or none.
    pub fn with_hash(mut self, hash: bool) -> Self {
        self.hash = hash;
        self
    }

    /// Puts the list of hashes there.
    pub fn with_hashes(mut self, place: Placement) -> Self {
        self.hashes = place;
        self
    }

    /// Puts the index there.
    pub fn with_index(mut self, place: Placement) -> Self {
        self.index = place;
        self
    }

    /// Records provenance, leaves it out, or writes what is given: the last two make the bytes reproducible.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Keeps NaN and infinities, or refuses them.
    pub fn with_allowed(mut self, nan: bool, inf: bool) -> Self {
        self.allow_nan = nan;
        self.allow_inf = inf;
        self
    }

    /// Compresses every mask in this way.
    pub fn with_masks(mut self, method: MaskMethod) -> Self {
        self.nan_mask = method;
        self.pos_inf_mask = method;
        self.neg_inf_mask = method;
        self
    }

    /// Lets decoded values be so far from the originals, and no farther; see [`precision`](crate::precision).
    pub fn with_max_error(mut self, bound: Option<f64>) -> Self {
        self.max_error = bound;
        self
    }

    /// Does not compress masks of up to this many bytes.
    pub fn with_small_mask_threshold(mut self, bytes: u64) -> Self {
        self.small_mask_threshold = bytes;
        self
    }
}
