//! Panics of the Arrow libraries as what they are: damaged input.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic on damaged bytes; none if it did. Nothing is printed then: the caller has an error to tell.
///
/// The hook of the process stays in charge of every other panic, on this thread and on others.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Option<R> {
    static HOOK: Once = Once::new();
    // The hook cannot be changed by a thread that panics.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = take_hook();
            set_hook(Box::new(move |panic| {
                if !IS_CAUGHT.try_with(Cell::get).unwrap_or(false) {
                    before(panic);
                }
            }));
        });
    }
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_told_only_where_nobody_catches_them() {
        thread_local! {
            static TOLD: Cell<u32> = const { Cell::new(0) };
        }
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if std::thread::current().name() == Some("told here") {
                TOLD.set(TOLD.get() + 1);
            } else {
                before(panic);
            }
        }));
        let thread = std::thread::Builder::new().name("told here".to_owned()).spawn(|| {
            assert_eq!(catch_panic(|| 7), Some(7));
            assert_eq!(catch_panic(|| -> u32 { panic!("hidden") }), None);
            assert_eq!(catch_panic(|| catch_panic(|| -> u32 { panic!("hidden") })), Some(None));
            assert_eq!(TOLD.get(), 0);
            assert!(catch_unwind(|| panic!("told")).is_err());
            assert_eq!(TOLD.get(), 1);
        });
        thread.unwrap().join().unwrap();
    }
}
