//! Times of the parts of a search.

use std::time::Duration;

/// Measures consecutive parts.
#[derive(Debug)]
pub(super) struct Clock {
    #[cfg(not(target_arch = "wasm32"))]
    last: std::time::Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            #[cfg(not(target_arch = "wasm32"))]
            last: std::time::Instant::now(),
        }
    }

    /// The time since the last call. There is no clock on wasm32.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn lap(&mut self) -> Duration {
        let now = std::time::Instant::now();
        let lap = now - self.last;
        self.last = now;
        lap
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "as on other targets")]
    pub(super) fn lap(&mut self) -> Duration {
        Duration::ZERO
    }
}
