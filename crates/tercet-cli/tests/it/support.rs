//! Support code shared by the suites.

#[cfg(unix)]
pub(crate) mod guide;
#[cfg(unix)]
pub(crate) mod killed;
pub(crate) mod test_dir;
