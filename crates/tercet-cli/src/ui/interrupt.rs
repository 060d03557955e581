//! SIGINT, SIGTERM and SIGHUP: cancel the current work, which then removes its temporary files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The exit code after a signal.
pub(crate) const EXIT_CODE: u8 = 130;

/// Time for the current work to notice the signal and clean up. Work that does not look for signals ends with the
/// process; its temporary files are removed.
const GRACE: Duration = Duration::from_secs(1);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static AT_ONCE: AtomicBool = AtomicBool::new(false);
static HAS_TIME: AtomicBool = AtomicBool::new(false);

/// Installs the handler. The process ends at most a second after the first signal, and at once after a second one.
pub(crate) fn watch_for_interrupts() {
    super::signals::watch(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            exit();
        }
        if AT_ONCE.load(Ordering::SeqCst) {
            exit_with_note();
        }
        if HAS_TIME.load(Ordering::SeqCst) {
            return;
        }
        // The handler returns, so that a second signal is seen.
        let end = || {
            thread::sleep(GRACE);
            exit_with_note();
        };
        if thread::Builder::new().spawn(end).is_err() {
            end();
        }
    });
}

fn exit_with_note() -> ! {
    super::print_note("interrupted");
    exit()
}

fn exit() -> ! {
    let _held = tercet::core::publish::remove_unfinished();
    std::process::exit(EXIT_CODE.into())
}

/// Whether a signal has arrived.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Lets the current work take its time after the first signal, which it sees by [`is_interrupted`]. A second one ends the process.
pub(crate) fn leave_time_to_end() {
    HAS_TIME.store(true, Ordering::SeqCst);
}

/// Runs work that may block forever (reading a pipe) and needs no cleanup: a signal ends the process at once.
pub(crate) fn exit_at_once_if_interrupted<T>(work: impl FnOnce() -> T) -> T {
    AT_ONCE.store(true, Ordering::SeqCst);
    if is_interrupted() {
        exit_with_note();
    }
    let result = work();
    AT_ONCE.store(false, Ordering::SeqCst);
    result
}
