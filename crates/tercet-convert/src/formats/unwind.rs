//! Panics of other libraries as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;
use crate::arrays::source::malformed;

/// Runs a reader of another library. A panic becomes an error; the panic hook is not changed.
pub(crate) fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "unknown".to_owned());
        Err(malformed(name, format!("the reader of this format failed: {text}")))
    })
}
