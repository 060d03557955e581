//! Files that may not grow: an error message, not the end of the process.
#![cfg_attr(
    unix,
    expect(unsafe_code, reason = "ignoring a signal has no safe interface; the one place it is done")
)]

/// Turns the signal that a write past `ulimit -f` raises into an ordinary error of that write.
#[cfg(unix)]
pub(crate) fn survive_file_limits() {
    // SAFETY: ignoring a signal installs no handler, so no code runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// There is no such signal here.
#[cfg(not(unix))]
pub(crate) fn survive_file_limits() {}
