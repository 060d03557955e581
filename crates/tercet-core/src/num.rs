//! Conversions between file sizes and memory sizes; counts in messages.

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

/// A count with its noun, in the plural unless it is 1.
///
/// ```
/// use tercet_core::num::counted;
///
/// assert_eq!(counted(1, "byte"), "1 byte");
/// assert_eq!(counted(0, "more message"), "0 more messages");
/// ```
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
