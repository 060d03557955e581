//! How messages are read.

use tercet_core::Limits;
use tercet_core::source::Access;

/// What happens to payloads that SZ3 compressed. The library that decodes them can be crashed by their bytes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Sz3Decoding {
    /// They are not decoded.
    #[default]
    Reject,
    /// They are decoded in this process.
    InProcess,
    /// They are decoded by this function, in a process of its own: payload in, exactly this many bytes out, or why not.
    External(fn(&[u8], &mut [u8]) -> Result<(), String>),
}

/// How messages are read. The default checks everything that can be checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ReadOptions {
    /// Compare the hash of every frame that is read.
    pub verify: bool,
    /// Refuse messages whose index, hash lists, flags or postamble contradict their frames.
    pub strict: bool,
    /// Pass over frames of types that version 3 does not define. The reference refuses them, and so does the default.
    pub skip_unknown_frames: bool,
    /// Put values back that are not finite. Without it there are zeros in their places.
    pub restore_non_finite: bool,
    /// How files on disk are read: by positional reads, or mapped into memory.
    pub access: Access,
    /// What happens to payloads that SZ3 compressed.
    pub sz3: Sz3Decoding,
    /// The largest sizes that are believed.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            verify: true,
            strict: true,
            skip_unknown_frames: false,
            restore_non_finite: true,
            access: Access::Pread,
            sz3: Sz3Decoding::Reject,
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

    /// Refuses contradictions, or passes over them.
    pub fn with_strict(mut self, refuse: bool) -> Self {
        self.strict = refuse;
        self
    }

    /// Passes over frames of unknown types.
    pub fn with_skip_unknown_frames(mut self, skip: bool) -> Self {
        self.skip_unknown_frames = skip;
        self
    }

    /// Puts values back that are not finite, or leaves zeros in their places.
    pub fn with_restore_non_finite(mut self, restore: bool) -> Self {
        self.restore_non_finite = restore;
        self
    }

    /// Sets how files on disk are read.
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Decodes SZ3 payloads in this process, or refuses them. Damaged ones can crash the process.
    pub fn with_sz3_in_process(mut self, trust: bool) -> Self {
        self.sz3 = if trust { Sz3Decoding::InProcess } else { Sz3Decoding::Reject };
        self
    }

    /// Has SZ3 payloads decoded by a function.
    pub fn with_sz3(mut self, sz3: Sz3Decoding) -> Self {
        self.sz3 = sz3;
        self
    }

    /// Believes sizes up to these.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
