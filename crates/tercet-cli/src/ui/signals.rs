//! Signals that end the process: SIGINT, SIGTERM and SIGHUP.
#![cfg_attr(unix, expect(unsafe_code, reason = "the disposition of a signal has no safe interface"))]

#[cfg(unix)]
use std::thread;

#[cfg(unix)]
use nix::sys::signal::{SigSet, Signal};

/// Calls `handle` for each signal, on a thread of its own. A signal that is ignored stays so, as with nohup(1).
///
/// The signals are blocked on this thread and on those that it starts later. The system prefers the main thread, where a
/// signal would wait for the end of a system call, and writing a gigabyte is one call. Child processes start with an
/// empty mask. Without a thread, the default action ends the process.
#[cfg(unix)]
pub(super) fn watch(mut handle: impl FnMut() + Send + 'static) {
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let set: SigSet = signals.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    if set.iter().next().is_none() || set.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while set.wait().is_ok() {
            handle();
        }
    };
    if thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        let _ = set.thread_unblock();
    }
}

/// Whether the process was started with this signal ignored.
#[cfg(unix)]
fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action nothing changes; the current one is written to `action`, for which zeros are valid.
    let action = unsafe {
        libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Calls `handle` for each Ctrl-C.
#[cfg(not(unix))]
pub(super) fn watch(handle: impl FnMut() + Send + 'static) {
    let _ = ctrlc::set_handler(handle);
}
