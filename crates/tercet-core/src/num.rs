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

/// A number with commas between thousands: `11,344`.
///
/// ```
/// use tercet_core::num::grouped;
///
/// assert_eq!([grouped(0), grouped(760), grouped(11_344), grouped(1_000_000)], ["0", "760", "11,344", "1,000,000"]);
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
