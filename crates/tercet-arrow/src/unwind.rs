//! Panics of the Arrow crates on damaged input, turned into errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call into the Arrow crates; `None` if it panicked.
///
/// A last resort: the checks before each call reject the inputs that are known to panic. The panic hook of the process is not
/// touched, so an unknown panic also prints the message of that hook.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none() {
        assert_eq!(catch_panic(|| 7), Some(7));
        // `resume_unwind` does not call the panic hook.
        assert_eq!(catch_panic(|| -> u32 { std::panic::resume_unwind(Box::new("damaged")) }), None);
    }
}
