//! Options that every format shares.

use std::num::NonZeroUsize;

use crate::Limits;
use crate::source::Access;

/// How a file is read: verification, limits, file access, threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Compare stored checksums with the bytes that are read.
    pub verify: bool,
    /// The maximum sizes accepted.
    pub limits: Limits,
    /// Positional reads or a memory map, for files on this machine.
    pub access: Access,
    /// The number of threads, at most 4 per core; `None` is the current rayon pool, by default one thread per core.
    /// See [`threads::install`](crate::threads::install).
    pub threads: Option<NonZeroUsize>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { verify: true, limits: Limits::default(), access: Access::default(), threads: None }
    }
}

impl ReadOptions {
    /// Verified positional reads with default limits on all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether checksums are compared.
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how files on this machine are read.
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the number of threads.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }
}

/// How thoroughly a file is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Decode every value, in addition to structure and checksums.
    pub deep: bool,
    /// The maximum sizes accepted.
    pub limits: Limits,
    /// The number of threads, as in [`ReadOptions::threads`].
    pub threads: Option<NonZeroUsize>,
}

impl VerifyOptions {
    /// Structure and checksums, with default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether every value is decoded.
    pub fn with_deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of threads.
    pub fn with_threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }
}
