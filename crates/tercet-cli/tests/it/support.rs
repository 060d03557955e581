//! What the suites share.

pub(crate) mod folder;
#[cfg(unix)]
pub(crate) mod guide;
#[cfg(unix)]
pub(crate) mod killed;
