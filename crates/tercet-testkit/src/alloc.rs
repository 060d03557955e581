//! A counting allocator.

#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The system allocator with counters. A test binary installs it:
///
/// ```
/// use tercet_testkit::alloc::{CountingAlloc, measure};
///
/// #[global_allocator]
/// static ALLOC: CountingAlloc = CountingAlloc;
///
/// fn main() {
///     let (sum, stats) = measure(|| vec![1_u8; 1000].iter().map(|&x| u32::from(x)).sum::<u32>());
///     assert_eq!(sum, 1000);
///     assert!(stats.peak_bytes >= 1000);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAlloc;

/// The allocations of a measured closure, over all threads of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocStats {
    /// The peak of allocated bytes above the start.
    pub peak_bytes: usize,
    /// The largest single request, successful or not.
    pub largest_bytes: usize,
    /// The number of requests, reallocations included.
    pub count: usize,
    /// The bytes still allocated at the end above the start; 0 if fewer.
    pub kept_bytes: usize,
}

/// Serializes measurements: the counters are global.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread holds [`TURN`] already.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// A guard that excludes measurements of other tests; see [`exclusive`].
#[derive(Debug)]
pub struct MeasurementGuard {
    /// `None` for a nested guard of the same thread.
    turn: Option<MutexGuard<'static, ()>>,
}

impl Drop for MeasurementGuard {
    fn drop(&mut self) {
        if self.turn.is_some() {
            HAS_TURN.set(false);
        }
    }
}

/// Waits until no other test measures and excludes measurements until the guard is dropped. A test that allocates
/// much outside [`measure`] holds it from its first line.
pub fn exclusive() -> MeasurementGuard {
    if HAS_TURN.replace(true) {
        return MeasurementGuard { turn: None };
    }
    MeasurementGuard { turn: Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)) }
}

/// Runs `f` and returns its result and its allocations.
///
/// Measurements wait for each other and for [`exclusive`]. Other tests of the same binary are counted too, so tests
/// that measure need their own binary.
///
/// # Panics
///
/// When [`CountingAlloc`] is not the global allocator.
pub fn measure<R>(f: impl FnOnce() -> R) -> (R, AllocStats) {
    let _exclusive = exclusive();

    let before = COUNT.load(Relaxed);
    drop(black_box(Box::new(0_u8)));
    assert!(COUNT.load(Relaxed) > before, "CountingAlloc is not the #[global_allocator] of this binary");

    let start = CURRENT.load(Relaxed);
    PEAK.store(start, Relaxed);
    LARGEST.store(0, Relaxed);
    COUNT.store(0, Relaxed);
    let result = f();
    let stats = AllocStats {
        peak_bytes: PEAK.load(Relaxed).saturating_sub(start),
        largest_bytes: LARGEST.load(Relaxed),
        count: COUNT.load(Relaxed),
        kept_bytes: CURRENT.load(Relaxed).saturating_sub(start),
    };
    (result, stats)
}

fn count_request(bytes: usize) {
    COUNT.fetch_add(1, Relaxed);
    LARGEST.fetch_max(bytes, Relaxed);
}

fn count_grow(bytes: usize) {
    let now = CURRENT.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    PEAK.fetch_max(now, Relaxed);
}

fn count_shrink(bytes: usize) {
    CURRENT.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call is forwarded to `System` and its result returned unchanged; the counters are atomics that
// allocate nothing.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_request(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`, which is that of `System::alloc`.
        let pointer = unsafe { System.alloc(layout) };
        if !pointer.is_null() {
            count_grow(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_request(layout.size());
        // SAFETY: the caller upholds the contract of `alloc_zeroed`, which is that of `System::alloc_zeroed`.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        if !pointer.is_null() {
            count_grow(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count_shrink(layout.size());
        // SAFETY: `pointer` came from `System` with this layout, because all other methods return what it gave.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_request(new_size);
        // SAFETY: as for `dealloc`; the caller upholds the rest of the contract.
        let moved = unsafe { System.realloc(pointer, layout, new_size) };
        if !moved.is_null() {
            count_shrink(layout.size());
            count_grow(new_size);
        }
        moved
    }
}
