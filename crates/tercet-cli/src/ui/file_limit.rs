//! `ulimit -f`: turns SIGXFSZ into an I/O error.
#![cfg_attr(
    unix,
    expect(unsafe_code, reason = "ignoring a signal has no safe interface; the one place it is done")
)]

/// Ignores SIGXFSZ, so that a write past `ulimit -f` fails with an error instead of ending the process.
#[cfg(unix)]
pub(crate) fn survive_file_limits() {
    // SAFETY: ignoring a signal installs no handler, so no code runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// No such signal on this platform.
#[cfg(not(unix))]
pub(crate) fn survive_file_limits() {}
