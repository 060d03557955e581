//! Options of reading.

use std::num::NonZeroUsize;

use tercet_core::Limits;
use tercet_core::source::Access;

/// How messages are read. The default verifies everything.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct ReadOptions {
    /// Verification of hashes, limits, file access and threads.
    pub common: tercet_core::ReadOptions,
    /// Reject messages whose index, hash lists, flags or postamble contradict their frames.
    pub strict: bool,
    /// Skip frames of types that version 3 does not define. By default they are an error, as in the reference implementation.
    pub skip_unknown_frames: bool,
    /// Restore non-finite values from masks. Otherwise they are zeros.
    pub restore_non_finite: bool,
    /// Read messages after a [gap](crate::Gap) by number. A message may be lost in a gap, which shifts the numbers.
    pub allow_gaps: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        tercet_core::ReadOptions::new().into()
    }
}

/// The options that all formats share; the others have their defaults.
impl From<tercet_core::ReadOptions> for ReadOptions {
    fn from(common: tercet_core::ReadOptions) -> Self {
        Self { common, strict: true, skip_unknown_frames: false, restore_non_finite: true, allow_gaps: false }
    }
}

impl ReadOptions {
    /// Verifies everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether hashes are verified.
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.common.verify = verify;
        self
    }

    /// Sets whether contradictions are rejected.
    pub fn with_strict(mut self, refuse: bool) -> Self {
        self.strict = refuse;
        self
    }

    /// Sets whether frames of unknown types are skipped.
    pub fn with_skip_unknown_frames(mut self, skip: bool) -> Self {
        self.skip_unknown_frames = skip;
        self
    }

    /// Sets whether messages after a gap are read by number.
    pub fn with_allow_gaps(mut self, allow: bool) -> Self {
        self.allow_gaps = allow;
        self
    }

    /// Sets whether non-finite values are restored.
    pub fn with_restore_non_finite(mut self, restore: bool) -> Self {
        self.restore_non_finite = restore;
        self
    }

    /// Sets how files on this machine are read.
    pub fn with_access(mut self, access: Access) -> Self {
        self.common.access = access;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.common.limits = limits;
        self
    }

    /// Sets the number of threads.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.common.threads = threads;
        self
    }
}
