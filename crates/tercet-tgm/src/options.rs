//! How messages are read.

use tercet_core::Limits;

/// How messages are read. The default checks everything that can be checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Compare the hash of every frame that is read.
    pub verify: bool,
    /// Refuse messages whose index, hash lists, flags or postamble contradict their frames.
    pub refuse_contradictions: bool,
    /// Pass over frames of types that version 3 does not define. The reference refuses them, and so does the default.
    pub skip_unknown_frames: bool,
    /// The largest sizes that are believed.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            verify: true,
            refuse_contradictions: true,
            skip_unknown_frames: false,
            limits: Limits::default(),
        }
    }
}

impl ReadOptions {
    /// Checks everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares hashes, or trusts the bytes.
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Neither compares hashes nor refuses contradictions: for what can be had of a damaged file.
    pub fn with_ignore_checksums(mut self, ignore: bool) -> Self {
        self.verify = !ignore;
        self.refuse_contradictions = !ignore;
        self
    }

    /// Refuses contradictions, or passes over them.
    pub fn with_refuse_contradictions(mut self, refuse: bool) -> Self {
        self.refuse_contradictions = refuse;
        self
    }

    /// Passes over frames of unknown types.
    pub fn with_skip_unknown_frames(mut self, skip: bool) -> Self {
        self.skip_unknown_frames = skip;
        self
    }

    /// Believes sizes up to these.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
