//! The signal mask: signals are handled on the thread that waits for them.
#![cfg_attr(unix, expect(unsafe_code, reason = "the signal mask of a thread has no safe interface"))]

/// Blocks SIGINT and SIGTERM on this thread and on those that it starts later.
///
/// The system prefers the main thread. A signal would wait there for the end of a system call, and writing a gigabyte is
/// one call. Child processes start with an empty mask.
#[cfg(unix)]
pub(super) fn block_signals() {
    // SAFETY: the set is initialized by `sigemptyset` before it is used, and is only read afterwards.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        if libc::sigemptyset(set.as_mut_ptr()) != 0 {
            return;
        }
        let mut set = set.assume_init();
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// No such mask on this platform.
#[cfg(not(unix))]
pub(super) fn block_signals() {}
