//! Ctrl-C: cancels the current work, which then cleans up its temporary files.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Installs the handler. A second interrupt ends the process at once.
pub(crate) fn watch_for_interrupts() {
    let heard = || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) || AT_ONCE.load(Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    // Without a handler an interrupt ends the process, which is the default.
    let _ = ctrlc::set_handler(heard);
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Runs work that may block forever (reading a pipe) and needs no cleanup: an interrupt ends the process at once.
pub(crate) fn exit_at_once_if_interrupted<T>(work: impl FnOnce() -> T) -> T {
    AT_ONCE.store(true, Ordering::SeqCst);
    if is_interrupted() {
        std::process::exit(130);
    }
    let result = work();
    AT_ONCE.store(false, Ordering::SeqCst);
    result
}
