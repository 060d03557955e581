//! How messages are written.

use super::error::EncodeError;
use super::provenance::Provenance;

/// Where an index or a hash list stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Before the objects in a message of one piece, behind them in a stream.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// Before the objects.
    Header,
    /// Behind the objects.
    Footer,
    /// Before and behind them.
    Both,
}

impl Placement {
    /// Whether it stands before and behind the objects of a message in one piece.
    pub(super) fn in_one_piece(self) -> (bool, bool) {
        match self {
            Self::Auto | Self::Header => (true, false),
            Self::None => (false, false),
            Self::Footer => (false, true),
            Self::Both => (true, true),
        }
    }

    /// Whether it stands behind the objects of a stream.
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
    /// Where the list of hashes stands. Without hashes there is none.
    pub hashes: Placement,
    /// Where the index stands.
    pub index: Placement,
    /// Whether the message says when and by what it was written.
    pub provenance: Provenance,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            hash: true,
            hashes: Placement::Auto,
            index: Placement::Auto,
            provenance: Provenance::default(),
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
}
