//! Conversions between file sizes and memory sizes.

/// A file size as a memory size, or `usize::MAX` where it does not fit this platform.
///
/// For allocations: one of `usize::MAX` bytes fails, so the caller needs no second error path.
///
/// ```
/// assert_eq!(tercet_core::num::saturating_usize(5), 5);
/// ```
pub fn saturating_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
