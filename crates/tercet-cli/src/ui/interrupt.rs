//! Ctrl-C: asks the work to stop, so that it can leave every file whole.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Starts to listen. A second interrupt ends the process, for work that does not look.
pub(crate) fn watch_for_interrupts() {
    let heard = || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) || AT_ONCE.load(Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    // Without a handler an interrupt ends the process, which is how it would be anyway.
    let _ = ctrlc::set_handler(heard);
}

/// Whether the user asked to stop.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Does work that may wait for ever (a pipe) and leaves nothing behind: an interrupt ends the process at once.
pub(crate) fn exit_at_once_if_interrupted<T>(work: impl FnOnce() -> T) -> T {
    AT_ONCE.store(true, Ordering::SeqCst);
    if is_interrupted() {
        std::process::exit(130);
    }
    let result = work();
    AT_ONCE.store(false, Ordering::SeqCst);
    result
}
